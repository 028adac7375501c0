//! docs/layers.md and `hyperslab formats` say the same about options of layers.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

/// Of each layer that has a table: options and their defaults.
fn documented() -> BTreeMap<String, BTreeMap<String, String>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/layers.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (mut layers, mut layer, mut in_table) = (BTreeMap::new(), String::new(), false);
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            layer = title.split('`').nth(1).unwrap_or_default().to_owned();
        }
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        in_table = line.starts_with('|') && (in_table || cells == ["option", "default", "meaning"]);
        if let [name, default, _] = cells[..]
            && in_table
            && name.starts_with('`')
        {
            let options: &mut BTreeMap<_, _> = layers.entry(layer.clone()).or_default();
            options.insert(name.replace('`', ""), plain(default));
        }
    }
    layers
}

/// Without marks.
fn plain(text: &str) -> String {
    text.replace(['`', ','], "").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_page_has_every_option_with_its_default() {
    let documented = documented();
    assert!(documented.len() >= 6, "{documented:?}");
    for entry in hyperslab_layers::layers() {
        let Some(page) = documented.get(entry.name) else { continue };
        let table: BTreeMap<String, String> =
            entry.options.iter().map(|option| (option.name.to_owned(), plain(option.default))).collect();
        assert_eq!(*page, table, "{}", entry.name);
    }
}
