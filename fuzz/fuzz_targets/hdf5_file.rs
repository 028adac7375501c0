//! Whole HDF5 files, read in full by the format `hdf5` with the direct path.
//!
//! What libhdf5 alone makes of a file is tried first, in a child process: there are files that it dies of, and those say
//! nothing of this project. What it survives must do no harm to the direct path either.
//!
//! With `HYPERSLAB_FUZZ_COMPARE` set, every array that the direct path reads must also be what libhdf5 reads. That finds damaged
//! indexes first: where the keys of a B-tree are out of order, libhdf5 lists a chunk (as the direct path uses it) that its own
//! reads do not find, and take for never written.
#![no_main]

use hyperslab_fuzz::alone::{Said, in_child};
use hyperslab_fuzz::hdf5_contents::{Contents, contents};
use std::path::PathBuf;
use std::sync::OnceLock;

/// A directory in memory where the machine has that.
fn folder() -> &'static PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let mut builder = tempfile::Builder::new();
        builder.prefix("hyperslab-fuzz-");
        builder.tempdir_in("/dev/shm").or_else(|_| builder.tempdir()).expect("a folder").keep()
    })
}

libfuzzer_sys::fuzz_target!(|file: &[u8]| {
    // A name of its own for each: what is known of a file is known by its name, too.
    static NUMBER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let path = folder().join(format!("{}-{number}.h5", std::process::id()));
    std::fs::write(&path, file).expect("a file");
    if let Said::All(bytes) = in_child(|| contents("hdf5(plane=off)", &path).encode()) {
        let library = Contents::decode(&bytes).expect("what the child sent");
        let direct = contents("hdf5(plane=on,threads=2)", &path);
        if std::env::var_os("HYPERSLAB_FUZZ_COMPARE").is_some() {
            direct.assert_agrees_with(&library);
        }
    }
    std::fs::remove_file(&path).expect("the file is still there");
});
