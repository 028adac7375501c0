//! The program on MPI ranks: those it starts itself, and those it is started on.
#![allow(clippy::unwrap_used)]

#[path = "common/invented.rs"]
mod invented;
#[path = "common/program.rs"]
mod program;

use invented::invented;
use program::{hyperslab, results, run, said, with};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const STACKS: &str = if cfg!(feature = "parallel-hdf5") {
    "posix,mpiio,zarr(chunk=1024),hdf5,twophase/posix,twophase(aggregators=1,buffer=8KiB)/hdf5,twophase/zarr(chunk=1024)"
} else {
    "posix,mpiio,twophase/posix"
};

const LAYERS: &str = if cfg!(feature = "parallel-hdf5") {
    "async/posix,async(threads=2,memory=64KiB)/hdf5,async/twophase/hdf5,cache/zarr(chunk=1024),cache(dir=staged)/hdf5,\
     cache(dir=staged,stage=64KiB)/posix,cache(dir=staged)/twophase/posix,trace/async/hdf5,log(dir=staged)/hdf5,\
     log(dir=staged,limit=64KiB,buffer=8KiB,drain=1)/posix,log(dir=staged,per=node)/twophase/hdf5,log(dir=staged)/zarr(chunk=1024),\
     loglayout/posix,loglayout/hdf5,loglayout(room=100KiB)/zarr(chunk=1024),loglayout(room=100KiB)/twophase/hdf5,\
     async/loglayout/posix,loglayout/log(dir=staged)/hdf5"
} else {
    "async/posix,cache(dir=staged)/posix,trace/async/mpiio,log(dir=staged)/posix,loglayout/posix,loglayout(room=100KiB)/mpiio"
};

/// Ranks that wait keep a core busy: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A workflow of a write and a read, with more keys in both.
fn workflow(ranks: usize, more: &str) -> String {
    let benchmark = |kind: &str| {
        format!(
            r#"{{"benchmark": "{kind}", "file": "p.h5", "configuration": {{"MEM_PATTERN": "CONTIG", "FILE_PATTERN": "CONTIG", "NUM_DIMS": "1", "DIM_1": "8 K", "TIMESTEPS": "2"{more}}}}}"#
        )
    };
    format!(
        r#"{{"mpi": {{"command": "mpirun", "ranks": "{ranks}"}}, "vol": {{}}, "file-system": {{}}, "directory": "data",
            "benchmarks": [{}, {}]}}"#,
        benchmark("write"),
        benchmark("read")
    )
}

fn all_good(path: &Path, ranks: usize) {
    let results = results(path);
    let cases = results["cases"].as_array().unwrap();
    assert!(!cases.is_empty());
    for case in cases {
        assert_eq!((&case["status"], &case["verified"]), (&"ok".into(), &"yes".into()), "{case}");
        assert_eq!((&case["launcher"], &case["ranks"]), (&"mpi".into(), &ranks.into()), "{case}");
        let measured = case["repetitions"][0]["ranks"].as_array().unwrap();
        let numbers: Vec<_> = measured.iter().map(|rank| rank["rank"].as_u64().unwrap() as usize).collect();
        assert_eq!(numbers, (0..ranks).collect::<Vec<_>>());
        let bytes = |name: &str| measured.iter().map(|rank| rank[name].as_u64().unwrap()).sum::<u64>();
        assert_eq!(bytes("bytes_written") + bytes("bytes_read"), case["bytes"].as_u64().unwrap());
        assert_eq!(case["bytes"].as_u64().unwrap(), 8 * 1024 * 32 * 2 * ranks as u64);
    }
}

/// Processes are not threads: libhdf5 makes threads take turns, and a profile may know neither.
#[test]
fn processes_are_predicted_and_measured_as_such() {
    let _alone = alone();
    let directory = with(&workflow(2, ""));
    fs::write(directory.path().join("profile.json"), invented()).unwrap();
    let predict = |words: &[&str]| {
        let usual = ["predict", "w.json", "--profile", "profile.json", "--foreign", "--stack", "posix"];
        let (code, out, err) = run(directory.path(), &[&usual[..], words].concat());
        assert_eq!(code, 0, "{out}\n{err}");
        out
    };
    let unknown = "knows nothing of ranks that are processes";
    assert!(!predict(&["--launcher", "threads"]).contains(unknown));
    let out = predict(&["--launcher", "mpi", "--measure"]);
    assert!(out.contains(unknown) && out.contains("inside the interval"), "{out}");
    let measured = results(&directory.path().join("hyperslab-predict/measured/results.json"));
    assert_eq!(measured["cases"][0]["launcher"], "mpi");
}

/// `train` starts processes too, and says how much they get done at a time.
#[test]
#[ignore = "takes more than a minute: cargo xtask test --mpi --long"]
fn processes_are_trained_with() {
    let _alone = alone();
    let directory = with(&workflow(2, ""));
    let words = ["train", "--dir", "here", "--profile", "p.json", "--within", "1"];
    let (code, out, err) = run(directory.path(), &words);
    assert_eq!(code, 0, "{out}\n{err}");
    let profile = results(&directory.path().join("p.json"));
    let ranks = profile["ranks"].as_array().unwrap();
    assert!(ranks.iter().any(|known| known["kind"] == "processes"), "{out}\n{err}\n{ranks:?}");
}

