//! Communicator of the processes of an MPI job.

use ::mpi::Threading;
use ::mpi::collective::{CommunicatorCollectives, Root, SystemOperation};
use ::mpi::datatype::{AsDatatype, BufferMut, Collection, Equivalence, PartitionMut, PointerMut, SystemDatatype};
use ::mpi::environment::Universe;
use ::mpi::point_to_point::{Destination as _, Source as _};
use ::mpi::raw::AsRaw;
use ::mpi::topology::{Communicator as _, SimpleCommunicator};
use hyperslab_core::{Communicator, Error, Reduce, Result};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most bytes per MPI call: MPI counts and displacements are 32-bit.
const ROUND: usize = 1 << 30;
/// Exit status of an aborted job.
const EXIT_ABORTED: i32 = 1;

/// Owner of the MPI runtime of this process. Dropping it finalises MPI; dropping it during a panic aborts the job.
pub struct MpiJob {
    universe: Universe,
    level: Threading,
}

impl MpiJob {
    /// Initialises MPI: once per process, before other threads call it.
    pub fn start() -> Result<Self> {
        let (universe, level) = ::mpi::initialize_with_threading(Threading::Multiple)
            .ok_or_else(|| Error::invalid("start MPI", "it was started before in this process"))?;
        // Serialized is enough: every communicator has a lock.
        if level < Threading::Serialized {
            return Err(Error::unsupported("start MPI", format!("it offers thread level {level:?} only"))
                .hint("use an MPI library built with thread support (MPI_THREAD_SERIALIZED or higher)"));
        }
        Ok(Self { universe, level })
    }

    /// The MPI library and its version, in one line.
    pub fn library() -> String {
        let text = ::mpi::environment::library_version().unwrap_or_default();
        text.lines().next().unwrap_or_default().split(',').next().unwrap_or_default().trim().to_owned()
    }

    /// The thread level that MPI provides, by its MPI name.
    pub fn thread_level(&self) -> String {
        format!("{:?}", self.level).to_lowercase()
    }

    /// All ranks of the job.
    pub fn world(&self) -> Arc<dyn Communicator> {
        self.world_in_rounds(ROUND)
    }

    /// All ranks of the job, moving at most `bytes` in one call of MPI: for tests of large messages without large memory.
    #[doc(hidden)]
    pub fn world_in_rounds(&self, bytes: usize) -> Arc<dyn Communicator> {
        // Duplicated, so that messages of other users of MPI cannot match ours.
        Mpi::shared(self.universe.world().duplicate(), bytes.clamp(1, ROUND))
    }
}

impl std::fmt::Debug for MpiJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MpiJob")
    }
}

impl Drop for MpiJob {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Other ranks may block on this one; MPI_Finalize would deadlock with them.
            self.universe.world().abort(EXIT_ABORTED);
        }
    }
}

/// A group of ranks of an MPI job.
pub struct Mpi {
    rank: usize,
    size: usize,
    /// Most bytes per MPI call.
    round: usize,
    /// One call at a time, as thread level "serialized" demands.
    comm: Mutex<SimpleCommunicator>,
}

// SAFETY: the handle is a number or a pointer that any thread may use while MPI runs with at least thread level
// "serialized" (checked at the start) and calls do not overlap (the lock).
unsafe impl Send for Mpi {}
// SAFETY: as above.
unsafe impl Sync for Mpi {}

impl Mpi {
    fn shared(comm: SimpleCommunicator, round: usize) -> Arc<dyn Communicator> {
        Arc::new(Self { rank: comm.rank() as usize, size: comm.size() as usize, round, comm: Mutex::new(comm) })
    }

    /// Most bytes that one pair of ranks exchanges per call.
    fn share(&self) -> u64 {
        (self.round / self.size).max(1) as u64
    }

    fn lock(&self) -> MutexGuard<'_, SimpleCommunicator> {
        self.comm.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All ranks' `mine`, in rank order.
    fn gather_numbers(&self, mine: &[u64]) -> Vec<u64> {
        let mut all = vec![0; mine.len() * self.size];
        self.lock().all_gather_into(mine, &mut all[..]);
        all
    }
}

