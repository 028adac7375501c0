//! How the bytes of a chunk are transformed: shuffle, one compressor, one checksum, in that order.
//!
//! That is what zarr-python writes by default and what our filters can ask for; metadata with any other chain is
//! refused by name. The transformations themselves are those of the `zarrs` crate.

use super::layout::Version;
use hyperslab_core::{Datatype, Error, ErrorKind, Filter, Result};
use serde_json::{Value, json};

/// What makes chunks smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compressor {
    /// gzip, level 0 to 9.
    Gzip {
        /// Level.
        level: u8,
    },
    /// Zstandard.
    Zstd {
        /// Level; 0 is the library's default.
        level: i32,
        /// Checksum inside the frame.
        checksum: bool,
    },
    /// Blosc with its own shuffle.
    Blosc {
        /// The compressor inside.
        inside: &'static str,
        /// Level 0 to 9.
        level: u8,
        /// Kind of shuffle.
        shuffle: BloscShuffle,
        /// Bytes of an element for the shuffle; 0 takes the datatype's.
        typesize: u8,
        /// Bytes of a block; 0 lets blosc choose.
        blocksize: u32,
    },
}

/// How blosc rearranges bytes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BloscShuffle {
    /// Not at all.
    None,
    /// By bytes.
    Byte,
    /// By bits.
    Bit,
}

const BLOSC_INSIDE: [&str; 6] = ["lz4", "lz4hc", "blosclz", "zstd", "zlib", "snappy"];

impl Compressor {
    /// Blosc as options and filters ask for it.
    pub fn blosc(inside: &'static str, level: u8, shuffle: bool) -> Self {
        let shuffle = if shuffle { BloscShuffle::Byte } else { BloscShuffle::None };
        Self::Blosc { inside, level, shuffle, typesize: 0, blocksize: 0 }
    }
}

/// The whole chain after the elements are laid out as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pipeline {
    /// Element size of the byte shuffle before the compressor.
    pub shuffle: Option<u32>,
    /// The compressor.
    pub compressor: Option<Compressor>,
    /// Checksum after everything.
    pub crc32c: bool,
}

fn refuse(message: impl Into<String>) -> Error {
    Error::unsupported("create array", message)
}

fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, "read zarr metadata", message)
}

impl Pipeline {
    /// Whether chunks are stored as they are.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// The chain that an array's filters ask for.
    pub fn from_filters(filters: &[Filter], dtype: &Datatype) -> Result<Self> {
        let mut out = Self::default();
        for filter in filters {
            let compressor = match *filter {
                Filter::Shuffle if out.shuffle.is_none() && out.compressor.is_none() => {
                    out.shuffle = Some(dtype.size() as u32);
                    continue;
                }
                Filter::Shuffle => return Err(refuse("the shuffle filter must come once, before the compressor")),
                Filter::Fletcher32 => {
                    return Err(refuse("the fletcher32 filter is not available").hint("use crc32c=yes instead"));
                }
                Filter::Deflate(level @ 0..=9) => Compressor::Gzip { level },
                Filter::Zstd(level @ 1..=22) => Compressor::Zstd { level: level.into(), checksum: false },
                Filter::Blosc(level @ 0..=9) => Compressor::blosc("lz4", level, true),
                Filter::Blosc2(_) | Filter::Lz4 | Filter::Lzf | Filter::Bitshuffle => {
                    return Err(refuse("this filter is HDF5's").hint("use deflate, zstd or blosc"));
                }
                other => return Err(Error::invalid("create array", format!("the level of {other:?} is out of range"))),
            };
            if out.compressor.replace(compressor).is_some() {
                return Err(refuse("two compressors in one array").hint("keep one of deflate, zstd and blosc"));
            }
        }
        if matches!(out.compressor, Some(Compressor::Blosc { .. })) {
            out.shuffle = None; // blosc shuffles itself
        }
        Ok(out)
    }

    /// The filters that ask for this chain, as nearly as filters can.
    pub fn filters(&self) -> Vec<Filter> {
        let compressor = self.compressor.map(|compressor| match compressor {
            Compressor::Gzip { level } => Filter::Deflate(level),
            Compressor::Zstd { level: 0, .. } => Filter::Zstd(3),
            Compressor::Zstd { level, .. } => Filter::Zstd(level.clamp(1, 22) as u8),
            Compressor::Blosc { level, .. } => Filter::Blosc(level),
        });
        self.shuffle.map(|_| Filter::Shuffle).into_iter().chain(compressor).collect()
    }

