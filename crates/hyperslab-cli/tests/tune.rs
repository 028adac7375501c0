//! `hyperslab tune` as a user meets it.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "common/plugin.rs"]
mod plugin;
#[path = "common/program.rs"]
#[allow(dead_code)]
mod program;

use program::{hyperslab, run, said};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const SCRIPTS: [(&str, &str); 8] = [
    ("rows_and_columns", include_str!("python/scripts/rows_and_columns.py")),
    ("image_stack", include_str!("python/scripts/image_stack.py")),
    ("pixel_series", include_str!("python/scripts/pixel_series.py")),
    ("one_piece", include_str!("python/scripts/one_piece.py")),
    ("growing_log", include_str!("python/scripts/growing_log.py")),
    ("weather", include_str!("python/scripts/weather.py")),
    ("many_small", include_str!("python/scripts/many_small.py")),
    ("fields_of_xarray", include_str!("python/scripts/fields_of_xarray.py")),
];

#[test]
fn overrides_take_the_place_of_what_a_program_asks_for() {
    let Some(python) = plugin::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let overrides = r#"{"datasets": [
        {"file": "a.h5", "name": "g/x", "layout": {"chunked": [8, 4]}, "filters": ["shuffle", {"deflate": 1}]},
        {"file": "a.h5", "name": "plain", "layout": "contiguous", "filters": []}],
        "files": [{"file": "a.h5", "cache": 33554432}]}"#;
    fs::write(folder.path().join("o.json"), overrides).unwrap();
    let script = "
import h5py, numpy
data = numpy.arange(512.0).reshape(16, 32)
with h5py.File('a.h5', 'w') as f:
    f.create_group('g').create_dataset('x', data=data, chunks=(1, 32))
    f.create_dataset('plain', data=data, chunks=(1, 32), compression='gzip')
    f.create_dataset('other', data=data, chunks=(1, 32))
    assert f.id.get_access_plist().get_cache()[2] == 33554432
with h5py.File('b.h5', 'w') as f:
    assert f.create_dataset('g/x', data=data, chunks=(1, 32)).chunks == (1, 32)
with h5py.File('a.h5') as f:
    x, plain, other = f['g/x'], f['plain'], f['other']
    assert (x.chunks, x.compression, x.shuffle) == ((8, 4), 'gzip', True)
    assert (plain.chunks, plain.compression) == (None, None)
    assert other.chunks == (1, 32)
    assert all((d[:] == data).all() for d in (x, plain, other))
";
    for mode in ["off", "codec", "codec+async"] {
        let mut command = hyperslab(folder.path());
        command.env("HYPERSLAB_OVERRIDES", folder.path().join("o.json"));
        command.args(["run", "--mode", mode, "--stats=stats.jsonl", "--"]).arg(&python).args(["-c", script]);
        let (code, _, err) = said(command.output().unwrap());
        assert_eq!(code, 0, "{mode}: {err}");
        let statistics = fs::read_to_string(folder.path().join("stats.jsonl")).unwrap();
        assert!(!statistics.contains("\"overridden\":0"), "{statistics}");
        fs::remove_file(folder.path().join("stats.jsonl")).unwrap();
    }
}

#[test]
fn what_cannot_be_tuned_is_told_and_leaves_nothing() {
    let Some(python) = plugin::python() else { return };
    let python = python.to_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let outside = format!("import h5py; h5py.File('{}/x.h5', 'w').close()", elsewhere.path().display());
    for (words, code, said) in [
        (&["--", "sh", "-c", "exit 3"][..], 1, "exit code 3"),
        (&["--", "true"], 2, "nothing was recorded"),
        (&["--", "no-such-program"], 2, "cannot run no-such-program"),
        (&["--may-change", "format", "--", "true"], 2, "libraries decide the format"),
        (&["--", python, "-c", &outside], 2, "not in the folder"),
    ] {
        let (found, out, err) = run(folder.path(), &[&["tune"][..], words].concat());
        assert_eq!((found, out.as_str()), (code, ""), "{words:?}: {err}");
        assert!(err.contains(said), "{words:?}: {err}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{words:?}");
    }
}

