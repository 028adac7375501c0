//! Recoveries that are killed: what is left can be rolled back, read and updated.

use super::shim::{Ended, Lazy, Shim, directory, start};
use libtest_mimic::{Failed, Trial};

/// The trial.
pub fn trial() -> Trial {
    let shim = Lazy::default();
    Trial::test("hdf5(abandoned=yes)::killed before any change", move || kill_updates(shim.get()?))
}

/// Updates a file as recoveries do, killed before each third of its changes.
fn kill_updates(shim: &Shim) -> Result<(), Failed> {
    const STACK: &str = "hdf5(abandoned=yes,plane=on)";
    let mut rolled_back = 0;
    for nth in (1..).step_by(3) {
        let directory = directory()?;
        let container = directory.path().join("container");
        start("create", "hdf5", &container, &[])?;
        let fault = format!("path={},call=change,nth={nth},fault=KILL", directory.path().display());
        let variables = [("LD_PRELOAD", shim.library.clone().into_os_string()), ("HYPERSLAB_FAULT", fault.into())];
        let killed = match start("update", STACK, &container, &variables) {
            Ok(ended) if ended.code == 0 => false,
            Err(why) if why.contains("died of a signal") => true,
            Ok(Ended { said: why, .. }) | Err(why) => return Err(why.into()),
        };
        let outcome = hyperslab_rollback::roll_back(&container, false)?;
        rolled_back += u32::from(matches!(outcome, hyperslab_rollback::RollbackOutcome::RolledBack { .. }));
        for role in ["check", "update", "check"] {
            let ended = start(role, if role == "check" { "hdf5" } else { STACK }, &container, &[])?;
            if ended.code != 0 {
                return Err(format!("killed before change {nth}, {outcome:?}, {role}: {}", ended.said).into());
            }
        }
        if !killed {
            break;
        }
    }
    if rolled_back < 5 { Err(format!("only {rolled_back} rollbacks").into()) } else { Ok(()) }
}