#[test]
fn started_ranks_share_verified_files() {
    let _alone = alone();
    for ranks in [1, 2, 4] {
        for collective in ["NO", "YES"] {
            let directory = with(&workflow(ranks, &format!(r#", "COLLECTIVE_DATA": "{collective}""#)));
            let arguments = ["bench", "w.json", "--stack", STACKS, "--verify", "--out", "r", "--samples"];
            let (code, out, err) = run(directory.path(), &arguments);
            assert_eq!(code, 0, "{ranks} ranks\n{out}\n{err}");
            assert!(out.contains(&format!("{ranks} ranks (mpi)")), "{out}");
            all_good(&directory.path().join("r/results.json"), ranks);
            let launch = results(&directory.path().join("r/results.json"))["launch"].clone();
            assert_eq!(launch, format!("mpirun -np {ranks}"));
            assert!(directory.path().join(format!("r/samples-case-1-repetition-1-rank-{}.csv", ranks - 1)).exists());
            let left: Vec<_> =
                fs::read_dir(directory.path().join("r")).unwrap().flatten().map(|e| e.file_name()).collect();
            assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".job")), "{left:?}");
        }
    }
}

#[test]
fn layers_stand_on_processes_too() {
    let _alone = alone();
    for (ranks, collective) in [(1, "NO"), (3, "NO"), (2, "YES")] {
        let directory = with(&workflow(ranks, &format!(r#", "COLLECTIVE_DATA": "{collective}""#)));
        fs::create_dir(directory.path().join("staged")).unwrap();
        let arguments = ["bench", "w.json", "--stack", LAYERS, "--verify", "--out", "r"];
        let (code, out, err) = run(directory.path(), &arguments);
        assert_eq!(code, 0, "{ranks} ranks\n{out}\n{err}");
        all_good(&directory.path().join("r/results.json"), ranks);
        assert_eq!(fs::read_dir(directory.path().join("staged")).unwrap().count(), 0);
    }
}

#[test]
fn the_program_runs_on_the_ranks_it_is_started_on() {
    let _alone = alone();
    let directory = with(&workflow(2, ""));
    #[allow(deprecated)]
    let program = assert_cmd::cargo::cargo_bin("hyperslab");
    let mpirun = |ranks: usize, more: &[&str]| {
        let mut command = Command::new("mpirun");
        program::for_any_user(&mut command).current_dir(directory.path());
        command.args(["-n", &ranks.to_string()]).arg(&program).args(["bench", "w.json", "--stack", STACKS, "--verify"]);
        said(command.args(more).output().unwrap())
    };
    let (code, out, err) = mpirun(3, &["--out", "r"]);
    assert_eq!(code, 0, "{out}\n{err}");
    assert!(err.contains("the MPI job that this program runs in has 3"), "{err}");
    assert_eq!(out.matches("Results:").count(), 1, "{out}");
    all_good(&directory.path().join("r/results.json"), 3);
    // What is wrong is said once, and the others do not wait.
    let (code, out, err) = mpirun(2, &["--ranks", "5"]);
    assert_ne!(code, 0, "{out}");
    assert_eq!(err.matches("the MPI job that this program runs in has 2 ranks").count(), 1, "{err}");
    let (code, _, err) = mpirun(2, &["--launcher", "threads"]);
    assert!(code != 0 && err.contains("inside an MPI job"), "{err}");
}

#[test]
fn a_rank_with_an_error_fails_its_case_and_no_other() {
    let _alone = alone();
    let directory = with(&workflow(2, ""));
    let run = |more: &[&str]| run(directory.path(), &[&["bench", "w.json"], more].concat());
    let (code, out, err) = run(&["--format", "posix,posix", "--out", "r"]);
    assert_eq!(code, 0, "{out}\n{err}");
    // The last element of an array is another: only the second rank meets it.
    let arrays = walk(&directory.path().join("data/p.posix"));
    let file = arrays.iter().max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let mut bytes = fs::read(file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(file, bytes).unwrap();
    let (code, out, err) = run(&["--format", "posix,posix", "--filter", "read", "--verify", "--out", "s"]);
    assert_eq!(code, 1, "{out}\n{err}");
    assert!(out.contains("rank 1") && out.contains("posix"), "{out}");
    let cases = results(&directory.path().join("s/results.json"))["cases"].clone();
    assert_eq!((&cases[0]["status"], &cases[1]["status"]), (&"failed".into(), &"ok".into()), "{cases}");
    let (code, out, err) = run(&["--format", "null", "--out", "n"]);
    assert_eq!(code, 3, "what null was given is gone with its processes\n{out}\n{err}");
}

/// All files below `folder`.
fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn a_rank_that_dies_fails_its_case_and_leaves_no_partial_file() {
    let _alone = alone();
    let directory = with(&workflow(2, r#", "EMULATED_COMPUTE_TIME_PER_TIMESTEP": "60 s""#));
    // It dies when the file is there, which then is to go.
    let until = "while ! test -e data/p.posix && kill -0 $!; do sleep 0.05; done";
    let script = format!(
        "case $OMPI_COMM_WORLD_RANK$PMI_RANK in 1) \"$@\" & {until}; kill -9 $!; wait $!;; *) exec \"$@\";; esac"
    );
    fs::write(directory.path().join("kill.sh"), script).unwrap();
    let begin = Instant::now();
    let launcher = "mpirun -n {ranks} sh kill.sh {command}";
    let arguments = ["bench", "w.json", "--format", "posix", "--mpi-command", launcher, "--out", "r"];
    let (code, out, err) = run(directory.path(), &arguments);
    assert_eq!(code, 1, "{out}\n{err}");
    assert!(begin.elapsed() < Duration::from_secs(50), "the others waited for it");
    assert!(out.contains("the job ended with"), "{out}");
    assert!(!directory.path().join("data/p.posix").exists());
    assert!(directory.path().join("r/ranks/case-1/run-1/launcher.stderr").exists(), "what the launcher said is kept");
}

#[test]
fn a_stopped_run_ends_its_ranks() {
    let _alone = alone();
    let directory = with(&workflow(2, r#", "EMULATED_COMPUTE_TIME_PER_TIMESTEP": "600 s""#));
    let child = hyperslab(directory.path())
        .args(["bench", "w.json", "--format", "posix", "--out", "r"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut child = child.unwrap();
    let begin = Instant::now();
    while !directory.path().join("data/p.posix").exists() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it never began");
        std::thread::sleep(Duration::from_millis(50));
    }
    let term = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(term.success());
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    assert!(begin.elapsed() < Duration::from_secs(60));
    assert!(!directory.path().join("data/p.posix").exists());
    let results = results(&directory.path().join("r/results.json"));
    assert_eq!(results["cases"][0]["status"], "interrupted");
}

#[test]
fn processes_record_one_trace_and_replay_it() {
    let _alone = alone();
    let directory = with(&workflow(2, r#", "COLLECTIVE_DATA": "YES""#));
    let stack = "trace(file=t.jsonl)/posix";
    let (code, out, err) = run(directory.path(), &["bench", "w.json", "--stack", stack, "--verify", "--out", "a"]);
    assert_eq!(code, 0, "{out}\n{err}");
    let left: Vec<_> = fs::read_dir(directory.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".part")), "{left:?}");
    // The write is the first trace, what reads it back the second, and the read the third.
    for (number, trace) in ["t.jsonl", "t.3.jsonl"].into_iter().enumerate() {
        let (data, results) = (format!("replay-{number}"), format!("r{number}"));
        let arguments = ["bench", "--workload", trace, "--launcher", "mpi", "--stack", "posix,mpiio,twophase/posix"];
        let more = ["--verify", "--compute", "none", "--directory", &data, "--out", &results];
        let (code, out, err) = run(directory.path(), &[&arguments[..], &more].concat());
        assert_eq!(code, 0, "{trace}\n{out}\n{err}");
        all_good(&directory.path().join(results).join("results.json"), 2);
    }
}

#[test]
fn what_ranks_print_is_kept_apart() {
    let _alone = alone();
    let directory = with(&workflow(2, ""));
    fs::write(directory.path().join("talk.sh"), "echo talking >&2; exec \"$@\"").unwrap();
    let launcher = "mpirun -n {ranks} sh talk.sh {command}";
    let arguments = ["bench", "w.json", "--format", "posix", "--mpi-command", launcher, "--out", "r"];
    let (code, out, err) = run(directory.path(), &arguments);
    assert_eq!(code, 0, "{out}\n{err}");
    let kept = fs::read_to_string(directory.path().join("r/ranks/case-1/run-1/launcher.stderr")).unwrap();
    assert_eq!(kept.matches("talking").count(), 2, "{kept}");
    assert!(!out.contains("talking") && !err.contains("talking"), "{out}\n{err}");
    assert!(out.contains("printed something"), "{out}");
}

#[test]
fn bad_launchers_are_refused() {
    let _alone = alone();
    let directory = with(&workflow(2, ""));
    let (code, _, err) = run(directory.path(), &["bench", "w.json", "--mpi-command", "strangerun"]);
    assert!(code == 2 && err.contains("{ranks}"), "{err}");
    assert!(!directory.path().join("data").exists());
    let arguments = ["bench", "w.json", "--format", "posix", "--mpi-command", "no-such-program -n {ranks}"];
    let (code, out, err) = run(directory.path(), &arguments);
    assert!(code == 1 && out.contains("--launcher threads"), "{out}\n{err}");
    let (code, out, _) = run(directory.path(), &["bench", "w.json", "--dry-run", "--format", "posix"]);
    assert!(code == 0 && out.contains("with mpirun -np 2"), "{out}");
}

#[test]
fn the_doctor_lets_two_ranks_meet() {
    let _alone = alone();
    let directory = with("");
    let (code, out, err) = run(directory.path(), &["doctor"]);
    assert_eq!(code, 0, "{out}\n{err}");
    assert!(out.contains("2 ranks met"), "{out}");
}
