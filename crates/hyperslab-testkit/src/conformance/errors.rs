//! Requests that make no sense are refused and change nothing.

use super::{Check, REFUSALS, ensure, refused};
use crate::{OraclePair, Subject, cases};
use hyperslab_core::{
    Array, ArraySpec, Caps, Datatype, ErrorKind, MAX_RANK, MemoryLayout, MemoryView, MemoryViewMut, OpenMode, Result,
    Selection, TransferMode,
};
use libtest_mimic::Failed;

pub(super) fn checks(caps: &Caps) -> Vec<Check> {
    vec![
        Check::new("errors/selections outside the array", selections)
            .needs(caps.data.readable, "the format stores nothing"),
        Check::new("errors/buffers of the wrong size", buffers).needs(caps.data.readable, "the format stores nothing"),
        Check::new("errors/layouts that do not fit", layouts),
        Check::new("errors/specifications", specifications),
        Check::new("errors/objects", objects),
    ]
}

fn write(array: &dyn Array, selection: &Selection, layout: &MemoryLayout, bytes: usize) -> Result<()> {
    let data = vec![0xAB; bytes];
    array.write(selection, MemoryView { data: &data, layout }, TransferMode::Independent)
}

fn read(array: &dyn Array, selection: &Selection, layout: &MemoryLayout, bytes: usize) -> Result<()> {
    let mut data = vec![0xAB; bytes];
    let result = array.read(selection, MemoryViewMut { data: &mut data, layout }, TransferMode::Independent);
    assert!(result.is_ok() || data.iter().all(|byte| *byte == 0xAB), "a refused read changed the buffer");
    result
}

fn array(subject: &Subject) -> Result<(crate::Pair, OraclePair)> {
    let pair = subject.pair("a", OpenMode::Create)?;
    let twin = OraclePair::create(&pair.subject, &pair.oracle, "array", &ArraySpec::new(Datatype::I32, &[5, 4]))?;
    if subject.caps.data.readable {
        twin.write(&Selection::all(&[5, 4])?, &MemoryLayout::packed(), 3)?;
    }
    Ok((pair, twin))
}

fn selections(subject: &Subject) -> Result<(), Failed> {
    let (pair, twin) = array(subject)?;
    let packed = MemoryLayout::packed();
    for (what, selection) in [
        ("one row too many", Selection::dense(&[0, 0], &[6, 4])?),
        ("one column too many", Selection::dense(&[0, 0], &[5, 5])?),
        ("far outside", Selection::dense(&[1 << 40, 0], &[1, 1])?),
        ("strides that leave", Selection::strided(&[0, 0], &[3, 1], &[3, 4], &[1, 1])?),
        ("fewer dimensions", Selection::dense(&[0], &[2])?),
        ("more dimensions", Selection::dense(&[0, 0, 0], &[2, 2, 2])?),
        ("no dimensions", Selection::all(&[])?),
    ] {
        let bytes = selection.len() as usize * 4;
        refused(
            write(&*twin.subject, &selection, &packed, bytes),
            &[ErrorKind::InvalidInput],
            &format!("write {what}"),
        )?;
        refused(read(&*twin.subject, &selection, &packed, bytes), &[ErrorKind::InvalidInput], &format!("read {what}"))?;
        twin.compare_all(what)?;
    }
    Ok(pair.close()?)
}

fn buffers(subject: &Subject) -> Result<(), Failed> {
    let (pair, twin) = array(subject)?;
    let all = Selection::all(&[5, 4])?;
    let kinds = [ErrorKind::InvalidInput];
    let comb = MemoryLayout::strided(&[60], Selection::strided(&[0], &[3], &[20], &[1])?);
    for (what, layout, bytes) in [
        ("an empty buffer", MemoryLayout::packed(), 0),
        ("a byte too few", MemoryLayout::packed(), 79),
        ("a byte too many when packed", MemoryLayout::packed(), 81),
        ("too few for the strides", comb, 239),
        ("too few structures", MemoryLayout::member(7, 2), 20 * 7 - 1),
    ] {
        refused(write(&*twin.subject, &all, &layout, bytes), &kinds, &format!("write {what}"))?;
        refused(read(&*twin.subject, &all, &layout, bytes), &kinds, &format!("read {what}"))?;
        twin.compare_all(what)?;
    }
    Ok(pair.close()?)
}

