//! `hyperslab formats`.

use std::process::ExitCode;

/// Lists every format with its options.
pub fn run() -> anyhow::Result<ExitCode> {
    println!("Formats. Write options in brackets: --stack 'hdf5(chunk=64x64,deflate=4)'.\n");
    for entry in hyperslab_formats::formats() {
        let there = if entry.build.is_some() { "compiled in" } else { "NOT compiled in" };
        println!("{} ({there}): {}", entry.name, entry.about);
        if entry.build.is_none() {
            println!("  build with --features {}\n", entry.name);
            continue;
        }
        if entry.options.is_empty() {
            println!("  no options\n");
            continue;
        }
        for option in entry.options {
            println!("  {}={}  (default: {})\n      {}", option.name, option.value, option.default, option.about);
        }
        println!();
    }
    Ok(ExitCode::SUCCESS)
}
