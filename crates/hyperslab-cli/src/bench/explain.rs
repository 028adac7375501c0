//! Results as tables and in words.

mod tables;

pub use tables::{calls, side_by_side, table};

use hyperslab_core::CacheState;
use hyperslab_core::units::display_size;
use hyperslab_run::{CaseResult, Results, Spread, Status, Verified};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Seconds in the background that are worth a word.
const NOTICEABLE: f64 = 0.001;

/// Cases that can be compared: the same benchmark in the same state of the cache.
fn peers<'a>(results: &'a Results, case: &'a CaseResult) -> impl Iterator<Item = &'a CaseResult> {
    results.cases.iter().filter(move |other| is_same_work(other, case) && other.status == Status::Ok)
}

/// Whether two cases do the same work, so that their rates can be compared.
fn is_same_work(a: &CaseResult, b: &CaseResult) -> bool {
    (&a.benchmark, &a.workload, a.cache, a.ranks, a.bytes) == (&b.benchmark, &b.workload, b.cache, b.ranks, b.bytes)
        && a.launcher == b.launcher
}

fn verdict(case: &CaseResult) -> &'static str {
    match (case.status, case.verified) {
        (Status::Failed, _) => "FAILED",
        (Status::Skipped, _) => "skipped",
        (Status::Interrupted, _) => "stopped",
        (Status::Planned, _) => "not run",
        (Status::Ok, Verified::Yes) => "yes",
        (Status::Ok, Verified::NotAsked) => "not asked",
        (Status::Ok, Verified::Impossible) => "impossible",
        (Status::Ok, Verified::No) => "NO",
    }
}

fn seconds(value: f64) -> String {
    if value < 1e-3 {
        format!("{:.1} us", value * 1e6)
    } else if value < 1.0 {
        format!("{:.1} ms", value * 1e3)
    } else {
        format!("{value:.3} s")
    }
}

fn rate(bytes_per_second: f64) -> String {
    format!("{}/s", display_size(bytes_per_second as u64))
}

/// The median, and how far from it the truth may lie: half of the 95 % interval, or with fewer repetitions of the range.
fn with_spread(spread: &Spread, show: fn(f64) -> String) -> String {
    let middle = show(spread.median);
    if spread.count < 2 || spread.median <= 0.0 {
        return middle;
    }
    let [low, high] = spread.reach();
    if is_wide(spread) {
        format!("{middle} {WIDE}")
    } else {
        format!("{middle} ±{:.0}%", (high - low) / 2.0 / spread.median * 100.0)
    }
}

/// Beside a figure that repetitions do not settle.
const WIDE: &str = "±?";

/// Whether the interval is wider than the value: then it is no figure to go by.
fn is_wide(spread: &Spread) -> bool {
    let [low, high] = spread.reach();
    spread.count > 1 && high - low > spread.median
}

/// The answer in a line.
pub fn verdict_line(results: &Results) -> String {
    let of = |status: Status| results.cases.iter().filter(|case| case.status == status).count();
    let (all, good, failed) = (results.cases.len(), of(Status::Ok), of(Status::Failed));
    let cases = |number: usize| if number == 1 { "1 case".to_owned() } else { format!("{number} cases") };
    let mut parts = vec![match (good, failed) {
        (_, 0) if good == all => format!("{} ran", cases(all)),
        (_, 0) => format!("{good} of {} ran", cases(all)),
        _ => format!("{failed} of {} FAILED", cases(all)),
    }];
    let verified =
        results.cases.iter().filter(|case| case.status == Status::Ok && case.verified == Verified::Yes).count();
    if verified > 0 {
        parts.push(if verified == good { "every byte verified".into() } else { format!("{verified} verified") });
    }
    let mut wins: BTreeMap<String, usize> = BTreeMap::new();
    let (mut compared, mut last) = (0, Vec::<&CaseResult>::new());
    for case in results.cases.iter().filter(|case| case.status == Status::Ok) {
        let mut ranked: Vec<&CaseResult> = peers(results, case).collect();
        if last.iter().any(|known| is_same_work(known, case)) || ranked.len() < 2 {
            continue;
        }
        last.push(case);
        compared += 1;
        ranked.sort_by(|a, b| b.observed_rate.median.total_cmp(&a.observed_rate.median));
        let clear = ranked[0].observed_rate.count < 2
            || ranked[0].observed_rate.reach()[0] > ranked[1].observed_rate.reach()[1];
        if clear {
            *wins.entry(ranked[0].stack.to_string()).or_default() += 1;
        }
    }
    match wins.iter().max_by_key(|(_, number)| **number) {
        Some((stack, number)) => parts.push(format!("fastest: {stack}, in {number} of {compared} comparisons")),
        None if compared > 0 => parts.push("stacks too close to call".into()),
        None => {}
    }
    parts.join("; ") + "."
}

/// The file of a case without the extension, which differs from format to format.
fn stem(case: &CaseResult) -> &str {
    case.file.rsplit_once('.').map_or(&case.file, |(stem, _)| stem)
}

/// Rising numbers, with stretches shortened: `1 to 4, 7`.
fn ranges(numbers: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match parts.last_mut() {
            Some((_, last)) if number == *last + 1 => *last = number,
            _ => parts.push((number, number)),
        }
    }
    let shown = parts.iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first} to {last}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// What MODE asked for and what ran.
