//! `hyperslab report` as a user meets it, and its pages in a real browser where there is one.
#![allow(clippy::unwrap_used)]

use assert_cmd::cargo::CommandCargoExt;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn run(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    #[allow(deprecated)]
    let mut command = Command::cargo_bin("hyperslab").unwrap();
    let Output { status, stdout, stderr } = command.current_dir(directory).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (code, out, err) = (status.code().unwrap_or(-1), text(stdout), text(stderr));
    assert!(!err.contains("panicked"), "{err}");
    (code, out, err)
}

/// Results of a small real run, with samples, in the folder `r`.
fn measured(here: &Path) {
    let arguments =
        ["bench", "vpic", "particles=4096", "--format", "posix,hdf5", "--ranks", "2", "--repeat", "3", "--out", "r"];
    let (code, out, err) = run(here, &[&arguments[..], &["--launcher", "threads", "--samples", "--verify"]].concat());
    assert_eq!(code, 0, "{out}\n{err}");
}

#[test]
fn a_run_becomes_a_page_and_every_other_form() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    measured(here);
    let (code, out, err) = run(here, &["report", "r"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("report.html") && out.lines().count() == 2, "{out}");
    let page = fs::read_to_string(here.join("report.html")).unwrap();
    for words in ["<!doctype html>", "Who did what when", "To run it again", "Every byte of every case", "vpic"] {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains("http://") && !page.contains("https://"), "nothing is loaded");
    for (form, words) in [
        ("md", "| case | benchmark"),
        ("csv", "file,case,benchmark"),
        ("svg", "<svg xmlns"),
        ("json", "hyperslab_report"),
    ] {
        let (code, out, err) = run(here, &["report", "r/results.json", "--format", form]);
        assert_eq!(code, 0, "{err}");
        assert!(out.contains(words), "{form}: {out}");
        let name = format!("out.{form}");
        assert_eq!(run(here, &["report", "r", "-o", &name]).0, 0);
        assert!(fs::read_to_string(here.join(name)).unwrap().contains(words), "{form}");
    }
    // Results are never overwritten by a slip.
    let before = fs::read(here.join("r/results.json")).unwrap();
    let (code, _, err) = run(here, &["report", "r", "-o", "r/results.json"]);
    assert_eq!((code, err.contains("is no report")), (2, true), "{err}");
    assert_eq!(fs::read(here.join("r/results.json")).unwrap(), before);
    let (code, _, err) = run(here, &["report", "nowhere"]);
    assert_eq!((code, err.contains("try:")), (2, true), "{err}");
}

fn program(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places = std::env::split_paths(&path).flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    places.into_iter().find(|file| file.is_file())
}

