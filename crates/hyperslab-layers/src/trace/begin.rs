//! Beginning a recording: the first rank chooses the name, and all ranks record or none does.

use super::names;
use super::options::Options;
use super::rank_spool::{PART_VERSION, RankSpool, SpoolHeader};
use super::recorder::Recorder;
use hyperslab_core::{Communicator, Error, ErrorKind, OpenMode, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum bytes that all ranks send to the first at a time.
const ALL_PIECES: usize = 16 << 20;

/// The decision of the first rank.
#[derive(Serialize, Deserialize)]
enum Answer {
    /// Record; the trace is the n-th of its name.
    Number(u32),
    /// Do not record, for this reason.
    Off(String),
    /// Refuse the request of the user.
    Refused(String),
}

/// Creates a recorder for a container to be opened. Collective. Fails only on errors that the user must correct.
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
    let begin = SpoolHeader { hyperslab_trace_part: PART_VERSION, rank, ranks, file: name, how };
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
    // A rank that cannot record reports that at the merge.
    let part = match chosen {
        Some(part) => Ok(part),
        None => match RankSpool::create(&trace, &begin, piece) {
            Ok(Some(part)) => Ok(part),
            Ok(None) => Err("another program records under the same name".to_owned()),
            Err(e) => Err(Error::io("trace", e).target(trace.display()).to_string()),
        },
    };
    Ok(Recorder::new(part, trace, begin, options.gap))
}

/// The first free name, and this rank's spool.
fn choose(file: &Path, begin: &SpoolHeader, piece: usize) -> Result<(u32, RankSpool)> {
    for number in 1..=names::MOST {
        let trace: PathBuf = names::numbered(file, number);
        if !names::is_free(file, number, &begin.file, begin.how)? {
            continue;
        }
        match RankSpool::create(&trace, begin, piece) {
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
