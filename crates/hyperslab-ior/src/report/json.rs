//! The document for programs, with IOR's keys and a few of our own.

use super::node::Node;
use super::sections;
use super::summary::{Figures, best_rates, phases};
use super::table::MEBIBYTE;
use crate::measured::{Access, Measured};
use crate::plan::Plan;
use crate::test_run::{Row, TestResult};
use hyperslab_run::Spread;

fn object<const N: usize>(pairs: [(&str, Node); N]) -> Node {
    Node::Object(pairs.into_iter().map(|(key, node)| (key.to_owned(), node)).collect())
}

/// A phase.
pub fn row(plan: &Plan, row: &Row) -> Node {
    let (settings, measured) = (&plan.settings, &row.measured);
    object([
        ("access", Node::text(row.access.word())),
        ("bwMiB", Node::Number(measured.rate() / MEBIBYTE)),
        ("blockKiB", Node::Number(settings.block_size as f64 / 1024.0)),
        ("xferKiB", Node::Number(settings.transfer_size as f64 / 1024.0)),
        ("iops", Node::Number(measured.iops(settings.transfer_size))),
        ("latency", Node::Number(measured.latency)),
        ("openTime", Node::Number(measured.open)),
        ("wrRdTime", Node::Number(measured.transfers)),
        ("closeTime", Node::Number(measured.close)),
        ("totalTime", Node::Number(measured.total)),
        ("iter", Node::count(row.repetition)),
        ("bytes", Node::count(measured.bytes)),
        ("comparedBytes", Node::count(measured.wrong.compared)),
        ("wrongBytes", Node::count(measured.wrong.bytes)),
    ])
}

/// A removal.
pub fn removal(seconds: f64) -> Node {
    object([("access", Node::text("remove")), ("totalTime", Node::Number(seconds))])
}

/// A test with its results.
pub fn test(plan: &Plan, result: &TestResult, results: Vec<Node>, words: &[String], verbose: u64) -> Node {
    let mut pairs = sections::place(plan);
    pairs.push(("Parameters".into(), Node::Object(sections::parameters(plan))));
    pairs.push(("Options".into(), Node::Object(sections::options(plan))));
    pairs.push(("Results".into(), Node::List(results)));
    if verbose > 0 {
        let most = best_rates(result).into_iter().flat_map(|(access, rate)| {
            let key = |unit| format!("{}{unit}", access.word());
            [(key("MiB"), Node::Number(rate / MEBIBYTE)), (key("MB"), Node::Number(rate / 1e6))]
        });
        pairs.push(("max".into(), Node::Object(most.collect())));
    }
    let remarks = words.iter().map(Node::text).collect();
    pairs.push(("Remarks".into(), Node::List(remarks)));
    Node::Object(pairs)
}

/// All accesses of all tests.
pub fn summaries(tests: &[(&Plan, &TestResult)]) -> Vec<Node> {
    let of = |plan: &Plan, result: &TestResult, access| {
        let phases = phases(result, access);
        (!phases.is_empty()).then(|| summary(plan, access, &phases))
    };
    let both = [Access::Write, Access::Read];
    tests.iter().flat_map(|(plan, result)| both.into_iter().filter_map(|access| of(plan, result, access))).collect()
}

fn summary(plan: &Plan, access: Access, phases: &[&Measured]) -> Node {
    let s = &plan.settings;
    let rates: Vec<f64> = phases.iter().map(|phase| phase.rate() / MEBIBYTE).collect();
    let bytes = Figures::of(&rates);
    let rate = |phase: &&Measured| phase.bytes as f64 / s.transfer_size as f64 / phase.total;
    let operations = Figures::of(&phases.iter().map(rate).collect::<Vec<_>>());
    let spread = Spread::of(rates);
    object([
        ("operation", Node::text(access.word())),
        ("API", Node::text(&s.api)),
        ("TestID", Node::count(plan.id as u64)),
        ("ReferenceNumber", Node::Count(s.ref_num)),
        ("segmentCount", Node::count(s.segment_count)),
        ("blockSize", Node::count(s.block_size)),
        ("transferSize", Node::count(s.transfer_size)),
        ("numTasks", Node::count(plan.ranks as u64)),
        ("tasksPerNode", Node::count(plan.per_node as u64)),
        ("repetitions", Node::count(s.repetitions)),
        ("filePerProc", Node::flag(s.file_per_proc)),
        ("reorderTasks", Node::flag(s.reorder_tasks)),
        ("taskPerNodeOffset", Node::count(s.task_per_node_offset)),
        ("reorderTasksRandom", Node::count(s.reorder_random)),
        ("reorderTasksRandomSeed", Node::Count(s.reorder_seed)),
        ("bwMaxMIB", Node::Number(bytes.max)),
        ("bwMinMIB", Node::Number(bytes.min)),
        ("bwMeanMIB", Node::Number(bytes.mean)),
        ("bwStdMIB", Node::Number(bytes.deviation)),
        ("bwMedianMIB", Node::Number(spread.median)),
        ("OPsMax", Node::Number(operations.max)),
        ("OPsMin", Node::Number(operations.min)),
        ("OPsMean", Node::Number(operations.mean)),
        ("OPsSD", Node::Number(operations.deviation)),
        ("MeanTime", Node::Number(phases.iter().map(|phase| phase.total).sum::<f64>() / phases.len() as f64)),
        ("xsizeMiB", Node::Number(phases[0].bytes as f64 / MEBIBYTE)),
    ])
}
