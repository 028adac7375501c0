//! Boxes inside chunks, and copying them.

use hyperslab_core::Dims;

/// A non-empty box: first index and one past the last in each dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// First index.
    pub start: Dims,
    /// One past the last.
    pub end: Dims,
}

impl Region {
    /// All of `shape`.
    pub fn all(shape: &[u64]) -> Self {
        Self { start: Dims::from_elem(0, shape.len()), end: shape.into() }
    }
}

/// Calls `visit` for every index in the box, row-major. A box without dimensions has one index.
pub fn for_each_index<E>(region: &Region, mut visit: impl FnMut(&[u64]) -> Result<(), E>) -> Result<(), E> {
    if region.start.iter().zip(&region.end).any(|(s, e)| s >= e) {
        return Ok(());
    }
    let mut at = region.start.clone();
    loop {
        visit(&at)?;
        let mut d = at.len();
        loop {
            if d == 0 {
                return Ok(());
            }
            d -= 1;
            at[d] += 1;
            if at[d] < region.end[d] {
                break;
            }
            at[d] = region.start[d];
        }
    }
}

/// A row-major buffer of `shape`, and where a box begins in it.
#[derive(Debug, Clone, Copy)]
pub struct BoxInBuffer<'a> {
    /// Extents of the buffer.
    pub shape: &'a [u64],
    /// First index of the box.
    pub start: &'a [u64],
}

impl BoxInBuffer<'_> {
    fn offset(&self, at: &[u64]) -> usize {
        let starts = self.start.iter().zip(at);
        self.shape.iter().zip(starts).fold(0, |linear, (extent, (start, i))| linear * extent + start + i) as usize
    }
}

/// Copies a box of `extent` elements of `element` bytes between two buffers.
pub fn copy_box(
    from: &[u8],
    from_at: BoxInBuffer<'_>,
    to: &mut [u8],
    to_at: BoxInBuffer<'_>,
    extent: &[u64],
    element: usize,
) {
    // Trailing dimensions that the box covers on both sides are one contiguous run.
    let mut split = extent.len();
    let mut run = element;
    while split > 0 {
        split -= 1;
        run *= extent[split] as usize;
        if extent[split] != from_at.shape[split] || extent[split] != to_at.shape[split] {
            break;
        }
    }
    let mut rows = Region::all(extent);
    rows.end[split..].fill(1);
    let copied: Result<(), ()> = for_each_index(&rows, |at| {
        let (from_byte, to_byte) = (from_at.offset(at) * element, to_at.offset(at) * element);
        to[to_byte..to_byte + run].copy_from_slice(&from[from_byte..from_byte + run]);
        Ok(())
    });
    debug_assert!(copied.is_ok());
}

/// Fills `bytes` with copies of `fill`; its length is a multiple of the fill's.
pub fn fill_with(bytes: &mut [u8], fill: &[u8]) {
    if fill.iter().all(|b| *b == fill[0]) {
        return bytes.fill(fill[0]);
    }
    let mut done = fill.len().min(bytes.len());
    bytes[..done].copy_from_slice(&fill[..done]);
    while done < bytes.len() {
        let more = done.min(bytes.len() - done);
        bytes.copy_within(..more, done);
        done += more;
    }
}

/// `len` bytes of copies of `fill`.
pub fn filled(len: usize, fill: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; len]; // zeros come lazily from the system
    if fill.iter().any(|b| *b != 0) {
        fill_with(&mut bytes, fill);
    }
    bytes
}

/// Whether `bytes` are nothing but copies of `fill`.
pub fn is_filled(bytes: &[u8], fill: &[u8]) -> bool {
    let size = fill.len();
    // Equal to the fill at first and to itself one element on: two comparisons of memory.
    bytes.len() < size || bytes[..size] == *fill && bytes[..bytes.len() - size] == bytes[size..]
}

/// The chunk with dimensions in the opposite order: what lay column-major lies row-major of the reversed shape.
pub fn reverse_dimensions(bytes: &[u8], shape: &[u64], element: usize) -> Vec<u8> {
    let mut out = vec![0; bytes.len()];
    let reversed: Dims = shape.iter().rev().copied().collect();
    let pitches = hyperslab_core::dims::pitches(&reversed);
    let mut from = 0;
    let visited: Result<(), ()> = for_each_index(&Region::all(shape), |at| {
        let to = at.iter().zip(pitches.iter().rev()).map(|(i, p)| i * p).sum::<u64>() as usize * element;
        out[to..to + element].copy_from_slice(&bytes[from..from + element]);
        from += element;
        Ok(())
    });
    debug_assert!(visited.is_ok());
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_copied() {
        let from: Vec<u8> = (0..24).collect(); // 4 x 6
        let mut to = vec![255; 2 * 6];
        let whole_rows = [2, 6];
        copy_box(
            &from,
            BoxInBuffer { shape: &[4, 6], start: &[1, 0] },
            &mut to,
            BoxInBuffer { shape: &[2, 6], start: &[0, 0] },
            &whole_rows,
            1,
        );
        assert_eq!(to, (6..18).collect::<Vec<u8>>());
        let mut to = vec![255; 9];
        copy_box(
            &from,
            BoxInBuffer { shape: &[4, 6], start: &[2, 4] },
            &mut to,
            BoxInBuffer { shape: &[3, 3], start: &[1, 0] },
            &[2, 2],
            1,
        );
        assert_eq!(to, [255, 255, 255, 16, 17, 255, 22, 23, 255]);
        let mut one = vec![0; 2];
        copy_box(
            &[7, 8],
            BoxInBuffer { shape: &[], start: &[] },
            &mut one,
            BoxInBuffer { shape: &[], start: &[] },
            &[],
            2,
        );
        assert_eq!(one, [7, 8]);
    }

    #[test]
    fn fills_are_recognised() {
        let bytes = filled(21, &[1, 2, 3]);
        assert_eq!(bytes, [1, 2, 3].repeat(7));
        assert!(is_filled(&bytes, &[1, 2, 3]));
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert!(!is_filled(&other, &[1, 2, 3]), "{at}");
        }
        assert!(is_filled(&filled(8, &[0, 0]), &[0, 0]));
    }

    #[test]
    fn reversing_twice_changes_nothing() {
        let bytes: Vec<u8> = (0..24).collect();
        let reversed = reverse_dimensions(&bytes, &[3, 4], 2);
        assert_eq!(reversed[2..4], [8, 9]); // (1, 0) comes second
        assert_eq!(reverse_dimensions(&reversed, &[4, 3], 2), bytes);
    }
}
