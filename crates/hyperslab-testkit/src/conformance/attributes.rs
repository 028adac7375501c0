//! Attributes of every kind, on the root, groups and arrays.

use super::{Check, Verdict, ensure, refused, trying, unless_refused};
use crate::test_data::{element, meaningful};
use crate::{Subject, cases};
use hyperslab_core::{ArraySpec, Attribute, Caps, Datatype, ErrorKind, OpenMode, Result};
use libtest_mimic::{Completion, Failed};

pub(super) fn checks(caps: &Caps) -> Vec<Check> {
    let mut out = Vec::new();
    for (name, value, required) in kinds().unwrap_or_default() {
        out.push(Check::that_may_be_refused(format!("attribute/{name}"), move |subject| {
            one_kind(subject, &value, required)
        }));
    }
    out.push(Check::new("attribute/replaced by another type", replaced));
    out.push(Check::new("attribute/names and refusals", names));
    out.into_iter().map(|check| check.needs(caps.data.attributes, "no attributes")).collect()
}

/// (name, value, whether every format with attributes must keep it)
fn kinds() -> Result<Vec<(String, Attribute, bool)>> {
    let mut out = vec![
        ("text".to_string(), Attribute::text("metres per second"), true),
        ("empty text".into(), Attribute::text(""), true),
        ("unicode text".into(), Attribute::text("été 日本 \"quoted\" \\ \n µ"), true),
        ("integer".into(), Attribute::integer(-42), true),
        ("smallest integer".into(), Attribute::integer(i64::MIN), true),
        ("float".into(), Attribute::float(0.1), true),
        ("largest float".into(), Attribute::float(f64::MAX), true),
        ("smallest float".into(), Attribute::float(5e-324), true),
        ("negative zero".into(), Attribute::float(-0.0), true),
        ("infinity".into(), Attribute::float(f64::INFINITY), true),
        ("not a number".into(), Attribute::float(f64::NAN), true),
    ];
    for (name, dtype) in cases::datatypes()? {
        for shape in [&[][..], &[3], &[2, 3]] {
            let count = shape.iter().product::<u64>();
            let mut data = Vec::new();
            for i in 0..count {
                let kept = element(&dtype, 900 + i).into_iter().zip(meaningful(&dtype));
                data.extend(kept.map(|(byte, counts)| byte * u8::from(counts)));
            }
            let value = Attribute { dtype: dtype.clone(), shape: shape.into(), data };
            out.push((format!("{name} of rank {}", shape.len()), value, false));
        }
    }
    let none = Attribute { dtype: Datatype::F64, shape: [0].as_slice().into(), data: Vec::new() };
    out.push(("without elements".into(), none, false));
    Ok(out)
}

/// Whether a value is what was set: texts may come back as strings of another type.
fn same(found: &Attribute, set: &Attribute) -> bool {
    let texts = found.texts().zip(set.texts());
    found == set || (found.shape == set.shape && texts.is_some_and(|(found, set)| found == set))
}

fn one_kind(subject: &Subject, value: &Attribute, required: bool) -> Verdict {
    let container = subject.open("a", OpenMode::Create)?;
    container.create("group/array", &ArraySpec::new(Datatype::I32, &[3]))?;
    let objects = if subject.caps.data.groups { &["", "group/array", "group"][..] } else { &["", "group/array"] };
    for object in objects {
        let set = container.set_attribute(object, "value", value);
        if let Err(refusal) = unless_refused(set, required)? {
            return Ok(refusal);
        }
        ensure!(same(&container.attribute(object, "value")?, value), "on {object:?}, before closing: it changed");
    }
    container.close()?;
    let container = subject.open("a", OpenMode::Read)?;
    for object in objects {
        let found = container.attribute(object, "value")?;
        ensure!(same(&found, value), "on {object:?}: {found:?}, written was {value:?}");
    }
    container.close()?;
    Ok(Completion::Completed)
}

fn replaced(subject: &Subject) -> Result<(), Failed> {
    let container = subject.open("a", OpenMode::Create)?;
    container.create("array", &ArraySpec::new(Datatype::I32, &[3]))?;
    let values =
        [Attribute::integer(1), Attribute::text("longer than a number"), Attribute::float(2.5), Attribute::text("x")];
    for object in ["", "array"] {
        for value in &values {
            container.set_attribute(object, "value", value)?;
            ensure!(container.attribute(object, "value")? == *value, "{value:?} on {object:?} reads otherwise");
        }
    }
    container.close()?;
    let container = subject.open("a", OpenMode::Update)?;
    ensure!(container.attribute("array", "value")? == values[3], "the last value was not kept");
    container.set_attribute("array", "value", &values[0])?;
    container.close()?;
    let container = subject.open("a", OpenMode::Read)?;
    ensure!(container.attribute("array", "value")? == values[0], "replacing after opening again was lost");
    let names = container.attributes("array")?;
    ensure!(names == ["value"], "the attributes are {names:?}");
    Ok(container.close()?)
}

fn names(subject: &Subject) -> Result<(), Failed> {
    let container = subject.open("a", OpenMode::Create)?;
    container.create("array", &ArraySpec::new(Datatype::I32, &[3]))?;
    let mut expected = vec!["units", "With Space", "été", "a.b", "_x", "shape", "dtype", "zarr_format", "CLASS"];
    for (i, name) in expected.iter().enumerate() {
        let set = container.set_attribute("array", name, &Attribute::integer(i as i64));
        trying(set, || format!("attribute {name:?}"))?;
    }
    let by_name: Vec<_> = expected.iter().enumerate().map(|(i, n)| (*n, i as i64)).collect();
    expected.sort_unstable();
    refused(container.set_attribute("array", "", &Attribute::integer(0)), &[ErrorKind::InvalidInput], "no name")?;
    let wrong = Attribute { data: vec![0; 7], ..Attribute::integer(0) };
    refused(container.set_attribute("array", "wrong", &wrong), &[ErrorKind::InvalidInput], "7 bytes as <i8")?;
    let missing = [ErrorKind::NotFound];
    refused(container.set_attribute("nothing", "a", &Attribute::integer(0)), &missing, "on a missing object")?;
    refused(container.attribute("array", "nothing"), &missing, "a missing attribute")?;
    refused(container.attribute("nothing", "units"), &missing, "an attribute of a missing object")?;
    refused(container.attributes("nothing"), &missing, "the attributes of a missing object")?;
    container.close()?;
    let container = subject.open("a", OpenMode::Read)?;
    let found = container.attributes("array")?;
    ensure!(found == expected, "the attributes are {found:?}, expected {expected:?}");
    for (name, value) in by_name {
        ensure!(container.attribute("array", name)? == Attribute::integer(value), "{name:?} reads otherwise");
    }
    ensure!(container.attributes("")?.is_empty(), "the root has attributes nobody set");
    refused(container.set_attribute("array", "units", &Attribute::integer(0)), &[], "setting when open for reading")?;
    Ok(container.close()?)
}
