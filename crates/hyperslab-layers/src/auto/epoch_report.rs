//! Epoch reports, which ranks combine by maximum.

use super::epoch_detector::Epoch;
use super::request_class::RequestClass;

/// The epoch of one rank, or the maximum over all ranks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct EpochReport {
    pub epoch: Epoch,
    /// Whether the epoch is over.
    pub over: bool,
    /// Whether the background failed.
    pub failed: bool,
    /// Seconds per byte in the background, if any were drained.
    pub behind: Option<f64>,
    /// Whether nothing went through the background.
    pub straight: bool,
    /// Whether memory was allocated for the first time.
    pub fresh: bool,
    /// The pause since the last transfer.
    pub pause: f64,
    /// Bytes of the transfer that begins; `coming` is its class, or that of the epoch.
    pub request: f64,
    pub coming: Option<RequestClass>,
}

/// Length of an encoded report.
const NUMBERS: usize = 14;

impl EpochReport {
    /// Encodes the report as numbers, to be combined by maximum.
    pub fn numbers(&self) -> [f64; NUMBERS] {
        let flag = |flag: bool| f64::from(u8::from(flag));
        let code = |class: Option<RequestClass>| class.map_or(0.0, |class| f64::from(class.code()));
        let epoch = &self.epoch;
        [
            flag(self.over),
            flag(self.failed),
            code(epoch.class),
            epoch.bytes,
            epoch.compute,
            // Negated, so that the minimum over ranks counts.
            -epoch.room,
            epoch.calls,
            epoch.calls - epoch.waited,
            self.behind.unwrap_or(0.0),
            -flag(self.straight),
            flag(self.fresh),
            self.pause,
            self.request,
            code(self.coming),
        ]
    }

    /// Decodes the combined numbers.
    pub fn from_numbers(numbers: &[f64; NUMBERS]) -> Self {
        let [
            over,
            failed,
            first,
            bytes,
            compute,
            room,
            calls,
            hand_over,
            behind,
            straight,
            fresh,
            pause,
            request,
            coming,
        ] = *numbers;
        let class = |code: f64| RequestClass::from_code(code as u16);
        let epoch = Epoch {
            class: class(first),
            began: 0.0,
            bytes,
            transfers: u64::from(bytes > 0.0),
            compute,
            room: -room,
            calls,
            waited: calls - hand_over,
        };
        Self {
            epoch,
            over: over > 0.0,
            failed: failed > 0.0,
            behind: (behind > 0.0).then_some(behind),
            straight: straight < 0.0,
            fresh: fresh > 0.0,
            pause,
            request,
            coming: class(coming),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_comes_back_and_the_slowest_counts() {
        let class = Some(RequestClass::of(5000, true));
        let epoch =
            Epoch { class, bytes: 10.0, transfers: 1, compute: 2.0, room: 1.5, calls: 0.5, waited: 0.25, began: 0.0 };
        let one =
            EpochReport { epoch, behind: Some(0.1), fresh: true, pause: 1.0, coming: class, ..EpochReport::default() };
        assert_eq!(EpochReport::from_numbers(&one.numbers()), one);
        let epoch = Epoch { compute: 3.0, room: 0.5, calls: 0.125, waited: 0.0, ..epoch };
        let other = EpochReport { epoch, over: true, straight: true, ..one };
        let mut both = one.numbers();
        both.iter_mut().zip(other.numbers()).for_each(|(a, b)| *a = a.max(b));
        let both = EpochReport::from_numbers(&both);
        assert!(both.over && !both.straight);
        assert_eq!((both.epoch.compute, both.epoch.room, both.epoch.calls), (3.0, 0.5, 0.5));
    }
}
