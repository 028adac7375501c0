//! What a transfer would do, without doing it.

use crate::control::Control;
use crate::grouping::{Group, Grouping, Sink, WORTH_A_CALL};
use crate::index::Known;
use crate::memory::is_packed;
use crate::plain;
use crate::plane::Plane;
use hyperslab_core::{ChunkGrid, ElementMap, MemoryLayout, Result, Selection, units};
use std::fmt;

/// What a transfer would do, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Explanation {
    /// Bytes that were asked for.
    pub wanted: u64,
    /// Bytes that would be moved between file and memory.
    pub moved: u64,
    /// Calls of the system that would move them.
    pub calls: u64,
    /// Chunks that the selection touches; 0 for an array in one piece.
    pub chunks: u64,
    /// In words.
    pub steps: Vec<String>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |n: u64, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
        write!(
            f,
            "{} wanted, {} moved in {}",
            units::display_size(self.wanted),
            units::display_size(self.moved),
            plural(self.calls, "call")
        )?;
        if self.chunks > 0 {
            write!(f, ", {} touched", plural(self.chunks, "chunk"))?;
        }
        self.steps.iter().try_for_each(|step| write!(f, "\n- {step}"))
    }
}

/// Counts groups instead of moving them.
#[derive(Default)]
struct Counting {
    calls: u64,
    moved: u64,
    joined: u64,
}

impl Sink for Counting {
    fn take(&mut self, group: &mut Group) -> Result<()> {
        self.calls += 1;
        self.moved += group.end - group.start;
        self.joined += u64::from(group.pairs.len() > 1 || group.pairs.iter().any(|pair| pair.file.count > 1));
        Ok(())
    }
}

impl Plane {
    /// What reading or writing the selected elements from memory of this layout would do.
    pub fn explain(
        &self,
        control: &dyn Control,
        selection: &Selection,
        layout: &MemoryLayout,
        writes: bool,
    ) -> Result<Explanation> {
        let extent = self.extent();
        selection.check_inside(&extent.shape)?;
        let mut out = Explanation { wanted: selection.len() * self.element, ..Explanation::default() };
        if selection.is_empty() {
            out.steps.push("nothing is selected".into());
            return Ok(out);
        }
        let whole = layout.is_packed() || layout.plan(&self.dtype)?.covers_element();
        if !is_packed(layout, &self.dtype)? {
            out.steps.push(match ElementMap::new(layout, &self.dtype, selection.len())? {
                Some(_) => "elements are rearranged between memory and buffers of 256 KiB".into(),
                None => "the memory is irregular: elements go through one packed buffer".to_owned(),
            });
        }
        match &extent.grid {
            None => self.explain_contiguous(control, &extent.shape, selection, whole, writes, &mut out)?,
            Some(grid) => {
                self.prepare_index(grid, control, selection)?;
                if self.pipeline.is_plain() {
                    self.explain_plain(grid, selection, whole, writes, &mut out)?;
                } else {
                    self.explain_coded(grid, selection, whole, writes, &mut out)?;
                }
            }
        }
        Ok(out)
    }

    fn explain_contiguous(
        &self,
        control: &dyn Control,
        shape: &[u64],
        selection: &Selection,
        whole: bool,
        writes: bool,
        out: &mut Explanation,
    ) -> Result<()> {
        let Some(base) = self.address(control, false)? else {
            out.steps.push(match writes {
                true => "the array has no place in the file yet: libhdf5 gives it one first".into(),
                false => "the array has no place in the file yet: libhdf5 answers with fill values".to_owned(),
            });
            return Ok(());
        };
        out.steps.push(format!("the array lies in one piece at byte {base} of the file"));
        let keeping = writes && self.must_keep(shape, selection, whole)?;
        let mut counting = Counting::default();
        let mut grouping = Grouping::new(gap(writes, keeping), &mut counting);
        plain::for_each_run(selection, shape, self.element, base, &mut |pair| grouping.add(pair))?;
        grouping.finish()?;
        self.count(&counting, keeping, out);
        Ok(())
    }

