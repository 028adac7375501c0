//! `hyperslab run` as a user meets it.
#![allow(clippy::unwrap_used)]

#[path = "common/plugin.rs"]
mod plugin;
#[path = "common/program.rs"]
#[allow(dead_code)]
mod program;

use program::{hyperslab, run, said};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const WRITE: &str = "
import h5py, numpy, sys
with h5py.File(sys.argv[1], 'w') as f:
    f.create_dataset('x', data=numpy.arange(1 << 18, dtype='f4').reshape(512, 512), chunks=(64, 64), compression='gzip', shuffle=True)
    f['text'] = 'words'
";
const CHECK: &str = "
import h5py, numpy, sys
with h5py.File(sys.argv[1]) as f:
    assert (f['x'][...] == numpy.arange(1 << 18, dtype='f4').reshape(512, 512)).all()
    assert f['text'][()] == b'words'
";

/// Reads what was written in a process of its own, without the connector.
fn check(python: &Path, path: &Path) {
    let (code, out, err) = said(Command::new(python).args(["-c", CHECK]).arg(path).output().unwrap());
    assert_eq!(code, 0, "{out}{err}");
}

#[test]
fn wrong_words_are_refused_before_anything_runs() {
    plugin::build();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("data.h5"), "not statistics").unwrap();
    for (words, wanted) in [
        (&["--mode", "asink"][..], "did you mean \"async\"?"),
        (&["--mode", "async+log"], "leave async out"),
        (&["--memory", "much"], "\"much\" is not a size"),
        (&["--memory", "1k"], "too little"),
        (&["--log-dir", "."], "--mode log"),
        (&["--mode", "log", "--log-dir", "nowhere"], "mkdir -p nowhere"),
        (&["--stats=data.h5"], "something else than statistics"),
        (&["--threads", "0"], "1..=16"),
        (&["--mood", "log"], "--mode"),
    ] {
        let (code, _, err) = run(folder.path(), &[&["run"], words, &["--", "touch", "ran"]].concat());
        assert!(code == 2 && err.contains(wanted), "{words:?}: {code} {err}");
        assert!(!folder.path().join("ran").exists(), "{words:?}");
    }
    assert_eq!(fs::read_to_string(folder.path().join("data.h5")).unwrap(), "not statistics");
    for (name, value, wanted) in [
        ("HYPERSLAB_MODE", "asink", "did you mean \"async\"?"),
        ("HYPERSLAB_MEMORY", "much", "HYPERSLAB_MEMORY: memory=much should be a size"),
        ("HYPERSLAB_THREADS", "0", "from 1 to"),
        ("HYPERSLAB_LAG", "yes", "HYPERSLAB_LAG: lag=yes"),
        ("HYPERSLAB_LOG_LIMIT", "1", "less than"),
        ("HYPERSLAB_DURABILITY", "always", "none, on-flush, every-write"),
        ("HYPERSLAB_ON_LOG_FAILURE", "panic", "error or through"),
        ("HYPERSLAB_MPI", "yes", "flush or strict"),
        ("HYPERSLAB_OVERRIDES", "nowhere.json", "nowhere.json"),
    ] {
        let mut command = hyperslab(folder.path());
        let (code, _, err) = said(command.env(name, value).args(["run", "--", "touch", "ran"]).output().unwrap());
        assert!(code == 2 && err.contains(wanted), "{name}={value}: {code} {err}");
        assert!(!folder.path().join("ran").exists(), "{name}");
    }
    // Options win over variables, and what is only misspelt is told.
    let mut command = hyperslab(folder.path());
    command.env("HYPERSLAB_MEMORY", "much").env("HYPERSLAB_THREAD", "1");
    let (code, _, err) = said(command.args(["run", "--memory", "1MiB", "--", "true"]).output().unwrap());
    assert!(
        code == 0 && err.contains("HYPERSLAB_THREAD is no setting") && err.contains("HYPERSLAB_THREADS is"),
        "{err}"
    );
    let mut other = hyperslab(folder.path());
    other.env("HDF5_VOL_CONNECTOR", "async under_vol=0").args(["run", "touch", "ran"]);
    let (code, _, err) = said(other.output().unwrap());
    assert!(code == 2 && err.contains("another connector") && !folder.path().join("ran").exists(), "{err}");
}

