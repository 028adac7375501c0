//! What an epoch costs by each choice.

use super::choice::Choice;

/// An epoch as it is expected, in seconds of a rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Expected {
    /// Between calls.
    pub compute: f64,
    /// The part of it that comes between a transfer and the next flush, behind which it could go on.
    pub room: f64,
    /// The transfers, when the caller waits for them.
    pub direct: f64,
    /// The same by a thread in the background.
    pub behind: f64,
    /// Handing them to that thread: the copy.
    pub copy: f64,
    /// Appending them to the log.
    pub append: f64,
    /// Moving them from there to the format below.
    pub drain: f64,
}

impl Expected {
    /// The whole epoch, once things have drained.
    pub fn cost(&self, choice: Choice) -> f64 {
        self.compute
            + match choice {
                Choice::Sync => self.direct,
                Choice::Async => self.not_hidden(self.copy, self.behind),
                Choice::Log => self.not_hidden(self.append, self.drain),
            }
    }

    /// What the caller sees of a transfer that goes on behind: handing it over, and what is left of it when there is nothing
    /// more to do. Handing over the next goes on beside it, too, as far as there is anything beside it.
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
