//! Deterministic data generation: every element is a function of the workload's seed, the array's name and the element's index,
//! so that any read can be verified without keeping the written data.

mod string_data;

use crate::{ByteOrder, Datatype, ElementPlan, Error, Result, Run, Runs, Selection, Strings};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use string_data::StringRule;

/// The kind of values an array gets. Version 1 of the rules; changing any value requires a new version.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fill {
    /// Uniform pseudo-random values: floats in [0, 1), any bits otherwise. Incompressible.
    #[default]
    Random,
    /// The row-major index plus a constant: identifiers. Easy to compress.
    Index,
    /// The row-major index times 1/1024 plus a constant: smooth coordinates.
    Ramp,
    /// One rule per field of a compound, in order of offset.
    Fields(Vec<Fill>),
    /// These bytes: packed elements of the whole array, row-major. Elements beyond them are zero.
    Literal(Vec<u8>),
    /// This text in every element of an array of strings of variable length.
    Text(String),
}

/// The generator of one named array, built once and used for many selections.
#[derive(Debug, Clone)]
pub struct DataRules {
    leaves: Vec<Leaf>,
    element: usize,
    /// Whether an element has padding bytes, which no leaf covers.
    padded: bool,
    /// The rule for strings of variable length, which have no leaves.
    strings: Option<StringRule>,
}

/// Generates the elements of a selection in packed order, one buffer at a time.
pub struct DataStream<'a> {
    rules: &'a DataRules,
    runs: Runs<'a>,
    run: Run,
}

/// One number (or byte string) inside an element.
#[derive(Debug, Clone)]
struct Leaf {
    offset: usize,
    size: usize,
    rule: Rule,
    big: bool,
    /// Salt of the array, the field and the seed.
    salt: u64,
}

#[derive(Debug, Clone)]
enum Rule {
    RandomFloat,
    RandomBits,
    RandomBool,
    Letters,
    /// value = index + salt % 4096, as integer.
    CountInteger,
    /// value = (index + salt % 4096) * scale, as float.
    CountFloat(f64),
    /// The bytes from `first` on of each element of `stride` bytes.
    Literal {
        bytes: Arc<[u8]>,
        first: usize,
        stride: usize,
    },
}

impl DataRules {
    /// The generator for the array `name` of `dtype` in a workload with `seed`.
    pub fn new(dtype: &Datatype, fill: &Fill, name: &str, seed: u64) -> Result<Self> {
        let mut leaves = Vec::new();
        let salt = mix(seed ^ hash_name(name));
        let strings = (*dtype == Datatype::VariableString).then(|| StringRule::new(fill, salt)).transpose()?;
        if strings.is_none() {
            collect_leaves(dtype, fill, 0, salt, &mut leaves)?;
        }
        let element = dtype.size() as usize;
        let padded = leaves.iter().map(|leaf| leaf.size).sum::<usize>() != element;
        Ok(Self { leaves, element, padded, strings })
    }

    /// The same generator restricted to the bytes that `plan` transfers; other bytes are zero.
    pub fn only(&self, plan: &ElementPlan) -> Self {
        let wanted = |leaf: &&Leaf| {
            let (from, to) = (leaf.offset as u64, (leaf.offset + leaf.size) as u64);
            plan.pieces.iter().any(|p| p.element < to && from < p.element + p.len)
        };
        let leaves: Vec<Leaf> = self.leaves.iter().filter(wanted).flat_map(|leaf| leaf.parts(plan)).collect();
        let padded = leaves.iter().map(|leaf| leaf.size).sum::<usize>() != self.element;
        Self { leaves, element: self.element, padded, strings: self.strings.clone() }
    }

    /// The strings of `selection` in an array of [`Datatype::VariableString`]. The slowest extent may grow without changing
    /// earlier ones.
    pub fn strings(&self, shape: &[u64], selection: &Selection) -> Result<Strings> {
        let rule = self.strings.as_ref().ok_or_else(|| Error::invalid("make data", "this is no array of strings"))?;
        let indices = selection.runs(shape, 1)?.flat_map(|run| run.offset..run.offset + run.len);
        Ok(indices.map(|index| rule.text(index)).collect())
    }

