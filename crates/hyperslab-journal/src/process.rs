//! The identity of a writing process, unique across reboots and machines.

use super::corrupt;
use super::wire::{Decoder, Encoder};
use hyperslab_core::Result;
use std::fs;

const LONGEST_HOST: usize = 4096;

/// A process on some machine at some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Start time in kernel ticks; 0 if unknown.
    pub started: u64,
    /// Boot id of the machine; zeros if unknown.
    pub boot: [u8; 16],
    /// Effective user id.
    pub uid: u32,
    /// Host name.
    pub host: String,
}

impl Process {
    /// The calling process.
    pub fn this() -> Result<Self> {
        let pid = std::process::id();
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let uid = rustix::process::geteuid().as_raw();
        Ok(Self { pid, started: started("self").unwrap_or(0), boot: boot().unwrap_or_default(), uid, host })
    }

    /// Whether the host name is this machine's.
    pub fn was_here(&self) -> bool {
        self.host == rustix::system::uname().nodename().to_string_lossy()
    }

    /// Whether the boot id is known and that of the running system.
    pub fn same_boot(&self) -> bool {
        self.was_here() && boot().is_some_and(|now| now == self.boot)
    }

    /// Whether this machine is known to have been started anew since.
    pub fn before_restart(&self) -> bool {
        self.was_here() && self.boot != [0; 16] && boot().is_some_and(|now| now != self.boot)
    }

    /// Whether it is running on this machine; `true` if uncertain.
    pub fn runs(&self) -> bool {
        let now = boot();
        if now.is_some_and(|now| self.boot != [0; 16] && now != self.boot) {
            return false;
        }
        match started(&self.pid.to_string()) {
            Some(then) => self.started == 0 || then == self.started,
            None => {
                fs::exists("/proc/self/stat").is_ok_and(|proc| !proc)
                    || fs::exists(format!("/proc/{}", self.pid)).unwrap_or(true)
            }
        }
    }

    pub(super) fn encode(&self, out: &mut Encoder) {
        out.u32(self.pid);
        out.u32(self.uid);
        out.u64(self.started);
        out.raw(&self.boot);
        out.counted(self.host.as_bytes());
    }

    pub(super) fn decode(from: &mut Decoder<'_>) -> Result<Self> {
        let (pid, uid) = (from.u32()?, from.u32()?);
        let started = from.u64()?;
        let boot = from.bytes16()?;
        let host = from.text(LONGEST_HOST)?.to_owned();
        if pid == 0 {
            return Err(corrupt("its process has no number"));
        }
        Ok(Self { pid, started, boot, uid, host })
    }
}

/// Start time of a process: field 22 of its `stat`, counted after the name, which may contain anything.
fn started(process: &str) -> Option<u64> {
    let stat = fs::read(format!("/proc/{process}/stat")).ok()?;
    let behind_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let fields = std::str::from_utf8(&stat[behind_name..]).ok()?;
    fields.split_ascii_whitespace().nth(19)?.parse().ok()
}

fn boot() -> Option<[u8; 16]> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    super::Id::parse(&digits).map(|id| id.0)
}
