//! Ending a recording: the first rank merges the spools of all ranks.

use super::late_names::LateNames;
use super::names::{check_replaceable, with_suffix};
use super::rank_spool::SpoolHeader;
use super::recorder::{Recorder, State};
use hyperslab_core::workload::{
    ArrayDeclaration, FileDeclaration, Header, TraceInfo, Update, WORKLOAD_VERSION, write_header,
};
use hyperslab_core::{ArraySpec, Communicator, Error, ErrorKind, Fill, OpenMode, Result};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// A rank's summary of its spool.
#[derive(Debug, Serialize, Deserialize)]
struct RankSummary {
    why_not: Option<String>,
    common: u64,
    declared: u64,
    steps: u64,
    pieces: u64,
    failed: u64,
}

/// Writes the trace. Collective. Errors are diagnostics.
pub(super) fn publish(recorder: &Recorder, comm: &dyn Communicator, names: &LateNames) {
    let (Some(trace), Some(begin)) = (&recorder.trace, &recorder.begin) else { return };
    let mut state = recorder.lock();
    if let Err(error) = merge(&mut state, trace, begin, comm, names) {
        state.diagnostics.push(format!("there is no trace: {error}"));
        if error.kind() == ErrorKind::Peer {
            return; // Another rank did not come so far: what this one did is left to be found.
        }
    }
    // The spool is not needed any more, whether the merge succeeded or not.
    if let Some(mut part) = state.part.take() {
        part.discard();
    }
}

fn merge(
    state: &mut State,
    trace: &Path,
    begin: &SpoolHeader,
    comm: &dyn Communicator,
    names: &LateNames,
) -> Result<()> {
    let ready = match &mut state.part {
        Some(part) => part.flush(),
        None => Ok(()),
    };
    let why_not = state.why_not.clone().or_else(|| ready.err().map(|error| error.to_string()));
    let (steps, pieces) = state.part.as_ref().map_or((0, 0), |part| (part.steps, part.pieces()));
    let (common, declared) = (state.common.0, state.declared.0);
    let mine = RankSummary { why_not, common, declared, steps, pieces, failed: state.failed };
    let text = serde_json::to_vec(&mine).map_err(|e| Error::invalid("trace", e.to_string()))?;
    let all = comm.all_gather(&text)?;
    let all: Vec<RankSummary> = all
        .iter()
        .map(|text| serde_json::from_slice(text))
        .collect::<serde_json::Result<_>>()
        .map_err(|e| Error::invalid("trace", e.to_string()))?;
    // The same on all ranks.
    if let Some((rank, reason)) = all.iter().enumerate().find_map(|(rank, told)| Some((rank, told.why_not.as_ref()?))) {
        // The rank has reported it itself.
        return if rank == comm.rank() && !state.diagnostics.is_empty() {
            Ok(())
        } else {
            Err(failed(reason).rank(rank))
        };
    }
    let first = (all[0].common, all[0].declared);
    if let Some(rank) = all.iter().position(|told| (told.common, told.declared) != first) {
        return Err(failed(&format!("rank {rank} made other collective calls than rank 0, perhaps some that failed")));
    }
    let steps = all.iter().map(|told| told.steps).sum();
    let mut output = None;
    let mut begun = Ok(());
    if comm.rank() == 0 {
        let header = header(begin, &state.specs, state.seed, state.extended, Some(steps));
        begun = Output::create(trace, &header).map(|created| output = Some(created));
    }
    let mut go = vec![u8::from(begun.is_ok())];
    comm.broadcast(0, &mut go)?;
    begun?;
    if go != [1] {
        return Ok(()); // The first rank says why.
    }
    let rounds = all.iter().map(|told| told.pieces).max().unwrap_or(0);
    let sent = send(state, rounds, output.as_mut(), comm, names)?;
    let Some(output) = output else { return sent };
    // An unreadable spool is noticed by its missing steps.
    sent?;
    if output.lines != steps {
        return Err(failed(&format!("{} of {steps} steps arrived", output.lines)));
    }
    output.finish(trace)?;
    let failures: u64 = all.iter().map(|told| told.failed).sum();
    if failures > 0 {
        state.diagnostics.push(format!("{failures} calls failed and are not in the trace {}", trace.display()));
    }
    Ok(())
}

