//! Detects epochs in the calls of one rank. Times are in seconds since the container was opened.

use super::request_class::RequestClass;

/// Minimum pause that begins an epoch.
const SHORTEST_PAUSE: f64 = 1e-3;
/// Minimum pause as a share of the usual one: programs also pause between the arrays of a time step.
const OF_USUAL: f64 = 0.25;
/// Maximum length: a longer epoch ends with the next transfer, since there may be no pauses at all.
const LONGEST: f64 = 0.5;

/// Maximum length of the first epoch, and of one with an unmeasured strategy, if transfers took longer than computing.
const LONGEST_UNSURE: f64 = 0.02;

/// The measurements of an epoch: computing before and between transfers, and the transfers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Epoch {
    /// Class of its first transfer.
    pub class: Option<RequestClass>,
    pub began: f64,
    pub bytes: f64,
    /// Number of timed transfers.
    pub transfers: u64,
    pub compute: f64,
    /// Compute time after a transfer and before the next flush.
    pub room: f64,
    /// Time in transfers.
    pub calls: f64,
    /// Part of it spent waiting for the background.
    pub waited: f64,
}

/// Detector state of a rank.
#[derive(Debug, Default)]
pub(super) struct EpochDetector {
    epoch: Epoch,
    /// Pauses since the last transfer, and their part that followed a transfer without a flush.
    pause: f64,
    room: f64,
    /// Whether something was transferred since the last flush.
    open_ended: bool,
    /// Number of running calls, and the end of the last one.
    calls: u32,
    ended: f64,
    /// Number of running transfers, and the begin of the first.
    transfers: u32,
    since: f64,
    /// Seconds per byte of the last transfer, and seconds of it with the preceding pause.
    pace: f64,
    latest: f64,
    /// The usual pause before an epoch.
    usual: f64,
    /// Number of finished epochs.
    pub finished: u64,
    /// Whether the present strategy was never measured.
    pub unsure: bool,
}

impl EpochDetector {
    /// A detector; `pause` is the compute time before the container was opened.
    pub fn new(pause: f64) -> Self {
        Self { pause, ..Self::default() }
    }

    /// Begins a call. `passed`: bytes of untimed transfers since the last call, assumed as fast as the last timed one.
    pub fn begin(&mut self, now: f64, passed: f64) {
        let sampler = (passed * self.pace).min((now - self.ended).max(0.0));
        self.epoch.bytes += passed;
        if self.calls == 0 {
            let gap = (now - self.ended).max(0.0) - sampler;
            self.epoch.calls += sampler;
            self.pause += gap;
            if self.open_ended {
                self.room += gap;
            }
        }
        self.calls += 1;
    }

    /// A call ends.
    pub fn end(&mut self, now: f64) {
        self.calls = self.calls.saturating_sub(1);
        self.ended = self.ended.max(now);
    }

    /// Notes a flush: earlier transfers are complete.
    pub fn drained(&mut self) {
        self.open_ended = false;
    }

    /// The epoch so far, including pauses before now.
    pub fn so_far(&self) -> Epoch {
        Epoch { room: self.epoch.room + self.room, ..self.epoch }
    }

    /// The pause since the last transfer.
    pub fn pause(&self) -> f64 {
        self.pause
    }

    /// Whether a transfer now would begin a new epoch. An epoch without transfers has not begun.
    pub fn is_over(&self, now: f64) -> bool {
        let paused = self.pause >= SHORTEST_PAUSE && self.pause >= OF_USUAL * self.usual;
        let unsure = self.finished == 0 || self.unsure;
        let known = unsure && self.epoch.calls >= self.epoch.compute.max(LONGEST_UNSURE);
        self.epoch.transfers > 0 && self.transfers == 0 && (paused || known || now - self.epoch.began >= LONGEST)
    }

    /// Begins a new epoch with the present pause.
    pub fn next_epoch(&mut self, now: f64) {
        self.usual = match (self.pause >= SHORTEST_PAUSE, self.pause >= OF_USUAL * self.usual) {
            (true, true) => 0.5 * (self.usual + self.pause),
            // Pauses have become shorter.
            (true, false) => self.pause,
            // There are no pauses any more.
            (false, _) => 0.5 * self.usual,
        };
        self.epoch = Epoch { began: now - self.pause, compute: self.pause, ..Epoch::default() };
        (self.pause, self.room) = (0.0, 0.0);
        self.finished += 1;
        self.unsure = false;
    }

    /// Seconds of the last transfer and its preceding pause, if no other call is running.
    pub fn latest(&self) -> Option<f64> {
        (self.calls == 0).then_some(self.latest)
    }

    /// Begins a transfer, after [`EpochDetector::begin`].
    pub fn begin_transfer(&mut self, now: f64, class: RequestClass) {
        self.latest = self.pause;
        if self.epoch.transfers == 0 && self.transfers == 0 {
            self.epoch.began = self.epoch.began.max(now - self.pause);
            self.usual = if self.finished == 0 { self.pause } else { self.usual };
        }
        self.epoch.class.get_or_insert(class);
        self.epoch.compute += std::mem::take(&mut self.pause);
        self.epoch.room += std::mem::take(&mut self.room);
        if self.transfers == 0 {
            self.since = now;
        }
        self.transfers += 1;
    }

