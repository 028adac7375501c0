//! The libraries of a program, found as the dynamic linker would, without running anything of the program.

use super::elf::Elf;
use crate::doctor::building::run_text;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs with more libraries than this are not looked through to the end.
const MOST: usize = 2000;
const USUAL: [&str; 4] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// Where the linker searches besides what a file says.
struct Search {
    environment: Vec<PathBuf>,
    /// By name, from the linker's own list.
    known: BTreeMap<String, PathBuf>,
}

/// The first library, near the program first, that `wanted` takes; and names of libraries that are nowhere.
pub fn find(path: &Path, program: Elf, wanted: impl Fn(&Elf) -> bool) -> (Option<(PathBuf, Elf)>, Vec<String>) {
    let search = Search::new();
    let mut queue = VecDeque::from([(path.to_owned(), program, Vec::new())]);
    let (mut seen, mut missing) = (HashSet::new(), Vec::new());
    while let Some((path, elf, inherited)) = queue.pop_front() {
        // An RPATH holds for what its libraries need, too; a RUNPATH does not.
        let mut rpath = if elf.runpath.is_empty() { expand(&elf.rpath, &path) } else { Vec::new() };
        rpath.extend(inherited);
        let runpath = expand(&elf.runpath, &path);
        for name in &elf.needed {
            if seen.len() >= MOST || !seen.insert(name.clone()) {
                continue;
            }
            let found = search.locate(name, &rpath, &runpath);
            match found.and_then(|path| Some((Elf::read(&path).ok()?, path))) {
                Some((library, path)) if wanted(&library) => return (Some((path, library)), missing),
                Some((library, path)) => queue.push_back((path, library, rpath.clone())),
                None => missing.push(name.clone()),
            }
        }
    }
    (None, missing)
}

impl Search {
    fn new() -> Self {
        let environment = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let environment = std::env::split_paths(&environment).filter(|path| !path.as_os_str().is_empty()).collect();
        let list = ["ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig"];
        let list = list.iter().find_map(|program| run_text(Command::new(program).arg("-p"))).unwrap_or_default();
        let known = list.lines().filter_map(|line| {
            let (name, path) = line.trim().split_once(" => ")?;
            Some((name.split_whitespace().next()?.to_owned(), PathBuf::from(path)))
        });
        // The first of a name is the one for this machine.
        let known = known.collect::<Vec<_>>().into_iter().rev().collect();
        Self { environment, known }
    }

    fn locate(&self, name: &str, rpath: &[PathBuf], runpath: &[PathBuf]) -> Option<PathBuf> {
        if name.contains('/') {
            return Some(PathBuf::from(name)).filter(|path| path.is_file());
        }
        let said = rpath.iter().chain(&self.environment).chain(runpath).map(|folder| folder.join(name));
        let usual = USUAL.iter().map(|folder| Path::new(folder).join(name));
        said.chain(self.known.get(name).cloned()).chain(usual).find(|path| path.is_file())
    }
}

/// `$ORIGIN` is the folder of the file that says it.
fn expand(folders: &[String], file: &Path) -> Vec<PathBuf> {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let origin = file.parent().unwrap_or(Path::new("/")).display().to_string();
    folders.iter().map(|folder| folder.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin).into()).collect()
}
