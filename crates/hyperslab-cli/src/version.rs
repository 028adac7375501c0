//! `hyperslab --version -v`: what this program was built from, and what it finds beside itself.

use hyperslab_bench::provenance;
use serde_json::{Value, json};

/// What `--version` with `-v`, `--verbose` or `--json` and nothing else asks for; otherwise clap answers.
pub fn asked(words: &[String]) -> Option<String> {
    let words = words.get(1..)?;
    let any = |names: &[&str]| words.iter().any(|word| names.contains(&word.as_str()));
    let ours = words
        .iter()
        .all(|word| ["--version", "-V", "-v", "--verbose", "--json", "-Vv", "-vV"].contains(&word.as_str()));
    let (version, more) = (any(&["--version", "-V", "-Vv", "-vV"]), any(&["-v", "--verbose", "--json", "-Vv", "-vV"]));
    (ours && version && more).then(|| if any(&["--json"]) { format!("{:#}", facts()) } else { page() })
}

fn facts() -> Value {
    let build = provenance::build();
    let formats: Vec<&str> =
        hyperslab_formats::formats().iter().filter(|entry| entry.build.is_some()).map(|entry| entry.name).collect();
    let connector = crate::connector::find_plugin();
    json!({
        "version": build.version,
        "commit": build.commit,
        "features": build.features,
        "optimised": !build.debug,
        "target": format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        "libraries": hyperslab_formats::library_versions(),
        "formats": formats,
        "connector": connector.ok().map(|folder| folder.display().to_string()),
    })
}

fn page() -> String {
    let facts = facts();
    let list = |value: &Value| match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
        Value::Object(map) => map
            .iter()
            .map(|(name, version)| format!("{name} {}", version.as_str().unwrap_or("?")))
            .collect::<Vec<_>>()
            .join(", "),
        other => other.as_str().unwrap_or("unknown").to_owned(),
    };
    let optimised = if facts["optimised"] == true { "release" } else { "not optimised, for development" };
    let lines = [
        ("commit", list(&facts["commit"])),
        ("build", format!("{}, {optimised}", list(&facts["target"]))),
        ("features", list(&facts["features"])),
        ("libraries", list(&facts["libraries"])),
        ("formats", list(&facts["formats"])),
        ("connector", facts["connector"].as_str().unwrap_or("not found: hyperslab doctor").to_owned()),
    ];
    let lines = lines.iter().map(|(name, value)| format!("\n  {name:<10} {value}"));
    format!("hyperslab {}{}", list(&facts["version"]), lines.collect::<String>())
}
