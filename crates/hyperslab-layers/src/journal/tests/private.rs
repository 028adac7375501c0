//! Files of others, links, directories open to all, and locks.

use super::*;
use hyperslab_core::ErrorKind;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

#[test]
fn directories_that_others_may_change_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let set = |mode| fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
    for (mode, fine) in [(0o700, true), (0o755, true), (0o777, false), (0o1777, true), (0o702, false)] {
        set(mode);
        let opened = Directory::open(folder.path());
        assert_eq!(opened.is_ok(), fine, "{mode:o} {opened:?}");
        if let Err(error) = opened {
            assert!(error.what_to_try().is_some() && error.kind() == ErrorKind::InvalidInput);
        }
    }
    set(0o700);
    let missing = Directory::open(&folder.path().join("missing")).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    fs::write(folder.path().join("file"), "").unwrap();
    assert!(Directory::open(&folder.path().join("file")).is_err());
}

#[test]
fn files_are_private_and_never_reached_through_links() {
    let folder = tempfile::tempdir().unwrap();
    let files = directory(folder.path());
    let journal = journal(&files, 1 << 20);
    logged(append(&journal, "a", 0, &[1; 20_000]));
    for entry in fs::read_dir(folder.path()).unwrap() {
        assert_eq!(entry.unwrap().metadata().unwrap().permissions().mode() & 0o7777, 0o600);
    }
    drop(journal);
    let found = find(&*files).unwrap();
    let head = folder.path().join(found[0].head());
    let open = || find(&*files).unwrap()[0].open(&*files).map(drop);
    assert!(open().is_ok());
    fs::set_permissions(&head, Permissions::from_mode(0o640)).unwrap();
    assert!(open().unwrap_err().to_string().contains("640"));
    fs::set_permissions(&head, Permissions::from_mode(0o600)).unwrap();
    fs::hard_link(&head, folder.path().join("second")).unwrap();
    assert!(open().unwrap_err().to_string().contains("one name"));
    fs::rename(folder.path().join("second"), folder.path().join("elsewhere")).unwrap();
    fs::remove_file(&head).unwrap();
    symlink(folder.path().join("elsewhere"), &head).unwrap();
    assert!(open().unwrap_err().to_string().contains("link"));
    let victim = folder.path().join("victim");
    symlink(&victim, folder.path().join("new")).unwrap();
    assert!(files.create("new").is_err());
    assert!(!victim.exists());
}

#[test]
fn a_journal_in_use_is_locked() {
    let folder = tempfile::tempdir().unwrap();
    let files = directory(folder.path());
    let journal = journal(&files, 1 << 20);
    let handle = logged(append(&journal, "a", 0, &[1]));
    let lock = || find(&*files).unwrap()[0].open(&*files).unwrap().1;
    assert_eq!(lock(), Lock::Busy);
    drop(journal);
    assert_eq!(lock(), Lock::Busy, "a write of it is still in use");
    drop(handle);
    assert_eq!(lock(), Lock::Taken);
    assert_eq!(lock(), Lock::Taken, "closing gives it back");
}

#[test]
fn a_process_is_known_by_its_start() {
    let this = Process::this().unwrap();
    assert!(this.runs() && this.was_here() && this.started > 0);
    assert!(!Process { started: this.started + 1, ..this.clone() }.runs());
    assert!(!Process { boot: [7; 16], ..this.clone() }.runs());
    assert!(!Process { pid: u32::MAX - 1, ..this.clone() }.runs());
    assert!(!Process { host: "elsewhere".into(), ..this }.was_here());
}

#[test]
fn other_files_are_not_looked_at() {
    let stored = Stored::default();
    for name in ["x", "hyperslab-", "hyperslab-1-2-3.journal", "hyperslab-.meta", ".journal", "a.b.c"] {
        stored.put(name, vec![1]);
    }
    assert_eq!(find(&stored).unwrap(), []);
    let stem = format!("hyperslab-{}-0-{}", Id([1; 16]), Id([2; 16]));
    for ending in [".00000001.meta", ".1.meta", ".00000001.other", ".0000000x.data", ".99999999999999999999999.meta"] {
        stored.put(&format!("{stem}{ending}"), vec![1]);
    }
    let found = find(&stored).unwrap();
    assert_eq!((found.len(), found[0].stage, found[0].has_segments()), (1, Stage::Headless, true));
}
