//! Names of the files of a journal: `hyperslab-JOB-RANK-ID.journal`, and for every segment `….SEGMENT.meta` and
//! `….SEGMENT.data`.

use super::header::{Header, Id};

const PREFIX: &str = "hyperslab-";
/// What the head's name ends with.
pub(super) const HEAD: &str = ".journal";
/// A head that is being written. Nothing is in such a journal yet.
pub(super) const UNFINISHED: &str = ".new";
/// A head whose records are all in the container; only its files are still to be removed.
pub(super) const FINISHED: &str = ".recovered";
/// A head whose records up to a damaged one are in the container; kept for people to look at.
pub(super) const DAMAGED: &str = ".damaged";
const META: &str = ".meta";
const DATA: &str = ".data";

/// What the names of all files of a journal begin with. The identity of the journal makes it unpredictable.
pub(super) fn stem(header: &Header) -> String {
    format!("{PREFIX}{}-{}-{}", header.job, header.rank, header.journal)
}

pub(super) fn meta(stem: &str, segment: u64) -> String {
    format!("{stem}.{segment:08}{META}")
}

pub(super) fn data(stem: &str, segment: u64) -> String {
    format!("{stem}.{segment:08}{DATA}")
}

/// The stem of a name with this ending, if it is one of a journal.
pub(super) fn stem_of<'a>(name: &'a str, ending: &str) -> Option<&'a str> {
    let stem = name.strip_suffix(ending)?;
    let mut parts = stem.strip_prefix(PREFIX)?.split('-');
    let job = parts.next().filter(|job| Id::parse(job).is_some());
    let rank = parts.next().filter(|rank| rank.parse::<u32>().is_ok());
    let journal = parts.next().filter(|journal| Id::parse(journal).is_some());
    (job.is_some() && rank.is_some() && journal.is_some() && parts.next().is_none()).then_some(stem)
}

/// Whether this is a file of a segment of any journal.
pub(super) fn is_segment(name: &str) -> bool {
    let Some((rest, number)) = name.rsplit_once('.').and_then(|(rest, _)| rest.rsplit_once('.')) else { return false };
    let stem = format!("{rest}{HEAD}");
    !number.is_empty() && stem_of(&stem, HEAD).is_some() && segment_of(name, rest).is_some()
}

/// The number of the segment whose description or data this is.
pub(super) fn segment_of(name: &str, stem: &str) -> Option<(u64, bool)> {
    let rest = name.strip_prefix(stem)?.strip_prefix('.')?;
    let (number, is_meta) = match (rest.strip_suffix(META), rest.strip_suffix(DATA)) {
        (Some(number), _) => (number, true),
        (_, Some(number)) => (number, false),
        _ => return None,
    };
    let plain = number.len() >= 8 && number.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| number.parse().ok()).flatten().map(|number| (number, is_meta))
}
