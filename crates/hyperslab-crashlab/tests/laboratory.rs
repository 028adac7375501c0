//! The ordinary run of the crash laboratory: some images and kills of each mode that promises something.
//!
//! `HYPERSLAB_PYTHON` names a Python with h5py; without it nothing is run. The ignored trial is the long run.
#![allow(clippy::print_stdout)]

use hyperslab_crashlab::Options;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::path::PathBuf;
use std::process::Command;

/// Words of the laboratory for each trial of the ordinary run.
const ORDINARY: [(&str, &[&str]); 4] = [
    ("images, safe", &["--mode", "plain,safe", "--images", "200", "--kills", "0"]),
    (
        "images, safe with writes behind the program",
        &["--mode", "async-safe,cache-safe", "--images", "30", "--kills", "0"],
    ),
    ("images, log", &["--mode", "log,log-dir,log-small", "--images", "140", "--kills", "0"]),
    ("kills", &["--mode", "safe,log", "--images", "0", "--kills", "12"]),
];

fn main() {
    let mut arguments = Arguments::from_args();
    // Each trial uses all cores.
    arguments.test_threads = Some(1);
    let mut trials: Vec<Trial> =
        ORDINARY.into_iter().map(|(name, words)| Trial::ignorable_test(name, move || run(words))).collect();
    let long = "long run [takes minutes: cargo xtask test --long]";
    trials.push(Trial::ignorable_test(long, || run(&["--long", "--power", "200"])).with_ignored_flag(true));
    libtest_mimic::run(&arguments, trials).exit();
}

fn run(words: &[&str]) -> Result<Completion, Failed> {
    if std::env::var_os("HYPERSLAB_PYTHON").is_none() {
        return Ok(Completion::ignored_with("HYPERSLAB_PYTHON names no Python with h5py"));
    }
    let built = built()?;
    let mut options = <Options as clap::Parser>::try_parse_from(["crashlab"].iter().chain(words))?;
    options.built = Some(built);
    match hyperslab_crashlab::run(&options).map_err(|error| format!("{error:#}"))? {
        true => Ok(Completion::Completed),
        false => Err("a promise was broken: see the table".into()),
    }
}

/// The folder of built things. The connector is there, since this test depends on it; the others are built where missing.
fn built() -> Result<PathBuf, Failed> {
    let program = std::env::current_exe()?;
    let folder = program.parent().and_then(|deps| deps.parent()).ok_or("where is this program?")?.to_owned();
    let cargo = |package: &str| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
        let words = ["build", "--quiet", "--package", package];
        Command::new(cargo).args(words).current_dir(env!("CARGO_MANIFEST_DIR")).status()
    };
    // It is small; a stale one would record wrongly.
    if !cargo("hyperslab-faultshim")?.success() {
        return Err("hyperslab-faultshim does not build".into());
    }
    // Tests of the whole workspace have it built already.
    if !folder.join("hyperslab").is_file() && !cargo("hyperslab-cli")?.success() {
        return Err("hyperslab does not build".into());
    }
    Ok(folder)
}
