//! The files of a journal, each a kind (head, records, data), the number of its segment, a length and its bytes: surveyed,
//! read and refused without a panic and in little memory. The first byte says which checksums are put right.
#![no_main]

use hyperslab_fuzz::checksums;
use hyperslab_fuzz::memory_files::{Content, MemoryFiles};
use hyperslab_journal::recover::survey;
use hyperslab_journal::{Id, JournalStorage, find};
use std::sync::Arc;

/// The journal of the kept fixtures.
const JOB: Id = Id([2; 16]);
const JOURNAL: Id = Id([1; 16]);
const RANK: u32 = 1;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((how, mut rest)) = input.split_first() else { return };
    let stem = format!("hyperslab-{JOB}-{RANK}-{JOURNAL}");
    let mut files = MemoryFiles::default();
    while let Some((&[kind, number, low, high], more)) = rest.split_first_chunk::<4>() {
        let len = usize::from(u16::from_le_bytes([low, high])).min(more.len());
        let (bytes, more) = more.split_at(len);
        let (mut bytes, number) = (bytes.to_vec(), u64::from(number));
        rest = more;
        let name = match kind % 3 {
            0 => {
                if how & 1 != 0 {
                    checksums::header(&mut bytes);
                }
                format!("{stem}.journal")
            }
            1 => {
                if how & 2 != 0 {
                    checksums::segment(&mut bytes, checksums::seed(&JOURNAL, number));
                }
                format!("{stem}.{number:08}.meta")
            }
            _ => format!("{stem}.{number:08}.data"),
        };
        files.0.insert(name, Arc::new(Content(bytes)));
    }
    // Without a head, a survey waits a while for one.
    files.0.entry(format!("{stem}.journal")).or_insert_with(|| Arc::new(Content(Vec::new())));
    let files: Arc<dyn JournalStorage> = Arc::new(files);
    let _ = survey(&files, true);
    for found in find(&*files).expect("a list") {
        let Ok((head, _)) = found.open(&*files) else { continue };
        let Ok(header) = found.header(&*files, &*head) else { continue };
        let mut reader = found.reader(&files, &header);
        while let Ok(Some(write)) = reader.next_write(0) {
            assert!(write.len() <= 1 << 16, "as long as a file at most");
            write.read_into(&mut vec![0; write.len() as usize]).expect("what was checked can be read");
        }
    }
});
