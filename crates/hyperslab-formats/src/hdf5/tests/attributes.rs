//! Attributes on the root, groups and arrays.

use super::*;
use hyperslab_core::{ArraySpec, Attribute, Datatype, Dims, ErrorKind};

#[test]
fn attributes_of_every_kind_round_trip_and_are_replaced() {
    let bench = Bench::new("hdf5");
    let file = bench.open(OpenMode::Create);
    file.create_group("g/h").unwrap();
    file.create_group("g/h").unwrap();
    file.create("g/a", &ArraySpec::new(Datatype::U8, &[1])).unwrap();
    let compound = Datatype::packed_compound([("r", Datatype::F32), ("i", Datatype::F32)]).unwrap();
    let values = [
        Attribute::text("metres"),
        Attribute::text(""),
        Attribute::text("Größe"),
        Attribute::integer(-5),
        Attribute::float(0.1),
        Attribute { dtype: Datatype::Bool, shape: Dims::from_slice(&[3]), data: vec![1, 0, 1] },
        Attribute { dtype: compound, shape: Dims::from_slice(&[2, 1]), data: pattern(16) },
        Attribute { dtype: ">f2".parse().unwrap(), shape: Dims::new(), data: vec![0x3C, 0] },
        Attribute { dtype: Datatype::I32, shape: Dims::from_slice(&[0]), data: vec![] },
        Attribute { dtype: Datatype::FixedString(3), shape: Dims::from_slice(&[2]), data: b"ab\0xyz".to_vec() },
    ];
    for object in ["", "g", "g/h", "g/a"] {
        for value in &values {
            file.set_attribute(object, "value", value).unwrap();
            assert_eq!(&file.attribute(object, "value").unwrap(), value);
            assert_eq!(file.attributes(object).unwrap(), ["value"]);
        }
        file.set_attribute(object, "über", &values[0]).unwrap();
    }
    file.close().unwrap();
    let file = bench.open(OpenMode::Read);
    assert_eq!(file.attributes("g/h").unwrap(), ["value", "über"]);
    assert_eq!(file.attribute("", "über").unwrap().as_text(), Some("metres"));
    assert_eq!(file.attribute("", "none").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(file.attribute("no/such", "value").unwrap_err().kind(), ErrorKind::NotFound);
    assert!(file.set_attribute("", "value", &values[0]).is_err());
}

#[test]
fn a_value_that_contradicts_itself_leaves_the_old_one() {
    let bench = Bench::new("hdf5");
    let file = bench.open(OpenMode::Create);
    file.set_attribute("", "a", &Attribute::integer(1)).unwrap();
    let short = Attribute { dtype: Datatype::I64, shape: Dims::from_slice(&[2]), data: vec![0; 8] };
    assert_eq!(file.set_attribute("", "a", &short).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(file.attribute("", "a").unwrap(), Attribute::integer(1));
}

#[test]
fn large_attributes_work_with_the_default_file_version() {
    let bench = Bench::new("hdf5");
    let file = bench.open(OpenMode::Create);
    let large = Attribute { dtype: Datatype::U8, shape: Dims::from_slice(&[200_000]), data: pattern(200_000) };
    file.set_attribute("", "large", &large).unwrap();
    assert_eq!(file.attribute("", "large").unwrap(), large);
    let bench = Bench::new("hdf5(libver=earliest)");
    let file = bench.open(OpenMode::Create);
    let error = file.set_attribute("", "large", &large).unwrap_err();
    assert!(error.to_string().contains("libver=v18"), "{error}");
}
