//! The table of a campaign.

use crate::checker::Verdict;
use crate::subject::{Promise, Subject};

/// What became of one image or kill.
#[derive(Debug, Clone)]
pub struct Case {
    /// What to say to see it again.
    pub replay: String,
    /// The file as it was found.
    pub before: Verdict,
    /// The file after recovery.
    pub after: Verdict,
    /// What `hyperslab recover` said, if it failed.
    pub refused: Option<String>,
}

/// Sums of a campaign.
#[derive(Debug, Clone, Default)]
pub struct CaseTally {
    cases: u64,
    needed: u64,
    lost: u64,
    unreadable: u64,
    older: u64,
    refused: u64,
    failures: Vec<String>,
}

impl CaseTally {
    /// Counts a case.
    pub fn count(&mut self, case: &Case) {
        self.cases += 1;
        self.needed += u64::from(case.before != Verdict::Kept);
        let mut failed = |sum: &mut u64, what: &str, why: &str| {
            *sum += 1;
            self.failures.push(format!("{what}: {}: {why}", case.replay));
        };
        match &case.after {
            Verdict::Kept => {}
            Verdict::Lost(why) if case.before == Verdict::Kept => failed(&mut self.older, "older over newer", why),
            Verdict::Lost(why) => failed(&mut self.lost, "lost", why),
            Verdict::Unreadable(why) => failed(&mut self.unreadable, "unreadable", why),
        }
        if let Some(said) = &case.refused {
            failed(&mut self.refused, "recover failed", said);
        }
    }

    /// Adds what another worker has counted.
    pub fn add(&mut self, other: Self) {
        self.cases += other.cases;
        self.needed += other.needed;
        self.lost += other.lost;
        self.unreadable += other.unreadable;
        self.older += other.older;
        self.refused += other.refused;
        self.failures.extend(other.failures);
    }

    pub fn cases(&self) -> u64 {
        self.cases
    }

    fn is_kept(&self) -> bool {
        self.lost + self.unreadable + self.older + self.refused == 0
    }
}

/// One line of the table.
#[derive(Debug, Clone)]
pub struct ReportRow {
    pub what: &'static str,
    pub subject: Subject,
    pub tally: CaseTally,
}

/// Prints the table and some failures; whether all promises were kept.
pub fn print(rows: &[ReportRow], failures: usize) -> bool {
    println!(
        "\n{:<20} {:<10} {:>7} {:>9} {:>6} {:>11} {:>17} {:>15}",
        "campaign", "mode", "cases", "recovery", "lost", "unreadable", "older over newer", "recover failed"
    );
    println!("{:<20} {:<10} {:>7} {:>9}", "", "", "", "needed");
    for ReportRow { what, subject, tally } in rows {
        let note = if subject.promise == Promise::None { "  (promises nothing)" } else { "" };
        println!(
            "{what:<20} {:<10} {:>7} {:>9} {:>6} {:>11} {:>17} {:>15}{note}",
            subject.name, tally.cases, tally.needed, tally.lost, tally.unreadable, tally.older, tally.refused
        );
    }
    let mut kept = true;
    let all_alike = rows.iter().all(|row| row.subject.promise == Promise::None);
    for ReportRow { subject, tally, .. } in rows.iter().filter(|row| row.subject.promise != Promise::None || all_alike)
    {
        kept &= tally.is_kept() || all_alike;
        for failure in tally.failures.iter().take(failures) {
            println!("\n{}: {failure}", subject.name);
        }
    }
    kept
}
