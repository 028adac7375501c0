//! Whether others use the machine while it is measured.

use std::fs;
use std::time::{Duration, Instant};

/// How long it is looked.
const LOOK: Duration = Duration::from_millis(500);
/// Processors that may be in use before times are taken to be disturbed.
const QUIET: f64 = 0.3;
/// How long it is waited for others to finish.
pub const PATIENCE: Duration = Duration::from_secs(15);
/// Intervals of what was measured on a busy machine are wider by this factor.
pub const LESS_SURE: f64 = 1.25;

/// Waits for a quiet machine, at most so long. What disturbs then is told in words.
pub fn wait_until_quiet(patience: Duration) -> Option<String> {
    let begin = Instant::now();
    let mut told = false;
    loop {
        let used = others()?;
        if used < QUIET {
            return None;
        }
        if begin.elapsed() > patience {
            return Some(format!(
                "an idle machine: others kept {used:.1} of its processors busy, so that times are too long and intervals wider"
            ));
        }
        if !told {
            eprintln!("note: others keep {used:.1} processors busy; waiting a little for them to finish");
            told = true;
        }
    }
}

/// Whether others keep processors busy now.
pub fn is_busy() -> bool {
    others().is_some_and(|used| used >= QUIET)
}

/// Processors that others keep busy, while this program sleeps.
fn others() -> Option<f64> {
    let before = used_and_all(&fs::read_to_string("/proc/stat").ok()?)?;
    std::thread::sleep(LOOK);
    let after = used_and_all(&fs::read_to_string("/proc/stat").ok()?)?;
    let all = after.1.checked_sub(before.1).filter(|all| *all > 0)?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    Some(after.0.saturating_sub(before.0) as f64 / all as f64 * processors)
}

/// Time that all processors together were in use, and all their time, from the kernel's first line about them.
fn used_and_all(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().find(|line| line.starts_with("cpu "))?;
    let times: Vec<u64> = line.split_whitespace().skip(1).take(8).map_while(|word| word.parse().ok()).collect();
    let all = times.iter().sum::<u64>();
    let idle = times.get(3)? + times.get(4).copied().unwrap_or(0);
    Some((all - idle, all))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_the_device_is_not_use() {
        assert_eq!(used_and_all("cpu  10 1 5 80 4 0 0 0 7 7\ncpu0 1 1 1 1\n"), Some((16, 100)));
        assert_eq!(used_and_all("intr 1"), None);
        assert!((0.0..=std::thread::available_parallelism().unwrap().get() as f64 + 0.1).contains(&others().unwrap()));
    }
}
