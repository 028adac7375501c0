//! What thread ranks promise. Every test runs under a watchdog: a hang is a failure.
#![allow(clippy::unwrap_used)]

use hyperslab_comm::{Solo, Threads};
use hyperslab_core::{Communicator, Error, ErrorKind, Reduce, Result, agree};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Barrier};
use std::time::Duration;

fn in_time(test: impl FnOnce() + Send + 'static) {
    let (done, wait) = channel();
    let thread = std::thread::spawn(move || {
        test();
        let _ = done.send(());
    });
    match wait.recv_timeout(Duration::from_secs(60)) {
        Err(RecvTimeoutError::Timeout) => panic!("still waiting after 60 s"),
        _ => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
    }
}

const SIZES: [usize; 4] = [1, 2, 3, 8];

#[test]
fn gather_and_broadcast() {
    in_time(|| {
        for size in SIZES {
            let all = Threads::run(size, |comm| {
                assert_eq!(std::thread::current().name(), Some(format!("rank {}", comm.rank()).as_str()));
                let gathered = comm.all_gather(&vec![comm.rank() as u8; comm.rank()])?;
                for root in 0..size {
                    let mut data = vec![comm.rank() as u8; 1 + comm.rank()];
                    comm.broadcast(root, &mut data)?;
                    assert_eq!(data, vec![root as u8; 1 + root]);
                }
                Ok(gathered)
            });
            for gathered in all.unwrap() {
                assert_eq!(gathered, (0..size).map(|r| vec![r as u8; r]).collect::<Vec<_>>());
            }
        }
    });
}

#[test]
fn all_to_all_is_a_transpose() {
    in_time(|| {
        for size in SIZES {
            let matrix = |from: usize, to: usize| vec![(from * 16 + to) as u8; (from * 7 + to * 3) % 11];
            let got = Threads::run(size, |comm| {
                let (mut parts, mut came) = (vec![Vec::new(); size], Vec::new());
                // More than once, since memory of earlier calls is used again.
                for _ in 0..3 {
                    parts.iter_mut().enumerate().for_each(|(to, part)| *part = matrix(comm.rank(), to));
                    comm.all_to_all(&mut parts, &mut came)?;
                }
                Ok(came)
            });
            for (to, row) in got.unwrap().into_iter().enumerate() {
                assert_eq!(row, (0..size).map(|from| matrix(from, to)).collect::<Vec<_>>());
            }
        }
    });
}

#[test]
fn all_reduce_is_a_fold() {
    in_time(|| {
        for size in SIZES {
            let value = |rank: usize, i: usize| (rank as u64 + 3).wrapping_mul(0x9e37_79b9_7f4a_7c15 + i as u64);
            let float = |rank: usize, i: usize| {
                (value(rank, i) as f64).sqrt() * if rank.is_multiple_of(2) { 1.0 } else { -0.3 }
            };
            for how in [Reduce::Sum, Reduce::Min, Reduce::Max] {
                let got = Threads::run(size, |comm| {
                    let mut integers: Vec<u64> = (0..5).map(|i| value(comm.rank(), i)).collect();
                    let mut floats: Vec<f64> = (0..5).map(|i| float(comm.rank(), i)).collect();
                    comm.all_reduce(&mut integers, how)?;
                    comm.all_reduce_f64(&mut floats, how)?;
                    Ok((integers, floats.iter().map(|f| f.to_bits()).collect::<Vec<_>>()))
                })
                .unwrap();
                let fold = match how {
                    Reduce::Sum => u64::wrapping_add,
                    Reduce::Min => u64::min,
                    Reduce::Max => u64::max,
                };
                let fold_float = match how {
                    Reduce::Sum => |a: f64, b: f64| a + b,
                    Reduce::Min => f64::min,
                    Reduce::Max => f64::max,
                };
                for (integers, floats) in got {
                    for i in 0..5 {
                        assert_eq!(integers[i], (0..size).map(|r| value(r, i)).reduce(fold).unwrap());
                        let expected = (0..size).map(|r| float(r, i)).reduce(fold_float).unwrap();
                        assert_eq!(floats[i], expected.to_bits());
                    }
                }
            }
        }
    });
}