fn layouts(subject: &Subject) -> Result<(), Failed> {
    let (pair, twin) = array(subject)?;
    let all = Selection::all(&[5, 4])?;
    for (what, layout) in [
        ("another number of elements", MemoryLayout::strided(&[60], Selection::dense(&[0], &[19])?)),
        ("a selection outside its buffer", MemoryLayout::strided(&[20], Selection::dense(&[1], &[20])?)),
        ("a field of a plain type", MemoryLayout::fields(4, [("x", 0)])),
        ("a member that leaves its structure", MemoryLayout::member(4, 1)),
        ("no member at all", MemoryLayout::fields(4, Vec::<(String, u64)>::new())),
    ] {
        refused(write(&*twin.subject, &all, &layout, 400), &[ErrorKind::InvalidInput], &format!("write: {what}"))?;
        refused(read(&*twin.subject, &all, &layout, 400), &[ErrorKind::InvalidInput], &format!("read: {what}"))?;
    }
    if subject.caps.data.compound {
        let array = pair.subject.create("compound", &ArraySpec::new(cases::particle()?, &[2]))?;
        let two = Selection::all(&[2])?;
        let wrong = MemoryLayout::fields(4, [("y", 0)]);
        refused(write(&*array, &two, &wrong, 8), &[ErrorKind::InvalidInput], "write a field that is not there")?;
        refused(read(&*array, &two, &wrong, 8), &[ErrorKind::InvalidInput], "read a field that is not there")?;
    }
    Ok(pair.close()?)
}

fn specifications(subject: &Subject) -> Result<(), Failed> {
    let container = subject.open("a", OpenMode::Create)?;
    let base = ArraySpec::new(Datatype::F32, &[4, 4]);
    let refusals = [
        ("chunk of another rank", ArraySpec { chunk: Some([2].as_slice().into()), ..base.clone() }),
        ("chunk without extent", ArraySpec { chunk: Some([2, 0].as_slice().into()), ..base.clone() }),
        ("maximum below the shape", ArraySpec { max_shape: Some(vec![Some(3), None]), ..base.clone() }),
        ("maximum of another rank", ArraySpec { max_shape: Some(vec![None]), ..base.clone() }),
        ("fill value of another size", ArraySpec { fill_value: Some(vec![0; 3]), ..base.clone() }),
        ("too many bytes", ArraySpec::new(Datatype::F64, &[1 << 62, 4])),
        ("too many elements", ArraySpec::new(Datatype::U8, &[u64::MAX, 3])),
        ("too many dimensions", ArraySpec::new(Datatype::U8, &[1; MAX_RANK + 1])),
        ("more dimensions than the format has", ArraySpec::new(Datatype::U8, &vec![1; subject.caps.data.max_rank + 1])),
    ];
    for (what, spec) in refusals {
        refused(container.create("array", &spec), &REFUSALS, what)?;
    }
    if !subject.caps.data.chunks && !subject.overrides.chunk {
        let spec = ArraySpec { chunk: Some([2, 2].as_slice().into()), ..base.clone() };
        refused(container.create("array", &spec), &REFUSALS, "chunks")?;
    }
    if !subject.caps.data.compound {
        let spec = ArraySpec::new(cases::particle()?, &[2]);
        refused(container.create("array", &spec), &[ErrorKind::Unsupported], "a compound datatype")?;
    }
    ensure!(container.arrays()?.is_empty(), "a refused array exists");
    // The name is still free.
    container.create("array", &base)?;
    Ok(container.close()?)
}

fn objects(subject: &Subject) -> Result<(), Failed> {
    let (pair, twin) = array(subject)?;
    let spec = ArraySpec::new(Datatype::F64, &[2]);
    refused(pair.subject.create("array", &spec), &[ErrorKind::AlreadyExists], "creating an array twice")?;
    refused(pair.subject.array("nothing"), &[ErrorKind::NotFound], "an unknown array")?;
    refused(pair.subject.array("array/inside"), &[ErrorKind::NotFound, ErrorKind::InvalidInput], "inside an array")?;
    if subject.caps.data.readable {
        twin.compare_all("after refusals")?;
    }
    Ok(pair.close()?)
}
