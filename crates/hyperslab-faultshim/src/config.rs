//! What to break, read once from the environment.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Families of calls.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Family {
    Open = 1,
    Read,
    Write,
    Sync,
    Truncate,
    Rename,
    Close,
    Unlink,
    Mkdir,
    Link,
    Attribute,
}

/// All families of calls that change a file without opening it.
const CHANGE: usize = usize::MAX;

const NAMES: [(&[u8], usize); 13] = [
    (b"any", 0),
    (b"change", CHANGE),
    (b"open", Family::Open as usize),
    (b"read", Family::Read as usize),
    (b"write", Family::Write as usize),
    (b"sync", Family::Sync as usize),
    (b"truncate", Family::Truncate as usize),
    (b"rename", Family::Rename as usize),
    (b"close", Family::Close as usize),
    (b"unlink", Family::Unlink as usize),
    (b"mkdir", Family::Mkdir as usize),
    (b"link", Family::Link as usize),
    (b"attribute", Family::Attribute as usize),
];

/// The fault that is half the bytes instead of an error.
pub(crate) const SHORT: i32 = -1;

/// The fault that ends the process by SIGKILL before the call.
pub(crate) const KILL: i32 = -2;

/// Longest path kept.
pub(crate) const LONGEST: usize = 4096;

/// Text that is written once, before something else says that it may be read.
pub(crate) struct Text {
    bytes: [AtomicU8; LONGEST],
    len: AtomicUsize,
}

impl Text {
    pub(crate) const fn new() -> Self {
        Self { bytes: [const { AtomicU8::new(0) }; LONGEST], len: AtomicUsize::new(0) }
    }

    pub(crate) fn set(&self, value: &[u8]) -> bool {
        // One byte stays 0, so that the text is also a C string.
        if value.is_empty() || value.len() >= LONGEST {
            return false;
        }
        for (cell, byte) in self.bytes.iter().zip(value) {
            cell.store(*byte, Relaxed);
        }
        self.len.store(value.len(), Relaxed);
        true
    }

    /// Copies it to `out`, whose rest stays as it is, and returns its length.
    pub(crate) fn copy_to(&self, out: &mut [u8; LONGEST]) -> usize {
        let len = self.len.load(Relaxed);
        for (byte, cell) in out.iter_mut().zip(&self.bytes[..len]) {
            *byte = cell.load(Relaxed);
        }
        len
    }

    /// Whether `path` begins with it; nothing begins with a text that was never set.
    pub(crate) fn begins(&self, path: &[u8]) -> bool {
        let len = self.len.load(Relaxed);
        len > 0
            && path.len() >= len
            && self.bytes[..len].iter().zip(path).all(|(cell, byte)| cell.load(Relaxed) == *byte)
    }
}

static PATH: Text = Text::new();
static MARK: Text = Text::new();
static FAMILY: AtomicUsize = AtomicUsize::new(0);
static NTH: AtomicU64 = AtomicU64::new(0);
static ONWARD: AtomicBool = AtomicBool::new(false);
static FAULT: AtomicI32 = AtomicI32::new(0);
static ACTIVE: AtomicBool = AtomicBool::new(false);

/// Whether anything is to fail at all.
pub(crate) fn active() -> bool {
    ACTIVE.load(std::sync::atomic::Ordering::Acquire)
}

/// Whether calls of this family are counted.
pub(crate) fn concerns(family: Family) -> bool {
    let wanted = FAMILY.load(Relaxed);
    match wanted {
        0 => true,
        CHANGE => !matches!(family, Family::Open | Family::Read | Family::Sync | Family::Close),
        wanted => wanted == family as usize,
    }
}

/// Whether `path` begins with the configured prefix.
pub(crate) fn matches(path: &[u8]) -> bool {
    PATH.begins(path)
}

/// The fault for the matching call of this number, counted from 1; 0 for none.
pub(crate) fn fault_at(number: u64) -> i32 {
    let nth = NTH.load(Relaxed);
    match number == nth || (ONWARD.load(Relaxed) && number > nth) {
        true => FAULT.load(Relaxed),
        false => 0,
    }
}

/// The file to create when a fault is injected, as a C string in `out`; `false` if none is wanted.
pub(crate) fn mark(out: &mut [u8; LONGEST]) -> bool {
    MARK.copy_to(out) > 0
}

extern "C" fn start() {
    if variable(c"HYPERSLAB_FAULT").is_some_and(parse) {
        ACTIVE.store(true, std::sync::atomic::Ordering::Release);
    }
    crate::slow::start();
    crate::restart::start();
    crate::record::start();
}

/// A variable of the environment. Only for constructors, during which the environment is not changed.
pub(crate) fn variable(name: &CStr) -> Option<&'static [u8]> {
    // SAFETY: the name is a C string, and nobody changes the environment meanwhile.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    // SAFETY: getenv returns a C string, which is read before the environment can be changed.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) }.to_bytes())
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

fn parse(text: &[u8]) -> bool {
    let mut complete = true;
    for part in text.split(|byte| *byte == b',') {
        let Some(equals) = part.iter().position(|byte| *byte == b'=') else { return false };
        let (name, value) = (&part[..equals], &part[equals + 1..]);
        complete &= match name {
            b"path" => PATH.set(value),
            b"mark" => MARK.set(value),
            b"call" => match NAMES.iter().find(|(known, _)| *known == value) {
                Some((_, family)) => {
                    FAMILY.store(*family, Relaxed);
                    true
                }
                None => false,
            },
            b"nth" | b"from" => match number(value) {
                Some(nth) if nth > 0 => {
                    NTH.store(nth, Relaxed);
                    ONWARD.store(name == b"from", Relaxed);
                    true
                }
                _ => false,
            },
            b"fault" => match fault(value) {
                Some(fault) => {
                    FAULT.store(fault, Relaxed);
                    true
                }
                None => false,
            },
            _ => false,
        };
    }
    complete && PATH.len.load(Relaxed) > 0 && NTH.load(Relaxed) > 0 && FAULT.load(Relaxed) != 0
}

pub(crate) fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |sum, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

fn fault(text: &[u8]) -> Option<i32> {
    match text {
        b"EIO" => Some(libc::EIO),
        b"ENOSPC" => Some(libc::ENOSPC),
        b"EACCES" => Some(libc::EACCES),
        b"EINTR" => Some(libc::EINTR),
        b"short" => Some(SHORT),
        b"KILL" => Some(KILL),
        other => number(other).and_then(|n| i32::try_from(n).ok()).filter(|n| *n > 0),
    }
}
