//! Tests of IOR on real files of the raw format, whose bytes are read here without any code of ours.
#![allow(clippy::unwrap_used)]

use hyperslab_core::Result;
use hyperslab_ior::{Failure, RanksAre, RunEnd, run};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// What a run printed.
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

/// Runs the flags of `line` with `FILE` in place of a file in `directory`.
fn ior_in(directory: &Path, line: &str) -> (Result<RunEnd, Failure>, String) {
    let file = directory.join("f").display().to_string();
    let arguments: Vec<String> = line.split_whitespace().map(|word| word.replace("FILE", &file)).collect();
    let printed = Printed::default();
    let outcome = run(&arguments, RanksAre::Threads, line, Box::new(printed.clone()));
    let text = String::from_utf8(printed.0.lock().unwrap().clone()).unwrap();
    (outcome, text)
}

fn ior(directory: &Path, line: &str) -> String {
    let (outcome, text) = ior_in(directory, line);
    assert_eq!(outcome.expect(line), RunEnd::Right, "{line}\n{text}");
    text
}

fn words(file: PathBuf) -> Vec<u64> {
    fs::read(file).unwrap().as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// The rows of the table: access, repetition, and the figures between.
fn rows(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().filter(|line| line.starts_with("write ") || line.starts_with("read "));
    let rows = lines.map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    rows.filter(|row| row.len() == 11).collect()
}

#[test]
fn a_shared_file_has_the_words_of_ior() {
    let directory = tempfile::tempdir().unwrap();
    let text = ior(directory.path(), "-o FILE -b 32 -t 16 -s 3 -w -r -W -R -k -G 27 -N 2");
    let mut expected = Vec::new();
    for _segment in 0..3 {
        for rank in 0..2_u64 {
            for _transfer in 0..2 {
                expected.extend([(rank << 32) | 27, (rank << 32) | 28]);
            }
        }
    }
    assert_eq!(words(directory.path().join("f/data.raw")), expected);
    assert!(text.contains("Verified: 384 B were compared after the writes and in the reads"), "{text}");
    assert_eq!(rows(&text).iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), ["write", "read"]);
}

#[test]
fn the_table_is_that_of_ior() {
    let directory = tempfile::tempdir().unwrap();
    let text = ior(directory.path(), "-o FILE -b 1m -t 256k -i 2 -v");
    let header = "access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   \
                  total(s)   iter\n------    ---------  ----       ----------  ---------- ---------  --------   \
                  --------   --------   --------   ----\n";
    assert!(text.contains(header), "{text}");
    let rows = rows(&text);
    assert_eq!(rows.len(), 4);
    for row in &rows {
        assert_eq!((row[4].as_str(), row[5].as_str()), ("1024.00", "256.00"));
        let figure = |at: usize| row[at].parse::<f64>().unwrap();
        // Bytes over the whole time; IOPS over that of the transfers.
        assert!((figure(1) * figure(9) - 1.0).abs() < 0.02, "{row:?}");
        assert!((figure(2) * figure(7) - 4.0).abs() < 0.1, "{row:?}");
        assert!((figure(3) * 4.0 - figure(7)).abs() < 2e-5, "{row:?}");
    }
    assert_eq!((rows[0][10].as_str(), rows[3][10].as_str()), ("0", "1"));
    assert!(text.contains("\nSummary of all tests:\nOperation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev   Max(OPs)"));
    assert!(text.contains(
        " Test# #Tasks tPN reps fPP reord reordoff reordrand seed segcnt   blksiz    xsize aggs(MiB)   API RefNum\n"
    ));
    assert!(text.contains("Max Write: ") && text.contains("Max Read:  ") && text.contains("\nremove    -  "), "{text}");
    assert!(text.contains("over 2 repetitions: median "), "{text}");
    assert!(!directory.path().join("f").exists());
    let quiet = ior(directory.path(), "-o FILE -b 1m -t 256k");
    assert!(!quiet.contains("Max Write") && !quiet.contains("remove  "));
}