#[test]
fn ten_thousand_barriers_keep_step() {
    in_time(|| {
        use std::sync::atomic::{AtomicU64, Ordering};
        let count = AtomicU64::new(0);
        Threads::run(8, |comm| {
            for turn in 0..10_000u64 {
                if turn % 1000 == 0 {
                    count.fetch_add(1, Ordering::Relaxed);
                    comm.barrier()?;
                    assert_eq!(count.load(Ordering::Relaxed), (turn / 1000 + 1) * 8);
                }
                comm.barrier()?;
            }
            Ok(())
        })
        .unwrap();
    });
}

fn failing(rank: usize) -> Error {
    Error::new(ErrorKind::NoSpace, "write", format!("disk {rank} is full"))
}

#[test]
fn a_failing_rank_is_the_root_cause_and_nobody_hangs() {
    in_time(|| {
        for bad in 0..3 {
            let body = |comm: Arc<dyn Communicator>| -> Result<()> {
                if comm.rank() == bad {
                    return Err(failing(bad));
                }
                loop {
                    comm.barrier()?;
                }
            };
            let error = Threads::run(3, body).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NoSpace);
            assert_eq!(error.on_rank(), Some(bad));
            for (rank, result) in Threads::run_each(3, body).into_iter().enumerate() {
                let error = result.unwrap_err();
                assert_eq!(error.kind() == ErrorKind::Peer, rank != bad, "{error}");
                assert!(error.to_string().contains(&format!("disk {bad} is full")), "{error}");
            }
        }
    });
}

#[test]
fn a_panicking_rank_becomes_an_error() {
    in_time(|| {
        let error = Threads::run(4, |comm| {
            assert_ne!(comm.rank(), 2, "rank two is broken");
            comm.all_gather(b"x")?;
            comm.barrier()
        })
        .unwrap_err();
        assert!(error.to_string().contains("rank two is broken"), "{error}");
        assert_eq!(error.on_rank(), Some(2));
        assert_ne!(error.kind(), ErrorKind::Peer);
    });
}

#[test]
fn abort_reaches_those_who_wait_and_those_who_come_later() {
    in_time(|| {
        let aborted = Barrier::new(2);
        let results = Threads::run_each(3, |comm| {
            if comm.rank() == 1 {
                comm.abort(&failing(1));
                aborted.wait();
                return Ok(());
            }
            if comm.rank() == 2 {
                aborted.wait();
            }
            comm.barrier()
        });
        assert!(results[1].is_ok());
        for rank in [0, 2] {
            let error = results[rank].as_ref().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Peer);
            assert!(error.to_string().contains("disk 1 is full"), "{error}");
        }
    });
}

#[test]
fn an_early_leaver_does_not_hang_the_others() {
    in_time(|| {
        let results = Threads::run_each(3, |comm| if comm.rank() == 2 { Ok(()) } else { comm.barrier() });
        assert!(results[2].is_ok());
        for result in &results[..2] {
            let error = result.as_ref().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Peer);
            assert!(error.to_string().contains("rank 2 has finished"), "{error}");
        }
        // Leaving without others waiting is the normal end.
        Threads::run(3, |comm| comm.barrier()).unwrap();
    });
}

