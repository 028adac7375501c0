//! Output that nobody reads any more, as in `hyperslab formats | head -1`, or that cannot be written.
//!
//! The standard library makes that a panic. Here the first ends the program without a word, the second with one, and as any panic
//! they let everything on the way out clean up: files of a benchmark are removed.

use crate::cli::EXIT_FAILED;
use crate::connector::say;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::ExitCode;

/// What shells give a program that died of SIGPIPE.
const CODE: u8 = 128 + libc::SIGPIPE as u8;

/// Runs `body`; if its output is closed or full, the result is the exit code of that.
pub fn quietly(body: impl FnOnce() -> ExitCode) -> ExitCode {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if unprinted(panic.payload()).is_none() {
            before(panic);
        }
    }));
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(code) => code,
        Err(panic) => match unprinted(&*panic) {
            Some(why) if why.contains("(os error 32)") => ExitCode::from(CODE),
            Some(why) => {
                say(&format!("hyperslab: cannot print what there is to say: {why}\n"));
                ExitCode::from(EXIT_FAILED)
            }
            None => resume_unwind(panic),
        },
    }
}

/// Why a `println!` failed, if this is its panic.
fn unprinted(panic: &(dyn std::any::Any + Send)) -> Option<&str> {
    let words = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    let (_, why) = words?.strip_prefix("failed printing to std")?.split_once(": ")?;
    Some(why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::panic_any;

    #[test]
    fn a_closed_pipe_is_quiet_and_a_full_disk_is_told() {
        let closed = || panic_any("failed printing to stdout: Broken pipe (os error 32)".to_owned());
        assert_eq!(quietly(closed), ExitCode::from(CODE));
        let full = || panic_any("failed printing to stdout: No space left on device (os error 28)".to_owned());
        assert_eq!(quietly(full), ExitCode::from(EXIT_FAILED));
        assert!(catch_unwind(|| quietly(|| panic_any("anything else"))).is_err());
    }
}