impl std::fmt::Debug for Mpi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mpi(rank {} of {})", self.rank, self.size)
    }
}

/// The bytes of a message of `len` bytes that are sent in round `round`, at most `most` per round.
fn part_of_round(len: u64, round: u64, most: u64) -> std::ops::Range<usize> {
    let begin = (round * most).min(len);
    begin as usize..(begin + most).min(len) as usize
}

/// An empty slice of Rust may point to address 1, which OpenMPI takes for MPI_IN_PLACE; this one never does.
fn at_an_address(data: &[u8]) -> &[u8] {
    static SOMEWHERE: [u8; 1] = [0];
    if data.is_empty() { &SOMEWHERE[..0] } else { data }
}

/// A buffer of `len` bytes whose address is never one of MPI's special values, even if it is empty.
fn room(len: usize) -> Vec<u8> {
    let mut room = Vec::with_capacity(len.max(1));
    room.resize(len, 0);
    room
}

/// An uninitialised receive buffer.
struct Room<'a>(&'a mut [MaybeUninit<u8>]);

// SAFETY: `MaybeUninit<u8>` has the layout of a byte.
unsafe impl AsDatatype for Room<'_> {
    type Out = SystemDatatype;

    fn as_datatype(&self) -> SystemDatatype {
        u8::equivalent_datatype()
    }
}

// SAFETY: the length of the buffer, which is at most `ROUND` and so fits.
unsafe impl Collection for Room<'_> {
    fn count(&self) -> i32 {
        self.0.len() as i32
    }
}

// SAFETY: the address of the borrowed buffer.
unsafe impl PointerMut for Room<'_> {
    fn pointer_mut(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }
}

// SAFETY: the three above describe the same memory, which MPI only writes to.
unsafe impl BufferMut for Room<'_> {}

/// Counts and displacements of parts that follow each other without gaps.
fn places(lengths: impl Iterator<Item = usize>) -> (Vec<i32>, Vec<i32>) {
    let mut next = 0;
    lengths
        .map(|len| {
            let at = next;
            next += len as i32;
            (len as i32, at)
        })
        .unzip()
}

/// Appends the bytes each sender sent in this round to its message.
fn append(messages: &mut [Vec<u8>], received: &[u8], counts: &[i32]) {
    let mut rest = received;
    for (message, &count) in messages.iter_mut().zip(counts) {
        let (part, more) = rest.split_at(count as usize);
        message.extend_from_slice(part);
        rest = more;
    }
}

