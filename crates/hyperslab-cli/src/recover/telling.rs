//! What `recover` says: to the terminal as it goes, or with `--json` one object at its end.

use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};

/// What was said so far, where it is kept for the end.
static KEPT: Mutex<Option<Kept>> = Mutex::new(None);

/// Lines and logs.
#[derive(Debug, Default)]
struct Kept {
    messages: Vec<Value>,
    logs: Vec<Value>,
}

/// From now on nothing is printed until [`finish`].
pub fn keep() {
    *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = Some(Kept::default());
}

/// A line, to standard error if it is about a problem.
pub fn say(text: &str, problem: bool) {
    match &mut *KEPT.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(kept) => kept.messages.push(json!({"text": text, "problem": problem})),
        None if problem => eprintln!("{text}"),
        None => println!("{text}"),
    }
}

/// Keeps logs, if they are kept; otherwise `false`: they are to be printed.
pub fn logs(all: impl FnOnce() -> Vec<Value>) -> bool {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.as_mut().map(|kept| kept.logs.extend(all())).is_some()
}

/// Prints what was kept, if anything was, with how it all ended.
pub fn finish(outcome: &str) {
    if let Some(kept) = KEPT.lock().unwrap_or_else(PoisonError::into_inner).take() {
        let found = json!({"hyperslab_recovery": 1, "outcome": outcome, "logs": kept.logs, "messages": kept.messages});
        println!("{found:#}");
    }
}

/// A line of what was done or found.
macro_rules! tell {
    ($($words:tt)*) => { $crate::recover::telling::say(&format!($($words)*), false) };
}

/// A line about a problem.
macro_rules! complain {
    ($($words:tt)*) => { $crate::recover::telling::say(&format!($($words)*), true) };
}
