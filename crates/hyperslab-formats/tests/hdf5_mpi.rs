//! HDF5 files that MPI processes share. Starts itself under `mpirun` with 1, 2 and 4 ranks; a hang is a failure.
//! With `HYPERSLAB_PYTHON` naming a Python that has h5py, a file is read with that too. `HYPERSLAB_TEST_LARGE=1` adds
//! transfers of more than 2 GiB.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "hdf5_mpi/checks.rs"]
mod checks;
#[path = "hdf5_mpi/netcdf.rs"]
mod netcdf;
#[path = "hdf5_mpi/options.rs"]
mod options;
#[path = "hdf5_mpi/plane.rs"]
mod plane;
#[path = "hdf5_mpi/stage.rs"]
mod stage;

use hyperslab_comm::MpiJob;
use hyperslab_core::{Error, ErrorKind, OpenMode};
use stage::Stage;
use std::path::Path;
use std::process::{Command, ExitCode, Output, Stdio};
use std::time::{Duration, Instant};

const INSIDE: &str = "HYPERSLAB_TEST_INSIDE_MPI";
const FOLDER: &str = "HYPERSLAB_TEST_FOLDER";

fn main() -> ExitCode {
    match std::env::var(INSIDE) {
        Ok(what) => inside(&what),
        Err(_) => outside(),
    }
    ExitCode::SUCCESS
}

/// One rank.
fn inside(what: &str) {
    let job = MpiJob::start().unwrap();
    let stage = Stage { comm: job.world(), folder: std::env::var_os(FOLDER).unwrap().into() };
    match what {
        "checks" => {
            for (name, check) in checks::ALL.iter().chain(options::ALL).chain(plane::ALL).chain(netcdf::ALL) {
                stage.comm.barrier().unwrap();
                check(&stage);
                if stage.first() && std::env::var_os("HYPERSLAB_TEST_VERBOSE").is_some() {
                    println!("{name}: passed");
                }
            }
        }
        "large" => checks::large(&stage),
        "without MPI types" => options::without_mpi_types(&stage),
        // Containers and arrays that nobody closes, some of them forever.
        "left open" => {
            let file = stage.open("hdf5", "left.h5", OpenMode::Create);
            let array = stage.create(&file, "a", &[16]);
            stage.write_rows(&*array, &[16]);
            std::mem::forget(file);
            drop(stage.open("hdf5", "left-too.h5", OpenMode::Create));
        }
        // One rank fails while the others wait for it.
        "one gives up" => {
            let file = stage.open("hdf5", "given-up.h5", OpenMode::Create);
            if stage.comm.rank() != 1 {
                file.close().unwrap();
            }
            drop(file);
            stage.comm.abort(&Error::new(ErrorKind::NoSpace, "write", "the disk is full"));
        }
        "panic" => {
            let file = stage.open("hdf5", "panic.h5", OpenMode::Create);
            assert!(stage.comm.rank() != 1, "rank 1 panics");
            file.close().unwrap();
        }
        "no space" => checks::no_space(&stage, "hdf5(driver=mpio)"),
        "no space for the plane" => checks::no_space(&stage, "hdf5(driver=mpio,plane=on)"),
        other => panic!("{other}?"),
    }
}

/// The process that starts the others.
fn outside() {
    for ranks in [1, 2, 4] {
        let folder = tempfile::tempdir().unwrap();
        for (what, variables) in
            [("checks", vec![]), ("left open", vec![]), ("without MPI types", vec![("HDF5_MPI_OPT_TYPES", "0")])]
        {
            let output = mpirun(ranks, what, folder.path(), &variables);
            print!("{}", String::from_utf8_lossy(&output.stdout));
            assert!(output.status.success(), "{what} on {ranks}: {}", String::from_utf8_lossy(&output.stderr));
        }
        assert!(folder.path().join("left.h5").metadata().unwrap().len() > 0);
        read_with_h5py(folder.path());
    }
    for (what, words) in [
        ("one gives up", "the disk is full"),
        ("panic", "rank 1 panics"),
        ("no space", "No space left"),
        ("no space for the plane", "No space left"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let output = mpirun(3, what, folder.path(), &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{what} goes unnoticed");
        assert!(said.contains(words), "{what}: {said}");
    }
    if std::env::var_os("HYPERSLAB_TEST_LARGE").is_some() {
        let folder = tempfile::tempdir().unwrap();
        let output = mpirun(2, "large", folder.path(), &[]);
        assert!(output.status.success(), "large: {}", String::from_utf8_lossy(&output.stderr));
    }
    println!("HDF5 on MPI ranks: all checks passed on 1, 2 and 4 ranks");
}

/// Runs this program again, as ranks.
fn mpirun(ranks: usize, what: &str, folder: &Path, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new("mpirun");
    command.args(["-n", &ranks.to_string()]);
    let version = Command::new("mpirun").arg("--version").output().unwrap();
    if String::from_utf8_lossy(&version.stdout).contains("Open MPI") {
        command.args(["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]);
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    }
    command.arg(std::env::current_exe().unwrap()).env(INSIDE, what).env(FOLDER, folder).envs(variables.iter().copied());
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > Duration::from_secs(180) {
            child.kill().unwrap();
            let output = child.wait_with_output().unwrap();
            let said = [output.stdout, output.stderr].concat();
            panic!("{what} on {ranks} ranks still runs after three minutes: {}", String::from_utf8_lossy(&said));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

/// What the checks left is read by another library, in one process.
fn read_with_h5py(folder: &Path) {
    const SCRIPT: &str = "
import h5py, numpy, sys
with h5py.File(sys.argv[1], 'r') as f:
    for name in ['contiguous', 'g/chunked', 'g/deflated']:
        a = f[name]
        assert (a[...].ravel() == numpy.arange(a.size)).all(), name
    assert f['g/deflated'].compression == 'gzip'
    assert f['g'].attrs['ranks'] >= 1 and f.attrs['title'] == b'shared'
";
    const NETCDF: &str = "
import netCDF4, numpy, sys
with netCDF4.Dataset(sys.argv[1], 'a') as f:
    assert f.dimensions['time'].isunlimited() and len(f.dimensions['time']) == 12
    for name in ['g/fixed', 'air', 'time']:
        a = f[name]
        assert (a[...].ravel() == numpy.arange(a.size)).all(), name
    assert f['air'].dimensions == ('time', 'x') and f['air'].units == 'K'
    f['air'][12] = 5
    assert len(f.dimensions['time']) == 13
";
    let Some(python) = std::env::var_os("HYPERSLAB_PYTHON").filter(|path| !path.is_empty()) else {
        println!("h5py: skipped, HYPERSLAB_PYTHON is not set");
        return;
    };
    for (name, script) in [("for-h5py.h5", SCRIPT), ("by-plane.h5", SCRIPT), ("netcdf.nc", NETCDF)] {
        let output = Command::new(&python).args(["-c", script]).arg(folder.join(name)).output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
