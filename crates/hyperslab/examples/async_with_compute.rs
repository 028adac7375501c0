//! Writes time steps behind computation, on storage that is emulated as slow: `cargo run -p hyperslab --example async_with_compute`.
#![allow(clippy::print_stdout, reason = "an example shows its result")]

use hyperslab::{File, Result};
use std::time::{Duration, Instant};

const STEPS: u64 = 4;
const ELEMENTS: u64 = 1 << 20;

/// Stands for a time step of a simulation.
fn compute(step: u64) -> Vec<f64> {
    let until = Instant::now() + Duration::from_millis(100);
    let mut values = vec![0.0; ELEMENTS as usize];
    while Instant::now() < until {
        values.iter_mut().step_by(64).for_each(|value| *value += step as f64);
    }
    values
}

fn run(stack: &str) -> Result<Duration> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let begin = Instant::now();
    let file = File::create(folder.path().join("run.posix"), stack)?;
    for step in 0..STEPS {
        let values = compute(step);
        file.create_array::<f64>(&format!("step-{step}"), &[ELEMENTS])?.write(.., &values)?;
    }
    // Errors of writes in the background are reported here.
    file.close()?;
    Ok(begin.elapsed())
}

fn main() -> Result<()> {
    let waiting = run("slow(100MB/s,2ms)/posix")?;
    let behind = run("async/slow(100MB/s,2ms)/posix")?;
    println!("waiting for each write: {waiting:.2?}; behind computation: {behind:.2?}");
    Ok(())
}
