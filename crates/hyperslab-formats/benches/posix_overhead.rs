//! What `posix` costs on top of the system calls: a contiguous array written and read through the format, against a
//! plain loop of the same calls on a plain file, side by side in one run.
//!
//! `cargo bench -p hyperslab-formats --bench posix_overhead -- --check` fails when the format is over 5 % slower.
//! Both go through the page cache and are not synced: what is compared is the way there, not the device.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use hyperslab_comm::Solo;
use hyperslab_core::{
    ArraySpec, Datatype, Format, MemoryView, MemoryViewMut, OpenMode, Selection, StackElement, TransferMode,
};
use std::cell::RefCell;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

const TOTAL: u64 = 256 << 20;
/// Both sides take turns after this many bytes, so that whatever else the machine does meets both alike.
const SLICE: u64 = 4 << 20;
const ROUNDS: usize = 5;
const TARGET: f64 = 1.05;

/// Seconds per slice of one kind of transfer.
#[derive(Default)]
struct Times {
    plain: Vec<f64>,
    format: Vec<f64>,
}

impl Times {
    /// Times both sides on every slice, the order changing from slice to slice. Both get offset and selection.
    fn add(
        &mut self,
        request: usize,
        mut plain: impl FnMut(&(u64, Selection)),
        mut format: impl FnMut(&(u64, Selection)),
    ) {
        for slice in 0..TOTAL / SLICE {
            let offsets = (slice * SLICE..(slice + 1) * SLICE).step_by(request);
            let requests: Vec<_> =
                offsets.map(|at| (at, Selection::dense(&[at], &[request as u64]).unwrap())).collect();
            if slice % 2 == 0 {
                self.plain.push(timed(&requests, &mut plain));
                self.format.push(timed(&requests, &mut format));
            } else {
                self.format.push(timed(&requests, &mut format));
                self.plain.push(timed(&requests, &mut plain));
            }
        }
    }

    fn ratio(&self) -> f64 {
        median(self.format.iter().zip(&self.plain).map(|(format, plain)| format / plain).collect())
    }
}

fn timed(requests: &[(u64, Selection)], work: &mut impl FnMut(&(u64, Selection))) -> f64 {
    let start = Instant::now();
    requests.iter().for_each(work);
    start.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn rate(seconds: &[f64]) -> f64 {
    (SLICE >> 20) as f64 / median(seconds.to_vec())
}

/// One round on fresh files.
fn round(format: &dyn Format, directory: &Path, request: usize, write: &mut Times, read: &mut Times) {
    let data: Vec<u8> = (0..request).map(|i| (i % 251) as u8).collect();
    // One buffer for both: how it lies in memory has a cost of its own.
    let to = RefCell::new(data.clone());

    let plain_path = directory.join("plain.raw");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&plain_path).unwrap();
    file.set_len(TOTAL).unwrap();

    let path = directory.join("format.posix");
    let container = format.open(&path, OpenMode::Create, &Solo::shared()).unwrap();
    let array = container.create("a", &ArraySpec::new(Datatype::U8, &[TOTAL])).unwrap();

    write.add(
        request,
        |(at, _)| file.write_all_at(&data, *at).unwrap(),
        |(_, part)| array.write(part, MemoryView::packed(&data), TransferMode::Independent).unwrap(),
    );
    read.add(
        request,
        |(at, _)| file.read_exact_at(&mut to.borrow_mut(), *at).unwrap(),
        |(_, part)| array.read(part, MemoryViewMut::packed(&mut to.borrow_mut()), TransferMode::Independent).unwrap(),
    );

    container.close().unwrap();
    format.remove(&path).unwrap();
    std::fs::remove_file(plain_path).unwrap();
}

fn main() {
    let check = std::env::args().any(|argument| argument == "--check");
    let format = hyperslab_formats::build(&StackElement::plain("posix")).unwrap();
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    println!("256 MiB through the page cache, {ROUNDS} rounds on fresh files, medians over slices of 4 MiB");
    println!("ratio = time of posix / time of plain calls");
    println!("{:>8} {:>6} {:>12} {:>12} {:>7}", "request", "", "plain MiB/s", "posix MiB/s", "ratio");
    let mut missed = false;
    for request in [1 << 20, 64 << 10] {
        let (mut write, mut read) = (Times::default(), Times::default());
        for _ in 0..ROUNDS {
            round(&*format, directory.path(), request, &mut write, &mut read);
        }
        for (what, times) in [("write", write), ("read", read)] {
            let (kib, ratio) = (request >> 10, times.ratio());
            let (plain, posix) = (rate(&times.plain), rate(&times.format));
            println!("{kib:>4} KiB {what:>6} {plain:>12.0} {posix:>12.0} {ratio:>7.3}");
            missed |= ratio > TARGET;
        }
    }
    if check && missed {
        println!("missed: posix is over 5 % slower than plain calls");
        std::process::exit(1);
    }
}
