//! Element type conversion with libhdf5's rules.
//!
//! Integers are clamped to the range of the target. Floats lose their fraction and are clamped. Integers become the
//! nearest float, ties to even. Floats that are too large for a narrower one become infinite. Fields of compounds are
//! matched by name; what the target has besides stays as it is.
//!
//! The results are those of libhdf5 2.2, bit by bit, as the tests check for every pair of types. That includes what it
//! does where one would expect otherwise, since the same program must not read different data by the direct path than by libhdf5:
//!
//! | from | to | what | result |
//! |---|---|---|---|
//! | `f4`, `f8` in the machine's order | `i4`, `i8` of that order | not a number; 2^31 or 2^63 as the float next to the largest integer | the lowest integer (x86-64) |
//! | as above | `u8` | not a number | 2^63 (x86-64) |
//! | as above | `u4`, `u8` | 2^32 or 2^64 from a float that has no room for the largest integer | 0 (x86-64) |
//! | `f8` in the machine's order | `f4` of that order | above the largest `f4`, though nearer to it than to the next | infinite |
//! | integers | integers of the same size, in the other order | other signedness | the same bits: nothing is clamped |
//! | any other float | signed integers | between -0.5 and 0 | the lowest integer |
//! | any other float | a narrower float | half way between two | the one farther from zero |
//! | any other float | a narrower float | result below the smallest normal number, rounded up to a power of two | half of it |
//! | any other float | a float | not a number | all bits of the fraction set |
//! | integers | `f2` | 65536 to 131008 | infinite for the first, not a number for the rest |
//!
//! "Any other" are those of 2 bytes, and pairs of which one has the other byte order. A libhdf5 of another version, or
//! built by a compiler that knows floats of 2 bytes, may differ there: see [`Conversion::depends_on_library`].

mod cast;
mod fast_paths;
mod fields;
mod float_narrowing;
mod half;
mod kernel;
mod numbers;
mod swap;

use fields::Fields;
use hyperslab_core::{Datatype, Error, Result};
use numbers::Numbers;

/// Conversion from one element type to another.
#[derive(Debug, Clone)]
pub struct Conversion {
    from_size: usize,
    to_size: usize,
    how: How,
}

#[derive(Debug, Clone)]
enum How {
    Numbers(Numbers),
    Fields(Fields),
}

/// Bytes buffered at a time by an in-place conversion.
const BUFFERED_BYTES: usize = 16 << 10;

impl Conversion {
    /// The conversion of packed elements; `None` if both types are equal.
    ///
    /// Unsupported: text, opaque bytes and booleans unless both types are the same, and compounds with such fields of
    /// the same name or with no common field.
    pub fn new(from: &Datatype, to: &Datatype) -> Result<Option<Self>> {
        if from == to {
            return Ok(None);
        }
        let how = match (from, to) {
            (Datatype::Compound(_), Datatype::Compound(_)) => How::Fields(Fields::new(from, to)?),
            _ => How::Numbers(Numbers::new(from, to).ok_or_else(|| {
                Error::unsupported("convert", format!("{from} to {to}"))
                    .hint("numbers can be converted, and fields by name")
            })?),
        };
        Ok(Some(Self { from_size: from.size() as usize, to_size: to.size() as usize, how }))
    }

    /// Whether some results differ from those of other versions or builds of libhdf5 (than 2.2 without native
    /// `_Float16`). Next to an unknown libhdf5, leave such conversions to it.
    pub fn depends_on_library(&self) -> bool {
        match &self.how {
            How::Numbers(numbers) => numbers.depends_on_library(),
            How::Fields(fields) => fields.depends_on_library(),
        }
    }

    /// Converts packed elements. Both slices hold the same number of whole elements.
    ///
    /// Bytes of `to` outside the common fields, including padding, are unchanged.
    pub fn convert(&self, from: &[u8], to: &mut [u8]) -> Result<()> {
        let elements = from.len() / self.from_size;
        let whole = elements.checked_mul(self.from_size) == Some(from.len());
        if !whole || elements.checked_mul(self.to_size) != Some(to.len()) {
            return Err(Error::invalid(
                "convert",
                format!(
                    "{} bytes of elements of {} cannot become {} bytes of elements of {}",
                    from.len(),
                    self.from_size,
                    to.len(),
                    self.to_size
                ),
            ));
        }
        self.run(from, to);
        Ok(())
    }

    fn run(&self, from: &[u8], to: &mut [u8]) {
        match &self.how {
            How::Numbers(numbers) => numbers.convert(from, to),
            How::Fields(fields) => fields.convert(from, to),
        }
    }

    /// Converts packed numbers in place, in a buffer large enough for either type. Uses 16 KiB of stack.
    ///
    /// Fails for compounds, whose other fields need a destination.
    pub fn convert_in_place(&self, buffer: &mut [u8], elements: usize) -> Result<()> {
        if let How::Fields(_) = self.how {
            return Err(Error::unsupported("convert", "compounds in place").hint("convert them into another buffer"));
        }
        let need = elements.checked_mul(self.from_size.max(self.to_size));
        if need.is_none_or(|need| need > buffer.len()) {
            let message = format!("{elements} elements do not fit into {} bytes", buffer.len());
            return Err(Error::invalid("convert", message));
        }
        let mut buffered = [0; BUFFERED_BYTES];
        let step = BUFFERED_BYTES / self.from_size;
        let mut block = |first: usize| {
            let count = step.min(elements - first);
            let buffered = &mut buffered[..count * self.from_size];
            buffered.copy_from_slice(&buffer[first * self.from_size..][..count * self.from_size]);
            self.run(buffered, &mut buffer[first * self.to_size..][..count * self.to_size]);
        };
        // Growing elements are converted from the end, so that no input is overwritten before it is read.
        match self.to_size <= self.from_size {
            true => (0..elements).step_by(step).for_each(&mut block),
            false => (0..elements).step_by(step).rev().for_each(&mut block),
        }
        Ok(())
    }
}
