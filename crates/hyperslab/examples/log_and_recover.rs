//! A process is killed after its writes had returned; recovery brings them into the file:
//! `cargo run -p hyperslab --example log_and_recover`.
#![allow(clippy::print_stdout, reason = "an example shows its result")]

use hyperslab::{Durability, File, Result};
use std::path::Path;
use std::process::Command;

/// What the other process does: it writes through a log and dies without closing anything.
fn write_and_die(path: &Path) -> Result<()> {
    let file = File::create(path, "log/posix")?;
    let rows = file.create_array::<i64>("rows", &[100, 8])?;
    file.flush(Durability::Visible)?;
    for row in 0..100 {
        rows.write([row..row + 1, 0..8], &[row as i64; 8])?;
    }
    std::process::abort()
}

fn main() -> Result<()> {
    if let Some(path) = std::env::args_os().nth(1) {
        return write_and_die(Path::new(&path));
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("run.posix");
    let program = std::env::current_exe().expect("the path of this program");
    let ended = Command::new(program).arg(&path).status().expect("the program starts again");
    assert!(!ended.success(), "it was to die");

    let recovered = hyperslab::recover(&path)?;
    println!("recovered {} writes, {} bytes", recovered.writes, recovered.bytes);
    let file = File::open(&path)?;
    let column: Vec<i64> = file.array("rows")?.read(":,0")?;
    assert_eq!(column, (0..100).collect::<Vec<_>>());
    file.close()
}
