//! How the plugin is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // HDF5 unloads plugins when it closes down, while threads of ours may be about to end.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // Symbols of the codecs inside are found inside, whatever the program has loaded.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
}
