//! The HDF5 connector beside the program, and a Python that uses it.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Builds the connector where the program finds it. Cargo builds no libraries for the sake of tests alone.
pub fn build() {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
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

/// A Python with h5py; without one such tests end early, which `cargo xtask test` prevents.
pub fn python() -> Option<PathBuf> {
    build();
    std::env::var_os("HYPERSLAB_PYTHON").filter(|path| !path.is_empty()).map(PathBuf::from)
}
