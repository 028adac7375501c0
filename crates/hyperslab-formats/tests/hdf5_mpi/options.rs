//! What the options of shared files do.

use super::stage::{Check, Stage, format};
use hyperslab_comm::Solo;
use hyperslab_core::{
    Datatype, Durability, ErrorKind, MemoryLayout, MemoryView, MemoryViewMut, OpenMode, Selection, TransferMode,
};

pub const ALL: &[Check] = &[
    ("options keep the data", data_is_kept),
    ("drivers need their ranks", drivers),
    ("conversions are told", conversion),
    ("subfiling", subfiling),
];

fn data_is_kept(stage: &Stage) {
    let shape = [30, 20];
    for stack in [
        "hdf5(driver=mpio)",
        "hdf5(chunk_io=one,chunk=4x4)",
        "hdf5(chunk_io=multi,chunk=4x4)",
        "hdf5(chunk_io=multi,chunk=4x4,deflate=1)",
        "hdf5(chunk_io=one,chunk=4x4,deflate=1,collective_metadata=yes)",
        "hdf5(collective_metadata=yes,chunk=4x4,libver=latest)",
        "hdf5(hints=\"cb_nodes=1;romio_cb_write=enable;unknown_to_all=3\")",
        "hdf5(alloc_time=incremental,layout=chunked,fill_time=alloc)",
        "hdf5(align=4KiB,align_threshold=1KiB,meta_block=64KiB)",
    ] {
        let file = stage.open(stack, "options.h5", OpenMode::Truncate);
        let array = stage.create(&file, "a", &shape);
        stage.put(&*array, &stage.columns(&shape), &shape, TransferMode::Collective);
        stage.put(&*array, &stage.rows(&shape), &shape, TransferMode::Collective);
        file.flush(Durability::Durable).unwrap();
        stage.get(&*array, &stage.rows(&shape), &shape, TransferMode::Collective);
        if stack == "hdf5(chunk_io=multi,chunk=4x4)" && stage.size() == 4 {
            let told = "1 of 1 collective reads of this rank ran independently: too few ranks had elements in each";
            assert!(file.diagnostics()[1].starts_with(told), "{:?}", file.diagnostics());
        } else {
            assert!(stack.contains("multi") || file.diagnostics().is_empty(), "{stack}: {:?}", file.diagnostics());
        }
        file.close().unwrap();
        stage.verify_alone("options.h5", "a", &shape);
        let file = stage.open(stack, "options.h5", OpenMode::Read);
        stage.get(&*file.array("a").unwrap(), &stage.columns(&shape), &shape, TransferMode::Collective);
        file.close().unwrap();
    }
}

