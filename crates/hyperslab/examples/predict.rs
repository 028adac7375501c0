//! Predicts a recorded workload on several stacks, from the profile that `hyperslab train` made:
//! `cargo run -p hyperslab --example predict -- PROFILE RECORDING`.
#![allow(clippy::print_stdout, reason = "an example shows its result")]

use hyperslab::{Forecast, Profile, Result};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(profile), Some(recording)) = (arguments.next(), arguments.next()) else {
        println!("usage: predict PROFILE RECORDING");
        println!("hyperslab train makes a profile in ~/.local/state/hyperslab/profile.json,");
        println!("hyperslab trace -- COMMAND a recording");
        return Ok(());
    };
    let text = std::fs::read_to_string(&profile).expect("the profile is readable");
    let profile = Profile::from_json(&text)?;
    let workload = hyperslab::load_workload(&recording)?;
    for stack in ["posix", "hdf5", "hdf5(plane=on)", "zarr"] {
        let forecast = Forecast::of(&workload, stack, &profile)?;
        println!("{stack}: {:.2?}, at least {:.2?}, at most {:.2?}", forecast.time, forecast.low, forecast.high);
    }
    Ok(())
}
