//! Output that nobody reads any more: `hyperslab formats | head -1`.
//!
//! The standard library makes that a panic. Here it ends the program without a word, and as any panic it lets everything on the
//! way out clean up: files of a benchmark are removed.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::ExitCode;

/// What shells give a program that died of SIGPIPE.
const CODE: u8 = 128 + libc::SIGPIPE as u8;

/// Runs `body`; if its output is closed, the result is the exit code of that.
pub fn quietly(body: impl FnOnce() -> ExitCode) -> ExitCode {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !is_closed_pipe(panic.payload()) {
            before(panic);
        }
    }));
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(code) => code,
        Err(panic) if is_closed_pipe(&*panic) => ExitCode::from(CODE),
        Err(panic) => resume_unwind(panic),
    }
}

/// Whether this is the panic of a `println!` that failed because its reader has gone.
fn is_closed_pipe(panic: &(dyn std::any::Any + Send)) -> bool {
    let words = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    words.is_some_and(|words| words.starts_with("failed printing to std") && words.contains("(os error 32)"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::panic_any;

    #[test]
    fn only_a_closed_pipe_is_quiet() {
        let closed = || panic_any("failed printing to stdout: Broken pipe (os error 32)".to_owned());
        assert_eq!(quietly(closed), ExitCode::from(CODE));
        let full = || panic_any("failed printing to stdout: No space left on device (os error 28)".to_owned());
        assert!(catch_unwind(|| quietly(full)).is_err());
    }
}
