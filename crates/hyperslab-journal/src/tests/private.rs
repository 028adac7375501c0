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

#[test]
fn files_of_another_user_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let files = directory(folder.path());
    let journal = journal(&files, 1 << 20);
    drop(logged(append(&journal, "a", 0, &[1; 20_000])));
    drop(journal);
    let found = find(&*files).unwrap();
    if std::os::unix::fs::chown(folder.path().join(found[0].head()), Some(12_345), None).is_err() {
        return eprintln!("skipped: only root may give files away");
    }
    assert!(found[0].open(&*files).unwrap_err().to_string().contains("12345"));
    // A whole directory of another user.
    std::os::unix::fs::chown(folder.path(), Some(12_345), None).unwrap();
    assert!(Directory::open(folder.path()).unwrap_err().to_string().contains("12345"));
}

#[test]
fn segments_that_are_links_or_have_two_names_are_refused() {
    for (kind, hard) in [("meta", false), ("meta", true), ("data", false), ("data", true)] {
        let folder = tempfile::tempdir().unwrap();
        let files = directory(folder.path());
        let journal = journal(&files, 1 << 20);
        drop(logged(append(&journal, "a", 0, &[1; 20_000])));
        drop(journal);
        let found = find(&*files).unwrap();
        let name = files.list().unwrap().into_iter().find(|name| name.ends_with(kind)).unwrap();
        let (path, other) = (folder.path().join(&name), folder.path().join("other"));
        match hard {
            true => fs::hard_link(&path, &other).unwrap(),
            false => {
                fs::rename(&path, &other).unwrap();
                symlink(&other, &path).unwrap();
            }
        }
        let (head, _) = found[0].open(&*files).unwrap();
        let header = found[0].header(&*files, &*head).unwrap();
        let error = found[0].reader(&files, &header).next_write(0).unwrap_err();
        assert!(error.to_string().contains(if hard { "one name" } else { "link" }), "{kind}: {error}");
    }
}

/// The files of a directory that is removed are gone with it; nothing panics, and what was acknowledged can be read.
#[test]
fn a_directory_that_disappears_is_an_error() {
    for sync in [SyncMode::None, SyncMode::OnFlush, SyncMode::EveryWrite] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::create_dir(&path).unwrap();
        let files = directory(&path);
        let limits = Limits { sync, ..Limits::new(1 << 20) };
        let journal = Journal::create(files, header(), limits).unwrap();
        let mut kept = vec![logged(append(&journal, "a", 0, &[7; 20_000]))];
        fs::remove_dir_all(&path).unwrap();
        // The next segment cannot be created.
        let error = (0..100).find_map(|_| {
            let selection = Selection::dense(&[0], &[20_000]).unwrap();
            match journal.append("a", &Datatype::Opaque(1), &selection, &[&[7; 20_000]]) {
                Ok(appended) => {
                    kept.push(logged(appended));
                    None
                }
                Err(error) => Some(error),
            }
        });
        assert_eq!(error.unwrap().kind(), ErrorKind::NotFound);
        for logged in &kept {
            let mut back = vec![0; 20_000];
            logged.read_into(&mut back).unwrap();
            assert!(back.iter().all(|byte| *byte == 7));
            logged.done();
        }
        assert!(journal.close_and_remove().unwrap());
    }
}

/// A child has a copy of everything, and must not touch the parent's files.
#[test]
#[allow(unsafe_code)]
fn a_child_that_was_forked_is_refused() {
    use std::os::unix::process::CommandExt;
    let folder = tempfile::tempdir().unwrap();
    let files = directory(folder.path());
    for sync in [SyncMode::None, SyncMode::Every(std::time::Duration::from_secs(3600)), SyncMode::OnFlush] {
        let journal = Journal::create(files.clone(), header(), Limits { sync, ..Limits::new(1 << 20) }).unwrap();
        let kept = logged(append(&journal, "a", 0, &[1; 20_000]));
        let names = files.list().unwrap();
        let in_child = journal.clone();
        let mut child = std::process::Command::new("true");
        // SAFETY: the closure runs in the child before `true` does; it takes locks of this journal only, which nobody holds.
        unsafe {
            child.pre_exec(move || {
                let gathers = sync != SyncMode::OnFlush;
                let refused = (!gathers || in_child.write_out().is_err())
                    && in_child.checkpoint().is_err()
                    && !in_child.close_and_remove().unwrap_or(true);
                if refused { Ok(()) } else { Err(std::io::Error::other("the child was not refused")) }
            });
        }
        assert!(child.status().unwrap().success());
        assert_eq!(files.list().unwrap(), names);
        assert_eq!(kept.is_written_out(), sync == SyncMode::OnFlush);
        kept.done();
        drop(child);
        assert!(journal.close_and_remove().unwrap());
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
