//! Loss of power at any moment of random work: what was durable is there, the rest is a beginning, never anything else.

use super::device::{Device, Dice};
use super::*;
use std::collections::VecDeque;
use std::time::Duration;

const CELLS: usize = 24;
const HOUR: Duration = Duration::from_secs(3600);

/// What a write puts where.
struct Step {
    start: usize,
    value: u8,
    len: usize,
}

impl Step {
    fn apply(&self, cells: &mut [u8; CELLS]) {
        cells[self.start..self.start + self.len].fill(self.value);
    }

    /// Elements are large in some arrays, so that payloads lie in the data log.
    fn append(&self, journal: &Journal, element: u32) -> RecordHandle {
        let selection = Selection::dense(&[self.start as u64], &[self.len as u64]).unwrap();
        let bytes = vec![self.value; self.len * element as usize];
        logged(journal.append("a", &Datatype::Opaque(element), &selection, &[&bytes]).unwrap())
    }
}

/// A head with slots, written before the machine was started anew.
fn header_of_before() -> Header {
    let mut header = header();
    header.identity = Some(hyperslab_rollback::FileIdentity { device: 1, inode: 2, generation: Some([3; 16]) });
    header.process.boot = [4; 16];
    header
}

/// The container after the writes that a crashed device still has.
fn recovered(device: &Device, container: &[u8; CELLS]) -> [u8; CELLS] {
    recovered_with(device, container).0
}

/// The same, and the damages.
fn recovered_with(device: &Device, container: &[u8; CELLS]) -> ([u8; CELLS], Vec<Damage>) {
    let files: Arc<dyn JournalStorage> = Arc::new(device.clone());
    let (mut cells, mut damages) = (*container, Vec::new());
    for mut found in find(&*files).unwrap().into_iter().filter(|found| found.stage == Stage::Written) {
        let (head, _) = found.open(&*files).unwrap();
        // Of a head that was not durable nothing was.
        let Ok(header) = found.header(&*files, &*head) else { continue };
        found.slots(&header, &*head, false);
        let mut first = found.reader(&files, &header);
        while first.next_write(u64::MAX).unwrap().is_some() {}
        let done_before = first.done_before();
        let mut reader = found.reader(&files, &header);
        while let Some(write) = reader.next_write(done_before).unwrap() {
            if write.sequence < done_before {
                continue;
            }
            let mut bytes = vec![0; write.len() as usize];
            write.read_into(&mut bytes).unwrap();
            let (low, high) = write.selection.bounds().unwrap();
            assert!(bytes.iter().all(|byte| *byte == bytes[0]));
            cells[low[0] as usize..high[0] as usize].fill(bytes[0]);
        }
        damages.extend(reader.damage().cloned());
    }
    (cells, damages)
}

