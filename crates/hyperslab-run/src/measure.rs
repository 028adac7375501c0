//! What one rank spent its time on. Bounded memory however many steps there are.

use crate::clock::Clock;
use hdrhistogram::Histogram;
use hyperslab_core::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A kind of timed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Opening or creating a container.
    OpenFile,
    /// Creating a group.
    Group,
    /// Creating an array.
    Create,
    /// Opening an array.
    Open,
    /// Writing elements.
    Write,
    /// Reading elements.
    Read,
    /// Changing a shape.
    Resize,
    /// Setting an attribute.
    Attribute,
    /// Flushing a container.
    Flush,
    /// Closing an array.
    CloseArray,
    /// Closing a container.
    CloseFile,
    /// Waiting for other ranks.
    Barrier,
}

impl Operation {
    const ALL: [Self; 12] = [
        Self::OpenFile,
        Self::Group,
        Self::Create,
        Self::Open,
        Self::Write,
        Self::Read,
        Self::Resize,
        Self::Attribute,
        Self::Flush,
        Self::CloseArray,
        Self::CloseFile,
        Self::Barrier,
    ];

    /// The name used in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenFile => "open_file",
            Self::Group => "group",
            Self::Create => "create",
            Self::Open => "open",
            Self::Write => "write",
            Self::Read => "read",
            Self::Resize => "resize",
            Self::Attribute => "attribute",
            Self::Flush => "flush",
            Self::CloseArray => "close_array",
            Self::CloseFile => "close_file",
            Self::Barrier => "barrier",
        }
    }
}

/// How long the calls of one kind took, in seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Number of calls.
    pub count: u64,
    /// Sum.
    pub total: f64,
    /// Fastest.
    pub min: f64,
    /// Half were at most this long (within 0.1 %).
    pub p50: f64,
    /// Nine tenths were at most this long.
    pub p90: f64,
    /// All but one in a hundred.
    pub p99: f64,
    /// Slowest.
    pub max: f64,
}

/// One rank's times in seconds and bytes, of one repetition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RankMeasurement {
    /// The rank.
    pub rank: usize,
    /// From the first step to the end of the last.
    pub wall: f64,
    /// Wall time without emulated compute, data preparation and checking, and without waiting for other ranks' such work.
    pub observed: f64,
    /// Emulated compute.
    pub compute: f64,
    /// Making the data to write and clearing buffers to read into.
    pub prepare: f64,
    /// Comparing what was read.
    pub check: f64,
    /// The transfer calls.
    pub raw: f64,
    /// Creating and opening groups and arrays, attributes, shapes, closing arrays.
    pub metadata: f64,
    /// Opening or creating containers.
    pub open_file: f64,
    /// Flushes.
    pub flush: f64,
    /// Closing containers.
    pub close_file: f64,
    /// Waiting in barriers.
    pub barrier: f64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Steps taken.
    pub steps: u64,
    /// Every kind of call that happened.
    pub operations: BTreeMap<String, Latency>,
}

/// Collects one rank's times while it runs.
pub(crate) struct Recorder {
    rank: usize,
    clock: Arc<Clock>,
    histograms: [Option<Histogram<u64>>; Operation::ALL.len()],
    totals: [Duration; Operation::ALL.len()],
    pub compute: Duration,
    pub prepare: Duration,
    pub check: Duration,
    pub bytes_written: u64,
    pub bytes_read: u64,
    pub steps: u64,
    samples: Option<BufWriter<File>>,
}

impl Recorder {
    /// Measures by `clock`. With `samples`, every call is also written to that file as CSV.
    pub fn start(rank: usize, clock: Arc<Clock>, samples: Option<&Path>) -> Result<Self> {
        let samples = samples.map(open_samples).transpose()?;
        Ok(Self {
            rank,
            clock,
            histograms: std::array::from_fn(|_| None),
            totals: [Duration::ZERO; Operation::ALL.len()],
            compute: Duration::ZERO,
            prepare: Duration::ZERO,
            check: Duration::ZERO,
            bytes_written: 0,
            bytes_read: 0,
            steps: 0,
            samples,
        })
    }

    /// Times one call. A failed call is not counted.
    pub fn time<T>(&mut self, operation: Operation, bytes: u64, call: impl FnOnce() -> Result<T>) -> Result<T> {
        let from = self.clock.counted();
        let value = call()?;
        let took = self.clock.counted().saturating_sub(from);
        let index = operation as usize;
        self.totals[index] += took;
        if self.histograms[index].is_none() {
            // Grows with the longest time met: some 30 KiB for a second, 100 KiB for an hour.
            let new = Histogram::new(3).map_err(|e| Error::invalid("measure", e.to_string()))?;
            self.histograms[index] = Some(new);
        }
        if let Some(histogram) = &mut self.histograms[index] {
            let nanoseconds = took.as_nanos().min(u128::from(u64::MAX)) as u64;
            histogram.record(nanoseconds).map_err(|e| Error::invalid("measure", e.to_string()))?;
        }
        match operation {
            Operation::Write => self.bytes_written += bytes,
            Operation::Read => self.bytes_read += bytes,
            _ => {}
        }
        if let Some(samples) = &mut self.samples {
            let at = from.as_secs_f64();
            writeln!(samples, "{},{},{at:.9},{:.9},{bytes}", self.steps, operation.name(), took.as_secs_f64())
                .map_err(|e| Error::io("write samples", e))?;
        }
        Ok(value)
    }

    /// Ends the measurement.
    pub fn finish(mut self) -> Result<RankMeasurement> {
        let (wall, observed) = (self.clock.wall(), self.clock.counted());
        if let Some(mut samples) = self.samples.take() {
            samples.flush().map_err(|e| Error::io("write samples", e))?;
        }
        let total = |operation: Operation| self.totals[operation as usize].as_secs_f64();
        use Operation as O;
        let metadata = [O::Group, O::Create, O::Open, O::Resize, O::Attribute, O::CloseArray];
        let operations = O::ALL
            .into_iter()
            .filter_map(|o| self.histograms[o as usize].as_ref().map(|h| (o.name().to_owned(), summary(h, total(o)))))
            .collect();
        Ok(RankMeasurement {
            rank: self.rank,
            wall: wall.as_secs_f64(),
            observed: observed.as_secs_f64(),
            compute: self.compute.as_secs_f64(),
            prepare: self.prepare.as_secs_f64(),
            check: self.check.as_secs_f64(),
            raw: total(O::Write) + total(O::Read),
            metadata: metadata.into_iter().map(total).sum(),
            open_file: total(O::OpenFile),
            flush: total(O::Flush),
            close_file: total(O::CloseFile),
            barrier: total(O::Barrier),
            bytes_written: self.bytes_written,
            bytes_read: self.bytes_read,
            steps: self.steps,
            operations,
        })
    }
}

fn open_samples(path: &Path) -> Result<BufWriter<File>> {
    let file = File::create(path).map_err(|e| Error::io("write samples", e).target(path.display()))?;
    let mut samples = BufWriter::new(file);
    writeln!(samples, "step,operation,start_seconds,seconds,bytes").map_err(|e| Error::io("write samples", e))?;
    Ok(samples)
}

fn summary(histogram: &Histogram<u64>, total: f64) -> Latency {
    let seconds = |ns: u64| ns as f64 * 1e-9;
    Latency {
        count: histogram.len(),
        total,
        min: seconds(histogram.min()),
        p50: seconds(histogram.value_at_quantile(0.5)),
        p90: seconds(histogram.value_at_quantile(0.9)),
        p99: seconds(histogram.value_at_quantile(0.99)),
        max: seconds(histogram.max()),
    }
}
