//! Where the profile of this machine lies, and reading and writing it.

use anyhow::{Context, Result, bail};
use hyperslab_model::{MachineFacts, Profile};
use hyperslab_run::Machine;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The largest profile that is read.
const MAX_FILE: u64 = 16 << 20;

/// The usual place: the user's state directory.
pub fn usual() -> Result<PathBuf> {
    let from = |key: &str| std::env::var_os(key).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = from("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let state = state.or_else(|| from("HOME").map(|home| home.join(".local/state")));
    let Some(state) = state else { bail!("neither XDG_STATE_HOME nor HOME is set; pass --profile") };
    Ok(state.join("hyperslab/profile.json"))
}

/// What of the machine decides whether a profile holds.
pub fn facts(directory: &Path) -> MachineFacts {
    let Machine { processor, processors, memory, file_system, device, .. } = Machine::of(directory);
    MachineFacts { processor, processors, memory, file_system, device }
}

/// Reads a profile; refuses one of another machine unless told otherwise.
pub fn load(path: &Path, directory: &Path, foreign: bool) -> Result<Profile> {
    let hint = || format!("read {}; hyperslab train makes one", path.display());
    let size = fs::metadata(path).with_context(hint)?.len();
    if size > MAX_FILE {
        bail!("{} has {size} bytes, so it is no profile", path.display());
    }
    let text = fs::read_to_string(path).with_context(hint)?;
    let profile = Profile::from_json(&text).with_context(|| path.display().to_string())?;
    if !foreign {
        profile.check_machine(&facts(directory)).with_context(|| path.display().to_string())?;
    }
    Ok(profile)
}

/// Replaces a profile in one step.
pub fn save(profile: &Profile, path: &Path) -> Result<()> {
    let failed = || format!("write {}", path.display());
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(failed)?;
    }
    let new = path.with_extension("json.new");
    let mut file = fs::File::create(&new).with_context(failed)?;
    file.write_all(profile.to_json()?.as_bytes()).and_then(|()| file.sync_all()).with_context(failed)?;
    fs::rename(&new, path).with_context(failed)
}
