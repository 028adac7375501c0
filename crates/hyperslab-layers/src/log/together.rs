//! Ranks of one machine move their writes together: the lists of all become one, and few of them read from everyone's log and
//! write for all. Threads of one process see each other's lists; processes send them to those that write. Elements are sent by
//! nobody.

use super::batch::{Batch, Waiting};
use super::drain::{Source, drain_some};
use super::named::{Left, Mover, Named};
use super::reorder::{Counts, Entry, Limits, Requests};
use super::shares::shares;
use super::store::Store;
use crate::background::{READERS, caught};
use crate::twophase::write_in_parts;
use hyperslab_core::{ArraySpec, Error, ErrorKind, Reduce, Result, Run, Selection, agree};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// How many ranks write. One file takes little more than one at a time; meanwhile the others read from logs.
const WRITERS: usize = READERS;

/// Bytes of memory that the lists of all processes may take; longer ones stay where they are, and elements are exchanged.
const MOST_LISTED: u64 = 64 << 20;
/// Files that a process opens for it.
const MOST_FILES: u64 = 512;

/// How ranks show each other what they have.
#[derive(Debug)]
pub(super) enum Group {
    /// As threads, by rank.
    Threads(Mutex<Vec<Option<Arc<Shown>>>>),
    /// As processes that can read each other's logs.
    Processes,
}

/// What a rank has of an array.
#[derive(Debug)]
pub(super) struct Shown {
    batch: Option<Arc<Batch>>,
    entries: Vec<Entry>,
    /// What it did for all.
    counts: OnceLock<Counts>,
}

impl Group {
    pub fn threads(ranks: usize) -> Self {
        Self::Threads(Mutex::new(vec![None; ranks]))
    }

    fn show(&self, rank: usize, what: Option<Arc<Shown>>) {
        if let Self::Threads(shown) = self {
            shown.lock().unwrap_or_else(PoisonError::into_inner)[rank] = what;
        }
    }
}

impl Shown {
    fn new(batch: Option<Arc<Batch>>) -> Result<Arc<Self>> {
        let entries = batch.as_ref().map_or_else(|| Ok(Vec::new()), |batch| batch.entries())?;
        Ok(Arc::new(Self { batch, entries, counts: OnceLock::new() }))
    }

    fn writes(&self) -> u64 {
        self.batch.as_ref().map_or(0, |batch| batch.writes.len() as u64)
    }
}

/// The writes of several ranks as one list: those of a higher rank are later.
struct Merged<'a> {
    spec: &'a ArraySpec,
    /// With the number of the first write of each.
    batches: Vec<(u32, &'a Batch)>,
}

impl Merged<'_> {
    fn find(&self, number: u32) -> (&Batch, u32) {
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

    fn write(&self, number: u32) -> &Waiting {
        let (batch, number) = self.find(number);
        batch.write(number)
    }
}

impl Store {
    /// Whether the lists of all ranks are short enough, and their logs few enough, to be moved so. Collective, and the same on all.
    pub(super) fn is_shareable(&self, group: &Group, named: &Named) -> Result<bool> {
        if matches!(group, Group::Threads(_)) {
            return Ok(true);
        }
        let mut all = [named.listed(), self.staging.files()];
        self.comm.all_reduce(&mut all, Reduce::Sum)?;
        let [listed, files] = all;
        Ok(listed <= MOST_LISTED && files <= MOST_FILES)
    }

    /// Moves the writes of an array without chunks. Collective. A rank that failed before says so to all.
    pub(super) fn drain_array_shared(&self, group: &Group, named: &Named, failed: bool) -> Result<()> {
        let rank = self.comm.rank();
        let show = || {
            if failed {
                return Err(Error::new(ErrorKind::Peer, "drain log", "the rank failed before"));
            }
            let batch = named.begin(Mover::Program, false);
            let last = batch.as_ref().and_then(|batch| batch.writes.last());
            if matches!(group, Group::Processes) && last.is_some_and(|write| !write.record.is_handed_over()) {
                // Another thread wrote meanwhile, and other processes cannot see that.
                self.staging.before_moving()?;
            }
            let mine = Shown::new(batch)?;
            group.show(rank, Some(mine.clone()));
            Ok(mine)
        };
        let shown = agree(&*self.comm, show().map_err(|error| error.target(&named.name)));
        let moved = shown.and_then(|mine| {
            let all = match group {
                Group::Threads(shown) => {
                    shown.lock().unwrap_or_else(PoisonError::into_inner).iter().flatten().cloned().collect()
                }
                Group::Processes => self.hear_all(&mine, named)?,
            };
            let work = || if rank < WRITERS { self.write_share(&all, &mine, named) } else { Ok(()) };
            agree(&*self.comm, caught(work).and_then(|done| done).map_err(|error| error.target(&named.name)))?;
            self.done_by_all(group, &all, &mine).map(|done| (mine, done))
        });
        group.show(rank, None);
        let (mine, (writes, counts)) = moved?;
        let Some(batch) = &mine.batch else { return Ok(()) };
        named.end(batch);
        let (bytes, memory, allows_background_io) = (batch.bytes, batch.memory, batch.allows_background_io);
        self.account(Left { bytes, memory, writes, allows_background_io, counts });
        Ok(())
    }

