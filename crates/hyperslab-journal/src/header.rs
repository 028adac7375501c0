//! The head of a journal: job, rank, container and process.

use super::process::Process;
use super::wire::{Decoder, Encoder};
use super::{HEADER_VERSION, VERSION, corrupt};
use hyperslab_core::{Error, Result};
use hyperslab_rollback::FileIdentity;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const MAGIC: &[u8; 8] = b"HSLBJRNL";
/// Maximum length of a head.
pub(super) const LONGEST: usize = 64 << 10;
const LONGEST_TEXT: usize = 16 << 10;

/// A random 128-bit identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(pub [u8; 16]);

impl Id {
    /// A new identifier from the kernel's random number generator.
    pub fn random() -> Result<Self> {
        let mut bytes = [0u8; 16];
        let mut filled = 0;
        while filled < bytes.len() {
            match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
                Ok(more) => filled += more,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(super::failed("create journal", "a random name", error.into())),
            }
        }
        Ok(Self(bytes))
    }

    /// Parses the output of `Display`.
    pub fn parse(text: &str) -> Option<Self> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let pairs = text.as_bytes().chunks_exact(2);
        let bytes: Option<Vec<u8>> = pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect();
        (text.len() == 32).then(|| bytes?.try_into().ok().map(Self)).flatten()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The contents of a journal's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Identifier of the journal.
    pub journal: Id,
    /// Identifier of the job: shared by the journals of all ranks of one opening of a container.
    pub job: Id,
    /// The writing rank.
    pub rank: u32,
    /// Number of ranks of the job.
    pub ranks: u32,
    /// The stack below the layer, as text.
    pub stack: String,
    /// Absolute path of the container.
    pub container: PathBuf,
    /// The writing process.
    pub process: Process,
    /// Time of creation.
    pub created: SystemTime,
    /// Identity of the container's file or directory; unknown if there was none, and in version 1 heads.
    pub identity: Option<FileIdentity>,
}

/// The identity of a file or directory, stamped with one if possible. `None` if it does not exist or cannot be opened.
pub fn identify(path: &Path) -> Option<FileIdentity> {
    let about = std::fs::metadata(path).ok()?;
    if !about.is_file() && !about.is_dir() {
        return None;
    }
    std::fs::File::open(path).and_then(|file| FileIdentity::stamp(&file)).ok()
}

impl Header {
    /// A head for a new journal of this process.
    pub fn new(job: Id, rank: usize, ranks: usize, stack: &str, container: PathBuf) -> Result<Self> {
        let number = |n: usize| u32::try_from(n).map_err(|_| Error::invalid("create journal", format!("rank {n}")));
        if !container.is_absolute() {
            return Err(
                Error::invalid("create journal", "the path of the container is relative").target(container.display())
            );
        }
        let header = Self {
            journal: Id::random()?,
            job,
            rank: number(rank)?,
            ranks: number(ranks)?,
            stack: stack.into(),
            identity: identify(&container),
            container,
            process: Process::this()?,
            created: SystemTime::now(),
        };
        let long = [header.stack.len(), header.container.as_os_str().len(), header.process.host.len()];
        match long.iter().all(|len| *len <= LONGEST_TEXT) {
            true => Ok(header),
            false => Err(Error::invalid("create journal", "the stack or the path of the container is too long")),
        }
    }

    /// Encodes the head file, without slots.
    pub(super) fn encode(&self) -> Vec<u8> {
        let since = self.created.duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut out = Encoder::default();
        out.raw(MAGIC);
        out.u32(if self.identity.is_some() { HEADER_VERSION } else { VERSION });
        out.u32(0); // length, below
        out.raw(&self.journal.0);
        out.raw(&self.job.0);
        out.u32(self.rank);
        out.u32(self.ranks);
        out.u64(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
        self.process.encode(&mut out);
        out.counted(self.stack.as_bytes());
        out.counted(self.container.as_os_str().as_bytes());
        if let Some(identity) = &self.identity {
            out.raw(&identity.encode());
        }
        let len = out.0.len() as u32 + 4;
        out.0[12..16].copy_from_slice(&len.to_le_bytes());
        let crc = crc32c::crc32c(&out.0);
        out.u32(crc);
        out.0
    }

    /// Decodes a head file from untrusted bytes.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut from = Decoder(bytes);
        if from.raw(MAGIC.len())? != MAGIC {
            return Err(corrupt("it is no journal"));
        }
        let version = from.u32()?;
        if !(VERSION..=HEADER_VERSION).contains(&version) {
            let message = format!("it has format version {version}, and this reads up to {HEADER_VERSION}");
            return Err(Error::unsupported("read journal", message)
                .backend("journal")
                .hint("use the version of Hyperslab that wrote it"));
        }
        let len = from.u32()? as usize;
        // Slots may follow a head of version 2.
        let fits = if version == VERSION { len == bytes.len() } else { len <= bytes.len() };
        if !fits || !(20..=LONGEST).contains(&len) {
            return Err(corrupt(format!("its head says {len} bytes, and there are {}", bytes.len())));
        }
        let (content, crc) = bytes[..len].split_at(len - 4);
        if crc32c::crc32c(content).to_le_bytes() != crc {
            return Err(corrupt("the checksum of its head is wrong"));
        }
        let mut from = Decoder(&content[16..]);
        let journal = Id(from.bytes16()?);
        let job = Id(from.bytes16()?);
        let (rank, ranks) = (from.u32()?, from.u32()?);
        let created = UNIX_EPOCH.checked_add(Duration::from_nanos(from.u64()?));
        let process = Process::decode(&mut from)?;
        let stack = from.text(LONGEST_TEXT)?.to_owned();
        let container = PathBuf::from(OsString::from_vec(from.counted(LONGEST_TEXT)?.to_vec()));
        let identity = match version {
            VERSION => None,
            _ => {
                let bytes = from.raw(FileIdentity::ENCODED)?;
                let decoded = bytes.try_into().ok().and_then(FileIdentity::decode);
                Some(decoded.ok_or_else(|| corrupt("the identity of its container makes no sense"))?)
            }
        };
        from.end()?;
        if !container.is_absolute() || rank >= ranks {
            return Err(corrupt("its head contradicts itself"));
        }
        let created = created.ok_or_else(|| corrupt("its time is no time"))?;
        Ok(Self { journal, job, rank, ranks, stack, container, process, created, identity })
    }
}
