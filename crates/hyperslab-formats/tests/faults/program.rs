//! The program that meets the faults: this test binary, started again with a role.

use hyperslab_comm::Solo;
use hyperslab_core::{
    ArraySpec, Attribute, Container, Datatype, Durability, Error, ErrorKind, Filter, Format, MemoryView, MemoryViewMut,
    OpenMode, Result, Selection, Stack, TransferMode, dims::element_count,
};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// `write` or `verify`; or `create`, `update` and `check` for a file that is recovered.
pub const ROLE: &str = "HYPERSLAB_FAULT_ROLE";
/// The stack to use.
pub const STACK: &str = "HYPERSLAB_FAULT_STACK";
/// Where the container goes.
pub const PATH: &str = "HYPERSLAB_FAULT_PATH";

/// Plays the role asked for by the environment, if any, on the format that `build` makes of the stack.
pub fn run_if_asked(build: fn(&Stack) -> Result<Arc<dyn Format>>) -> Option<ExitCode> {
    let role = std::env::var(ROLE).ok()?;
    let (stack, path) = (std::env::var(STACK).ok()?, std::env::var_os(PATH)?);
    let result = stack.parse::<Stack>().and_then(|stack| build(&stack)).and_then(|format| match role.as_str() {
        "write" => write(&*format, path.as_ref()),
        "create" => create(&*format, path.as_ref()),
        "update" => update(&*format, path.as_ref()),
        "check" => check_update(&*format, path.as_ref()),
        _ => verify(&*format, path.as_ref()),
    });
    Some(match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:?}");
            ExitCode::FAILURE
        }
    })
}

/// (name, specification) of the arrays.
fn arrays(format: &dyn Format) -> Vec<(&'static str, ArraySpec)> {
    let caps = format.caps();
    let mut out = vec![("plain", ArraySpec::new(Datatype::F64, &[24, 50]))];
    if caps.data.chunks {
        let filters = if caps.has(&Filter::Deflate(1)) { vec![Filter::Deflate(1)] } else { Vec::new() };
        let chunk = Some([10, 11].as_slice().into());
        out.push(("group/chunked", ArraySpec { chunk, filters, ..ArraySpec::new(Datatype::F64, &[24, 30]) }));
    }
    out
}

fn values(name: &str, selection: &Selection, columns: u64, round: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for slab in selection.slabs() {
        let (start, end) = (slab.start(), slab.end());
        for row in start[0]..end[0] {
            for column in start[1]..end[1] {
                let value = (row * columns + column) as f64 + name.len() as f64 / 16.0 + round as f64 * 1e6;
                out.extend(value.to_ne_bytes());
            }
        }
    }
    out
}

fn write_rows(
    container: &Arc<dyn Container>,
    format: &dyn Format,
    rows: std::ops::Range<u64>,
    round: u64,
) -> Result<()> {
    for (name, spec) in arrays(format) {
        let array = container.array(name)?;
        for row in rows.clone().step_by(6) {
            let some = Selection::dense(&[row, 0], &[6, spec.shape[1]])?;
            let data = values(name, &some, spec.shape[1], round);
            array.write(&some, MemoryView::packed(&data), TransferMode::Independent)?;
        }
        array.close()?;
    }
    Ok(())
}

/// Creates, writes, flushes, closes, opens again, reads, changes and closes.
fn write(format: &dyn Format, path: &Path) -> Result<()> {
    let container = format.open(path, OpenMode::Create, &Solo::shared())?;
    for (name, spec) in arrays(format) {
        container.create(name, &spec)?.close()?;
    }
    write_rows(&container, format, 0..12, 0)?;
    container.flush(Durability::Durable)?;
    write_rows(&container, format, 12..24, 0)?;
    if format.caps().data.attributes {
        container.set_attribute("plain", "units", &Attribute::text("metres"))?;
    }
    container.flush(Durability::Visible)?;
    container.close()?;
    let container = format.open(path, OpenMode::Update, &Solo::shared())?;
    check(&container, format, 0..24, 0)?;
    write_rows(&container, format, 6..12, 1)?;
    container.flush(Durability::Durable)?;
    container.close()
}

/// Chunks of the array that is recovered.
const GROWN: (&str, [u64; 1]) = ("group/deep/grown", [64]);

/// A file with an array of many chunks, none of which is stored.
fn create(format: &dyn Format, path: &Path) -> Result<()> {
    let container = format.open(path, OpenMode::Create, &Solo::shared())?;
    let spec = ArraySpec { chunk: Some([1].as_slice().into()), ..ArraySpec::new(Datatype::F64, &GROWN.1) };
    container.create(GROWN.0, &spec)?.close()?;
    container.close()
}

/// What a recovery does to it: all elements, one by one, so that the index of chunks splits and is written more than once.
fn update(format: &dyn Format, path: &Path) -> Result<()> {
    let container = format.open(path, OpenMode::Update, &Solo::shared())?;
    let array = container.array(GROWN.0)?;
    for at in 0..GROWN.1[0] {
        let value = (at as f64 + 0.5).to_ne_bytes();
        array.write(&Selection::dense(&[at], &[1])?, MemoryView::packed(&value), TransferMode::Independent)?;
        if at % 16 == 5 {
            container.flush(Durability::Visible)?;
        }
    }
    array.close()?;
    container.close()
}

/// Elements are written or not, whatever became of the update, and libhdf5 finds them all.
fn check_update(format: &dyn Format, path: &Path) -> Result<()> {
    let container = format.open(path, OpenMode::Read, &Solo::shared())?;
    let array = container.array(GROWN.0)?;
    let mut found = vec![0; GROWN.1[0] as usize * 8];
    array.read(&Selection::all(&GROWN.1)?, MemoryViewMut::packed(&mut found), TransferMode::Independent)?;
    for (at, bytes) in found.chunks_exact(8).enumerate() {
        if bytes != [0; 8] && bytes != (at as f64 + 0.5).to_ne_bytes() {
            return Err(Error::new(ErrorKind::Mismatch, "verify", format!("element {at} is {bytes:?}")));
        }
    }
    array.close()?;
    container.close()
}

fn check(container: &Arc<dyn Container>, format: &dyn Format, rows: std::ops::Range<u64>, round: u64) -> Result<()> {
    for (name, spec) in arrays(format) {
        let array = container.array(name)?;
        let some = Selection::dense(&[rows.start, 0], &[rows.end - rows.start, spec.shape[1]])?;
        let mut found = vec![0; element_count(&[rows.end - rows.start, spec.shape[1]])? as usize * 8];
        array.read(&some, MemoryViewMut::packed(&mut found), TransferMode::Independent)?;
        if found != values(name, &some, spec.shape[1], round) {
            return Err(Error::new(ErrorKind::Mismatch, "verify", format!("{name:?} differs in rows {rows:?}")));
        }
        array.close()?;
    }
    Ok(())
}

/// Everything that [`write`] leaves behind when it succeeds.
fn verify(format: &dyn Format, path: &Path) -> Result<()> {
    let container = format.open(path, OpenMode::Read, &Solo::shared())?;
    check(&container, format, 0..6, 0)?;
    check(&container, format, 6..12, 1)?;
    check(&container, format, 12..24, 0)?;
    if format.caps().data.attributes && container.attribute("plain", "units")?.as_text() != Some("metres") {
        return Err(Error::new(ErrorKind::Mismatch, "verify", "the attribute differs"));
    }
    container.close()
}
