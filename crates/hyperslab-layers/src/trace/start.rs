//! The beginning of a recording: the first rank chooses a name, and everyone records under it or nobody does.

use super::names;
use super::options::Options;
use super::part::{Begin, PART_VERSION, Part};
use super::recorder::Recorder;
use hyperslab_core::{Communicator, Error, ErrorKind, OpenMode, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What all ranks together may send the first one at a time.
const ALL_PIECES: usize = 16 << 20;

/// What the first rank says about the trace.
#[derive(Serialize, Deserialize)]
enum Answer {
    /// It is the n-th of its name.
    Number(u32),
    /// There is none, for this reason.
    Off(String),
    /// The user asked for something that must not be done.
    Refused(String),
}

/// A recorder for the container that is to be opened. Collective. Refuses only what the user has to change.
pub(super) fn start(
    options: &Options,
    container: &Path,
    how: OpenMode,
    comm: &Arc<dyn Communicator>,
) -> Result<Recorder> {
    let file = options.file.clone().unwrap_or_else(|| names::beside(container));
    let (rank, ranks) = (comm.rank(), comm.size());
    let name = container.file_name().map(|name| name.to_string_lossy().replace('\0', "_"));
    let name = name.filter(|name| name != "." && name != "..").unwrap_or_else(|| "container".into());
    let begin = Begin { hyperslab_trace_part: PART_VERSION, rank, ranks, file: name, how };
    let piece = (ALL_PIECES / ranks).clamp(4 << 10, 1 << 20);
    let mut chosen = None;
    let mut refusal = None;
    let mut said = Vec::new();
    if rank == 0 {
        let answer = match choose(&file, &begin, piece) {
            Ok((number, part)) => {
                chosen = Some(part);
                Answer::Number(number)
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let text = error.to_string();
                refusal = Some(error);
                Answer::Refused(text)
            }
            Err(error) => Answer::Off(error.to_string()),
        };
        said = serde_json::to_vec(&answer).unwrap_or_default();
    }
    comm.broadcast(0, &mut said)?;
    let answer = serde_json::from_slice(&said).unwrap_or_else(|e| Answer::Off(e.to_string()));
    let number = match answer {
        Answer::Number(number) => number,
        Answer::Off(reason) => return Ok(Recorder::off(reason)),
        Answer::Refused(text) => {
            return Err(refusal.unwrap_or_else(|| Error::new(ErrorKind::Peer, "trace", text).rank(0)));
        }
    };
    let trace = names::numbered(&file, number);
    // A rank that cannot record says so when the others want to put the trace together.
    let part = match chosen {
        Some(part) => Ok(part),
        None => match Part::create(&trace, &begin, piece) {
            Ok(Some(part)) => Ok(part),
            Ok(None) => Err("another program records under the same name".to_owned()),
            Err(e) => Err(Error::io("trace", e).target(trace.display()).to_string()),
        },
    };
    Ok(Recorder::new(part, trace, begin, options.gap))
}

/// The first name that is free, and a part under it.
fn choose(file: &Path, begin: &Begin, piece: usize) -> Result<(u32, Part)> {
    for number in 1..=names::MOST {
        let trace: PathBuf = names::numbered(file, number);
        if !names::is_free(file, number, &begin.file, begin.how)? {
            continue;
        }
        match Part::create(&trace, begin, piece) {
            Ok(Some(part)) => return Ok((number, part)),
            Ok(None) => {}
            Err(e) => {
                let reason = Error::io("trace", e);
                return Err(Error::new(ErrorKind::Io, "trace", reason.to_string()).target(trace.display()));
            }
        }
    }
    Err(Error::new(ErrorKind::Io, "trace", format!("there are {} traces of this name", names::MOST))
        .target(file.display()))
}
