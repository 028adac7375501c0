//! Collective drain within one machine: the lists of all ranks are merged, and few ranks read from all logs and write for
//! all. Threads of one process share their lists; processes send them to the writing ranks. No elements are sent.

use super::array_log::{ArrayLog, DrainStats, DrainThread};
use super::drain::{Source, drain_some};
use super::log_state::LogState;
use super::partition::shares;
use super::pending_writes::{PendingWrite, PendingWrites};
use super::reorder::{Counts, Entry, ReorderLimits, Requests};
use crate::background::{READERS, catch_panic};
use crate::twophase::write_in_parts;
use hyperslab_core::{ArraySpec, Error, ErrorKind, Reduce, Result, Run, Selection, agree};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Number of writing ranks. One file takes little more than one writer at a time; meanwhile the other reads from the logs.
const WRITERS: usize = READERS;

/// Maximum memory of the lists of all processes; beyond it, elements are exchanged instead.
const MOST_LISTED: u64 = 64 << 20;
/// Maximum number of files that a process opens for it.
const MOST_FILES: u64 = 512;

/// How ranks share their lists.
#[derive(Debug)]
pub(super) enum Group {
    /// Threads: shared memory, by rank.
    Threads(Mutex<Vec<Option<Arc<PublishedWrites>>>>),
    /// Processes that can read each other's logs.
    Processes,
}

/// The pending writes of one rank, published to the others.
#[derive(Debug)]
pub(super) struct PublishedWrites {
    batch: Option<Arc<PendingWrites>>,
    entries: Vec<Entry>,
    /// What it drained for all ranks.
    counts: OnceLock<Counts>,
}

impl Group {
    pub fn threads(ranks: usize) -> Self {
        Self::Threads(Mutex::new(vec![None; ranks]))
    }

    fn show(&self, rank: usize, what: Option<Arc<PublishedWrites>>) {
        if let Self::Threads(shown) = self {
            shown.lock().unwrap_or_else(PoisonError::into_inner)[rank] = what;
        }
    }
}

impl PublishedWrites {
    fn new(batch: Option<Arc<PendingWrites>>) -> Result<Arc<Self>> {
        let entries = batch.as_ref().map_or_else(|| Ok(Vec::new()), |batch| batch.entries())?;
        Ok(Arc::new(Self { batch, entries, counts: OnceLock::new() }))
    }

    fn writes(&self) -> u64 {
        self.batch.as_ref().map_or(0, |batch| batch.writes.len() as u64)
    }
}

/// The merged list of several ranks; writes of higher ranks are later.
struct Merged<'a> {
    spec: &'a ArraySpec,
    /// Each with the number of its first write.
    batches: Vec<(u32, &'a PendingWrites)>,
}

impl Merged<'_> {
    fn find(&self, number: u32) -> (&PendingWrites, u32) {
        let at = self.batches.partition_point(|(first, _)| *first <= number);
        let (first, batch) = self.batches[at - 1];
        (batch, number - first)
    }
}

impl Requests for Merged<'_> {
    fn runs(&self, number: u32) -> Result<Box<dyn Iterator<Item = Run> + '_>> {
        let (batch, number) = self.find(number);
        batch.runs(number)
    }
}

impl Source for Merged<'_> {
    fn spec(&self) -> &ArraySpec {
        self.spec
    }

    fn write(&self, number: u32) -> &PendingWrite {
        let (batch, number) = self.find(number);
        batch.write(number)
    }
}

impl LogState {
    /// Whether the lists of all ranks are short enough, and their files few enough. Collective, with the same result on
    /// all.
    pub(super) fn is_shareable(&self, group: &Group, array_log: &ArrayLog) -> Result<bool> {
        if matches!(group, Group::Threads(_)) {
            return Ok(true);
        }
        let mut all = [array_log.listed(), self.staging.files()];
        self.comm.all_reduce(&mut all, Reduce::Sum)?;
        let [listed, files] = all;
        Ok(listed <= MOST_LISTED && files <= MOST_FILES)
    }

    /// Drains an array without chunks. Collective. A rank that failed before reports it to all.
    pub(super) fn drain_array_shared(&self, group: &Group, array_log: &ArrayLog, failed: bool) -> Result<()> {
        let rank = self.comm.rank();
        let show = || {
            if failed {
                return Err(Error::new(ErrorKind::Peer, "drain log", "the rank failed before"));
            }
            let batch = array_log.begin(DrainThread::Program, false);
            let last = batch.as_ref().and_then(|batch| batch.writes.last());
            if matches!(group, Group::Processes) && last.is_some_and(|write| !write.record.is_written_out()) {
                // A concurrent thread wrote, which other processes cannot know.
                self.staging.ensure_logged()?;
            }
            let mine = PublishedWrites::new(batch)?;
            group.show(rank, Some(mine.clone()));
            Ok(mine)
        };
        let shown = agree(&*self.comm, show().map_err(|error| error.target(&array_log.name)));
        let moved = shown.and_then(|mine| {
            let all = match group {
                Group::Threads(shown) => {
                    shown.lock().unwrap_or_else(PoisonError::into_inner).iter().flatten().cloned().collect()
                }
                Group::Processes => self.gather_lists(&mine, array_log)?,
            };
            let work = || if rank < WRITERS { self.write_partition(&all, &mine, array_log) } else { Ok(()) };
            agree(&*self.comm, catch_panic(work).and_then(|done| done).map_err(|error| error.target(&array_log.name)))?;
            self.finish_collectively(group, &all, &mine).map(|done| (mine, done))
        });
        group.show(rank, None);
        let (mine, (writes, counts)) = moved?;
        let Some(batch) = &mine.batch else { return Ok(()) };
        array_log.end(batch);
        let (bytes, memory, allows_background_io) = (batch.bytes, batch.memory, batch.allows_background_io);
        self.account(DrainStats { bytes, memory, writes, allows_background_io, counts });
        Ok(())
    }