    fn explain_plain(
        &self,
        grid: &ChunkGrid,
        selection: &Selection,
        whole: bool,
        writes: bool,
        out: &mut Explanation,
    ) -> Result<()> {
        let keeping = writes && self.must_keep(grid.shape(), selection, whole)?;
        let (mut counting, mut absent, mut somewhere) = (Counting::default(), 0, 0);
        let mut grouping = Grouping::new(gap(writes, keeping), &mut counting);
        for part in selection.split_by_chunk(grid)? {
            let part = part?;
            out.chunks += 1;
            match self.known(grid, &part)?.1 {
                Known::At(place) => plain::add_part(&mut grouping, &part, self.element, place.address)?,
                Known::Absent => absent += 1,
                Known::Somewhere(_) => somewhere += 1,
            }
        }
        grouping.finish()?;
        out.steps.push("chunks have no filters: each is moved as an array in one piece, at its own place".into());
        self.count(&counting, keeping, out);
        if absent > 0 {
            out.steps.push(match writes {
                true => format!("{absent} chunks are new: made whole, with fill values, and handed to libhdf5"),
                false => format!("{absent} chunks were never written: fill values"),
            });
        }
        if somewhere > 0 {
            out.steps.push(format!("the places of {somewhere} chunks are not known yet: left to libhdf5"));
        }
        Ok(())
    }

    fn explain_coded(
        &self,
        grid: &ChunkGrid,
        selection: &Selection,
        whole: bool,
        writes: bool,
        out: &mut Explanation,
    ) -> Result<()> {
        let (mut absent, mut cached, mut partly) = (0, 0, 0);
        for part in selection.split_by_chunk(grid)? {
            let part = part?;
            out.chunks += 1;
            let (number, known) = self.known(grid, &part)?;
            let complete = whole && part.covers_chunk;
            partly += u64::from(!complete);
            if self.state().cache.get(number).is_some() {
                cached += 1;
                continue;
            }
            match known {
                Known::Absent => {
                    absent += 1;
                    out.moved += if writes { self.chunk_bytes as u64 } else { 0 };
                    out.calls += u64::from(writes);
                }
                _ if writes && complete => {
                    out.calls += 1;
                    out.moved += self.chunk_bytes as u64;
                }
                Known::At(place) => {
                    out.calls += 1;
                    out.moved += place.bytes;
                }
                Known::Somewhere(_) => out.calls += 1,
            }
        }
        let threads = self.threads;
        out.steps.push(match writes {
            true => {
                format!("chunks are coded whole on up to {threads} threads, and stored by libhdf5 from the calling one; sizes are those before coding")
            }
            false => format!("stored chunks are read whole and decoded on up to {threads} threads"),
        });
        if partly > 0 {
            out.steps.push(match writes {
                true => format!("{partly} chunks are changed in part: kept decoded until flush, close or lack of room"),
                false => format!("{partly} chunks are wanted in part: kept decoded, they may be wanted again"),
            });
        }
        if cached > 0 {
            out.steps.push(format!("{cached} chunks are kept decoded already"));
        }
        if absent > 0 {
            out.steps.push(format!("{absent} chunks were never written: fill values"));
        }
        Ok(())
    }

    fn count(&self, counting: &Counting, keeping: bool, out: &mut Explanation) {
        out.calls += counting.calls * if keeping { 2 } else { 1 };
        out.moved += counting.moved * if keeping { 2 } else { 1 };
        if keeping {
            out.steps.push("bytes between the selected ones are read first and written back with them".into());
        } else if counting.joined > 0 {
            out.steps.push(format!(
                "{} of the calls move neighbours together: a gap below {} costs less than another call",
                counting.joined,
                units::display_size(WORTH_A_CALL)
            ));
        }
    }
}

fn gap(writes: bool, keeping: bool) -> u64 {
    if writes && !keeping { 0 } else { WORTH_A_CALL }
}
