//! Reading a journal: its writes in order, up to the first damaged record.

use super::buffered_reader::BufferedReader;
use super::head_slots::LiveSegments;
use super::header::Id;
use super::record::{self, Payload, PayloadPlace, Record};
use super::segment_header::{self, SegmentHeader};
use super::storage::{JournalStorage, LogFile};
use super::{checksum, corrupt, failed, file_names};
use hyperslab_core::{Datatype, Error, Result, Selection};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::sync::Arc;

/// The longest end of a segment that is searched for whole records.
const LONGEST_TAIL: u64 = 64 << 20;
/// Bytes of data verified at a time.
const PIECE: usize = 1 << 20;

/// Location and reason of the first unusable record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Segment number.
    pub segment: u64,
    /// Offset of the record in the segment.
    pub offset: u64,
    /// The record is cut off by the end of the file, and nothing follows: the process ended while writing it, before it was
    /// acknowledged. Otherwise acknowledged writes may be lost.
    pub unfinished: bool,
    /// The reason.
    pub reason: String,
    /// It is unfinished as far as one can tell: the machine was started anew, each write was durable before it was acknowledged,
    /// and no whole record follows.
    pub torn: bool,
    /// Bytes from this record on that were not read.
    pub skipped: u64,
}

/// An array record.
#[derive(Debug, PartialEq, Eq)]
pub struct ArrayInfo {
    /// Name of the array in the container.
    pub name: String,
    /// Element type.
    pub dtype: Datatype,
}

/// A write found in a journal.
#[derive(Debug)]
pub struct RecoveredWrite {
    /// Sequence number.
    pub sequence: u64,
    /// The array.
    pub array: Arc<ArrayInfo>,
    /// The selected elements.
    pub selection: Selection,
    payload: Payload,
    file: Arc<dyn LogFile>,
    offset: u64,
}

impl RecoveredWrite {
    /// Length of the packed elements in bytes; never more than the files have.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        self.payload.len
    }

    /// Reads the packed elements into a buffer of their length, and verifies their checksum.
    pub fn read_into(&self, into: &mut [u8]) -> Result<()> {
        let read =
            self.file.read_at(into, self.offset).map_err(|cause| failed("read journal", &self.array.name, cause))?;
        match read as u64 == self.payload.len && checksum::extend(0, into) == self.payload.crc {
            true => Ok(()),
            false => Err(corrupt("the bytes of a write are not what was written").target(&self.array.name)),
        }
    }

    /// Reads bytes of the packed elements from offset `at`, unchecked: the reader has verified them before.
    pub fn read_part(&self, at: u64, into: &mut [u8]) -> Result<()> {
        let read = self.file.read_at(into, self.offset.saturating_add(at));
        let read = read.map_err(|cause| failed("read journal", &self.array.name, cause))?;
        match read == into.len() {
            true => Ok(()),
            false => Err(corrupt("the bytes of a write are gone").target(&self.array.name)),
        }
    }

    /// Verifies the checksum of the elements in constant memory.
    fn is_whole(&self, piece: &mut Vec<u8>) -> Result<bool> {
        let (mut at, mut crc) = (0, 0);
        while at < self.payload.len {
            piece.resize((self.payload.len - at).min(PIECE as u64) as usize, 0);
            let read = self.file.read_at(piece, self.offset + at);
            let read = read.map_err(|cause| failed("read journal", &self.array.name, cause))?;
            if read < piece.len() {
                return Ok(false);
            }
            crc = checksum::extend(crc, piece);
            at += read as u64;
        }
        Ok(crc == self.payload.crc)
    }
}

/// Iterates over the records of a journal.
#[derive(Debug)]
pub struct Reader {
    files: Arc<dyn JournalStorage>,
    journal: Id,
    stem: String,
    /// Segments still to read, in reverse order.
    segments: Vec<u64>,
    /// The live segments, if the head says so.
    live: Option<LiveSegments>,
    /// Whether the machine was started anew since the journal was written.
    restarted: bool,
    current: Option<Open>,
    /// The expected sequence number, once known.
    next: Option<u64>,
    /// Earlier writes are completed.
    done_before: u64,
    damage: Option<Damage>,
    piece: Vec<u8>,
}

#[derive(Debug)]
struct Open {
    number: u64,
    seed: u32,
    meta: BufferedReader,
    data: Option<(Arc<dyn LogFile>, u64)>,
    offset: u64,
    arrays: HashMap<u32, Arc<ArrayInfo>>,
}

