//! Fields of compounds, one, some and all at a time.

use super::{Check, refused, trying};
use crate::test_data::meaningful;
use crate::{OraclePair, Subject, buffer, cases, element};
use hyperslab_core::{
    ArraySpec, Caps, Datatype, ErrorKind, MemoryLayout, MemoryView, OpenMode, Selection, TransferMode,
};
use libtest_mimic::Failed;

pub(super) fn checks(caps: &Caps) -> Vec<Check> {
    let mut out = Vec::new();
    for (name, dtype) in [("particle", cases::particle()), ("nested", cases::nested())] {
        let Ok(dtype) = dtype else { continue };
        out.push(Check::new(format!("fields/{name}"), move |subject| fields(subject, &dtype, None)));
    }
    if let Ok(dtype) = cases::nested() {
        let chunk = Some(&[2, 3][..]);
        out.push(
            Check::new("fields/in chunks", move |subject| fields(subject, &dtype, chunk))
                .needs(caps.data.chunks, "no chunks"),
        );
    }
    out.push(Check::new("fields/of elements never written", never_written));
    out.into_iter().map(|check| check.needs(caps.data.compound, "no compound datatypes")).collect()
}

/// Libraries make up elements that nobody wrote, and so have their own ways to forget the other fields or to touch the
/// bytes between members.
fn never_written(subject: &Subject) -> Result<(), Failed> {
    let pair = subject.pair("a", OpenMode::Create)?;
    for (name, dtype) in [("particle", cases::particle()?), ("nested", cases::nested()?)] {
        for shape in [&[][..], &[3], &[4, 5]] {
            let all = Selection::all(shape)?;
            for (i, (layout_name, layout, whole)) in cases::field_layouts(&dtype, &all)?.into_iter().enumerate() {
                let zeros = vec![0; dtype.size() as usize];
                let some = element(&dtype, 70).into_iter().zip(meaningful(&dtype));
                let some = some.map(|(byte, counts)| byte * u8::from(counts)).collect();
                for (filled, fill) in [(false, zeros), (subject.caps.data.fill_value, some)] {
                    let what = format!("{name} of {shape:?}, {layout_name}, filled: {filled}");
                    let spec = ArraySpec { fill_value: filled.then_some(fill), ..ArraySpec::new(dtype.clone(), shape) };
                    let array = format!("{name} {} {i} {filled}", shape.len());
                    let twin = match OraclePair::create(&pair.subject, &pair.oracle, &array, &spec) {
                        // The second of two runs without a fill value, or a fill value the format cannot keep.
                        Err(error) if filled && error.kind() == ErrorKind::Unsupported => continue,
                        Err(error) if !filled && error.kind() == ErrorKind::AlreadyExists => continue,
                        created => trying(created, || what.clone())?,
                    };
                    twin.compare(&all, &layout, &format!("{what}, before any write"))?;
                    if whole || subject.caps.data.partial_fields {
                        trying(twin.write(&all, &layout, 11), || what.clone())?;
                        twin.compare_all(&what)?;
                    }
                }
            }
        }
    }
    Ok(pair.close()?)
}

fn fields(subject: &Subject, dtype: &Datatype, chunk: Option<&[u64]>) -> Result<(), Failed> {
    let pair = subject.pair("a", OpenMode::Create)?;
    let shape = [5, 7];
    let spec = ArraySpec { chunk: chunk.map(Into::into), ..ArraySpec::new(dtype.clone(), &shape) };
    let twin = OraclePair::create(&pair.subject, &pair.oracle, "array", &spec)?;
    twin.write(&Selection::all(&shape)?, &MemoryLayout::packed(), 7)?;
    let mut seed = 100;
    for (kind, selection) in cases::selections(&shape)? {
        for (layout_name, layout) in cases::layouts(dtype, &selection)? {
            let what = format!("{kind}, {layout_name}");
            seed += 1000;
            trying(twin.write(&selection, &layout, seed), || format!("write {what}"))?;
            twin.compare(&selection, &layout, &what)?;
        }
        for (layout_name, layout, whole) in cases::field_layouts(dtype, &selection)? {
            let what = format!("{kind}, {layout_name}");
            seed += 1000;
            if whole || subject.caps.data.partial_fields {
                trying(twin.write(&selection, &layout, seed), || format!("write {what}"))?;
            } else if !selection.is_empty() {
                let data = buffer(dtype, &layout, selection.len(), seed)?;
                let view = MemoryView { data: &data, layout: &layout };
                refused(twin.subject.write(&selection, view, TransferMode::Independent), &[], &what)?;
            }
            twin.compare_all(&what)?;
            twin.compare(&selection, &layout, &what)?;
        }
    }
    pair.close()?;
    let pair = subject.pair("a", OpenMode::Read)?;
    OraclePair::open(&pair.subject, &pair.oracle, "array")?.compare_all("after opening again")?;
    Ok(pair.close()?)
}
