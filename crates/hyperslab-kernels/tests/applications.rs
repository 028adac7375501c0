//! FLASH-IO, BTIO, training reads, VPIC and BD-CATS: the ranks' selections tile the arrays as declared.
#![allow(clippy::unwrap_used)]

#[path = "common/doing.rs"]
mod doing;

use doing::doing;
use hyperslab_core::workload::{Step, Workload};
use hyperslab_core::{Datatype, Error, Result, TransferMode};
use hyperslab_kernels::{Btio, Calls, CosmoFlow, Decomposition, Files, Flash, FlashFile, Kernel, ReadUnit, kernels};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::Duration;

struct NoFiles;

impl Files for NoFiles {
    fn e3sm_maps(&self, _: &[&str]) -> Result<Vec<Decomposition>> {
        Err(Error::invalid("test", "no files"))
    }
}

fn flash() -> impl Strategy<Value = Flash> {
    (1usize..8, 1u64..5, prop::array::uniform3(1u64..4), 0u64..3, 1usize..4, 1usize..3).prop_map(
        |(ranks, blocks, cells, guard, variables, plot_variables)| Flash {
            ranks,
            file: "f".into(),
            blocks,
            cells,
            guard,
            variables,
            plot_variables,
            transfer: TransferMode::Collective,
            seed: 1,
        },
    )
}

fn btio() -> impl Strategy<Value = Btio> {
    (1usize..5, prop::array::uniform3(0u64..7), 1u64..4, 0u64..3, any::<bool>()).prop_map(
        |(side, more, dumps, ghost, one)| Btio {
            ranks: side * side,
            file: "b.h5".into(),
            grid: more.map(|more| 3 * side as u64 + more),
            dumps,
            ghost,
            calls: if one { Calls::One } else { Calls::Cells },
            compute: Duration::ZERO,
            transfer: TransferMode::Collective,
            seed: 1,
        },
    )
}

fn cosmoflow() -> impl Strategy<Value = CosmoFlow> {
    (1usize..6, 1u64..12, 1u64..4, prop::collection::vec(1u64..4, 1..5), 1u64..6, any::<bool>()).prop_map(
        |(ranks, each, files, sample, batch, whole)| CosmoFlow {
            ranks,
            file: "c".into(),
            samples: each * files,
            files,
            sample: sample.into(),
            dtype: "<u2".parse().unwrap(),
            batch,
            unit: if whole { ReadUnit::Batch } else { ReadUnit::Sample },
            compute: Duration::from_millis(1),
            seed: 3,
        },
    )
}

proptest! {
    #[test]
    fn flash_tiles_every_array(flash in flash()) {
        for (file, variables, more, float) in [
            (FlashFile::Checkpoint, flash.variables, 0, 8),
            (FlashFile::Centred, flash.plot_variables, 0, 4),
            (FlashFile::Corner, flash.plot_variables, 1, 4),
        ] {
            let workload = flash.write(file).unwrap();
            let doing = doing(&workload);
            prop_assert_eq!(doing.touched.len(), 6 + variables);
            prop_assert!(doing.touched.values().all(|touched| touched.is_tiled()));
            let blocks: u64 = (0..flash.ranks as u64).map(|rank| flash.blocks + rank % 3).sum();
            let cells: u64 = flash.cells.iter().map(|cells| cells + more).product();
            let each = 4 + 4 + 15 * 4 + (3 + 3 + 6 + variables as u64 * cells) * float;
            prop_assert_eq!(doing.bytes, blocks * each);
        }
    }

    #[test]
    fn btio_tiles_every_record(btio in btio()) {
        let points = btio.grid.iter().product::<u64>();
        for workload in [btio.write().unwrap(), btio.read().unwrap()] {
            let doing = doing(&workload);
            let touched = doing.touched.values().next().unwrap();
            prop_assert_eq!(touched.shape[0], btio.dumps);
            prop_assert!(touched.is_tiled());
            prop_assert_eq!(doing.bytes, btio.dumps * points * 40);
            let side = btio.ranks.isqrt();
            let calls = if btio.calls == Calls::One { 1 } else { side };
            prop_assert_eq!(touched.parts.len(), btio.dumps as usize * btio.ranks * calls);
        }
    }

    #[test]
    fn every_epoch_reads_every_sample_once(kernel in cosmoflow()) {
        let mut orders = BTreeSet::new();
        for workload in [kernel.write().unwrap(), kernel.epoch(0).unwrap(), kernel.epoch(1).unwrap()] {
            let doing = doing(&workload);
            prop_assert_eq!(doing.touched.len() as u64, kernel.files);
            prop_assert!(doing.touched.values().all(|touched| touched.is_tiled()));
            prop_assert_eq!(doing.bytes, kernel.samples * kernel.sample.iter().product::<u64>() * 2);
            orders.insert(format!("{:?}", doing.touched.values().map(|touched| &touched.parts).collect::<Vec<_>>()));
        }
        if kernel.samples > 20 && kernel.unit == ReadUnit::Sample {
            prop_assert_eq!(orders.len(), 3, "every epoch has its own order");
        }
    }
}

fn some_btio() -> Btio {
    Btio {
        ranks: 9,
        file: "b.h5".into(),
        grid: [10, 11, 12],
        dumps: 2,
        ghost: 2,
        calls: Calls::Cells,
        compute: Duration::from_millis(5),
        transfer: TransferMode::Collective,
        seed: 0,
    }
}

