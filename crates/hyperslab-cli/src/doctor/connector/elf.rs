//! The little of an ELF file that says what it is linked with. The file is only read, and every number in it is doubted.

use std::collections::HashSet;
use std::path::Path;

const SYMBOLS: u32 = 2;
const DYNAMIC: u32 = 6;
const DYNAMIC_SYMBOLS: u32 = 11;
const NEEDED: u64 = 1;
const RPATH: u64 = 15;
const RUNPATH: u64 = 29;
/// Larger files are not read.
const LARGEST: u64 = 4 << 30;

/// A program or library.
pub struct Elf {
    bytes: Vec<u8>,
    sections: Vec<Section>,
    /// Names of the libraries that it needs.
    pub needed: Vec<String>,
    /// Folders that are searched before those of the environment.
    pub rpath: Vec<String>,
    /// Folders that are searched after those of the environment.
    pub runpath: Vec<String>,
}

struct Section {
    kind: u32,
    link: usize,
    offset: usize,
    size: usize,
}

impl Elf {
    /// Reads a file; `Err` says in words why it cannot be.
    pub fn read(path: &Path) -> Result<Self, String> {
        let metadata = path.metadata().map_err(|error| error.to_string())?;
        if !metadata.is_file() || metadata.len() > LARGEST {
            return Err("it is no plain file of a usual size".into());
        }
        let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
        Self::parse(bytes)
    }

    fn parse(bytes: Vec<u8>) -> Result<Self, String> {
        if !bytes.starts_with(b"\x7fELF") {
            return Err("it is no ELF file".into());
        }
        // 64 bits, little-endian: all machines that the plugin is built for.
        if bytes.get(4..6) != Some(&[2, 1]) {
            return Err("it is for another kind of machine".into());
        }
        let mut elf = Self { bytes, sections: Vec::new(), needed: vec![], rpath: vec![], runpath: vec![] };
        elf.sections = elf.read_sections().ok_or("its table of sections is missing or cut off")?;
        elf.read_dynamic();
        Ok(elf)
    }

