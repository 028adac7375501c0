//! Lets programs find the parallel libhdf5 that they were linked with, and know the commit that they were built at.

use std::process::Command;

fn main() {
    commit();
    println!("cargo::rerun-if-env-changed=HDF5_DIR");
    if std::env::var_os("CARGO_FEATURE_PARALLEL_HDF5").is_some()
        && let Some(folder) = std::env::var_os("HDF5_DIR")
    {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{}/lib", folder.display());
    }
}

/// Tells the compiler the commit, where there is git and this is a checkout.
fn commit() {
    let git = |words: &[&str]| {
        let output = Command::new("git").args(words).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return };
    // Every commit adds a line there.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    println!("cargo::rustc-env=HYPERSLAB_COMMIT={commit}");
}
