//! Real processes, ended by SIGKILL at any moment.

use super::*;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::Duration;

const CHILD: &str = "HYPERSLAB_TEST_JOURNAL";

/// Appends for ever, says one byte per acknowledged write, and has most writes done after a while.
#[test]
fn child() {
    let Ok(place) = std::env::var(CHILD) else { return };
    let (folder, path) = place.split_once(':').unwrap();
    let files = directory(Path::new(folder)).unwrap();
    let header = Header::new(Id::random().unwrap(), 0, 1, "memory", path.into()).unwrap();
    let limits = Limits { segment: 100_000, ..Limits::new(256 << 20) };
    let journal = Journal::create(files, header, limits).unwrap();
    let mut out = std::io::stderr();
    let large = vec![0u8; 40_000];
    for n in 0u64.. {
        let row = Selection::dense(&[n % 12, 0], &[1, 10]).unwrap();
        log(&journal, &row, &[n as u8; 10]);
        if n % 5 == 0 {
            let one = Selection::dense(&[0], &[1]).unwrap();
            match journal.append("large", &Datatype::Opaque(40_000), &one, &[&large]).unwrap() {
                Append::Logged(logged) => logged.done(),
                other => drop(other),
            }
        }
        std::io::Write::write_all(&mut out, b".").unwrap();
        if n == 5000 {
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        }
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    let mut interrupted = 0;
    for round in 0..12u64 {
        let folder = tempfile::tempdir().unwrap();
        let files = directory(folder.path()).unwrap();
        let path = fresh();
        let real = container(&path);
        let large = ArraySpec::new(Datatype::Opaque(40_000), &[1]);
        real.create("large", &large).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kills::child", "--nocapture", "--test-threads=1"])
            .env(CHILD, format!("{}:{}", folder.path().display(), path.display()))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = child.stderr.take().unwrap();
        let mut first = [0];
        said.read_exact(&mut first).unwrap();
        assert!(found_jobs(&files)[0].is_in_use());
        std::thread::sleep(Duration::from_micros(round * round * 300));
        child.kill().unwrap();
        child.wait().unwrap();
        let mut rest = Vec::new();
        said.read_to_end(&mut rest).unwrap();
        assert!(rest.iter().all(|byte| *byte == b'.'), "{}", String::from_utf8_lossy(&rest));
        let acknowledged = 1 + rest.len() as u64;
        let replayed = recover(&files);
        interrupted += replayed[0].damages.len();
        assert!(replayed[0].damages.iter().all(|damage| damage.1.unfinished));
        // The write under way may be there or not.
        let expected = |writes: u64| -> Vec<u8> {
            let last = |row: u64| (0..writes).rev().find(|n| n % 12 == row).unwrap_or(0) as u8;
            (0..12).flat_map(|row| [last(row); 10]).collect()
        };
        let found = content(&path);
        assert!(found == expected(acknowledged) || found == expected(acknowledged + 1), "{acknowledged} {found:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
    // Rare, and fine.
    assert!(interrupted <= 12);
}
