//! Journals that end early or hold other bits than were written.

use super::super::checksum::CHECKSUM_STEP;
use super::*;
use proptest::prelude::*;

/// A small journal of two segments, with payloads of both kinds, and its writes.
fn sample() -> (Stored, Vec<Seen>) {
    let stored = Stored::default();
    let files: Arc<dyn JournalStorage> = Arc::new(stored.clone());
    let limits = Limits { segment: 17_000, ..Limits::new(1 << 20) };
    let journal = Journal::create(files.clone(), header(), limits).unwrap();
    let mut expected = Vec::new();
    for n in 0..6u64 {
        let size = if n == 2 { 17_000 } else { 20 + n as usize };
        let bytes: Vec<u8> = (0..size).map(|i| (i as u64 * 3 + n) as u8).collect();
        logged(append(&journal, if n % 2 == 0 { "even" } else { "odd" }, n, &bytes));
        expected.push((if n % 2 == 0 { "even" } else { "odd" }.into(), n, bytes));
    }
    drop(journal);
    let copy = stored.copy();
    assert_eq!(left(&(Arc::new(copy.clone()) as Arc<dyn JournalStorage>)), (expected.clone(), None));
    assert_eq!(copy.names().iter().filter(|name| name.ends_with("meta")).count(), 2);
    (copy, expected)
}

/// Reads a changed journal; what is found must be a beginning of what was written.
fn check(changed: Stored, expected: &[Seen]) -> (usize, Option<Damage>) {
    let (seen, damage) = left(&(Arc::new(changed) as Arc<dyn JournalStorage>));
    assert_eq!(seen, expected[..seen.len()]);
    (seen.len(), damage)
}

fn logs(stored: &Stored) -> Vec<String> {
    stored.names().into_iter().filter(|name| !name.ends_with(".journal")).collect()
}

#[test]
fn an_end_cut_off_anywhere_leaves_a_beginning() {
    let (stored, expected) = sample();
    let names = logs(&stored);
    let last = names.last().unwrap();
    assert!(last.ends_with("00000002.meta"));
    for name in &names {
        let whole = stored.get(name);
        for len in (0..whole.len()).filter(|len| name.ends_with("meta") || len % 97 == 0) {
            let changed = stored.copy();
            changed.put(name, whole[..len].to_vec());
            let (seen, damage) = check(changed, &expected);
            match (damage, name == last) {
                (Some(damage), is_last) => assert_eq!(damage.unfinished, is_last, "{name} {len} {damage:?}"),
                // Cut between records.
                (None, true) => assert!(seen < expected.len()),
                (None, false) => panic!("{name} {len}: a record is missing in the middle"),
            }
        }
    }
}

#[test]
fn zeros_behind_the_records_are_the_end() {
    let (stored, expected) = sample();
    let name = logs(&stored).pop().unwrap();
    for zeros in [1usize, 15, 16, 100, 5000] {
        let changed = stored.copy();
        let mut bytes = stored.get(&name);
        bytes.extend(vec![0; zeros]);
        changed.put(&name, bytes);
        let (seen, damage) = check(changed, &expected);
        assert!(seen == expected.len() && damage.is_none(), "{zeros}");
    }
}

/// A journal that grows by zeros: a write that was not finished leaves zeros behind, a damaged one does not.
#[test]
fn an_unfinished_write_is_told_from_a_damaged_one() {
    for size in [0, 30, 5000, 20_000] {
        let stored = Stored::default();
        let files: Arc<dyn JournalStorage> = Arc::new(stored.clone());
        let journal = journal(&files, 64 << 20);
        let expected = vec![("a".into(), 7, vec![5; 100])];
        logged(append(&journal, "a", 7, &[5; 100]));
        let name = logs(&stored).pop().unwrap();
        let before = stored.get(&name);
        assert_eq!(before.len() % 4096, 0, "zeros ahead");
        logged(append(&journal, "a", 8, &vec![0; size]));
        let after = stored.copy();
        drop(journal);
        let (name, whole) = (logs(&after).pop().unwrap(), after.get(&logs(&after).pop().unwrap()));
        let begin = before.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        let end = whole.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        assert!(
            end > begin
                && check(
                    after.copy(),
                    &[expected.clone(), vec![("a".into(), if size == 0 { 0 } else { 8 }, vec![0; size])]].concat()
                )
                .1
                .is_none()
        );
        for at in begin..end {
            let mut torn = whole.clone();
            torn[at..].fill(0);
            let changed = after.copy();
            changed.put(&name, torn);
            let (seen, damage) = check(changed, &expected);
            // Where a checksum or the mark behind the data is there in part, it is taken for damaged: the safe side.
            let record = if size > 16 << 10 { end } else { end - 4 - size };
            let in_part = [record, end].iter().any(|last| (last - 3..*last).contains(&at));
            let fine = damage.is_none_or(|damage| damage.unfinished || in_part);
            assert!(seen == 1 && fine, "{size} {at} of {begin}..{end}");
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << (at % 8);
            let changed = after.copy();
            changed.put(&name, flipped);
            let (seen, damage) = check(changed, &expected);
            assert!(seen == 1 && damage.is_some_and(|damage| !damage.unfinished), "{size} {at} of {begin}..{end}");
        }
    }
}