    /// The values of `selection` in an array of `shape`. The slowest extent may grow without changing earlier values.
    pub fn stream<'a>(&'a self, shape: &[u64], selection: &'a Selection) -> Result<DataStream<'a>> {
        Ok(DataStream { rules: self, runs: selection.runs(shape, 1)?, run: Run { offset: 0, len: 0 } })
    }
}

impl DataStream<'_> {
    /// Fills `packed`, whose length is a multiple of the element size, with the next elements; padding becomes zero.
    /// Returns the number of elements, fewer than fit only at the end.
    pub fn next_into(&mut self, packed: &mut [u8]) -> usize {
        let DataRules { leaves, element, padded, .. } = self.rules;
        if *padded {
            packed.fill(0);
        }
        let total = packed.len() / element;
        let mut done = 0;
        while done < total {
            if self.run.len == 0 {
                match self.runs.next() {
                    Some(run) => self.run = run,
                    None => break,
                }
            }
            let n = self.run.len.min((total - done) as u64) as usize;
            let part = &mut packed[done * element..(done + n) * element];
            for leaf in leaves {
                leaf.fill(self.run.offset, *element, part);
            }
            self.run.offset += n as u64;
            self.run.len -= n as u64;
            done += n;
        }
        done
    }
}

fn collect_leaves(dtype: &Datatype, fill: &Fill, offset: u64, salt: u64, out: &mut Vec<Leaf>) -> Result<()> {
    if let Fill::Text(_) = fill {
        return Err(Error::invalid(
            "check workload",
            format!("the fill rule text is for strings of variable length, not {dtype}"),
        ));
    }
    if let Fill::Literal(bytes) = fill {
        let stride = dtype.size() as usize;
        let rule = Rule::Literal { bytes: bytes.as_slice().into(), first: 0, stride };
        out.push(Leaf { offset: offset as usize, size: stride, rule, big: false, salt });
        return Ok(());
    }
    if let Datatype::Compound(compound) = dtype {
        if let Fill::Fields(rules) = fill
            && rules.len() != compound.fields.len()
        {
            return Err(Error::invalid(
                "check workload",
                format!("{} fill rules for a compound of {} fields", rules.len(), compound.fields.len()),
            ));
        }
        for (i, field) in compound.fields.iter().enumerate() {
            let rule = if let Fill::Fields(rules) = fill { &rules[i] } else { fill };
            collect_leaves(&field.dtype, rule, offset + field.offset, mix(salt ^ hash_name(&field.name)), out)?;
        }
        return Ok(());
    }
    let (float, big) = match dtype {
        Datatype::Float { order, .. } => (true, *order == ByteOrder::Big),
        Datatype::Integer { order, .. } => (false, *order == ByteOrder::Big),
        _ => (false, false),
    };
    let rule = match (fill, dtype) {
        (Fill::Fields(_), _) => {
            return Err(Error::invalid("check workload", format!("fill rules per field for {dtype}, which has none")));
        }
        (_, Datatype::Bool) => Rule::RandomBool,
        (Fill::Random, _) if float => Rule::RandomFloat,
        (Fill::Index, _) if float => Rule::CountFloat(1.0),
        (Fill::Ramp, _) if float => Rule::CountFloat(1.0 / 1024.0),
        (Fill::Index | Fill::Ramp, Datatype::Integer { .. }) => Rule::CountInteger,
        (_, Datatype::Integer { .. }) => Rule::RandomBits,
        _ => Rule::Letters,
    };
    out.push(Leaf { offset: offset as usize, size: dtype.size() as usize, rule, big, salt });
    Ok(())
}

