//! Which call fails, and which wait.

use hyperslab_core::{Error, Result};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The device fails (EIO).
    Io,
    /// The device is full (ENOSPC).
    NoSpace,
    /// Half of the selection is written, then the device is full. Nothing is written where memory has only some fields
    /// of an element or the selection cannot be halved. Calls that are no write fail with [`Fault::NoSpace`].
    ShortWrite,
    /// The call panics.
    Panic,
}

impl Fault {
    /// Every kind, for tests that try them all.
    pub const ALL: [Self; 4] = [Self::Io, Self::NoSpace, Self::ShortWrite, Self::Panic];

    /// The error that the caller gets.
    pub(super) fn error(self, operation: &'static str) -> Error {
        let code = if self == Self::Io { libc::EIO } else { libc::ENOSPC };
        Error::io(operation, std::io::Error::from_raw_os_error(code)).backend("faulty")
    }
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    calls: u64,
    fault: Option<(u64, Fault)>,
    holding: bool,
    held: usize,
}

impl Plan {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn fail_at(&self, call: u64, fault: Fault) {
        let mut state = self.state();
        state.calls = 0;
        state.fault = Some((call, fault));
    }

    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    pub fn hold(&self) {
        self.state().holding = true;
    }

    pub fn release(&self) {
        self.state().holding = false;
        self.changed.notify_all();
    }

    pub fn held(&self) -> usize {
        self.state().held
    }

    pub fn wait_until_held(&self, calls: usize) {
        let state = self.state();
        drop(self.changed.wait_while(state, |state| state.held < calls).unwrap_or_else(PoisonError::into_inner));
    }

    /// Counts a call, holds it if calls are held, and returns how it is to fail, if it is. Panics if that is how.
    pub fn next(&self) -> Option<Fault> {
        let mut state = self.state();
        state.calls += 1;
        let number = state.calls;
        let fault = state.fault.filter(|(call, _)| *call == number).map(|(_, fault)| fault);
        if state.holding {
            state.held += 1;
            self.changed.notify_all();
            state = self.changed.wait_while(state, |state| state.holding).unwrap_or_else(PoisonError::into_inner);
            state.held -= 1;
        }
        drop(state);
        assert!(fault != Some(Fault::Panic), "call {number} was to panic");
        fault
    }

    /// The same for a call that can only fail as a whole.
    pub fn call(&self, operation: &'static str) -> Result<()> {
        self.next().map_or(Ok(()), |fault| Err(fault.error(operation)))
    }
}