#[test]
fn files_per_process_have_names_and_data_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    ior(directory.path(), "-o FILE -F -m -i 2 -b 32 -t 16 -s 2 -wrWRk -C -G 5 -N 3");
    for rank in 0..3_u64 {
        for repetition in 0..2 {
            let found = words(directory.path().join(format!("f.{rank:08}.{repetition}/data.raw")));
            assert_eq!(found, [(rank << 32) | 5, (rank << 32) | 6].repeat(4));
        }
    }
    ior(directory.path(), "-o FILEa@FILEb -F -u -N 1 -wrR -i 1".replace("FILEa@FILEb", "FILEa").as_str());
    ior(directory.path(), "-o FILEx@FILEy -F -k -N 3 -w");
    for (name, rank) in [("fx", 0), ("fy", 1), ("fx", 2)] {
        assert!(directory.path().join(format!("{name}.{rank:08}")).is_dir());
    }
    ior(directory.path(), "-o FILEx@FILEy -F -k -N 3 -r -R -C");
    ior(directory.path(), "-o FILE -F -u -k -N 2 -w");
    assert!(directory.path().join("1/f.00000001/data.raw").is_file());
}

#[test]
fn every_order_of_access_is_verified() {
    let directory = tempfile::tempdir().unwrap();
    for line in [
        "-C",
        "-C -Q 2",
        "-Z -X 3",
        "-Z -Z",
        "-Z -X -2 -i 3",
        "-z",
        "-z -z",
        "-z -c",
        "-z -F",
        "-z -F -C",
        "-c",
        "-g -e -Y",
        "-z --random-offset-seed 9 -G 4",
        "-z -F -G 4 -l offset",
        "-l random",
        "-l incompressible -G 2",
        "-l o -G 1",
        "-O interIODelay=5",
        "--gather 2",
        "--dataset-per-segment",
        "--dataset-per-segment -c -F",
        "-O chunkSize=64",
        "--unlimited",
        "--unlimited -c",
        "--dimy 128",
        "--dimy 128 --unlimited -c --chunkx 1 --chunky 64",
        "--pattern disjoint",
        "--pattern ost:2 --stripe-size 32 --stripe-count 4",
        "-z --randomPrefill 32",
        "-M 1m",
        "-O memoryPerTask=1m",
    ] {
        let text = ior(directory.path(), &format!("-o FILE -b 64 -t 16 -s 4 -N 4 -wrWR {line}"));
        assert!(text.contains("Verified: "), "{line}: {text}");
        assert!(!directory.path().join("f").exists(), "{line}");
    }
}

#[test]
fn a_later_run_verifies_what_an_earlier_one_wrote() {
    let directory = tempfile::tempdir().unwrap();
    ior(directory.path(), "-o FILE -b 64 -t 16 -N 2 -w -k");
    ior(directory.path(), "-o FILE -b 64 -t 16 -N 2 -r -R -C -k");
    ior(directory.path(), "-o FILE -b 64 -t 16 -N 2 -w -W -E -k");
    // One wrong byte.
    let path = directory.path().join("f/data.raw");
    let mut bytes = fs::read(&path).unwrap();
    bytes[70] ^= 1;
    fs::write(&path, bytes).unwrap();
    let (outcome, text) = ior_in(directory.path(), "-o FILE -b 64 -t 16 -N 2 -R -k");
    assert_eq!(outcome.unwrap(), RunEnd::WrongData);
    assert!(text.contains("WRONG DATA: 1 of 128 bytes, in 1 transfers. First: rank 1: transfer at byte 64"), "{text}");
    // A file with wrong data is kept if that is asked for, and otherwise removed.
    assert_eq!(ior_in(directory.path(), "-o FILE -b 64 -t 16 -N 2 -R -K").0.unwrap(), RunEnd::WrongData);
    assert!(path.exists());
    assert_eq!(ior_in(directory.path(), "-o FILE -b 64 -t 16 -N 2 -R").0.unwrap(), RunEnd::WrongData);
    assert!(!path.exists());
}

