//! Twenty patterns of computing and transferring, each waiting (`sync`), with `async`, and with `auto`, alternately in one run.
//!
//! Two aims: `auto` takes at most 5 % more than the better of the two others, and less than the worse one where these differ by
//! more than 10 %. `auto` runs twice, without a history and with that of its run before, if that was long enough to leave one.
//! The best of several rounds counts.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use hyperslab_comm::Solo;
use hyperslab_core::{
    ArraySpec, Datatype, Durability, Format, MemoryView, MemoryViewMut, Open, PageBuffer, Selection, Stack, Transfer,
};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Each pattern has at least so many rounds.
const ROUNDS: usize = 5;
/// It has up to so many while it has taken less than so long: the best of 5 runs of a stack differs by up to 5 % from that of its
/// next 5, more while the kernel brings pages to the disk.
const MORE_ROUNDS: usize = 25;
const LONG: Duration = Duration::from_secs(30);
/// It has more than that while it has taken less than so long: patterns of some 20 ms, which anything disturbs.
const SHORT: Duration = Duration::from_secs(8);
const MOST: f64 = 1.05;
const DIFFERENT: f64 = 1.10;
/// Rows that are written in turns.
const ROWS: u64 = 4;

/// Milliseconds and bytes of a step.
type Step = fn(u64) -> (u64, u64);

struct Pattern {
    name: &'static str,
    storage: &'static str,
    steps: u64,
    step: Step,
    /// Writes or reads of a step.
    requests: u64,
    reads: bool,
    flushes: bool,
}

const FAST: &str = "posix";
const DISK: &str = "slow(200MB/s,2ms)/posix";
const SLOW: &str = "slow(40MB/s,5ms)/posix";
const MIB: u64 = 1 << 20;
const KIB: u64 = 1 << 10;

fn patterns() -> Vec<Pattern> {
    let write =
        |name, storage, steps, step| Pattern { name, storage, steps, step, requests: 1, reads: false, flushes: false };
    vec![
        write("fast, 64 KiB, no computing", FAST, 60_000, |_| (0, 64 * KIB)),
        write("fast, 1 MiB, no computing", FAST, 6000, |_| (0, MIB)),
        write("fast, 64 MiB, no computing", FAST, 20, |_| (0, 64 * MIB)),
        write("fast, 64 KiB, 2 ms", FAST, 100, |_| (2, 64 * KIB)),
        write("fast, 4 MiB, 5 ms", FAST, 60, |_| (5, 4 * MIB)),
        write("fast, 16 MiB, 20 ms", FAST, 30, |_| (20, 16 * MIB)),
        write("fast, 64 MiB, 50 ms", FAST, 20, |_| (50, 64 * MIB)),
        write("fast, 1 MiB, 200 ms", FAST, 10, |_| (200, MIB)),
        write("disk, 1 MiB, no computing", DISK, 40, |_| (0, MIB)),
        write("disk, 1 MiB, 10 ms", DISK, 40, |_| (10, MIB)),
        write("disk, 4 MiB, 20 ms", DISK, 30, |_| (20, 4 * MIB)),
        write("disk, 16 MiB, 40 ms", DISK, 20, |_| (40, 16 * MIB)),
        Pattern { requests: 8, ..write("disk, 8 of 512 KiB, 30 ms", DISK, 20, |_| (30, 512 * KIB)) },
        Pattern { flushes: true, ..write("disk, 2 MiB, 20 ms, flushed", DISK, 25, |_| (20, 2 * MIB)) },
        write("slow, 64 KiB, 3 ms", SLOW, 60, |_| (3, 64 * KIB)),
        write("slow, 1 MiB, 100 ms", SLOW, 20, |_| (100, MIB)),
        write("disk, computing grows 0-40 ms", DISK, 40, |n| (n, MIB)),
        write("disk, bytes shrink 4 MiB-64 KiB", DISK, 40, |n| (10, (4 * MIB) >> (n / 7))),
        Pattern { reads: true, ..write("disk, reads of 2 MiB, 15 ms", DISK, 30, |_| (15, 2 * MIB)) },
        Pattern { reads: true, ..write("fast, reads of 4 MiB, 5 ms", FAST, 40, |_| (5, 4 * MIB)) },
    ]
}

fn build(text: &str) -> Arc<dyn Format> {
    let stack: Stack = text.parse().unwrap();
    hyperslab_layers::build(&stack, hyperslab_formats::build(&stack.format).unwrap()).unwrap()
}

impl Pattern {
    fn largest(&self) -> u64 {
        (0..self.steps).map(|n| (self.step)(n).1).max().unwrap_or(1)
    }

    fn rows(&self) -> u64 {
        self.requests * if self.reads { self.steps } else { ROWS }
    }