    /// The codecs of version 3 after `bytes`.
    pub fn to_v3(self, element: u64) -> Vec<Value> {
        let shuffle = self.shuffle.map(|size| codec("numcodecs.shuffle", json!({"elementsize": size})));
        let compressor = self.compressor.map(|compressor| match compressor {
            Compressor::Gzip { level } => codec("gzip", json!({"level": level})),
            Compressor::Zstd { level, checksum } => codec("zstd", json!({"level": level, "checksum": checksum})),
            Compressor::Blosc { inside, level, shuffle, typesize, blocksize } => {
                let typesize = blosc_typesize(typesize, element);
                let shuffle = match shuffle {
                    BloscShuffle::None => "noshuffle",
                    BloscShuffle::Byte => "shuffle",
                    BloscShuffle::Bit => "bitshuffle",
                };
                codec(
                    "blosc",
                    json!({"cname": inside, "clevel": level, "shuffle": shuffle, "typesize": typesize, "blocksize": blocksize}),
                )
            }
        });
        let checksum = self.crc32c.then(|| json!({"name": "crc32c"}));
        shuffle.into_iter().chain(compressor).chain(checksum).collect()
    }

    /// The `filters` and `compressor` of version 2.
    pub fn to_v2(self) -> (Value, Value) {
        let filters = self.shuffle.map_or(Value::Null, |size| json!([{"id": "shuffle", "elementsize": size}]));
        let compressor = match self.compressor {
            None => Value::Null,
            Some(Compressor::Gzip { level }) => json!({"id": "gzip", "level": level}),
            Some(Compressor::Zstd { level, checksum }) => json!({"id": "zstd", "level": level, "checksum": checksum}),
            Some(Compressor::Blosc { inside, level, shuffle, blocksize, .. }) => {
                let shuffle = match shuffle {
                    BloscShuffle::None => 0,
                    BloscShuffle::Byte => 1,
                    BloscShuffle::Bit => 2,
                };
                json!({"id": "blosc", "cname": inside, "clevel": level, "shuffle": shuffle, "blocksize": blocksize})
            }
        };
        (filters, compressor)
    }

    /// The chain that version 3 codecs after `bytes` describe.
    pub fn from_v3(codecs: &[Value]) -> Result<Self> {
        codecs.iter().try_fold(Self::default(), |chain, entry| {
            let (name, configuration) = name_and_configuration(entry)?;
            chain.then(name, configuration, Version::V3)
        })
    }

    /// The chain that version 2's `filters` and `compressor` describe.
    pub fn from_v2(filters: &Value, compressor: &Value) -> Result<Self> {
        let filters = match filters {
            Value::Null => &[][..],
            Value::Array(list) => list,
            other => return Err(corrupt(format!("filters are {other}"))),
        };
        filters.iter().chain((!compressor.is_null()).then_some(compressor)).try_fold(Self::default(), |chain, entry| {
            let id = entry.get("id").and_then(Value::as_str).ok_or_else(|| corrupt(format!("a codec is {entry}")))?;
            chain.then(id, entry, Version::V2)
        })
    }

    fn then(mut self, name: &str, configuration: &Value, version: Version) -> Result<Self> {
        let unordered = || {
            Error::unsupported("read zarr metadata", format!("codec {name} in this place of the chain"))
                .hint("shuffle, one compressor and crc32c, in this order, can be read")
        };
        let bad = || corrupt(format!("codec {name} with {configuration}"));
        let number = |key: &str| configuration.get(key).and_then(Value::as_i64);
        let compressor = match name {
            "numcodecs.shuffle" | "shuffle" => {
                if self != Self::default() {
                    return Err(unordered());
                }
                let size = number("elementsize").unwrap_or(4);
                self.shuffle = Some(u32::try_from(size).ok().filter(|n| *n > 0).ok_or_else(bad)?);
                return Ok(self);
            }
            "crc32c" if version == Version::V3 => {
                if self.crc32c {
                    return Err(unordered());
                }
                self.crc32c = true;
                return Ok(self);
            }
            "gzip" => {
                let level = number("level").unwrap_or(5);
                Compressor::Gzip { level: u8::try_from(level).ok().filter(|n| *n <= 9).ok_or_else(bad)? }
            }
            "zstd" => {
                let level = i32::try_from(number("level").unwrap_or(0)).map_err(|_| bad())?;
                if !(-131_072..=22).contains(&level) {
                    return Err(bad());
                }
                let checksum = configuration.get("checksum").and_then(Value::as_bool).unwrap_or(false);
                Compressor::Zstd { level, checksum }
            }
            "blosc" => blosc(configuration, version).ok_or_else(bad)?,
            _ => {
                return Err(Error::unsupported("read zarr metadata", format!("codec {name:?} is not known here"))
                    .hint("gzip, zstd, blosc, shuffle and crc32c can be read"));
            }
        };
        if self.crc32c || self.compressor.replace(compressor).is_some() {
            return Err(unordered());
        }
        Ok(self)
    }
}