/// Where the cells of a rank begin, worked out by hand from the published rule.
#[test]
fn btio_owns_the_diagonals_of_the_published_code() {
    let workload = some_btio().write().unwrap();
    let doing = doing(&workload);
    let touched = doing.touched.values().next().unwrap();
    let starts = |rank: usize| -> Vec<Vec<u64>> {
        let mine = touched.parts.iter().filter(|(owner, _)| *owner == rank).take(3);
        mine.map(|(_, part)| part.bounds().unwrap().0[1..4].to_vec()).collect()
    };
    // Cells begin at 0 4 7 of 10, at 0 4 8 of 11, at 0 4 8 of 12; rank 5 is in row 1 and column 2 of the first layer.
    assert_eq!(starts(5), [[0, 4, 8], [4, 0, 0], [7, 8, 4]]);
    assert_eq!(starts(0), [[0, 0, 0], [4, 8, 4], [7, 4, 8]]);
    assert_eq!(workload.header.arrays[0].spec.chunk.as_deref(), Some(&[1, 4, 4, 4, 5][..]));
    let steps = |wanted: fn(&Step) -> bool| {
        workload.steps(5).unwrap().collect::<Result<Vec<_>>>().unwrap().iter().filter(|step| wanted(step)).count()
    };
    assert_eq!(steps(|step| matches!(step, Step::Compute { nanoseconds: 5_000_000 })), 1, "between two dumps");
    assert_eq!(steps(|step| matches!(step, Step::Resize { .. })), 1);
}

#[test]
fn what_contradicts_itself_is_refused() {
    let said = |workload: Result<Workload>| workload.unwrap_err().to_string();
    let btio = some_btio();
    for (btio, words) in [
        (Btio { ranks: 8, ..btio.clone() }, "no square number"),
        (Btio { ranks: 0, ..btio.clone() }, "no square number"),
        (Btio { grid: [8, 9, 9], ..btio.clone() }, "at least 3"),
        (Btio { dumps: 0, ..btio.clone() }, "at least 1"),
        (Btio { ghost: u64::MAX, ..btio.clone() }, "too many"),
        (Btio { grid: [1 << 30, 1 << 30, 1 << 30], ..btio.clone() }, "2^6"),
        (Btio { file: "../b".into(), ..btio }, "relative"),
    ] {
        let error = said(btio.write());
        assert!(error.contains(words), "{error}");
        assert!(btio.read().is_err());
    }
    let flash = Flash {
        ranks: 2,
        file: "f".into(),
        blocks: 2,
        cells: [2, 2, 2],
        guard: 0,
        variables: 1,
        plot_variables: 1,
        transfer: TransferMode::Collective,
        seed: 1,
    };
    for flash in [
        Flash { blocks: 0, ..flash.clone() },
        Flash { cells: [0, 2, 2], ..flash.clone() },
        Flash { blocks: u64::MAX, ..flash.clone() },
        Flash { cells: [1 << 30, 1 << 30, 2], ..flash.clone() },
        Flash { guard: u64::MAX, ..flash },
    ] {
        assert!(flash.write(FlashFile::Checkpoint).is_err(), "{flash:?}");
    }
    let kernel = CosmoFlow {
        ranks: 2,
        file: "c".into(),
        samples: 8,
        files: 2,
        sample: [2].as_slice().into(),
        dtype: Datatype::F32,
        batch: 2,
        unit: ReadUnit::Sample,
        compute: Duration::ZERO,
        seed: 1,
    };
    for kernel in [
        CosmoFlow { files: 3, ..kernel.clone() },
        CosmoFlow { samples: 0, ..kernel.clone() },
        CosmoFlow { samples: 1 << 40, ..kernel.clone() },
        CosmoFlow { batch: 0, ..kernel.clone() },
        CosmoFlow { seed: u64::MAX, ..kernel.clone() },
        CosmoFlow { sample: [1 << 62].as_slice().into(), ..kernel },
    ] {
        assert!(kernel.write().is_err() && kernel.epoch(0).is_err(), "{kernel:?}");
    }
}

/// What people see of a kernel agrees with what it takes, and its default is small.
#[test]
fn every_kernel_runs_with_its_defaults() {
    let names: Vec<&str> = kernels().iter().map(|kernel| kernel.name).collect();
    assert!(names.is_sorted(), "{names:?}");
    for kernel in kernels() {
        assert!(kernel.about.len() < 100 && kernel.stands_for.len() > 100, "{}", kernel.name);
        let mut bytes = 0;
        for phase in kernel.phases::<&str>(&[], kernel.ranks, &NoFiles).unwrap() {
            assert!(phase.label.starts_with(kernel.name), "{}", phase.label);
            let summary = phase.workload.validate().unwrap();
            bytes += summary.bytes_written + summary.bytes_read;
            assert!(summary.steps < 100_000, "{}: {} steps", phase.label, summary.steps);
        }
        assert!((4000..256 << 20).contains(&bytes), "{}: {bytes} bytes", kernel.name);
        // Every default is what the key would be if it were given.
        for key in kernel.keys {
            let given = format!("{}={}", key.name, key.default);
            kernel.phases(&[given], kernel.ranks, &NoFiles).unwrap();
        }
        assert!(kernel.phases(&["no_such_key=1"], kernel.ranks, &NoFiles).is_err());
    }
    assert!(Kernel::named("flash").is_some() && Kernel::named("flsh").is_none());
}
