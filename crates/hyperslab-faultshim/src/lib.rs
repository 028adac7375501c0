//! Makes the n-th I/O call of a program fail, or all calls slow. Preloaded with `LD_PRELOAD` and told what to do by `HYPERSLAB_FAULT`:
//!
//! ```text
//! HYPERSLAB_FAULT=path=/tmp/x,call=write,nth=5,fault=ENOSPC,mark=/tmp/met
//! ```
//!
//! * `path`: only calls on files whose path begins so.
//! * `call`: `open`, `read`, `write`, `sync`, `truncate`, `rename`, `close`, `unlink`, `mkdir`, `link`, `attribute`,
//!   `change` (those that change a file: all but open, read, sync and close) or `any`. Each stands
//!   for its whole family: `write` is also `pwrite`, `writev`, `pwritev` and their 64-bit names.
//! * `nth`: which matching call fails, from 1; `from`: that call and all after it.
//! * `fault`: `EIO`, `ENOSPC`, `EACCES`, `EINTR`, a number, `short` for half the bytes of a read or write, or `KILL`
//!   for SIGKILL before the call.
//! * `mark`: a file that is created when a fault was injected, and holds the name of the call.
//!
//! `HYPERSLAB_SLOW=path=/tmp/x,rate=209715200,latency=2000` makes files whose path begins so behave like those of one slow
//! device: `rate` bytes a second, served one request after the other, and `latency` microseconds for each, which overlap. Reads,
//! writes and syncs of the process take at least as long as that; nothing else is slowed.
//!
//! `HYPERSLAB_RESTARTED` names a file that is opened where the process wants `/proc/sys/kernel/random/boot_id`: as if the machine had
//! been started anew.
//!
//! `HYPERSLAB_RECORD` records every change of files for the crash laboratory: see `record.rs`. Only this one takes a lock.
//!
//! Without the variables, or with ones that make no sense, every call goes through as it is. Nothing here allocates or
//! takes a lock otherwise, so that it is safe inside allocators, after `fork` and in signal handlers. Programs that enter the
//! kernel without the C library are not seen.
#![cfg(target_os = "linux")]

mod calls;
mod config;
mod fault;
mod names;
mod path;
mod real;
mod record;
mod restart;
mod slow;
