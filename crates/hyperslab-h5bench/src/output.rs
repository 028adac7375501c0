//! What h5bench prints and writes, for those who parse it: the same names, units and order.

use super::pattern::{Mode, Pattern, PatternKind};
use hyperslab_run::{CaseResult, RankMeasurement, Repetition};
use std::fmt::Write;

/// The figures of one repetition in h5bench's terms, in seconds, bytes and bytes per second.
struct Figures {
    ranks: usize,
    compute: f64,
    size: f64,
    raw: f64,
    metadata: f64,
    create: f64,
    flush: f64,
    close: f64,
    completion: f64,
    raw_rate: f64,
    observed_rate: f64,
}

impl Figures {
    /// Of the repetition in the middle by observed time, so that all figures are of one run.
    fn of(result: &CaseResult) -> Option<Self> {
        let mut order: Vec<&Repetition> = result.repetitions.iter().collect();
        order.sort_by(|a, b| a.slowest(|m| m.observed).total_cmp(&b.slowest(|m| m.observed)));
        let middle = order.get(order.len().checked_sub(1)? / 2)?;
        let slowest = |time: fn(&RankMeasurement) -> f64| middle.slowest(time);
        let size = middle.bytes() as f64;
        let rate = |seconds: f64| if seconds > 0.0 { size / seconds } else { 0.0 };
        let (raw, observed) = (slowest(|m| m.raw), slowest(|m| m.observed));
        Some(Self {
            ranks: result.ranks,
            compute: slowest(|m| m.compute),
            size,
            raw,
            metadata: slowest(|m| m.metadata),
            create: slowest(|m| m.open_file),
            flush: slowest(|m| m.flush),
            close: slowest(|m| m.close_file),
            completion: slowest(|m| m.observed + m.compute),
            raw_rate: middle.raw_rate(),
            observed_rate: rate(observed),
        })
    }
}

/// A size in h5bench's units: powers of 1024 with one letter, three places.
fn human(bytes: f64) -> (String, &'static str) {
    const UNITS: [&str; 5] = ["B", "KB", "MB", "GB", "TB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    (format!("{value:.3}"), UNITS[unit])
}

impl PatternKind {
    /// The word in labels.
    fn verb(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Overwrite | Self::Append => "modify",
            _ => "write",
        }
    }

    /// The word in CSV files.
    fn operation(self) -> &'static str {
        match self {
            Self::WriteUnlimited => "write unlimited",
            other => other.name(),
        }
    }
}

impl Pattern {
    fn mode_name(&self) -> &'static str {
        match self.mode {
            Mode::Async => "ASYNC",
            Mode::Sync | Mode::Log => "SYNC",
        }
    }

    /// Total, mean and standard deviation of the ranks' particles, when they differ.
    fn spread(&self, ranks: usize) -> Option<(f64, f64, f64)> {
        let particles = hyperslab_kernels::Particles { ranks, ..self.particles.clone() };
        let (mean, deviation) = particles.distribution().ok()?;
        (self.kind == PatternKind::WriteVarNormalDist).then_some((mean * ranks as f64, mean, deviation))
    }
}

/// What was run, in the manner of h5bench's first block.
fn configuration(pattern: &Pattern, result: &CaseResult) -> String {
    let particles = &pattern.particles;
    let yes_no = |flag: bool| if flag { "YES" } else { "NO" };
    format!(
        "================ Benchmark Configuration ==================\n\
         File: {}\nStack: {}\nWorkload: {}\nNumber of particles per rank: {}\nNumber of time steps: {}\n\
         Emulated compute time per timestep: {:.3} s\nMode: {}\nCollective metadata operations: {}\n\
         Collective buffering for data operations: {}\n\
         ===========================================================\n",
        result.file,
        result.stack,
        result.workload,
        hyperslab_core::dims::display(&particles.extent),
        particles.time_steps,
        particles.compute.as_secs_f64(),
        pattern.mode_name(),
        yes_no(pattern.asked.collective_metadata),
        yes_no(pattern.asked.collective_data),
    )
}

