//! What the results say, in words.

use crate::cases::CaseRow;
use crate::changes::Change;
use crate::groups::Group;
use crate::provenance::RunFacts;
use crate::words::{count, ratio};
use std::collections::BTreeMap;

/// One sentence, and further ones.
pub fn words(
    runs: &[RunFacts],
    cases: &[CaseRow],
    groups: &[Group],
    changes: &[Change],
    activities: usize,
) -> (String, Vec<String>) {
    if runs.is_empty() {
        return (count(activities, "recording.", "recordings."), Vec::new());
    }
    let mut details = Vec::new();
    let of = |status: &str| cases.iter().filter(|case| case.status == status).count();
    let (good, failed, skipped) = (of("ok"), of("failed"), of("skipped"));
    let mut parts = Vec::new();
    details.extend(failures(cases, runs.len()));
    if failed > 0 {
        parts.push(format!("{failed} of {} failed", count(cases.len(), "case", "cases")));
    }
    let fastest = fastest(cases, groups);
    // Files that are no repetitions of each other have little in common, and are about something else.
    let last = cases.iter().filter(|case| case.run == runs.len()).count();
    if !changes.is_empty() && 2 * changes.len() >= last {
        parts.push(changed(changes));
        details.extend(fastest.map(|words| capital(&words) + "."));
    } else {
        parts.extend(fastest);
        if !changes.is_empty() {
            details.push(capital(&changed(changes)) + ".");
        }
    }
    if parts.is_empty() {
        parts.push(match good {
            0 => "no case succeeded".into(),
            _ => format!("{good} of {} succeeded", count(cases.len(), "case", "cases")),
        });
    }
    let verdict = capital(&parts.join("; ")) + ".";
    let rest = cases.len() - good - failed - skipped;
    let mut tally = vec![format!("{} in {}", count(cases.len(), "case", "cases"), count(runs.len(), "file", "files"))];
    tally.extend(
        [(good, "succeeded"), (failed, "failed"), (skipped, "skipped"), (rest, "not run to the end")]
            .into_iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, word)| format!("{number} {word}")),
    );
    details.push(tally.join(", ") + ".");
    let verified = cases.iter().filter(|case| case.status == "ok" && case.verified == "yes").count();
    if good > 0 {
        details.push(match verified {
            0 => "Data were not compared.".into(),
            n if n == good => "Every byte of every case that succeeded was compared, and right.".into(),
            n => format!("Data were compared, and right, in {n} of the {good} cases that succeeded."),
        });
    }
    let least = cases.iter().filter(|case| case.is_good()).map(|case| case.time.count).min().unwrap_or(0);
    if (1..3).contains(&least) {
        details.push(format!(
            "Some cases ran only {}: not enough repetitions to tell small differences from chance.",
            if least == 1 { "once" } else { "twice" }
        ));
    }
    if cases.iter().any(|case| case.is_good() && case.cache == "warm") {
        details.push("Warm figures are those of the page cache, not of the storage device.".into());
    }
    for run in runs.iter().filter(|run| !run.complete) {
        details.push(format!("The run of {} did not come to its end.", run.path));
    }
    (verdict, details)
}

/// What failed and why, each reason once.
fn failures(cases: &[CaseRow], runs: usize) -> Vec<String> {
    const MOST: usize = 4;
    let mut reasons: Vec<(String, &CaseRow, usize)> = Vec::new();
    for case in cases.iter().filter(|case| case.status == "failed") {
        let error = case.error.as_deref().unwrap_or("no reason is told");
        let reason: String = error.lines().next().unwrap_or_default().chars().take(300).collect();
        match reasons.iter_mut().find(|(known, ..)| *known == reason) {
            Some((.., more)) => *more += 1,
            None => reasons.push((reason, case, 0)),
        }
    }
    let left_out = reasons.len().saturating_sub(MOST);
    let words = |(reason, case, more): &(String, &CaseRow, usize)| {
        let others = if *more > 0 { format!(" (and {more} more)") } else { String::new() };
        let label = case.label(runs);
        format!("Failed: case {label}, {} on {}{others}: {reason}", case.benchmark, case.stack)
    };
    let mut all: Vec<String> = reasons.iter().take(MOST).map(words).collect();
    if left_out > 0 {
        all.push(format!("{left_out} more reasons of failures are with the cases below."));
    }
    all
}

/// Which stack won how often.
fn fastest(cases: &[CaseRow], groups: &[Group]) -> Option<String> {
    let compared: Vec<&Group> = groups.iter().filter(|group| group.comparable).collect();
    let close = compared.iter().filter(|group| group.close).count();
    let mut wins: BTreeMap<&str, usize> = BTreeMap::new();
    for group in compared.iter().filter(|group| !group.close) {
        *wins.entry(&cases[*group.cases.first()?].stack).or_default() += 1;
    }
    let mut wins: Vec<_> = wins.into_iter().collect();
    wins.sort_by_key(|(stack, number)| (std::cmp::Reverse(*number), *stack));
    let unsure = if close > 0 { format!("; {close} too close to call") } else { String::new() };
    match (compared.as_slice(), wins.as_slice()) {
        ([], _) => None,
        ([_, ..], []) => {
            let number = count(compared.len(), "comparison", "comparisons");
            Some(format!("no stack was clearly fastest in {number}: the intervals of the first two overlap"))
        }
        ([one], [(stack, _)]) => {
            let lead = one.lead.map(|lead| format!(", {} times as fast as the next", ratio(lead))).unwrap_or_default();
            Some(format!("fastest was {stack}{lead}"))
        }
        (_, [(stack, number), others @ ..]) => {
            let others = others.iter().take(3).map(|(stack, number)| format!(", {stack} in {number}"));
            let others: String = others.collect();
            Some(format!("fastest was {stack}, in {number} of {} comparisons{others}{unsure}", compared.len()))
        }
    }
}

fn changed(changes: &[Change]) -> String {
    let of = |word: &str| changes.iter().filter(|change| change.verdict == word).count();
    let (slower, faster) = (of("slower"), of("faster"));
    let rest: Vec<String> = [("same", of("same")), ("cannot tell", of("cannot tell"))]
        .into_iter()
        .filter(|(_, number)| *number > 0)
        .map(|(word, number)| format!("{number} {word}"))
        .collect();
    let rest = if rest.is_empty() { String::new() } else { format!(" ({})", rest.join(", ")) };
    format!(
        "from the first file to the last {slower} slower and {faster} faster of {}{rest}",
        count(changes.len(), "case", "cases")
    )
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
