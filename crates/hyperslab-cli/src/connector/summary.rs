//! What the connector did, in words.

use super::Ended;
use super::advice::advice;
use super::statistics::{Process, Reason, SideStatistics, Statistics};
use hyperslab_core::units::display_size;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The most reasons that are shown.
const MOST_REASONS: usize = 6;
/// Remarks of layers in the summary.
const MOST_REMARKS: usize = 4;
/// Less than this is not worth a line.
const NOTICEABLE: f64 = 0.01;

/// A few lines about all processes; `None` if no process used the connector.
pub fn summary(statistics: &Statistics) -> Option<String> {
    let processes = &statistics.processes;
    if processes.is_empty() {
        return None;
    }
    let mut text = headline(processes);
    let (write, read) = (add(processes.iter().map(|p| &p.write)), add(processes.iter().map(|p| &p.read)));
    for (what, side) in [("written", &write), ("read", &read)] {
        if side.calls > 0 {
            let _ = writeln!(text, "  {what:<8} {}", amounts(side));
        }
    }
    text += &left_to_libhdf5(processes);
    let sum = |of: fn(&Process) -> f64| processes.iter().map(of).sum::<f64>();
    let (background, saved) = (sum(|p| p.background_seconds), sum(|p| p.hidden_seconds));
    if background > NOTICEABLE {
        let _ = writeln!(
            text,
            "  in the background {background:.2} s of I/O, of which the program did not wait for {saved:.2} s"
        );
    }
    let cut_off = processes.iter().filter(|p| !p.ended && p.open_files > 0).count() as u64;
    if cut_off > 0 {
        let processes = if cut_off == 1 { "process" } else { "processes" };
        let _ = writeln!(text, "  {cut_off} {processes} ended without closing files: the last moments are not counted");
    }
    if let Some(peak) = processes.iter().map(|p| p.peak_memory).max().filter(|peak| *peak > 0) {
        let each = if processes.len() > 1 { " in any process" } else { "" };
        let _ = writeln!(text, "  memory held at most {}{each}", display_size(peak));
    }
    for remark in processes.iter().flat_map(|p| &p.remarks).take(MOST_REMARKS) {
        let _ = writeln!(text, "  {remark}");
    }
    text += &advice(processes, &write, &read);
    match processes.iter().map(|p| p.errors).sum::<u64>() {
        0 => {}
        errors => {
            let _ = writeln!(text, "  {} told to the program: look for what HDF5 said", many(errors, "error"));
        }
    }
    if statistics.strange > 0 {
        let lines = many(statistics.strange as u64, "line");
        let _ =
            writeln!(text, "  {lines} of statistics are not understood: the plugin and this program differ in version");
    }
    Some(text)
}

fn headline(processes: &[Process]) -> String {
    let all =
        |of: fn(&Process) -> &str| processes.iter().map(of).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
    let pids: BTreeSet<u32> = processes.iter().map(|p| p.pid).collect();
    let who = match pids.len() {
        1 => all(|p| &p.program).join(", "),
        n => format!("{n} processes ({})", all(|p| &p.program).join(", ")),
    };
    let (files, datasets) = (processes.iter().map(|p| p.files).sum(), processes.iter().map(|p| p.datasets).sum());
    let opened = match files {
        0 => "no file opened".to_owned(),
        _ => format!("{}, {}", many(files, "file"), many(datasets, "dataset")),
    };
    format!("{who}: HDF5 {}, mode {}, {opened}\n", all(|p| &p.library).join(" and "), all(|p| &p.mode).join(" and "))
}

fn add<'a>(sides: impl Iterator<Item = &'a SideStatistics>) -> SideStatistics {
    sides.fold(SideStatistics::default(), |sum, side| SideStatistics {
        calls: sum.calls + side.calls,
        bytes: sum.bytes + side.bytes,
        accelerated_calls: sum.accelerated_calls + side.accelerated_calls,
        accelerated_bytes: sum.accelerated_bytes + side.accelerated_bytes,
        seconds: sum.seconds + side.seconds,
    })
}

fn amounts(side: &SideStatistics) -> String {
    let total = format!("{} in {}, {:.2} s", display_size(side.bytes), many(side.calls, "call"), side.seconds);
    match side.accelerated_calls {
        0 => format!("{total}: none around libhdf5"),
        calls if calls == side.calls => format!("{total}: all around libhdf5"),
        calls => format!("{total}: {} around libhdf5{}", many(calls, "call"), share(side)),
    }
}

