//! What a stack string may say about a Zarr store.

use super::codecs::{Compressor, CompressorKind};
use super::layout::Version;
use hyperslab_core::{Error, OptionSpec, Result, Shapes, StackElement};

/// The options, for `hyperslab formats` and for checking.
pub const OPTIONS: &[OptionSpec] = &[
    OptionSpec { name: "version", value: "2|3", default: "3", about: "Zarr version of new stores" },
    OptionSpec {
        name: "chunk",
        value: "64x64",
        default: "the array's own, else about 1 MiB",
        about: "chunk extents of new arrays; 1024;64x64 has one for each number of dimensions",
    },
    OptionSpec {
        name: "shard",
        value: "256x256",
        default: "none",
        about: "extents of shards, the files that hold several chunks; a multiple of the chunk (version 3)",
    },
    OptionSpec {
        name: "codec",
        value: "none|gzip|zstd|blosc",
        default: "the array's filters",
        about: "compression of new arrays, instead of the filters they ask for",
    },
    OptionSpec {
        name: "level",
        value: "N",
        default: "gzip 5, zstd 3, blosc 5",
        about: "level of codec: gzip and blosc 0 to 9, zstd 1 to 22",
    },
    OptionSpec {
        name: "blosc_codec",
        value: "lz4|lz4hc|blosclz|zstd|zlib",
        default: "lz4",
        about: "what blosc compresses with",
    },
    OptionSpec {
        name: "shuffle",
        value: "yes|no",
        default: "yes for blosc, else no",
        about: "group bytes of equal significance before codec",
    },
    OptionSpec {
        name: "crc32c",
        value: "yes|no",
        default: "no",
        about: "a checksum after each chunk, checked when read (version 3)",
    },
    OptionSpec {
        name: "separator",
        value: "slash|dot",
        default: "version 3 slash, version 2 dot",
        about: "between the numbers in chunk file names",
    },
    OptionSpec {
        name: "write_empty",
        value: "yes|no",
        default: "no",
        about: "write chunks that hold only the fill value instead of leaving them out",
    },
    OptionSpec {
        name: "threads",
        value: "N",
        default: "1",
        about: "threads for the chunks of one call; 1 keeps ranks comparable",
    },
];

/// The options of one format in a stack.
#[derive(Debug, Clone)]
pub struct Options {
    /// Asked for; `None` takes 3 for new stores and the store's own otherwise.
    pub version: Option<Version>,
    /// Chunk extents of new arrays.
    pub chunk: Option<Shapes>,
    /// Shard extents of new arrays.
    pub shard: Option<Shapes>,
    /// Compression of new arrays; `None` follows the array's filters.
    pub codec: Option<CodecChoice>,
    /// Checksum after each chunk.
    pub crc32c: bool,
    /// Between the numbers of chunk keys.
    pub separator: Option<char>,
    /// Keep chunks that hold only the fill value.
    pub write_empty: bool,
    /// Threads for the chunks of one call.
    pub threads: usize,
}

/// Compression asked for by option.
#[derive(Debug, Clone, Copy)]
pub struct CodecChoice {
    /// The compressor, or none.
    pub compressor: Option<Compressor>,
    /// Byte shuffle as a step of its own (blosc brings its own).
    pub shuffle: bool,
}

const MOST_THREADS: u64 = 1024;

impl Options {
    /// Reads and checks the options of a stack element.
    pub fn parse(element: &StackElement) -> Result<Self> {
        let version = element.choice("version", &[("2", Version::V2), ("3", Version::V3)])?;
        let options = Self {
            version,
            chunk: element.shapes("chunk")?,
            shard: element.shapes("shard")?,
            codec: codec(element)?,
            crc32c: element.flag("crc32c")?.unwrap_or(false),
            separator: element.choice("separator", &[("slash", '/'), ("dot", '.')])?,
            write_empty: element.flag("write_empty")?.unwrap_or(false),
            threads: element.number("threads", 1..=MOST_THREADS)?.unwrap_or(1) as usize,
        };
        if version == Some(Version::V2) && options.shard.is_some() {
            return Err(refuse("shard needs version 3", "leave out version=2 or shard"));
        }
        if version == Some(Version::V2) && options.crc32c {
            return Err(refuse("crc32c needs version 3", "leave out version=2 or crc32c"));
        }
        if let (Some(chunk), Some(shard)) = (&options.chunk, &options.shard) {
            for shard in shard.all() {
                // Where there are several chunks, arrays without one of their number of dimensions choose for themselves.
                chunk.single().or(chunk.of_rank(shard.len())).map_or(Ok(()), |chunk| check_shard(chunk, shard))?;
            }
        }
        Ok(options)
    }
}

/// Refuses a shard that is no multiple of the chunk.
pub fn check_shard(chunk: &[u64], shard: &[u64]) -> Result<()> {
    let fits = chunk.len() == shard.len() && chunk.iter().zip(shard).all(|(c, s)| *c > 0 && s % c == 0);
    if fits {
        return Ok(());
    }
    let (chunk, shard) = (hyperslab_core::dims::display(chunk), hyperslab_core::dims::display(shard));
    Err(refuse(
        &format!("shard {shard} is not a multiple of chunk {chunk}"),
        "choose shard extents that are whole multiples of the chunk's, in the same number of dimensions",
    ))
}

fn refuse(message: &str, hint: &str) -> Error {
    Error::invalid("choose zarr options", message).hint(hint).backend("zarr")
}

fn codec(element: &StackElement) -> Result<Option<CodecChoice>> {
    let kinds = [
        ("none", None),
        ("gzip", Some(CompressorKind::Gzip)),
        ("zstd", Some(CompressorKind::Zstd)),
        ("blosc", Some(CompressorKind::Blosc)),
    ];
    let inside = [("lz4", "lz4"), ("lz4hc", "lz4hc"), ("blosclz", "blosclz"), ("zstd", "zstd"), ("zlib", "zlib")];
    let shuffle = element.flag("shuffle")?;
    let blosc_codec = element.choice("blosc_codec", &inside)?;
    let kind = element.choice("codec", &kinds)?;
    if blosc_codec.is_some() && kind != Some(Some(CompressorKind::Blosc)) {
        return Err(refuse("blosc_codec says nothing without codec=blosc", "add codec=blosc"));
    }
    let Some(Some(kind)) = kind else {
        for (given, name) in [(element.get("level").is_some(), "level"), (shuffle == Some(true), "shuffle")] {
            if given {
                return Err(refuse(&format!("{name} says nothing without a codec"), "add codec=gzip, zstd or blosc"));
            }
        }
        return Ok(kind.map(|_| CodecChoice { compressor: None, shuffle: false }));
    };
    let (compressor, shuffle) = match kind {
        CompressorKind::Gzip => {
            let level = element.number("level", 0..=9)?.unwrap_or(5);
            (Compressor::Gzip { level: level as u8 }, shuffle.unwrap_or(false))
        }
        CompressorKind::Zstd => {
            let level = element.number("level", 1..=22)?.unwrap_or(3);
            (Compressor::Zstd { level: level as i32, checksum: false }, shuffle.unwrap_or(false))
        }
        CompressorKind::Blosc => {
            let level = element.number("level", 0..=9)?.unwrap_or(5) as u8;
            let inside = blosc_codec.unwrap_or("lz4");
            (Compressor::blosc(inside, level, shuffle.unwrap_or(true)), false)
        }
    };
    Ok(Some(CodecChoice { compressor: Some(compressor), shuffle }))
}
