//! Ctrl-C during runs.

use anyhow::{Context, Result};
use hyperslab_run::Progress;
use std::sync::Arc;

/// The exit code of what the user stopped.
pub const EXIT_INTERRUPTED: u8 = 130;

/// The first Ctrl-C ends the run at the next step, the second at once.
pub fn stop_on_ctrl_c(progress: &Arc<Progress>) -> Result<()> {
    let progress = progress.clone();
    ctrlc::set_handler(move || {
        if progress.stop_requested() {
            std::process::exit(i32::from(EXIT_INTERRUPTED));
        }
        eprintln!("\nstopping; once more to stop at once");
        progress.request_stop();
    })
    .context("listen for Ctrl-C")
}