/// Sends all spools to the first rank. The outer result is the communicator's, the inner one that of this rank's files:
/// after a file error a rank sends empty pieces, so that no other waits.
fn send(
    state: &mut State,
    rounds: u64,
    mut output: Option<&mut Output>,
    comm: &dyn Communicator,
    names: &LateNames,
) -> Result<Result<()>> {
    let mut trouble = Ok(());
    let mut sender = match state.part.as_mut().map(|part| part.sender()) {
        Some(Ok(sender)) => Some(sender),
        Some(Err(error)) => {
            trouble = Err(error);
            None
        }
        None => None,
    };
    let (mut parts, mut received) = (vec![Vec::new(); comm.size()], Vec::new());
    for _ in 0..rounds {
        parts.iter_mut().for_each(Vec::clear);
        if let Some(from) = &mut sender {
            match from.piece() {
                Ok(piece) => parts[0] = piece,
                Err(e) => (sender, trouble) = (None, Err(Error::io("trace", e))),
            }
        }
        comm.all_to_all(&mut parts, &mut received)?;
        if let Some(to) = output.as_deref_mut()
            && trouble.is_ok()
        {
            trouble = received.iter().try_for_each(|piece| to.append(&names.renamed(piece)?));
        }
    }
    Ok(trouble)
}

fn failed(reason: &str) -> Error {
    Error::new(ErrorKind::Io, "trace", reason)
}

/// The header of the trace. `steps` is `None` for an incomplete run, and set later.
pub(super) fn header(
    begin: &SpoolHeader,
    specs: &[ArraySpec],
    seed: Option<u64>,
    extended: bool,
    steps: Option<u64>,
) -> Header {
    let name = begin.file.as_str();
    let file = match begin.how {
        OpenMode::Create | OpenMode::Truncate => FileDeclaration::created(name),
        OpenMode::Update if extended => FileDeclaration::updated(name, Update::Extend),
        OpenMode::Update => FileDeclaration::updated(name, Update::Overwrite),
        OpenMode::Read => FileDeclaration::read(name),
    };
    let by = concat!("hyperslab ", env!("CARGO_PKG_VERSION")).into();
    Header {
        version: WORKLOAD_VERSION,
        name: "recorded".into(),
        about: format!("recorded calls on {name}"),
        ranks: begin.ranks,
        seed: seed.unwrap_or(0),
        recorded: Some(TraceInfo { by, complete: steps.is_some(), steps: steps.unwrap_or(0) }),
        files: vec![file],
        arrays: specs.iter().map(|spec| ArrayDeclaration { spec: spec.clone(), fill: Fill::default() }).collect(),
    }
}

/// A trace under a temporary name until complete. Removed when dropped earlier.
#[derive(Debug)]
pub(super) struct Output {
    path: PathBuf,
    file: BufWriter<File>,
    lines: u64,
    whole: bool,
}

impl Output {
    pub fn create(trace: &Path, header: &Header) -> Result<Self> {
        check_replaceable(trace)?;
        let path = with_suffix(trace, ".whole.part");
        // Remains of a killed run.
        check_replaceable(&path)?;
        let gone = std::fs::remove_file(&path);
        let file = match gone {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e),
            _ => OpenOptions::new().write(true).create_new(true).open(&path),
        };
        let file = BufWriter::new(file.map_err(|e| Error::io("trace", e).target(path.display()))?);
        let mut output = Self { path, file, lines: 0, whole: false };
        write_header(header, &mut output.file)?;
        Ok(output)
    }

    /// Appends whole lines.
    pub fn append(&mut self, lines: &[u8]) -> Result<()> {
        self.lines += lines.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.file.write_all(lines).map_err(|e| Error::io("trace", e).target(self.path.display()))
    }

    /// Renames it into place.
    pub fn finish(mut self, trace: &Path) -> Result<()> {
        self.file.flush().map_err(|e| Error::io("trace", e).target(self.path.display()))?;
        check_replaceable(trace)?;
        std::fs::rename(&self.path, trace).map_err(|e| Error::io("trace", e).target(trace.display()))?;
        self.whole = true;
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.whole {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
