//! What the model charges besides rates: the parameters that a calibration fits.

use hyperslab_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

/// Number of parameters that a calibration may fit.
pub const PARAMETERS: usize = 18;

/// The parameters, in seconds and bytes; shares and factors have no unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimingParameters {
    /// Seconds for each byte of a server's link that many clients share, beyond what one client takes.
    pub incast: f64,
    /// Seconds of a seek of a target.
    pub seek: f64,
    /// Bytes of a stream that a target writes before it seeks to another.
    pub write_run: f64,
    /// Bytes of a stream that a target reads ahead before it seeks to another.
    pub read_run: f64,
    /// Seconds of a library's independent call.
    pub call: f64,
    /// Seconds of a collective write that exchanges nothing.
    pub collective_write: f64,
    /// Seconds of a collective read.
    pub collective_read: f64,
    /// Seconds of a call whose ends share pages with others.
    pub split: f64,
    /// Seconds in which extent locks of a target are called back, once in a collective write with conflicts.
    pub lock_base: f64,
    /// Seconds for each writer of the busiest target of such a write.
    pub lock_writer: f64,
    /// Seconds in which a page that two clients write is handed over in a collective write.
    pub page: f64,
    /// Seconds in which a lock goes from one writer to the next when nobody waits for all.
    pub hand_over: f64,
    /// Seeks for each jump of a reader among others, calls together and whole pages.
    pub jump_aligned: f64,
    /// The same when pages are shared.
    pub jump_unaligned: f64,
    /// Seconds that a collective call of clients with interleaved blocks waits for the slowest.
    pub barrier: f64,
    /// How many times longer writers take that wait for nobody and share all targets.
    pub drift: f64,
    /// Seconds of a chunk that is written.
    pub chunk_write: f64,
    /// Seconds of a chunk that is read.
    pub chunk_read: f64,
}

/// Names, values and the way back, of the fields in one order: that of fitted vectors and their covariances.
macro_rules! in_order {
    ($($name:ident),+ $(,)?) => {
        /// Names in the order of [`TimingParameters::values`].
        pub const NAMES: [&'static str; PARAMETERS] = [$(stringify!($name)),+];

        /// All of them.
        pub fn values(&self) -> [f64; PARAMETERS] {
            [$(self.$name),+]
        }

        /// From all of them.
        pub fn of(values: [f64; PARAMETERS]) -> Self {
            let [$($name),+] = values;
            Self { $($name),+ }
        }
    };
}

impl TimingParameters {
    in_order!(
        incast,
        seek,
        write_run,
        read_run,
        call,
        collective_write,
        collective_read,
        split,
        lock_base,
        lock_writer,
        page,
        hand_over,
        jump_aligned,
        jump_unaligned,
        barrier,
        drift,
        chunk_write,
        chunk_read
    );

    /// A place to begin for any system of disks: what data sheets of disks and networks suggest.
    pub fn neutral() -> Self {
        Self {
            incast: 1e-9,
            seek: 10e-3,
            write_run: 8e6,
            read_run: 4e6,
            call: 0.5e-3,
            collective_write: 1.5e-3,
            collective_read: 4e-3,
            split: 2.5e-3,
            lock_base: 50e-3,
            lock_writer: 30e-3,
            page: 50e-3,
            hand_over: 20e-3,
            jump_aligned: 0.3,
            jump_unaligned: 0.5,
            barrier: 1e-3,
            drift: 1.2,
            chunk_write: 1e-3,
            chunk_read: 1e-3,
        }
    }

    /// The same on storage and networks that answer `times` faster: waiting shrinks, what is a share stays.
    pub fn faster(&self, times: f64) -> Self {
        let by = |seconds: f64| seconds / times.max(1e-9);
        Self {
            incast: by(self.incast),
            seek: by(self.seek),
            call: by(self.call),
            collective_write: by(self.collective_write),
            collective_read: by(self.collective_read),
            split: by(self.split),
            lock_base: by(self.lock_base),
            lock_writer: by(self.lock_writer),
            page: by(self.page),
            barrier: by(self.barrier),
            hand_over: by(self.hand_over),
            chunk_write: by(self.chunk_write),
            chunk_read: by(self.chunk_read),
            ..*self
        }
    }

    /// Refuses what is no time.
    pub fn check(&self) -> Result<()> {
        for (name, value) in Self::NAMES.iter().zip(self.values()) {
            let high = if name.ends_with("_run") { 1e12 } else { 1e4 };
            let low = if name.ends_with("_run") { 1.0 } else { 0.0 };
            if !(value >= low && value <= high) {
                let message = format!("timing.{name} is {value}; {low} to {high} are possible");
                return Err(Error::new(ErrorKind::Corrupt, "read system", message));
            }
        }
        Ok(())
    }
}
