//! Stripes of a file system that has them, set for the directory before the file is made in it.

use crate::settings::Settings;
use crate::warnings::Warnings;
use hyperslab_core::Result;
use std::path::Path;
use std::process::Command;

/// Asks `lfs` for the stripes of the settings. On other file systems there is a warning and nothing happens.
pub fn apply(settings: &Settings, path: &Path, warnings: &mut Warnings) -> Result<()> {
    if settings.lustre.is_empty() {
        return Ok(());
    }
    let mut command = Command::new("lfs");
    command.arg("setstripe");
    for (key, value) in &settings.lustre {
        let flag = match key.as_str() {
            "stripecount" => "-c",
            "stripesize" => "-S",
            "startost" => "-i",
            _ => "-p",
        };
        command.args([flag, value]);
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match command.arg(directory).output() {
        Ok(output) if output.status.success() => {
            warnings
                .note(format!("new files in {} have the stripes of --posix.lustre from now on", directory.display()));
            Ok(())
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            warnings.warn(format!("lfs setstripe failed, the file has its usual stripes: {}", said.trim()))
        }
        Err(error) => warnings.warn(format!("lfs cannot be run ({error}), the file has its usual stripes")),
    }
}
