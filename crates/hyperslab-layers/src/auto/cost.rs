//! Cost model of an epoch for each choice.

use super::choice::Choice;

/// Expected times of an epoch, in seconds per rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Expected {
    /// Compute time between calls.
    pub compute: f64,
    /// The part of it between a transfer and the next flush, with which the transfer can overlap.
    pub room: f64,
    /// Synchronous transfers.
    pub direct: f64,
    /// The same transfers in the background.
    pub behind: f64,
    /// Copying them for the background.
    pub copy: f64,
    /// Appending them to a log.
    pub append: f64,
    /// Draining the log to the format below.
    pub drain: f64,
}

impl Expected {
    /// The whole epoch in steady state.
    pub fn cost(&self, choice: Choice) -> f64 {
        self.compute
            + match choice {
                Choice::Sync => self.direct,
                Choice::Async => self.not_hidden(self.copy, self.behind),
                Choice::Log => self.not_hidden(self.append, self.drain),
            }
    }

    /// The visible part of an overlapped transfer: its copy, and what remains when computing ends. The next copy also
    /// overlaps with it, as far as there is overlap.
    fn not_hidden(&self, hand_over: f64, transfer: f64) -> f64 {
        let beside = self.room + hand_over.min(self.room);
        hand_over + (transfer - beside).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_model::{Epoch, Staging};

    fn expected(compute: f64, transfer: f64, copy: f64) -> Expected {
        let (direct, behind) = (transfer, transfer);
        Expected { compute, room: compute, direct, behind, copy, append: 2.0 * copy, drain: transfer }
    }

    fn best(expected: &Expected) -> Choice {
        let cheaper = |a: &Choice, b: &Choice| expected.cost(*a).total_cmp(&expected.cost(*b));
        [Choice::Sync, Choice::Async].into_iter().min_by(cheaper).unwrap()
    }

    #[test]
    fn it_is_the_arithmetic_of_the_models() {
        for (compute, transfer, copy) in [(0.2, 0.3, 0.04), (0.2, 0.02, 0.1), (0.1, 0.1, 0.01), (0.05, 0.5, 0.05)] {
            let (ours, theirs) = (expected(compute, transfer, copy), Epoch { compute, transfer, overhead: copy });
            assert!((ours.cost(Choice::Sync) - theirs.waiting()).abs() < 1e-12);
            assert!((ours.cost(Choice::Async) - theirs.behind(Staging::TwoBuffers)).abs() < 1e-12, "{theirs:?}");
            assert_eq!(best(&ours) == Choice::Sync, theirs.loses(), "{theirs:?}");
        }
    }

    #[test]
    fn the_deciding_cases() {
        assert_eq!(best(&expected(0.200, 0.020, 0.100)), Choice::Sync, "the copy costs more than the transfer");
        assert_eq!(best(&expected(0.200, 0.300, 0.040)), Choice::Async);
        assert_eq!(best(&expected(0.0, 0.3, 0.01)), Choice::Sync, "nothing to hide behind");
    }

    #[test]
    fn a_flush_after_every_transfer_leaves_no_room() {
        let flushed = Expected { room: 0.0, ..expected(0.2, 0.3, 0.04) };
        assert!((flushed.cost(Choice::Async) - 0.54).abs() < 1e-12);
        assert_eq!(best(&flushed), Choice::Sync);
    }
}
