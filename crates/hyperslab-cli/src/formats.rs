//! `hyperslab formats`.

use hyperslab_core::OptionSpec;
use std::process::ExitCode;

/// Lists every format and layer with its options.
pub fn run() -> anyhow::Result<ExitCode> {
    println!("Formats. Write options in brackets: --stack 'hdf5(chunk=64x64,deflate=4)'.\n");
    for entry in hyperslab_formats::formats() {
        let there = if entry.build.is_some() { "compiled in" } else { "NOT compiled in" };
        println!("{} ({there}): {}", entry.name, entry.about);
        if entry.build.is_some() {
            list(entry.options);
        } else {
            println!("  {}\n", entry.how_to_build());
        }
    }
    println!("Layers. Write them before what they wrap: --stack 'twophase(aggregators=2)/posix'.\n");
    for entry in hyperslab_layers::layers() {
        println!("{}: {}", entry.name, entry.about);
        list(entry.options);
    }
    Ok(ExitCode::SUCCESS)
}

fn list(options: &[OptionSpec]) {
    if options.is_empty() {
        println!("  no options");
    }
    for option in options {
        println!("  {}={}  (default: {})\n      {}", option.name, option.value, option.default, option.about);
    }
    println!();
}
