//! The options of mdtest.

use super::tree::Tree;
use crate::size;
use crate::warnings::Warnings;
use hyperslab_core::{Error, Result};

/// Whether an option takes a value, is done, and what it means.
type Line = (char, Option<&'static str>, bool, &'static str);

/// Options that are done: letter, long form, whether a value follows, and what it is for.
const DONE: &[Line] = &[
    ('a', None, true, "POSIX: plain files; or a stack such as hdf5 or zarr: containers"),
    ('b', None, true, "branches of each directory of the tree (1)"),
    ('B', None, false, "no barriers between phases, but for the figures, which are brought together after each"),
    ('C', None, false, "only create"),
    ('d', None, true, "directory, or several with @ between them, taken in turn with -u (./out)"),
    ('D', None, false, "only directories"),
    ('e', None, true, "bytes to read of each file"),
    ('E', None, false, "only read"),
    ('F', None, false, "only files"),
    ('G', None, true, "signature of the data (0)"),
    ('i', None, true, "iterations (1)"),
    ('I', None, true, "items of each directory of the tree"),
    ('L', None, false, "items only in the leaves of the tree"),
    ('n', None, true, "items of each rank, over the whole tree"),
    ('N', None, true, "distance of the rank whose items are looked at, read (twice), removed (three times) (0)"),
    ('p', None, true, "seconds before each iteration"),
    ('P', None, false, "rates and times"),
    ('r', None, false, "only remove"),
    ('R', None, false, "look at items in random order"),
    ('T', None, false, "only look at"),
    ('u', None, false, "a tree for each rank"),
    ('U', None, false, "rename directories, too"),
    ('v', None, false, "accepted; says no more"),
    ('V', None, true, "accepted; says no more"),
    ('w', None, true, "bytes to write to each file"),
    ('W', None, true, "seconds after which no more items are created; then all ranks create as many as the fastest"),
    ('X', Some("verify-read"), false, "compare what is read"),
    ('y', None, false, "sync each file after writing"),
    ('z', None, true, "depth of the tree (0)"),
    ('Z', None, false, "times instead of rates"),
    ('\0', Some("random-seed"), true, "seed of -R"),
    ('\0', Some("ranks"), true, "ranks that are threads (1); MPI jobs have their own"),
];

/// Options that are refused, with the reason.
const REFUSED: &[Line] = &[
    ('c', None, false, "ranks create their own items; start one rank for one that creates all"),
    ('f', None, true, "run it once for each number of ranks"),
    ('g', None, false, "layouts of directories are left to the file system"),
    ('k', None, false, "containers are no nodes; files are created by opening them"),
    ('l', None, true, "run it once for each number of ranks"),
    ('s', None, true, "run it once for each number of ranks"),
    ('S', None, false, "each rank has files of its own; hyperslab ior shares one"),
    ('t', None, false, "the tree's own rates say what directories cost"),
    ('x', None, true, "phases of one run share what a stonewall found"),
    ('Y', None, false, "it would flush what other programs wrote; use -y"),
    ('\0', Some("verify-write"), false, "use -X: it also finds what caches hide"),
    ('\0', Some("run-cmd-before-phase"), true, "no commands are run"),
    ('\0', Some("run-cmd-after-phase"), true, "no commands are run"),
    ('\0', Some("print-all-procs"), false, "the table is of all ranks together"),
    ('\0', Some("show-perrank-statistics"), false, "the table is of all ranks together"),
    ('\0', Some("saveRankPerformanceDetails"), true, "the table is of all ranks together"),
    ('\0', Some("savePerOpDataCSV"), true, "phases are timed as a whole"),
    ('\0', Some("dataPacketType"), true, "files have the words of IOR with -G"),
    ('\0', Some("allocateBufferOnGPU"), true, "there is no memory of graphics processors here"),
    ('\0', Some("GPUid"), true, "there is no memory of graphics processors here"),
    ('\0', Some("gpuDirect"), false, "there is no memory of graphics processors here"),
];

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct Options {
    pub api: String,
    pub ranks: usize,
    pub branches: u64,
    pub depth: u32,
    pub leaf_only: bool,
    pub items: u64,
    pub items_per_directory: u64,
    pub directories: Vec<String>,
    pub on_directories: bool,
    pub on_files: bool,
    pub create: bool,
    pub stat: bool,
    pub read: bool,
    pub remove: bool,
    pub rename: bool,
    pub barriers: bool,
    pub iterations: u64,
    pub stride: usize,
    pub pre_delay: u64,
    pub print_times: bool,
    pub print_rates: bool,
    pub random: bool,
    pub random_seed: u64,
    pub unique: bool,
    pub write_bytes: u64,
    pub read_bytes: u64,
    pub signature: u32,
    pub verify: bool,
    pub sync: bool,
    pub stonewall: u64,
}

