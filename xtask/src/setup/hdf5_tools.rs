//! HDF5's own tools (h5dump, h5ls, h5repack, h5diff) of a version that knows connectors, which is newer than many systems have.
//! On Debian they come from a later release, with all libraries that they need, unpacked into `target/hdf5-tools`: nothing of the
//! system is changed, and root is not needed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Environment, SetupOptions, say};
use crate::shell;
use crate::workspace::Workspace;

/// The first release of Debian whose tools know connectors.
const RELEASE: &str = "trixie";
/// The first version that knows connectors as ours.
const OLDEST: (u32, u32) = (1, 14);
const TOOLS: [&str; 5] = ["h5dump", "h5ls", "h5repack", "h5diff", "h5stat"];
/// Where the tests look for them; a user's own folder is named by HYPERSLAB_HDF5_TOOLS.
const FOLDER: &str = "target/hdf5-tools";

/// Provides the tools. Optional: a failed attempt is remembered, so that the next set-up is quick.
pub fn provide(workspace: &Workspace, options: SetupOptions, environment: &mut Environment) {
    let folder = workspace.root().join(FOLDER);
    let named = std::env::var_os("HYPERSLAB_HDF5_TOOLS").map(PathBuf::from);
    let found = named.into_iter().chain([folder.clone()]).map(|folder| folder.join("h5dump"));
    if let Some((path, version)) = found.chain(shell::find_program("h5dump")).find_map(new_enough) {
        return say("found", format!("tools of HDF5 {version} ({})", workspace.display(&path)));
    }
    let failed_before = workspace.state().join("hdf5-tools-cannot-be-had");
    if options.apt && !failed_before.exists() {
        say("fetch", format!("tools of HDF5 from Debian {RELEASE} into {FOLDER}: the connector is tested under them"));
        match fetch(workspace, &folder) {
            Ok(()) => return,
            Err(error) => {
                say("note", format!("going on without newer tools of HDF5: {error:#}"));
                super::remember(&failed_before);
            }
        }
    }
    environment.missing.push(
        "h5dump, h5ls, h5repack and h5diff of HDF5 1.14 or newer: the package hdf5 of conda-forge has them, on the PATH or in \
         HYPERSLAB_HDF5_TOOLS"
            .to_owned(),
    );
}

/// The tool and its version, if it runs and is new enough.
fn new_enough(h5dump: PathBuf) -> Option<(PathBuf, String)> {
    let text = shell::output(Command::new(&h5dump).arg("--version"), "").ok()?;
    let version = text.split_whitespace().next_back()?.to_owned();
    let mut numbers = version.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    ((numbers.next()?, numbers.next()?) >= OLDEST).then_some((h5dump, version))
}

/// Downloads and unpacks into a folder beside, which gets its name when everything in it works.
fn fetch(workspace: &Workspace, folder: &Path) -> Result<()> {
    let growing = folder.with_extension("part");
    if growing.exists() {
        fs::remove_dir_all(&growing).with_context(|| format!("cannot remove {}", growing.display()))?;
    }
    download(workspace, &growing)?;
    let root = growing.join("root");
    for package in packages(&growing)? {
        shell::output(Command::new("dpkg-deb").arg("--extract").args([&package, &root]), "--no-apt leaves this out")?;
    }
    let loader = find(&root, "ld-linux-x86-64.so.2").context("no loader among the libraries")?;
    let libraries = loader.parent().context("the loader lies in no folder")?;
    // The tools need the C library of their release, so they are started by its loader.
    for tool in TOOLS {
        let at = |path: &Path| path.strip_prefix(&growing).unwrap_or(path).display().to_string();
        let script = format!(
            "#!/bin/sh\nhere=$(cd \"$(dirname \"$0\")\" && pwd)\nexec \"$here/{}\" --library-path \"$here/{}\" \"$here/root/usr/bin/{tool}\" \"$@\"\n",
            at(&loader),
            at(libraries),
        );
        let path = growing.join(tool);
        fs::write(&path, script).with_context(|| format!("cannot write {}", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    if new_enough(growing.join("h5dump")).is_none() {
        bail!("what was unpacked does not run: {}", growing.display());
    }
    fs::remove_dir_all(growing.join("apt")).ok();
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::rename(&growing, folder).with_context(|| format!("cannot rename {}", growing.display()))
}

/// The packages and everything that they need, with apt's state in a folder of our own.
fn download(workspace: &Workspace, folder: &Path) -> Result<()> {
    if cfg!(not(target_arch = "x86_64")) {
        bail!("known for x86_64 only");
    }
    let apt = folder.join("apt");
    for inside in ["lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(apt.join(inside)).with_context(|| format!("cannot create {}", apt.display()))?;
    }
    let source =
        format!("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {} {RELEASE} main\n", archive()?);
    fs::write(apt.join("sources.list"), source)?;
    fs::write(apt.join("status"), "")?;
    let settings = [
        ("Dir::Etc::SourceList", "sources.list"),
        ("Dir::State::Lists", "lists"),
        ("Dir::Cache", "cache"),
        ("Dir::State::Status", "status"),
    ];
    let apt_get = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        for (name, file) in settings {
            command.arg("-o").arg(format!("{name}={}", apt.join(file).display()));
        }
        // The user that apt downloads as may not enter our folder.
        command.args(["-o", "Dir::Etc::SourceParts=/dev/null", "-o", "APT::Sandbox::User="]);
        command.args(["-o", "Debug::NoLocking=yes"]).args(words).env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    let log = workspace.state().join("log/hdf5-tools.txt");
    let hint = "--no-apt leaves this out";
    shell::fetch_quietly(&mut apt_get(&["update"]), &log, hint)?;
    let words = ["install", "--download-only", "--yes", "--no-install-recommends", "hdf5-tools"];
    shell::fetch_quietly(&mut apt_get(&words), &log, hint)
}

/// Where this machine gets the packages of Debian from.
fn archive() -> Result<String> {
    let mut command = Command::new("apt-get");
    command.args(["indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)", "Created-By: Packages"]);
    let text = shell::output(&mut command, "apt-get update")?;
    let debian = text.lines().find_map(|line| line.strip_prefix("Debian|Debian|"));
    debian.map(str::to_owned).context("this machine has no packages of Debian")
}

fn packages(folder: &Path) -> Result<Vec<PathBuf>> {
    let archives = folder.join("apt/cache/archives");
    let entries = fs::read_dir(&archives).with_context(|| format!("cannot list {}", archives.display()))?;
    let files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    Ok(files.into_iter().filter(|path| path.extension().is_some_and(|name| name == "deb")).collect())
}

/// The first file of that name below `folder`; links to folders are not followed.
fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries: Vec<_> = fs::read_dir(folder).ok()?.flatten().collect();
    let is_file = |path: &Path| path.symlink_metadata().is_ok_and(|kind| kind.is_file());
    let here = entries.iter().map(fs::DirEntry::path).find(|path| path.ends_with(name) && is_file(path));
    let folders = entries.iter().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    here.or_else(|| folders.map(fs::DirEntry::path).find_map(|folder| find(&folder, name)))
}