/// The share of the bytes, of which there may be none. Never all where something is missing, nor none where something is there.
fn share(side: &SideStatistics) -> String {
    match (side.accelerated_bytes, side.bytes) {
        (_, 0) => String::new(),
        (some, all) => match 100.0 * some as f64 / all as f64 {
            _ if some >= all => " (all bytes)".into(),
            percent if some > 0 && percent < 1.0 => " (less than 1 % of the bytes)".into(),
            percent => format!(" ({:.0} % of the bytes)", percent.floor()),
        },
    }
}

fn left_to_libhdf5(processes: &[Process]) -> String {
    let mut reasons: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    for Reason { what, why, calls, bytes } in processes.iter().flat_map(|process| &process.fell_back) {
        let entry = reasons.entry((what, why)).or_default();
        entry.0 += calls;
        entry.1 += bytes;
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, (calls, bytes))| std::cmp::Reverse((*bytes, *calls)));
    let mut text = String::new();
    if !reasons.is_empty() {
        text += "  left to libhdf5\n";
    }
    for ((what, why), (calls, bytes)) in reasons.iter().take(MOST_REASONS) {
        let _ = writeln!(text, "    {}, {}: {why}", many(*calls, what), display_size(*bytes));
    }
    if reasons.len() > MOST_REASONS {
        let _ = writeln!(text, "    and for {} more reasons: --stats lists them", reasons.len() - MOST_REASONS);
    }
    text
}

/// `1 file`, `2 files`.
fn many(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Why there may be no statistics at all, and what to do.
pub fn nothing_seen(ended: Ended) -> String {
    if let Some(signal) = ended.signal() {
        return format!(
            "no process had told of files that it opened through HDF5 when the command ended by signal {signal}\n"
        );
    }
    "no process of the command used HDF5 through the connector\n  \
     either none used HDF5 at all, or\n  \
     - its HDF5 is older than 1.14, which knows no such connectors\n  \
     - HDF5 is linked into the program statically, without its symbols exported (-rdynamic)\n  \
     - it sets HDF5_VOL_CONNECTOR or HDF5_PLUGIN_PATH itself, or was started without this environment (remote ranks, sudo)\n  \
     try: hyperslab doctor PROGRAM, with the program or the Python that uses HDF5\n"
        .to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn process(pid: u32) -> Process {
        Process {
            pid,
            program: "python3".into(),
            library: "2.0.0".into(),
            mode: "codec".into(),
            files: 1,
            datasets: 2,
            write: SideStatistics {
                calls: 4,
                bytes: 4096,
                accelerated_calls: 3,
                accelerated_bytes: 1024,
                seconds: 0.5,
            },
            fell_back: vec![Reason { what: "write".into(), why: "text".into(), calls: 1, bytes: 3072 }],
            ..Process::default()
        }
    }

    #[test]
    fn processes_are_added_up() {
        let statistics = Statistics { processes: vec![process(1), process(2)], ..Statistics::default() };
        let text = summary(&statistics).unwrap();
        assert_eq!(
            text,
            "2 processes (python3): HDF5 2.0.0, mode codec, 2 files, 4 datasets\n  \
             written  8.00 KiB in 8 calls, 1.00 s: 6 calls around libhdf5 (25 % of the bytes)\n  \
             left to libhdf5\n    2 writes, 6.00 KiB: text\n  \
             you waited 1.0 s in writes, most by libhdf5: what it is left with is listed above\n"
        );
    }

    #[test]
    fn shares_say_no_more_than_is_true() {
        let side = |bytes, accelerated_bytes| SideStatistics {
            calls: 2,
            accelerated_calls: 1,
            bytes,
            accelerated_bytes,
            ..SideStatistics::default()
        };
        for (bytes, fast, said) in [
            (0, 0, "1 call around libhdf5"),
            (1_000_000, 999_999, "(99 % of the bytes)"),
            (1_000_000, 1, "(less than 1 % of the bytes)"),
            (8, 8, "(all bytes)"),
        ] {
            let text = amounts(&side(bytes, fast));
            assert!(text.ends_with(said), "{text}");
        }
        assert!(amounts(&SideStatistics { calls: 1, ..SideStatistics::default() }).ends_with("none around libhdf5"));
    }

    #[test]
    fn work_in_the_background_is_time_saved() {
        let mut one = process(1);
        (one.background_seconds, one.hidden_seconds, one.errors) = (2.0, 1.5, 1);
        one.remarks = vec!["x.h5: auto: 3 of 3 epochs async".into()];
        let text = summary(&Statistics { processes: vec![one], ..Statistics::default() }).unwrap();
        assert!(text.contains("2.00 s of I/O, of which the program did not wait for 1.50 s"), "{text}");
        assert!(text.contains("1 error told to the program"), "{text}");
        assert!(text.contains("\n  x.h5: auto: 3 of 3 epochs async\n"), "{text}");
        assert!(summary(&Statistics::default()).is_none());
    }
}
