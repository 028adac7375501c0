//! Advice in words: why the first is first, what it costs elsewhere, and what was assumed.

use super::predicted::seconds;
use super::scored_stack::{ScoredStack, Sizes};
use hyperslab_core::Stack;
use hyperslab_core::units::display_size;
use hyperslab_model::{Count, Part};

/// Parts of the present time that are worth a word.
const WORTH_SAYING: f64 = 0.05;

/// Why `best` is faster than `present`.
pub fn why(best: &ScoredStack, present: &ScoredStack) -> Vec<String> {
    let mut out = Vec::new();
    let mut saved: Vec<(f64, Part)> =
        Part::ALL.into_iter().map(|part| (present.part(part) - best.part(part), part)).collect();
    saved.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (_, part) in saved.iter().filter(|(gain, _)| *gain > WORTH_SAYING * present.seconds).take(3) {
        let (before, after) = (present.part(*part), best.part(*part));
        let because = reason(*part, best, present).map_or(String::new(), |words| format!(": {words}"));
        out.push(format!("{} takes {} instead of {}{because}", part.name(), seconds(after), seconds(before)));
    }
    if best.hidden > WORTH_SAYING * present.seconds {
        out.push(format!("{} of the I/O go on while the program computes", seconds(best.hidden)));
    }
    for (gain, part) in saved.iter().rev().filter(|(gain, _)| *gain < -WORTH_SAYING * present.seconds).take(2) {
        out.push(format!("on the other hand, {} takes {} more", part.name(), seconds(-gain)));
    }
    out
}

/// The count that explains a part, if it became less.
fn reason(part: Part, best: &ScoredStack, present: &ScoredStack) -> Option<String> {
    let counts: &[(Count, &str)] = match part {
        Part::Copy => &[
            (Count::Runs, "pieces are copied"),
            (Count::ChunkVisits, "chunks are worked on"),
            (Count::CopiedBytes, "bytes are copied"),
        ],
        Part::StorageRead => &[(Count::ReadCalls, "read calls"), (Count::ReadBytes, "bytes are read")],
        Part::StorageWrite => &[(Count::WriteCalls, "write calls"), (Count::WriteBytes, "bytes are written")],
        Part::Metadata => &[(Count::FilesCreated, "files are made"), (Count::IndexBlocks, "blocks of chunk indexes")],
        Part::Codec => &[(Count::DeflateEncoded, "bytes go through zlib")],
        Part::Cache | Part::Layer => &[],
    };
    let fewer = counts.iter().map(|(count, words)| (best.count(*count), present.count(*count), words));
    let (now, before, words) =
        fewer.filter(|(now, before, _)| (*now as f64) < 0.8 * *before as f64).max_by(|a, b| {
            let gain = |(now, before, _): &(u64, u64, &&str)| *before as f64 / (*now as f64).max(1.0);
            gain(a).total_cmp(&gain(b))
        })?;
    let shown = |n: u64| if words.starts_with("bytes") { display_size(n) } else { n.to_string() };
    let words = words.strip_prefix("bytes ").unwrap_or(words);
    Some(format!("{} {words} instead of {}", shown(now), shown(before)))
}

/// What a stack costs elsewhere, beside what is used now.
pub fn costs(best: &ScoredStack, present: &ScoredStack) -> Vec<String> {
    let mut out = Vec::new();
    if let (Ok(best), Ok(present)) = (best.sizes(), present.sizes()) {
        out.push(sizes("on storage it takes", &best, &present, Sizes::bytes));
        if best.memory > 0 || present.memory > 0 {
            out.push(sizes("in memory it holds up to", &best, &present, |sizes| sizes.memory));
        } else {
            out.push("in memory it holds up to nothing worth mentioning, as now".into());
        }
        if best.stored.files != present.stored.files {
            out.push(format!("it makes {} files instead of {}", best.stored.files, present.stored.files));
        }
    }
    out.extend(consequences(&best.stack).into_iter().map(str::to_owned));
    out
}

fn sizes(words: &str, best: &Sizes, present: &Sizes, of: impl Fn(&Sizes) -> u64) -> String {
    let (now, before) = (display_size(of(best)), display_size(of(present)));
    if now == before { format!("{words} {now}, as now") } else { format!("{words} {now} instead of {before}") }
}

/// What a stack costs whoever reads its files, and whoever loses power.
fn consequences(stack: &Stack) -> Vec<&'static str> {
    let mut out = Vec::new();
    let format = &stack.format;
    if let Ok(entry) = hyperslab_formats::format(&format.name) {
        out.extend((entry.advice.remarks)(format));
    }
    if format.get("deflate").is_some() || format.get("codec").is_some_and(|codec| codec != "none") {
        out.push("compressed chunks are read and written whole, also for a single element");
    }
    if format.get("cache").is_some() {
        out.push("the chunk cache is of every open array");
    }
    if format.get("align").is_some() {
        out.push("alignment leaves unused space before objects");
    }
    for layer in &stack.layers {
        let entry = hyperslab_layers::layers().iter().find(|entry| entry.name == layer.name);
        out.extend(entry.and_then(|entry| entry.consequence));
    }
    out
}

/// The stack that takes least on storage, if that is noticeably less than the best takes.
pub fn smaller(ranked: &[ScoredStack], best: &ScoredStack) -> Option<String> {
    let bytes = best.sizes().ok()?.bytes();
    let coded = ranked.iter().filter(|one| one.codes() && one.stack != best.stack);
    let sized = coded.filter_map(|one| Some((one.sizes().ok()?.bytes(), one)));
    // Among equal sizes the fastest.
    let (least, one) = sized.min_by(|a, b| {
        (a.0 / 1024, a.1.seconds).partial_cmp(&(b.0 / 1024, b.1.seconds)).unwrap_or(std::cmp::Ordering::Equal)
    })?;
    let factor = one.seconds / best.seconds.max(1e-12);
    (least as f64 <= 0.9 * bytes as f64).then(|| {
        format!(
            "{} would take {} on storage instead of {}, and {} ({factor:.1} times as long)",
            one.stack,
            display_size(least),
            display_size(bytes),
            seconds(one.seconds)
        )
    })
}
