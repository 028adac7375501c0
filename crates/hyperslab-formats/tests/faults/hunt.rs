//! Every call of every kind fails once, in every way.

use super::shim::{self, Shim};
use libtest_mimic::{Completion, Failed, Trial};
use std::sync::Arc;

/// What is made to fail: a family of calls, the fault, and whether it goes on failing.
const FAULTS: &[(&str, &str, &str)] = &[
    ("open", "EIO", "nth"),
    ("open", "ENOSPC", "from"),
    ("write", "EIO", "nth"),
    ("write", "ENOSPC", "from"),
    ("write", "EINTR", "nth"),
    ("write", "short", "nth"),
    ("write", "short", "from"),
    ("read", "EIO", "nth"),
    ("read", "short", "nth"),
    ("sync", "EIO", "nth"),
    ("truncate", "ENOSPC", "nth"),
    ("rename", "EIO", "nth"),
    ("close", "EIO", "nth"),
    ("mkdir", "ENOSPC", "nth"),
    ("unlink", "EIO", "nth"),
];

/// Every call at first, then with growing steps: late calls are more of the same.
fn calls() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(1u64), |n| Some(n + 1 + n / 12)).take_while(|n| *n < 3000)
}

fn hunt(shim: &Shim, stack: &str, (family, fault, count): (&str, &str, &str)) -> Result<Completion, Failed> {
    let mut met = 0;
    for n in calls() {
        let outcome = shim.run(stack, &format!("call={family},{count}={n},fault={fault}"))?;
        if !outcome.met_a_fault {
            break;
        }
        met += 1;
    }
    if met == 0 {
        return Ok(Completion::ignored_with(format!("the program makes no {family} call")));
    }
    Ok(Completion::Completed)
}

/// The trials of these stacks.
pub fn trials(stacks: &[&'static str]) -> Vec<Trial> {
    let mut trials = Vec::new();
    let shim = Arc::new(shim::Lazy::default());
    for &stack in stacks {
        let clean = shim.clone();
        trials.push(Trial::test(format!("{stack}::without a fault"), move || {
            let outcome = clean.get()?.run(stack, "call=any,nth=1000000000,fault=EIO")?;
            match outcome.reported {
                None => Ok(()),
                Some(message) => Err(format!("failed without a fault: {message}").into()),
            }
        }));
        for fault in FAULTS {
            let shim = shim.clone();
            let (family, kind, count) = *fault;
            trials.push(Trial::ignorable_test(format!("{stack}::{family} {kind} ({count})"), move || {
                hunt(shim.get()?, stack, *fault)
            }));
        }
    }
    trials
}
