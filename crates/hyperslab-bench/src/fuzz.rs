//! Workflows from strangers: no panic, no overflow, no memory out of proportion, no endless loop, neither when they are
//! read nor when they are planned and their first steps made.

mod memory;
mod samples;

use crate::case_template::{FileState, drafts};
use hyperslab_core::Caps;
use hyperslab_h5bench::Workflow;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use samples::{Entry, workflow};
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// Beyond what the text itself takes: far more than any plan needs, far less than data would take.
const MOST_MEMORY: usize = 32 << 20;
/// A loop over data or steps that a number in the file makes long would take longer.
const MOST_TIME: Duration = Duration::from_secs(20);
/// Steps of a rank that are made.
const STEPS: usize = 1000;

/// Reads and plans a workflow. Errors are fine. Says whether it could be read.
fn harmless(text: &str) -> bool {
    let begun = Instant::now();
    let (read, peak) = memory::peak_during(|| match Workflow::parse(text) {
        Ok(workflow) => {
            for ranks in [workflow.ranks.unwrap_or(1), 1, 4096] {
                plan(&workflow, ranks);
            }
            true
        }
        Err(error) => {
            assert!(!format!("{error:#}").is_empty());
            false
        }
    });
    assert!(peak < MOST_MEMORY + 64 * text.len(), "{peak} bytes for {text:.2000}");
    assert!(begun.elapsed() < MOST_TIME, "{:?} for {text:.2000}", begun.elapsed());
    read
}

/// Plans every benchmark, and walks through the first steps of the first and the last rank.
fn plan(workflow: &Workflow, ranks: usize) {
    let mut files: HashMap<String, FileState> = HashMap::new();
    let mut notes = Vec::new();
    for benchmark in &workflow.benchmarks {
        let name = |file: &str| format!("{file}.x");
        let Ok(drafts) = drafts(benchmark, ranks, Path::new("d"), &name, &mut files, &mut notes) else { continue };
        // The exerciser has two for each of its sizes; the extremes will do.
        let some = drafts.iter().take(2).chain(drafts.iter().rev().take(2));
        for work in some.filter_map(|draft| draft.work.as_ref().ok()) {
            let _ = (work.lacking(&Caps::default()), work.bytes.checked_add(work.memory));
            for rank in [0, ranks - 1] {
                let Ok(steps) = work.workload.steps(rank) else { continue };
                let made = steps.take(STEPS).take_while(Result::is_ok).count();
                assert!(made > 0, "{:?}", work.workload.header);
            }
        }
    }
}

/// Any JSON, with keys that workflows have among others.
fn tree() -> impl Strategy<Value = String> {
    let quoted = |text: String| serde_json::Value::from(text).to_string();
    let text = prop::collection::vec(any::<char>(), 0..20).prop_map(|chars| chars.into_iter().collect::<String>());
    let key = prop_oneof![select(samples::all_keys()).prop_map(str::to_owned), text.clone()].prop_map(quoted);
    let leaf =
        prop_oneof![samples::strange_value(), text.prop_map(quoted), any::<f64>().prop_map(|n| format!("{n:e}"))];
    leaf.prop_recursive(5, 60, 8, move |inner| {
        let list = prop::collection::vec(inner.clone(), 0..8).prop_map(|list| format!("[{}]", list.join(",")));
        let member = (key.clone(), inner).prop_map(|(key, value)| format!("{key}:{value}"));
        let object = prop::collection::vec(member, 0..8).prop_map(|list| format!("{{{}}}", list.join(",")));
        prop_oneof![list, object]
    })
}

/// What is done to an entry of a good workflow.
#[derive(Debug, Clone)]
enum Change {
    Drop(Index),
    Repeat(Index),
    Replace(Index, String),
    Add(&'static str, String),
    Rename(String),
}

impl Change {
    fn apply(&self, entry: &mut Entry) {
        let keys = &mut entry.keys;
        match self {
            Self::Add(key, value) => keys.push(((*key).into(), value.clone())),
            Self::Rename(file) => entry.file = file.clone(),
            _ if keys.is_empty() => {}
            Self::Drop(at) => drop(keys.remove(at.index(keys.len()))),
            Self::Repeat(at) => keys.push(keys[at.index(keys.len())].clone()),
            Self::Replace(at, value) => {
                let at = at.index(keys.len());
                keys[at].1 = value.clone();
            }
        }
    }
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        1 => any::<Index>().prop_map(Change::Drop),
        1 => any::<Index>().prop_map(Change::Repeat),
        6 => (any::<Index>(), samples::number()).prop_map(|(at, value)| Change::Replace(at, value)),
        2 => (any::<Index>(), samples::strange_value()).prop_map(|(at, value)| Change::Replace(at, value)),
        1 => (select(samples::all_keys()), samples::number()).prop_map(|(key, value)| Change::Add(key, value)),
        1 => samples::file_name().prop_map(Change::Rename),
    ]
}

