//! What is tried: datatypes, shapes, selections and memory layouts.

use hyperslab_core::{BufferRegion, Datatype, Field, MemoryLayout, Result, Selection, Slab, dims::element_count};

/// Every kind of datatype, by name; numbers in both byte orders.
pub fn datatypes() -> Result<Vec<(String, Datatype)>> {
    let mut out = Vec::new();
    for text in [
        "|i1", "|u1", "<i2", ">i2", "<u2", ">u2", "<i4", ">i4", "<u4", ">u4", "<i8", ">i8", "<u8", ">u8", "<f2", ">f2",
        "<f4", ">f4", "<f8", ">f8", "|b1", "|S1", "|S7", "|V1", "|V5",
    ] {
        out.push((text.trim_start_matches('|').to_string(), text.parse()?));
    }
    out.push(("particle".into(), particle()?));
    out.push(("nested".into(), nested()?));
    Ok(out)
}

/// A packed compound of three kinds of numbers.
pub fn particle() -> Result<Datatype> {
    Datatype::packed_compound([("x", Datatype::F32), ("id", Datatype::I64), ("kind", "<u2".parse()?)])
}

/// A compound with padding before, between and after its fields, a compound inside, and types that are not numbers.
pub fn nested() -> Result<Datatype> {
    let field = |name: &str, offset, dtype| Field { name: name.into(), offset, dtype };
    let inner = Datatype::compound(12, vec![field("re", 0, ">f4".parse()?), field("im", 8, "<f4".parse()?)])?;
    Datatype::compound(
        48,
        vec![
            field("alive", 1, Datatype::Bool),
            field("wave", 4, inner),
            field("name", 17, "|S5".parse()?),
            field("mass", 24, Datatype::F64),
            field("raw", 33, "|V3".parse()?),
        ],
    )
}

/// A small shape of each rank from 0 to 5, with extents that chunks do not divide.
pub fn shapes() -> Vec<Vec<u64>> {
    vec![vec![], vec![11], vec![5, 7], vec![4, 3, 5], vec![3, 2, 4, 3], vec![2, 3, 2, 3, 2]]
}

/// A shape of 32 dimensions with few elements.
pub fn deep_shape(rank: usize) -> Vec<u64> {
    (0..rank).map(|d| if d % 9 == 4 { 3 } else { 1 }).collect()
}

/// Every kind of selection that `shape` has room for, by name.
pub fn selections(shape: &[u64]) -> Result<Vec<(&'static str, Selection)>> {
    let rank = shape.len();
    let zeros = vec![0; rank];
    let ones = vec![1; rank];
    let mut out = vec![("all", Selection::all(shape)?), ("none", Selection::empty(rank))];
    if rank == 0 || shape.contains(&0) {
        return Ok(out);
    }
    let last: Vec<u64> = shape.iter().map(|n| n - 1).collect();
    let each = |f: fn(u64) -> u64| shape.iter().map(|&n| f(n)).collect::<Vec<u64>>();
    out.push(("first element", Selection::dense(&zeros, &ones)?));
    out.push(("last element", Selection::dense(&last, &ones)?));
    out.push(("inner box", Selection::dense(&each(|n| n / 4), &each(|n| n.div_ceil(2)))?));
    let (start, counts) = (each(|n| u64::from(n > 2)), each(|n| if n > 2 { (n - 1).div_ceil(2) } else { 1 }));
    out.push(("every second", Selection::strided(&start, &vec![2; rank], &counts, &ones)?));
    let blocks: Vec<u64> = shape.iter().map(|&n| if n >= 5 { 2 } else { 1 }).collect();
    let repeats: Vec<u64> = shape.iter().map(|&n| if n >= 5 { 1 + (n - 2) / 3 } else { n.div_ceil(3) }).collect();
    out.push(("blocks", Selection::strided(&zeros, &vec![3; rank], &repeats, &blocks)?));
    let mut column = shape.to_vec();
    column[rank - 1] = 1;
    out.push(("last column", Selection::dense(&[&zeros[..rank - 1], &last[rank - 1..]].concat(), &column)?));
    let mut row = ones.clone();
    row[rank - 1] = shape[rank - 1];
    let corners = [Slab::dense(&zeros, &ones)?, Slab::dense(&last, &ones)?, Slab::dense(&last_row(shape), &row)?];
    out.push(("corners and a row", Selection::union(rank, corners.into_iter().flatten())?));
    let comb = Slab::strided(&zeros, &vec![2; rank], &each(|n| n.div_ceil(2)), &ones)?;
    let cross = Slab::dense(&each(|n| n / 2), &each(|n| n - n / 2))?;
    out.push(("comb and a box that overlaps it", Selection::union(rank, comb.into_iter().chain(cross))?));
    Ok(out)
}

