//! Runs the test program again as the ranks of an MPI job.

use std::fs::File;
use std::io::{Error, Result};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Tells a rank what it was started for.
const TASK: &str = "HYPERSLAB_TEST_UNDER_MPI";
/// The program that starts jobs, where it is not `mpirun`.
const LAUNCHER: &str = "HYPERSLAB_MPIRUN";
/// What a job has to end by itself after it was asked to.
const GRACE: Duration = Duration::from_secs(5);

/// How a job ended.
#[derive(Debug)]
pub struct EndedJob {
    /// The launcher's exit status.
    pub status: ExitStatus,
    /// Whether it had to be stopped because it took too long.
    pub hung: bool,
    /// What the ranks wrote to standard output.
    pub stdout: String,
    /// What they and the launcher wrote to standard error.
    pub stderr: String,
}

impl EndedJob {
    /// Whether every rank ended well and in time.
    pub fn success(&self) -> bool {
        self.status.success() && !self.hung
    }
}

/// The task this process was started for as a rank; `None` in the program that people start.
pub fn task() -> Option<String> {
    std::env::var(TASK).ok()
}

/// Starts this program again as `ranks` ranks that find `task` in [`task`]. A job that runs longer than `limit` is
/// stopped, all of it. Runs as any user and with more ranks than processors, under OpenMPI and MPICH alike.
pub fn run(ranks: usize, task: &str, limit: Duration) -> Result<EndedJob> {
    let files = tempfile::tempdir()?;
    let (out, err) = (files.path().join("out"), files.path().join("err"));
    let launcher = std::env::var(LAUNCHER).unwrap_or_else(|_| "mpirun".into());
    let mut command = Command::new(&launcher);
    command.args(["-n", &ranks.to_string()]).arg(std::env::current_exe()?).env(TASK, task);
    // Read by OpenMPI only.
    for name in [
        "OMPI_ALLOW_RUN_AS_ROOT",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
        "OMPI_MCA_rmaps_base_oversubscribe",
        "OMPI_MCA_mpi_yield_when_idle",
    ] {
        command.env(name, "1");
    }
    // Files, because nobody may be left who would empty a pipe, and a group, so that all can be stopped.
    command.stdin(Stdio::null()).stdout(File::create(&out)?).stderr(File::create(&err)?).process_group(0);
    let mut child =
        command.spawn().map_err(|cause| Error::new(cause.kind(), format!("cannot start {launcher}: {cause}")))?;
    let (status, hung) = match wait(&mut child, limit)? {
        Some(status) => (status, false),
        None => (stop(&mut child)?, true),
    };
    let text = |path| std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok(EndedJob { status, hung, stdout: text(&out)?, stderr: text(&err)? })
}

/// Waits at most `limit`.
fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let begin = Instant::now();
    loop {
        match child.try_wait()? {
            None if begin.elapsed() < limit => std::thread::sleep(Duration::from_millis(10)),
            ended => return Ok(ended),
        }
    }
}

/// Ends the launcher and everything it started.
fn stop(child: &mut Child) -> Result<ExitStatus> {
    let group = -i32::try_from(child.id()).map_err(Error::other)?;
    // Launchers put ranks in groups of their own and end them when asked politely.
    for signal in [libc::SIGTERM, libc::SIGKILL] {
        // SAFETY: `kill` only sends a signal; the group is that of a child not waited for yet.
        unsafe { libc::kill(group, signal) };
        if let Some(status) = wait(child, GRACE)? {
            return Ok(status);
        }
    }
    Ok(ExitStatus::from_raw(libc::SIGKILL))
}
