//! The published tables of one system: how well they are simulated by a fit that does not know them.
#![allow(clippy::unwrap_used)]

use hyperslab_sim::{RowGroup, TableReproduction, builtin};

#[test]
fn tables_that_a_fit_does_not_know_are_simulated_well() {
    let system = builtin("lustre-2014").unwrap();
    let found = TableReproduction::of(&system).unwrap();
    assert_eq!(found.rows.len(), 154);
    let all = found.accuracy(None, |row| row.unknown);
    assert!(all.correlation >= 0.955, "{all:?}");
    assert!(all.median <= 0.05, "{all:?}");
    assert!(all.ninety <= 0.155, "{all:?}");
    for group in [RowGroup::Contiguous, RowGroup::ChunkedDisjoint, RowGroup::ChunkedInterleaved] {
        let (model, nearest) =
            (found.accuracy(Some(group), |row| row.unknown), found.accuracy(Some(group), |row| row.nearest));
        assert!(model.median < nearest.median && model.ninety < nearest.ninety, "{group:?}: {model:?} {nearest:?}");
        assert!(model.correlation > nearest.correlation, "{group:?}: {model:?} {nearest:?}");
    }
    // The system that is shipped has the timing of this fit.
    let again = found.calibrated(&system);
    for (shipped, fitted) in system.timing.values().into_iter().zip(again.timing.values()) {
        assert!((shipped / fitted - 1.0).abs() < 0.02, "{shipped} {fitted}: lustre-2014.json is not that of the fit");
    }
    assert_eq!(system.calibration.errors.len(), 154);
}