#[test]
fn a_program_that_is_fast_is_left_as_it_is() {
    let Some(python) = plugin::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.py"), "import h5py\nwith h5py.File('a.h5', 'w') as f: f['x'] = [1, 2, 3]\n")
        .unwrap();
    let words = ["tune", "--json", "--budget", "1s", "--", python.to_str().unwrap(), "s.py"];
    let (code, out, err) = run(folder.path(), &words);
    assert_eq!(code, 0, "{err}");
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(found["plain"].is_null(), "{out}");
    assert!(found["runs"].as_u64().unwrap() >= 2, "{out}");
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["s.py"]);
}

/// Applies the lines of a diff to a script, as a user would. Lines that are no diff change how files are opened.
fn followed(script: &str, change: &[String]) -> String {
    let (mut text, mut before, mut after) = (script.to_owned(), Vec::new(), Vec::new());
    let mut apply = |before: &mut Vec<String>, after: &mut Vec<String>| {
        if !before.is_empty() {
            assert!(text.contains(&before.join("\n")), "{before:?} in {text}");
            text = text.replace(&before.join("\n"), &after.join("\n"));
        }
        before.clear();
        after.clear();
    };
    for line in change {
        match (line.strip_prefix("- "), line.strip_prefix("+ ")) {
            (Some(old), _) => before.push(old.to_owned()),
            (_, Some(new)) => after.push(new.to_owned()),
            _ => apply(&mut before, &mut after),
        }
    }
    apply(&mut before, &mut after);
    for line in change {
        if let Some((_, size)) = line.split_once("rdcc_nbytes=") {
            let size = size.trim_end_matches(')');
            text = text.replace(", \"w\")", &format!(", \"w\", rdcc_nbytes={size})"));
            text = text.replace(".h5\")", &format!(".h5\", rdcc_nbytes={size})"));
        }
    }
    text
}

fn seconds(python: &Path, folder: &Path, script: &str) -> f64 {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "h5" || end == "nc") {
            fs::remove_file(path).unwrap();
        }
    }
    let begin = Instant::now();
    let status = Command::new(python).arg(script).current_dir(folder).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{script}");
    begin.elapsed().as_secs_f64()
}

/// Follows the advice literally, by editing the scripts, and measures both.
#[test]
#[ignore = "tunes eight scripts, some dozens of runs each; cargo test -p hyperslab-cli --test tune -- --ignored"]
fn advice_that_is_followed_makes_nothing_slower() {
    let Some(python) = plugin::python() else { return };
    let mut worst: f64 = 0.0;
    println!("{:<18} {:>9} {:>9} {:>9}  advice", "script", "as it is", "followed", "times");
    for (name, script) in SCRIPTS {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("s.py"), script).unwrap();
        let words = ["tune", "--json", "--budget", "4min", "--", python.to_str().unwrap(), "s.py"];
        let (code, out, err) = run(folder.path(), &words);
        assert_eq!(code, 0, "{name}: {err}");
        let found: serde_json::Value = serde_json::from_str(&out).unwrap();
        let change: Vec<String> =
            serde_json::from_value(found["plain"]["proposal"]["change"].clone()).unwrap_or_default();
        if change.is_empty() {
            println!("{name:<18} {:>9} {:>9} {:>9}  leave it as it is", "-", "-", "-");
            continue;
        }
        let new = followed(script, &change);
        assert_ne!(new, script, "{name}: the advice cannot be followed: {change:?}");
        fs::write(folder.path().join("t.py"), new).unwrap();
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for _ in 0..7 {
            before.push(seconds(&python, folder.path(), "s.py"));
            after.push(seconds(&python, folder.path(), "t.py"));
        }
        before.sort_by(f64::total_cmp);
        after.sort_by(f64::total_cmp);
        let times = after[3] / before[3];
        worst = worst.max(times);
        let said = found["plain"]["ratio"].as_f64().unwrap_or(1.0);
        let change = change.join(" | ");
        println!("{name:<18} {:>8.2}s {:>8.2}s {times:>9.2}  said {said:.2}: {change}", before[3], after[3]);
    }
    assert!(worst <= 1.05, "a script became slower: {worst:.2} times as long");
}
