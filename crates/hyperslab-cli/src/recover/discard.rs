//! `recover --discard`: logs that nobody wants are thrown away, and said so.

use super::escape::{escaped, lines};
use super::{End, messages};
use hyperslab_journal::recover::{self, Job, JournalStatus, JournalStorage, OrphanedJournal};
use std::sync::Arc;

/// Removes logs that are not in use, whatever is in them: those of jobs, and those that nobody knows the file of.
pub fn discard(files: &Arc<dyn JournalStorage>, jobs: Vec<Job>, others: &[OrphanedJournal]) -> Vec<End> {
    let mut ends: Vec<End> = jobs.iter().map(|job| one_job(files, job)).collect();
    for journal in others {
        ends.push(match &journal.state {
            JournalStatus::InUse | JournalStatus::Elsewhere => End::LeftAlone,
            _ => match journal.discard(files) {
                Ok(()) => {
                    tell!("{}: files without a readable head thrown away", escaped(journal.name()));
                    End::Done
                }
                Err(error) => failed(&error),
            },
        });
    }
    ends
}

fn one_job(files: &Arc<dyn JournalStorage>, job: &Job) -> End {
    let header = job.journals.iter().find_map(|journal| journal.header.as_ref());
    let container = header.map(|header| header.container.clone()).unwrap_or_default();
    let name = escaped(container.display());
    if job.is_in_use() || job.is_elsewhere() {
        tell!("{name}: its logs may be in use; left alone");
        return End::LeftAlone;
    }
    let (writes, bytes) = job.size();
    for journal in &job.journals {
        if let Err(error) = journal.discard(files) {
            return failed(&error);
        }
    }
    recover::forget(&container, job);
    tell!("{name}: {} thrown away with the logs", messages::amount(writes, bytes));
    End::Done
}

fn failed(error: &hyperslab_core::Error) -> End {
    complain!("hyperslab: {}", lines(error));
    End::Failed
}
