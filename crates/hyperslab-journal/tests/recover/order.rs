//! Replaying equals applying all writes in order, whatever had reached the container before.

use super::*;
use hyperslab_core::Slab;
use proptest::prelude::*;

/// Start, stride, count, block along one dimension of an extent.
fn span(extent: u64) -> impl Strategy<Value = [u64; 4]> {
    (0..extent, 1u64..4, 1u64..5, 0u64..3).prop_map(move |(start, block, count, gap)| {
        let stride = block + gap;
        let room = extent - start;
        let block = block.min(room);
        let count = count.min((room - block) / stride + 1);
        [start, stride, count, block]
    })
}

fn slab() -> impl Strategy<Value = Slab> {
    (span(SHAPE[0]), span(SHAPE[1])).prop_map(|(a, b)| {
        let part = |n: usize| [a[n], b[n]];
        Slab::strided(&part(0), &part(1), &part(2), &part(3)).unwrap().unwrap()
    })
}

/// The elements, whether the write reaches the container before the crash, and whether that is known to be so.
fn writes() -> impl Strategy<Value = Vec<(Selection, bool, bool)>> {
    let selection = prop::collection::vec(slab(), 1..3).prop_map(|slabs| Selection::union(2, slabs).unwrap());
    prop::collection::vec((selection, any::<bool>(), any::<bool>()), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn the_last_write_wins(writes in writes(), checkpoint in any::<prop::sample::Index>()) {
        let folder = tempfile::tempdir().unwrap();
        let files = directory(folder.path()).unwrap();
        let (oracle_path, path) = (fresh(), fresh());
        let (oracle, real) = (container(&oracle_path), container(&path));
        let journal = create(&files, &path, Id::random().unwrap(), 0, 1);
        let checkpoint = checkpoint.index(writes.len());
        let mut handles = Vec::new();
        for (n, (selection, reaches, is_known)) in writes.iter().enumerate() {
            let bytes: Vec<u8> = (0..selection.len()).map(|i| (n as u64 * 7 + i + 1) as u8).collect();
            write(&oracle, selection, &bytes);
            let logged = log(&journal, selection, &bytes);
            if *reaches {
                write(&real, selection, &bytes);
                if *is_known {
                    logged.done();
                }
            }
            handles.push(logged);
            if n == checkpoint {
                journal.checkpoint().unwrap();
            }
        }
        drop((handles, journal));
        let replayed = recover(&files);
        prop_assert!(replayed.iter().all(|replayed| replayed.damages.is_empty()));
        prop_assert_eq!(content(&path), content(&oracle_path));
        prop_assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn all_ranks_of_a_job_are_replayed_and_jobs_in_the_order_of_their_begin() {
    let folder = tempfile::tempdir().unwrap();
    let files = directory(folder.path()).unwrap();
    let path = fresh();
    container(&path);
    let whole = Selection::all(&SHAPE).unwrap();
    for job in 1..=3u8 {
        let id = Id::random().unwrap();
        for rank in 0..4u64 {
            let journal = create(&files, &path, id, rank as usize, 4);
            if job == 1 {
                log(&journal, &whole, &[9; ELEMENTS]);
            }
            log(
                &journal,
                &Selection::dense(&[rank * 3, 0], &[3, u64::from(job)]).unwrap(),
                &vec![job * 10 + rank as u8; 3 * job as usize],
            );
        }
    }
    assert_eq!(found_jobs(&files).iter().map(|job| job.journals.len()).collect::<Vec<_>>(), [4, 4, 4]);
    let replayed = recover(&files);
    assert_eq!(replayed.iter().map(|replayed| replayed.writes).collect::<Vec<_>>(), [8, 4, 4]);
    let expected: Vec<u8> =
        (0..12).flat_map(|row| (0..10).map(move |column| if column < 3 { 30 + row / 3 } else { 9 })).collect();
    assert_eq!(content(&path), expected);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