/// What a browser finds on a page; nothing, with the reason, where there is no browser.
fn browsed(page: &Path) -> Option<Value> {
    let driver = program(&["chromedriver"]);
    let browser = program(&["chromium", "chromium-browser", "google-chrome"]);
    let (Some(driver), Some(browser)) = (driver, browser) else {
        eprintln!("skipped: Chromium or ChromeDriver is missing (Debian: apt-get install chromium chromium-driver)");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/browser.py");
    let mut command = Command::new("python3");
    command.arg(script).args([&driver, &browser]).arg(page);
    command.args(std::env::var_os("HYPERSLAB_SCREENSHOTS"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn is_sound(found: &Value) {
    assert_eq!(found["console"], json!([]), "{found:#}");
    assert_eq!(found["requests"], json!([]), "{found:#}");
    assert_eq!(
        (&found["pwned"], &found["scripts"], &found["handlers"]),
        (&json!(false), &json!(1), &json!(0)),
        "{found:#}"
    );
    assert_eq!((&found["unlabelled"], &found["unnamed_controls"]), (&json!(0), &json!(0)), "{found:#}");
    for width in ["overflow_400", "overflow_1600"] {
        assert!(found[width].as_i64().unwrap() <= 0, "{found:#}");
    }
    let rows = &found["rows"];
    assert_eq!((&found["filtered_out"], &found["filtered_back"]), (&json!(0), rows), "{found:#}");
    assert_eq!(found["said"], format!("0 of {rows} shown"), "{found:#}");
    assert!(found["sorted_up"].as_f64() <= found["sorted_down"].as_f64(), "{found:#}");
    assert_eq!(found["sort_said"], "descending", "{found:#}");
    assert_eq!(found["sorted_by_key"], "ascending", "{found:#}");
    assert!(found["typed"].as_u64().unwrap() > 0 && found["chosen"] == found["of_that_stack"], "{found:#}");
    // What a screen reader says, what can be read, what is cut off.
    assert_eq!((&found["names"], &found["cut_off"]), (&json!(0), &json!([])), "{found:#}");
    for scheme in ["contrast_light", "contrast_dark"] {
        assert!(found[scheme][0].as_f64().unwrap() >= 4.5, "{found:#}");
    }
    assert_eq!(found["tip_of_pointer"], found["hovered"], "{found:#}");
    // The keyboard moves through pictures, and what it reaches is said and shown.
    assert_ne!(found["first_focus"], found["next_focus"], "{found:#}");
    assert_eq!(found["tip_of_focus"], found["next_focus"], "{found:#}");
    assert_eq!(found["tip_after_escape"], true, "{found:#}");
}

fn edited(here: &Path, edit: impl FnOnce(&mut Value)) -> PathBuf {
    let mut results: Value = serde_json::from_slice(&fs::read(here.join("r/results.json")).unwrap()).unwrap();
    edit(&mut results);
    fs::write(here.join("edited.json"), results.to_string()).unwrap();
    let (code, _, err) = run(here, &["report", "edited.json", "-o", "edited.html"]);
    assert_eq!(code, 0, "{err}");
    here.join("edited.html")
}

fn poison(value: &mut Value, text: &str) {
    match value {
        Value::String(old) if !["ok", "warm"].contains(&old.as_str()) => *old = format!("{text}{old}"),
        Value::Array(list) => list.iter_mut().for_each(|value| poison(value, text)),
        Value::Object(map) => map.values_mut().for_each(|value| poison(value, text)),
        _ => {}
    }
}

#[test]
#[ignore = "starts Chromium; cargo test -p hyperslab-cli --test report -- --ignored"]
fn a_browser_shows_and_moves_everything() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    measured(here);
    assert_eq!(run(here, &["report", "r"]).0, 0);
    let Some(found) = browsed(&here.join("report.html")) else { return };
    is_sound(&found);
    assert_eq!(found["rows"], 2, "{found:#}");
    for attack in [
        "</script><script>window.pwned=true</script>",
        "\"><img src=x onerror=\"window.pwned=true\">",
        "' onfocus='window.pwned=true",
    ] {
        let page = edited(here, |results| poison(results, attack));
        let hostile = browsed(&page).unwrap();
        is_sound(&hostile);
        assert!(!hostile["elements"].as_array().unwrap().contains(&json!("img")), "{hostile:#}");
    }
}

#[test]
#[ignore = "starts Chromium; cargo test -p hyperslab-cli --test report -- --ignored"]
fn two_thousand_cases_open_in_two_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    measured(here);
    let page = edited(here, |results| {
        let case = results["cases"][0].clone();
        let cases = (1..=2000).map(|number| {
            let mut case = case.clone();
            case["number"] = json!(number);
            case["workload"] = json!(format!("work of number {}", number / 4));
            case["stack"] = json!(["posix", "hdf5", "zarr", "netcdf3"][number % 4]);
            case
        });
        results["cases"] = cases.collect();
    });
    let size = page.metadata().unwrap().len();
    assert!(size < 5_000_000, "{size}");
    let Some(found) = browsed(&page) else { return };
    is_sound(&found);
    let took = found["opened_seconds"].as_f64().unwrap();
    eprintln!("{size} bytes, opened in {took} s");
    assert!(took < 2.0, "{took} s");
}
