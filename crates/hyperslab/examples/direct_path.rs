//! Reads a slab of a compressed HDF5 file by the direct path, which decodes chunks on all cores:
//! `cargo run -p hyperslab --example direct_path`.
#![allow(clippy::print_stdout, reason = "an example shows its result")]

use hyperslab::{File, OpenMode, Result};
use std::time::Instant;

fn main() -> Result<()> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("run.h5");
    let file = File::create(&path, "hdf5(plane=on,chunk=256x256,shuffle,deflate=4)")?;
    let values: Vec<f32> = (0..2048 * 2048).map(|i| (i % 2048) as f32).collect();
    file.create_array::<f32>("x", &[2048, 2048])?.write(.., &values)?;
    file.close()?;

    for stack in ["hdf5", "hdf5(plane=on)"] {
        let file = File::open_with(&path, stack, OpenMode::Read)?;
        let begin = Instant::now();
        let slab: Vec<f32> = file.array("x")?.read("512:1536,::2")?;
        println!("{stack}: {} elements in {:.2?}", slab.len(), begin.elapsed());
        assert!(slab.chunks(1024).all(|row| row[0] == 0.0 && row[1023] == 2046.0));
        file.close()?;
    }
    Ok(())
}
