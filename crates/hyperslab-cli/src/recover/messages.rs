//! What `recover` says.

use super::RecoverOptions;
use super::escape::escaped;
use crate::table::{Align, Table};
use hyperslab_core::units::display_size;
use hyperslab_journal::recover::{Damage, Job, JournalStatus, OrphanedJournal, Replayed};
use std::time::SystemTime;

/// All logs, one in a row.
pub fn table(left: &[OrphanedJournal]) -> String {
    let mut table = Table::new(&[
        ("file", Align::Left),
        ("stack", Align::Left),
        ("rank", Align::Right),
        ("writes", Align::Right),
        ("bytes", Align::Right),
        ("begun", Align::Left),
        ("state", Align::Left),
    ]);
    for journal in left {
        let counts = match journal.state {
            JournalStatus::InUse | JournalStatus::Elsewhere | JournalStatus::Refused(_) => ["?".into(), "?".into()],
            _ => [journal.writes.to_string(), display_size(journal.bytes)],
        };
        let head = journal.header.as_ref().map(|header| {
            let rank = format!("{} of {}", header.rank, header.ranks);
            (escaped(header.container.display()), escaped(&header.stack), rank, age(header.created))
        });
        let (file, stack, rank, begun) =
            head.unwrap_or_else(|| (journal.name().to_owned(), "?".into(), "?".into(), "?".into()));
        let [writes, bytes] = counts;
        table.row(vec![file, stack, rank, writes, bytes, begun, state(&journal.state)]);
    }
    table.render()
}

fn state(state: &JournalStatus) -> String {
    match state {
        JournalStatus::InUse => "in use".into(),
        JournalStatus::Elsewhere => "of another machine".into(),
        JournalStatus::Empty => "nothing missing".into(),
        JournalStatus::Whole(None) => "complete".into(),
        JournalStatus::Whole(Some(_)) => "complete, last record unfinished".into(),
        JournalStatus::Damaged(damage) => format!("damaged in segment {} at {}", damage.segment, damage.offset),
        JournalStatus::SetAside => "recovered up to a damage, kept".into(),
        JournalStatus::Recovered => "recovered, to be removed".into(),
        JournalStatus::Refused(error) => format!("refused ({:?})", error.kind()),
    }
}

/// How long ago, in the largest unit that fits.
fn age(then: SystemTime) -> String {
    let Ok(ago) = SystemTime::now().duration_since(then) else { return "in the future".into() };
    let seconds = ago.as_secs();
    let (number, unit) = match seconds {
        0..120 => (seconds, "s"),
        120..7200 => (seconds / 60, "min"),
        7200..172_800 => (seconds / 3600, "h"),
        _ => (seconds / 86_400, "days"),
    };
    format!("{number} {unit} ago")
}

/// Writes and their bytes.
pub fn amount(writes: u64, bytes: u64) -> String {
    match writes {
        0 => "nothing".into(),
        1 => format!("1 write of {}", display_size(bytes)),
        _ => format!("{writes} writes of {} together", display_size(bytes)),
    }
}

/// The damages that a replay would meet.
pub fn damages(job: &Job) -> Vec<(String, Damage)> {
    let each = job.journals.iter().filter_map(|journal| match &journal.state {
        JournalStatus::Damaged(damage) | JournalStatus::Whole(Some(damage)) => {
            Some((journal.name().to_owned(), damage.clone()))
        }
        _ => None,
    });
    each.collect()
}

/// Says what logs ended early. Returns whether something acknowledged may be lost.
pub fn losses(replayed: &Replayed, options: &RecoverOptions) -> bool {
    for (name, damage) in &replayed.damages {
        let Damage { segment, offset, reason, skipped, .. } = damage;
        match (damage.unfinished, damage.torn) {
            (true, false) => println!("  the last record of {name} is unfinished; its write was never acknowledged"),
            (true, true) => {
                println!("  the last record of {name} is torn, as a loss of power leaves one that is being written;");
                println!("  its write was not acknowledged, unless the device lost what it had said to have");
            }
            (false, _) => {
                println!("  LOST: {name} is damaged in segment {segment} at byte {offset}: {}", escaped(reason));
                match skipped {
                    0 => println!("  everything before is recovered; what followed is gone"),
                    _ => println!(
                        "  everything before is recovered; {} of records from there on are not",
                        display_size(*skipped)
                    ),
                }
                if !options.dry_run && options.to.is_none() {
                    println!("  its files are kept, with {name}.damaged as their head");
                }
            }
        }
    }
    replayed.damages.iter().any(|(_, damage)| !damage.unfinished)
}