impl Communicator for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn one_process(&self) -> bool {
        self.size == 1
    }

    fn mpi_handle(&self) -> Option<i32> {
        // SAFETY: the communicator is live, and converting it touches nothing.
        Some(unsafe { ::mpi::ffi::RSMPI_Comm_c2f(self.lock().as_raw()) })
    }

    fn barrier(&self) -> Result<()> {
        self.lock().barrier();
        Ok(())
    }

    fn broadcast(&self, root: usize, data: &mut Vec<u8>) -> Result<()> {
        if root >= self.size {
            return Err(Error::invalid("broadcast", format!("the root is rank {root} of {}", self.size)));
        }
        let comm = self.lock();
        let process = comm.process_at_rank(root as i32);
        let mut len = data.len() as u64;
        process.broadcast_into(&mut len);
        data.resize(len as usize, 0);
        data.chunks_mut(self.round).for_each(|piece| process.broadcast_into(piece));
        Ok(())
    }

    fn all_gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        let lengths = self.gather_numbers(&[mine.len() as u64]);
        let most = self.share();
        let rounds = lengths.iter().map(|len| len.div_ceil(most)).max().unwrap_or(0);
        let mut all: Vec<Vec<u8>> = lengths.iter().map(|len| Vec::with_capacity(*len as usize)).collect();
        for round in 0..rounds {
            let (counts, offsets) = places(lengths.iter().map(|&len| part_of_round(len, round, most).len()));
            let mut received = room(counts.iter().map(|&n| n as usize).sum());
            let part = part_of_round(mine.len() as u64, round, most);
            let mut into = PartitionMut::new(&mut received[..], &counts[..], &offsets[..]);
            self.lock().all_gather_varcount_into(at_an_address(&mine[part]), &mut into);
            append(&mut all, &received, &counts);
        }
        Ok(all)
    }

    fn all_to_all(&self, parts: &mut Vec<Vec<u8>>, received: &mut Vec<Vec<u8>>) -> Result<()> {
        if parts.len() != self.size {
            return Err(Error::invalid("all to all", format!("{} parts for {} ranks", parts.len(), self.size)));
        }
        let comm = self.lock();
        let sizes: Vec<u64> = parts.iter().map(|part| part.len() as u64).collect();
        let mut coming = vec![0u64; self.size];
        comm.all_to_all_into(&sizes[..], &mut coming[..]);
        // The own part is moved; the others are sent and received in place, without staging copies.
        received.resize_with(self.size, Vec::new);
        let own = std::mem::take(&mut parts[self.rank]);
        coming[self.rank] = 0;
        let mut rooms: Vec<(usize, Room<'_>)> = Vec::new();
        for (from, (message, &len)) in received.iter_mut().zip(&coming).enumerate() {
            message.clear();
            message.reserve(len as usize);
            let room = &mut message.spare_capacity_mut()[..len as usize];
            rooms.extend(room.chunks_mut(self.round).map(|piece| (from, Room(piece))));
        }
        let sends = parts.iter().map(|part| part.len().div_ceil(self.round)).sum();
        ::mpi::request::multiple_scope(rooms.len(), |scope, receives| {
            for (from, room) in &mut rooms {
                receives.add(comm.process_at_rank(*from as i32).immediate_receive_into(scope, room));
            }
            ::mpi::request::multiple_scope(sends, |scope, sends| {
                for (to, part) in parts.iter().enumerate() {
                    let receiver = comm.process_at_rank(to as i32);
                    part.chunks(self.round).for_each(|piece| {
                        sends.add(receiver.immediate_send(scope, piece));
                    });
                }
                receives.wait_all(&mut Vec::new());
                sends.wait_all(&mut Vec::new());
            });
        });
        for (message, len) in received.iter_mut().zip(coming) {
            // SAFETY: all `len` bytes of the spare capacity have been received into.
            unsafe { message.set_len(len as usize) };
        }
        parts[self.rank] = std::mem::replace(&mut received[self.rank], own);
        Ok(())
    }

    fn all_reduce(&self, values: &mut [u64], how: Reduce) -> Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        let mine = values.to_vec();
        self.lock().all_reduce_into(&mine[..], values, operation(how));
        Ok(())
    }

    fn all_reduce_f64(&self, values: &mut [f64], how: Reduce) -> Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        let mine = values.to_vec();
        self.lock().all_reduce_into(&mine[..], values, operation(how));
        // MPI may sum in a different order on each rank; rank 0's result is made everyone's.
        let comm = self.lock();
        comm.process_at_rank(0).broadcast_into(values);
        Ok(())
    }

    fn duplicate(&self) -> Result<Arc<dyn Communicator>> {
        Ok(Self::shared(self.lock().duplicate(), self.round))
    }

    fn many_threads(&self) -> bool {
        ::mpi::environment::threading_support() == Threading::Multiple
    }

    fn split_by_node(&self) -> Result<Arc<dyn Communicator>> {
        Ok(Self::shared(self.lock().split_shared(self.rank as i32), self.round))
    }

    /// Prints the reason and aborts the whole job: MPI cannot cancel a collective call that other ranks are blocked in.
    fn abort(&self, reason: &Error) {
        let mut message = reason.to_string();
        message.push('\n');
        // A closed standard error does not keep the job from being aborted.
        let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("rank {}: {message}", self.rank).as_bytes());
        // Without the lock: another thread of this rank may hold it, blocked in a collective call that never completes.
        SimpleCommunicator::world().abort(EXIT_ABORTED);
    }
}

fn operation(how: Reduce) -> SystemOperation {
    match how {
        Reduce::Sum => SystemOperation::sum(),
        Reduce::Min => SystemOperation::min(),
        Reduce::Max => SystemOperation::max(),
    }
}
