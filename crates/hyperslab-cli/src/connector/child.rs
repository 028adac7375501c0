//! A command that runs in this program's place: the same terminal, the same process group, the same end.

use std::ffi::{c_int, c_void};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

/// Signals that others send to this program and mean the command.
const PASSED_ON: [c_int; 6] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2];

static CHILD: AtomicI32 = AtomicI32::new(0);
static EARLY: AtomicI32 = AtomicI32::new(0);

/// How a command ended.
#[derive(Debug, Clone, Copy)]
pub struct Ended(ExitStatus);

impl Ended {
    /// The exit code that shells give it: its own, or 128 and the number of the signal.
    pub fn code(self) -> u8 {
        use std::os::unix::process::ExitStatusExt;
        let code = self.0.code().unwrap_or_else(|| 128 + self.0.signal().unwrap_or(0));
        code.clamp(0, 255) as u8
    }

    /// The signal that ended it, also if it was a shell's or launcher's child that it ended.
    pub fn signal(self) -> Option<i32> {
        let code = i32::from(self.code());
        (code > 128 && code < 128 + 65).then_some(code - 128)
    }
}

/// Runs `command` to its end. Ctrl-C and signals sent to this program reach it, and this program lives on to report.
pub fn run(command: &mut Command) -> std::io::Result<Ended> {
    let before = PASSED_ON.map(|signal| (signal, catch(signal)));
    let ended = start(command);
    for (signal, action) in before {
        if let Some(action) = action {
            // SAFETY: the action is what the same call returned before.
            unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
        }
    }
    ended
}

fn start(command: &mut Command) -> std::io::Result<Ended> {
    let mut child = command.spawn()?;
    CHILD.store(child.id() as i32, SeqCst);
    let early = EARLY.swap(0, SeqCst);
    if early != 0 {
        // SAFETY: the process is a child that nobody has waited for.
        unsafe { libc::kill(child.id() as i32, early) };
    }
    // Its number may belong to another process once it is waited for, so signals stop being passed on before that.
    let seen = loop {
        // SAFETY: all zeros are a valid siginfo_t.
        let mut information: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is to a siginfo_t of this function.
        let result =
            unsafe { libc::waitid(libc::P_PID, child.id(), &raw mut information, libc::WEXITED | libc::WNOWAIT) };
        let error = std::io::Error::last_os_error();
        if result == 0 {
            break Ok(());
        } else if error.kind() != std::io::ErrorKind::Interrupted {
            break Err(error);
        }
    };
    CHILD.store(0, SeqCst);
    seen?;
    child.wait().map(Ended)
}

/// Passes a signal on from now on, unless it is ignored; returns what was done with it before.
fn catch(signal: c_int) -> Option<libc::sigaction> {
    // SAFETY: all zeros are a valid sigaction: the default action, no flags.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = pass_on as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: both pointers are to actions of this function; the handler makes only calls that are allowed in one.
    unsafe {
        if libc::sigaction(signal, std::ptr::null(), &raw mut before) != 0 || before.sa_sigaction == libc::SIG_IGN {
            return None;
        }
        (libc::sigaction(signal, &raw const action, std::ptr::null_mut()) == 0).then_some(before)
    }
}

extern "C" fn pass_on(signal: c_int, information: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel hands over a valid siginfo_t, as SA_SIGINFO asks for.
    let from_terminal = unsafe { (*information).si_code } == libc::SI_KERNEL;
    if from_terminal {
        // The terminal has told the whole group, the command included.
        return;
    }
    match CHILD.load(SeqCst) {
        0 => EARLY.store(signal, SeqCst),
        // SAFETY: kill may be called in a handler; the process is a child that nobody has waited for.
        child => unsafe {
            libc::kill(child, signal);
        },
    }
}
