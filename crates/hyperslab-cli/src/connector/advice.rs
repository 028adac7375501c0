//! What a run gained by the connector, and what might gain more.

use super::statistics::{Process, SideStatistics};
use std::fmt::Write;

/// Waiting less than this is not worth a change, in seconds.
const WORTH: f64 = 0.1;
/// Waiting less than this part of what would be gained is not either.
const SMALL_CALL: u64 = 64 << 10;
/// So many calls are many.
const MANY_CALLS: u64 = 1000;
/// Above this part of the bytes, libhdf5 moves most.
const MOST: f64 = 0.5;

/// A line about the time that was gained, if any was, and one recommendation.
pub fn advice(processes: &[Process], write: &SideStatistics, read: &SideStatistics) -> String {
    let sum = |of: fn(&Process) -> f64| processes.iter().map(of).sum::<f64>();
    let (hidden, helped) = (sum(|p| p.hidden_seconds), sum(|p| p.helper_seconds));
    let mut text = String::new();
    if hidden + helped >= WORTH / 10.0 {
        let _ = write!(text, "  gained about {:.2} s:", hidden + helped);
        let parts = [(helped, "by coding and copying on more threads"), (hidden, "by I/O while the program computed")];
        let parts: Vec<String> =
            parts.iter().filter(|(time, _)| *time >= 0.01).map(|(time, how)| format!("{time:.2} s {how}")).collect();
        let _ = writeln!(text, " {}", parts.join(", "));
    }
    if let Some(recommended) = recommendation(processes, write, read) {
        let _ = writeln!(text, "  {recommended}");
    }
    text
}

fn recommendation(processes: &[Process], write: &SideStatistics, read: &SideStatistics) -> Option<String> {
    let has = |mode: &str| processes.iter().any(|process| process.mode.split('+').any(|word| word == mode));
    let waits = |side: &SideStatistics, what: &str| format!("you waited {:.1} s in {what}", side.seconds);
    if has("off") || processes.is_empty() {
        return Some("nothing was accelerated: try --mode codec".into());
    }
    if write.seconds.max(read.seconds) < WORTH {
        return Some(format!(
            "you waited {:.2} s in reads and writes: little is left to gain",
            write.seconds + read.seconds
        ));
    }
    let (side, what) = if write.seconds >= read.seconds { (write, "writes") } else { (read, "reads") };
    let left = side.bytes.saturating_sub(side.accelerated_bytes);
    if left as f64 > MOST * side.bytes as f64 {
        return Some(format!("{}, most by libhdf5: what it is left with is listed above", waits(side, what)));
    }
    let behind = ["async", "log", "cache", "auto"].iter().any(|mode| has(mode));
    let short = side.calls >= MANY_CALLS && side.bytes / side.calls.max(1) < SMALL_CALL;
    match what {
        "writes" if behind => None,
        "writes" if short => Some(format!("{} of few bytes each: try --mode codec+log", waits(side, what))),
        "writes" => Some(format!("{}: try --mode codec+async", waits(side, what))),
        _ if has("cache") => None,
        _ => Some(format!("{}: try --mode codec+cache if data is read again", waits(side, what))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(calls: u64, bytes: u64, seconds: f64) -> SideStatistics {
        SideStatistics { calls, bytes, accelerated_calls: calls, accelerated_bytes: bytes, seconds }
    }

    #[test]
    fn one_thing_is_recommended() {
        let process = |mode: &str| Process { mode: mode.into(), ..Process::default() };
        let nothing = side(0, 0, 0.0);
        let told = |mode: &str, write: &SideStatistics, read: &SideStatistics| advice(&[process(mode)], write, read);
        assert_eq!(
            told("codec", &side(8, 1 << 30, 2.14), &nothing),
            "  you waited 2.1 s in writes: try --mode codec+async\n"
        );
        assert_eq!(told("codec+async", &side(8, 1 << 30, 2.1), &nothing), "");
        assert!(told("codec", &side(9000, 9000 << 10, 2.1), &nothing).contains("codec+log"));
        assert!(
            told("codec", &side(8, 1 << 30, 1.0), &side(8, 1 << 30, 2.0))
                .contains("2.0 s in reads: try --mode codec+cache")
        );
        assert!(told("codec", &side(8, 1 << 20, 0.01), &nothing).contains("little is left"));
        let by_library = SideStatistics { accelerated_bytes: 0, ..side(8, 1 << 30, 2.0) };
        assert!(told("codec", &by_library, &nothing).contains("most by libhdf5"));
    }

    #[test]
    fn what_other_threads_did_is_gained() {
        let process =
            Process { helper_seconds: 1.5, hidden_seconds: 0.5, mode: "codec+async".into(), ..Process::default() };
        let text = advice(&[process], &side(8, 1 << 30, 1.0), &side(0, 0, 0.0));
        assert_eq!(
            text,
            "  gained about 2.00 s: 1.50 s by coding and copying on more threads, 0.50 s by I/O while the program computed\n"
        );
    }
}
