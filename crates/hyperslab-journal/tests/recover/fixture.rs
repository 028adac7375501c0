//! The format on disk stays what it is: files that version 1 wrote are read, and the same writes give the same bytes.

use super::*;
use hyperslab_journal::Process;
use hyperslab_journal::recover::JournalStatus;
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, UNIX_EPOCH};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/journal-1")
}

/// Writes the journal of the fixture. The handles keep it.
fn write_sample(files: &Arc<dyn JournalStorage>) {
    let process = Process { pid: 4711, started: 123_456, boot: [3; 16], uid: 1000, host: "node17".into() };
    let created = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let (stack, container) = ("slow(1GB/s,1us)/posix".into(), "/data/run.posix".into());
    let header = Header {
        journal: Id([1; 16]),
        job: Id([2; 16]),
        rank: 1,
        ranks: 4,
        stack,
        container,
        process,
        created,
        identity: None,
    };
    let journal = Journal::create(files.clone(), header, Limits { segment: 17_000, ..Limits::new(1 << 20) }).unwrap();
    let particle =
        Datatype::packed_compound([("id", ">i8".parse().unwrap()), ("mass", "<f4".parse().unwrap())]).unwrap();
    let logged = |append: Append| match append {
        Append::Logged(logged) => logged,
        other => panic!("{other:?}"),
    };
    let strided = Selection::strided(&[1, 0], &[4, 3], &[2, 3], &[2, 1]).unwrap();
    let bytes: Vec<u8> = (0..144).collect();
    let first = logged(journal.append("particles", &particle, &strided, &[&bytes]).unwrap());
    let large: Vec<u8> = (0..17_000u32).map(|n| (n / 7) as u8).collect();
    let line = Selection::dense(&[5], &[17_000]).unwrap();
    logged(journal.append("group/line", &Datatype::Opaque(1), &line, &[&large]).unwrap());
    first.done();
    journal.checkpoint().unwrap();
    let corners = [[0u64, 0], [9, 9]].map(|at| Selection::dense(&at, &[1, 1]).unwrap());
    let corners = corners[0].union_with(&corners[1]).unwrap();
    logged(journal.append("particles", &particle, &corners, &[&bytes[..24]]).unwrap());
}

fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn the_same_writes_give_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    write_sample(&directory(folder.path()).unwrap());
    if std::env::var_os("HYPERSLAB_WRITE_FIXTURES").is_some() {
        fs::create_dir_all(fixture()).unwrap();
        contents(folder.path()).iter().for_each(|(name, bytes)| fs::write(fixture().join(name), bytes).unwrap());
    }
    assert!(contents(folder.path()) == contents(&fixture()), "the format changed: give it a new version");
}

#[test]
fn a_journal_of_version_1_is_read() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in contents(&fixture()) {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    }
    let files = directory(folder.path()).unwrap();
    assert!(matches!(survey(&files, false).unwrap()[0].state, JournalStatus::Elsewhere));
    let left = survey(&files, true).unwrap();
    assert!(matches!(left[0].state, JournalStatus::Whole(None)), "{left:?}");
    assert_eq!((left[0].writes, left[0].bytes), (2, 17_024));
    let header = left[0].header.clone().unwrap();
    assert_eq!((header.rank, header.ranks, header.stack.as_str()), (1, 4, "slow(1GB/s,1us)/posix"));
    assert_eq!(header.process.host, "node17");
}

/// Damaged copies of the fixture: what is done to which file, and what recovery says.
type Damaged = (&'static str, &'static str, fn(&mut Vec<u8>), fn(&JournalStatus) -> bool, u64);

const DAMAGED: [Damaged; 5] = [
    // The last record is cut off: nobody was told that it is safe.
    (
        "torn",
        "00000002.meta",
        |bytes| bytes.truncate(bytes.len() - 30),
        |state| matches!(state, JournalStatus::Whole(Some(_))),
        1,
    ),
    // Its end was never written, as file systems leave it after a loss of power.
    (
        "zeroed",
        "00000002.meta",
        |bytes| {
            let from = bytes.len() - 40;
            bytes[from..].fill(0);
        },
        |state| matches!(state, JournalStatus::Whole(Some(_)) | JournalStatus::Damaged(_)),
        1,
    ),
    // Data that were acknowledged are not what they were: nothing from there on is taken.
    ("flipped", "00000001.data", |bytes| bytes[9000] ^= 4, |state| matches!(state, JournalStatus::Damaged(_)), 0),
    // A record in front of others.
    ("record", "00000001.meta", |bytes| bytes[70] ^= 1, |state| matches!(state, JournalStatus::Damaged(_)), 0),
    // Of a version that this one does not know.
    (
        "foreign",
        ".journal",
        |bytes| bytes[8] = 99,
        |state| matches!(state, JournalStatus::Refused(error) if error.to_string().contains("99")),
        0,
    ),
];

#[test]
fn damaged_journals_are_what_they_are() {
    for (kind, file, damage, is_right, writes) in DAMAGED {
        let stored = fixture().with_file_name(format!("journal-1-{kind}"));
        if std::env::var_os("HYPERSLAB_WRITE_FIXTURES").is_some() {
            fs::create_dir_all(&stored).unwrap();
            for (name, mut bytes) in contents(&fixture()) {
                if name.ends_with(file) {
                    damage(&mut bytes);
                }
                fs::write(stored.join(name), bytes).unwrap();
            }
        }
        assert!(contents(&stored) != contents(&fixture()));
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in contents(&stored) {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
        }
        let left = survey(&directory(folder.path()).unwrap(), true).unwrap();
        assert!(is_right(&left[0].state), "{kind}: {:?}", left[0].state);
        assert_eq!(left[0].writes, writes, "{kind}");
    }
}
