//! Splits selections into bands of chunk-file rows, for transfers through a packed buffer.

use super::layout::ArrayLayout;
use hyperslab_core::{Dims, Result, Selection};

/// Size limit of a band, unless a single row of files selects more.
const BAND_BYTES: u64 = 64 << 20;

/// Calls `visit` with consecutive bands of the selection, split between rows of files so that no file is in two bands.
pub fn for_each_band(
    selection: &Selection,
    layout: &ArrayLayout,
    visit: &mut dyn FnMut(&Selection) -> Result<()>,
) -> Result<()> {
    let Some((low, high)) = selection.bounds() else { return Ok(()) };
    match (low.first(), high.first(), layout.file.first()) {
        (Some(low), Some(high), Some(file)) => band(selection, layout, low / file, high.div_ceil(*file), visit),
        _ => visit(selection),
    }
}

/// Splits `selection`, which lies in the rows of files `first..end`, recursively.
fn band(
    selection: &Selection,
    layout: &ArrayLayout,
    first: u64,
    end: u64,
    visit: &mut dyn FnMut(&Selection) -> Result<()>,
) -> Result<()> {
    if selection.is_empty() {
        return Ok(());
    }
    if end - first <= 1 || selection.len().saturating_mul(layout.dtype.size()) <= BAND_BYTES {
        return visit(selection);
    }
    let middle = first + (end - first) / 2;
    for (from, to) in [(first, middle), (middle, end)] {
        let mut start = Dims::from_elem(0, layout.shape.len());
        let mut count = layout.shape.clone();
        start[0] = from * layout.file[0];
        count[0] = to.saturating_mul(layout.file[0]).min(layout.shape[0]) - start[0];
        band(&selection.intersect(&Selection::dense(&start, &count)?)?, layout, from, to, visit)?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::zarr::{layout::Version, options::Options};
    use hyperslab_core::{ArraySpec, Datatype, StackElement};

    #[test]
    fn bands_cover_the_selection_in_order() {
        let mut spec = ArraySpec::new(Datatype::F64, &[100, 1 << 20]);
        spec.chunk = Some([8, 1 << 10][..].into());
        let options = Options::parse(&StackElement::plain("zarr")).unwrap();
        let layout = ArrayLayout::new(&spec, &options, Version::V3).unwrap();
        let selection = Selection::dense(&[3, 0], &[90, 1 << 20]).unwrap();
        let mut rows = 3;
        for_each_band(&selection, &layout, &mut |band| {
            let (low, high) = band.bounds().unwrap();
            assert_eq!(low[0], rows);
            assert!(high[0] == 93 || high[0] % 8 == 0);
            assert!(band.len() * 8 <= BAND_BYTES.max(64 << 20));
            rows = high[0];
            Ok(())
        })
        .unwrap();
        assert_eq!(rows, 93);
    }
}
