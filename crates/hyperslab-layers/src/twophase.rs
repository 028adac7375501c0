//! Two-phase collective buffering: `twophase(aggregators=4)/hdf5`.
//!
//! In a collective transfer ranks often access many small interleaved pieces. With this layer they first exchange data, so that
//! a few ranks, the aggregators, access the format below by few large requests. Independent transfers, all other calls, and
//! all calls of a single rank are forwarded.
//!
//! # Algorithm
//!
//! 1. Every rank checks its arguments, and all exchange what they access, or an error: an invalid argument of one rank fails
//!    all, before any data moves.
//! 2. The accessed range, from the first byte to the last in storage order, is divided into file domains of the aggregators.
//!    Storage order is row-major; chunked arrays are ordered chunk by chunk, so that a chunk has one aggregator.
//! 3. In each round an aggregator processes one window of its domain, of at most `buffer` bytes. In a write, ranks send it their
//!    pieces of the window, and it writes them by few requests; in a read, ranks request pieces, and it reads the window once
//!    and replies, while ranks request the next. If most windows are empty, empty ones are skipped. While an aggregator writes,
//!    the next round is exchanged, if the format below may be called by another thread.
//! 4. All ranks learn whether every access succeeded. A rank whose access failed returns its error, the others one of kind
//!    `Peer`. A long transfer ends early after an error, since ranks agree periodically.
//!
//! Bytes that no rank writes are never written, not even with their old value. Where the selections of several ranks overlap,
//! the highest of these ranks wins. Reads may read short gaps along.
//!
//! Until the next flush, data written collectively counts as written by the aggregators: a read by another rank before then
//! relies on the format below for visibility between ranks.
//!
//! # File domains
//!
//! * `even`: the accessed range in equal parts, one for each aggregator.
//! * `aligned`: the same, but parts begin and end at multiples of `unit`, so that no two aggregators share a stripe of
//!   the file system or a block that it locks.
//! * `static-cyclic`: unit 0 of the array belongs to the first aggregator, unit 1 to the second, and so on in turn,
//!   whatever is accessed. With as many aggregators as storage targets each aggregator meets the same target always.
//! * `group-cyclic`: aggregators in groups of `group`; each group has an aligned part of the accessed range, and units
//!   are dealt out in turn within the group. For many aggregators on few storage targets: as regular as the cyclic
//!   kind, but each aggregator stays in one region.
//!
//! For chunked arrays, units are whole chunks, as many as it takes to reach `unit`.
//!
//! # Memory
//!
//! An aggregator holds its window (`buffer` bytes; more if a unit of a cyclic kind, or a chunk, is larger), as much again for
//! the messages of that round, and once more for those received while it writes. If ranks overlap, windows shrink by the average
//! number of ranks that access a byte, so that this holds on average. A rank holds the messages of one round: at most
//! `buffer` for each aggregator, and no more than it transfers. Lists of offsets are sent with the data: a few bytes
//! for each piece, or for each row of equal pieces at equal distances. Ranks whose memory is not packed need a packed
//! copy of what they transfer, unless there is one lane (one aggregator or `static-cyclic`) and no chunks.
//!
//! # What is forwarded to the format below
//!
//! If one rank writes only some fields of its elements, or chunks have more than 1 GiB, all ranks call the format below
//! with the same collective transfer, and a diagnostic says so.

mod aggregator_round;
mod aggregators;
mod array;
mod container;
mod coverage;
mod domains;
mod exchange;
mod message;
mod options;
mod packed;
mod plan_exchange;
mod range_to_slabs;
mod receiving;
mod rounds;
mod selection_builder;
mod sending;
mod storage_cursor;
mod storage_order;
mod writer;

use crate::LayerEntry;
use container::{Shared, TwoPhaseContainer};
use hyperslab_core::{Caps, Communicator, Container, Format, OpenMode, Result, Stack, StackElement};
use options::Options;
pub(crate) use range_to_slabs::range_to_slabs;
pub(crate) use selection_builder::write_in_parts;
use std::path::Path;
use std::sync::Arc;

pub(crate) const NAME: &str = "twophase";

pub(crate) const ENTRY: LayerEntry = LayerEntry {
    name: NAME,
    about: "collective transfers by few ranks in large pieces, after an exchange between all (two-phase I/O)",
    options: options::SPECS,
    bare: &[],
    wrap,
    effect: options::effect,
    consequence: Some("transfers must be collective: all ranks make them together"),
    connector_mode: None,
    h5bench_mode: None,
};

/// The format with an exchange between ranks, as it is without options.
pub(crate) fn over(inner: Arc<dyn Format>) -> Result<Arc<dyn Format>> {
    Ok(Arc::new(TwoPhaseFormat { inner, options: Options::parse(&StackElement::plain(NAME))? }))
}

fn wrap(element: &StackElement, inner: Arc<dyn Format>, _: &Stack) -> Result<Arc<dyn Format>> {
    let options = Options::parse(element)?;
    Ok(Arc::new(TwoPhaseFormat { inner, options }))
}

/// A format whose collective transfers run in two phases.
#[derive(Debug)]
struct TwoPhaseFormat {
    inner: Arc<dyn Format>,
    options: Options,
}

#[deny(clippy::missing_trait_methods)]
impl Format for TwoPhaseFormat {
    hyperslab_core::forward!(self, self.inner, [extension, exists, remove, files]);

    fn name(&self) -> &'static str {
        NAME
    }

    fn caps(&self) -> Caps {
        let mut caps = self.inner.caps();
        caps.execution.collective = true;
        caps
    }

    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        let inner = self.inner.open(path, how, comm)?;
        let aggregators = aggregators::choose(&**comm, self.options.aggregators)?;
        Ok(Arc::new(TwoPhaseContainer { inner, shared: Shared::new(comm.clone(), self.options, aggregators) }))
    }
}