    /// The lists of all processes, in the order of ranks, on those that write. Collective.
    fn hear_all(&self, mine: &Arc<Shown>, named: &Named) -> Result<Vec<Arc<Shown>>> {
        let (rank, ranks) = (self.comm.rank(), self.comm.size());
        let told = mine.batch.as_ref().map_or_else(Vec::new, |batch| batch.tell());
        let part = |to: usize| if to < WRITERS && to != rank { told.clone() } else { Vec::new() };
        let (mut parts, mut received): (Vec<Vec<u8>>, _) = ((0..ranks).map(part).collect(), Vec::new());
        self.comm.all_to_all(&mut parts, &mut received)?;
        let hear = || {
            let mut all = Vec::new();
            for (from, told) in received.iter().enumerate() {
                if from == rank {
                    all.push(mine.clone());
                } else if !told.is_empty() {
                    let batch = Batch::hear(told, named.spec(), &mut self.staging.of_rank(from)?)?;
                    all.push(Shown::new(Some(Arc::new(batch)))?);
                }
            }
            Ok(all)
        };
        agree(&*self.comm, hear().map_err(|error: Error| error.target(&named.name)))
    }

    /// How many writes all ranks had, and what became of them. Collective where ranks are processes.
    fn done_by_all(&self, group: &Group, all: &[Arc<Shown>], mine: &Shown) -> Result<(u64, Counts)> {
        let counts = |shown: &Shown| shown.counts.get().copied().unwrap_or_default();
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

    /// Writes this rank's share of what all have.
    fn write_share(&self, all: &[Arc<Shown>], mine: &Shown, named: &Named) -> Result<()> {
        let (rank, spec) = (self.comm.rank(), named.spec());
        let place = named.handle().ok_or_else(|| Error::invalid("drain log", "the array is closed"))?;
        let lists = all.iter().filter_map(|shown| Some((&**shown.batch.as_ref()?, &shown.entries[..])));
        let lists: Vec<(&Batch, &[Entry])> = lists.collect();
        let bytes = self.options.shared_buffer;
        let unit = unit(&spec, bytes);
        let writes = lists.iter().flat_map(|(batch, list)| {
            let bytes = |entry: &Entry| batch.write(entry.number()).record.len();
            list.iter().map(move |entry| (entry.range().0, entry.range().1, bytes(entry)))
        });
        let share = shares(writes, unit, WRITERS.min(self.comm.size())).nth(rank);
        let Some(share) = share.filter(|share| !share.is_empty()) else { return Ok(()) };
        let limits = Limits { bytes, from: share.start, to: share.end, unit, ..Limits::default() };
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
        // Only this rank says so, and once.
        let _ = mine.counts.set(counts);
        Ok(())
    }
}

/// Bytes of the largest whole rows, planes and so on of which several fit into `bytes`: cut between them, contiguous bytes are
/// a single box. At least an element.
fn unit(spec: &ArraySpec, bytes: u64) -> u64 {
    let element = spec.dtype.size().max(1);
    let fits = |pitch: &u64| pitch.checked_mul(element).filter(|unit| *unit > 0 && *unit <= bytes / 2);
    hyperslab_core::dims::pitches(&spec.shape).iter().find_map(fits).unwrap_or(element)
}

/// How many of the first lists can be numbered together: at least one.
fn countable(lists: &[(&Batch, &[Entry])]) -> usize {
    let mut writes = 0;
    let fits = |(batch, _): &&(&Batch, &[Entry])| {
        writes += batch.writes.len() as u64;
        writes < u64::from(u32::MAX)
    };
    lists.iter().take_while(fits).count().max(1)
}
