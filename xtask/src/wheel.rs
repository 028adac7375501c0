//! `cargo xtask wheel`: the Python package with the program and the HDF5 connector in it, for every Linux of an old enough
//! glibc, checked by auditwheel and in a Python environment that has nothing else.

mod licences;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::arguments::{Arguments, take_value};
use crate::build::PLUGIN;
use crate::setup::{self, PrivatePython, SetupOptions};
use crate::shell;
use crate::workspace::Workspace;

/// The oldest glibc that the wheel runs on: that of RHEL 8, as (major, minor).
const GLIBC: (u32, u32) = (2, 28);

/// What is built into it.
const PACKAGES: [&str; 3] = ["--package=hyperslab-cli", "--package=hyperslab-vol", "--package=hyperslab-python"];
/// The reader of arrays that the package loads.
const READER: &str = "libhyperslab_reader.so";

/// The command `wheel`.
pub fn run(workspace: &Workspace, words: &[String]) -> Result<()> {
    let (out, words) = take_value(words, "--out", "a folder, such as --out dist")?;
    let arguments = Arguments::parse(&words, &["--no-apt"], false)?;
    let options =
        SetupOptions { tests: false, clients: false, long: false, mpi: false, apt: !arguments.has("--no-apt") };
    let environment = setup::prepare(workspace, options)?;
    let here = std::env::current_dir().context("the current folder is gone")?;
    let target = workspace.root().join("target/wheel");
    let out = out.map_or_else(|| target.join("dist"), |folder| here.join(folder));
    fs::create_dir_all(&target).with_context(|| format!("cannot create {}", target.display()))?;
    let python = PrivatePython::open_in(workspace, options, target.join("python"))?;
    python.install("wheel", "the package is linked for older systems, and checked, with them")?;

    println!("\nbuild");
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let binaries = compile(workspace, &environment, &python, &triple)?;

    println!("\npackage");
    let staged = stage(workspace, &target.join("package"), &binaries)?;
    let wheel = pack(workspace, &python, &staged, &out)?;
    audit(&python, &wheel)?;

    println!("\ncheck");
    smoke_test(workspace, options, &target.join("clean"), &wheel)?;
    let bytes = fs::metadata(&wheel)?.len();
    println!("\n{} ({:.1} MB)", wheel.display(), bytes as f64 / 1e6);
    println!("  pip install {}    to use it", wheel.display());
    Ok(())
}

/// Builds program, connector and reader with zig as compiler of C and linker, which knows every glibc; gives back their folder.
fn compile(
    workspace: &Workspace,
    environment: &setup::Environment,
    python: &PrivatePython<'_>,
    triple: &str,
) -> Result<PathBuf> {
    let target = workspace.root().join("target/wheel/cargo");
    let mut command = workspace.cargo(&["zigbuild", "--release"]);
    command.args(PACKAGES);
    environment.apply(&mut command);
    command
        .args(["--target", &format!("{triple}.{}.{}", GLIBC.0, GLIBC.1)])
        .env("CARGO_TARGET_DIR", &target)
        // Debug information would be most of the package.
        .env("CARGO_PROFILE_RELEASE_DEBUG", "0")
        .env("CARGO_PROFILE_RELEASE_STRIP", "symbols")
        .env("PATH", path_with(&python.folder().join("bin"))?);
    shell::run_visibly(&mut command, "read the first error above; docs/python.md says what the build needs")?;
    Ok(target.join(triple).join("release"))
}

fn path_with(first: &Path) -> Result<std::ffi::OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [first.to_owned()].into_iter().chain(std::env::split_paths(&path));
    std::env::join_paths(folders).context("a folder on the PATH has a colon in its name")
}

/// The package's sources with the binaries and licences in their places.
fn stage(workspace: &Workspace, folder: &Path, binaries: &Path) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let root = workspace.root();
    copy_tree(&root.join("python"), folder)?;
    let data = folder.join("src/hyperslab/_data");
    put(&binaries.join("hyperslab"), &data.join("bin/hyperslab"))?;
    put(&binaries.join(READER), &data.join("lib").join(READER))?;
    put(&binaries.join(PLUGIN), &data.join("lib/hyperslab").join(PLUGIN))?;
    let collected = licences::collect(workspace)?;
    let licences = data.join("share/licenses");
    fs::create_dir_all(&licences)?;
    fs::write(licences.join("third-party.txt"), &collected.text)?;
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        fs::copy(root.join(name), folder.join(name)).with_context(|| format!("cannot copy {name}"))?;
    }
    println!("  licences of {} packages, {} without a text of their own", collected.packages, collected.without_text);
    Ok(folder.to_owned())
}