impl Leaf {
    /// Writes this leaf of the elements `first..` into `part`.
    fn fill(&self, first: u64, element: usize, part: &mut [u8]) {
        let base = self.salt % 4096;
        match (&self.rule, self.size) {
            (Rule::RandomFloat, 4) => {
                self.each(first, element, part, |i| unit_f32(self.bits32(i)).to_bits().to_le_bytes())
            }
            (Rule::RandomFloat, 8) => {
                self.each(first, element, part, |i| unit_f64(self.bits64(i)).to_bits().to_le_bytes())
            }
            // As many bits as a half has, so that none is rounded up to 1.
            (Rule::RandomFloat, _) => self.each(first, element, part, |i| {
                half::f16::from_f32(unit_f32(self.bits32(i) & !0x1f_ffff)).to_le_bytes()
            }),
            (Rule::CountFloat(scale), 4) => {
                let scale = *scale as f32;
                self.each(first, element, part, |i| (((i.wrapping_add(base)) as f32) * scale).to_le_bytes())
            }
            (Rule::CountFloat(scale), 8) => {
                let scale = *scale;
                self.each(first, element, part, |i| (((i.wrapping_add(base)) as f64) * scale).to_le_bytes())
            }
            (Rule::CountFloat(scale), _) => {
                let scale = *scale;
                self.each(first, element, part, |i| {
                    // Kept below the largest f16 so that no value becomes infinite.
                    half::f16::from_f64((i.wrapping_add(base) % 32768) as f64 * scale).to_le_bytes()
                })
            }
            (Rule::CountInteger, 1) => self.each(first, element, part, |i| [i.wrapping_add(base) as u8]),
            (Rule::CountInteger, 2) => self.each(first, element, part, |i| (i.wrapping_add(base) as u16).to_le_bytes()),
            (Rule::CountInteger, 4) => self.each(first, element, part, |i| (i.wrapping_add(base) as u32).to_le_bytes()),
            (Rule::CountInteger, _) => self.each(first, element, part, |i| i.wrapping_add(base).to_le_bytes()),
            (Rule::RandomBool, _) => self.each(first, element, part, |i| [(self.bits32(i) & 1) as u8]),
            (Rule::RandomBits, 1) => self.each(first, element, part, |i| [self.bits32(i) as u8]),
            (Rule::RandomBits, 2) => self.each(first, element, part, |i| (self.bits32(i) as u16).to_le_bytes()),
            (Rule::RandomBits, 4) => self.each(first, element, part, |i| self.bits32(i).to_le_bytes()),
            (Rule::RandomBits, _) => self.each(first, element, part, |i| self.bits64(i).to_le_bytes()),
            (Rule::Letters, _) => self.letters(first, element, part),
            (Rule::Literal { bytes, first: from, stride }, _) => {
                for (k, to) in part.chunks_exact_mut(element).enumerate() {
                    let at = (first as usize).saturating_add(k).saturating_mul(*stride).saturating_add(*from);
                    let to = &mut to[self.offset..self.offset + self.size];
                    match bytes.get(at..at.saturating_add(self.size)) {
                        Some(bytes) => to.copy_from_slice(bytes),
                        None => to.fill(0),
                    }
                }
            }
        }
    }

    /// The same for what `plan` transfers of it: all of it, unless it is literal and has parts.
    fn parts(&self, plan: &ElementPlan) -> Vec<Self> {
        let Rule::Literal { bytes, first, stride } = &self.rule else { return vec![self.clone()] };
        let part = |from: usize, to: usize| {
            let first = first + (from - self.offset);
            let rule = Rule::Literal { bytes: bytes.clone(), first, stride: *stride };
            Self { offset: from, size: to - from, rule, ..self.clone() }
        };
        let pieces = plan.pieces.iter().map(|piece| {
            let (from, to) = (piece.element as usize, (piece.element + piece.len) as usize);
            (from.max(self.offset), to.min(self.offset + self.size))
        });
        pieces.filter(|(from, to)| from < to).map(|(from, to)| part(from, to)).collect()
    }

    #[inline(always)]
    fn each<const N: usize>(&self, first: u64, element: usize, part: &mut [u8], value: impl Fn(u64) -> [u8; N]) {
        let put = |to: &mut [u8], i: u64| {
            let mut bytes = value(i);
            if self.big {
                bytes.reverse();
            }
            to.copy_from_slice(&bytes);
        };
        if element == N {
            for (k, to) in part.as_chunks_mut::<N>().0.iter_mut().enumerate() {
                put(to, first + k as u64);
            }
        } else {
            for (k, to) in part.chunks_exact_mut(element).enumerate() {
                put(&mut to[self.offset..self.offset + N], first + k as u64);
            }
        }
    }

