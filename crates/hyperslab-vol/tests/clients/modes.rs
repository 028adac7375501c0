//! The modes that programs run under.

use std::path::Path;
use std::process::Command;

use crate::plugin;

/// Without the connector.
pub const PLAIN: &str = "plain";
/// Each mode alone, and the combinations that people use. Elsewhere small transfers take the direct path too, which they would
/// not without being told.
pub const ALL: [&str; 13] = [
    "off",
    "trace",
    "codec",
    "codec;small=64KiB",
    "async",
    "log",
    "cache",
    "safe",
    "codec+async",
    "codec+log",
    "codec+safe",
    "codec+cache+trace",
    "codec+auto",
];

/// Modes of the ordinary run, for programs that take long.
pub const USUAL: [&str; 5] = ["codec", "codec;small=64KiB", "async", "log", "codec+async"];

/// Has `command` load the connector in `mode`, which keeps its own files in `folder`.
pub fn apply<'a>(command: &'a mut Command, mode: &str, folder: &Path) -> Result<&'a mut Command, String> {
    apply_with(command, mode, folder, "")
}

/// The same, with more of the connector's string: `;key=value`.
pub fn apply_with<'a>(
    command: &'a mut Command,
    mode: &str,
    folder: &Path,
    more: &str,
) -> Result<&'a mut Command, String> {
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("HDF5_") || (name.starts_with("HYPERSLAB_") && name != "HYPERSLAB_PYTHON") {
            command.env_remove(name);
        }
    }
    if mode == PLAIN {
        return Ok(command);
    }
    let logs = folder.join("logs");
    std::fs::create_dir_all(&logs).map_err(|error| format!("cannot create {}: {error}", logs.display()))?;
    let trace = folder.join("trace-%p.jsonl");
    let (logs, trace, state) = (logs.display(), trace.display(), folder.join("state"));
    let text = format!("small=0;mode={mode};log_dir={logs};state={};trace={trace}{more}", state.display());
    command.env("HDF5_PLUGIN_PATH", plugin::folder()?);
    Ok(command.env("HDF5_VOL_CONNECTOR", format!("hyperslab {text}")))
}
