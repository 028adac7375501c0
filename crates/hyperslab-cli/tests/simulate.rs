//! `hyperslab simulate` and `advise --system` as a user meets them.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "common/program.rs"]
mod program;

use program::run;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

fn value(directory: &Path, words: &str) -> Value {
    let (code, out, err) = run(directory, &words.split_whitespace().collect::<Vec<_>>());
    assert_eq!(code, 0, "{words}: {err}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{words}: {error}: {out}"))
}

#[test]
fn jobs_are_scripts_whose_runs_are_understood() {
    let directory = tempfile::tempdir().unwrap();
    for (kind, word) in [("slurm", "#SBATCH --nodes=6"), ("pbs", "#PBS -l select=6"), ("shell", "mpirun -np 6")] {
        let (code, out, err) = run(directory.path(), &["simulate", "--print-job", kind, "--ranks", "6"]);
        assert_eq!(code, 0, "{err}");
        assert!(
            out.starts_with("#!/bin/sh\n") && out.contains(word) && out.contains("lfs setstripe -c 6 -S 1m"),
            "{out}"
        );
        let path = directory.path().join("job.sh");
        fs::write(&path, &out).unwrap();
        assert!(Command::new("sh").arg("-n").arg(&path).status().unwrap().success(), "{out}");
        let plays: Vec<&str> =
            out.lines().filter(|line| line.starts_with("play 0") || line.starts_with("play 1")).collect();
        assert_eq!(plays.len(), 14);
        for play in plays {
            let flags: Vec<&str> = play.split_whitespace().skip(2).collect();
            let words = [vec!["simulate", "ior", "--ranks", "6", "--stack", "posix", "--json", "--"], flags].concat();
            let (code, _, err) = run(directory.path(), &words);
            assert_eq!(code, 0, "{play}: {err}");
        }
    }
}

/// Runs IOR here and keeps what it says.
fn play(directory: &Path, name: &str, flags: &str, json: bool) {
    let mut words = vec!["ior", "-N", "2"];
    words.extend(flags.split_whitespace());
    let file = format!("summaryFile={name}");
    words.extend(["-o", "data", "-O", &file]);
    if json {
        words.extend(["-O", "summaryFormat=JSON"]);
    }
    let (code, _, err) = run(directory, &words);
    assert_eq!(code, 0, "{flags}: {err}");
}

#[test]
fn a_system_is_calibrated_from_what_ior_and_bench_wrote() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    play(here, "a.json", "-a POSIX -b 1m -t 64k", true);
    play(here, "b.txt", "-a POSIX -b 64k -t 64k -s 8", false);
    play(here, "c.json", "-a HDF5 -b 512k -t 64k -w", true);
    let (code, _, err) =
        run(here, &["bench", "vpic", "particles=4096", "steps=2", "--out", "results", "--launcher", "threads"]);
    assert_eq!(code, 0, "{err}");
    let keys = "MEM_PATTERN=CONTIG\nFILE_PATTERN=CONTIG\nTIMESTEPS=2\nNUM_DIMS=1\nDIM_1=65536\nDIM_2=1\nDIM_3=1\n\
        COLLECTIVE_DATA=NO\nEMULATED_COMPUTE_TIME_PER_TIMESTEP=0 s\nCSV_FILE=h.csv\n";
    fs::write(here.join("h5bench.cfg"), keys).unwrap();
    let rows =
        "metric, value, unit\noperation, write, \nranks, 4, \nraw rate, 1.500, GB/s\nobserved rate, 1.000, GB/s\n";
    fs::write(here.join("h.csv"), rows).unwrap();
    let words = "simulate --calibrate a.json b.txt c.json results/results.json h.csv --stripe-count 2 --output mine.json --json";
    let found = value(here, words);
    assert_eq!(found["runs"].as_array().unwrap().len(), 7, "{found}");
    assert_eq!(found["system"]["calibration"]["runs"], 7);
    let rate = found["system"]["nodes"]["link_rate"]["value"].as_f64().unwrap();
    assert!(rate > 1e6, "{rate}");
    assert!(!found["parameters_unknown"].as_array().unwrap().is_empty());
    let used = value(here, "simulate vpic --system mine.json --json");
    assert_eq!(used["calibrated_on_runs"], 7);
    let (code, out, err) = run(here, &words.replace(" --json", "").split_whitespace().collect::<Vec<_>>());
    assert_ne!(code, 0, "{out}");
    assert!(err.contains("exists"), "{err}");
    fs::write(here.join("none.txt"), "nothing\n").unwrap();
    let (code, _, err) = run(here, &["simulate", "--calibrate", "none.txt"]);
    assert!(code == 2 || code == 1, "{code}");
    assert!(err.contains("neither output of IOR"), "{err}");
}

