//! Time of programs that compute and transfer in turns, when transfers wait or go on behind.

/// A time step, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Epoch {
    /// Computing.
    pub compute: f64,
    /// Transferring.
    pub transfer: f64,
    /// What handing a transfer over costs: the copy.
    pub overhead: f64,
}

/// How many transfers may be on the way while the program goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Staging {
    /// The copy waits until the transfer before is done.
    OneBuffer,
    /// The copy goes on beside it.
    TwoBuffers,
}

impl Epoch {
    /// With transfers that wait.
    pub fn waiting(&self) -> f64 {
        self.compute + self.transfer
    }

    /// With transfers that go on behind, once things have settled.
    pub fn behind(&self, staging: Staging) -> f64 {
        match staging {
            Staging::OneBuffer => self.compute.max(self.transfer) + self.overhead,
            Staging::TwoBuffers => (self.compute + self.overhead).max(self.transfer),
        }
    }

    /// The formula as published, which leaves out computing itself.
    pub fn behind_as_printed(&self) -> f64 {
        self.compute.max(self.transfer - self.compute) + self.overhead
    }

    /// Whether handing transfers over costs more than it hides.
    pub fn loses(&self) -> bool {
        self.overhead > self.compute.min(self.transfer)
    }

    /// A run of so many steps with transfers behind: the last one is not hidden.
    pub fn run_behind(&self, steps: u64, staging: Staging) -> f64 {
        match steps {
            0 => 0.0,
            n => self.compute + self.overhead + (n - 1) as f64 * self.behind(staging) + self.transfer,
        }
    }
}

/// The time of a phase in which each of several ranks needs `alone` seconds and all of them together can use no more
/// than what `servers` give, which is above 0: it saturates, where a sum would not.
pub fn saturating(alone: f64, all: f64, servers: f64) -> f64 {
    alone.max(all / servers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_tried_with_sleeps() {
        let epoch = Epoch { compute: 0.200, transfer: 0.300, overhead: 0.040 };
        // Measured 345 ms with one buffer, 305 ms with two; the printed formula says 240 ms.
        assert!((epoch.behind(Staging::OneBuffer) - 0.340).abs() < 1e-9);
        assert!((epoch.behind(Staging::TwoBuffers) - 0.300).abs() < 1e-9);
        assert!((epoch.behind_as_printed() - 0.240).abs() < 1e-9);
        let loses = Epoch { compute: 0.200, transfer: 0.020, overhead: 0.100 };
        assert!(loses.loses() && !epoch.loses());
        assert!((loses.waiting() - 0.220).abs() < 1e-9 && (loses.behind(Staging::OneBuffer) - 0.300).abs() < 1e-9);
        // The last transfer of a run is not hidden.
        let run = epoch.run_behind(10, Staging::TwoBuffers);
        assert!((run - (0.2 + 0.04 + 9.0 * 0.3 + 0.3)).abs() < 1e-9);
        assert_eq!(epoch.run_behind(0, Staging::OneBuffer), 0.0);
    }

    #[test]
    fn more_servers_help_until_the_clients_are_the_limit() {
        // 81 s on one server, 54 s on four, and 54 s on 64: the clients need 54 s by themselves.
        let times = [1.0, 4.0, 64.0].map(|servers| saturating(54.0, 81.0, servers));
        assert_eq!(times, [81.0, 54.0, 54.0]);
    }
}
