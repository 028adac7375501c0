//! Chunks that do not divide the shape, and filters.

use super::{Check, REFUSALS, Verdict, filters, refused, trying};
use crate::{OraclePair, Subject, cases};
use hyperslab_core::{ArraySpec, Caps, Datatype, Filter, MemoryLayout, OpenMode, Selection};
use libtest_mimic::{Completion, Failed};

pub(super) fn checks(caps: &Caps) -> Vec<Check> {
    let mut out = Vec::new();
    for (name, shape, chunk) in [
        ("that do not divide the shape", &[11, 7][..], &[4, 3][..]),
        ("of one element", &[5, 4], &[1, 1]),
        ("of one row", &[6, 9], &[1, 9]),
        ("of one column", &[6, 9], &[6, 1]),
        ("as large as the array", &[6, 5], &[6, 5]),
        ("in 1 dimension", &[29], &[8]),
        ("in 3 dimensions", &[5, 6, 7], &[2, 5, 3]),
        ("in 5 dimensions", &[2, 3, 2, 3, 5], &[1, 2, 2, 2, 3]),
    ] {
        out.push(Check::new(format!("chunks/{name}"), move |subject| chunked(subject, shape, chunk, &[])));
    }
    let mut out: Vec<Check> = out.into_iter().map(|check| check.needs(caps.data.chunks, "no chunks")).collect();
    for (name, filter, has) in filters(caps) {
        if has {
            out.push(Check::new(format!("filters/{name}"), move |subject| {
                chunked(subject, &[11, 7], &[4, 3], &[filter])
            }));
        } else {
            out.push(Check::that_may_be_refused(format!("filters/{name} is refused"), move |subject| {
                lacking(subject, filter)
            }));
        }
    }
    let both = [Filter::Shuffle, Filter::Deflate(6)];
    out.push(
        Check::new("filters/shuffle then deflate", move |subject| chunked(subject, &[5, 6, 7], &[2, 5, 3], &both))
            .needs(both.iter().all(|filter| caps.has(filter)), "no shuffle, or no deflate"),
    );
    out
}

fn chunked(subject: &Subject, shape: &[u64], chunk: &[u64], filters: &[Filter]) -> Result<(), Failed> {
    let pair = subject.pair("a", OpenMode::Create)?;
    let spec = ArraySpec {
        chunk: subject.caps.data.chunks.then(|| chunk.into()),
        filters: filters.to_vec(),
        ..ArraySpec::new(Datatype::F32, shape)
    };
    let twin = OraclePair::create(&pair.subject, &pair.oracle, "array", &spec)?;
    subject.same_spec(&twin.subject.spec()?, &spec)?;
    twin.compare_all("never written")?;
    let mut seed = 0;
    for (kind, selection) in cases::selections(shape)? {
        for (layout_name, layout) in cases::layouts(&spec.dtype, &selection)? {
            let what = format!("{kind}, {layout_name}");
            seed += 1000;
            trying(twin.write(&selection, &layout, seed), || format!("write {what}"))?;
            twin.compare(&selection, &layout, &what)?;
        }
        twin.compare_all(kind)?;
    }
    pair.close()?;
    let pair = subject.pair("a", OpenMode::Update)?;
    let twin = OraclePair::open(&pair.subject, &pair.oracle, "array")?;
    subject.same_spec(&twin.subject.spec()?, &spec)?;
    twin.compare_all("after opening again")?;
    twin.write(&Selection::all(shape)?, &MemoryLayout::packed(), 5)?;
    twin.compare_all("rewritten")?;
    Ok(pair.close()?)
}

fn lacking(subject: &Subject, filter: Filter) -> Verdict {
    if subject.overrides.filters {
        return Ok(Completion::ignored_with("an option decides the filters"));
    }
    let container = subject.open("a", OpenMode::Create)?;
    let spec = ArraySpec {
        chunk: subject.caps.data.chunks.then(|| [4].as_slice().into()),
        filters: vec![filter],
        ..ArraySpec::new(Datatype::F32, &[8])
    };
    refused(container.create("array", &spec), &REFUSALS, "a filter the format lacks")?;
    container.close()?;
    Ok(Completion::Completed)
}
