//! MPI programs of `tests/c`, linked with the parallel libhdf5 of the set-up: what their ranks write and read together is the same in
//! all modes, byte for byte.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use libtest_mimic::{Completion, Trial};

use crate::c_programs::{build, compile, target};
use crate::{Outcome, in_modes, long_trial, modes, plugin, program, trial};

const LIMIT: Duration = Duration::from_secs(120);
const NO_PARALLEL: &str = "no parallel libhdf5: cargo xtask setup --mpi makes one";

pub fn trials() -> Vec<Trial> {
    let mut trials = in_modes("an MPI program", |mode| share("ranks", 2, mode, Storage::Usual));
    trials.extend(in_modes("a file that 2 ranks share", |mode| share("shared", 2, mode, Storage::Usual)));
    for mode in ["log", "async"] {
        trials.push(trial(format!("a rank that dies, {mode}"), move || die(2, mode)));
        for ranks in [4, 8, 16] {
            trials.push(long_trial(format!("a rank of {ranks} that dies, {mode}"), move || die(ranks, mode)));
        }
    }
    for mode in ["async", "codec+async", "log"] {
        let name = |ranks: u32| format!("a file on slow storage that {ranks} ranks share, {mode}");
        trials.push(long_trial(name(4), move || share("shared", 4, mode, Storage::Slow)));
        trials.push(long_trial(name(3), move || share("shared", 3, mode, Storage::Slow)));
    }
    trials
}

/// Where a program's file is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Storage {
    Usual,
    /// So slow that writes wait when the program goes on.
    Slow,
}

/// A program of `tests/c` with the parallel libhdf5 of the set-up, built once.
fn parallel_program(name: &'static str) -> Result<Option<PathBuf>, String> {
    let make = || {
        let folders = ["hdf5-mpi", "hdf5-mpi-tests"].map(|name| target().join(name));
        let found = folders.iter().find(|folder| folder.join("lib/libhdf5.so").exists());
        let Some(folder) = found else { return Ok(None) };
        let mut command = Command::new("mpicc");
        compile(&mut command, name, &folder.join("include"));
        let library = folder.join("lib");
        command.arg("-L").arg(&library).arg(format!("-Wl,-rpath,{}", library.display())).arg("-lhdf5");
        build(command, name, "parallel").map(Some)
    };
    type Built = Result<Option<PathBuf>, String>;
    static BUILT: Mutex<BTreeMap<&str, Built>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    built.entry(name).or_insert_with(make).clone()
}

/// `mpirun` as any user, with more ranks than cores.
pub fn mpirun(ranks: u32, folder: &Path) -> Command {
    let mut command = Command::new("mpirun");
    command.args(["-n", &ranks.to_string()]);
    for variable in
        ["ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM", "MCA_rmaps_base_oversubscribe", "MCA_mpi_yield_when_idle"]
    {
        command.env(format!("OMPI_{variable}"), "1");
    }
    command.env("OMPI_MCA_orte_tmpdir_base", folder.join("openmpi"));
    command
}

/// Runs a program plain and in `mode`, and compares the files.
fn share(name: &'static str, ranks: u32, mode: &str, storage: Storage) -> Outcome {
    let Some(program) = parallel_program(name)? else { return Ok(Completion::ignored_with(NO_PARALLEL)) };
    let folder = program::folder()?;
    let run = |mode: &str, storage| -> Result<PathBuf, String> {
        let place = folder.path().join(mode);
        std::fs::create_dir_all(&place).map_err(|error| error.to_string())?;
        let mut command = mpirun(ranks, folder.path());
        command.arg(&program).arg(&place);
        modes::apply(&mut command, mode, folder.path())?;
        if storage == Storage::Slow {
            command.env("LD_PRELOAD", plugin::fault_shim()?);
            command.env("HYPERSLAB_SLOW", format!("path={},rate=50000000,latency=1000", place.display()));
        }
        let ended = program::run(&mut command, LIMIT)?;
        let what = format!("{name} with {ranks} ranks under {mode}");
        if ended.status.success() && ended.errors.contains("HDF5-DIAG") {
            return Err(format!("{what} said\n{}", ended.errors));
        }
        ended.expect_success(&what)?;
        Ok(place)
    };
    let (plain, ours) = (run(modes::PLAIN, Storage::Usual)?, run(mode, storage)?);
    let files = if name == "shared" { ["shared-0.h5", "shared-1.h5"].as_slice() } else { &[] };
    for file in files {
        let read = |place: &Path| std::fs::read(place.join(file)).map_err(|error| format!("{file}: {error}"));
        let (plain, ours) = (read(&plain)?, read(&ours)?);
        if plain != ours {
            let at = plain.iter().zip(&ours).position(|(one, other)| one != other);
            let (long, short) = (plain.len(), ours.len());
            return Err(
                format!("{file} of {ranks} ranks under {mode} differs at {at:?}: {long} and {short} bytes").into()
            );
        }
    }
    Ok(Completion::Completed)
}

/// A job of which a rank is killed while writes wait. It ends; and with a log, everything that was written is recovered.
fn die(ranks: u32, mode: &str) -> Outcome {
    let Some(program) = parallel_program("dying")? else { return Ok(Completion::ignored_with(NO_PARALLEL)) };
    let folder = program::folder()?;
    let run = |mode: &str, what: &str| {
        let mut command = mpirun(ranks, folder.path());
        command.arg(&program).arg(folder.path()).arg(what);
        program::run(modes::apply(&mut command, mode, folder.path())?, LIMIT)
    };
    let died = run(mode, "die")?;
    if !died.errors.contains("signal 9") {
        return Err(format!("the job was not killed: {}\n{}", died.output, died.errors).into());
    }
    if mode != "log" {
        return Ok(Completion::Completed);
    }
    if run(modes::PLAIN, "check")?.status.success() {
        return Err("nothing waited in the logs when the rank was killed".into());
    }
    let mut recover = Command::new(plugin::hyperslab()?);
    let told = program::run(recover.arg("recover").arg(folder.path().join("logs")), LIMIT)?;
    let told = told.expect_success("hyperslab recover")?;
    if !told.contains(&format!("{} of {ranks}", ranks - 1)) {
        return Err(format!("not all ranks are named:\n{told}").into());
    }
    run(modes::PLAIN, "check")?.expect_success("after the recovery")?;
    Ok(Completion::Completed)
}