fn last_row(shape: &[u64]) -> Vec<u64> {
    let mut start: Vec<u64> = shape.iter().map(|n| n - 1).collect();
    if let Some(fastest) = start.last_mut() {
        *fastest = 0;
    }
    start
}

/// Layouts in which memory holds whole elements, for `selection` of an array of `dtype`.
pub fn layouts(dtype: &Datatype, selection: &Selection) -> Result<Vec<(&'static str, MemoryLayout)>> {
    let n = selection.len();
    let comb = Selection::strided(&[2], &[3], &[n], &[1])?;
    let column = Selection::dense(&[1, 3], &[n, 1])?;
    let mut out = vec![
        ("packed", MemoryLayout::packed()),
        ("every third of a larger buffer", MemoryLayout::strided(&[3 * n + 5], comb.clone())),
        ("a column of a matrix", MemoryLayout::strided(&[n + 2, 5], column)),
        ("a member of a structure", MemoryLayout::member(dtype.size() + 7, 3)),
        (
            "a member of every third structure",
            MemoryLayout {
                within: Some(BufferRegion { shape: [3 * n + 5].as_slice().into(), selection: comb }),
                structure: MemoryLayout::member(dtype.size() + 1, 1).structure,
            },
        ),
    ];
    if let Some(slab) = selection.as_slab().filter(|slab| !slab.counts().is_empty()) {
        let shape: Vec<u64> = slab.counts().iter().map(|c| if *c == 1 { 1 } else { c + 2 }).collect();
        let start: Vec<u64> = slab.counts().iter().map(|c| u64::from(*c != 1)).collect();
        if element_count(&shape)? <= 1 << 16 {
            out.push(("inside ghost cells", MemoryLayout::strided(&shape, Selection::dense(&start, &slab.counts())?)));
        }
    }
    if n >= 4 {
        let halves = [Slab::dense(&[1], &[n / 2])?, Slab::dense(&[n], &[n - n / 2])?];
        let apart = Selection::union(1, halves.into_iter().flatten())?;
        out.push(("a union of a larger buffer", MemoryLayout::strided(&[2 * n], apart)));
    }
    Ok(out)
}

/// Layouts that transfer some or all fields of a compound: (name, layout, whether every byte of the element is
/// transferred).
pub fn field_layouts(dtype: &Datatype, selection: &Selection) -> Result<Vec<(String, MemoryLayout, bool)>> {
    let fields = dtype.fields();
    let mut out: Vec<(String, MemoryLayout)> = Vec::new();
    for field in fields {
        let (name, size) = (field.name.as_str(), field.dtype.size());
        out.push((format!("field {name} as a plain array"), MemoryLayout::fields(size, [(name, 0)])));
        out.push((format!("field {name} inside a structure"), MemoryLayout::fields(size + 6, [(name, 5)])));
    }
    if fields.len() > 2 {
        let pair = [(fields[2].name.as_str(), 1), (fields[0].name.as_str(), 2 + fields[2].dtype.size())];
        let size = 4 + fields[0].dtype.size() + fields[2].dtype.size();
        out.push(("two fields, swapped".into(), MemoryLayout::fields(size, pair)));
        let n = selection.len();
        let mut strided = MemoryLayout::fields(size, pair);
        strided.within = MemoryLayout::strided(&[2 * n + 1], Selection::strided(&[1], &[2], &[n], &[1])?).within;
        out.push(("two fields of every second structure".into(), strided));
    }
    let mut offset = 2;
    let reversed: Vec<(&str, u64)> = fields
        .iter()
        .rev()
        .map(|field| {
            let at = offset;
            offset += field.dtype.size() + 1;
            (field.name.as_str(), at)
        })
        .collect();
    out.push(("all fields, reversed".into(), MemoryLayout::fields(offset, reversed)));
    out.into_iter()
        .map(|(name, layout)| {
            let whole = layout.plan(dtype)?.covers_element();
            Ok((name, layout, whole))
        })
        .collect()
}
