//! Arrays that grow and shrink.

use super::{Check, REFUSALS, Verdict, ensure, refused, unless_refused};
use crate::{OraclePair, Subject};
use hyperslab_core::{ArraySpec, Caps, Datatype, ErrorKind, MemoryLayout, OpenMode, Selection};
use libtest_mimic::{Completion, Failed};

pub(super) fn checks(caps: &Caps) -> Vec<Check> {
    let growing = |name: &str, grown: Grown| {
        Check::that_may_be_refused(format!("resize/{name}"), move |subject| resized(subject, &grown))
    };
    let two: &[&[u64]] = &[&[9, 6], &[9, 4], &[2, 3], &[9, 6], &[1, 1], &[8, 5]];
    let mut out = vec![
        growing(
            "in 1 dimension",
            Grown {
                from: &[5],
                max: &[None],
                chunk: &[4],
                to: &[&[9], &[3], &[12], &[0], &[8], &[20]],
                filled: false,
                required: true,
            },
        ),
        growing(
            "along the slowest of 2 dimensions",
            Grown {
                from: &[5, 4],
                max: &[None, Some(4)],
                chunk: &[4, 3],
                to: &[&[9, 4], &[2, 4], &[12, 4], &[0, 4], &[3, 4]],
                filled: false,
                required: true,
            },
        ),
        growing(
            "in 2 dimensions",
            Grown { from: &[5, 4], max: &[None, Some(6)], chunk: &[4, 3], to: two, filled: false, required: false },
        ),
        growing(
            "in 3 dimensions",
            Grown {
                from: &[2, 3, 4],
                max: &[None, None, None],
                chunk: &[2, 2, 3],
                to: &[&[4, 4, 4], &[1, 4, 2], &[5, 2, 5], &[5, 4, 5]],
                filled: false,
                required: false,
            },
        ),
        growing(
            "with a fill value",
            Grown { from: &[5, 4], max: &[None, Some(6)], chunk: &[4, 3], to: two, filled: true, required: false },
        )
        .needs(caps.data.fill_value, "no fill values"),
        growing(
            "along the slowest dimension, with a fill value",
            Grown {
                from: &[5, 4],
                max: &[None, Some(4)],
                chunk: &[4, 3],
                to: &[&[9, 4], &[2, 4], &[12, 4]],
                filled: true,
                required: true,
            },
        )
        .needs(caps.data.fill_value, "no fill values"),
        Check::new("resize/refusals", refusals),
    ];
    out = out.into_iter().map(|check| check.needs(caps.data.resize, "arrays cannot change shape")).collect();
    if !caps.data.resize {
        out.push(Check::new("resize/is refused", |subject| {
            let container = subject.open("a", OpenMode::Create)?;
            let spec = ArraySpec { max_shape: Some(vec![None]), ..ArraySpec::new(Datatype::F32, &[4]) };
            refused(container.create("growing", &spec), &REFUSALS, "a maximum shape")?;
            let array = container.create("fixed", &ArraySpec::new(Datatype::F32, &[4]))?;
            refused(array.resize(&[8]), &REFUSALS, "resize")?;
            Ok(container.close()?)
        }));
    }
    out
}

/// How an array changes.
struct Grown {
    from: &'static [u64],
    max: &'static [Option<u64>],
    chunk: &'static [u64],
    to: &'static [&'static [u64]],
    filled: bool,
    /// Whether every format with resize must do it. Growing other dimensions than the slowest moves elements, so a
    /// format without chunks may refuse.
    required: bool,
}

fn resized(subject: &Subject, grown: &Grown) -> Verdict {
    let mut pair = subject.pair("a", OpenMode::Create)?;
    let shape = grown.from;
    let spec = ArraySpec {
        max_shape: Some(grown.max.to_vec()),
        chunk: subject.caps.data.chunks.then(|| grown.chunk.into()),
        fill_value: grown.filled.then(|| 7i32.to_ne_bytes().to_vec()),
        ..ArraySpec::new(Datatype::I32, shape)
    };
    let created = OraclePair::create(&pair.subject, &pair.oracle, "array", &spec);
    let mut twin = match unless_refused(created, grown.required)? {
        Ok(twin) => twin,
        Err(refusal) => return Ok(refusal),
    };
    twin.write(&Selection::all(shape)?, &MemoryLayout::packed(), 3)?;
    for (i, shape) in grown.to.iter().enumerate() {
        let what = format!("resized to {shape:?}");
        if let Err(refusal) = unless_refused(twin.subject.resize(shape), grown.required)? {
            twin.compare_all("after a refused resize")?;
            return Ok(refusal);
        }
        twin.oracle.resize(shape)?;
        // What was cut off and comes back must read as fill, not as the old data: compared before anything is written.
        twin.compare_all(&what)?;
        if i % 4 == 1 {
            pair.close()?;
            pair = subject.pair("a", OpenMode::Update)?;
            twin = OraclePair::open(&pair.subject, &pair.oracle, "array")?;
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
    let last = grown.to.last().copied().unwrap_or(shape);
    subject.same_spec(&twin.subject.spec()?, &ArraySpec { shape: last.into(), ..spec })?;
    pair.close()?;
    Ok(Completion::Completed)
}

fn refusals(subject: &Subject) -> Result<(), Failed> {
    let pair = subject.pair("a", OpenMode::Create)?;
    let chunk = subject.caps.data.chunks.then(|| [4, 3].as_slice().into());
    let spec = ArraySpec { max_shape: Some(vec![None, Some(4)]), chunk, ..ArraySpec::new(Datatype::I32, &[5, 4]) };
    let twin = OraclePair::create(&pair.subject, &pair.oracle, "array", &spec)?;
    twin.write(&Selection::all(&[5, 4])?, &MemoryLayout::packed(), 3)?;
    refused(twin.subject.resize(&[5, 5]), &[ErrorKind::InvalidInput], "resize beyond the maximum")?;
    refused(twin.subject.resize(&[5]), &[ErrorKind::InvalidInput], "resize to another rank")?;
    refused(twin.subject.resize(&[u64::MAX, 4]), &[ErrorKind::InvalidInput], "resize beyond 2^63 bytes")?;
    let beyond = Selection::dense(&[5, 0], &[1, 1])?;
    let data = [0; 4];
    let view = hyperslab_core::MemoryView::packed(&data);
    let written = twin.subject.write(&beyond, view, hyperslab_core::TransferMode::Independent);
    refused(written, &[ErrorKind::InvalidInput], "write beyond the present shape")?;
    twin.compare_all("after refusals")?;
    let fixed = pair.subject.create("fixed", &ArraySpec::new(Datatype::I32, &[4]))?;
    refused(fixed.resize(&[5]), &REFUSALS, "growing a fixed array")?;
    ensure!(fixed.spec()?.shape.as_slice() == [4], "a refused resize changed the shape");
    Ok(pair.close()?)
}
