//! Writes an array in two pieces and reads a part of it: `cargo run -p hyperslab --example write_and_read`.
#![allow(clippy::print_stdout, reason = "an example shows its result")]

use hyperslab::{Attribute, Durability, File, Result};

fn main() -> Result<()> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("run.h5");

    let file = File::create(&path, "hdf5(chunk=64x64,deflate=4)")?;
    let temperature = file.create_array::<f32>("fields/temperature", &[256, 256])?;
    temperature.write([0..128, 0..256], &[20.5_f32; 128 * 256])?;
    temperature.write([128..256, 0..256], &[-3.0_f32; 128 * 256])?;
    file.set_attribute("fields/temperature", "units", &Attribute::text("degree Celsius"))?;
    file.flush(Durability::Durable)?;
    file.close()?;

    let file = File::open(&path)?;
    let around: Vec<f32> = file.array("fields/temperature")?.read("127:129,0:2")?;
    println!("{} holds {:?}; rows 127 and 128 begin with {around:?}", file.stack(), file.arrays()?);
    assert_eq!(around, [20.5, 20.5, -3.0, -3.0]);
    file.close()
}
