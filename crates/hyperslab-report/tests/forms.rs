//! The forms of a report: fixed results give fixed pages, hostile ones stay text, and every number comes from the report.
#![allow(clippy::unwrap_used)]

use hyperslab_report::{Form, Input, Report};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn spread(middle: f64) -> Value {
    json!({"count": 3, "min": middle * 0.9, "q1": middle * 0.95, "median": middle, "q3": middle * 1.05, "max": middle * 1.2})
}

fn case(number: usize, stack: &str, ranks: usize, bytes: u64, seconds: f64) -> Value {
    let call = json!({"count": 96, "total": seconds, "min": seconds / 500.0, "p50": seconds / 100.0,
        "p90": seconds / 50.0, "p99": seconds / 20.0, "max": seconds / 10.0});
    let rank = |rank: usize| {
        json!({"rank": rank, "wall": seconds, "observed": seconds, "compute": 0.0, "raw": seconds * 0.5,
        "metadata": seconds * 0.2, "open_file": seconds * 0.1, "flush": seconds * 0.1, "close_file": 0.0,
        "barrier": seconds * 0.1, "blocked": seconds * 0.9, "bytes_written": bytes / ranks as u64, "bytes_read": 0,
        "background": {"busy": seconds * 0.3, "waited": 0.0}})
    };
    let repetition = json!({"ranks": (0..ranks).map(rank).collect::<Vec<_>>()});
    json!({"number": number, "benchmark": "write", "file": "a.h5", "workload": format!("write {bytes} bytes in time steps"),
        "stack": stack, "launcher": "threads", "ranks": ranks, "cache": "warm", "status": "ok", "verified": "yes",
        "warnings": ["a warning"], "bytes": bytes, "observed": spread(seconds), "observed_rate": spread(bytes as f64 / seconds),
        "raw_rate": spread(2.0 * bytes as f64 / seconds), "operations": {"write": call}, "stored": bytes,
        "predicted": {"seconds": seconds * 1.1, "low": seconds * 0.8, "high": seconds * 1.4},
        "repetitions": [repetition.clone(), repetition.clone(), repetition]})
}

fn results(cases: Vec<Value>) -> Value {
    json!({"hyperslab_results": 1, "program": "hyperslab 0.1.0", "command": ["hyperslab", "bench", "w.json"],
        "started": 1_795_054_164.7, "complete": true,
        "machine": {"host": "vm", "processors": 2, "memory": 1u64 << 34, "libraries": {"hdf5": "2.0.0"}}, "cases": cases})
}

fn fixed() -> Value {
    let mut cases = Vec::new();
    for (stack, factor) in [("posix", 1.0), ("hdf5(chunk=64x64)", 1.7), ("hdf5(chunk=128x128)", 1.4), ("zarr", 2.5)] {
        for ranks in [1, 2, 4] {
            cases.push(case(cases.len() + 1, stack, ranks, 1 << 24, 0.03 * factor / f64::from(ranks as u32).sqrt()));
        }
    }
    let mut failed = case(cases.len() + 1, "zarr", 4, 1 << 24, 1.0);
    failed["status"] = json!("failed");
    failed["error"] = json!("the disk is full");
    failed["repetitions"] = json!([]);
    cases.push(failed);
    results(cases)
}

fn load(folder: &Path, name: &str, value: &Value) -> Input {
    let path = folder.join(name);
    fs::write(&path, value.to_string()).unwrap();
    Input::load(&path).unwrap()
}

fn report(values: &[Value]) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let inputs = values.iter().enumerate().map(|(n, value)| load(folder.path(), &format!("{n}.json"), value)).collect();
    let mut report = Report::of(inputs);
    for (n, run) in report.runs.iter_mut().enumerate() {
        run.path = format!("{n}.json");
    }
    report
}

