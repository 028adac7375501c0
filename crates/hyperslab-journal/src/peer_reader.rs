//! Reading writes from the journal of another process on this machine, given their locations.

use super::record::{Payload, PayloadPlace};
use super::segment::{RecordHandle, Segment};
use super::segment_list::SegmentList;
use super::storage::JournalStorage;
use super::wire::{Decoder, Encoder};
use super::{checksum, corrupt, failed, file_names};
use hyperslab_core::Result;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

/// The journal of another process, opened read-only: nothing in it is completed, synced or removed.
#[derive(Debug)]
pub struct PeerJournal {
    segment_list: Arc<SegmentList>,
    segments: BTreeMap<u64, Arc<Segment>>,
}

impl RecordHandle {
    /// Encodes its location for [`PeerJournal::decode_location`]. The write must be written out.
    #[doc(hidden)]
    pub fn encode_location(&self, out: &mut Encoder) {
        let (in_data, offset) = match self.payload.place {
            PayloadPlace::Behind => (0, self.behind),
            PayloadPlace::Data(offset) => (1, offset),
        };
        out.u64(self.segment.number);
        out.u32(in_data);
        out.u64(offset);
        out.u64(self.payload.len);
        out.u32(self.payload.crc);
        self.marks.iter().for_each(|mark| out.u32(*mark));
    }
}

impl PeerJournal {
    /// Opens the journal whose file names have the prefix `stem`.
    pub fn open(files: Arc<dyn JournalStorage>, stem: &str) -> Result<Self> {
        let name = format!("{stem}{}", file_names::HEAD);
        if file_names::stem_of(&name, file_names::HEAD).is_none() {
            return Err(corrupt(format!("{stem:?} is no name of a journal")));
        }
        let head = files.open(&name).map_err(|cause| failed("open journal", &name, cause))?;
        let segment_list = Arc::new(SegmentList::new(files, stem.to_owned(), false, head));
        Ok(Self { segment_list, segments: BTreeMap::new() })
    }

    /// Decodes a location, as a handle for reading.
    #[doc(hidden)]
    pub fn decode_location(&mut self, from: &mut Decoder<'_>) -> Result<RecordHandle> {
        let (number, in_data, offset, len, crc) =
            (from.u64()?, from.u32()? == 1, from.u64()?, from.u64()?, from.u32()?);
        let marks = (0..checksum::marks(len)).map(|_| from.u32()).collect::<Result<_>>()?;
        let segment = self.segment(number, in_data)?;
        let (place, behind) = if in_data { (PayloadPlace::Data(offset), 0) } else { (PayloadPlace::Behind, offset) };
        let (segment_list, payload) = (self.segment_list.clone(), Payload { place, len, crc });
        Ok(RecordHandle { segment_list, segment, sequence: 0, payload, behind, marks })
    }

    fn segment(&mut self, number: u64, with_data: bool) -> Result<Arc<Segment>> {
        let open = |name: &str| self.segment_list.files.open(name).map_err(|cause| failed("open journal", name, cause));
        let segment = match self.segments.get(&number) {
            Some(segment) => segment.clone(),
            None => {
                let segment = Arc::new(Segment {
                    number,
                    // The metadata log, which is not read here.
                    seed: 0,
                    meta: open(&file_names::meta(&self.segment_list.stem, number))?,
                    data: OnceLock::new(),
                    dirty: AtomicBool::new(false),
                    batch: Mutex::default(),
                });
                self.segments.insert(number, segment.clone());
                segment
            }
        };
        if with_data && segment.data.get().is_none() {
            let _ = segment.data.set(open(&file_names::data(&self.segment_list.stem, number))?);
        }
        Ok(segment)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::{Append, Directory, Header, Id, Journal, Limits, SyncMode, read_all};
    use super::*;
    use hyperslab_core::{Datatype, Selection};

    #[test]
    fn what_one_tells_another_reads() {
        let folder = tempfile::tempdir().unwrap();
        let files: Arc<dyn JournalStorage> = Arc::new(Directory::open(folder.path()).unwrap());
        let header = Header::new(Id::random().unwrap(), 3, 4, "posix", "/x".into()).unwrap();
        let limits = Limits { sync: SyncMode::OnFlush, ..Limits::new(64 << 20) };
        let journal = Journal::create(files.clone(), header, limits).unwrap();
        let lengths = [10usize, 4096, 300_000, 1, 2_000_000, 4096];
        let content = |number: usize| (0..lengths[number]).map(|at| (at * 3 + number) as u8).collect::<Vec<u8>>();
        let mut told = Encoder::default();
        let mut keep = Vec::new();
        for (number, len) in lengths.iter().enumerate() {
            let selection = Selection::dense(&[0], &[*len as u64]).unwrap();
            let Append::Logged(logged) = journal.append("a", &Datatype::U8, &selection, &[&content(number)]).unwrap()
            else {
                panic!("there is room")
            };
            keep.push(logged);
        }
        journal.write_out().unwrap();
        keep.iter().for_each(|logged| logged.encode_location(&mut told));
        let mut foreign = PeerJournal::open(files.clone(), journal.stem()).unwrap();
        let mut from = Decoder(&told.0);
        let heard: Vec<RecordHandle> =
            (0..lengths.len()).map(|_| foreign.decode_location(&mut from).unwrap()).collect();
        assert!(from.0.is_empty());
        let mut found: Vec<Vec<u8>> = lengths.iter().map(|len| vec![0; *len]).collect();
        read_all(heard.iter().zip(&mut found).map(|(logged, into)| (logged, &mut into[..])).collect()).unwrap();
        (0..lengths.len()).for_each(|number| assert!(found[number] == content(number), "{number}"));
        let mut long = vec![0; lengths[4]];
        heard[4].read_checked(0, &mut long).unwrap();
        assert!(long == content(4));
        drop((heard, foreign));
        // The owner has not completed it.
        let mut again = vec![0; lengths[2]];
        keep[2].read_into(&mut again).unwrap();
        assert!(again == content(2));
        assert!(PeerJournal::open(files.clone(), "../etc/passwd").is_err());
        assert!(PeerJournal::open(files, &journal.stem().replace("-3-", "-2-")).is_err());
    }
}
