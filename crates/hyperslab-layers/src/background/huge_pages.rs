//! Memory of its own pages, large ones where the system has them: fresh memory is then had at nearly the speed of a copy,
//! where 4 KiB pages took eight times as long (Linux 6 on a virtual machine).

use hyperslab_core::{Error, Result};
use memmap2::{Advice, MmapMut};
use std::ops::{Deref, DerefMut};

/// A large page of most processors.
const LARGE: usize = 2 << 20;

/// Bytes that begin at a page, and at a large one if there are enough of them for it to matter.
#[derive(Debug)]
pub(crate) struct HugePages {
    map: MmapMut,
    from: usize,
    len: usize,
}

impl HugePages {
    /// `len` bytes of any content.
    pub fn new(len: usize) -> Result<Self> {
        let failed = |cause| Error::io("allocate buffer", cause).hint("use smaller extents or fewer ranks");
        if len < 2 * LARGE {
            return Ok(Self { map: MmapMut::map_anon(len).map_err(failed)?, from: 0, len });
        }
        // What lies outside is never touched, and so costs nothing.
        let map = MmapMut::map_anon(len.saturating_add(LARGE)).map_err(failed)?;
        let from = map.as_ptr().align_offset(LARGE).min(LARGE);
        // Only for whole ones inside. A system without them says no, and that is fine.
        let _ = map.advise_range(Advice::HugePage, from, len - len % LARGE);
        Ok(Self { map, from, len })
    }

    pub fn len(&self) -> usize {
        self.len
    }
}

impl Deref for HugePages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map[self.from..self.from + self.len]
    }
}

impl DerefMut for HugePages {
    fn deref_mut(&mut self) -> &mut [u8] {
        let (from, to) = (self.from, self.from + self.len);
        &mut self.map[from..to]
    }
}