pub fn modes(plan: &hyperslab_bench::Plan, results: &Results) -> String {
    let asked: Vec<(usize, &'static str)> =
        plan.cases.iter().filter_map(|case| Some((case.number, case.report.mode()?))).collect();
    let ran = |number: usize| results.cases.iter().any(|c| c.number == number && !c.repetitions.is_empty());
    let not: Vec<String> =
        asked.iter().filter(|(n, _)| !ran(*n)).map(|(n, mode)| format!("case {n} ({mode}) did not run")).collect();
    let good = asked.len() - not.len();
    format!("Modes: {good} of {} cases ran in the mode they ask for. {}", asked.len(), not.join("; "))
}

/// What of a case's I/O went on behind the program's back, in the repetition in the middle.
fn hidden(case: &CaseResult) -> Option<String> {
    let mut repetitions: Vec<_> = case.repetitions.iter().collect();
    repetitions.sort_by(|a, b| a.observed().total_cmp(&b.observed()));
    let middle = repetitions.get(repetitions.len() / 2)?;
    // The rank that had most to do in the background stands for all.
    let slowest = middle.ranks.iter().filter_map(|rank| Some((rank, rank.background?)));
    let (rank, background) = slowest.max_by(|a, b| a.1.busy.total_cmp(&b.1.busy))?;
    if background.busy < NOTICEABLE {
        return None;
    }
    // Nothing is hidden but behind computing.
    let hidden = (background.hidden * background.busy).min(rank.compute);
    Some(format!(
        "{} of I/O in the background, {} of it ({:.0} %) hidden behind computing; the program was blocked for {} and computed \
         for {}; at most {} of memory held per rank.",
        seconds(background.busy),
        seconds(hidden),
        (100.0 * hidden / background.busy).floor(),
        seconds(rank.blocked),
        seconds(rank.compute),
        display_size(background.memory)
    ))
}

/// Who won, by how much, and what to keep in mind.
pub fn words(results: &Results) -> String {
    let mut out = String::new();
    let mut said: Vec<&CaseResult> = Vec::new();
    for case in results.cases.iter().filter(|c| c.status == Status::Ok) {
        if said.iter().any(|known| is_same_work(known, case)) {
            continue;
        }
        said.push(case);
        let mut ranked: Vec<&CaseResult> = peers(results, case).collect();
        ranked.sort_by(|a, b| b.observed_rate.median.total_cmp(&a.observed_rate.median));
        let Some((best, others)) = ranked.split_first() else { continue };
        if others.is_empty() {
            continue;
        }
        let slower: Vec<String> = others
            .iter()
            .map(|o| format!("{} {:.2}x", o.stack, o.observed_rate.median / best.observed_rate.median))
            .collect();
        let close = best.observed_rate.count > 1 && best.observed_rate.reach()[0] <= others[0].observed_rate.reach()[1];
        let _ = writeln!(
            out,
            "{} {} of {} ({}): {} was fastest at {}; against it {}.{}",
            case.cache.name(),
            case.benchmark,
            stem(case),
            display_size(case.bytes),
            best.stack,
            rate(best.observed_rate.median),
            slower.join(", "),
            if close { " Its spread overlaps with the next one's: too close to call." } else { "" }
        );
    }
    for case in results.cases.iter().filter(|case| case.status == Status::Ok) {
        if let Some(text) = hidden(case) {
            let _ = writeln!(out, "case {} ({}): {text}", case.number, case.stack);
        }
    }
    if results.cases.iter().any(|c| c.cache == CacheState::Warm && c.status == Status::Ok) {
        out.push_str("Warm figures are those of the page cache, not of the storage device.\n");
    }
    let several = |least| results.cases.iter().any(|c| c.observed.count >= least);
    let wide = |spread: &Spread| is_wide(spread);
    if results.cases.iter().any(|c| c.status == Status::Ok && (wide(&c.observed) || wide(&c.observed_rate))) {
        out.push_str("±?: not enough repetitions; the figures spread over more than their own size.\n");
    }
    if several(6) {
        out.push_str(
            "± is half of the 95 % interval of the median; with fewer than 6 repetitions, half of the range.\n",
        );
    } else if several(2) {
        out.push_str("± is half of the range; from 6 repetitions on it is half of the 95 % interval of the median.\n");
    }
    let repeats = results.cases.iter().map(|c| c.repetitions.len()).max().unwrap_or(0);
    if repeats == 1 {
        out.push_str("One run each: differences below a few ten percent mean nothing; use --repeat 5 or more.\n");
    }
    let mut warnings: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for case in &results.cases {
        for warning in &case.warnings {
            warnings.entry(warning).or_default().push(case.number);
        }
    }
    for (warning, cases) in warnings {
        let plural = if cases.len() > 1 { "cases" } else { "case" };
        let _ = writeln!(out, "note ({plural} {}): {warning}.", ranges(&cases));
    }
    for case in results.cases.iter().filter(|c| c.status != Status::Ok) {
        let why = case.error.as_deref().unwrap_or("not reached");
        let _ = writeln!(out, "case {} {}: {}", case.number, verdict(case), why);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn stretches_of_numbers_are_shortened() {
        assert_eq!(ranges(&[1, 2, 3, 4, 7, 9, 10]), "1 to 4, 7, 9, 10");
        assert_eq!(ranges(&[5]), "5");
        assert_eq!(ranges(&[]), "");
    }
}