/// What a command line asks for.
#[derive(Debug)]
pub enum MdtestRequest {
    /// The list of options.
    Help,
    /// A test.
    Test(Box<Options>),
}

impl Options {
    fn new() -> Self {
        Self {
            api: "POSIX".into(),
            ranks: 1,
            branches: 1,
            depth: 0,
            leaf_only: false,
            items: 0,
            items_per_directory: 0,
            directories: vec!["./out".into()],
            on_directories: false,
            on_files: false,
            create: false,
            stat: false,
            read: false,
            remove: false,
            rename: false,
            barriers: true,
            iterations: 1,
            stride: 0,
            pre_delay: 0,
            print_times: false,
            print_rates: true,
            random: false,
            random_seed: 0,
            unique: false,
            write_bytes: 0,
            read_bytes: 0,
            signature: 0,
            verify: false,
            sync: false,
            stonewall: 0,
        }
    }

    /// The tree of a rank.
    pub fn tree(&self) -> Result<Tree> {
        Tree::new(self.branches, self.depth, self.leaf_only)
    }

    /// Items in each directory of the tree that has some.
    pub fn items_per_directory(&self, tree: &Tree) -> u64 {
        if self.items_per_directory > 0 { self.items_per_directory } else { self.items / tree.holders() }
    }

    /// Items of each rank: as many in every directory.
    pub fn items(&self, tree: &Tree) -> u64 {
        self.items_per_directory(tree) * tree.holders()
    }

    /// Whether data are compared.
    pub fn verifies(&self) -> bool {
        self.verify && self.read && self.on_files
    }

    fn set(&mut self, letter: char, long: Option<&str>, value: &str) -> Result<()> {
        let number = || -> Result<u64> {
            let number = size::parse_integer(value)?;
            u64::try_from(number).map_err(|_| Error::invalid("set option", format!("{number} is below 0")))
        };
        match (letter, long) {
            ('a', _) => self.api = value.to_owned(),
            ('b', _) => self.branches = number()?,
            ('B', _) => self.barriers = false,
            ('C', _) => self.create = true,
            ('d', _) => {
                self.directories = value.split('@').filter(|part| !part.is_empty()).map(str::to_owned).collect();
            }
            ('D', _) => self.on_directories = true,
            ('e', _) => self.read_bytes = number()?,
            ('E', _) => self.read = true,
            ('F', _) => self.on_files = true,
            ('G', _) => self.signature = size::parse_integer(value)? as u32,
            ('i', _) => self.iterations = number()?,
            ('I', _) => self.items_per_directory = number()?,
            ('L', _) => self.leaf_only = true,
            ('n', _) => self.items = number()?,
            ('N', _) => self.stride = number()? as usize,
            ('p', _) => self.pre_delay = number()?,
            ('P', _) => (self.print_rates, self.print_times) = (true, true),
            ('r', _) => self.remove = true,
            ('R', _) => self.random = true,
            ('T', _) => self.stat = true,
            ('u', _) => self.unique = true,
            ('U', _) => self.rename = true,
            ('w', _) => self.write_bytes = number()?,
            ('W', _) => self.stonewall = number()?,
            ('X', _) => self.verify = true,
            ('y', _) => self.sync = true,
            ('z', _) => {
                self.depth =
                    u32::try_from(number()?).map_err(|_| Error::invalid("set option", "the tree is too deep"))?;
            }
            ('Z', _) => (self.print_rates, self.print_times) = (false, true),
            (_, Some("random-seed")) => self.random_seed = number()?,
            (_, Some("ranks")) => self.ranks = number()? as usize,
            _ => {}
        }
        Ok(())
    }

