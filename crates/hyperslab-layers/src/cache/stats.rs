//! Hit statistics of one rank.

use hyperslab_core::units::display_size;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub(super) struct CacheStats {
    reads: AtomicU64,
    bytes: AtomicU64,
    /// Bytes from cached blocks.
    kept: AtomicU64,
}

impl CacheStats {
    /// Counts a read of `bytes`, `kept` of them from the cache.
    pub fn note(&self, bytes: u64, kept: u64) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.kept.fetch_add(kept, Ordering::Relaxed);
    }

    /// The diagnostic, with peak memory; `None` if nothing was read.
    pub fn diagnostic(&self, peak: u64) -> Option<String> {
        let [reads, bytes, kept] = [&self.reads, &self.bytes, &self.kept].map(|count| count.load(Ordering::Relaxed));
        let percent = (bytes > 0).then(|| kept as f64 * 100.0 / bytes as f64)?;
        Some(format!(
            "cache: {percent:.0} % of {} in {reads} reads came from memory; it held at most {}",
            display_size(bytes),
            display_size(peak)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_are_made_when_something_was_read() {
        let counts = CacheStats::default();
        assert_eq!(counts.diagnostic(5), None);
        counts.note(1000, 0);
        counts.note(1000, 1000);
        let said = counts.diagnostic(4096).unwrap_or_default();
        assert!(said.starts_with("cache: 50 % of") && said.contains("2 reads") && said.contains("4"), "{said}");
    }
}
