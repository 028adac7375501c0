//! One emulated device for all files below a path, read once from the environment.

use crate::config::{Text, number, variable};
use crate::path::Buffer;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static PATH: Text = Text::new();
static RATE: AtomicU64 = AtomicU64::new(0);
/// Nanoseconds of each request besides its bytes.
static LATENCY: AtomicU64 = AtomicU64::new(0);
static ACTIVE: AtomicBool = AtomicBool::new(false);
/// When the device has transferred everything that it was asked for.
static FREE: AtomicU64 = AtomicU64::new(0);

/// Reads `HYPERSLAB_SLOW`.
pub(crate) fn start() {
    if variable(c"HYPERSLAB_SLOW").is_some_and(parse) {
        ACTIVE.store(true, Ordering::Release);
    }
}

fn parse(text: &[u8]) -> bool {
    let mut sensible = true;
    for part in text.split(|byte| *byte == b',') {
        let Some(equals) = part.iter().position(|byte| *byte == b'=') else { return false };
        let value = &part[equals + 1..];
        sensible &= match &part[..equals] {
            b"path" => PATH.set(value),
            b"rate" => number(value).is_some_and(|rate| RATE.swap(rate, Ordering::Relaxed) == 0),
            b"latency" => number(value)
                .and_then(|microseconds| microseconds.checked_mul(1000))
                .is_some_and(|latency| LATENCY.swap(latency, Ordering::Relaxed) == 0),
            _ => false,
        };
    }
    sensible && RATE.load(Ordering::Relaxed) > 0
}

/// When a request of so many bytes will be done; 0 if the file is not on the device.
pub(crate) fn request(file: c_int, bytes: usize) -> u64 {
    if !ACTIVE.load(Ordering::Acquire) {
        return 0;
    }
    let mut path = Buffer::new();
    path.set_descriptor(file);
    if !PATH.begins(path.bytes()) {
        return 0;
    }
    let takes = (bytes as u128 * 1_000_000_000 / u128::from(RATE.load(Ordering::Relaxed))) as u64;
    let now = now();
    let mut free = FREE.load(Ordering::Relaxed);
    loop {
        let end = free.max(now).saturating_add(takes);
        match FREE.compare_exchange_weak(free, end, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return end.saturating_add(LATENCY.load(Ordering::Relaxed)),
            Err(other) => free = other,
        }
    }
}

/// Waits until then. The error number stays.
pub(crate) fn wait(until: u64) {
    while until > 0 && now() < until {
        let time = libc::timespec { tv_sec: (until / 1_000_000_000) as _, tv_nsec: (until % 1_000_000_000) as _ };
        // SAFETY: the time is a variable of this function; no rest is asked for. The call returns its error and does not set it.
        unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const time, std::ptr::null_mut())
        };
    }
}

fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a variable of this function; the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The bytes of a transfer of several parts.
///
/// # Safety
/// `parts` is null or points to `count` parts.
pub(crate) unsafe fn lengths(parts: *const libc::iovec, count: c_int) -> usize {
    if parts.is_null() || !ACTIVE.load(Ordering::Acquire) {
        return 0;
    }
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: by contract of this function.
    (0..count).map(|i| unsafe { (*parts.add(i)).iov_len }).sum()
}
