//! Nothing may hang: work runs beside a clock.

use libtest_mimic::Failed;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Runs `work` on a thread of its own. A panic becomes a failure, and so does taking longer than `limit`; the thread is
/// then left behind.
pub fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> Result<T, Failed> + Send + 'static,
) -> Result<T, Failed> {
    let (sender, receiver) = channel();
    let worker = std::thread::spawn(move || {
        let _ = sender.send(work());
    });
    match receiver.recv_timeout(limit) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => Err(format!("hung: no result within {} s", limit.as_secs()).into()),
        Err(RecvTimeoutError::Disconnected) => match worker.join() {
            Ok(()) => Err("the worker ended without a result".into()),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
                Err(format!("panicked: {text}").into())
            }
        },
    }
}