/// Two files: the second slower.
fn two() -> [Value; 2] {
    let mut second = fixed();
    second["started"] = json!("2026-11-20T02:09:24Z");
    second["hyperslab_results"] = json!(2);
    for case in second["cases"].as_array_mut().unwrap() {
        for repetition in case["repetitions"].as_array_mut().unwrap() {
            for rank in repetition["ranks"].as_array_mut().unwrap() {
                rank["observed"] = json!(rank["observed"].as_f64().unwrap() * 1.5);
            }
        }
    }
    [fixed(), second]
}

#[test]
fn fixed_results_give_the_pages_that_were_looked_at() {
    for (name, values) in [("one", vec![fixed()]), ("two", two().to_vec())] {
        let report = report(&values);
        for (form, extension) in [(Form::Html, "html"), (Form::Markdown, "md"), (Form::Csv, "csv"), (Form::Svg, "svg")]
        {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.{extension}"));
            let made = form.of(&report);
            if std::env::var_os("HYPERSLAB_GOLDEN").is_some() {
                fs::write(&path, &made).unwrap();
            }
            let golden = fs::read_to_string(&path).unwrap_or_default();
            assert!(
                made == golden,
                "{} differs: look at the new one, then HYPERSLAB_GOLDEN=1 cargo test -p hyperslab-report --test forms",
                path.display()
            );
        }
    }
}

#[test]
fn verdicts_come_first_and_in_words() {
    let one = report(&[fixed()]);
    assert_eq!(one.verdict, "1 of 13 cases failed; fastest was posix, in 3 of 3 comparisons.");
    let two = report(&two());
    assert!(two.verdict.contains("12 slower and 0 faster of 12 cases"), "{}", two.verdict);
    assert!(two.details.iter().any(|words| words.contains("13 cases in") || words.contains("26 cases in 2 files")));
    let nothing = report(&[results(Vec::new())]);
    assert_eq!(nothing.verdict, "No case succeeded.");
    assert!(Form::Html.of(&nothing).contains("No case succeeded"));
}

#[test]
fn what_was_varied_becomes_a_curve() {
    let report = report(&[fixed()]);
    let page = Form::Html.of(&report);
    for axis in [
        "Rate over ranks",
        "Rate over hdf5.chunk",
        "ideal: as many times faster",
        "Predicted and measured",
        "Behind computation",
    ] {
        assert!(page.contains(axis), "{axis}");
    }
    let mut swept = fixed();
    for (n, case) in swept["cases"].as_array_mut().unwrap().iter_mut().enumerate() {
        case["axes"] = json!([{"name": "blocks", "value": 10 * (n % 3 + 1)}, {"name": "fill", "value": "random"}]);
    }
    assert!(Form::Html.of(&self::report(&[swept])).contains("Rate over blocks"));
}

/// Every text of a results file becomes one that tries to run something.
fn poison(value: &mut Value, text: &str) {
    match value {
        Value::String(old) if !["ok", "failed", "warm"].contains(&old.as_str()) => *old = format!("{text}{old}"),
        Value::Array(list) => list.iter_mut().for_each(|value| poison(value, text)),
        Value::Object(map) => {
            map.values_mut().for_each(|value| poison(value, text));
            if let Some(value) = map.remove("hdf5") {
                map.insert(text.to_owned(), value);
            }
        }
        _ => {}
    }
}

#[test]
fn hostile_results_stay_text() {
    let attacks = [
        "<script>window.pwned=true</script>",
        "</script></style></title><script>window.pwned=true</script>",
        "\"><img src=x onerror=\"window.pwned=true\">",
        "' onmouseover='window.pwned=true' x='",
        "--><svg onload=window.pwned=true>",
        "]]><script>window.pwned=true</script>\u{0}\u{202e}",
        "javascript:alert(1)//`${1}`",
    ];
    let clean = Form::Html.of(&report(&[fixed()]));
    let tags = |page: &str, tag: &str| page.matches(tag).count();
    for attack in attacks {
        let mut hostile = fixed();
        poison(&mut hostile, attack);
        for form in [Form::Html, Form::Svg] {
            let page = form.of(&report(&[hostile.clone()]));
            assert!(!page.contains("<img") && !page.contains("<svg on"), "{attack}");
            let scripts = if form == Form::Html { 1 } else { 0 };
            assert_eq!(
                (tags(&page, "<script"), tags(&page, "</script"), tags(&page, "<style")),
                (scripts, scripts, 1),
                "{attack}"
            );
            assert!(!page.contains("\" onerror") && !page.contains("' onmouseover"), "{attack}");
        }
        let page = Form::Html.of(&report(&[hostile.clone()]));
        assert!(page.contains("<tr data-s=\"ok\">") && tags(&page, "<td") == tags(&clean, "<td"), "{attack}");
        let table = Form::Markdown.of(&report(&[hostile]));
        // Indented lines are code, in which nothing is markup.
        let text = table.lines().filter(|line| !line.starts_with("    ")).collect::<String>();
        assert!(!text.contains("<script") && !text.contains("<img"), "{attack}");
    }
}

