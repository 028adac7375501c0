//! Every datatype and every number of dimensions, through closing and opening again.

use super::{Check, Verdict, ensure, trying, unless_refused};
use crate::{OraclePair, Subject, cases};
use hyperslab_core::{ArraySpec, Datatype, MemoryLayout, OpenMode};
use libtest_mimic::{Completion, Failed};

/// What no format may refuse.
const REQUIRED: [&str; 10] = ["i1", "u1", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8", "<i2", "<u2"];

pub(super) fn checks() -> Vec<Check> {
    let mut out = Vec::new();
    for (name, dtype) in cases::datatypes().unwrap_or_default() {
        let required = REQUIRED.contains(&name.as_str());
        let needs_compound = matches!(dtype, Datatype::Compound(_));
        out.push(Check::that_may_be_refused(format!("datatype/{name}"), move |subject| {
            if needs_compound && !subject.caps.data.compound {
                return Ok(Completion::ignored_with("no compound datatypes"));
            }
            datatype(subject, &dtype, required || needs_compound)
        }));
    }
    for shape in cases::shapes() {
        out.push(Check::new(format!("rank/{}", shape.len()), move |subject| selections(subject, &shape)));
    }
    out.push(Check::new("rank/largest", |subject| selections(subject, &cases::deep_shape(subject.caps.data.max_rank))));
    out.push(Check::new("rank/without elements", |subject| {
        selections(subject, &[0])?;
        selections(subject, &[3, 0, 2])
    }));
    out.push(Check::new("several arrays of different types in one container", several));
    out
}

fn datatype(subject: &Subject, dtype: &Datatype, required: bool) -> Verdict {
    let pair = subject.pair("a", OpenMode::Create)?;
    let spec = ArraySpec::new(dtype.clone(), &[5, 7]);
    let twin = match unless_refused(OraclePair::create(&pair.subject, &pair.oracle, "array", &spec), required)? {
        Ok(twin) => twin,
        Err(refusal) => return Ok(refusal),
    };
    subject.same_spec(&twin.subject.spec()?, &spec)?;
    for (i, (name, selection)) in cases::selections(&spec.shape)?.iter().enumerate() {
        trying(twin.write(selection, &MemoryLayout::packed(), 1000 * i as u64), || format!("write {name}"))?;
        twin.compare(selection, &MemoryLayout::packed(), name)?;
    }
    twin.compare_all("before closing")?;
    pair.close()?;
    let pair = subject.pair("a", OpenMode::Read)?;
    let twin = OraclePair::open(&pair.subject, &pair.oracle, "array")?;
    subject.same_spec(&twin.subject.spec()?, &spec)?;
    twin.compare_all("after closing and opening")?;
    pair.close()?;
    Ok(Completion::Completed)
}

fn selections(subject: &Subject, shape: &[u64]) -> Result<(), Failed> {
    let name = format!("of rank {} {}", shape.len(), shape.contains(&0));
    let how = if subject.format.exists(&subject.path("a"))? { OpenMode::Update } else { OpenMode::Create };
    let pair = subject.pair("a", how)?;
    let spec = ArraySpec::new(Datatype::I32, shape);
    let twin = OraclePair::create(&pair.subject, &pair.oracle, &name, &spec)?;
    twin.compare_all("never written")?;
    for (i, (kind, selection)) in cases::selections(shape)?.iter().enumerate() {
        trying(twin.write(selection, &MemoryLayout::packed(), 1000 * i as u64), || format!("write {kind}"))?;
        twin.compare(selection, &MemoryLayout::packed(), kind)?;
        twin.compare_all(kind)?;
    }
    pair.close()?;
    let pair = subject.pair("a", OpenMode::Update)?;
    let twin = OraclePair::open(&pair.subject, &pair.oracle, &name)?;
    twin.compare_all("after opening again")?;
    for (kind, selection) in cases::selections(shape)? {
        twin.compare(&selection, &MemoryLayout::packed(), kind)?;
    }
    Ok(pair.close()?)
}

fn several(subject: &Subject) -> Result<(), Failed> {
    let pair = subject.pair("a", OpenMode::Create)?;
    let mut twins = Vec::new();
    for (name, dtype, shape) in [
        ("one", Datatype::F64, &[3, 9][..]),
        ("two", Datatype::U8, &[13]),
        ("three", Datatype::F32, &[2, 3, 4]),
        ("four", Datatype::I64, &[]),
    ] {
        twins.push((name, OraclePair::create(&pair.subject, &pair.oracle, name, &ArraySpec::new(dtype, shape))?));
    }
    for round in 0..3u64 {
        for (i, (name, twin)) in twins.iter().enumerate() {
            for (kind, selection) in cases::selections(&twin.oracle.spec()?.shape)? {
                let seed = round * 7919 + i as u64 * 104_729;
                trying(twin.write(&selection, &MemoryLayout::packed(), seed), || format!("write {kind} of {name}"))?;
            }
        }
    }
    for (name, twin) in &twins {
        twin.compare_all(name)?;
    }
    pair.close()?;
    let pair = subject.pair("a", OpenMode::Read)?;
    let names = pair.subject.arrays()?;
    ensure!(names == ["four", "one", "three", "two"], "the arrays are {names:?}");
    for name in &names {
        OraclePair::open(&pair.subject, &pair.oracle, name)?.compare_all(name)?;
    }
    Ok(pair.close()?)
}
