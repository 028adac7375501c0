//! Explanations of decisions, as text.

use super::choice::{Choice, Each};
use super::chooser::{Decision, Reason};
use super::history::Observed;
use hyperslab_core::units::display_size;
use hyperslab_core::{Error, Result};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Collects epochs, and writes a line for each if requested.
#[derive(Debug, Default)]
pub(super) struct Explain {
    file: Option<File>,
    epochs: Each<u64>,
    last: Option<Decision>,
}

impl Explain {
    /// Appends lines to a file, which must not be a link.
    pub fn to(path: &Path) -> Result<Self> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR);
        let failed = |cause: rustix::io::Errno| Error::io("open", cause.into()).backend("auto").target(path.display());
        Ok(Self { file: Some(file.map_err(failed)?.into()), ..Self::default() })
    }

    /// Notes a finished epoch and its decision.
    pub fn epoch(&mut self, number: u64, decision: Option<&Decision>, observed: &Observed) {
        self.epochs[observed.choice.index()] += 1;
        if let Some(decision) = decision {
            self.last = Some(*decision);
        }
        let Some(file) = &mut self.file else { return };
        let foreseen = decision.map(|decision| foreseen(&decision.costs)).filter(|words| !words.is_empty());
        let foreseen = foreseen.map(|words| format!("{words}; ")).unwrap_or_default();
        let why = decision.map(|decision| format!("; {}", decision.why)).unwrap_or_default();
        let line = format!(
            "epoch {number}: {} ({} of {} each on {} ranks): {foreseen}took {:.6} s, computing {:.6} s and in calls {:.6} s{why}\n",
            observed.choice.name(),
            observed.class,
            display_size(observed.bytes as u64),
            observed.ranks,
            observed.seconds(),
            observed.compute,
            observed.calls,
        );
        // Best effort: write errors are ignored.
        let _ = file.write_all(line.as_bytes());
    }

    /// A summary of all epochs; `None` if there were none.
    pub fn summary(&self) -> Option<String> {
        let used: Vec<String> = Choice::ALL
            .iter()
            .filter(|choice| self.epochs[choice.index()] > 0)
            .map(|choice| {
                format!(
                    "{} of {} epochs {}",
                    self.epochs[choice.index()],
                    self.epochs.iter().sum::<u64>(),
                    choice.name()
                )
            })
            .collect();
        let last = self.last.filter(|last| last.why != Reason::Only).map(|last| {
            let foreseen = foreseen(&last.costs);
            let foreseen = if foreseen.is_empty() { foreseen } else { format!(" ({foreseen})") };
            format!("; last {}{foreseen}: {}", last.choice.name(), last.why)
        });
        (!used.is_empty()).then(|| format!("auto: {}{}", used.join(", "), last.unwrap_or_default()))
    }
}

/// The forecasts of all choices, as text.
fn foreseen(costs: &Each<Option<f64>>) -> String {
    let words = Choice::ALL
        .iter()
        .filter_map(|choice| costs[choice.index()].map(|seconds| format!("{} {seconds:.6} s", choice.name())));
    let words: Vec<String> = words.collect();
    if words.is_empty() { String::new() } else { format!("foreseen {}", words.join(", ")) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::request_class::RequestClass;
    use super::*;

    #[test]
    fn a_line_for_each_epoch_and_a_summary_of_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("why.log");
        let mut explain = Explain::to(&path).unwrap();
        assert_eq!(explain.summary(), None);
        let class = RequestClass::of(1 << 20, true);
        let (compute, calls, room) = (0.2, 0.01, Some(0.2));
        let (hand_over, behind, straight, fresh) = (0.01, None, false, false);
        let (choice, ranks, bytes) = (Choice::Async, 2, 4e6);
        let observed =
            Observed { choice, class, ranks, bytes, compute, room, calls, hand_over, behind, straight, fresh };
        let costs = [Some(0.5), Some(0.21), None];
        let decision = Decision { choice, why: Reason::Least, costs, risk: 0.0 };
        explain.epoch(1, Some(&decision), &observed);
        explain.epoch(2, None, &Observed { choice: Choice::Sync, ..observed });
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains("epoch 1: async") && text.contains("sync 0.500000 s, async 0.210000 s"), "{text}");
        let summary = explain.summary().unwrap();
        assert!(summary.contains("1 of 2 epochs async") && summary.contains("least"), "{summary}");
        std::os::unix::fs::symlink(&path, folder.path().join("link")).unwrap();
        assert!(Explain::to(&folder.path().join("link")).is_err());
    }
}
