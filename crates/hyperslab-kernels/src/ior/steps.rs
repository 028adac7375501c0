//! The steps of the pattern, made as they are needed.

use super::order::{Call, Calls};
use super::{Ior, Readers};
use crate::shared_file;
use hyperslab_core::workload::{Step, StepSource, Steps};
use hyperslab_core::{Durability, MemoryLayout, OpenMode, Result, Selection, TransferMode};
use std::sync::Arc;

/// What is done with the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// It is made and written.
    Create,
    /// It is there, and written again.
    Overwrite,
    /// It is read.
    Read,
}

#[derive(Debug)]
pub struct Playing {
    pub ior: Ior,
    pub direction: Direction,
    pub readers: Readers,
}

/// The one array that is open at a time.
const SLOT: u32 = 0;

/// What a rank does next: calls that ranks make together are filled up with empty ones where a rank has fewer.
enum Next {
    Call(Call),
    Nothing,
}

impl Playing {
    fn writes(&self) -> bool {
        self.direction != Direction::Read
    }

    fn open_array(&self, segment: u64) -> Step {
        let name = self.ior.layout.name(segment);
        match self.direction {
            Direction::Create => Step::Create { slot: SLOT, file: 0, array: 0, name },
            _ => Step::Open { slot: SLOT, file: 0, array: 0, name },
        }
    }

    fn before(&self) -> Vec<Step> {
        let mut steps = match self.direction {
            Direction::Create => shared_file::create(self.ior.seed),
            Direction::Overwrite => {
                let open = Step::OpenFile { file: 0, how: OpenMode::Update };
                vec![Step::Barrier, open, shared_file::seed_tag(self.ior.seed as i64)]
            }
            Direction::Read => shared_file::open(),
        };
        steps.push(self.open_array(0));
        steps.extend(self.ior.barriers.then_some(Step::Barrier));
        steps
    }

    fn after(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.writes() && self.ior.sync_at_end {
            steps.push(Step::Flush { file: 0, how: Durability::Durable });
        }
        steps.extend(self.ior.barriers.then_some(Step::Barrier));
        steps.extend([Step::CloseArray { slot: SLOT }, Step::CloseFile { file: 0 }, Step::Barrier]);
        steps
    }

    /// The steps around call number `number` of a rank.
    fn call(&self, number: u64, next: Next, memory: &Arc<MemoryLayout>) -> Result<Vec<Step>> {
        let ior = &self.ior;
        let mut steps = Vec::with_capacity(4);
        let selection = match next {
            Next::Nothing => Selection::empty(ior.layout.shape(ior).len()),
            Next::Call(call) => {
                let per_segment = ior.block / ior.transfer;
                let begins = if ior.gather > 1 { true } else { number.is_multiple_of(per_segment) };
                if begins && matches!(ior.layout, super::Layout::WordsPerSegment) && call.segment > 0 {
                    steps.extend([Step::CloseArray { slot: SLOT }, self.open_array(call.segment)]);
                }
                if begins && ior.order == super::Order::Sequential {
                    steps.push(Step::Epoch { number: call.segment });
                }
                let (length, distance) =
                    if ior.gather > 1 { (ior.block, ior.segment_bytes()) } else { (ior.transfer, ior.transfer) };
                ior.layout.selection(ior, call.offset, length, call.blocks, distance)?
            }
        };
        if self.direction == Direction::Create && ior.layout.grows() {
            steps.extend(self.growth(number));
        }
        let (memory, transfer): (_, TransferMode) = (memory.clone(), ior.mode);
        if self.writes() {
            steps.push(Step::Write { slot: SLOT, selection, memory, transfer });
            steps.extend(ior.sync_each_write.then_some(Step::Flush { file: 0, how: Durability::Durable }));
        } else {
            steps.push(Step::Read { slot: SLOT, selection, memory, transfer });
        }
        steps.extend((ior.compute > 0).then_some(Step::Compute { nanoseconds: ior.compute }));
        Ok(steps)
    }

    /// Makes room for call number `number` of all ranks, if there is none yet.
    fn growth(&self, number: u64) -> Option<Step> {
        let ior = &self.ior;
        let end = |number: u64| {
            let last = if ior.file_per_rank { 0 } else { ior.ranks - 1 };
            if ior.gather > 1 {
                let segments = ((number + 1) * ior.gather).min(ior.segments);
                return segments * ior.segment_bytes();
            }
            let per_segment = ior.block / ior.transfer;
            ior.offset(last, number / per_segment, number % per_segment) + ior.transfer
        };
        let shape = ior.layout.grown(end(number));
        let before = number.checked_sub(1).map_or(ior.layout.first_shape(), |before| ior.layout.grown(end(before)));
        (before != shape).then_some(Step::Resize { slot: SLOT, shape })
    }
}

impl StepSource for Playing {
    fn steps(&self, rank: usize) -> Result<Steps<'_>> {
        let ior = &self.ior;
        let packed = Arc::new(MemoryLayout::packed());
        let calls = Calls::of(ior, self.readers.of(rank, ior.ranks))?;
        let missing = if ior.in_step() { Calls::most(ior).saturating_sub(calls.total()) } else { 0 };
        let all = calls.map(Next::Call).chain((0..missing).map(|_| Next::Nothing));
        let during = (0..).zip(all).flat_map(move |(number, next)| match self.call(number, next, &packed) {
            Ok(steps) => steps.into_iter().map(Ok).collect::<Vec<_>>(),
            Err(error) => vec![Err(error)],
        });
        Ok(Box::new(self.before().into_iter().map(Ok).chain(during).chain(self.after().into_iter().map(Ok))))
    }
}