fn codec(name: &str, configuration: Value) -> Value {
    json!({"name": name, "configuration": configuration})
}

/// Blosc counts elements of up to 255 bytes; larger ones it takes as bytes.
fn blosc_typesize(typesize: u8, element: u64) -> u8 {
    match typesize {
        0 => u8::try_from(element).unwrap_or(1).max(1),
        given => given,
    }
}

fn blosc(configuration: &Value, version: Version) -> Option<Compressor> {
    let number = |key: &str| configuration.get(key).and_then(Value::as_i64);
    let name = configuration.get("cname").and_then(Value::as_str)?;
    let inside = *BLOSC_INSIDE.iter().find(|known| **known == name)?;
    let level = u8::try_from(number("clevel")?).ok().filter(|n| *n <= 9)?;
    let blocksize = u32::try_from(number("blocksize").unwrap_or(0)).ok().filter(|n| *n < 1 << 31)?;
    // Version 2's -1 (choose by element size) only matters to the writer; the stored bytes say what was done.
    let shuffle = match (version, configuration.get("shuffle")) {
        (Version::V3, Some(Value::String(word))) => match word.as_str() {
            "noshuffle" => BloscShuffle::None,
            "shuffle" => BloscShuffle::Byte,
            "bitshuffle" => BloscShuffle::Bit,
            _ => return None,
        },
        (Version::V2, Some(Value::Number(number))) => match number.as_i64()? {
            0 => BloscShuffle::None,
            1 | -1 => BloscShuffle::Byte,
            2 => BloscShuffle::Bit,
            _ => return None,
        },
        (_, None) => BloscShuffle::Byte,
        _ => return None,
    };
    let typesize = u8::try_from(number("typesize").unwrap_or(0)).ok()?;
    Some(Compressor::Blosc { inside, level, shuffle, typesize, blocksize })
}

/// The name and configuration of a version 3 extension point.
pub fn name_and_configuration(entry: &Value) -> Result<(&str, &Value)> {
    match entry {
        Value::String(name) => Ok((name, &Value::Null)),
        Value::Object(object) => match object.get("name").and_then(Value::as_str) {
            Some(name) => Ok((name, object.get("configuration").unwrap_or(&Value::Null))),
            None => Err(corrupt(format!("{entry} has no name"))),
        },
        _ => Err(corrupt(format!("{entry} has no name"))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn chains_round_trip_through_both_versions() {
        for filters in [
            vec![],
            vec![Filter::Deflate(4)],
            vec![Filter::Shuffle, Filter::Deflate(9)],
            vec![Filter::Shuffle, Filter::Zstd(3)],
            vec![Filter::Blosc(5)],
            vec![Filter::Shuffle],
        ] {
            let chain = Pipeline::from_filters(&filters, &Datatype::F64).unwrap();
            assert_eq!(chain.filters(), filters);
            let (v2_filters, compressor) = chain.to_v2();
            assert_eq!(Pipeline::from_v2(&v2_filters, &compressor).unwrap().filters(), filters);
            let with_sum = Pipeline { crc32c: true, ..chain };
            let back = Pipeline::from_v3(&with_sum.to_v3(8)).unwrap();
            assert!(back.crc32c);
            assert_eq!(back.filters(), filters);
        }
    }

    #[test]
    fn other_chains_are_refused() {
        for filters in [
            vec![Filter::Fletcher32],
            vec![Filter::Deflate(10)],
            vec![Filter::Zstd(0)],
            vec![Filter::Deflate(1), Filter::Zstd(1)],
            vec![Filter::Deflate(1), Filter::Shuffle],
        ] {
            assert!(Pipeline::from_filters(&filters, &Datatype::F64).is_err(), "{filters:?}");
        }
        for codecs in [
            json!([{"name": "lzma"}]),
            json!([{"name": "gzip", "configuration": {"level": 12}}]),
            json!([{"name": "crc32c"}, {"name": "gzip", "configuration": {"level": 1}}]),
            json!([{"name": "blosc", "configuration": {"cname": "x", "clevel": 1}}]),
            json!([4]),
        ] {
            assert!(Pipeline::from_v3(codecs.as_array().unwrap()).is_err(), "{codecs}");
        }
        assert!(Pipeline::from_v2(&json!([{"id": "delta"}]), &Value::Null).is_err());
        assert!(Pipeline::from_v2(&json!(3), &Value::Null).is_err());
    }
}
