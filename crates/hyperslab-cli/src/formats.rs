//! `hyperslab formats`: what there is, and all about one of them.

use crate::table::wrapped;
use crate::terminal;
use anyhow::{Result, bail};
use clap::Args;
use hyperslab_core::{OptionSpec, suggest};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Lines are not longer than this, however wide the terminal: nobody reads longer ones with pleasure.
const WIDEST: usize = 100;

/// Options of `formats`.
#[derive(Debug, Args)]
pub struct FormatsOptions {
    /// Only this format or layer, on a page of its own
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Lists every format and layer with its options.
pub fn run(options: &FormatsOptions) -> Result<ExitCode> {
    let formats = hyperslab_formats::formats();
    let layers = hyperslab_layers::layers();
    let asked = |name: &str| options.name.as_deref().is_none_or(|asked| asked == name);
    let known = formats.iter().map(|entry| entry.name).chain(layers.iter().map(|entry| entry.name));
    if let Some(name) = options.name.as_deref().filter(|name| !known.clone().any(|known| known == *name)) {
        bail!("there is no format or layer {name:?}\n  try: {}", suggest::hint(name, known));
    }
    if options.json {
        let format = formats
            .iter()
            .filter(|e| asked(e.name))
            .map(|entry| document("format", entry.name, entry.about, entry.options, entry.build.is_some()));
        let layer = layers.iter().filter(|e| asked(e.name));
        let layer = layer.map(|entry| document("layer", entry.name, entry.about, entry.options, true));
        println!("{:#}", Value::Array(format.chain(layer).collect()));
        return Ok(ExitCode::SUCCESS);
    }
    let all = options.name.is_none();
    if all {
        say("Formats. Write options in brackets: --stack 'hdf5(chunk=64x64,deflate=4)'.\n", 0);
    }
    for entry in formats.iter().filter(|entry| asked(entry.name)) {
        let there = if entry.build.is_some() { "compiled in" } else { "NOT compiled in" };
        say(&format!("{} ({there}): {}", entry.name, entry.about), 2);
        if entry.build.is_some() {
            list(entry.options);
        } else {
            say(&format!("  {}\n", entry.how_to_build), 2);
        }
        if !all {
            say(&format!("Write it as --stack {}", example(entry.name, entry.options, "")), 2);
        }
    }
    if all {
        say("Layers. Write them before what they wrap: --stack 'twophase(aggregators=2)/posix'.\n", 0);
    }
    for entry in layers.iter().filter(|entry| asked(entry.name)) {
        say(&format!("{}: {}", entry.name, entry.about), 2);
        list(entry.options);
        if !all {
            say(&format!("Write it as --stack {}", example(entry.name, entry.options, "/hdf5")), 2);
            println!("More: docs/layers.md");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn document(kind: &str, name: &str, about: &str, options: &[OptionSpec], there: bool) -> Value {
    let option = |o: &OptionSpec| json!({"name": o.name, "value": o.value, "default": o.default, "about": o.about});
    let options: Vec<Value> = options.iter().map(option).collect();
    json!({"kind": kind, "name": name, "about": about, "compiled_in": there, "options": options})
}

/// How the first option is written.
fn example(name: &str, options: &[OptionSpec], below: &str) -> String {
    match options.first() {
        Some(option) => format!("'{name}({}={}){below}'", option.name, option.value),
        None => format!("{name}{below}"),
    }
}

fn list(options: &[OptionSpec]) {
    if options.is_empty() {
        println!("  no options");
    }
    for option in options {
        say(&format!("  {}={}  (default: {})", option.name, option.value, option.default), 6);
        say(&format!("      {}", option.about), 6);
    }
    println!();
}

fn say(text: &str, indent: usize) {
    let width = terminal::width().map_or(usize::MAX, |width| width.min(WIDEST));
    text.split('\n').for_each(|line| print!("{}", wrapped(line, width, indent)));
}
