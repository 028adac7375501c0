//! The cases.

use crate::line::{Aim, Line};
use crate::program::{measure, measure_all};
use crate::stage::{Side, Stage, Storage};
use std::path::Path;

/// What a case returns: its lines, or why there are none.
pub type Lines = Result<Vec<Line>, String>;

/// A name and what runs it.
type Case = (&'static str, fn(&Stage) -> Lines);

pub const CASES: [Case; 10] = [
    ("deflate", |stage| filtered(stage, "deflate", "deflate-4 + shuffle", 3.5, 5.0)),
    ("zstd", |stage| filtered(stage, "zstd", "zstd-3", 1.7, 1.7)),
    ("blosc2", |stage| filtered(stage, "blosc2", "blosc2-zstd-5", 1.7, 1.7)),
    ("rows", rows),
    ("fields", fields),
    ("contiguous", contiguous),
    ("hidden", hidden),
    ("pieces", pieces),
    ("passing", passing),
    ("safe", safe),
];

/// A case of the Python script: what it does to a file.
fn python(stage: &Stage, case: &str, action: &str, path: &Path, side: Side, storage: Storage) -> Result<f64, String> {
    let mut command = stage.python();
    command.args([case, action]).arg(path).arg(stage.less.to_string());
    stage.dress(&mut command, side);
    if storage == Storage::Slow {
        stage.slow(&mut command);
    }
    measure(&mut command)
}

/// Writes by both sides, the file that the connector wrote last verified by a plain process; returns times and sizes.
fn written(stage: &Stage, case: &str, modes: &'static str, storage: Storage) -> Result<([f64; 2], [f64; 2]), String> {
    let names = [format!("{case}-plain.h5"), format!("{case}.h5")];
    let paths = names.map(|name| stage.path(storage, &name));
    let path_of = |side| &paths[usize::from(matches!(side, Side::Connector(_)))];
    let times = stage.compare(modes, |side| {
        let _ = std::fs::remove_file(path_of(side));
        python(stage, case, "write", path_of(side), side, storage)
    })?;
    python(stage, case, "verify", &paths[1], Side::Plain, Storage::Memory)?;
    let size = |path: &Path| path.metadata().map_or(0.0, |metadata| metadata.len() as f64);
    Ok((times, [size(&paths[0]), size(&paths[1])]))
}

fn remove(stage: &Stage, case: &str) {
    for storage in [Storage::Memory, Storage::Slow] {
        for name in [format!("{case}-plain.h5"), format!("{case}.h5")] {
            let _ = std::fs::remove_file(stage.path(storage, &name));
        }
    }
}

/// 256 MiB of smooth numbers in chunks of 1 MiB.
fn filtered(stage: &Stage, case: &str, what: &str, write: f64, read: f64) -> Lines {
    let (times, sizes) = written(stage, case, "codec", Storage::Memory)?;
    // Both read what the plain program wrote, so that neither gains by its own file.
    let path = stage.path(Storage::Memory, &format!("{case}-plain.h5"));
    let compare = |action| stage.compare("codec", |side| python(stage, case, action, &path, side, Storage::Memory));
    let (fresh, used) = (compare("read-fresh")?, compare("read")?);
    remove(stage, case);
    Ok(vec![
        Line::new(format!("write 256 MiB of smooth float32, {what}"), times, Aim::Faster(write)),
        Line::new("  size of the file", sizes, Aim::AtMost(1.02)),
        Line::new("  read it back, warm", used, Aim::Faster(read)),
        Line::new("  the same, into memory without pages yet", fresh, Aim::Faster(read)),
    ])
}

fn rows(stage: &Stage) -> Lines {
    let path = stage.path(Storage::Memory, "rows-plain.h5");
    python(stage, "rows", "write", &path, Side::Plain, Storage::Memory)?;
    // The script compares what it read with what it knows, apart from the time.
    let times = stage.compare("codec", |side| python(stage, "rows", "read", &path, side, Storage::Memory))?;
    remove(stage, "rows");
    Ok(vec![Line::new("read 1000 random rows of 2^20 x 64 int32, 2^16 x 1 chunks", times, Aim::Faster(8.0))])
}

fn fields(stage: &Stage) -> Lines {
    let (times, _) = written(stage, "fields", "codec", Storage::Memory)?;
    remove(stage, "fields");
    Ok(vec![Line::new("write 8 fields of a structured array, 256 MiB", times, Aim::Faster(3.0))])
}

fn contiguous(stage: &Stage) -> Lines {
    let (times, _) = written(stage, "contiguous", "codec", Storage::Memory)?;
    remove(stage, "contiguous");
    Ok(vec![Line::new("write 1 GiB contiguous, page cache", times, Aim::Faster(0.95))])
}

fn hidden(stage: &Stage) -> Lines {
    let (times, _) = written(stage, "hidden", "codec+async", Storage::Slow)?;
    remove(stage, "hidden");
    // At most a fifth of the time.
    Ok(vec![Line::new("blocked by 8 x 32 MiB, slow storage, computing between", times, Aim::Faster(5.0))])
}

/// The C program: an action, a file, how many calls.
fn c(stage: &Stage, action: &str, path: &Path, calls: u64, side: Side, storage: Storage) -> Result<f64, String> {
    let mut command = stage.c_program()?;
    command.arg(action).arg(path).arg(calls.to_string());
    stage.dress(&mut command, side);
    if storage == Storage::Slow {
        stage.slow(&mut command);
    }
    measure(&mut command)
}

/// Pieces of 4 KiB in another order than that of the file, from the first write to the end of close.
fn pieces(stage: &Stage) -> Lines {
    let mut lines = Vec::new();
    for (storage, calls, what, aim) in
        [(Storage::Slow, 2048, "slow storage", 10.0), (Storage::Memory, 1 << 16, "page cache", 0.9)]
    {
        let calls = calls / stage.less;
        let times = stage.compare("log", |side| {
            let path = stage.path(storage, "pieces.h5");
            let _ = std::fs::remove_file(&path);
            let time = c(stage, "write", &path, calls, side, storage)?;
            c(stage, "verify", &path, calls, Side::Plain, Storage::Memory)?;
            Ok(time)
        })?;
        let what = format!("C: {calls} pieces of 4 KiB, contiguous, log, {what}");
        lines.push(Line::new(what, times, Aim::Faster(aim)));
        remove(stage, "pieces");
    }
    Ok(lines)
}

/// What it costs that files survive a kill: metadata at most half as much again, new data nothing, memory a bit for each page.
fn safe(stage: &Stage) -> Lines {
    let mut lines = Vec::new();
    for (case, what, aim) in [
        ("create", "safe: 4000 small datasets with attributes, new file", Aim::Faster(1.0 / 1.5)),
        ("change", "safe: attributes, names, deletions of 2000, flushes", Aim::Faster(1.0 / 1.5)),
        ("append", "safe: 8000 rows appended to chunks, flushes", Aim::Faster(1.0 / 1.5)),
        ("contiguous", "safe: write 1 GiB contiguous, page cache", Aim::Faster(0.95)),
        ("replace", "safe: memory, 512 MiB written over", Aim::AtMost(1.1)),
    ] {
        let (figures, _) = written(stage, case, "safe", Storage::Memory)?;
        remove(stage, case);
        lines.push(Line::new(what, figures, aim));
    }
    Ok(lines)
}

/// What it costs to pass calls on, in seconds for each. Every run makes the calls both ways.
fn passing(stage: &Stage) -> Lines {
    let path = stage.path(Storage::Memory, "passing.h5");
    c(stage, "prepare", &path, 256, Side::Plain, Storage::Memory)?;
    let both = |action: &str, calls: u64| {
        let mut command = stage.c_program()?;
        command.arg(action).arg(&path).arg((calls / stage.less).to_string());
        measure_all(stage.dress(&mut command, Side::Connector("off")))
    };
    let tiny = stage.compare_within(|| both("tiny", 200_000))?;
    let large = stage.compare_within(|| both("large", 2048))?;
    remove(stage, "passing");
    Ok(vec![
        Line::new("C: read 8 bytes, passed on (off), each call", tiny, Aim::More(3e-6)),
        Line::new("C: read and write 1 MiB, passed on (off), each call", large, Aim::Faster(0.98)),
    ])
}
