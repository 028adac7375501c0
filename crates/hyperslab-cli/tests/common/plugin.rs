//! The HDF5 connector beside the program, and a Python that uses it.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Builds the connector where the program finds it. Cargo builds no libraries for the sake of tests alone.
pub fn build() {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        if link_to_built().is_some() {
            return;
        }
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
        let mut command = Command::new(cargo);
        command.args(["build", "--quiet", "--package", "hyperslab-vol"]).current_dir(env!("CARGO_MANIFEST_DIR"));
        // The same kind of build as that of the program that is tested, which lies in the same folder then.
        if !cfg!(debug_assertions) {
            command.arg("--release");
        }
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    });
}

/// Uses what was built for tests of the whole workspace: it lies beside this program.
fn link_to_built() -> Option<()> {
    let built = std::env::current_exe().ok()?.with_file_name("libhyperslab_vol.so");
    let folder = built.parent()?.parent()?.join("plugin");
    let link = folder.join("libhyperslab_vol.so");
    if !built.is_file() || std::fs::create_dir_all(&folder).is_err() {
        return None;
    }
    // Other test programs do the same.
    let own = folder.join(format!(".{}", std::process::id()));
    std::os::unix::fs::symlink(&built, &own).ok()?;
    std::fs::rename(&own, &link).ok()
}

/// A Python with h5py; without one such tests end early, which `cargo xtask test` prevents.
pub fn python() -> Option<PathBuf> {
    build();
    std::env::var_os("HYPERSLAB_PYTHON").filter(|path| !path.is_empty()).map(PathBuf::from)
}
