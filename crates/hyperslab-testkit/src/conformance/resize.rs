//! Arrays that grow and shrink.

use super::{Check, ensure, refused, trying};
use crate::subject::same_spec;
use crate::{Subject, Twin};
use hyperslab_core::{ArraySpec, Caps, Datatype, ErrorKind, MemoryLayout, Open, Selection};
use libtest_mimic::Failed;

pub(super) fn checks(caps: &Caps) -> Vec<Check> {
    let mut out = vec![
        Check::new("resize/in 1 dimension", |subject| {
            let shapes = [&[9][..], &[3], &[12], &[0], &[8], &[20]];
            resized(subject, &[5], &[None], &[4], &shapes, false)
        }),
        Check::new("resize/in 2 dimensions", |subject| {
            let shapes = [&[9, 6][..], &[9, 4], &[2, 3], &[9, 6], &[1, 1], &[8, 5]];
            resized(subject, &[5, 4], &[None, Some(6)], &[4, 3], &shapes, false)
        }),
        Check::new("resize/in 3 dimensions", |subject| {
            let shapes = [&[4, 4, 4][..], &[1, 4, 2], &[5, 2, 5], &[5, 4, 5]];
            resized(subject, &[2, 3, 4], &[None, None, None], &[2, 2, 3], &shapes, false)
        }),
        Check::new("resize/with a fill value", |subject| {
            let shapes = [&[9, 6][..], &[2, 2], &[9, 6]];
            resized(subject, &[5, 4], &[None, Some(6)], &[4, 3], &shapes, true)
        })
        .needs(caps.fill_value, "no fill values"),
        Check::new("resize/refusals", refusals),
    ];
    out = out.into_iter().map(|check| check.needs(caps.resize, "arrays cannot change shape")).collect();
    if !caps.resize {
        out.push(Check::new("resize/is refused", |subject| {
            let container = subject.open("a", Open::Create)?;
            let spec = ArraySpec { max_shape: Some(vec![None]), ..ArraySpec::new(Datatype::F32, &[4]) };
            refused(container.create("growing", &spec), &[ErrorKind::Unsupported], "a maximum shape")?;
            let array = container.create("fixed", &ArraySpec::new(Datatype::F32, &[4]))?;
            refused(array.resize(&[8]), &[ErrorKind::Unsupported, ErrorKind::InvalidInput], "resize")?;
            Ok(container.close()?)
        }));
    }
    out
}

fn resized(
    subject: &Subject,
    shape: &[u64],
    max: &[Option<u64>],
    chunk: &[u64],
    shapes: &[&[u64]],
    filled: bool,
) -> Result<(), Failed> {
    let mut pair = subject.pair("a", Open::Create)?;
    let spec = ArraySpec {
        max_shape: Some(max.to_vec()),
        chunk: subject.caps.chunks.then(|| chunk.into()),
        fill_value: filled.then(|| 7i32.to_ne_bytes().to_vec()),
        ..ArraySpec::new(Datatype::I32, shape)
    };
    let mut twin = Twin::create(&pair.subject, &pair.oracle, "array", &spec)?;
    twin.write(&Selection::all(shape)?, &MemoryLayout::packed(), 3)?;
    for (i, shape) in shapes.iter().enumerate() {
        let what = format!("resized to {shape:?}");
        trying(twin.subject.resize(shape), || what.clone())?;
        twin.oracle.resize(shape)?;
        // What was cut off and comes back must read as fill, not as the old data: compared before anything is written.
        twin.compare_all(&what)?;
        if i % 2 == 1 {
            pair.close()?;
            pair = subject.pair("a", Open::Update)?;
            twin = Twin::open(&pair.subject, &pair.oracle, "array")?;
            twin.compare_all(&format!("{what} and opened again"))?;
        }
        if !shape.contains(&0) {
            let corner: Vec<u64> = shape.iter().map(|n| n - 1).collect();
            let one = Selection::dense(&corner, &vec![1; corner.len()])?;
            twin.write(&one, &MemoryLayout::packed(), 40 + i as u64)?;
        }
        twin.compare_all(&format!("{what} and its corner written"))?;
        twin.write(&Selection::all(shape)?, &MemoryLayout::packed(), 400 + i as u64)?;
        twin.compare_all(&format!("{what} and written"))?;
    }
    let last = shapes.last().copied().unwrap_or(shape);
    same_spec(&twin.subject.spec()?, &ArraySpec { shape: last.into(), ..spec })?;
    Ok(pair.close()?)
}

fn refusals(subject: &Subject) -> Result<(), Failed> {
    let pair = subject.pair("a", Open::Create)?;
    let chunk = subject.caps.chunks.then(|| [4, 3].as_slice().into());
    let spec = ArraySpec { max_shape: Some(vec![None, Some(6)]), chunk, ..ArraySpec::new(Datatype::I32, &[5, 4]) };
    let twin = Twin::create(&pair.subject, &pair.oracle, "array", &spec)?;
    twin.write(&Selection::all(&[5, 4])?, &MemoryLayout::packed(), 3)?;
    refused(twin.subject.resize(&[5, 7]), &[ErrorKind::InvalidInput], "resize beyond the maximum")?;
    refused(twin.subject.resize(&[5]), &[ErrorKind::InvalidInput], "resize to another rank")?;
    refused(twin.subject.resize(&[u64::MAX, 6]), &[ErrorKind::InvalidInput], "resize beyond 2^63 bytes")?;
    let beyond = Selection::dense(&[5, 0], &[1, 1])?;
    let data = [0; 4];
    let view = hyperslab_core::MemoryView::packed(&data);
    let written = twin.subject.write(&beyond, view, hyperslab_core::Transfer::Independent);
    refused(written, &[ErrorKind::InvalidInput], "write beyond the present shape")?;
    twin.compare_all("after refusals")?;
    let fixed = pair.subject.create("fixed", &ArraySpec::new(Datatype::I32, &[4]))?;
    refused(fixed.resize(&[5]), &[ErrorKind::InvalidInput, ErrorKind::Unsupported], "growing a fixed array")?;
    ensure!(fixed.spec()?.shape.as_slice() == [4], "a refused resize changed the shape");
    Ok(pair.close()?)
}