/// The block that h5bench's programs print; `None` without a finished repetition.
pub fn block(pattern: &Pattern, result: &CaseResult) -> Option<String> {
    let figures = Figures::of(result)?;
    let (verb, mode) = (pattern.kind.verb(), pattern.mode_name());
    let mut out = configuration(pattern, result);
    out.push_str("\n=================== Performance Results ==================\n");
    let mut line = |label: &str, value: String| {
        let _ = writeln!(out, "{label}: {value}");
    };
    let seconds = |value: f64| format!("{value:.3} s");
    let with_unit = |bytes: f64, more: &str| {
        let (value, unit) = human(bytes);
        format!("{value} {unit}{more}")
    };
    line("Total number of ranks", figures.ranks.to_string());
    if let Some((total, mean, deviation)) = pattern.spread(result.ranks) {
        line("Total number of particles", format!("{}M", (total / f64::from(1 << 20)) as u64));
        line("Final mean particles", format!("{}", mean as u64));
        line("Final standard deviation", format!("{deviation:.6}"));
    }
    line("Total emulated compute time", seconds(figures.compute));
    line(&format!("Total {verb} size"), with_unit(figures.size, ""));
    line(&format!("Raw {verb} time"), seconds(figures.raw));
    line("Metadata time", seconds(figures.metadata));
    if pattern.kind.creates() {
        line("H5Fcreate() time", seconds(figures.create));
        line("H5Fflush() time", seconds(figures.flush));
        line("H5Fclose() time", seconds(figures.close));
    }
    let word = if verb == "write" { String::new() } else { format!("{verb} ") };
    line(&format!("Observed {word}completion time"), seconds(figures.completion));
    line(&format!("{mode} Raw {verb} rate"), with_unit(figures.raw_rate, "/s"));
    line(&format!("{mode} Observed {verb} rate"), with_unit(figures.observed_rate, "/s"));
    out.push_str("===========================================================\n");
    Some(out)
}

/// The CSV file that CSV_FILE names: the environment's metadata, if any, then metric, value, unit.
pub fn csv(pattern: &Pattern, result: &CaseResult, environment: &[(String, String)]) -> Option<String> {
    let figures = Figures::of(result)?;
    let mut out = String::new();
    for (name, value) in environment {
        let _ = writeln!(out, "{name}, {value}");
    }
    let _ = writeln!(out, "metric, value, unit");
    let mut row = |metric: &str, value: String, unit: &str| {
        let _ = writeln!(out, "{metric}, {value}, {unit}");
    };
    let yes_no = |flag: bool| if flag { "YES" } else { "NO" }.to_owned();
    row("operation", pattern.kind.operation().into(), "");
    row("ranks", figures.ranks.to_string(), "");
    if let Some((total, mean, deviation)) = pattern.spread(result.ranks) {
        row("Total number of particles", format!("{}M", (total / f64::from(1 << 20)) as u64), "");
        row("Final mean particles", format!("{}", mean as u64), "");
        row("Final standard deviation", format!("{deviation:.6}"), "");
    }
    if pattern.kind.verb() != "modify" {
        row("collective data", yes_no(pattern.asked.collective_data || !pattern.particles.filters.is_empty()), "");
        row("collective meta", yes_no(pattern.asked.collective_metadata), "");
        if pattern.kind != PatternKind::WriteUnlimited {
            row("subfiling", yes_no(pattern.asked.subfiling), "");
        }
    }
    let sized = |metric: &str, bytes: f64, per: &str| {
        let (value, unit) = human(bytes);
        (metric.to_owned(), value, format!("{unit}{per}"))
    };
    let seconds = |metric: &str, value: f64| (metric.to_owned(), format!("{value:.3}"), "seconds".to_owned());
    for (metric, value, unit) in [
        seconds("total compute time", figures.compute),
        sized("total size", figures.size, ""),
        seconds("raw time", figures.raw),
        sized("raw rate", figures.raw_rate, "/s"),
        seconds("metadata time", figures.metadata),
        sized("observed rate", figures.observed_rate, "/s"),
        seconds("observed time", figures.completion),
    ] {
        row(&metric, value, &unit);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::human;

    #[test]
    fn sizes_are_powers_of_1024_with_three_places() {
        assert_eq!(human(640.0 * 1024.0 * 1024.0), ("640.000".into(), "MB"));
        assert_eq!(human(1023.0), ("1023.000".into(), "B"));
        assert_eq!(human(3.0 * 1024f64.powi(5)), ("3072.000".into(), "TB"));
    }
}
