//! The suite notices what it is there to notice: the oracle with a defect fails it.
#![allow(clippy::unwrap_used)]

#[path = "catches/broken.rs"]
mod broken;

use broken::{Broken, Defect};
use hyperslab_core::Format;
use hyperslab_testkit::{Overrides, conformance, model};
use libtest_mimic::{Arguments, Trial};
use std::sync::Arc;

/// How many trials with `part` in their names fail.
fn failures(trials: Vec<Trial>, part: &str) -> u64 {
    let log = tempfile::NamedTempFile::new().unwrap();
    let arguments = Arguments {
        filter: Some(part.into()),
        logfile: Some(log.path().display().to_string()),
        quiet: true,
        ..Arguments::default()
    };
    libtest_mimic::run(&arguments, trials).num_failed
}

fn suite(defect: Defect, part: &str) -> u64 {
    let format: Arc<dyn Format> = Arc::new(Broken(defect));
    failures(conformance::trials("broken", &format, Overrides::default()), part)
}

#[test]
fn the_oracle_without_a_defect_passes() {
    assert_eq!(suite(Defect::None, ""), 0);
}

#[test]
fn defects_are_caught() {
    for (defect, part) in [
        (Defect::LosesLastByteOfReads, "datatype/"),
        (Defect::LosesLastByteOfReads, "layout/"),
        (Defect::TouchesBytesBetween, "layout/"),
        (Defect::IgnoresStrides, "rank/"),
        (Defect::AcceptsAnything, "errors/"),
        (Defect::KeepsCutOffData, "resize/"),
        (Defect::ForgetsFillValue, "fill value/"),
        (Defect::WidensAttributes, "attribute/"),
        (Defect::WritesWhenReading, "open/"),
        (Defect::WorksAfterClose, "close/"),
        (Defect::LosesUpdates, "disjoint blocks"),
        (Defect::HearsOnlyItself, "one fails/creating"),
    ] {
        assert!(suite(defect, part) > 0, "{defect:?} passes {part}");
    }
}

#[test]
fn random_sequences_catch_defects() {
    for defect in [Defect::LosesLastByteOfReads, Defect::IgnoresStrides, Defect::KeepsCutOffData] {
        let format: Arc<dyn Format> = Arc::new(Broken(defect));
        assert_eq!(failures(model::trials("broken", &format, 60), ""), 1, "{defect:?} equals the oracle");
    }
}