#[test]
fn numbers_that_are_none_draw_nothing_odd() {
    for odd in [json!(-1.0), json!(0.0), json!(1e300), json!(1e-320)] {
        let mut file = fixed();
        for case in file["cases"].as_array_mut().unwrap() {
            for key in ["min", "median", "max"] {
                case["observed"][key] = odd.clone();
                case["observed_rate"][key] = odd.clone();
                case["operations"]["write"][key] = odd.clone();
            }
            if let Some(repetition) = case["repetitions"].get_mut(1) {
                repetition["ranks"][0]["observed"] = odd.clone();
            }
        }
        let page = Form::Html.of(&report(&[file.clone(), file]));
        assert!(!page.contains("NaN") && !page.contains("inf\""), "{odd}");
    }
}

#[test]
fn files_that_are_no_results_are_refused_in_plain_words() {
    let folder = tempfile::tempdir().unwrap();
    for (text, words) in [
        ("", "cut short"),
        ("{", "cut short"),
        ("hello", "not JSON"),
        ("[]", "no results of hyperslab"),
        ("{}", "no results of hyperslab"),
        ("{\"hyperslab_results\": 1, \"cases\": 7}", "not what it must be"),
        ("{\"hyperslab_workload\":2,\"ranks\":0}", "0 ranks"),
        ("{\"hyperslab_workload\":2,\"ranks\":1}\n", "no times"),
        ("{\"hyperslab_workload\":2,\"ranks\":1}\n{\"rank\":7,\"do\":\"write\"}", "rank 7"),
    ] {
        let path = folder.path().join("bad.json");
        fs::write(&path, text).unwrap();
        let said = Input::load(&path).unwrap_err().to_string();
        assert!(said.contains(words) && said.contains("bad.json"), "{text}: {said}");
    }
    assert!(Input::load(&folder.path().join("nowhere")).unwrap_err().to_string().contains("try:"));
}

#[test]
fn recordings_and_samples_become_time_lines() {
    let folder = tempfile::tempdir().unwrap();
    let trace = "{\"hyperslab_workload\":2,\"name\":\"t\",\"ranks\":6}\n\
        {\"do\":\"open_file\",\"took\":1000000}\n{\"rank\":1,\"do\":\"write\",\"took\":5000000}\n{\"do\":\"compute\",\"nanoseconds\":2000000}\n";
    fs::write(folder.path().join("t.jsonl"), trace).unwrap();
    let mut file = fixed();
    file["cases"].as_array_mut().unwrap().truncate(1);
    for repetition in 1..=3 {
        let name = format!("samples-case-1-repetition-{repetition}-rank-0.csv");
        fs::write(
            folder.path().join(name),
            "step,operation,start_seconds,seconds,bytes\n0,write,0.0,0.5,10\n1,flush,0.5,0.1,0\nbad\n",
        )
        .unwrap();
    }
    let inputs = vec![load(folder.path(), "results.json", &file), Input::load(&folder.path().join("t.jsonl")).unwrap()];
    let report = Report::of(inputs);
    let titles: Vec<&str> = report.activities.iter().map(|a| a.title.as_str()).collect();
    assert_eq!(titles, ["case 1: write on posix, repetition 2", "recording t"]);
    assert_eq!(report.activities[1].seconds, 0.008);
    let page = Form::Html.of(&report);
    assert!(page.contains("rank 5") && page.contains("in calls, by time and rank"));
}

