//! The file that all ranks of a node write: heads of blocks, each with the right checksum, and some bytes behind it.
#![no_main]

use hyperslab_journal::recover::survey;
use hyperslab_journal::{JournalStorage, NodeDirectory, find, fuzz_api};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::sync::{Arc, LazyLock};
use tempfile::TempDir;

const BLOCK: u64 = 1 << 20;
const HEAD: usize = 256;
/// Bytes of each block that come from the fuzzer.
const PART: usize = HEAD + 256;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let id = "01".repeat(16);
    let (node, head) = (format!("hyperslab-{id}-{id}.node"), format!("hyperslab-{id}-1-{id}.journal"));
    let file = File::create(FOLDER.path().join(&node)).expect("a file");
    file.set_permissions(Permissions::from_mode(0o600)).expect("permissions");
    for (number, part) in input.chunks(PART).take(6).enumerate() {
        let mut part = part.to_vec();
        if let Some(head) = part.first_chunk_mut::<HEAD>() {
            let crc = crc32c::crc32c_append(crc32c::crc32c(&head[..24]), &head[28..]).to_le_bytes();
            head[24..28].copy_from_slice(&crc);
            if let Some(again) = fuzz_api::node_block(head) {
                let again: [u8; HEAD] = again.try_into().expect("a head");
                assert_eq!(fuzz_api::node_block(&again).as_deref(), Some(&again[..]));
            }
        }
        file.write_all_at(&part, number as u64 * BLOCK).expect("a write");
    }
    // Without a head, a survey waits a while for one.
    if !fs::exists(FOLDER.path().join(&head)).expect("a look") {
        let file = File::create(FOLDER.path().join(&head)).expect("a file");
        file.set_permissions(Permissions::from_mode(0o600)).expect("permissions");
    }
    let files: Arc<dyn JournalStorage> = Arc::new(NodeDirectory::open(FOLDER.path()).expect("a directory"));
    let found = find(&*files).expect("a list");
    // Journals of other names have no head.
    if found.iter().all(|found| found.head() == head) {
        let _ = survey(&files, true);
    }
    for name in files.list().expect("a list") {
        let Ok(file) = files.open(&name) else { continue };
        let mut bytes = [0; 2 * HEAD];
        for offset in [0, BLOCK - HEAD as u64 - 7, u64::MAX - 3, file.len().unwrap_or(0).saturating_sub(5)] {
            let _ = file.read_at(&mut bytes, offset);
        }
    }
});
