//! The log of an array: volumes, each an array of bytes with an equal region for every rank.

use super::entry::{DataLocation, Entry, corrupt};
use hyperslab_core::{Array, Result};
use std::collections::HashMap;
use std::sync::Arc;

/// A volume: one array of bytes.
#[derive(Debug)]
pub(super) struct Volume {
    pub number: u32,
    /// Number of regions.
    pub regions: u64,
    /// Open while any handle of the array is open.
    pub open: Option<OpenVolume>,
}

/// An open volume.
#[derive(Debug, Clone)]
pub(super) struct OpenVolume {
    pub bytes: Arc<dyn Array>,
    /// Length of a region.
    pub region: u64,
}

/// A free range of this rank's region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub volume: u32,
    pub at: u64,
    pub end: u64,
}

/// The volumes of one array, on one rank.
#[derive(Debug, Default)]
pub(super) struct ArrayVolumes {
    pub volumes: Vec<Volume>,
    /// Free ranges of this rank; unknown until the volumes are opened.
    extents: Option<Vec<Extent>>,
    /// Ends of records that are no longer in the index; their space is not reused.
    forgotten: Vec<(u32, u64)>,
}

impl OpenVolume {
    pub fn new(bytes: Arc<dyn Array>, regions: u64) -> Result<Self> {
        let len = bytes.spec()?.shape.first().copied().unwrap_or(0);
        Ok(Self { bytes, region: len / regions })
    }
}

impl ArrayVolumes {
    pub fn volume(&self, number: u32) -> Option<&Volume> {
        self.volumes.iter().find(|volume| volume.number == number)
    }

    /// The number of the next volume.
    pub fn next_number(&self) -> u32 {
        self.volumes.iter().map(|volume| volume.number + 1).max().unwrap_or(0)
    }

    /// Total length of a rank's regions.
    pub fn of_rank(&self, ranks: u64) -> u64 {
        let of = |volume: &Volume| volume.open.as_ref().map_or(0, |open| open.region * volume.regions / ranks);
        self.volumes.iter().map(of).sum()
    }

    /// Remembers the ends of entries that will be discarded.
    pub fn forget<'a>(&mut self, entries: impl Iterator<Item = &'a Arc<Entry>>, ends: impl Fn(&Entry) -> u64) {
        if self.extents.is_none() {
            self.forgotten.extend(entries.filter_map(|entry| match entry.place {
                DataLocation::Log { volume, offset } => Some((volume, offset.saturating_add(ends(entry)))),
                DataLocation::Array => None,
            }));
        }
    }

    /// Adds a new volume, with a region for every rank.
    pub fn add(&mut self, number: u32, regions: u64, open: OpenVolume, rank: u64) {
        let begin = rank * open.region;
        let extent = Extent { volume: number, at: begin, end: begin + open.region };
        self.extents.get_or_insert_default().push(extent);
        self.volumes.push(Volume { number, regions, open: Some(open) });
    }

    /// Checks the locations of entries, and computes the free ranges of this rank on first use.
    pub fn find_room(&mut self, placed: &[(u32, u64, u64)], rank: u64, ranks: u64) -> Result<()> {
        let mut ends: HashMap<(u32, u64), u64> = HashMap::new();
        let forgotten = self.forgotten.iter().map(|&(volume, end)| (volume, end.saturating_sub(1), 1));
        for (volume, offset, len) in placed.iter().copied().chain(forgotten) {
            let found = self.volume(volume).and_then(|found| Some((found, found.open.as_ref()?)));
            let (found, open) =
                found.ok_or_else(|| corrupt(format!("it names volume {volume}, which is not there")))?;
            let end = offset.checked_add(len).filter(|end| *end <= open.region * found.regions);
            let end = end.ok_or_else(|| corrupt(format!("it names bytes beyond the end of volume {volume}")))?;
            let last = ends.entry((volume, end.saturating_sub(1) / open.region.max(1))).or_default();
            *last = end.max(*last);
        }
        if self.extents.is_some() {
            return Ok(());
        }
        let mut extents = Vec::new();
        for volume in &self.volumes {
            let Some(open) = &volume.open else { continue };
            for region in (rank..volume.regions).step_by(ranks as usize) {
                let (begin, end) = (region * open.region, (region + 1) * open.region);
                let at = ends.get(&(volume.number, region)).map_or(begin, |last| begin.max(*last));
                if at < end {
                    extents.push(Extent { volume: volume.number, at, end });
                }
            }
        }
        self.extents = Some(extents);
        self.forgotten = Vec::new();
        Ok(())
    }

    /// Allocates space for a record. `None` if there is none.
    pub fn reserve(&mut self, len: u64) -> Option<(u32, u64, Arc<dyn Array>)> {
        let extent = self.extents.as_mut()?.iter_mut().find(|extent| extent.end - extent.at >= len)?;
        let (volume, offset) = (extent.volume, extent.at);
        extent.at += len;
        let open = self.volume(volume)?.open.as_ref()?;
        Some((volume, offset, open.bytes.clone()))
    }
}
