//! `cargo xtask tarball`: everything for clusters without root and network in one archive with an install script, and beside it
//! a recipe for Spack and a definition for Apptainer.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::arguments::{Arguments, take_value};
use crate::portable::{GLIBC, Portable, copy_tree, remove};
use crate::setup::{self, SetupOptions};
use crate::workspace::Workspace;
use crate::{descriptions, licences, shell};

/// The command `tarball`.
pub fn run(workspace: &Workspace, words: &[String]) -> Result<()> {
    let (out, words) = take_value(words, "--out", "a folder, such as --out dist")?;
    let (from, words) = take_value(&words, "--from", "a folder of cargo's, such as --from target/debug")?;
    let arguments = Arguments::parse(&words, &["--no-apt"], false)?;
    let here = std::env::current_dir().context("the current folder is gone")?;
    let binaries = match from {
        // Of use on machines like this one.
        Some(folder) => Portable::existing(here.join(folder))?,
        None => {
            let options =
                SetupOptions { tests: false, clients: false, long: false, mpi: false, apt: !arguments.has("--no-apt") };
            let environment = setup::prepare(workspace, options)?;
            Portable::build(workspace, &environment, &Portable::tools(workspace, options)?)?
        }
    };
    let out = out.map_or_else(|| workspace.root().join("target/tarball"), |folder| here.join(folder));

    println!("\npackage");
    let tarball = Tarball::new(workspace)?;
    let archive = tarball.pack(workspace, &binaries, &out)?;
    println!("  {} ({:.1} MB)", archive.display(), fs::metadata(&archive)?.len() as f64 / 1e6);

    println!("\ncheck");
    let check = out.join("check");
    remove(&check)?;
    tarball.smoke_test(workspace, &archive, &check)?;
    remove(&check)
}

/// What is filled in where packaging/ has a name between @.
struct Tarball {
    version: String,
    /// The name of the folder in the archive.
    folder: String,
}

impl Tarball {
    fn new(workspace: &Workspace) -> Result<Self> {
        let metadata = workspace.metadata()?;
        let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
        let version = packages.iter().find(|package| package["name"] == "hyperslab-cli");
        let version =
            version.and_then(|package| package["version"].as_str()).context("hyperslab-cli has no version")?;
        Ok(Self {
            version: version.to_owned(),
            folder: format!("hyperslab-{version}-linux-{}", std::env::consts::ARCH),
        })
    }

    fn archive(&self) -> String {
        format!("{}.tar.gz", self.folder)
    }

    /// A file of packaging/ with its places filled in; `@PREFIX@` is for the install script.
    fn filled(&self, workspace: &Workspace, name: &str, digest: &str) -> Result<String> {
        let path = workspace.root().join("packaging").join(name);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let glibc = format!("{}.{}", GLIBC.0, GLIBC.1);
        let places = [
            ("@VERSION@", self.version.as_str()),
            ("@ARCH@", std::env::consts::ARCH),
            ("@GLIBC@", &glibc),
            ("@FOLDER@", &self.folder),
            ("@ARCHIVE@", &self.archive()),
            ("@SHA256@", digest),
        ];
        Ok(places.iter().fold(text, |text, (place, value)| text.replace(place, value)))
    }

    /// Makes the archive, and beside it what facilities build of it.
    fn pack(&self, workspace: &Workspace, binaries: &Portable, out: &Path) -> Result<PathBuf> {
        let folder = out.join(&self.folder);
        remove(&folder)?;
        self.stage(workspace, binaries, &folder)?;
        let archive = out.join(self.archive());
        let mut tar = Command::new("tar");
        tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "-C"]).arg(out);
        tar.arg("-czf").arg(&archive).arg(&self.folder);
        shell::output(&mut tar, "GNU tar")?;
        remove(&folder)?;
        let digest = shell::output(Command::new("sha256sum").arg(&archive), "sha256sum of coreutils")?;
        let digest = digest.split_whitespace().next().context("sha256sum says nothing")?;
        let repository = out.join("spack/spack_repo/hyperslab");
        let recipe = repository.join("packages/hyperslab");
        fs::create_dir_all(&recipe).with_context(|| format!("cannot make {}", recipe.display()))?;
        fs::write(repository.join("repo.yaml"), self.filled(workspace, "spack/repo.yaml", digest)?)?;
        fs::write(recipe.join("package.py"), self.filled(workspace, "spack/package.py", digest)?)?;
        fs::write(out.join("apptainer.def"), self.filled(workspace, "apptainer.def", digest)?)?;
        Ok(archive)
    }

    /// What the archive holds, as it will lie below a prefix, with the list of it.
    fn stage(&self, workspace: &Workspace, binaries: &Portable, folder: &Path) -> Result<()> {
        let root = workspace.root();
        binaries.put_into(folder)?;
        let share = folder.join("share");
        descriptions::write(&binaries.program(), &share)?;
        copy_tree(&root.join("python/src/hyperslab"), &folder.join("lib/hyperslab-python/hyperslab"))?;
        let licences = licences::collect(workspace)?.write_into(workspace, &share.join("licenses/hyperslab"))?;
        println!("  {licences}");
        copy_tree(&root.join("docs"), &share.join("doc/hyperslab"))?;
        remove(&share.join("doc/hyperslab/runs"))?;
        let mut files = Vec::new();
        list(folder, folder, &mut files)?;
        files.sort();
        fs::write(folder.join("files"), files.join("\n") + "\n")?;
        for name in ["install.sh", "modulefile.lua", "modulefile.tcl"] {
            fs::write(folder.join(name), self.filled(workspace, name, "")?)?;
            // Permissions of the original.
            let permissions = fs::metadata(root.join("packaging").join(name))?.permissions();
            fs::set_permissions(folder.join(name), permissions)?;
        }
        Ok(())
    }

    /// Unpacks the archive, installs it with module files, has what was installed work, and removes it again.
    fn smoke_test(&self, workspace: &Workspace, archive: &Path, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        shell::output(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(folder), "GNU tar")?;
        let (prefix, modules) = (folder.join("prefix with spaces"), folder.join("modules"));
        let script = folder.join(&self.folder).join("install.sh");
        let mut install = Command::new(&script);
        install.arg("--prefix").arg(&prefix).arg("--modules").arg(&modules);
        shell::run_visibly(&mut install, "packaging/install.sh")?;
        let mut works = Command::new("sh");
        works.arg(workspace.root().join("packaging/smoke_test.sh")).arg(&prefix).arg(&modules).env_clear();
        shell::run_visibly(&mut works, "packaging/smoke_test.sh: what was installed works in this checkout only")?;
        // A second time over it, as an update does.
        shell::output(&mut install, "packaging/install.sh")?;
        install.arg("--remove");
        shell::output(&mut install, "packaging/install.sh --remove")?;
        let left: Vec<_> = [prefix, modules.join("hyperslab")].into_iter().filter(|path| path.exists()).collect();
        anyhow::ensure!(left.is_empty(), "install.sh --remove leaves {left:?}");
        println!("  installed, used, updated and removed");
        Ok(())
    }
}

/// All files below a folder, as paths from `root`.
fn list(root: &Path, folder: &Path, files: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            list(root, &path, files)?;
        } else if let Ok(name) = path.strip_prefix(root) {
            files.push(name.to_str().context("a file's name is no text")?.to_owned());
        }
    }
    Ok(())
}
