//! Loss of power: of what was not synced, any part may be missing.
//!
//! The file system is taken for one that journals its metadata, as ext4 and XFS do: names, attributes and times are
//! kept in the order in which they were made, at least until the last sync of anything; contents of a file may be missing,
//! each write for itself and also in part, unless the file was synced after it.

use crate::acks::Progress;
use crate::campaign::{Recorded, record};
use crate::checker::Program;
use crate::disk::Disk;
use crate::report::CaseTally;
use crate::subject::Subject;
use crate::trace::{self, Action, Event};
use crate::workshop::{Preload, Workshop};
use anyhow::{Result, ensure};
use std::path::Path;

/// Images of one program.
const EACH: u64 = 40;
/// Recoveries of one program.
const KILLS: u64 = 8;
/// What devices write at once.
const SECTOR: usize = 512;

/// Random moments of one program, and at each what a device may hold.
pub fn losses(
    workshop: &mut Workshop<'_>,
    subject: Subject,
    program: Program,
    wanted: u64,
    tally: &mut CaseTally,
) -> Result<()> {
    let recorded = record(workshop, subject, program)?;
    let (logs, mut random) = (workshop.logs(), Random(program.seed));
    for number in 0..EACH.min(wanted) {
        let end = random.below(recorded.events.len()) + 1;
        let progress = progress(&recorded, end);
        if progress.acked < 0 {
            continue;
        }
        lossy(&recorded, end, &logs, &mut random)?.place(&workshop.data())?;
        let replay = format!(
            "loss of power {number} of seed {}, length {}, after change {end}, operation {} had returned",
            program.seed, program.length, progress.acked
        );
        tally.count(&workshop.case_after_restart(subject, program, progress, replay)?);
    }
    Ok(())
}

/// Random moments of recoveries: the program was killed, and the machine loses power while `hyperslab recover` runs.
pub fn recoveries(
    workshop: &mut Workshop<'_>,
    subject: Subject,
    program: Program,
    wanted: u64,
    tally: &mut CaseTally,
) -> Result<()> {
    let recorded = record(workshop, subject, program)?;
    let (logs, mut random) = (workshop.logs(), Random(program.seed));
    for _ in 0..KILLS {
        let end = random.below(recorded.events.len()) + 1;
        let progress = progress(&recorded, end);
        if progress.acked < 0 {
            continue;
        }
        let mut killed = Disk::default();
        killed.make_directory(&logs);
        let mut events = recorded.events[..end].to_vec();
        events.iter().filter(|event| event.path != recorded.acks).try_for_each(|event| killed.apply(event))?;
        killed.place(&workshop.data())?;
        let _ = std::fs::remove_file(workshop.trace());
        let refused = workshop.recover(subject, &Preload::Record(None))?.refused;
        ensure!(refused.is_none(), "the recovery that was to lose power: {refused:?}");
        let of_recovery = trace::read(&workshop.trace()).unwrap_or_default();
        if of_recovery.is_empty() {
            continue;
        }
        let changes = of_recovery.len();
        events.extend(of_recovery);
        let whole = Recorded { events, acks: recorded.acks.clone(), said: String::new() };
        for _ in 0..EACH / KILLS {
            let moment = random.below(changes) + 1;
            lossy(&whole, end + moment, &logs, &mut random)?.place(&workshop.data())?;
            let replay = format!(
                "loss of power in a recovery: seed {}, length {}, killed after change {end}, {moment} of {changes} changes later",
                program.seed, program.length
            );
            tally.count(&workshop.case_after_restart(subject, program, progress, replay)?);
            if tally.cases() >= wanted {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// How far the program had come after so many events.
fn progress(recorded: &Recorded, end: usize) -> Progress {
    let mut progress = Progress::default();
    for event in recorded.events[..end].iter().filter(|event| event.path == recorded.acks) {
        if let Action::Write { data, .. } = &event.action {
            progress.see(&String::from_utf8_lossy(data));
        }
    }
    progress
}

/// The disk after so many events and a loss of power.
fn lossy(recorded: &Recorded, end: usize, logs: &Path, random: &mut Random) -> Result<Disk> {
    let events: Vec<&Event> = recorded.events[..end].iter().filter(|event| event.path != recorded.acks).collect();
    let synced = synced(&events, logs)?;
    let last_sync = events.iter().rposition(|event| matches!(event.action, Action::Sync { .. })).unwrap_or(0);
    // Names that were made since the last sync are there up to some moment.
    let names_end = last_sync + random.below(events.len() - last_sync + 1);
    // Sometimes all contents that were not synced are gone, otherwise some.
    let all_gone = random.below(4) == 0;
    let mut disk = Disk::lossy();
    disk.make_directory(logs);
    for (number, (event, synced)) in events.iter().zip(synced).enumerate() {
        match &event.action {
            Action::Write { .. } | Action::Truncate { .. } | Action::Allocate { .. } if synced => disk.apply(event)?,
            Action::Write { .. } | Action::Truncate { .. } | Action::Allocate { .. } => match random.below(8) {
                _ if all_gone => {}
                0..=3 => disk.apply(event)?,
                4 => disk.apply(&torn(event, random))?,
                _ => {}
            },
            _ if number <= names_end => disk.apply(event)?,
            _ => {}
        }
    }
    Ok(disk)
}

/// Of each event, whether its file was synced after it.
fn synced(events: &[&Event], logs: &Path) -> Result<Vec<bool>> {
    let mut disk = Disk::default();
    disk.make_directory(logs);
    let mut nodes = Vec::new();
    for event in events {
        disk.apply(event)?;
        nodes.push(disk.node(&event.path));
    }
    let mut later = std::collections::BTreeSet::new();
    let mut everything = false;
    let mut synced: Vec<bool> = Vec::new();
    for (event, node) in events.iter().zip(nodes).rev() {
        if let Action::Sync { whole_file_system } = event.action {
            everything |= whole_file_system;
            later.extend(node);
        }
        synced.push(everything || node.is_some_and(|node| later.contains(&node)));
    }
    synced.reverse();
    Ok(synced)
}

/// A write of which the device has only some sectors at its beginning.
fn torn(event: &Event, random: &mut Random) -> Event {
    let mut event = event.clone();
    if let Action::Write { data, .. } = &mut event.action {
        let sectors = data.len() / SECTOR;
        data.truncate(random.below(sectors + 1) * SECTOR);
    }
    event
}

/// Numbers that follow from a seed: SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit.max(1) as u64) as usize
    }
}