    /// Ends a transfer, before [`EpochDetector::end`].
    pub fn end_transfer(&mut self, now: f64, bytes: f64, waited: f64) {
        self.transfers = self.transfers.saturating_sub(1);
        if self.transfers == 0 {
            let seconds = now - self.since;
            self.epoch.calls += seconds;
            self.latest += seconds;
            self.pace = seconds / bytes.max(1.0);
        }
        self.epoch.transfers += 1;
        self.epoch.bytes += bytes;
        self.epoch.waited += waited;
        self.open_ended = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that has a clock.
    #[derive(Default)]
    struct Program {
        detector: EpochDetector,
        now: f64,
        epochs: Vec<Epoch>,
    }

    impl Program {
        fn compute(&mut self, seconds: f64) {
            self.now += seconds;
        }

        fn write(&mut self, seconds: f64) {
            self.detector.begin(self.now, 0.0);
            if self.detector.is_over(self.now) {
                self.epochs.push(self.detector.so_far());
                self.detector.next_epoch(self.now);
            }
            self.detector.begin_transfer(self.now, RequestClass::of(1000, true));
            self.now += seconds;
            self.detector.end_transfer(self.now, 1000.0, 0.0);
            self.detector.end(self.now);
        }

        fn flush(&mut self, seconds: f64) {
            self.detector.begin(self.now, 0.0);
            self.now += seconds;
            self.detector.drained();
            self.detector.end(self.now);
        }
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn a_pause_begins_an_epoch() {
        let mut program = Program::default();
        for _ in 0..4 {
            program.compute(0.1);
            for _ in 0..5 {
                program.write(0.01);
                program.compute(0.002);
            }
        }
        assert_eq!(program.epochs.len(), 3, "short pauses between arrays begin none");
        for epoch in &program.epochs[1..] {
            assert!(near(epoch.calls, 0.05) && near(epoch.bytes, 5000.0), "{epoch:?}");
            assert!(near(epoch.compute, 0.11) && near(epoch.room, 0.11), "{epoch:?}");
        }
    }

    #[test]
    fn a_flush_before_the_pause_leaves_no_room() {
        let mut program = Program::default();
        for _ in 0..4 {
            program.compute(0.1);
            program.write(0.01);
            program.flush(0.05);
        }
        assert_eq!(program.epochs.len(), 3);
        assert!(program.epochs.iter().all(|epoch| near(epoch.room, 0.0) && near(epoch.compute, 0.1)));
        assert!(program.epochs.iter().all(|epoch| near(epoch.calls, 0.01)), "a flush is no transfer");
    }

    #[test]
    fn without_pauses_epochs_end_all_the_same() {
        let mut program = Program::default();
        for _ in 0..200 {
            program.write(0.01);
        }
        assert!((3..=4).contains(&program.epochs.len()), "{}", program.epochs.len());
        program.detector.unsure = true;
        let before = program.epochs.len();
        (0..10).for_each(|_| program.write(0.01));
        assert!(program.epochs.len() > before, "a way that was never measured is soon known");
        // A program that begins to pause, and pauses shorter later, is followed.
        for step in 0..50 {
            program.compute(if step < 10 { 0.2 } else { 0.02 });
            program.write(0.001);
        }
        let last = program.epochs.last().unwrap();
        assert!(near(last.compute, 0.02), "{last:?}");
    }

    #[test]
    fn transfers_that_nobody_looked_at_count() {
        let mut program = Program::default();
        program.write(0.001);
        assert!(program.detector.latest().is_some_and(|seconds| near(seconds, 0.001)));
        // Four more as long, and computing.
        program.compute(0.006);
        program.detector.begin(program.now, 4000.0);
        let epoch = program.detector.so_far();
        assert!(near(epoch.calls, 0.005) && near(epoch.bytes, 5000.0), "{epoch:?}");
        assert!(near(epoch.room, 0.002) && near(program.detector.pause(), 0.002), "{epoch:?}");
        assert!(program.detector.latest().is_none(), "a call is under way");
    }

    #[test]
    fn calls_of_several_threads_count_once() {
        let mut detector = EpochDetector::default();
        let class = RequestClass::of(10, false);
        detector.begin(1.0, 0.0);
        detector.begin_transfer(1.0, class);
        detector.begin(1.5, 0.0);
        detector.begin_transfer(1.5, class);
        detector.end_transfer(2.0, 10.0, 0.0);
        detector.end(2.0);
        detector.end_transfer(3.0, 10.0, 0.5);
        detector.end(3.0);
        let epoch = detector.so_far();
        assert!(near(epoch.calls, 2.0) && near(epoch.compute, 1.0) && near(epoch.waited, 0.5), "{epoch:?}");
        detector.begin(4.0, 0.0);
        assert!(detector.is_over(4.0) && near(detector.so_far().room, 1.0));
    }
}
