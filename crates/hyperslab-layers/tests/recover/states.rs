//! What recovery leaves alone, refuses or sets aside.

use super::*;
use hyperslab_core::ErrorKind;
use hyperslab_layers::recover::State;
use std::fs;

#[test]
fn journals_in_use_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let files = directory(folder.path()).unwrap();
    let path = fresh();
    container(&path);
    let journal = create(&files, &path, Id::random().unwrap(), 0, 1);
    log(&journal, &Selection::dense(&[0, 0], &[1, 1]).unwrap(), &[1]);
    let found = found_jobs(&files);
    assert!(found[0].is_in_use() && found[0].size() == (0, 0));
    drop(found);
    drop(journal);
    let first = found_jobs(&files);
    assert!(!first[0].is_in_use());
    assert!(found_jobs(&files)[0].is_in_use(), "one recovery at a time");
}

#[test]
fn a_damaged_journal_is_recovered_up_to_the_damage_and_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let files = directory(folder.path()).unwrap();
    let path = fresh();
    let real = container(&path);
    let journal = create(&files, &path, Id::random().unwrap(), 0, 1);
    for row in 0..4 {
        log(&journal, &Selection::dense(&[row, 0], &[1, 10]).unwrap(), &[row as u8 + 1; 10]);
    }
    drop(journal);
    let names = || {
        let mut names: Vec<PathBuf> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        names
    };
    let meta = names().into_iter().find(|name| name.extension().is_some_and(|e| e == "meta")).unwrap();
    let mut bytes = fs::read(&meta).unwrap();
    let last_payload = bytes.len() - 200;
    bytes[last_payload] ^= 4;
    fs::write(&meta, bytes).unwrap();
    let replayed = recover(&files);
    let rows = replayed[0].writes;
    assert!((1..4).contains(&rows) && !replayed[0].damages[0].1.unfinished, "{replayed:?}");
    let expected: Vec<u8> = (0..12).flat_map(|row| [if row < rows { row as u8 + 1 } else { 0 }; 10]).collect();
    assert_eq!(content(&path), expected);
    assert!(names().iter().any(|name| name.extension().is_some_and(|e| e == "damaged")));

    write(&real, &Selection::all(&SHAPE).unwrap(), &[7; ELEMENTS]);
    let before = names();
    assert!(matches!(found_jobs(&files)[0].journals[0].state, State::SetAside));
    assert_eq!(recover(&files)[0].writes, 0);
    assert_eq!((content(&path), names()), (vec![7; ELEMENTS], before));
}

#[test]
fn a_container_that_changed_its_shape_or_is_gone_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let files = directory(folder.path()).unwrap();
    let path = fresh();
    container(&path);
    let journal = create(&files, &path, Id::random().unwrap(), 0, 1);
    log(&journal, &Selection::dense(&[0, 0], &[1, 1]).unwrap(), &[1]);
    log(&journal, &Selection::dense(&[11, 0], &[1, 1]).unwrap(), &[1]);
    drop(journal);
    let memory: Arc<dyn Format> = Arc::new(Memory);
    for (dtype, shape, kind) in [
        (Some(Datatype::Opaque(1)), [11, 10], ErrorKind::Mismatch),
        (Some(Datatype::I32), SHAPE, ErrorKind::Mismatch),
        (None, SHAPE, ErrorKind::NotFound),
    ] {
        memory.remove(&path).unwrap();
        let container = memory.open(&path, OpenMode::Create, &Solo::shared()).unwrap();
        let array = dtype.map(|dtype| container.create("a", &ArraySpec::new(dtype, &shape)).unwrap());
        assert_eq!(recover_with(&files, &memory).unwrap_err().kind(), kind);
        if let Some(array) = array {
            let spec = array.spec().unwrap();
            let all = Selection::all(&spec.shape).unwrap();
            let mut bytes = vec![1; (all.len() * spec.dtype.size()) as usize];
            array.read(&all, MemoryViewMut::packed(&mut bytes), TransferMode::Independent).unwrap();
            assert!(bytes.iter().all(|byte| *byte == 0), "refused before anything is written");
        }
    }
    memory.remove(&path).unwrap();
    let error = recover_with(&files, &memory).unwrap_err();
    assert!(error.kind() == ErrorKind::NotFound && error.what_to_try().unwrap().contains("--to"), "{error}");

    let (other, build) = (fresh(), |_: &_| Ok(memory.clone()));
    let recovery = Recovery { files: &files, format: &build, alone: Solo::shared(), mend: &|_| Ok(()) };
    for _ in 0..2 {
        let job = &found_jobs(&files)[0];
        assert_eq!(recovery.replay_to(job, &other).unwrap().writes, 2);
    }
    let spec = memory.open(&other, OpenMode::Read, &Solo::shared()).unwrap().array("a").unwrap().spec().unwrap();
    assert_eq!(spec.shape.as_slice(), [12, 1]);
    assert_eq!(found_jobs(&files)[0].size(), (2, 2), "the journals are kept");
}

#[test]
fn files_without_a_head_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let files = directory(folder.path()).unwrap();
    let path = fresh();
    container(&path);
    log(&create(&files, &path, Id::random().unwrap(), 0, 1), &Selection::dense(&[0, 0], &[1, 1]).unwrap(), &[1]);
    let heads = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    heads
        .filter(|name| name.extension().is_some_and(|e| e == "journal"))
        .for_each(|head| fs::remove_file(head).unwrap());
    let left = survey(&files, false).unwrap();
    assert!(matches!(&left[0].state, State::Refused(error) if error.kind() == ErrorKind::NotFound));
    recover(&files);
    assert_eq!(content(&path), vec![0; ELEMENTS]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
