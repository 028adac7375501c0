//! Lets programs find the parallel libhdf5 that they were linked with.

fn main() {
    println!("cargo::rerun-if-env-changed=HDF5_DIR");
    if std::env::var_os("CARGO_FEATURE_PARALLEL_HDF5").is_some()
        && let Some(folder) = std::env::var_os("HDF5_DIR")
    {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{}/lib", folder.display());
    }
}
