//! C programs of `tests/c`, linked with a libhdf5 that the build or the set-up has made.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use libtest_mimic::{Completion, Trial};

use crate::{Outcome, in_modes, long_trial, modes, program};

const LIMIT: Duration = Duration::from_secs(60);
const NO_LIBRARY: &str = "no libhdf5 to link with: cargo build -p hyperslab-cli makes one";

pub fn trials() -> Vec<Trial> {
    let mut trials = in_modes("C programs", serial);
    // A fault that is not mended: docs/connector.md, "When something is not as expected".
    let in_background = modes::ALL.into_iter().filter(|mode| writes_in_background(mode));
    trials.extend(
        in_background
            .map(|mode| long_trial(format!("H5close while writes wait, {mode}"), move || leave(mode, &["library"]))),
    );
    trials
}

/// Whether writes may wait when the program closes libhdf5 by itself.
fn writes_in_background(mode: &str) -> bool {
    mode.contains("async")
}

/// The folder `target`.
pub fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().map(Path::to_owned).unwrap_or_default()
}

/// A file of this name within the results of build scripts of a package.
fn built_by_script(package: &str, file: &str) -> Option<PathBuf> {
    let profiles = ["debug", "release"].map(|profile| target().join(profile).join("build"));
    let folders = profiles.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let ours = folders.filter(|entry| entry.file_name().to_string_lossy().starts_with(package));
    ours.map(|entry| entry.path().join("out").join(file)).find(|path| path.exists())
}

/// A program of `tests/c` with the libhdf5 that the workspace builds, all of it: the connector asks for functions by name.
pub fn program(name: &str) -> Result<Option<PathBuf>, String> {
    let Some(library) = built_by_script("hdf5-metno-src-", "lib/libhdf5.a") else { return Ok(None) };
    let include = library.with_file_name("").join("../include");
    let mut command = Command::new("cc");
    compile(&mut command, name, &include);
    command.arg("-rdynamic").arg("-Wl,--whole-archive").arg(&library).arg("-Wl,--no-whole-archive");
    match built_by_script("libz-sys-", "lib/libz.a") {
        Some(zlib) => command.arg(zlib),
        None => command.arg("-lz"),
    };
    command.args(["-lm", "-ldl", "-lpthread"]);
    build(command, name, "serial").map(Some)
}

pub fn compile(command: &mut Command, name: &str, include: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(name).with_extension("c");
    command
        .args(["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-I"])
        .arg(include)
        .arg(source);
}

pub fn build(mut command: Command, name: &str, sort: &str) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("c-{sort}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    // Several trials build the same program at once; each gets one of its own.
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let made = folder.join(format!("{name}-{number}"));
    program::run(command.arg("-o").arg(&made), LIMIT)?.expect_success(&format!("the C compiler, for {name}.c"))?;
    Ok(made)
}

/// All programs, built once.
fn programs() -> Result<Option<&'static [PathBuf]>, String> {
    static BUILT: OnceLock<Result<Option<Vec<PathBuf>>, String>> = OnceLock::new();
    let built =
        BUILT.get_or_init(|| ["multi", "event_sets", "swmr", "leaving", "reading"].map(program).into_iter().collect());
    built.as_ref().map(|programs| programs.as_deref()).map_err(Clone::clone)
}

fn serial(mode: &str) -> Outcome {
    let all = ["return", "exit", "signal", "file", "fork", "library"];
    leave(mode, if writes_in_background(mode) { &all[..5] } else { &all })
}

/// Runs the programs; with several ways of leaving all of them, else the one that leaves.
fn leave(mode: &str, ways: &[&str]) -> Outcome {
    let Some([multi, event_sets, swmr, leaving, reading]) = programs()? else {
        return Ok(Completion::ignored_with(NO_LIBRARY));
    };
    let folder = program::folder()?;
    let start = |path: &Path, words: &[&str], mode: &str| -> Result<(), String> {
        let mut command = Command::new(path);
        command.arg(folder.path()).args(words);
        let ended = program::run(modes::apply(&mut command, mode, folder.path())?, LIMIT)?;
        let what = format!("{} {} under {mode}", path.display(), words.join(" "));
        // Nothing that the connector does for itself is told to the user as an error of HDF5.
        if ended.status.success() && ended.errors.contains("HDF5-DIAG") {
            return Err(format!("{what} said\n{}", ended.errors));
        }
        ended.expect_success(&what).map(|_| ())
    };
    if ways.len() > 1 {
        for path in [multi, event_sets, swmr] {
            start(path, &[], mode)?;
        }
    }
    for how in ways {
        start(leaving, &[how], mode)?;
        start(reading, &["leaving"], modes::PLAIN)
            .map_err(|why| format!("after leaving by {how} under {mode}: {why}"))?;
    }
    Ok(Completion::Completed)
}
