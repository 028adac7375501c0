//! Records what is done to a file and does it again on another stack, verified:
//! `cargo run -p hyperslab --example record_and_replay`.
#![allow(clippy::print_stdout, reason = "an example shows its result")]

use hyperslab::{File, Result};

fn main() -> Result<()> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let recording = folder.path().join("run.jsonl");
    let stack = format!("trace(file={})/posix", recording.display());
    let file = File::create(folder.path().join("run.posix"), &stack)?;
    let x = file.create_array::<f32>("x", &[64, 4096])?;
    for row in 0..64 {
        x.write([row..row + 1, 0..4096], &[row as f32; 4096])?;
    }
    file.close()?;

    let workload = hyperslab::load_workload(&recording)?;
    let again = folder.path().join("again");
    std::fs::create_dir(&again).expect("a folder for the files");
    let played = hyperslab::play(&workload, "hdf5(chunk=8x4096)", &again)?;
    println!("{} ranks took {:.2?}; every element verified: {}", workload.header.ranks, played.wall, played.verified);
    assert!(played.verified);
    Ok(())
}
