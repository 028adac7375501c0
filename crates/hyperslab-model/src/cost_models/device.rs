//! What a device must be asked for: bytes of a file that nobody has read or written before.

use crate::chunk_bitmap::ChunkBitmap;
use crate::counts::{Count, Counts};

/// What the system reads at least.
const BLOCK: u64 = 16 << 10;

/// How many of many reads are looked at one by one; the others are taken to be like them.
const LOOKED_AT: u64 = 1024;

/// The blocks of a file that are in memory, if it was not there at first.
#[derive(Debug, Clone)]
pub(crate) struct Device {
    known: ChunkBitmap,
    /// The block after the last one that was read.
    next: u64,
}

impl Default for Device {
    fn default() -> Self {
        Self { known: ChunkBitmap::default(), next: u64::MAX }
    }
}

impl Device {
    /// Counts what of a read is not in memory.
    pub(crate) fn read(&mut self, begin: u64, bytes: u64, counts: &mut Counts) {
        if bytes == 0 {
            return;
        }
        let (from, to) = (begin / BLOCK, begin.saturating_add(bytes).div_ceil(BLOCK));
        let (new, runs) = self.known.insert_range(from, to, self.next);
        if new > 0 {
            self.next = to;
        }
        counts.add(Count::DeviceBytes, new * BLOCK);
        counts.add(Count::DeviceReads, runs);
    }

    /// Counts reads of the same length that lie apart.
    pub(crate) fn read_apart(&mut self, begin: u64, bytes: u64, times: u64, stride: u64, counts: &mut Counts) {
        if stride <= bytes.saturating_add(BLOCK) {
            return self.read(begin, bytes.saturating_add(stride.saturating_mul(times.saturating_sub(1))), counts);
        }
        let looked_at = times.min(LOOKED_AT);
        let before = *counts;
        (0..looked_at).for_each(|time| self.read(begin.saturating_add(time.saturating_mul(stride)), bytes, counts));
        if times > looked_at {
            let like_these = counts.since(&before).scaled(times - looked_at, looked_at);
            *counts += &like_these;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_once() {
        let (mut device, mut counts) = (Device::default(), Counts::default());
        device.read(0, 10, &mut counts);
        device.read(5, 20_000, &mut counts);
        assert_eq!((counts[Count::DeviceReads], counts[Count::DeviceBytes]), (1, 2 * BLOCK));
        device.read_apart(1 << 20, 4, 3, 1 << 20, &mut counts);
        device.read_apart(1 << 20, 4, 3, 1 << 20, &mut counts);
        assert_eq!((counts[Count::DeviceReads], counts[Count::DeviceBytes]), (4, 5 * BLOCK));
    }
}