#[test]
fn different_collectives_are_an_error_on_every_rank() {
    in_time(|| {
        let results = Threads::run_each(3, |comm| match comm.rank() {
            0 => comm.barrier(),
            1 => comm.all_gather(b"x").map(drop),
            _ => comm.all_reduce(&mut [1], Reduce::Sum),
        });
        for result in results {
            let error = result.unwrap_err();
            assert!(error.to_string().contains("different collectives"), "{error}");
        }
        let error =
            Threads::run(2, |comm| comm.all_reduce(&mut [1], if comm.rank() == 0 { Reduce::Sum } else { Reduce::Max }));
        assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn bad_arguments_fail_the_call_everywhere_and_the_ranks_go_on() {
    in_time(|| {
        Threads::run(3, |comm| {
            let parts = if comm.rank() == 1 { 2 } else { 3 };
            let error = comm.all_to_all(&mut vec![Vec::new(); parts], &mut Vec::new()).unwrap_err();
            let own = if comm.rank() == 1 { ErrorKind::InvalidInput } else { ErrorKind::Peer };
            assert_eq!(error.kind(), own, "{error}");
            assert!(error.to_string().contains("2 parts for 3 ranks"), "{error}");

            let root = if comm.rank() == 2 { 7 } else { 0 };
            let error = comm.broadcast(root, &mut vec![1]).unwrap_err();
            let own = if comm.rank() == 2 { ErrorKind::InvalidInput } else { ErrorKind::Peer };
            assert_eq!(error.kind(), own, "{error}");

            let root = comm.rank().min(1);
            assert_eq!(comm.broadcast(root, &mut vec![1]).unwrap_err().kind(), ErrorKind::InvalidInput);

            let mut values = vec![1u64; 1 + comm.rank()];
            assert_eq!(comm.all_reduce(&mut values, Reduce::Sum).unwrap_err().kind(), ErrorKind::InvalidInput);
            assert_eq!(values, vec![1u64; 1 + comm.rank()]);

            comm.barrier()
        })
        .unwrap();
    });
}

#[test]
fn agree_makes_success_collective() {
    in_time(|| {
        Threads::run(3, |comm| {
            assert_eq!(agree(&*comm, Ok(comm.rank()))?, comm.rank());
            let mine = if comm.rank() == 1 { Err(failing(1)) } else { Ok(()) };
            let error = agree(&*comm, mine).unwrap_err();
            let own = if comm.rank() == 1 { ErrorKind::NoSpace } else { ErrorKind::Peer };
            assert_eq!(error.kind(), own);
            assert_eq!(error.on_rank(), Some(1));
            assert!(error.to_string().contains("disk 1 is full"), "{error}");
            comm.barrier()
        })
        .unwrap();
    });
}

#[test]
fn groups_split_off_are_independent_but_fail_together() {
    in_time(|| {
        Threads::run(3, |comm| {
            let node = comm.split_by_node()?;
            let nested = node.split_by_node()?;
            assert_eq!((nested.rank(), nested.size()), (comm.rank(), 3));
            let mut sum = [comm.rank() as u64];
            nested.all_reduce(&mut sum, Reduce::Sum)?;
            assert_eq!(sum, [3]);
            node.barrier()?;
            comm.barrier()
        })
        .unwrap();
        // Rank 0 fails while rank 1 waits in the group and rank 2 in the world.
        let results = Threads::run_each(3, |comm| {
            let node = comm.split_by_node()?;
            match comm.rank() {
                0 => Err(failing(0)),
                1 => node.split_by_node().map(drop),
                _ => comm.barrier(),
            }
        });
        for (rank, result) in results.into_iter().enumerate() {
            let error = result.unwrap_err();
            assert_eq!(error.kind() == ErrorKind::Peer, rank != 0);
            assert!(error.to_string().contains("disk 0 is full"), "{error}");
        }
        // A rank that drops its group is not waited for there, and stays in the world.
        Threads::run(2, |comm| {
            let node = comm.split_by_node()?;
            if comm.rank() == 0 {
                drop(node);
            } else {
                assert_eq!(node.barrier().unwrap_err().kind(), ErrorKind::Peer);
            }
            comm.barrier()
        })
        .unwrap();
    });
}

#[test]
fn a_kept_communicator_is_of_no_use_after_the_run() {
    in_time(|| {
        let comms = Threads::run(2, Ok).unwrap();
        assert_eq!(comms[0].barrier().unwrap_err().kind(), ErrorKind::Peer);
    });
}

#[test]
fn no_ranks_are_refused() {
    assert_eq!(Threads::run(0, |_| Ok(())).unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn one_rank_alone() {
    let comm = Solo::shared();
    assert_eq!((comm.rank(), comm.size(), comm.one_process()), (0, 1, true));
    comm.barrier().unwrap();
    assert_eq!(comm.all_gather(b"ab").unwrap(), [b"ab"]);
    let (mut parts, mut came) = (vec![vec![7]], vec![vec![1, 2, 3]]);
    comm.all_to_all(&mut parts, &mut came).unwrap();
    assert_eq!((came, parts.len()), (vec![vec![7]], 1));
    assert!(comm.all_to_all(&mut Vec::new(), &mut Vec::new()).is_err());
    assert!(comm.broadcast(1, &mut Vec::new()).is_err());
    let mut data = vec![9];
    comm.broadcast(0, &mut data).unwrap();
    assert_eq!(data, [9]);
    assert_eq!(comm.split_by_node().unwrap().size(), 1);
}
