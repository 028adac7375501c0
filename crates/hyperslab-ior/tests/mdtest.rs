//! mdtest on real directories.
#![allow(clippy::unwrap_used)]

use hyperslab_ior::{Failure, RanksAre, RunEnd, mdtest};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
struct Printed(Arc<Mutex<Vec<u8>>>);

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn mdtest(directory: &Path, line: &str) -> (Result<RunEnd, Failure>, String) {
    let mut arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    if !line.contains("-d ") {
        arguments.extend(["-d".into(), directory.display().to_string()]);
    }
    let printed = Printed::default();
    let outcome = mdtest::run(&arguments, RanksAre::Threads, line, Box::new(printed.clone()));
    let text = String::from_utf8(printed.0.lock().unwrap().clone()).unwrap();
    (outcome, text)
}

/// Names of all that lies below, with the lengths of files.
fn below(path: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names.extend(below(&path));
        }
        let length = if path.is_file() { fs::metadata(&path).unwrap().len() } else { 0 };
        names.push(format!("{}:{length}", path.file_name().unwrap().to_str().unwrap()));
    }
    names.sort();
    names
}

#[test]
fn every_phase_is_timed_and_nothing_is_left() {
    let directory = tempfile::tempdir().unwrap();
    for line in [
        "-n 12 --ranks 2 -i 2 -w 100 -e 100 -X",
        "-n 12 --ranks 3 -z 1 -b 2 -u -N 1 -w 20 -e 17 -X -U -R",
        "-I 2 --ranks 2 -z 2 -b 2 -L -F -a null",
        "-I 2 --ranks 2 -z 1 -b 3 -F -a posix -w 64 -e 64 -X -y -B",
    ] {
        let (outcome, text) = mdtest(directory.path(), line);
        assert_eq!(outcome.expect(line), RunEnd::Right, "{text}");
        assert!(
            text.contains("SUMMARY rate (in ops/sec)") && text.contains("   File removal ") && !text.contains("NA"),
            "{text}"
        );
        assert_eq!(text.contains("Directory creation"), !line.contains("-F"), "{text}");
        assert_eq!(text.contains("Directory rename"), line.contains("-U"), "{text}");
        assert!(!line.contains("-X") || text.contains("Verified: "), "{text}");
        assert_eq!(below(directory.path()), Vec::<String>::new(), "{line}");
    }
}

#[test]
fn phases_can_be_runs_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let items = "-n 4 --ranks 2 -z 1 -b 1 -F -G 7";
    let (outcome, text) = mdtest(directory.path(), &format!("{items} -C -w 16"));
    assert!(outcome.is_ok() && text.contains("NA"), "{text}");
    let mut expected: Vec<String> =
        (0..2).flat_map(|rank| (0..4).map(move |item| format!("file.mdtest.{rank}.{item}:16"))).collect();
    expected.extend(["mdtest_tree.0.0:0", "mdtest_tree.0.1:0", "test-dir.0-0:0"].map(str::to_owned));
    assert_eq!(below(directory.path()), expected);
    let file = directory.path().join("test-dir.0-0/mdtest_tree.0.0/mdtest_tree.0.1/file.mdtest.1.3");
    assert_eq!(fs::read(&file).unwrap(), [(1_u64 << 32 | 7).to_le_bytes(), (1_u64 << 32 | 8).to_le_bytes()].concat());
    assert_eq!(mdtest(directory.path(), &format!("{items} -T -E -e 16 -w 16 -X")).0.unwrap(), RunEnd::Right);
    fs::write(&file, [0; 16]).unwrap();
    let (outcome, text) = mdtest(directory.path(), &format!("{items} -E -e 16 -w 16 -X"));
    assert!(outcome.unwrap() == RunEnd::WrongData && text.contains("WRONG DATA: "), "{text}");
    assert!(mdtest(directory.path(), &format!("{items} -r")).0.is_ok());
    assert_eq!(below(directory.path()), Vec::<String>::new());
    assert!(matches!(mdtest(directory.path(), &format!("{items} -T")).0, Err(Failure::Ran(_))));
}

#[test]
fn a_stonewall_makes_ranks_equal() {
    let directory = tempfile::tempdir().unwrap();
    let (outcome, text) = mdtest(directory.path(), "-n 100000000 --ranks 2 -F -W 1");
    assert_eq!(outcome.unwrap(), RunEnd::Right, "{text}");
    assert_eq!(below(directory.path()), Vec::<String>::new());
}