#[test]
fn plain_files_of_ior_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let transfer = |rank: u64| [(rank << 32) | 27, (rank << 32) | 28].map(u64::to_le_bytes).concat();
    let segment: Vec<u8> = [transfer(0).repeat(2), transfer(1).repeat(2)].concat();
    let path = directory.path().join("f");
    fs::write(&path, segment.repeat(3)).unwrap();
    let text = ior(directory.path(), "-a POSIX -o FILE -b 32 -t 16 -s 3 -R -G 27 -N 2");
    assert!(text.contains("Verified: 192 B"), "{text}");
    assert!(path.is_file(), "a file that was not written here is not removed");
    assert_eq!(ior_in(directory.path(), "-o FILE -b 32 -t 16 -s 3 -R -G 28 -N 2").0.unwrap(), RunEnd::WrongData);
    // It is never overwritten as if it were ours, and one that is too short is an error.
    assert!(matches!(ior_in(directory.path(), "-o FILE -b 32 -t 16 -w").0, Err(Failure::Ran(_))));
    assert!(matches!(ior_in(directory.path(), "-o FILE -b 32 -t 16 -s 4 -r -N 2").0, Err(Failure::Ran(_))));
    assert!(path.is_file());
}

#[test]
fn json_is_one_valid_document() {
    let directory = tempfile::tempdir().unwrap();
    let text = ior(directory.path(), "-o FILE -b 64k -t 16k -i 2 -wrWR -vv -N 2 -O summaryFormat=JSON -Z -X 2");
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    for key in ["Version", "Began", "Command line", "Machine", "tests", "summary", "Finished"] {
        assert!(document.get(key).is_some(), "{key}");
    }
    let test = &document["tests"][0];
    for key in ["TestID", "StartTime", "Path", "Parameters", "Options", "Results", "max"] {
        assert!(test.get(key).is_some(), "{key}");
    }
    let results = test["Results"].as_array().unwrap();
    let accesses: Vec<&str> = results.iter().map(|row| row["access"].as_str().unwrap()).collect();
    assert_eq!(accesses, ["write", "read", "remove", "write", "read", "remove"]);
    assert!(results[1]["bwMiB"].as_f64().unwrap() > 0.0 && results[1]["comparedBytes"] == 131_072);
    assert_eq!(
        (&document["summary"][1]["operation"], &document["summary"][1]["numTasks"]),
        (&"read".into(), &2.into())
    );
    let order: Vec<usize> = ["\"Version\"", "\"Began\"", "\"tests\"", "\"summary\"", "\"Finished\""]
        .map(|key| text.find(key).unwrap())
        .into();
    assert!(order.is_sorted());
}

#[test]
fn csv_and_files_of_times_have_the_columns_of_ior() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let line = "-o FILE -b 64 -t 16 -N 2 -O summaryFormat=CSV,summaryFile=FILE.csv \
                -O saveRankPerformanceDetailsCSV=FILE.ranks,savePerOpDataCSV=FILE.ops";
    assert_eq!(ior(directory.path(), line), "");
    let csv = fs::read_to_string(at("f.csv")).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(
        lines[0],
        "access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),numTasks,iter"
    );
    assert_eq!(lines.iter().map(|line| line.split(',').count()).collect::<Vec<_>>(), [12, 12, 12]);
    assert!(lines[1].starts_with("write,") && lines[2].starts_with("read,") && lines[2].ends_with(",2,0"));
    let ranks = fs::read_to_string(at("f.ranks")).unwrap();
    assert_eq!(ranks.lines().count(), 5);
    assert!(
        ranks.starts_with("access,rank,runtime-with-openclose,runtime,throughput-withopenclose,throughput\nwrite,0,")
    );
    for name in ["f.ops-0-00000.csv", "f.ops-0-00001.csv", "f.ops-read-0-00001.csv"] {
        let ops = fs::read_to_string(at(name)).unwrap();
        assert_eq!((ops.lines().next().unwrap(), ops.lines().count()), ("time,runtime,tp", 5), "{name}");
    }
}

