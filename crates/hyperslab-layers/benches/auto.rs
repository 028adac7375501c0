//! Twenty patterns of computing and transferring, each waiting (`sync`), with `async`, and with `auto`, alternately in one run.
//!
//! Two aims: `auto` takes at most 5 % more than the better of the two others, and less than the worse one where these differ by
//! more than 10 %. `auto` runs twice, without a history and with that of its run before, if that was long enough to leave one.
//! The best of several rounds counts. How far it can be trusted is told beside it: the best of every other round of the better way
//! against the best of the rest. Rounds go on until these agree, as long as there is time for it.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use hyperslab_comm::Solo;
use hyperslab_core::{
    ArraySpec, Datatype, Durability, Format, MemoryView, MemoryViewMut, OpenMode, PageBuffer, Selection, Stack,
    TransferMode,
};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Each pattern has at least so many rounds.
const ROUNDS: usize = 6;
/// It has more while it has taken less than so long: short patterns are disturbed by anything.
const SHORT: Duration = Duration::from_secs(8);
/// And while halves of the rounds disagree by more than `AGREEING`, as they do while the kernel brings pages to the disk, for so long.
const LONG: Duration = Duration::from_secs(40);
const AGREEING: f64 = 1.02;
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
        let container = format.open(path, OpenMode::Truncate, &Solo::shared()).unwrap();
        let array = container.create("a", &ArraySpec::new(Datatype::U8, &[self.rows(), self.largest()])).unwrap();
        let row = vec![7; self.largest() as usize];
        for number in 0..self.rows() {
            let selection = Selection::dense(&[number, 0], &[1, self.largest()]).unwrap();
            array.write(&selection, MemoryView::packed(&row), TransferMode::Independent).unwrap();
        }
        container.close().unwrap();
    }

    /// Seconds of all steps and of closing. `data` is the program's memory: the same for all, since where pages lie makes copies
    /// of them faster or slower.
    fn play(&self, stack: &str, path: &Path, data: &mut [u8]) -> f64 {
        let format = build(stack);
        let how = if self.reads { OpenMode::Read } else { OpenMode::Update };
        let container = format.open(path, how, &Solo::shared()).unwrap();
        let array = container.array("a").unwrap();
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
                    true => array.read(&selection, MemoryViewMut::packed(memory), TransferMode::Independent).unwrap(),
                    false => array.write(&selection, MemoryView::packed(memory), TransferMode::Independent).unwrap(),
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

/// Seconds of one way in all rounds.
#[derive(Default)]
struct Rounds(Vec<f64>);

impl Rounds {
    fn best(&self) -> f64 {
        least(self.0.iter())
    }

    /// By how much the best of every other round and the best of the rest differ, as a ratio.
    fn disagreement(&self) -> f64 {
        let halves = [0, 1].map(|first| least(self.0.iter().skip(first).step_by(2)));
        halves[0].max(halves[1]) / halves[0].min(halves[1])
    }
}

fn least<'a>(seconds: impl Iterator<Item = &'a f64>) -> f64 {
    seconds.copied().fold(f64::INFINITY, f64::min)
}

/// Copies the files of a folder.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

/// Waiting, `async`, `auto` without a history, and with that of its run before.
fn measure(pattern: &Pattern, folder: &Path, explain: &str) -> [Rounds; 4] {
    let path = folder.join("steps");
    pattern.prepare(&path);
    let mut data = PageBuffer::new(pattern.largest() as usize).unwrap();
    data.fill(1);
    let mut rounds: [Rounds; 4] = Default::default();
    let begin = Instant::now();
    for round in 0.. {
        let better = if rounds[0].best() < rounds[1].best() { &rounds[0] } else { &rounds[1] };
        let enough = if round < ROUNDS || better.disagreement() > AGREEING { LONG } else { SHORT };
        if round >= ROUNDS && begin.elapsed() >= enough {
            break;
        }
        let state = folder.join(format!("state-{round}"));
        let again = folder.join(format!("again-{round}"));
        let auto = |state: &Path| format!("auto(state={}{explain})/{}", state.display(), pattern.storage);
        let stacks = [pattern.storage.to_owned(), format!("async/{}", pattern.storage), auto(&state), auto(&again)];
        for turn in 0..4 {
            let at = (turn + round) % 4;
            // The history of this round, or of the one before, under another name, as if another process had left it.
            let mut left = [round, round.max(1) - 1].map(|round| folder.join(format!("state-{round}"))).into_iter();
            if at == 3
                && let Some(left) = left.find(|left| left.exists())
            {
                copy(&left, &again);
            }
            rounds[at].0.push(pattern.play(&stacks[at], &path, &mut data));
        }
    }
    std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path)).unwrap();
    rounds
}

fn main() {
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let explain = std::env::var("EXPLAIN").map(|file| format!(",explain={file}")).unwrap_or_default();
    println!(
        "best of at least {ROUNDS} rounds, in seconds; ratios of auto to the better and to the worse of sync and async; noise: by how \
         much the best of half of the better one's rounds differs from that of the other half\n",
    );
    println!(
        "{:34} {:>6} {:>8} {:>8} {:>8} {:>8}   {:>7} {:>7}   {:>7} {:>7}  missed",
        "pattern", "rounds", "sync", "async", "auto", "again", "auto/b", "again/b", "auto/w", "noise"
    );
    let mut missed = [0; 4];
    let mut total = [0.0; 4];
    let chosen = patterns().into_iter().filter(|pattern| only.as_ref().is_none_or(|only| pattern.name.contains(only)));
    for pattern in chosen {
        let folder = tempfile::tempdir().unwrap();
        let rounds = measure(&pattern, folder.path(), &explain);
        let best = rounds.each_ref().map(Rounds::best);
        let [sync, background, auto, again] = best;
        let (better, worse) = (sync.min(background), sync.max(background));
        let noise = rounds[usize::from(background < sync)].disagreement();
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
            "{:34} {:6} {sync:8.3} {background:8.3} {auto:8.3} {again:8.3}   {:7.3} {:7.3}   {:7.3} {noise:7.3}  {}",
            pattern.name,
            rounds[0].0.len(),
            auto / better,
            again / better,
            auto / worse,
            words.join(", ")
        );
        total.iter_mut().zip(best).for_each(|(sum, seconds)| *sum += seconds);
    }
    let [sync, background, auto, again] = total;
    println!("{:41} {sync:8.3} {background:8.3} {auto:8.3} {again:8.3}", "all");
    println!(
        "\nat most {MOST} of the better: missed by {} without history, {} with it; better than the worse where they differ by \
         more than 10 %: missed by {} and {}",
        missed[0], missed[2], missed[1], missed[3]
    );
}
