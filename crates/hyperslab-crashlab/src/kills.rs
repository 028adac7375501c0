//! Real SIGKILL before the n-th change of a file: of programs, and of recoveries.

use crate::acks::Progress;
use crate::campaign::{Recorded, each_image, record};
use crate::checker::{Program, Verdict};
use crate::report::{Case, CaseTally};
use crate::subject::{Promise, Subject};
use crate::trace::Action;
use crate::workshop::{Preload, Workshop};
use anyhow::Result;

/// Programs of which every change is a moment to be killed have so many operations.
const SHORT: u32 = 8;

/// Kills a short program before its first change, its second, and so on until it ends by itself. Until its file is open nothing is
/// promised and nothing counted, unless `recover` fails then.
pub fn every_call(
    workshop: &mut Workshop<'_>,
    subject: Subject,
    program: Program,
    wanted: u64,
    tally: &mut CaseTally,
) -> Result<()> {
    let program = Program { length: SHORT, ..program };
    let first = changes_of_opening(&record(workshop, subject, program)?) + 1;
    for nth in 1.. {
        let (status, _) = workshop.execute(subject, program, &Preload::Kill(nth))?;
        let (progress, _) = workshop.progress(0);
        let replay = format!("seed {}, {SHORT} operations, killed before change {nth}", program.seed);
        if progress.acked >= 0 {
            tally.count(&workshop.case(subject, program, progress, replay)?);
        } else if subject.promise != Promise::None
            && let refused @ Some(_) = workshop.recover(subject, &Preload::Nothing)?.refused
        {
            tally.count(&Case { replay, before: Verdict::Kept, after: Verdict::Kept, refused });
        }
        if status.code().is_some()
            || (nth >= first && progress.begun == progress.acked)
            || nth >= first + wanted.max(10)
        {
            break;
        }
    }
    Ok(())
}

/// How many changes a program makes before its first operation has returned: until then nothing is promised.
fn changes_of_opening(recorded: &Recorded) -> u64 {
    let mut progress = Progress::default();
    let mut changes = 0;
    for event in &recorded.events {
        match &event.action {
            Action::Write { data, .. } if event.path == recorded.acks => progress.see(&String::from_utf8_lossy(data)),
            Action::Open { .. } | Action::Sync { .. } => {}
            _ => changes += 1,
        }
        if progress.acked >= 0 {
            break;
        }
    }
    changes
}

/// Takes an image whose recovery changes something, and kills the recovery before each of its changes. The next one must
/// give the same.
pub fn recoveries(
    workshop: &mut Workshop<'_>,
    subject: Subject,
    program: Program,
    wanted: u64,
    tally: &mut CaseTally,
) -> Result<()> {
    let recorded = record(workshop, subject, program)?;
    let logs = workshop.logs();
    let mut after_last = 0;
    each_image(&recorded, &logs, |disk, number, progress| {
        // Some images of each program, far from each other.
        if progress.acked < 0 || number < after_last {
            return Ok(true);
        }
        disk.place(&workshop.data())?;
        if workshop.judge(0, subject, program, progress)? == Verdict::Kept {
            return Ok(true);
        }
        after_last = number + recorded.events.len() / 4;
        for nth in 1.. {
            disk.place(&workshop.data())?;
            let before = workshop.judge(0, subject, program, progress)?;
            let first = workshop.recover(subject, &Preload::Kill(nth))?;
            let refused = match first.killed {
                true => workshop.recover(subject, &Preload::Nothing)?.refused,
                false => first.refused,
            };
            let after = workshop.judge(0, subject, program, progress)?;
            let replay = format!(
                "--mode {} --seed {} --length {} --prefix {number}, recovery killed before change {nth}",
                subject.name, program.seed, program.length
            );
            tally.count(&Case { replay, before, after, refused });
            if !first.killed || tally.cases() >= wanted {
                break;
            }
        }
        Ok(tally.cases() < wanted)
    })
}