    /// Fills in what follows from what was given, and refuses what contradicts itself.
    fn complete(&mut self, warnings: &mut Warnings) -> Result<()> {
        let bad = |message: &str| Err(Error::invalid("plan mdtest", message));
        if !(self.on_directories || self.on_files) {
            (self.on_directories, self.on_files) = (true, true);
        }
        if !(self.create || self.stat || self.read || self.remove) {
            (self.create, self.stat, self.read, self.remove) = (true, true, true, true);
        }
        let tree = self.tree()?;
        if self.items == 0 && self.items_per_directory == 0 {
            self.items = 1000.max(tree.holders());
            warnings.note(format!("neither -n nor -I says how many items: {} by each rank", self.items));
        }
        if self.items > 0 && self.items_per_directory > 0 && self.items != self.items_per_directory * tree.holders() {
            return bad("-n and -I contradict each other in this tree; give one of them");
        }
        if self.items_per_directory(&tree) == 0 {
            return bad("fewer items than directories: raise -n, or use a smaller tree");
        }
        if self.items_per_directory(&tree).checked_mul(tree.directories()).is_none_or(|items| items > 1 << 40) {
            return bad("too many items");
        }
        if self.items > 0 && self.items(&tree) != self.items {
            warnings.note(format!(
                "{} items of each rank instead of {}: as many in each directory",
                self.items(&tree),
                self.items
            ));
        }
        if self.directories.is_empty() {
            return bad("-d names no directory");
        }
        if self.directories.len() > 1 && (!self.unique || self.stride > 0) {
            return bad("several directories need a tree for each rank (-u), and no -N");
        }
        if !self.barriers && (self.stride > 0 || self.stonewall > 0) {
            return bad("without barriers (-B), ranks cannot look at the items of others (-N) or wear out (-W)");
        }
        if self.verify && (self.read_bytes == 0 || self.read_bytes > self.write_bytes) {
            return bad("-X compares what is read: give -e, and -w at least as large");
        }
        if self.create && self.read && self.read_bytes > self.write_bytes {
            return bad("more bytes would be read (-e) than were written (-w)");
        }
        if !(1..=4096).contains(&self.ranks) {
            return bad("--ranks is a number from 1 to 4096");
        }
        if !(1..=1 << 20).contains(&self.iterations) {
            return bad("-i is a number from 1 to 1048576");
        }
        Ok(())
    }
}

/// Reads the arguments after the name of the program: letters can be joined, values attached.
pub fn parse(arguments: &[String], warnings: &mut Warnings) -> Result<MdtestRequest> {
    let mut options = Options::new();
    let mut rest = arguments.iter();
    let unknown = |name: &str| {
        Error::invalid("read options", format!("there is no option {name}")).hint("hyperslab mdtest --help lists all")
    };
    let needs = |name: &str| Error::invalid("read options", format!("{name} needs a value"));
    while let Some(argument) = rest.next() {
        if argument == "-h" || argument == "--help" {
            return Ok(MdtestRequest::Help);
        }
        let (flags, attached) = argument.split_once('=').map_or((argument.as_str(), None), |(f, v)| (f, Some(v)));
        if let Some(long) = flags.strip_prefix("--") {
            let line = find(|line| line.1 == Some(long), flags)?.ok_or_else(|| unknown(flags))?;
            let value = match (line.2, attached) {
                (false, _) => "",
                (true, Some(value)) => value,
                (true, None) => rest.next().ok_or_else(|| needs(flags))?,
            };
            options.set(line.0, line.1, value).map_err(|error| error.target(flags))?;
            continue;
        }
        let Some(letters) = flags.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            return Err(unknown(argument));
        };
        for (at, letter) in letters.char_indices() {
            let name = format!("-{letter}");
            let line = find(|line| line.0 == letter, &name)?.ok_or_else(|| unknown(&name))?;
            let after = &argument[1 + at + letter.len_utf8()..];
            let value = match (line.2, after) {
                (false, _) => "",
                (true, "") => rest.next().ok_or_else(|| needs(&name))?,
                (true, after) => after.strip_prefix('=').unwrap_or(after),
            };
            options.set(line.0, line.1, value).map_err(|error| error.target(&name))?;
            if line.2 {
                break;
            }
        }
    }
    options.complete(warnings)?;
    Ok(MdtestRequest::Test(Box::new(options)))
}

