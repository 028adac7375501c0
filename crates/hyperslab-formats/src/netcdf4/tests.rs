//! Definitions without a file, and ranks that define and grow together.

use super::definitions::{Definitions, Home};
use super::publish::Action;
use crate::netcdf4_entry::options::{Filling, Options};
use hyperslab_comm::Threads;
use hyperslab_core::{ArraySpec, Communicator, Datatype, OpenMode, Stack};
use std::sync::Arc;

const OPTIONS: Options = Options { classic: false, filling: Filling::Zero };

fn spec(shape: &[u64], dims: &[&str]) -> ArraySpec {
    let dims = (!dims.is_empty()).then(|| dims.iter().map(|name| (*name).to_owned()).collect());
    ArraySpec { dims, ..ArraySpec::new(Datatype::F32, shape) }
}

fn growing(shape: &[u64], dims: &[&str]) -> ArraySpec {
    let max = std::iter::once(None).chain(shape[1..].iter().copied().map(Some)).collect();
    ArraySpec { max_shape: Some(max), ..spec(shape, dims) }
}

#[test]
fn dimensions_are_shared_by_length_and_by_name() {
    let mut all = Definitions::default();
    for (name, spec, dims) in [
        ("a", spec(&[3, 3, 4], &[]), vec!["d3", "d3_2", "d4"]),
        ("b", spec(&[4, 3], &[]), vec!["d4", "d3"]),
        ("g/r", growing(&[2, 3], &[]), vec!["g/r_0", "d3"]),
        ("s", growing(&[2], &[]), vec!["s_0"]),
        ("t", growing(&[5], &["time"]), vec!["time"]),
        ("g/u", growing(&[7, 4], &["time", "g/x"]), vec!["time", "g/x"]),
    ] {
        all.add(name, &spec, None, &OPTIONS).unwrap();
        assert_eq!(all.names(name).unwrap(), dims);
    }
    let texts = Some(7);
    all.add("texts", &spec(&[3], &[]), texts, &OPTIONS).unwrap();
    assert_eq!(all.names("texts").unwrap(), ["d3", "string7"]);
    let known = all.dimensions.len();
    for (name, refused) in [
        ("x", spec(&[9], &["d3"])),
        ("x", growing(&[9], &["d3"])),
        ("x", spec(&[4], &["g/x"])),
        ("h/x", spec(&[8, 4], &["new", "g/x"])),
        ("a", spec(&[1], &[])),
    ] {
        assert!(all.add(name, &refused, None, &OPTIONS).is_err(), "{name} {refused:?}");
        assert_eq!(all.dimensions.len(), known, "{name} {refused:?}");
    }
    let classic = Options { classic: true, ..OPTIONS };
    assert!(all.add("second", &growing(&[1], &["another"]), None, &classic).is_err());
    assert!(all.add("g/v", &spec(&[3], &[]), None, &classic).is_err());
}

#[test]
fn coordinate_variables_take_the_place_of_dimensions() {
    let mut all = Definitions::default();
    all.add("air", &growing(&[4, 3], &["time", "x"]), None, &OPTIONS).unwrap();
    assert!(all.changed());
    assert_eq!(all.plan().iter().filter(|action| matches!(action, Action::Dimension { .. })).count(), 2);
    all.note_written();
    assert!(!all.changed() && all.plan().is_empty());
    let made = all.add("time", &growing(&[4], &["time"]), None, &OPTIONS).unwrap();
    assert_eq!((made.dataset.as_str(), made.replaces.as_deref()), ("time", Some("time")));
    let plan = all.plan();
    let users = vec![("air".to_owned(), 0)];
    assert!(plan.contains(&Action::Scale { path: "time".into(), number: 0 }), "{plan:?}");
    assert!(plan.contains(&Action::Users { path: "time".into(), users }), "{plan:?}");
    assert!(plan.iter().any(|action| matches!(action, Action::Links { dataset, .. } if dataset == "air")), "{plan:?}");
    all.note_written();
    assert_eq!(all.dimensions[0].home, Home::Variable);
    // A variable that is no coordinate variable goes beside the dimension, and one that was there makes way.
    let made = all.add("x", &spec(&[2], &["y"]), None, &OPTIONS).unwrap();
    assert_eq!(made.dataset, "_nc4_non_coord_x");
    all.add("z", &spec(&[2], &["y"]), None, &OPTIONS).unwrap();
    let made = all.add("w", &spec(&[6], &["z"]), None, &OPTIONS).unwrap();
    assert_eq!(made.moves, [("z".to_owned(), "_nc4_non_coord_z".to_owned())]);
    assert_eq!(all.variables["z"].dataset, "_nc4_non_coord_z");
}

#[test]
fn ranks_define_and_grow_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ranks.nc");
    let format = crate::build(&"netcdf4".parse::<Stack>().unwrap().format).unwrap();
    Threads::run(3, |comm: Arc<dyn Communicator>| {
        let rank = comm.rank() as u64;
        let file = format.open(&path, OpenMode::Create, &comm)?;
        let array = file.create("air", &growing(&[0, 3], &["time", "x"]))?;
        // Beyond what 32 bits count, and each rank for its own part.
        array.resize(&[(1 << 32) + rank, 3])?;
        assert_eq!(array.spec()?.shape.as_slice(), [(1 << 32) + 2, 3]);
        array.resize(&[5 + rank, 3])?;
        array.close()?;
        file.close()?;
        let file = format.open(&path, OpenMode::Read, &comm)?;
        let spec = file.array("air")?.spec()?;
        assert_eq!(spec.shape.as_slice(), [7, 3]);
        assert_eq!(spec.dims.unwrap(), ["time", "x"]);
        file.close()
    })
    .unwrap();
}
