//! Calibrating a system from few runs, and judging it on others.
#![allow(clippy::unwrap_used)]

use hyperslab_sim::{
    Accuracy, CalibrationRun, LayerEffects, RunPlacement, System, TableRow, TimingParameters, builtin, calibrate,
    conformal_factor, published_tables, simulate, walk,
};

/// The 14 runs that a calibration asks for, written and read, among the published rows.
fn is_asked_for(row: &TableRow) -> bool {
    let (kib, mib) = (1_u64 << 10, 1_u64 << 20);
    let apart = row.pattern == "disjoint";
    match (row.pattern.as_str(), row.api.as_str(), row.aligned, row.collective) {
        _ if row.chunk.is_some() => apart && row.api == "HDF5" && row.chunk == Some(128 * kib),
        ("disjoint" | "1-OST" | "2-OST", "POSIX", ..) => true,
        ("disjoint", "HDF5", true, false) => row.transfer == mib,
        ("disjoint", "HDF5", true, true) => row.table == "A.2" && [128 * kib, mib, 512 * mib].contains(&row.transfer),
        ("disjoint", "NC4", false, true) => row.table == "A.2" && row.transfer == 128 * kib,
        ("1-OST" | "2-OST", "HDF5", true, true) => ["A.5", "A.7"].contains(&row.table.as_str()),
        ("1-OST", "NC4", false, _) => row.table == "A.5",
        ("2-OST", "NC4", false, true) => row.table == "A.7",
        _ => false,
    }
}

/// The system without what a calibration finds.
fn bare() -> System {
    let mut system = builtin("lustre-2014").unwrap();
    system.timing = TimingParameters::neutral();
    system.calibration = hyperslab_sim::Calibration::default();
    system.nodes.link_rate.value = 1e9;
    system.storage.server_rate.value = 1e9;
    system
}

fn run(row: &TableRow, system: &System) -> CalibrationRun {
    let (workload, stack) = row.workload().unwrap();
    let placement = RunPlacement { stripe_size: 1 << 20, ..RunPlacement::of(system) };
    CalibrationRun { name: row.words(), workload, stack, placement, rate: row.rate[1] * 1048576.0 }
}

#[test]
#[ignore = "fits 29 times: a minute"]
fn fourteen_runs_predict_the_other_rows() {
    let system = bare();
    let rows = published_tables().unwrap();
    let (asked, others): (Vec<&TableRow>, Vec<&TableRow>) = rows.iter().partition(|row| is_asked_for(row));
    assert_eq!(asked.len(), 28, "{:?}", asked.iter().map(|row| (&row.table, row.words())).collect::<Vec<_>>());
    let found = calibrate(&system, &asked.iter().map(|row| run(row, &system)).collect::<Vec<_>>()).unwrap();
    assert!((found.system.nodes.link_rate.value / 112.6e6 - 1.0).abs() < 0.01, "{:?}", found.system.nodes.link_rate);
    let pair = |row: &&TableRow| {
        let run = run(row, &found.system);
        let walked = walk(&run.workload, &run.stack, &found.system, &run.placement).unwrap();
        let seconds = simulate(&walked, &found.system, &LayerEffects::default(), &found.system.timing).stages.total;
        ((walked.written + walked.read) / seconds / 1048576.0, row.rate[1])
    };
    let others: Vec<_> = others.iter().filter(|row| !asked.iter().any(|known| known.is_same_run(row))).collect();
    let accuracy = Accuracy::of(&others.iter().map(|row| pair(row)).collect::<Vec<_>>());
    eprintln!("{accuracy:?}");
    assert!(accuracy.correlation > 0.93 && accuracy.median < 0.07 && accuracy.ninety < 0.35, "{accuracy:?}");
    // Errors of runs left out say how far off other rows are, within reason.
    let factor = conformal_factor(&found.system.calibration.errors, 0.9);
    assert!(factor > 1.02 && factor < 3.0, "{factor}");
    assert_eq!(System::parse(&found.system.to_json()).unwrap().calibration.runs, 28);
}

#[test]
fn runs_of_a_known_system_find_its_parameters_and_say_which_they_cannot() {
    let truth = builtin("lustre-2014").unwrap();
    let rows = published_tables().unwrap();
    let runs: Vec<CalibrationRun> = rows
        .iter()
        .filter(|row| row.pattern == "1-OST" && row.chunk.is_none() && row.table == "A.5")
        .map(|row| {
            let mut run = run(row, &truth);
            let walked = walk(&run.workload, &run.stack, &truth, &run.placement).unwrap();
            let seconds = simulate(&walked, &truth, &LayerEffects::default(), &truth.timing).stages.total;
            run.rate = (walked.written + walked.read) / seconds;
            run
        })
        .collect();
    let found = calibrate(&bare(), &runs).unwrap();
    for row in &found.rows {
        assert!((row.fitted / row.measured - 1.0).abs() < 0.05, "{row:?}");
    }
    // Nothing here is in chunks, or waits for a disjoint collective read.
    for name in ["chunk_write", "chunk_read"] {
        assert!(found.fitted.unknown.contains(&name), "{:?}", found.fitted.unknown);
    }
    assert!(calibrate(&bare(), &runs[..2]).is_err());
    let wrong = CalibrationRun { rate: f64::NAN, ..runs[0].clone() };
    assert!(calibrate(&bare(), &[runs.clone(), vec![wrong]].concat()).is_err());
}

#[test]
fn conformal_factors_need_enough_runs() {
    let errors = [0.01, 0.02, 0.1, 0.2];
    assert!(conformal_factor(&errors, 0.9).is_infinite());
    assert!((conformal_factor(&errors, 0.5) - 0.1_f64.exp()).abs() < 1e-12);
}