/// Random work on a device. Returns how many crashes were looked at.
fn work(seed: u64) -> usize {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let device = Device::default();
    let files: Arc<dyn JournalStorage> = Arc::new(device.clone());
    let element = [1, 40, 600, 9000][dice.below(4) as usize];
    let modes = [SyncMode::OnFlush, SyncMode::None, SyncMode::Every(HOUR), SyncMode::EveryWrite];
    let sync = modes[seed as usize % 4];
    // Some with room reserved, and with records that fill a batch.
    let bytes = if dice.below(4) == 0 { 1 << 30 } else { 8 << 20 };
    let limits = Limits {
        segment: 1 << (9 + dice.below(18)),
        durable: true,
        sync,
        direct: dice.below(4) == 0,
        ..Limits::new(bytes)
    };
    let journal = Journal::create(files, header_of_before(), limits).unwrap();
    let mut container = [0; CELLS];
    // The cells after every number of writes.
    let mut history = vec![container];
    let (mut durable, mut handed, mut crashes) = (0, 0, 0);
    let mut waiting: VecDeque<(Step, RecordHandle, usize)> = VecDeque::new();
    for _ in 0..40 {
        match dice.below(10) {
            0..5 => {
                let start = dice.below(CELLS as u64) as usize;
                let len = 1 + dice.below((CELLS - start) as u64) as usize;
                let step = Step { start, value: history.len() as u8, len };
                let logged = step.append(&journal, element);
                let mut cells = history[history.len() - 1];
                step.apply(&mut cells);
                history.push(cells);
                if logged.is_durable() {
                    durable = history.len() - 1;
                }
                assert!(logged.is_durable() == (sync == SyncMode::EveryWrite));
                if logged.is_written_out() {
                    handed = history.len() - 1;
                }
                waiting.push_back((step, logged, history.len() - 1));
            }
            // What the thread does when it is time, and what the user asks for.
            5..7 => {
                match sync {
                    SyncMode::Every(_) if dice.below(2) == 0 => journal.segment_list.sync_up_to(u64::MAX).unwrap(),
                    _ => journal.sync().unwrap(),
                }
                durable = history.len() - 1;
                handed = durable;
                assert!(waiting.iter().all(|(_, logged, _)| logged.is_durable()));
            }
            // Only what is durable in the journal goes to the container, in order.
            7..9 => {
                for _ in 0..dice.below(4) {
                    if waiting.front().is_some_and(|(_, _, number)| *number <= durable) {
                        let (step, logged, _) = waiting.pop_front().unwrap();
                        step.apply(&mut container);
                        logged.done();
                    }
                }
            }
            _ => {
                match dice.below(2) {
                    0 => journal.checkpoint().unwrap(),
                    _ => journal.write_out().unwrap(),
                }
                handed = history.len() - 1;
                if sync == SyncMode::EveryWrite {
                    durable = handed;
                }
            }
        }
        crashes += 1;
        let found = recovered(&device.now(), &container);
        assert!(history[handed..].contains(&found), "seed {seed}, {handed} of {} handed over", history.len() - 1);
        for _ in 0..3 {
            crashes += 1;
            let (found, damages) = recovered_with(&device.crash(&mut dice), &container);
            let fine = history[durable..].contains(&found);
            // Where each write was durable before it was acknowledged, nothing that was is said to be lost.
            let is_told = sync == SyncMode::EveryWrite && damages.iter().any(|damage| !damage.unfinished);
            assert!(!is_told, "seed {seed}: {damages:?}");
            assert!(
                fine,
                "seed {seed}, {durable} of {} durable:\n{found:?}\n{:?}",
                history.len() - 1,
                history[durable]
            );
        }
    }
    crashes
}

#[test]
fn what_was_durable_survives_the_loss_of_power() {
    let crashes: usize = (0..30).map(work).sum();
    assert!(crashes >= 4_000, "{crashes}");
}

/// A journal that is not durable by itself: after a checkpoint and a sync, nothing that was removed comes back.
#[test]
fn what_a_synced_checkpoint_covers_is_never_replayed() {
    for seed in 1..300u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let device = Device::default();
        let files: Arc<dyn JournalStorage> = Arc::new(device.clone());
        let journal = Journal::create(files, header(), Limits { segment: 700, ..Limits::new(1 << 20) }).unwrap();
        let mut container = [0; CELLS];
        let mut all = Vec::new();
        for value in 1..=(2 + dice.below(12) as u8) {
            let step = Step { start: dice.below(12) as usize, value, len: 12 };
            all.push(step.append(&journal, 1));
            step.apply(&mut container);
        }
        journal.sync().unwrap();
        all.iter().for_each(RecordHandle::done);
        journal.checkpoint().unwrap();
        journal.sync().unwrap();
        for _ in 0..5 {
            assert_eq!(recovered(&device.crash(&mut dice), &container), container, "seed {seed}");
        }
    }
}

/// The long form: `cargo test -p hyperslab-journal --lib power -- --ignored`.
#[test]
#[ignore = "takes minutes: cargo xtask test --long"]
fn what_was_durable_survives_the_loss_of_power_at_many_points() {
    let crashes: usize = (1000..6000).map(work).sum();
    assert!(crashes >= 500_000);
}
