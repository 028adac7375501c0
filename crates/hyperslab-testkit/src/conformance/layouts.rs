//! Every memory layout with every selection.

use super::{Check, ensure, trying};
use crate::{Subject, Twin, buffer, catalogue};
use hyperslab_core::{ArraySpec, Caps, Datatype, MemoryLayout, MemoryView, OpenMode, Selection, TransferMode};
use libtest_mimic::Failed;

pub(super) fn checks(_caps: &Caps) -> Vec<Check> {
    vec![
        Check::new("layout/1 dimension", |subject| all(subject, Datatype::F64, &[23])),
        Check::new("layout/2 dimensions", |subject| all(subject, Datatype::F32, &[6, 9])),
        Check::new("layout/3 dimensions, one-byte elements", |subject| all(subject, Datatype::U8, &[3, 5, 4])),
        Check::new("layout/scalar", |subject| all(subject, Datatype::I64, &[])),
        Check::new("write_many: the later part wins", write_many),
        Check::new("submit_write", submit_write),
        Check::new("a larger array than any buffer inside", large),
    ]
}

fn all(subject: &Subject, dtype: Datatype, shape: &[u64]) -> Result<(), Failed> {
    let pair = subject.pair("a", OpenMode::Create)?;
    let twin = Twin::create(&pair.subject, &pair.oracle, "array", &ArraySpec::new(dtype.clone(), shape))?;
    let mut seed = 0;
    for (kind, selection) in catalogue::selections(shape)? {
        for (layout_name, layout) in catalogue::layouts(&dtype, &selection)? {
            let what = format!("{kind}, {layout_name}");
            seed += 1000;
            trying(twin.write(&selection, &layout, seed), || format!("write {what}"))?;
            twin.compare_all(&what)?;
            twin.compare(&selection, &layout, &what)?;
        }
    }
    Ok(pair.close()?)
}

fn write_many(subject: &Subject) -> Result<(), Failed> {
    let pair = subject.pair("a", OpenMode::Create)?;
    let twin = Twin::create(&pair.subject, &pair.oracle, "array", &ArraySpec::new(Datatype::I32, &[8, 8]))?;
    let boxes = [([0, 0], [6, 6]), ([2, 2], [6, 6]), ([3, 1], [2, 4])];
    let selections =
        boxes.iter().map(|(start, count)| Selection::dense(start, count)).collect::<Result<Vec<_>, _>>()?;
    let layouts = [
        MemoryLayout::packed(),
        MemoryLayout::strided(&[8, 7], Selection::dense(&[1, 1], &[6, 6])?),
        MemoryLayout::member(9, 5),
    ];
    let buffers = (selections.iter().zip(&layouts))
        .enumerate()
        .map(|(i, (selection, layout))| buffer(&Datatype::I32, layout, selection.len(), 500 * i as u64))
        .collect::<Result<Vec<_>, _>>()?;
    let parts: Vec<(&Selection, MemoryView<'_>)> = selections
        .iter()
        .zip(&buffers)
        .zip(&layouts)
        .map(|((selection, data), layout)| (selection, MemoryView { data, layout }))
        .collect();
    twin.subject.write_many(&parts, TransferMode::Independent)?;
    twin.oracle.write_many(&parts, TransferMode::Independent)?;
    twin.subject.write_many(&[], TransferMode::Independent)?;
    twin.compare_all("after write_many")?;
    Ok(pair.close()?)
}

fn submit_write(subject: &Subject) -> Result<(), Failed> {
    let pair = subject.pair("a", OpenMode::Create)?;
    let twin = Twin::create(&pair.subject, &pair.oracle, "array", &ArraySpec::new(Datatype::F64, &[9, 4]))?;
    let mut requests = Vec::new();
    for row in 0..9 {
        let selection = Selection::dense(&[row, 0], &[1, 4])?;
        let layout = MemoryLayout::member(11, 2);
        let data = buffer(&Datatype::F64, &layout, 4, row)?;
        twin.oracle.write(&selection, MemoryView { data: &data, layout: &layout }, TransferMode::Independent)?;
        requests.push(twin.subject.submit_write(&selection, data.into(), &layout, TransferMode::Independent)?);
    }
    let outside = Selection::dense(&[9, 0], &[1, 4])?;
    let bad =
        twin.subject.submit_write(&outside, vec![0; 32].into(), &MemoryLayout::packed(), TransferMode::Independent);
    let failed = match bad {
        Err(_) => true,
        Ok(request) => request.wait().is_err(),
    };
    ensure!(failed, "a submitted write outside the array was accepted");
    for request in requests {
        request.wait()?;
    }
    twin.compare_all("after waiting")?;
    Ok(pair.close()?)
}

fn large(subject: &Subject) -> Result<(), Failed> {
    if subject.format.name() == "memory" {
        return Ok(()); // the oracle has no buffers, and compares element by element
    }
    let shape = [1031, 1021]; // 8 MiB, and no power of two anywhere
    let container = subject.open("a", OpenMode::Create)?;
    let array = match container.create("array", &ArraySpec::new(Datatype::F64, &shape)) {
        Err(error) if error.kind() == hyperslab_core::ErrorKind::Unsupported => return Ok(()), // too large for a layout
        created => created?,
    };
    let value = |index: u64| (index as f64).to_ne_bytes();
    let data: Vec<u8> = (0..shape[0] * shape[1]).flat_map(value).collect();
    array.write(&Selection::all(&shape)?, MemoryView::packed(&data), TransferMode::Independent)?;
    let every_other = Selection::strided(&[1, 1], &[2, 3], &[515, 340], &[1, 1])?;
    let mut part = vec![0; every_other.len() as usize * 8];
    let view = hyperslab_core::MemoryViewMut::packed(&mut part);
    array.read(&every_other, view, TransferMode::Independent)?;
    let expected = (0..515).flat_map(|i| (0..340).map(move |j| (1 + 2 * i) * shape[1] + 1 + 3 * j));
    ensure!(part.chunks(8).eq(expected.map(value)), "a strided read of a large array differs");
    array.write(&every_other, MemoryView::packed(&vec![0xFF; part.len()]), TransferMode::Independent)?;
    let mut whole = vec![0; data.len()];
    let view = hyperslab_core::MemoryViewMut::packed(&mut whole);
    array.read(&Selection::all(&shape)?, view, TransferMode::Independent)?;
    for (index, (found, written)) in whole.chunks(8).zip(data.chunks(8)).enumerate() {
        let (row, column) = (index as u64 / shape[1], index as u64 % shape[1]);
        let replaced = row % 2 == 1 && column % 3 == 1 && column < 1021;
        ensure!(
            found == if replaced { &[0xFF; 8][..] } else { written },
            "element {row}, {column} differs after a strided write"
        );
    }
    Ok(container.close()?)
}