#[test]
fn claims_are_judged_and_written_as_a_page() {
    let directory = tempfile::tempdir().unwrap();
    let found = value(directory.path(), "simulate --reproduce arraymodel --page page.html --json");
    let claims = found["claims"].as_array().unwrap();
    assert_eq!(claims.len(), 45);
    for claim in claims {
        let simulated = !claim["simulated"].is_null();
        let told = !claim["why"].as_str().unwrap().is_empty();
        let verdict = claim["verdict"].as_str().unwrap();
        assert!(simulated || (verdict == "not_simulated" && told), "{claim}");
        assert!(verdict != "missed" || told, "{claim}");
        if let (Some(found), Some(error)) = (claim["simulated"].as_f64(), claim["error"].as_f64()) {
            let published: f64 = claim["published"].as_str().unwrap().parse().unwrap();
            assert!((found / published - 1.0 - error).abs() < 1e-9, "{claim}");
        }
    }
    let page = fs::read_to_string(directory.path().join("page.html")).unwrap();
    assert!(page.contains("<td class=\"number\">91</td>") && page.ends_with("</body></html>\n"));
    let (code, _, err) = run(directory.path(), &["simulate", "--reproduce", "arraymodle"]);
    assert!(code != 0 && err.contains("arraymodel"), "{err}");
}

/// The settings that advice changes, by name, on the calibrated system.
fn advice(directory: &Path, input: &str) -> (Value, Vec<(String, String)>) {
    let found = value(directory, &format!("advise --system lustre-2014 --json {input}"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let changes = found["changes"].as_array().unwrap();
    let changes = changes.iter().map(|one| (text(&one["setting"]), text(&one["better"]))).collect();
    (found, changes)
}

/// What [hdf5-lustre] advises comes out of the search by itself.
#[test]
fn best_practices_come_out_by_themselves() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let better = |input: &str, setting: &str| {
        let (found, changes) = advice(here, input);
        assert!(found["seconds"].as_f64().unwrap() <= found["seconds_now"].as_f64().unwrap(), "{found}");
        changes.into_iter().find(|(name, _)| name == setting).map(|(_, value)| value)
    };
    // Blocks of clients in turn: begin objects at stripes, and have a stripe for each block, so that each client has a server.
    let turns = "--ranks 10 ior -- -w -b 1m -t 1m -s 200";
    assert_eq!(better(&format!("--stack hdf5 {turns}"), "alignment").as_deref(), Some("1MiB"));
    // Interleaved collective writes wait for locks of each other: independent ones do not, once they are aligned.
    let collective = "--stack hdf5(align=1MiB) --ranks 10 ior -- -c -w -b 2m -t 2m -s 100";
    let (found, _) = advice(here, collective);
    assert!(found["seconds"].as_f64().unwrap() < 0.6 * found["seconds_now"].as_f64().unwrap(), "{found}");
    // All servers are used.
    assert_eq!(better("--stack hdf5(align=1MiB) --ranks 10 ior -- -w -b 40m -t 1m", "stripe count"), None);
    // Regions of their own: writes together are faster.
    let apart = "--stack hdf5(align=1MiB) --ranks 10 ior -- -w -b 400m -t 1m";
    let (found, changes) = advice(here, apart);
    assert!(!changes.is_empty() && found["best"]["stripe_count"] == 10, "{found}");
}

#[test]
fn advice_has_settings_to_paste() {
    let directory = tempfile::tempdir().unwrap();
    let words = "advise --system lustre-2014 --ranks 10 ior -- -w -b 1m -t 1m -s 200";
    let (code, out, err) = run(directory.path(), &words.split_whitespace().collect::<Vec<_>>());
    assert_eq!(code, 0, "{err}");
    for word in [
        "lfs setstripe -c 10 -S 1048576 FILE",
        "striping_unit 1048576",
        "H5Pset_alignment(fapl, 65536, 1048576)",
        "nc_set_alignment",
    ] {
        assert!(out.contains(word), "{word}: {out}");
    }
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
}

#[test]
fn a_recording_is_rescaled_where_it_is_regular() {
    let directory = tempfile::tempdir().unwrap();
    let (start, parts) = ([0, 64], 2);
    let head = |ranks: usize| {
        format!(
            "{{\"hyperslab_workload\":2,\"name\":\"w\",\"ranks\":{ranks},\"files\":[{{\"name\":\"f\",\"created\":true}}],\
             \"arrays\":[{{\"dtype\":\"<f8\",\"shape\":[128,1024],\"fill\":\"index\"}}]}}\n"
        )
    };
    let mut text = head(parts);
    text += "{\"do\":\"open_file\",\"file\":0,\"how\":\"create\"}\n{\"do\":\"create\",\"slot\":0,\"file\":0,\"array\":0,\"name\":\"a\"}\n";
    for (rank, at) in start.iter().enumerate() {
        text += &format!(
            "{{\"rank\":{rank},\"do\":\"write\",\"slot\":0,\"selection\":{{\"start\":[{at},0],\"count\":[64,1024]}}}}\n"
        );
    }
    text += "{\"do\":\"close_array\",\"slot\":0}\n{\"do\":\"close_file\",\"file\":0}\n";
    let path = directory.path().join("w.jsonl");
    fs::write(&path, &text).unwrap();
    let found = value(directory.path(), "simulate w.jsonl --system cori --ranks 64 --json");
    assert_eq!(
        (&found["cases"][0]["ranks"], &found["cases"][0]["simulated"]["written"]),
        (&64.into(), &(64.0 * 64.0 * 8192.0).into())
    );
    fs::write(&path, text.replace("\"start\":[64,0],\"count\":[64", "\"start\":[64,0],\"count\":[32")).unwrap();
    let (code, _, err) = run(directory.path(), &["simulate", "w.jsonl", "--system", "cori", "--ranks", "64"]);
    assert!(code != 0 && err.contains("is not like that of rank 0") && err.contains("kernel"), "{err}");
}
