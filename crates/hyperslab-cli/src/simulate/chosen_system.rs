//! The system of a simulation: described here, in a file, or this machine.

use super::SimulateOptions;
use crate::table::{Align, Table, wrapped};
use anyhow::{Context, Result, bail};
use hyperslab_advisor::profile_path;
use hyperslab_sim::{Sourced, System, builtin, builtin_names, template};
use std::fs;
use std::path::Path;

/// The one that is asked for, with files where they are asked to be.
pub fn of(options: &SimulateOptions) -> Result<System> {
    let system = load(&options.system)?;
    Ok(if options.burst_buffer { system.at_burst_buffer()? } else { system })
}

/// By its name, or from a file.
pub fn load(name: &str) -> Result<System> {
    if name == "laptop" {
        return laptop();
    }
    let is_file = name.contains(['/', '.']) || Path::new(name).is_file();
    if !is_file || builtin_names().contains(&name) {
        return Ok(builtin(name)?);
    }
    let failed = || format!("read {name}");
    let metadata = fs::metadata(name).with_context(failed)?;
    if !metadata.is_file() || metadata.len() > 1 << 20 {
        bail!("{name}: a description of a system is a file of at most 1 MiB");
    }
    let text = fs::read_to_string(name).with_context(failed)?;
    System::parse(&text).with_context(|| name.to_owned())
}

/// All systems, with how much of each is published.
pub fn list() -> Result<String> {
    let mut table = Table::new(&[
        ("system", Align::Left),
        ("nodes", Align::Right),
        ("targets", Align::Right),
        ("assumed", Align::Right),
        ("calibrated", Align::Left),
    ]);
    for name in builtin_names() {
        let system = builtin(name)?;
        let figures = system.figures();
        let assumed = figures.iter().filter(|(_, value, _)| value.is_assumed()).count();
        table.row(vec![
            name.into(),
            system.nodes.count.value.to_string(),
            system.targets().to_string(),
            format!("{assumed} of {}", figures.len()),
            if system.calibration.runs > 0 { format!("{} runs", system.calibration.runs) } else { "no".into() },
        ]);
    }
    let mut words = String::new();
    for name in builtin_names() {
        words += &wrapped(&format!("{name}: {}", builtin(name)?.about), 80, 2);
    }
    words += "laptop: this machine, from the profile that hyperslab train makes\n\n";
    let assumed =
        "assumed: figures that nobody has published; --template --system NAME prints all of them with their sources.";
    words += &wrapped(assumed, 80, 0);
    Ok(table.render() + "\n" + &words)
}

/// This machine: one node, one server, both the machine itself.
fn laptop() -> Result<System> {
    let path = profile_path::usual()?;
    let profile =
        profile_path::load(&path, Path::new("."), true).context("--system laptop is made of this machine's profile")?;
    let Some(rate) = profile.copy_rate else {
        bail!("{} says nothing of copies in memory; run hyperslab train again", path.display());
    };
    let measured = |value: f64| Sourced::new(value, format!("measured: {}", path.display()));
    let mut system = template()?;
    system.name = "laptop".into();
    system.about = format!("this machine: {}", profile.machine.processor);
    system.nodes.count = measured(1.0);
    system.nodes.ranks = measured(1e5);
    system.nodes.copy_rate = measured(rate);
    system.nodes.link_rate = measured(rate);
    system.nodes.client_cache = measured(profile.machine.memory as f64 / 4.0);
    let one = || Sourced::new(1.0, "this machine itself");
    (system.storage.servers, system.storage.targets) = (one(), one());
    (system.metadata.servers, system.storage.stripe_count) = (one(), one());
    system.storage.server_rate = measured(rate);
    let cached = || Sourced::new(rate / 2.0, "assumed: files are in memory, and copied twice");
    (system.storage.write_rate, system.storage.read_rate) = (cached(), cached());
    system.metadata.open_seconds = Sourced::new(1e-3, "assumed: making a file of a local file system");
    system.timing = system.timing.faster(1000.0);
    Ok(system)
}
