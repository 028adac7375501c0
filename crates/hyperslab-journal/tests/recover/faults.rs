//! Recovery that fails at any call of the format below, and is done again.

use super::*;
use hyperslab_testkit::{Fault, Faulty};

#[test]
fn a_recovery_that_failed_anywhere_can_be_repeated() {
    for fault in [Fault::Io, Fault::NoSpace] {
        for call in 1.. {
            let folder = tempfile::tempdir().unwrap();
            let files = directory(folder.path()).unwrap();
            let path = fresh();
            container(&path);
            let id = Id::random().unwrap();
            for rank in 0..2u64 {
                let journal = create(&files, &path, id, rank as usize, 2);
                for n in 0..3u64 {
                    let selection = Selection::dense(&[rank * 6 + n, 0], &[2, 10]).unwrap();
                    log(&journal, &selection, &[(rank * 10 + n) as u8 + 1; 20]);
                }
            }
            let faulty = Faulty::new(Arc::new(Memory));
            faulty.fail_at(call, fault);
            let format: Arc<dyn Format> = Arc::new(faulty.clone());
            let first = recover_with(&files, &format);
            let met = faulty.calls() >= call;
            assert_eq!(first.is_err(), met, "call {call}: {first:?}");
            if !met {
                assert!(call > 8, "{call}");
                break;
            }
            assert_eq!(found_jobs(&files)[0].size(), (6, 120), "nothing is removed");
            recover(&files);
            let rows = [1, 2, 3, 3, 0, 0, 11, 12, 13, 13, 0, 0u8];
            assert_eq!(content(&path), rows.iter().flat_map(|row| [*row; 10]).collect::<Vec<_>>());
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }
}

/// The process ends between the durable flush and the removal, or during the removal.
#[test]
fn what_was_recovered_is_not_replayed_again() {
    let folder = tempfile::tempdir().unwrap();
    let files = directory(folder.path()).unwrap();
    let path = fresh();
    let real = container(&path);
    let all = Selection::all(&SHAPE).unwrap();
    log(&create(&files, &path, Id::random().unwrap(), 0, 1), &all, &[1; ELEMENTS]);
    let names = || std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let head = names().into_iter().find(|name| name.extension().is_some_and(|e| e == "journal")).unwrap();
    std::fs::rename(&head, head.with_extension("recovered")).unwrap();
    write(&real, &all, &[2; ELEMENTS]);
    assert_eq!(recover(&files)[0].writes, 0);
    assert_eq!((content(&path), names().len()), (vec![2; ELEMENTS], 0));
}