    /// Gathers the lists of all ranks, in order, on the writing ranks. Collective.
    fn gather_lists(&self, mine: &Arc<PublishedWrites>, array_log: &ArrayLog) -> Result<Vec<Arc<PublishedWrites>>> {
        let (rank, ranks) = (self.comm.rank(), self.comm.size());
        let told = mine.batch.as_ref().map_or_else(Vec::new, |batch| batch.encode());
        let part = |to: usize| if to < WRITERS && to != rank { told.clone() } else { Vec::new() };
        let (mut parts, mut received): (Vec<Vec<u8>>, _) = ((0..ranks).map(part).collect(), Vec::new());
        self.comm.all_to_all(&mut parts, &mut received)?;
        let decode = || {
            let mut all = Vec::new();
            for (from, told) in received.iter().enumerate() {
                if from == rank {
                    all.push(mine.clone());
                } else if !told.is_empty() {
                    let batch = PendingWrites::decode(told, array_log.spec(), &mut self.staging.of_rank(from)?)?;
                    all.push(PublishedWrites::new(Some(Arc::new(batch)))?);
                }
            }
            Ok(all)
        };
        agree(&*self.comm, decode().map_err(|error: Error| error.target(&array_log.name)))
    }

    /// Ends the drain and sums its statistics over all ranks. Collective if ranks are processes.
    fn finish_collectively(
        &self,
        group: &Group,
        all: &[Arc<PublishedWrites>],
        mine: &PublishedWrites,
    ) -> Result<(u64, Counts)> {
        let counts = |shown: &PublishedWrites| shown.counts.get().copied().unwrap_or_default();
        if matches!(group, Group::Threads(_)) {
            return Ok(all.iter().fold((0, Counts::default()), |(writes, mut sum), shown| {
                sum += counts(shown);
                (writes + shown.writes(), sum)
            }));
        }
        let Counts { groups, flattened, rounds, writes } = counts(mine);
        let mut sums = [mine.writes(), groups, flattened, rounds, writes];
        self.comm.all_reduce(&mut sums, Reduce::Sum)?;
        let [all, groups, flattened, rounds, writes] = sums;
        Ok((all, Counts { groups, flattened, rounds, writes }))
    }

    /// Writes this rank's partition of the merged list.
    fn write_partition(
        &self,
        all: &[Arc<PublishedWrites>],
        mine: &PublishedWrites,
        array_log: &ArrayLog,
    ) -> Result<()> {
        let (rank, spec) = (self.comm.rank(), array_log.spec());
        let place = array_log.handle().ok_or_else(|| Error::invalid("drain log", "the array is closed"))?;
        let lists = all.iter().filter_map(|shown| Some((&**shown.batch.as_ref()?, &shown.entries[..])));
        let lists: Vec<(&PendingWrites, &[Entry])> = lists.collect();
        let bytes = self.options.shared_buffer;
        let unit = unit(&spec, bytes);
        let writes = lists.iter().flat_map(|(batch, list)| {
            let bytes = |entry: &Entry| batch.write(entry.number()).record.len();
            list.iter().map(move |entry| (entry.range().0, entry.range().1, bytes(entry)))
        });
        let share = shares(writes, unit, WRITERS.min(self.comm.size())).nth(rank);
        let Some(share) = share.filter(|share| !share.is_empty()) else { return Ok(()) };
        let limits = ReorderLimits { bytes, from: share.start, to: share.end, unit, ..ReorderLimits::default() };
        let mut write = |selection: &Selection, packed: &[u8]| {
            let write = || write_in_parts(&*place.array, &spec, selection, packed);
            self.times.work(packed.len() as u64, write)
        };
        let mut counts = Counts::default();
        let mut rest = &lists[..];
        while !rest.is_empty() {
            let (some, others) = rest.split_at(countable(rest));
            rest = others;
            let mut merged = Merged { spec: &spec, batches: Vec::new() };
            let (mut first, mut entries) = (0, Vec::new());
            for (batch, list) in some {
                let touches = |entry: &&Entry| entry.range().1 >= share.start && entry.range().0 < share.end;
                entries.extend(list.iter().filter(touches).map(|entry| entry.numbered(first + entry.number())));
                merged.batches.push((first, batch));
                first += batch.writes.len() as u32;
            }
            counts += drain_some(&merged, &mut entries, &limits, &self.pool, &mut write)?;
        }
        // Reported once, by this rank.
        let _ = mine.counts.set(counts);
        Ok(())
    }
}

/// Size of the largest whole rows, planes and so on of which several fit into `bytes`, at least one element: a contiguous
/// range between multiples of it is a single box.
fn unit(spec: &ArraySpec, bytes: u64) -> u64 {
    let element = spec.dtype.size().max(1);
    let fits = |pitch: &u64| pitch.checked_mul(element).filter(|unit| *unit > 0 && *unit <= bytes / 2);
    hyperslab_core::dims::pitches(&spec.shape).iter().find_map(fits).unwrap_or(element)
}

/// Number of leading lists whose writes can be numbered together, at least one.
fn countable(lists: &[(&PendingWrites, &[Entry])]) -> usize {
    let mut writes = 0;
    let fits = |(batch, _): &&(&PendingWrites, &[Entry])| {
        writes += batch.writes.len() as u64;
        writes < u64::from(u32::MAX)
    };
    lists.iter().take_while(fits).count().max(1)
}
