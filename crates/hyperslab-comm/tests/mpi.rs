//! What MPI ranks promise. Starts itself under `mpirun` with 1, 2, 3 and 4 ranks; a hang is a failure.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use hyperslab_comm::MpiJob;
use hyperslab_core::{Communicator, Error, ErrorKind, Reduce, agree};
use hyperslab_testkit::under_mpi;
use std::process::ExitCode;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    if let Some(what) = under_mpi::task() {
        let job = MpiJob::start().unwrap();
        let comm = job.world();
        match what.as_str() {
            "collectives" => {
                collectives(&*comm);
                // Every message larger than a call may move.
                (1..9).for_each(|bytes| collectives(&*job.world_in_rounds(bytes)));
            }
            "error" => one_fails(&*comm),
            "abort" => one_aborts(&*comm),
            "panic" => assert!(comm.rank() > 0 || comm.size() > 9, "rank 0 panics"),
            "death" if comm.rank() == comm.size() - 1 => std::process::abort(),
            _ => {}
        }
        comm.barrier().unwrap();
        return ExitCode::SUCCESS;
    }
    for ranks in 1..=4 {
        for what in ["collectives", "error"] {
            let job = under_mpi::run(ranks, what, LIMIT).unwrap();
            assert!(job.success(), "{what} on {ranks}: {job:?}");
        }
    }
    for (what, words) in [("abort", "the disk is full"), ("panic", "rank 0 panics"), ("death", "")] {
        let job = under_mpi::run(3, what, LIMIT).unwrap();
        assert!(!job.hung && !job.status.success(), "{what} hangs or goes unnoticed: {job:?}");
        assert!(job.stderr.contains(words), "{what}: {}", job.stderr);
    }
    println!("MPI ranks: all checks passed on 1 to 4 ranks");
    ExitCode::SUCCESS
}

fn collectives(comm: &dyn Communicator) {
    let (rank, size) = (comm.rank(), comm.size());
    let message = |from: usize, to: usize| vec![(from * 16 + to) as u8; (from * 7 + to * 3) % 11];
    let gathered = comm.all_gather(&vec![rank as u8; rank]).unwrap();
    assert_eq!(gathered, (0..size).map(|r| vec![r as u8; r]).collect::<Vec<_>>());
    let (mut parts, mut came) = (Vec::new(), Vec::new());
    for round in 0..3 {
        parts.resize_with(size, Vec::new);
        parts.iter_mut().enumerate().for_each(|(to, part)| *part = message(rank, to + round));
        comm.all_to_all(&mut parts, &mut came).unwrap();
        assert_eq!(came, (0..size).map(|from| message(from, rank + round)).collect::<Vec<_>>());
    }
    for root in 0..size {
        let mut data = vec![rank as u8; 1 + rank];
        comm.broadcast(root, &mut data).unwrap();
        assert_eq!(data, vec![root as u8; 1 + root]);
    }
    let n = size as u64;
    for (how, expected) in [(Reduce::Sum, [n * (n - 1) / 2, n]), (Reduce::Min, [0, 1]), (Reduce::Max, [n - 1, 1])] {
        let mut values = [rank as u64, 1];
        comm.all_reduce(&mut values, how).unwrap();
        assert_eq!(values, expected, "{how:?}");
        let mut floats = [rank as f64, 1.0];
        comm.all_reduce_f64(&mut floats, how).unwrap();
        assert_eq!(floats, expected.map(|v| v as f64), "{how:?}");
    }
    let node = comm.split_by_node().unwrap();
    assert_eq!((node.rank(), node.size()), (rank, size), "all ranks of this test share a node");
    assert_eq!(node.all_gather(&[rank as u8]).unwrap(), (0..size).map(|r| vec![r as u8]).collect::<Vec<_>>());
    assert_eq!(comm.one_process(), size == 1);
    assert!(
        comm.broadcast(size, &mut Vec::new()).is_err()
            && comm.all_to_all(&mut vec![Vec::new(); size + 1], &mut Vec::new()).is_err()
    );
}

/// An error of one rank is everyone's.
fn one_fails(comm: &dyn Communicator) {
    let last = comm.size() - 1;
    let mine = if comm.rank() == last { Err(Error::new(ErrorKind::NoSpace, "write", "full")) } else { Ok(()) };
    let error = agree(comm, mine).unwrap_err();
    let expected = if comm.rank() == last { ErrorKind::NoSpace } else { ErrorKind::Peer };
    assert_eq!(error.kind(), expected);
    assert!(error.to_string().contains("full"), "{error}");
}

/// A rank that gives up takes the waiting ones along.
fn one_aborts(comm: &dyn Communicator) {
    if comm.rank() == 1 {
        comm.abort(&Error::new(ErrorKind::NoSpace, "write", "the disk is full"));
    }
    comm.barrier().unwrap();
}
