//! Copies of what callers hand over, for later.

use crate::file;
use crate::plane::Plane;
use crate::workers::{Helpers, with_helpers};
use hyperslab_core::Result;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a thread copies at a time: as much as a large page of the system.
const SHARE: usize = 2 << 20;
/// A copy to a large page that takes longer than this had to wait until the system had made one out of small ones.
const PATIENCE: Duration = Duration::from_millis(2);

impl Plane {
    /// A copy of a caller's memory, made by several threads if it is large.
    pub fn copied(&self, data: &[u8]) -> Result<Vec<u8>> {
        let mut copy = file::reserved(data.len())?;
        let room = &mut copy.spare_capacity_mut()[..data.len()];
        let helpers = Helpers::ask((data.len() / SHARE).clamp(1, self.threads) - 1);
        let (first, rest) = room.split_at_mut(room.as_ptr().align_offset(SHARE).min(data.len()));
        first.write_copy_of_slice(&data[..first.len()]);
        let shares = Mutex::new(rest.chunks_mut(SHARE).zip(data[first.len()..].chunks(SHARE)));
        let large_pages = AtomicBool::new(true);
        let work = || {
            let next = || shares.lock().unwrap_or_else(PoisonError::into_inner).next();
            while let Some((to, from)) = next() {
                let begin = Instant::now();
                let asked = large_pages.load(Ordering::Relaxed) && ask_for_large_page(to);
                to.write_copy_of_slice(from);
                if asked && begin.elapsed() > PATIENCE {
                    large_pages.store(false, Ordering::Relaxed);
                }
            }
        };
        with_helpers(&helpers, || &work, work)?;
        // SAFETY: the room is the first so many bytes after the length 0, and all of it was written.
        unsafe { copy.set_len(data.len()) };
        Ok(copy)
    }
}

/// Fresh memory in small pages costs more than the copy to it. Only a hint, and only for a whole page.
fn ask_for_large_page(to: &mut [MaybeUninit<u8>]) -> bool {
    let advice = rustix::mm::Advice::LinuxHugepage;
    // SAFETY: the page is this memory's alone, and the advice changes nothing of what it holds.
    to.len() == SHARE && unsafe { rustix::mm::madvise(to.as_mut_ptr().cast(), SHARE, advice) }.is_ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::{Facts, Layout, Limits, Plane};
    use hyperslab_core::Datatype;
    use std::sync::Arc;

    #[test]
    fn copies_of_any_size_are_the_same() {
        let facts = Facts {
            name: "x".into(),
            file: Arc::new(tempfile::tempfile().unwrap()),
            dtype: Datatype::U8,
            layout: Layout::Contiguous,
            filters: Vec::new(),
            fill: None,
            alone: true,
        };
        let plane = Plane::new(facts, &[1], Limits { threads: 3, cache: 0 }).unwrap().unwrap();
        for len in [0, 1, 4096, super::SHARE, 3 * super::SHARE + 12345] {
            let data: Vec<u8> = (0..len).map(|i| ((i * 31) >> 3) as u8).collect();
            assert!(plane.copied(&data).unwrap() == data, "{len} bytes");
        }
    }
}
