//! `hyperslab formats`.

use crate::table::{Align, Table};
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
        let mut table = Table::new(&[
            ("  option", Align::Left),
            ("value", Align::Left),
            ("default", Align::Left),
            ("meaning", Align::Left),
        ]);
        for option in entry.options {
            let cells = [option.name, option.value, option.default, option.about];
            table.row(
                cells.iter().enumerate().map(|(i, c)| if i == 0 { format!("  {c}") } else { c.to_string() }).collect(),
            );
        }
        println!("{}", table.render());
    }
    Ok(ExitCode::SUCCESS)
}