#[test]
fn a_deadline_stops_and_ranks_wear_out() {
    let directory = tempfile::tempdir().unwrap();
    // Some 50 s of pauses if it were not stopped.
    let slow = "-o FILE -b 8k -t 16 -N 2 -w -r -R -D 1 -O interIODelay=50000";
    let text = ior(directory.path(), slow);
    assert!(text.contains("Write stopped after ") && text.contains("Verified: "), "{text}");
    let text = ior(directory.path(), &format!("{slow} -k -O stoneWallingWearOut=1,stoneWallingStatusFile=FILE.status"));
    assert!(text.contains("stonewalling pairs accessed min: "), "{text}");
    let count: u64 = fs::read_to_string(directory.path().join("f.status")).unwrap().trim().parse().unwrap();
    assert!((1..512).contains(&count));
    let text = ior(directory.path(), "-o FILE -b 8k -t 16 -N 2 -r -R -O stoneWallingStatusFile=FILE.status -k");
    assert!(text.contains(&format!("Verified: {} B", 2 * count * 16)), "{count}: {text}");
    let text = ior(directory.path(), &format!("{slow} -c"));
    assert!(text.contains("Write stopped after "), "{text}");
    let text = ior(directory.path(), "-o FILE -b 8k -t 16 -N 2 -w -r -R -O stoneWallingWearOutIterations=3");
    assert!(text.contains("Verified: 96 B"), "{text}");
}

#[test]
fn scripts_run_their_tests() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script");
    let file = directory.path().join("f");
    let text = format!(
        "ignored\nIOR START\n testFile={}\n blockSize=64, transferSize=16\n checkRead=1,writefile=1\n RUN\n api=DUMMY\n \
         RUN\n RUN\nIOR STOP\nignored\n",
        file.display()
    );
    fs::write(&script, text).unwrap();
    let text = ior(directory.path(), &format!("-f {} -N 2", script.display()));
    assert_eq!(rows(&text).len(), 6, "{text}");
    assert!(text.contains("Verified: 128 B") && text.contains("Not verified: null keeps no data"), "{text}");
}

#[test]
fn a_dry_run_touches_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let text = ior(directory.path(), "-o FILE -b 1g -N 4 --dryRun");
    assert!(text.contains("Dry run: nothing was written or read; 4.00 GiB would be."), "{text}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn what_contradicts_itself_is_refused_before_anything_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    for (line, word) in [
        ("-b 10 -t 8", "multiple"),
        ("-t 2m", "multiple"),
        ("-C -Z", "-C and -Z"),
        ("-z -C", "-F"),
        ("-z -b 16 -t 16", "shuffle"),
        ("-R -l random", "-G"),
        ("-O stoneWallingWearOut=1", "-D"),
        ("-O stoneWallingStatusFile=x", "-k"),
        ("--randomPrefill 1k", "-z"),
        ("-a AIO", "async/posix"),
        ("-a S3", "object stores"),
        ("-a nonsense", "nonsense"),
        ("-F -u -o a@b", "directories"),
        ("--dimy 24 -t 16 -b 64", "dimy"),
        ("--dimx 5", "--dimy"),
        ("-E --unlimited", "-E"),
        ("-o .. ", "names no file"),
        ("-i 0 --warningAsErrors", "repetitions"),
        ("-N 100000", "threads"),
        ("-f /nonexistent", "/nonexistent"),
    ] {
        match ior_in(directory.path(), line).0 {
            Err(Failure::Asked(error)) => assert!(error.to_string().contains(word), "{line}: {error}"),
            other => panic!("{line}: {other:?}"),
        }
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn targets_per_client_are_printed() {
    let directory = tempfile::tempdir().unwrap();
    for (ranks, count, stripes, targets) in
        [(10, 10, 2, "2"), (16, 8, 1, "1"), (12, 10, 1, "5"), (10, 8, 1, "4"), (7, 10, 1, "10")]
    {
        let line = format!(
            "-a DUMMY -o FILE -N {ranks} --pattern ost:{stripes} --stripe-size 1k --stripe-count {count} --per-client 80k -w"
        );
        let text = ior(directory.path(), &line);
        assert!(
            text.contains(&format!("Targets per client: {targets} of {count}, with stripes of 1.00 KiB")),
            "{text}"
        );
    }
}
