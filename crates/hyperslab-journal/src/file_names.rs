//! File names of a journal: `hyperslab-JOB-RANK-ID.journal` for the head, and for every segment `….SEGMENT.meta` and
//! `….SEGMENT.data`.

use super::header::{Header, Id};

const PREFIX: &str = "hyperslab-";
/// Suffix of a head.
pub(super) const HEAD: &str = ".journal";
/// Suffix of a head that is being written; the journal is still empty.
pub(super) const UNFINISHED: &str = ".new";
/// Suffix of the head of a recovered journal, of which only the files are left.
pub(super) const FINISHED: &str = ".recovered";
/// Suffix of the head of a damaged journal, recovered up to the damage and kept for inspection.
pub(super) const DAMAGED: &str = ".damaged";
const META: &str = ".meta";
const DATA: &str = ".data";

/// The common prefix of a journal's file names. The random identity makes it unpredictable.
pub(super) fn stem(header: &Header) -> String {
    format!("{PREFIX}{}-{}-{}", header.job, header.rank, header.journal)
}

pub(super) fn meta(stem: &str, segment: u64) -> String {
    format!("{stem}.{segment:08}{META}")
}

pub(super) fn data(stem: &str, segment: u64) -> String {
    format!("{stem}.{segment:08}{DATA}")
}

/// The stem of a journal's file name with this suffix.
pub(super) fn stem_of<'a>(name: &'a str, ending: &str) -> Option<&'a str> {
    let stem = name.strip_suffix(ending)?;
    let mut parts = stem.strip_prefix(PREFIX)?.split('-');
    let job = parts.next().filter(|job| Id::parse(job).is_some());
    let rank = parts.next().filter(|rank| rank.parse::<u32>().is_ok());
    let journal = parts.next().filter(|journal| Id::parse(journal).is_some());
    (job.is_some() && rank.is_some() && journal.is_some() && parts.next().is_none()).then_some(stem)
}

/// Whether this names a segment file of any journal.
pub(super) fn is_segment(name: &str) -> bool {
    let Some((rest, number)) = name.rsplit_once('.').and_then(|(rest, _)| rest.rsplit_once('.')) else { return false };
    let stem = format!("{rest}{HEAD}");
    !number.is_empty() && stem_of(&stem, HEAD).is_some() && segment_of(name, rest).is_some()
}

/// The segment number of a segment file, and whether it is a metadata log.
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