#[test]
fn pages_are_small() {
    let many = |n: usize| {
        let stacks = ["posix", "hdf5", "zarr", "hdf5(chunk=64x64)"];
        let cases = (0..n).map(|k| {
            let mut case = case(k + 1, stacks[k % 4], 2, 1 << 22, 0.01 + k as f64 * 1e-4);
            case["workload"] = json!(format!("work number {} of those that were planned", k / 4));
            case
        });
        Form::Html.of(&report(&[results(cases.collect())])).len()
    };
    let (hundred, thousands) = (many(100), many(2000));
    assert!(hundred < 300_000, "{hundred}");
    assert!(thousands < 5_000_000, "{thousands}");
}

// Every number on a page

/// All numbers in words: digits, perhaps with a point.
fn numbers(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut number = String::new();
    for c in text.chars().chain([' ']) {
        if c.is_ascii_digit() || (c == '.' && !number.is_empty() && !number.contains('.')) {
            number.push(c);
        } else if !number.is_empty() {
            found.insert(number.trim_end_matches('.').to_owned());
            number.clear();
        }
    }
    found
}

/// The words of a page: what stands between tags and in labels, but for the values beside axes.
fn words_of(page: &str) -> String {
    let mut words = String::new();
    let body = page.split_once("</head>").unwrap().1.split("<script>").next().unwrap();
    let mut rest = body;
    while let Some((before, tag)) = rest.split_once('<') {
        words.push_str(before);
        words.push(' ');
        let (tag, after) = tag.split_once('>').unwrap();
        if let Some((_, label)) = tag.split_once("aria-label=\"") {
            words.push_str(label.split('"').next().unwrap());
            words.push(' ');
        }
        let axis = tag.starts_with("text class=\"k");
        rest = if axis { after.split_once("</text>").unwrap().1 } else { after };
    }
    words
}

/// Every form in which a number of the report may be shown.
fn shown(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Number(number) => {
            let v = number.as_f64().unwrap();
            found.extend(numbers(&number.to_string()));
            for divisor in [1.0, 1024.0, 1_048_576.0, 1_073_741_824.0, 1_099_511_627_776.0] {
                // Sizes are whole bytes.
                found.insert(format!("{:.2}", v.trunc() / divisor));
            }
            for factor in [1.0, 1e3, 1e6, 1e9, 100.0] {
                found.extend((0..=4).map(|digits| format!("{:.digits$}", v * factor)));
            }
        }
        Value::String(text) => found.extend(numbers(text)),
        Value::Array(list) => {
            found.insert(list.len().to_string());
            list.iter().for_each(|value| shown(value, found));
        }
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            found.extend(numbers(key));
            shown(value, found);
        }),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_number_on_the_page_is_in_the_json(
        cases in prop::collection::vec((0..4_usize, 1..5_usize, 1..1_u64 << 33, 1e-6..100.0_f64), 1..12),
        runs in 1..4_usize,
    ) {
        let stacks = ["posix", "hdf5(chunk=64x64)", "hdf5(chunk=128x64)", "async/zarr"];
        let cases: Vec<Value> =
            cases.into_iter().enumerate().map(|(n, (s, r, b, t))| case(n + 1, stacks[s], r, b, t)).collect();
        let report = report(&vec![results(cases); runs]);
        let mut known = BTreeSet::new();
        shown(&serde_json::from_str(&Form::Json.of(&report)).unwrap(), &mut known);
        // What the page itself says: "95 % interval", "90 %", "99 %", "up to 5 %".
        known.extend(["95", "90", "99", "5"].map(str::to_owned));
        let page = Form::Html.of(&report);
        for number in numbers(&words_of(&page)) {
            // Parts of a whole and computed shares are worked out from numbers that are there.
            prop_assert!(known.contains(&number), "{number} is not in the JSON");
        }
    }
}