/// Why a record was rejected.
enum Stop {
    /// Cut off by the end of the file.
    Unfinished(String),
    /// Invalid; if only zeros follow this offset, its end was never written.
    Wrong(String, u64),
    /// Invalid.
    Corrupt(String),
}

impl Reader {
    /// A reader of the journal `stem` with these segments. Segments before the live ones are skipped.
    pub(crate) fn new(
        files: Arc<dyn JournalStorage>,
        journal: Id,
        stem: &str,
        mut segments: Vec<u64>,
        live: Option<LiveSegments>,
        restarted: bool,
    ) -> Self {
        segments.retain(|number| live.is_none_or(|live| *number >= live.first));
        segments.sort_unstable_by(|a, b| b.cmp(a));
        segments.dedup();
        let (current, next, damage, piece) = Default::default();
        let stem = stem.into();
        Self { files, journal, stem, segments, live, restarted, current, next, done_before: 0, damage, piece }
    }

    /// The damage that stopped the reader, if any.
    pub fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }

    /// Writes with lower sequence numbers are completed, according to the records read so far.
    pub fn done_before(&self) -> u64 {
        self.done_before
    }

    /// The next write, or `None` at the end or at the first damaged record. Verifies the elements of writes from sequence
    /// number `check` on. Fails only on I/O errors.
    pub fn next_write(&mut self, check: u64) -> Result<Option<RecoveredWrite>> {
        loop {
            if self.damage.is_some() || !self.open_next()? {
                return Ok(None);
            }
            match self.step(check)? {
                Ok(Some(write)) => return Ok(Some(write)),
                Ok(None) => {}
                Err(stop) => self.stop(stop)?,
            }
        }
    }

    /// The reason, if the present segment has fewer bytes than its writer had recorded.
    fn shortened(&self) -> Option<String> {
        let (live, current) = (self.live?, self.current.as_ref()?);
        let (has, had) = (current.meta.len(), live.least);
        (current.number == live.last && has < had)
            .then(|| format!("the segment has {has} bytes, and had {had} or more"))
    }

    /// Ends at the end of a segment that was cut off.
    fn end_shortened(&mut self, reason: String) {
        let (segment, offset) = self.current.as_ref().map_or((0, 0), |current| (current.number, current.offset));
        self.damage = Some(Damage { segment, offset, unfinished: false, torn: false, reason, skipped: 0 });
    }

    fn stop(&mut self, stop: Stop) -> Result<()> {
        if let (Stop::Unfinished(_) | Stop::Wrong(..), Some(reason)) = (&stop, self.shortened()) {
            self.end_shortened(reason);
            return Ok(());
        }
        let (number, offset, len) = self.current.as_ref().map_or((0, 0, 0), |c| (c.number, c.offset, c.meta.len()));
        let mut skipped = len - offset.min(len);
        for number in &self.segments {
            let name = file_names::meta(&self.stem, *number);
            skipped += self.files.open(&name).and_then(|file| file.len()).unwrap_or(0);
        }
        let last = self.segments.is_empty();
        let (unfinished, reason) = match stop {
            Stop::Unfinished(reason) => (last, reason),
            Stop::Wrong(reason, from) => (last && self.only_zeros(from)?, reason),
            Stop::Corrupt(reason) => (false, reason),
        };
        // Nothing in a segment that the head does not name yet was acknowledged.
        let unnamed = self.live.is_some_and(|live| live.each_write && number > live.last);
        let torn = !unfinished && !unnamed && last && self.is_torn(offset)?;
        let unfinished = unfinished || unnamed || torn;
        self.damage = Some(Damage { segment: number, offset, unfinished, torn, reason, skipped });
        Ok(())
    }

    /// Whether the end of the last segment is what a loss of power leaves of a write that was not acknowledged: parts of it in any
    /// order, and no whole record of a later one.
    fn is_torn(&mut self, offset: u64) -> Result<bool> {
        let each_write = self.live.is_some_and(|live| live.each_write);
        let (Some(current), Some(next), true) = (&mut self.current, self.next, each_write && self.restarted) else {
            return Ok(false);
        };
        let arrays = u32::try_from(current.arrays.len()).unwrap_or(u32::MAX);
        let failed = |cause| failed("read journal", &self.stem, cause);
        // Much more than was being written: not looked at, so not known.
        let (end, mut budget) = (current.meta.len(), LONGEST_TAIL);
        if end - offset.min(end) > LONGEST_TAIL {
            return Ok(false);
        }
        for at in offset + 1..end {
            let Some(fixed) = current.meta.get(at, record::FIXED).map_err(failed)? else { break };
            if !record::may_begin(fixed) {
                continue;
            }
            let Ok(len) = record::len_of(fixed, current.seed) else { continue };
            let Some(bytes) = current.meta.get(at, len).map_err(failed)? else { continue };
            budget = budget.saturating_sub(len as u64);
            if budget == 0 {
                return Ok(false);
            }
            match record::decode(bytes, current.seed) {
                // The write for which the lost record named an array: both are of one append.
                Ok((sequence, Record::Write { array, .. })) if sequence == next + 1 && array == arrays => {}
                Ok((sequence, _)) if sequence > next => return Ok(false),
                _ => {}
            }
        }
        Ok(true)
    }

    /// Whether the segment ends in zeros from an offset on, as preallocation or power loss leave it.
    fn only_zeros(&mut self, from: u64) -> Result<bool> {
        let Some(current) = &mut self.current else { return Ok(false) };
        let mut at = from;
        while at < current.meta.len() {
            let len = (current.meta.len() - at).min(4096) as usize;
            match current.meta.get(at, len).map_err(|cause| failed("read journal", &self.stem, cause))? {
                Some(bytes) if bytes.iter().all(|byte| *byte == 0) => at += len as u64,
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// The first missing live segment, if it precedes or follows all that exist.
    fn missing(&self, before: Option<u64>) -> Option<u64> {
        let live = self.live?;
        let wanted = before.map_or(live.first, |before| before + 1);
        let is_there = self.segments.last() == Some(&wanted);
        // A gap between segments is noticed when the next one is opened.
        let at_the_edge = before.is_none() || self.segments.is_empty();
        (at_the_edge && !is_there && wanted <= live.last).then_some(wanted)
    }

    fn miss(&mut self, segment: u64) {
        let each = self.segments.iter().map(|number| file_names::meta(&self.stem, *number));
        let skipped = each.map(|name| self.files.open(&name).and_then(|file| file.len()).unwrap_or(0)).sum();
        let reason = format!("segment {segment} is missing");
        self.damage = Some(Damage { segment, offset: 0, unfinished: false, torn: false, reason, skipped });
    }

    /// Opens the next segment at the end of the present one. Returns `false` if there is none or it is invalid.
    fn open_next(&mut self) -> Result<bool> {
        if self.current.as_ref().is_some_and(|current| current.offset < current.meta.len()) {
            return Ok(true);
        }
        if let Some(reason) = self.shortened() {
            self.end_shortened(reason);
            return Ok(false);
        }
        let before = self.current.as_ref().map(|current| current.number);
        if let Some(number) = self.missing(before) {
            self.miss(number);
            return Ok(false);
        }
        let Some(number) = self.segments.pop() else { return Ok(false) };
        self.current = None;
        let name = file_names::meta(&self.stem, number);
        let failed = |cause| failed("read journal", &name, cause);
        let meta = self.files.open(&name).and_then(BufferedReader::new).map_err(failed)?;
        let data = match self.files.open(&file_names::data(&self.stem, number)) {
            Ok(data) => Some((data.clone(), data.len().map_err(failed)?)),
            Err(cause) if cause.kind() == ErrorKind::NotFound => None,
            Err(cause) => return Err(failed(cause)),
        };
        let seed = checksum::seed(&self.journal, number);
        let mut open = Open { number, seed, meta, data, offset: 0, arrays: HashMap::new() };
        let head = open
            .meta
            .get(0, segment_header::LEN)
            .map_err(failed)?
            .map(|head| SegmentHeader::decode(head, &self.journal, number));
        self.current = Some(open);
        let stop = match head {
            None => Stop::Unfinished("the segment is shorter than its head".into()),
            Some(Err(error)) => Stop::Wrong(error.to_string(), 0),
            Some(Ok(_)) if before.is_some_and(|before| before + 1 != number) => {
                Stop::Corrupt(format!("segment {} is missing", before.unwrap_or(0) + 1))
            }
            Some(Ok(head)) if self.next.is_some_and(|next| next != head.first) => {
                Stop::Corrupt(format!("its records begin at {}, not at {}", head.first, self.next.unwrap_or(0)))
            }
            Some(Ok(head)) => {
                self.next = Some(head.first);
                self.done_before = self.done_before.max(head.done_before);
                if let Some(current) = &mut self.current {
                    current.offset = segment_header::LEN as u64;
                }
                return Ok(true);
            }
        };
        self.stop(stop)?;
        Ok(false)
    }

    /// Applies one record.
    fn step(&mut self, check: u64) -> Result<Result<Option<RecoveredWrite>, Stop>> {
        let (Some(current), Some(next)) = (&mut self.current, self.next) else { return Ok(Ok(None)) };
        if current.offset >= current.meta.len() {
            return Ok(Ok(None));
        }
        let name = file_names::meta(&self.stem, current.number);
        let failed = |cause| failed("read journal", &name, cause);
        let cut_off = || Ok(Err(Stop::Unfinished("the end of the file cuts a record off".into())));
        let begin = current.offset;
        let left = (current.meta.len() - begin).min(record::FIXED as u64) as usize;
        let fixed = current.meta.get(begin, left).map_err(failed)?.unwrap_or_default();
        if fixed.iter().all(|byte| *byte == 0) && self.only_zeros(begin)? {
            // The end of the records.
            if let Some(current) = &mut self.current {
                current.offset = current.meta.len();
            }
            return Ok(Ok(None));
        }
        let Some(current) = &mut self.current else { return Ok(Ok(None)) };
        let Some(fixed) = current.meta.get(begin, record::FIXED).map_err(failed)? else { return cut_off() };
        let torn = |error: Error, from: u64| Ok(Err(Stop::Wrong(error.to_string(), from)));
        let len = match record::len_of(fixed, current.seed) {
            Ok(len) => len,
            Err(error) => return torn(error, begin + record::FIXED as u64),
        };
        let Some(bytes) = current.meta.get(begin, len).map_err(failed)? else { return cut_off() };
        let (sequence, record) = match record::decode(bytes, current.seed) {
            Ok(decoded) => decoded,
            Err(error) => return torn(error, begin + len as u64 - record::CHECKSUM as u64),
        };
        let wrong = |reason: String| Ok(Err(Stop::Corrupt(reason)));
        if sequence != next {
            return wrong(format!("record {sequence} where {next} should be"));
        }
        let mut end = current.offset + len as u64;
        let mut found = None;
        match record {
            Record::Array { number, name, dtype } => {
                current.arrays.insert(number, Arc::new(ArrayInfo { name, dtype }));
            }
            Record::Checkpoint { before } if before > sequence => {
                return wrong(format!("record {sequence} says that {before} are done"));
            }
            Record::Checkpoint { before } => self.done_before = self.done_before.max(before),
            Record::Write { array, selection, payload } => {
                let Some(array) = current.arrays.get(&array).cloned() else {
                    return wrong(format!("a write to an array {array} that was not named"));
                };
                if selection.len().checked_mul(array.dtype.size()) != Some(payload.len) {
                    return wrong(format!("{} bytes for {} elements of {}", payload.len, selection.len(), array.dtype));
                }
                let (file, offset, available) = match (payload.place, &current.data) {
                    (PayloadPlace::Behind, _) => (current.meta.file().clone(), end, current.meta.len()),
                    (PayloadPlace::Data(offset), Some((data, len))) => (data.clone(), offset, *len),
                    (PayloadPlace::Data(_), None) => return wrong("the file with its data is missing".into()),
                };
                let reached = offset.checked_add(payload.len).filter(|reached| *reached <= available);
                if let PayloadPlace::Behind = payload.place {
                    let Some(reached) = reached else { return cut_off() };
                    let Some(mark) = current.meta.get(reached, record::END.len()).map_err(failed)? else {
                        return cut_off();
                    };
                    if mark != record::END {
                        let reason = format!("the data of a write to {:?} have no end", array.name);
                        return Ok(Err(Stop::Wrong(reason, reached)));
                    }
                    end = reached + record::END.len() as u64;
                }
                let write = RecoveredWrite { sequence, array, selection, payload, file, offset };
                if sequence >= check && (reached.is_none() || !write.is_whole(&mut self.piece)?) {
                    return wrong(format!("the data of a write to {:?} are not what was written", write.array.name));
                }
                found = Some(write);
            }
        }
        current.offset = end;
        self.next = Some(next + 1);
        Ok(Ok(found))
    }
}