fn changed() -> impl Strategy<Value = Vec<Entry>> {
    let one = (select(samples::entries()), prop::collection::vec(change(), 0..4)).prop_map(|(mut entry, changes)| {
        changes.iter().for_each(|change| change.apply(&mut entry));
        entry
    });
    prop::collection::vec(one, 1..3)
}

#[test]
fn the_samples_themselves_are_good() {
    for entry in samples::entries() {
        let text = workflow(&[entry], r#"{"ranks": 4}"#);
        Workflow::parse(&text).unwrap_or_else(|error| panic!("{error:#}: {text}"));
        assert!(harmless(&text));
    }
}

/// Every block of stairs is a piece of the selection: as many as are allowed, and more.
#[test]
fn stairs_are_harmless() {
    for steps in [1 << 14, (1 << 14) + 1, 1 << 20, 1 << 28] {
        let mut entry = samples::entries().into_iter().rev().find(|entry| entry.kind == "read").unwrap();
        let sizes = [("DIM_1", steps), ("DIM_2", steps), ("STRIDE_SIZE", 1), ("STRIDE_SIZE_2", 1)];
        for (key, value) in sizes.into_iter().chain([("BLOCK_SIZE", 1), ("BLOCK_SIZE_2", 1)]) {
            entry.keys.push((key.to_owned(), value.to_string()));
        }
        assert!(harmless(&workflow(&[entry], "{}")));
    }
}

/// Otherwise hardly any plan would be tried.
#[test]
fn a_good_part_of_the_changed_workflows_can_be_read() {
    let mut runner = TestRunner::deterministic();
    let good = (0..400).filter(|_| harmless(&workflow(&changed().new_tree(&mut runner).unwrap().current(), "{}")));
    let good = good.count();
    assert!(good >= 80, "{good} of 400");
}

#[test]
fn deep_and_long_texts_are_harmless() {
    for (opening, closing) in [("[", "]"), ("{\"a\":", "}"), ("{\"benchmarks\":[", "]}")] {
        for depth in [10, 127, 128, 100_000] {
            harmless(&format!("{}1{}", opening.repeat(depth), closing.repeat(depth)));
            harmless(&opening.repeat(depth));
        }
    }
    let entry = samples::entries().remove(0);
    harmless(&workflow(&vec![entry; 300], "{}"));
    assert!(!harmless(&format!("{{\"directory\": \"{}\"}}", "x".repeat(17 << 20))));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_harmless(characters in prop::collection::vec(prop_oneof![any::<char>(), select(samples::marks())], 0..300)) {
        harmless(&characters.into_iter().collect::<String>());
    }

    #[test]
    fn any_tree_is_harmless(tree in tree(), benchmark in tree(), configuration in tree()) {
        harmless(&tree);
        harmless(&format!(r#"{{"directory": "d", "benchmarks": [{benchmark}]}}"#));
        for kind in samples::kinds() {
            harmless(&format!(
                r#"{{"directory": "d", "benchmarks": [{{"benchmark": "{kind}", "file": "f", "configuration": {configuration}}}]}}"#
            ));
        }
    }

    #[test]
    fn changed_workflows_are_harmless(entries in changed(), ranks in samples::number()) {
        harmless(&workflow(&entries, "{}"));
        harmless(&workflow(&entries, &format!(r#"{{"ranks": {ranks}}}"#)));
    }

    #[test]
    fn damaged_workflows_are_harmless(
        entries in changed(),
        damage in prop::collection::vec((any::<Index>(), 0usize..12, prop::option::of(prop_oneof![any::<char>(), select(samples::marks())])), 1..6),
    ) {
        let mut characters: Vec<char> = workflow(&entries, "{}").chars().collect();
        for (at, length, with) in damage {
            let at = at.index(characters.len());
            let end = (at + length).min(characters.len());
            characters.splice(at..end, with);
            if characters.is_empty() {
                break;
            }
        }
        harmless(&characters.into_iter().collect::<String>());
    }
}
