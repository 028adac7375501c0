//! Fill values of every type.

use super::{Check, trying, unless_refused};
use crate::test_data::{element, meaningful};
use crate::{OraclePair, Subject, cases};
use hyperslab_core::{ArraySpec, Caps, Datatype, ErrorKind, MemoryLayout, OpenMode, Selection};
use libtest_mimic::{Completion, Failed};

pub(super) fn checks(caps: &Caps) -> Vec<Check> {
    let mut out = Vec::new();
    for (name, dtype) in cases::datatypes().unwrap_or_default() {
        let required = dtype == Datatype::F64 || dtype == Datatype::I32;
        let compound = matches!(dtype, Datatype::Compound(_));
        out.push(
            Check::that_may_be_refused(format!("fill value/{name}"), move |subject| {
                if compound && !subject.caps.data.compound {
                    return Ok(Completion::ignored_with("no compound datatypes"));
                }
                filled(subject, &dtype, None, required)
            })
            .needs(caps.data.fill_value, "no fill values"),
        );
    }
    for (name, bits) in [("not a number", f64::NAN), ("infinity", f64::NEG_INFINITY), ("negative zero", -0.0)] {
        out.push(
            Check::that_may_be_refused(format!("fill value/{name}"), move |subject| {
                filled(subject, &Datatype::F64, Some(bits.to_ne_bytes().to_vec()), true)
            })
            .needs(caps.data.fill_value, "no fill values"),
        );
    }
    if !caps.data.fill_value {
        out.push(Check::new("fill value/is refused", |subject| {
            let container = subject.open("a", OpenMode::Create)?;
            let spec = ArraySpec { fill_value: Some(vec![1; 8]), ..ArraySpec::new(Datatype::F64, &[4]) };
            super::refused(container.create("array", &spec), &[ErrorKind::Unsupported], "a fill value")?;
            Ok::<(), Failed>(container.close()?)
        }));
    }
    out
}

fn filled(subject: &Subject, dtype: &Datatype, fill: Option<Vec<u8>>, required: bool) -> super::Verdict {
    let pair = subject.pair("a", OpenMode::Create)?;
    let fill = fill.unwrap_or_else(|| {
        // Padding has no value of its own.
        element(dtype, 77).into_iter().zip(meaningful(dtype)).map(|(byte, counts)| byte * u8::from(counts)).collect()
    });
    let shape = [6, 7];
    let chunk = subject.caps.data.chunks.then(|| [4, 3].as_slice().into());
    let spec = ArraySpec { fill_value: Some(fill), chunk, ..ArraySpec::new(dtype.clone(), &shape) };
    let twin = match unless_refused(OraclePair::create(&pair.subject, &pair.oracle, "array", &spec), required)? {
        Ok(twin) => twin,
        Err(refusal) => return Ok(refusal),
    };
    subject.same_spec(&twin.subject.spec()?, &spec)?;
    twin.compare_all("never written")?;
    let part = Selection::strided(&[1, 2], &[4, 2], &[2, 2], &[1, 1])?;
    trying(twin.write(&part, &MemoryLayout::packed(), 9), || "write a part".into())?;
    twin.compare_all("partly written")?;
    pair.close()?;
    let pair = subject.pair("a", OpenMode::Read)?;
    let twin = OraclePair::open(&pair.subject, &pair.oracle, "array")?;
    subject.same_spec(&twin.subject.spec()?, &spec)?;
    twin.compare_all("after opening again")?;
    pair.close()?;
    Ok(Completion::Completed)
}