/// The option that `is` says; one that is refused is an error.
fn find(is: impl Fn(&&Line) -> bool, name: &str) -> Result<Option<Line>> {
    if let Some(line) = REFUSED.iter().find(&is) {
        return Err(Error::unsupported("read options", line.3).target(name));
    }
    Ok(DONE.iter().find(&is).copied())
}

/// All options, for people.
pub fn help() -> String {
    let mut text = String::from(
        "Usage: hyperslab mdtest [MDTEST FLAGS]\n\nHow fast directories and files are made, looked at, read and removed.\n\n",
    );
    for (lines, before) in [(DONE, ""), (REFUSED, "refused: ")] {
        for (letter, long, value, about) in lines {
            let value = if *value { " VALUE" } else { "" };
            let name = match (letter, long) {
                ('\0', Some(long)) => format!("--{long}{value}"),
                (letter, Some(long)) => format!("-{letter}, --{long}{value}"),
                (letter, None) => format!("-{letter}{value}"),
            };
            text.push_str(&format!("  {name:<36} {before}{about}\n"));
        }
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn options(line: &str) -> Result<Options> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match parse(&arguments, &mut Warnings::default())? {
            MdtestRequest::Test(options) => Ok(*options),
            MdtestRequest::Help => Err(Error::invalid("parse", "help")),
        }
    }

    #[test]
    fn letters_can_be_joined_and_values_attached() {
        let one = options("-n 20 -F -C -T -w 100 -z 1 -b 2").unwrap();
        assert_eq!(options("-FCTn20 -w=100 -z1 -b 2").unwrap(), one);
        assert!(one.on_files && !one.on_directories && one.create && one.stat && !one.read && !one.remove);
        // Six in each of three directories.
        assert_eq!((one.items(&one.tree().unwrap()), one.items_per_directory(&one.tree().unwrap())), (18, 6));
        let leaves = options("-I 5 -z 2 -b 3 -L").unwrap();
        assert_eq!(leaves.items(&leaves.tree().unwrap()), 45);
        assert_eq!(options("").unwrap().items, 1000);
    }

    #[test]
    fn every_option_is_done_or_refused_by_name() {
        for (letter, long, value, reason) in REFUSED {
            let name = long.map_or_else(|| format!("-{letter}"), |long| format!("--{long}"));
            let line = format!("-n 1 {name}{}", if *value { " 1" } else { "" });
            let error = options(&line).unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains(&name), "{error}");
        }
        for (line, word) in [
            ("-n 1 -z 3 -b 4", "directories"),
            ("-n 1 -q", "-q"),
            ("-n", "-n"),
            ("-n 1 -X", "-e"),
            ("-n 1 -e 4", "-w"),
            ("-n 1 -B -N 1", "-B"),
            ("-n 1 -d a@b", "-u"),
            ("-n 1 -b 0 -z 1", "branch"),
            ("-n 1 -b 99999 -z 99", "tree"),
            ("-n 1 -i 0", "-i"),
            ("x", "x"),
        ] {
            let error = options(line).unwrap_err().to_string();
            assert!(error.contains(word), "{line}: {error}");
        }
        assert!(help().contains("--random-seed") && help().contains("refused: "));
    }
}