    /// Makes the container, with everything in it if it will be read.
    fn prepare(&self, path: &Path) {
        let format = build(FAST);
        let container = format.open(path, Open::Truncate, &Solo::shared()).unwrap();
        let array = container.create("a", &ArraySpec::new(Datatype::U8, &[self.rows(), self.largest()])).unwrap();
        let row = vec![7; self.largest() as usize];
        for number in 0..self.rows() {
            let selection = Selection::dense(&[number, 0], &[1, self.largest()]).unwrap();
            array.write(&selection, MemoryView::packed(&row), Transfer::Independent).unwrap();
        }
        container.close().unwrap();
    }

    /// Seconds of all steps and of closing.
    fn play(&self, stack: &str, path: &Path) -> f64 {
        let format = build(stack);
        let how = if self.reads { Open::Read } else { Open::Update };
        let container = format.open(path, how, &Solo::shared()).unwrap();
        let array = container.array("a").unwrap();
        let mut data = PageBuffer::new(self.largest() as usize).unwrap();
        data.fill(1);
        let begin = Instant::now();
        for step in 0..self.steps {
            let (compute, bytes) = (self.step)(step);
            if compute > 0 {
                std::thread::sleep(Duration::from_millis(compute));
            }
            for request in 0..self.requests {
                let row = (step * self.requests + request) % self.rows();
                let selection = Selection::dense(&[row, 0], &[1, bytes]).unwrap();
                let memory = &mut data[..bytes as usize];
                match self.reads {
                    true => array.read(&selection, MemoryViewMut::packed(memory), Transfer::Independent).unwrap(),
                    false => array.write(&selection, MemoryView::packed(memory), Transfer::Independent).unwrap(),
                }
            }
            if self.flushes {
                container.flush(Durability::Visible).unwrap();
            }
        }
        container.close().unwrap();
        begin.elapsed().as_secs_f64()
    }
}

fn main() {
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let explain = std::env::var("EXPLAIN").map(|file| format!(",explain={file}")).unwrap_or_default();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("steps");
    println!(
        "best of {ROUNDS} to {MORE_ROUNDS} (as many as {} s allow, and all that {} s allow), in seconds; ratios of auto to the \
         better and to the worse of sync and async\n",
        LONG.as_secs(),
        SHORT.as_secs()
    );
    println!(
        "{:34} {:>8} {:>8} {:>8} {:>8}   {:>7} {:>7}   {:>7}  missed",
        "pattern", "sync", "async", "auto", "again", "auto/b", "again/b", "auto/w"
    );
    let mut missed = [0; 4];
    let mut total = [0.0; 4];
    let chosen = patterns().into_iter().filter(|pattern| only.as_ref().is_none_or(|only| pattern.name.contains(only)));
    for (number, pattern) in chosen.enumerate() {
        let mut best = [f64::MAX; 4];
        pattern.prepare(&path);
        let begin = Instant::now();
        for round in 0.. {
            let long_enough = if round < MORE_ROUNDS { LONG } else { SHORT };
            if round >= ROUNDS && begin.elapsed() >= long_enough {
                break;
            }
            let state = folder.path().join(format!("state-{number}-{round}"));
            let again = folder.path().join(format!("again-{number}-{round}"));
            let auto = |state: &Path| format!("auto(state={}{explain})/{}", state.display(), pattern.storage);
            let stacks = [pattern.storage.to_owned(), format!("async/{}", pattern.storage), auto(&state), auto(&again)];
            for turn in 0..3 {
                let at = (turn + round) % 3;
                best[at] = best[at].min(pattern.play(&stacks[at], &path));
            }
            // Under another name, as if another process had left it.
            if state.exists() {
                std::fs::rename(&state, &again).unwrap();
            }
            best[3] = best[3].min(pattern.play(&stacks[3], &path));
        }
        let [sync, background, auto, again] = best;
        let (better, worse) = (sync.min(background), sync.max(background));
        let judge = |seconds: f64, at: usize, missed: &mut [u32; 4]| {
            let mut words = Vec::new();
            if seconds > MOST * better {
                missed[at] += 1;
                words.push("slower than the better");
            }
            if worse > DIFFERENT * better && seconds >= worse {
                missed[at + 1] += 1;
                words.push("no better than the worse");
            }
            words
        };
        let mut words = judge(auto, 0, &mut missed);
        words.extend(judge(again, 2, &mut missed));
        println!(
            "{:34} {sync:8.3} {background:8.3} {auto:8.3} {again:8.3}   {:7.3} {:7.3}   {:7.3}  {}",
            pattern.name,
            auto / better,
            again / better,
            auto / worse,
            words.join(", ")
        );
        total.iter_mut().zip(best).for_each(|(sum, seconds)| *sum += seconds);
        std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path)).unwrap();
    }
    let [sync, background, auto, again] = total;
    println!("{:34} {sync:8.3} {background:8.3} {auto:8.3} {again:8.3}", "all");
    println!(
        "\nat most {MOST} of the better: missed by {} without history, {} with it; better than the worse where they differ by \
         more than 10 %: missed by {} and {}",
        missed[0], missed[2], missed[1], missed[3]
    );
}
