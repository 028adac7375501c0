//! Work in a child process, which may die of it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, IntoRawFd};

/// Seconds that a child may take.
const MOST_SECONDS: u32 = 5;

/// What came of it.
pub enum Said {
    /// It ended well and said this.
    All(Vec<u8>),
    /// It died, or took too long.
    Nothing,
}

unsafe extern "C" {
    /// Of every sanitizer's runtime; libFuzzer writes down the input there.
    fn __sanitizer_set_death_callback(callback: Option<extern "C" fn()>);
}

/// Does `work` in a child process and returns its bytes. Nothing that happens there is a finding.
pub fn in_child(work: impl FnOnce() -> Vec<u8>) -> Said {
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    // SAFETY: the targets that use this have no thread beside the one that calls, between two inputs.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", std::io::Error::last_os_error()),
        0 => {
            drop(reader);
            quiet();
            // SAFETY: the descriptor is this pipe's, and given up here.
            let mut writer = unsafe { File::from_raw_fd(writer.into_raw_fd()) };
            let sent = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work))
                .is_ok_and(|said| writer.write_all(&said).is_ok());
            // SAFETY: nothing of the parent's, such as its functions at exit, may run here.
            unsafe { libc::_exit(i32::from(!sent)) }
        }
        child => {
            drop(writer);
            let mut said = Vec::new();
            let read = reader.read_to_end(&mut said).is_ok();
            let mut status = 0;
            // SAFETY: the child is ours and not waited for elsewhere.
            let waited = unsafe { libc::waitpid(child, &mut status, 0) } == child;
            if read && waited && status == 0 { Said::All(said) } else { Said::Nothing }
        }
    }
}

/// Makes the child die silently: no report, no file with the input, no handler of the fuzzer.
fn quiet() {
    let signals = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT, libc::SIGALRM];
    // SAFETY: plain calls; the handlers replaced belong to the fuzzer, whose process this is not.
    unsafe {
        __sanitizer_set_death_callback(None);
        signals.iter().for_each(|signal| {
            libc::signal(*signal, libc::SIG_DFL);
        });
        let nowhere = libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY);
        libc::dup2(nowhere, 2);
        libc::alarm(MOST_SECONDS);
    }
}