    /// Strings and opaque bytes: letters, so that text stays text.
    fn letters(&self, first: u64, element: usize, part: &mut [u8]) {
        for (k, to) in part.chunks_exact_mut(element).enumerate() {
            let mut bits = self.bits64(first + k as u64);
            for byte in &mut to[self.offset..self.offset + self.size] {
                *byte = b'a' + (bits % 26) as u8;
                bits = mix(bits);
            }
        }
    }

    /// 32 well-mixed bits of an index; written in 32-bit arithmetic so that it vectorises.
    #[inline(always)]
    fn bits32(&self, index: u64) -> u32 {
        let mut x = (index as u32) ^ (self.salt as u32);
        x = x.wrapping_add((index >> 32) as u32).wrapping_add((self.salt >> 32) as u32);
        x ^= x >> 16;
        x = x.wrapping_mul(0x9E37_79B1);
        x ^= x >> 15;
        x = x.wrapping_mul(0x85EB_CA77);
        x ^ (x >> 16)
    }

    #[inline(always)]
    fn bits64(&self, index: u64) -> u64 {
        mix(index ^ self.salt)
    }
}

fn unit_f32(bits: u32) -> f32 {
    (bits >> 8) as f32 * (1.0 / 16_777_216.0)
}

fn unit_f64(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

/// A bijection of 64 bits that spreads every input bit over all output bits.
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x = (x ^ (x >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x ^ (x >> 32)
}

/// FNV-1a.
fn hash_name(name: &str) -> u64 {
    name.bytes().fold(0xCBF2_9CE4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01B3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ArraySpec;

    fn all(spec: &ArraySpec, fill: &Fill, name: &str, selection: &Selection, step: usize) -> Vec<u8> {
        let element = spec.dtype.size() as usize;
        let mut out = vec![0xAA; selection.len() as usize * element];
        let rules = DataRules::new(&spec.dtype, fill, name, 7).unwrap();
        let mut stream = rules.stream(&spec.shape, selection).unwrap();
        for part in out.chunks_mut(step * element) {
            assert_eq!(stream.next_into(part), part.len() / element);
        }
        out
    }

    #[test]
    fn a_part_has_the_values_of_the_whole() {
        let compound = Datatype::compound(
            16,
            vec![
                crate::Field { name: "id".into(), offset: 0, dtype: ">i8".parse().unwrap() },
                crate::Field { name: "x".into(), offset: 12, dtype: Datatype::F32 },
            ],
        )
        .unwrap();
        let rules = Fill::Fields(vec![Fill::Index, Fill::Random]);
        for (dtype, fill) in [
            (Datatype::F32, Fill::Random),
            ("<f2".parse().unwrap(), Fill::Random),
            (">f8".parse().unwrap(), Fill::Ramp),
            ("|S5".parse().unwrap(), Fill::Random),
            (Datatype::Bool, Fill::Index),
            (compound, rules),
        ] {
            let spec = ArraySpec::new(dtype, &[6, 5]);
            let element = spec.dtype.size() as usize;
            let whole = all(&spec, &fill, "a", &Selection::all(&[6, 5]).unwrap(), 7);
            let part = Selection::strided(&[1, 0], &[2, 2], &[2, 2], &[1, 1]).unwrap();
            let got = all(&spec, &fill, "a", &part, 3);
            let want: Vec<u8> =
                [5, 7, 15, 17].iter().flat_map(|i| whole[i * element..(i + 1) * element].to_vec()).collect();
            assert_eq!(got, want);
            if fill == Fill::Random && element > 1 {
                assert_ne!(whole, all(&spec, &fill, "b", &Selection::all(&[6, 5]).unwrap(), 7), "names must matter");
            }
        }
    }

    /// docs/workload-format.md has these numbers.
    #[test]
    fn values_are_those_of_version_1() {
        let spec = ArraySpec::new(Datatype::F32, &[3]);
        let whole = Selection::all(&[3]).unwrap();
        for (fill, scale, expected) in [
            (Fill::Random, 16_777_216.0, [3_881_751.0, 4_985_900.0, 8_048_872.0]),
            (Fill::Index, 1.0, [840.0, 841.0, 842.0]),
            (Fill::Ramp, 1024.0, [840.0, 841.0, 842.0]),
        ] {
            let rules = DataRules::new(&spec.dtype, &fill, "Timestep_0/x", 1).unwrap();
            let mut bytes = [0; 12];
            assert_eq!(rules.stream(&spec.shape, &whole).unwrap().next_into(&mut bytes), 3);
            let values: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b) * scale).collect();
            assert_eq!(values, expected, "{fill:?}");
        }
    }

    #[test]
    fn random_floats_are_spread_and_finite() {
        let spec = ArraySpec::new(Datatype::F32, &[10_000]);
        let bytes = all(&spec, &Fill::Random, "x", &Selection::all(&[10_000]).unwrap(), 999);
        let values: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        let mean = values.iter().sum::<f32>() / 10_000.0;
        assert!((0.45..0.55).contains(&mean), "{mean}");
        assert!(values.iter().all(|v| (0.0..1.0).contains(v)));
    }

    #[test]
    fn random_halves_stay_below_one() {
        let spec = ArraySpec::new("<f2".parse().unwrap(), &[200_000]);
        let bytes = all(&spec, &Fill::Random, "h", &Selection::all(&[200_000]).unwrap(), 999);
        let values = || bytes.as_chunks::<2>().0.iter().map(|b| f32::from(half::f16::from_le_bytes(*b)));
        assert!(values().all(|v| (0.0..1.0).contains(&v)));
        assert!(values().any(|v| v > 0.999));
    }

    #[test]
    fn text_of_any_length_is_letters() {
        for size in 1..=9 {
            for kind in ['S', 'V'] {
                let spec = ArraySpec::new(format!("|{kind}{size}").parse().unwrap(), &[50]);
                let bytes = all(&spec, &Fill::Random, "t", &Selection::all(&[50]).unwrap(), 7);
                assert!(bytes.iter().all(u8::is_ascii_lowercase), "{kind}{size}");
            }
        }
    }

    #[test]
    fn literal_values_are_taken_as_they_are() {
        let pair = [("a", Datatype::I32), ("b", Datatype::I32)];
        let pair = Datatype::packed_compound(pair).unwrap();
        let spec = ArraySpec::new(pair.clone(), &[2, 2]);
        let bytes: Vec<u8> = (1..=24).collect();
        let fill = Fill::Literal(bytes.clone());
        let whole = all(&spec, &fill, "x", &Selection::all(&[2, 2]).unwrap(), 3);
        assert_eq!((&whole[..24], &whole[24..]), (&bytes[..], &[0; 8][..]), "beyond them are zeros");
        let part = Selection::dense(&[0, 1], &[2, 1]).unwrap();
        assert_eq!(all(&spec, &fill, "x", &part, 1), [&bytes[8..16], &[0; 8]].concat());
        // Of one field only its own bytes are expected.
        let rules = DataRules::new(&pair, &fill, "x", 0).unwrap();
        let rules = rules.only(&crate::MemoryLayout::fields(4, [("b", 0)]).plan(&pair).unwrap());
        let mut found = [0xAA; 16];
        rules.stream(&[2], &Selection::all(&[2]).unwrap()).unwrap().next_into(&mut found);
        assert_eq!(found, [0, 0, 0, 0, 5, 6, 7, 8, 0, 0, 0, 0, 13, 14, 15, 16]);
        let written: Fill = serde_json::from_str(r#"{"literal":[1,2]}"#).unwrap();
        assert_eq!(written, Fill::Literal(vec![1, 2]));
    }

    #[test]
    fn rules_must_fit_the_type() {
        assert!(DataRules::new(&Datatype::F32, &Fill::Fields(vec![Fill::Index]), "x", 0).is_err());
    }
}
