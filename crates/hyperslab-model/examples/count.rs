//! Prints what a workload file would make stacks do: `cargo run -p hyperslab-model --example count -- FILE STACKS`.
#![allow(clippy::print_stdout)]

use hyperslab_core::workload::JsonLines;
use hyperslab_core::{Error, Result, parse_stacks};
use hyperslab_model::count;
use std::io::BufReader;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, stacks] = arguments.as_slice() else {
        return Err(Error::invalid("count", "give a workload file and stacks such as 'hdf5,zarr(chunk=64x64)'"));
    };
    let file = file.clone();
    let open = move || -> std::io::Result<Box<dyn std::io::BufRead + Send>> {
        Ok(Box::new(BufReader::new(std::fs::File::open(&file)?)))
    };
    let workload = JsonLines::workload(Box::new(open))?;
    for stack in parse_stacks(stacks)? {
        let costs = count(&workload, &hyperslab::configuration(&stack)?)?;
        println!("{stack}");
        for (name, number) in costs.total().named() {
            println!("  {name:20} {number}");
        }
    }
    Ok(())
}