    fn number<const N: usize>(&self, at: usize) -> Option<u64> {
        let bytes = self.bytes.get(at..at.checked_add(N)?)?;
        Some(bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    fn read_sections(&self) -> Option<Vec<Section>> {
        let table = usize::try_from(self.number::<8>(0x28)?).ok()?;
        let (each, count) = (self.number::<2>(0x3A)? as usize, self.number::<2>(0x3C)? as usize);
        if each < 64 || count == 0 {
            return None;
        }
        let read = |index: usize| {
            let at = table.checked_add(index.checked_mul(each)?)?;
            // Beyond the file there is nothing to read; this also keeps the sums below from overflowing.
            self.bytes.get(at..at.checked_add(each)?)?;
            Some(Section {
                kind: self.number::<4>(at + 4)? as u32,
                link: self.number::<4>(at + 40)? as usize,
                offset: usize::try_from(self.number::<8>(at + 24)?).ok()?,
                size: usize::try_from(self.number::<8>(at + 32)?).ok()?.min(self.bytes.len()),
            })
        };
        (0..count).map(read).collect()
    }

    fn of_kind(&self, kind: u32) -> Option<&Section> {
        self.sections.iter().find(|section| section.kind == kind)
    }

    /// Whether it is linked dynamically at all.
    pub fn is_dynamic(&self) -> bool {
        self.of_kind(DYNAMIC).is_some()
    }

    fn read_dynamic(&mut self) {
        let mut found = Vec::new();
        if let Some(section) = self.of_kind(DYNAMIC) {
            for entry in 0..section.size / 16 {
                let at = section.offset.saturating_add(entry * 16);
                let (Some(tag), Some(value)) = (self.number::<8>(at), self.number::<8>(at.saturating_add(8))) else {
                    break;
                };
                if matches!(tag, NEEDED | RPATH | RUNPATH)
                    && let Some(text) = self.text(section.link, value)
                {
                    found.push((tag, text));
                }
            }
        }
        for (tag, text) in found {
            let folders = text.split(':').filter(|folder| !folder.is_empty()).map(str::to_owned);
            match tag {
                NEEDED => self.needed.push(text.clone()),
                RPATH => self.rpath.extend(folders),
                _ => self.runpath.extend(folders),
            }
        }
    }

    /// The text at a place of a section of texts.
    fn text(&self, section: usize, at: u64) -> Option<String> {
        let section = self.sections.get(section)?;
        let begin = section.offset.checked_add(usize::try_from(at).ok()?)?;
        let end = section.offset.checked_add(section.size)?.min(self.bytes.len());
        let rest = self.bytes.get(begin..end)?;
        let length = rest.iter().position(|byte| *byte == 0)?;
        Some(String::from_utf8_lossy(&rest[..length]).into_owned())
    }

    /// Whether it lets others call its function `name`.
    pub fn exports(&self, name: &str) -> bool {
        self.defines(DYNAMIC_SYMBOLS, name)
    }

    /// Whether it has a function `name` of its own, for others or not; not known of a stripped file.
    pub fn contains(&self, name: &str) -> bool {
        self.defines(SYMBOLS, name)
    }

    fn defines(&self, kind: u32, name: &str) -> bool {
        let Some(section) = self.of_kind(kind) else { return false };
        (0..section.size / 24).any(|index| {
            let at = section.offset.saturating_add(index * 24);
            let defined = self.number::<2>(at.saturating_add(6)).is_some_and(|section| section != 0);
            defined && self.number::<4>(at).is_some_and(|begin| self.text_is(section.link, begin, name))
        })
    }

    fn text_is(&self, section: usize, at: u64, wanted: &str) -> bool {
        let Some(section) = self.sections.get(section) else { return false };
        let begin = section.offset.saturating_add(at as usize);
        let text = self.bytes.get(begin..begin.saturating_add(wanted.len() + 1));
        text.is_some_and(|text| &text[..wanted.len()] == wanted.as_bytes() && text[wanted.len()] == 0)
    }

    /// The bytes after each `mark`, up to the end of the text.
    pub fn texts_after(&self, mark: &str) -> HashSet<String> {
        let mut found = HashSet::new();
        let (mark, mut from) = (mark.as_bytes(), 0);
        while let Some(at) = find(&self.bytes[from..], mark) {
            from += at + mark.len();
            let text: Vec<u8> =
                self.bytes[from..].iter().take(64).copied().take_while(|b| *b != 0 && *b != b'\n').collect();
            found.insert(String::from_utf8_lossy(&text).trim_matches([':', ' ']).to_owned());
        }
        found
    }
}

/// The first place of `part`; by its first byte, since files are large.
fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + bytes.get(from..)?.iter().position(|byte| *byte == part[0])?;
        if bytes[at..].starts_with(part) {
            return Some(at);
        }
        from = at + 1;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn this_test_is_linked_with_the_c_library() {
        let elf = Elf::read(&std::env::current_exe().unwrap()).unwrap();
        assert!(elf.is_dynamic());
        assert!(elf.needed.iter().any(|name| name.starts_with("libc.")), "{:?}", elf.needed);
        assert!(elf.contains("main") && !elf.contains("surely_no_such_function"));
    }

    #[test]
    fn cut_off_and_changed_files_are_refused_or_read_in_part() {
        let whole = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        for length in [0, 3, 5, 0x3F, 0x40, 4096] {
            assert!(Elf::parse(whole[..length].to_vec()).is_err(), "{length}");
        }
        // Every Linux has this one, and it is small.
        let shell = std::fs::read("/bin/sh").unwrap();
        let mut seed = 1u64;
        for _ in 0..2000 {
            let mut bytes = shell.clone();
            for _ in 0..4 {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                // Half of the changes hit the head and the table of sections, which lies at the end.
                let place = match seed >> 62 {
                    0 => (seed >> 33) as usize % 64,
                    1 => bytes.len() - 1 - (seed >> 33) as usize % 2048,
                    _ => (seed >> 33) as usize % bytes.len(),
                };
                bytes[place] = (seed >> 20) as u8;
            }
            if let Ok(elf) = Elf::parse(bytes) {
                elf.exports("main");
                elf.contains("main");
            }
        }
    }
}