fn put(from: &Path, to: &Path) -> Result<()> {
    let cannot = || format!("cannot copy {} to {}", from.display(), to.display());
    fs::create_dir_all(to.parent().unwrap_or(to)).with_context(cannot)?;
    fs::copy(from, to).with_context(cannot)?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o755)).with_context(cannot)
}

/// Copies a folder without what Python and its tests leave there.
fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        if name == "__pycache__" || name == "_data" || name == "build" || name.to_string_lossy().ends_with(".egg-info")
        {
            continue;
        }
        if path.is_dir() {
            copy_tree(&path, &to.join(name))?;
        } else {
            fs::copy(&path, to.join(name)).with_context(|| format!("cannot copy {}", path.display()))?;
        }
    }
    Ok(())
}

/// Makes the wheel and names it for what is in it: any Python 3, this processor, that glibc.
fn pack(workspace: &Workspace, python: &PrivatePython<'_>, package: &Path, out: &Path) -> Result<PathBuf> {
    let passing = package.join("dist");
    let log = workspace.state().join("log/wheel.txt");
    let hint = "the end of the log says what pip missed";
    let mut build = Command::new(python.interpreter());
    build.args(["-m", "pip", "wheel", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"]);
    shell::run_quietly(build.arg("--wheel-dir").arg(&passing).arg(package), &log, hint)?;
    let plain = only_wheel(&passing)?;
    let platform = format!("manylinux_{}_{}_{}", GLIBC.0, GLIBC.1, std::env::consts::ARCH);
    let mut tag = Command::new(python.interpreter());
    tag.args(["-m", "wheel", "tags", "--remove", "--python-tag", "py3", "--abi-tag", "none", "--platform-tag"]);
    shell::run_quietly(tag.arg(platform).arg(&plain), &log, hint)?;
    let tagged = only_wheel(&passing)?;
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    let wheel = out.join(tagged.file_name().context("a wheel has a name")?);
    fs::copy(&tagged, &wheel).with_context(|| format!("cannot write {}", wheel.display()))?;
    Ok(wheel)
}

fn only_wheel(folder: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut wheels =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "whl"));
    match (wheels.next(), wheels.next()) {
        (Some(wheel), None) => Ok(wheel),
        _ => bail!("{} should hold one wheel", folder.display()),
    }
}

/// Fails unless auditwheel finds that the binaries need no more than the name of the wheel says.
fn audit(python: &PrivatePython<'_>, wheel: &Path) -> Result<()> {
    let mut command = Command::new(python.interpreter());
    let said = shell::output(command.args(["-m", "auditwheel", "show"]).arg(wheel), "pip list in target/wheel/python")?;
    // auditwheel breaks lines where it likes.
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted = format!("manylinux_{}_{}_{}", GLIBC.0, GLIBC.1, std::env::consts::ARCH);
    let consistent = words
        .split("consistent with the following platform tag: \"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .with_context(|| format!("auditwheel says something else than usual: {said}"))?;
    let version = |tag: &str| -> Option<(u32, u32)> {
        let mut numbers = tag.strip_prefix("manylinux_")?.split('_').map(|number| number.parse().ok());
        Some((numbers.next()??, numbers.next()??))
    };
    let found = version(consistent).with_context(|| format!("auditwheel: the wheel is only {consistent}"))?;
    ensure!(found <= GLIBC, "the binaries need more than {wanted} offers: {consistent}");
    println!("  auditwheel: {consistent}, promised {wanted}");
    Ok(())
}

/// Installs the wheel into an environment that has only h5py besides, and has it write and read there.
fn smoke_test(workspace: &Workspace, options: SetupOptions, folder: &Path, wheel: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let clean = PrivatePython::open_in(workspace, options, folder.to_owned())?;
    let log = workspace.state().join("log/wheel-check.txt");
    let mut install = Command::new(clean.interpreter());
    install.args(["-m", "pip", "install", "--disable-pip-version-check", "--prefer-binary", "h5py"]).arg(wheel);
    shell::fetch_quietly(&mut install, &log, "pip config list: where pip finds h5py")?;
    // Nothing of this checkout may help.
    let mut script = Command::new(clean.interpreter());
    script.args(["-c", include_str!("wheel/smoke_test.py")]).current_dir(folder).env_remove("HYPERSLAB_PROGRAM");
    shell::run_visibly(script.env("PATH", folder.join("bin")), "the wheel works in this checkout only")
}