fn drivers(stage: &Stage) {
    // The environment does not say the same.
    let stack = "hdf5(driver=subfiling,ioc_per_node=3)";
    let error = format(stack).open(&stage.path("never.h5"), OpenMode::Create, &stage.comm).unwrap_err();
    assert!(error.to_string().contains("H5FD_SUBFILING_IOC_PER_NODE=3"), "{error}");
    for stack in ["hdf5(driver=mpio)", "hdf5(driver=subfiling)"] {
        let path = stage.path(&format!("never-{}.h5", stage.rank()));
        let error = format(stack).open(&path, OpenMode::Create, &Solo::shared()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(!path.exists());
    }
}

/// More to convert than libhdf5 does at once, so it gives up working together. One rank is enough for that.
fn conversion(stage: &Stage) {
    let pair = Datatype::packed_compound([("x", Datatype::I32), ("y", Datatype::I32)]).unwrap();
    let each = 400_000u64;
    let shape = [each * stage.size()];
    let file = stage.open("hdf5(driver=mpio)", "conversion.h5", OpenMode::Truncate);
    let array = file.create("a", &hyperslab_core::ArraySpec::new(pair, &shape)).unwrap();
    let mine = stage.rows(&shape);
    let data: Vec<u8> = (0..each * 8).map(|n| n as u8).collect();
    array.write(&mine, MemoryView::packed(&data), TransferMode::Collective).unwrap();
    assert!(file.diagnostics().is_empty());
    let swapped = MemoryLayout::fields(8, [("y", 0), ("x", 4)]);
    let layout = if stage.first() { &swapped } else { &MemoryLayout::packed() };
    array.write(&mine, MemoryView { data: &data, layout }, TransferMode::Collective).unwrap();
    assert!(file.diagnostics().is_empty(), "structures are taken apart before");
    let mut back = vec![0; data.len()];
    array.read(&mine, MemoryViewMut { data: &mut back, layout }, TransferMode::Collective).unwrap();
    assert!(back == data);
    array.read(&mine, MemoryViewMut::packed(&mut back), TransferMode::Collective).unwrap();
    let told = "1 of 2 collective reads of this rank ran independently: a datatype conversion was needed";
    assert_eq!(file.diagnostics(), [told]);
    file.close().unwrap();
}

/// libhdf5 is told by the environment to do nothing collectively.
pub fn without_mpi_types(stage: &Stage) {
    let shape = [64];
    let file = stage.open("hdf5(driver=mpio)", "types.h5", OpenMode::Truncate);
    let array = stage.create(&file, "a", &shape);
    stage.write_rows(&*array, &shape);
    stage.put(&*array, &stage.rows(&shape), &shape, TransferMode::Independent);
    let expected = "1 of 1 collective writes of this rank ran independently: the environment variable HDF5_MPI_OPT_TYPES forbids it";
    assert_eq!(file.diagnostics(), [expected]);
    file.close().unwrap();
    stage.verify_alone("types.h5", "a", &shape);
}

fn subfiling(stage: &Stage) {
    let stack = "hdf5(driver=subfiling,stripe_size=64KiB,stripe_count=2,ioc_selection=rank)";
    let format = format(stack);
    let path = stage.path("split.h5");
    let shape = [300, 500];
    for (round, how) in [OpenMode::Create, OpenMode::Truncate].into_iter().enumerate() {
        let file = format.open(&path, how, &stage.comm).unwrap();
        let array = stage.create(&file, "g/a", &shape);
        stage.put(&*array, &stage.rows(&shape), &shape, [TransferMode::Collective, TransferMode::Independent][round]);
        // Few, since every element becomes a message.
        let few = [6, 10];
        let small = stage.create(&file, "small", &few);
        stage.put(&*small, &stage.columns(&few), &few, TransferMode::Collective);
        file.flush(Durability::Durable).unwrap();
        stage.get(&*array, &Selection::all(&shape).unwrap(), &shape, TransferMode::Collective);
        stage.get(&*small, &Selection::all(&few).unwrap(), &few, TransferMode::Independent);
        file.close().unwrap();
        let file = format.open(&path, OpenMode::Read, &stage.comm).unwrap();
        stage.get(&*file.array("g/a").unwrap(), &stage.rows(&shape), &shape, TransferMode::Independent);
        file.close().unwrap();
        let files = format.files(&path).unwrap();
        let subfiles = (stage.size() as usize).min(2);
        assert!(files.len() >= 1 + 1 + subfiles, "the file, its list, and the subfiles: {files:?}");
        let bytes: u64 = files.iter().map(|file| file.metadata().unwrap().len()).sum();
        assert!(bytes >= 300 * 500 * 8, "{files:?}");
        stage.comm.barrier().unwrap();
    }
    // Whoever opens it without would find a file full of nothing.
    let plain = super::stage::format("hdf5");
    let error = plain.open(&path, OpenMode::Read, &Solo::shared()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("driver=subfiling"), "{error}");
    plain.open(&path, OpenMode::Read, &stage.comm).unwrap_err();
    assert!(format.exists(&path).unwrap());
    stage.comm.barrier().unwrap();
    if stage.first() {
        // Without MPI, once they are joined.
        let join = hyperslab_formats::format("hdf5").unwrap().join_parts.unwrap();
        assert!(join(&path, &stage.path("joined.h5")).unwrap());
    }
    stage.verify_alone("joined.h5", "g/a", &shape);
    stage.verify_alone("joined.h5", "small", &[6, 10]);
    if stage.first() {
        std::fs::remove_file(stage.path("joined.h5")).unwrap();
        let files = format.files(&path).unwrap();
        format.remove(&path).unwrap();
        assert!(files.iter().all(|file| !file.exists()), "{files:?}");
    }
    stage.comm.barrier().unwrap();
    // And an ordinary file has no subfiles.
    let file = stage.open("hdf5", "ordinary.h5", OpenMode::Create);
    file.close().unwrap();
    assert!(format.open(&stage.path("ordinary.h5"), OpenMode::Read, &stage.comm).is_err());
    assert_eq!(plain.files(&stage.path("ordinary.h5")).unwrap(), [stage.path("ordinary.h5")]);
}
