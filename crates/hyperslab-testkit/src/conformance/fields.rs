//! Fields of compounds, one, some and all at a time.

use super::{Check, refused, trying};
use crate::{Subject, Twin, buffer, catalogue};
use hyperslab_core::{ArraySpec, Caps, Datatype, MemoryLayout, MemoryView, Open, Selection, Transfer};
use libtest_mimic::Failed;

pub(super) fn checks(caps: &Caps) -> Vec<Check> {
    let mut out = Vec::new();
    for (name, dtype) in [("particle", catalogue::particle()), ("nested", catalogue::nested())] {
        let Ok(dtype) = dtype else { continue };
        out.push(Check::new(format!("fields/{name}"), move |subject| fields(subject, &dtype, None)));
    }
    if let Ok(dtype) = catalogue::nested() {
        let chunk = Some(&[2, 3][..]);
        out.push(
            Check::new("fields/in chunks", move |subject| fields(subject, &dtype, chunk))
                .needs(caps.chunks, "no chunks"),
        );
    }
    out.into_iter().map(|check| check.needs(caps.compound, "no compound datatypes")).collect()
}

fn fields(subject: &Subject, dtype: &Datatype, chunk: Option<&[u64]>) -> Result<(), Failed> {
    let pair = subject.pair("a", Open::Create)?;
    let shape = [5, 7];
    let spec = ArraySpec { chunk: chunk.map(Into::into), ..ArraySpec::new(dtype.clone(), &shape) };
    let twin = Twin::create(&pair.subject, &pair.oracle, "array", &spec)?;
    twin.write(&Selection::all(&shape)?, &MemoryLayout::packed(), 7)?;
    let mut seed = 100;
    for (kind, selection) in catalogue::selections(&shape)? {
        for (layout_name, layout) in catalogue::layouts(dtype, &selection)? {
            let what = format!("{kind}, {layout_name}");
            seed += 1000;
            trying(twin.write(&selection, &layout, seed), || format!("write {what}"))?;
            twin.compare(&selection, &layout, &what)?;
        }
        for (layout_name, layout, whole) in catalogue::field_layouts(dtype, &selection)? {
            let what = format!("{kind}, {layout_name}");
            seed += 1000;
            if whole || subject.caps.partial_fields {
                trying(twin.write(&selection, &layout, seed), || format!("write {what}"))?;
            } else if !selection.is_empty() {
                let data = buffer(dtype, &layout, selection.len(), seed)?;
                let view = MemoryView { data: &data, layout: &layout };
                refused(twin.subject.write(&selection, view, Transfer::Independent), &[], &what)?;
            }
            twin.compare_all(&what)?;
            twin.compare(&selection, &layout, &what)?;
        }
    }
    pair.close()?;
    let pair = subject.pair("a", Open::Read)?;
    Twin::open(&pair.subject, &pair.oracle, "array")?.compare_all("after opening again")?;
    Ok(pair.close()?)
}