#[test]
fn the_command_ends_as_it_would_alone() {
    plugin::build();
    let folder = tempfile::tempdir().unwrap();
    for (words, wanted) in [
        (&["sh", "-c", "exit 7"][..], 7),
        (&["sh", "-c", "kill -9 $$"], 137),
        (&["surely-no-such-program"], 127),
        (&["/dev/null"], 126),
        (&["true"], 0),
    ] {
        let (code, _, err) = run(folder.path(), &[&["run", "--"], words].concat());
        assert_eq!(code, wanted, "{words:?}: {err}");
    }
}

#[test]
fn input_output_and_arguments_pass_through() {
    plugin::build();
    let folder = tempfile::tempdir().unwrap();
    let mut command = hyperslab(folder.path());
    command.args(["run", "--quiet", "sh", "-c", "cat; printf '%s|' \"$@\"", "name", "-x", "--mode", "a b"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"from stdin\n").unwrap();
    let (code, out, err) = said(child.wait_with_output().unwrap());
    assert_eq!((code, out.as_str(), err.as_str()), (0, "from stdin\n-x|--mode|a b|", ""));
}

#[test]
fn the_environment_is_added_to() {
    plugin::build();
    let folder = tempfile::tempdir().unwrap();
    let mut command = hyperslab(folder.path());
    command.env("HDF5_PLUGIN_PATH", "/their/plugins").env("HYPERSLAB_THREADS", "3").env_remove("HYPERSLAB_MODE");
    command.args(["run", "--mode", "async,codec", "--memory", "64MiB", "env"]);
    let (code, out, err) = said(command.output().unwrap());
    assert_eq!(code, 0, "{err}");
    for line in [
        "HDF5_VOL_CONNECTOR=hyperslab",
        "HYPERSLAB_MODE=async+codec",
        "HYPERSLAB_MEMORY=67108864",
        "HYPERSLAB_THREADS=3",
    ] {
        assert!(out.lines().any(|found| found == line), "{line}: {out}");
    }
    let value = |name: &str| out.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let (ours, theirs) = value("HDF5_PLUGIN_PATH=").split_once(':').unwrap();
    assert_eq!((fs::read_dir(ours).unwrap().count(), theirs), (1, "/their/plugins"));
    assert!(!Path::new(value("HYPERSLAB_STATS=")).exists(), "statistics are left behind");
}

#[test]
fn signals_reach_the_command() {
    plugin::build();
    let folder = tempfile::tempdir().unwrap();
    let mut command = hyperslab(folder.path());
    command.args(["run", "sh", "-c", "trap 'echo told; exit 5' TERM; echo ready; while :; do sleep 0.05; done"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    assert_eq!(line, "ready\n");
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    std::io::Read::read_to_string(&mut out, &mut line).unwrap();
    assert_eq!(line, "ready\ntold\n");
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

#[test]
fn a_command_without_hdf5_is_told_what_to_try() {
    plugin::build();
    let folder = tempfile::tempdir().unwrap();
    let (code, _, err) = run(folder.path(), &["run", "true"]);
    assert!(code == 0 && err.contains("no process of the command used HDF5"), "{err}");
    assert!(err.contains("older than 1.14") && err.contains("hyperslab doctor"), "{err}");
}

#[test]
fn the_summary_says_what_was_accelerated() {
    let Some(python) = plugin::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (path, python_text) = (folder.path().join("out.h5"), python.to_str().unwrap());
    let (code, out, err) = run(folder.path(), &["run", "--mode", "codec", "--", python_text, "-c", WRITE, "out.h5"]);
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    assert!(err.contains(", mode codec, 1 file, "), "{err}");
    assert!(err.contains("written") && err.contains("around libhdf5"), "{err}");
    assert!(err.contains("left to libhdf5") && err.contains("1 write,"), "{err}");
    check(&python, &path);
}

#[test]
fn every_mode_leaves_an_ordinary_file() {
    let Some(python) = plugin::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    for mode in ["off", "codec", "async", "codec+async", "log", "cache", "trace"] {
        let file = format!("{mode}.h5");
        let (code, _, err) = run(folder.path(), &["run", "--mode", mode, python.to_str().unwrap(), "-c", WRITE, &file]);
        assert_eq!(code, 0, "{mode}: {err}");
        check(&python, &folder.path().join(file));
    }
}

#[test]
fn statistics_of_all_processes_are_gathered() {
    let Some(python) = plugin::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("write.py"), WRITE).unwrap();
    let both = format!("{0} write.py a.h5 && {0} write.py b.h5", python.display());
    let (code, _, err) = run(folder.path(), &["run", "--stats=stats.jsonl", "--", "sh", "-c", &both]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("2 processes (") && err.contains(", 2 files, "), "{err}");
    let text = fs::read_to_string(folder.path().join("stats.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines.iter().all(|line| line["hyperslab_connector_stats"] == 1 && line["files"] == 1), "{text}");
    let (code, _, err) = run(folder.path(), &["run", "--stats", "-q", python.to_str().unwrap(), "-c", WRITE, "c.h5"]);
    assert!(code == 0 && err.starts_with("{\"hyperslab_connector_stats\":1,"), "{err}");
}

#[test]
fn both_sides_are_compared_element_by_element() {
    let Some(python) = plugin::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let python = python.to_str().unwrap();
    let (code, _, err) = run(folder.path(), &["run", "--compare", "--", python, "-c", WRITE, "out.h5"]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("identical") && err.contains("  same     "), "{err}");
    assert!(err.contains("not compared: out.h5: text") || err.contains("2 arrays of 1 files"), "{err}");
    assert!(err.contains("mode codec, 1 file"), "{err}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "it runs in copies");
    // One element that depends on the side.
    let other = "
import h5py, numpy, os
with h5py.File('out.h5', 'w') as f:
    x = numpy.zeros((300, 300))
    x[7, 250] = bool(os.environ.get('HDF5_VOL_CONNECTOR'))
    f['x'] = x
";
    let (code, _, err) = run(folder.path(), &["run", "--compare", "--", python, "-c", other]);
    assert!(code == 1 && err.contains("THE FILES DIFFER"), "{code} {err}");
    assert!(err.contains("differs: out.h5: x: 1 of 90000 elements differ, the first at 7x250"), "{err}");
    let (code, _, err) = run(folder.path(), &["run", "--compare", "--", python, "-c", "import sys; sys.exit(5)"]);
    assert!(code == 5 && err.contains("nothing is compared"), "{code} {err}");
}

#[test]
fn small_transfers_are_left_alone() {
    let Some(python) = plugin::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let small = "
import h5py, numpy
with h5py.File('small.h5', 'w') as f:
    for number in range(20):
        f[f'x{number}'] = numpy.arange(10)
    f['large'] = numpy.zeros(1 << 15)
    y = f.create_dataset('y', (12,), chunks=(12,), compression='gzip')
    for number in range(12):
        y[number] = number
    assert (y[...] == numpy.arange(12)).all()
";
    let (code, _, err) =
        run(folder.path(), &["run", "--stats=stats.jsonl", "--", python.to_str().unwrap(), "-c", small]);
    assert_eq!(code, 0, "{err}");
    let line: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("stats.jsonl")).unwrap()).unwrap();
    // The large one, and the one with more than a few transfers.
    assert_eq!(line["datasets"], 2, "{line}");
    assert_eq!(line["write"]["accelerated_calls"], 1 + 4, "{line}");
    assert!(err.contains("28 writes, ") && err.contains("few elements"), "{err}");
}

#[test]
fn after_a_crash_the_log_is_recovered() {
    let Some(python) = plugin::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("logs")).unwrap();
    let crash = "
import h5py, numpy, os, signal
f = h5py.File('out.h5', 'w')
f['text'] = 'words'
x = f.create_dataset('x', (512, 512), 'f4')
x[...] = 0
f.flush()
for row in range(512):
    x[row] = numpy.arange(row * 512, row * 512 + 512, dtype='f4')
os.kill(os.getpid(), signal.SIGKILL)
";
    let words = ["run", "--mode", "log", "--log-dir", "logs", "--", python.to_str().unwrap(), "-c", crash];
    let (code, _, err) = run(folder.path(), &words);
    assert_eq!(code, 137, "{err}");
    assert!(err.contains("try: hyperslab recover"), "{err}");
    let (code, out, err) = run(folder.path(), &["recover", "logs"]);
    assert_eq!(code, 0, "{out}{err}");
    check(&python, &folder.path().join("out.h5"));
}

/// Writes more than its file may have, and ends without asking.
const TOO_MUCH: &str = "
import h5py, numpy, os, resource, sys, time
file = h5py.File(sys.argv[1], 'w')
data = file.create_dataset('deep/x', (64, 1 << 16), 'f4')
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
data[...] = numpy.ones(data.shape, 'f4')
if sys.argv[2] == '_exit':
    time.sleep(0.5)
    os._exit(0)
sys.exit(int(sys.argv[2]))
";

#[test]
fn data_that_is_not_written_is_told_and_ends_with_74() {
    let Some(python) = plugin::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let (python, path) = (python.to_str().unwrap(), path.to_str().unwrap());
    for (how, wanted) in [("0", 74), ("_exit", 74), ("3", 3)] {
        let words = ["run", "--quiet", "--mode", "async", "--", python, "-c", TOO_MUCH, path, how];
        let (code, _, err) = run(folder.path(), &words);
        assert_eq!(code, wanted, "{how}: {err}");
        let line = format!("hyperslab: DATA NOT WRITTEN: {path}, deep/x, ");
        assert_eq!(err.matches(&line).count(), 1, "{how}: {err}");
    }
}

#[test]
fn children_that_end_by_themselves_are_counted() {
    let Some(python) = plugin::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "import os, sys, h5py\nfor at in range(2):\n    if os.fork() == 0:\n        sys.argv[1] += str(at)\n        exec({WRITE:?})\n        os._exit(0)\nos.wait(); os.wait()\n"
    );
    let path = folder.path().join("a.h5");
    let words = ["run", "--", python.to_str().unwrap(), "-c", &script, path.to_str().unwrap()];
    let (code, _, err) = run(folder.path(), &words);
    assert_eq!(code, 0, "{err}");
    // The parent has loaded h5py and opened nothing.
    assert!(err.contains("processes (python") && err.contains("2 files, 2 datasets"), "{err}");
    for at in 0..2 {
        check(&python, &folder.path().join(format!("a.h5{at}")));
    }
}

#[test]
fn a_closed_pipe_ends_commands_quietly() {
    let folder = tempfile::tempdir().unwrap();
    for words in [&["formats"][..], &["doctor"], &["show", "nothing-there.json"], &["completions", "bash"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = hyperslab(folder.path());
        let output = command.args(words).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        let (code, _, err) = said(output);
        assert!(code == 141 || code == 2, "{words:?}: {code} {err}");
        assert!(!err.contains("panicked") && !err.contains("Broken pipe"), "{words:?}: {err}");
    }
    // A disk that is full is told instead, in a line.
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (code, _, err) = said(hyperslab(folder.path()).arg("formats").stdout(full).output().unwrap());
    assert!(code == 1 && err.contains("cannot print") && err.lines().count() == 1, "{code} {err}");
}

const KILLED: &str = "
import h5py, numpy, os, signal, sys
f = h5py.File(sys.argv[1], 'w')
f.create_dataset('x', data=numpy.arange(10000.), chunks=(1000,), compression='gzip')
f.flush()
f['x'][...] = 1
os.kill(os.getpid(), signal.SIGKILL)
";
/// Puts something else into the third chunk.
const DAMAGE: &str = "
import h5py, sys
with h5py.File(sys.argv[1]) as f:
    at = f['x'].id.get_chunk_info(2).byte_offset
with open(sys.argv[1], 'r+b') as f:
    f.seek(at)
    f.write(b'damaged!')
";

#[test]
fn recover_says_of_every_file_whether_it_can_be_read() {
    plugin::build();
    let Some(python) = plugin::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let python = python.to_str().unwrap();
    let (code, _, _) = run(folder.path(), &["run", "--mode", "codec+safe", "--", python, "-c", KILLED, "a.h5"]);
    assert_eq!(code, 137);
    let (code, out, err) = run(folder.path(), &["recover", "a.h5"]);
    assert!(code == 0 && out.contains("it opens, with 1 array"), "{out}{err}");
    let (code, out, err) = run(folder.path(), &["recover", "a.h5", "--check"]);
    assert!(code == 0 && out.contains("all 78.12 KiB of 1 array can be read"), "{out}{err}");
    assert!(Command::new(python).args(["-c", DAMAGE]).arg(folder.path().join("a.h5")).status().unwrap().success());
    let (code, out, err) = run(folder.path(), &["recover", "a.h5", "--check"]);
    assert!(code == 1 && err.contains("cannot be read") && err.contains("\"x\""), "{code} {out}{err}");
}