#[test]
fn a_flipped_bit_anywhere_is_never_taken_for_data() {
    let (stored, expected) = sample();
    for name in logs(&stored) {
        let whole = stored.get(&name);
        let step = if name.ends_with("data") { 97 } else { 1 };
        for at in (0..whole.len()).step_by(step) {
            let changed = stored.copy();
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            changed.put(&name, bytes);
            let (seen, damage) = check(changed, &expected);
            let damage = damage.unwrap_or_else(|| panic!("{name} {at}"));
            assert!(seen < expected.len() && !damage.unfinished, "{name} {at} {damage:?}");
        }
    }
}

#[test]
fn a_missing_or_foreign_segment_ends_the_journal() {
    let (stored, expected) = sample();
    let names = logs(&stored);
    let first = names.iter().find(|name| name.ends_with("00000001.meta")).unwrap();
    let second = names.iter().find(|name| name.ends_with("00000002.meta")).unwrap();
    let changed = stored.copy();
    changed.put(second, stored.get(first));
    let (seen, damage) = check(changed, &expected);
    assert!(seen == 3 && damage.unwrap().reason.contains("elsewhere"));
    let changed = stored.copy();
    changed.put(&second.replace("00000002", "00000003"), stored.get(second));
    changed.put(second, Vec::new());
    assert!(!check(changed, &expected).1.unwrap().unfinished);
}

#[test]
fn a_damaged_head_is_refused() {
    let (stored, _) = sample();
    let name = stored.names().into_iter().find(|name| name.ends_with(".journal")).unwrap();
    let whole = stored.get(&name);
    for at in 0..whole.len() {
        for bytes in [whole[..at].to_vec(), {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << (at % 8);
            flipped
        }] {
            stored.put(&name, bytes);
            let found = find(&stored).unwrap();
            let (head, _) = found[0].open(&stored).unwrap();
            assert!(found[0].header(&stored, &*head).is_err());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Anything done to the files gives a beginning of the writes, and no panic.
    #[test]
    fn mutations_never_give_other_data(changes in prop::collection::vec((0usize..3, any::<prop::sample::Index>(), any::<[u8; 9]>(), 0usize..4), 1..4)) {
        let (stored, expected) = sample();
        let names = logs(&stored);
        for (file, at, bytes, how) in changes {
            let name = &names[file % names.len()];
            let mut content = stored.get(name);
            if content.is_empty() {
                continue;
            }
            let at = at.index(content.len());
            let end = (at + bytes.len()).min(content.len());
            match how {
                0 => content[at..end].copy_from_slice(&bytes[..end - at]),
                1 => content.truncate(at),
                2 => drop(content.splice(at..at, bytes)),
                _ => drop(content.drain(at..end)),
            }
            stored.put(name, content);
        }
        check(stored, &expected);
    }
}

#[test]
fn each_step_of_a_long_write_is_checked_by_itself() {
    const LEN: usize = 3 * CHECKSUM_STEP as usize + 1000;
    for sync in [SyncMode::OnFlush, SyncMode::Every(std::time::Duration::from_secs(3600))] {
        let folder = tempfile::tempdir().unwrap();
        let files = directory(folder.path());
        let journal = Journal::create(files, header(), Limits { sync, ..Limits::new(64 << 20) }).unwrap();
        let bytes: Vec<u8> = (0..LEN).map(|at| (at * 7 / 5) as u8).collect();
        let all = Selection::dense(&[0], &[LEN as u64]).unwrap();
        // Parts that end anywhere.
        let parts: Vec<&[u8]> = bytes.chunks(50_001).collect();
        let write = logged(journal.append("a", &Datatype::U8, &all, &parts).unwrap());
        journal.write_out().unwrap();
        let read = |from: u64, to: u64| {
            let mut found = vec![0; (to - from) as usize];
            write.read_checked(from, &mut found).map(|()| found)
        };
        let steps = |from: u64, to: u64| read(from * CHECKSUM_STEP, (to * CHECKSUM_STEP).min(LEN as u64));
        for (from, to) in (0..4).flat_map(|from| (from..=4).map(move |to| (from, to))) {
            let wanted = &bytes[(from * CHECKSUM_STEP) as usize..((to * CHECKSUM_STEP) as usize).min(LEN)];
            assert!(steps(from, to).unwrap() == wanted, "{from} to {to}");
        }
        assert!(
            read(1, CHECKSUM_STEP).is_err()
                && read(0, CHECKSUM_STEP - 1).is_err()
                && read(CHECKSUM_STEP, LEN as u64 + 1).is_err()
        );
        // One bit of the third step.
        let data = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let data = data.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "data")).unwrap();
        let mut stored = std::fs::read(&data).unwrap();
        stored[2 * CHECKSUM_STEP as usize + 17] ^= 1;
        std::fs::write(&data, stored).unwrap();
        for (from, to) in (0..4).flat_map(|from| (from + 1..=4).map(move |to| (from, to))) {
            assert_eq!(steps(from, to).is_ok(), to <= 2 || from > 2, "{from} to {to}");
        }
        assert!(write.verify().is_err());
    }
}
