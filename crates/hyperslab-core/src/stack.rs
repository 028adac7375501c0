//! A stack of layers over a format, as text: `auto/log(dir=/nvme)/hdf5(align=1MiB)`, outermost first.

use crate::{Dims, Error, Result, suggest, units};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// One element of a stack: a name and its options in the order given.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StackElement {
    /// Name of the layer or format.
    pub name: String,
    /// Options as written.
    pub options: Vec<(String, String)>,
}

/// Layers, outermost first, and the format below them.
///
/// ```
/// use hyperslab_core::Stack;
///
/// let stack: Stack = "log(dir=/scratch)/hdf5(chunk=64x64,align=1MiB)".parse()?;
/// assert!(stack.has_layer("log"));
/// assert_eq!(stack.format.get("align"), Some("1MiB"));
/// assert_eq!(stack.to_string(), "log(dir=/scratch)/hdf5(chunk=64x64,align=1MiB)");
/// # Ok::<(), hyperslab_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Stack {
    /// Layers, outermost first.
    pub layers: Vec<StackElement>,
    /// The format at the bottom.
    pub format: StackElement,
}

/// An option that a layer or format understands.
#[derive(Debug, Clone, Copy)]
pub struct OptionSpec {
    /// Name.
    pub name: &'static str,
    /// Value syntax: `SIZE`, `yes|no`, `64x64`.
    pub value: &'static str,
    /// Default.
    pub default: &'static str,
    /// One-line description.
    pub about: &'static str,
}

impl OptionSpec {
    /// The value in the default's text: what ends it in brackets (`libhdf5's (8MiB)`), else what precedes a semicolon.
    pub fn default_value(&self) -> &'static str {
        let bracketed = self.default.strip_suffix(')').and_then(|text| Some(text.rsplit_once('(')?.1));
        bracketed.unwrap_or_else(|| self.default.split(';').next().unwrap_or_default())
    }
}

/// Extents for arrays, one shape for each number of dimensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shapes(Vec<Dims>);

impl Shapes {
    /// The shape for arrays of `rank` dimensions.
    pub fn of_rank(&self, rank: usize) -> Option<&Dims> {
        self.0.iter().find(|shape| shape.len() == rank)
    }

    /// The shape, if there is only one: it is then meant for every array, and does not suit those of other ranks.
    pub fn single(&self) -> Option<&Dims> {
        if let [shape] = self.0.as_slice() { Some(shape) } else { None }
    }

    /// All of them.
    pub fn all(&self) -> &[Dims] {
        &self.0
    }
}

const MAX_TEXT: usize = 4096;

fn bad(text: &str, message: impl Into<String>) -> Error {
    Error::invalid("parse stack", message)
        .target(format!("{text:?}"))
        .hint("write it like hdf5(chunk=64x64,align=1MiB)")
}

impl Stack {
    /// Whether it contains a layer of this name.
    pub fn has_layer(&self, name: &str) -> bool {
        self.layers.iter().any(|layer| layer.name == name)
    }
}

impl FromStr for Stack {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text.len() > MAX_TEXT {
            return Err(Error::invalid("parse stack", format!("longer than {MAX_TEXT} bytes")));
        }
        let mut elements = split_outside(text, '/')
            .map_err(|m| bad(text, m))?
            .into_iter()
            .map(|part| parse_element(part.trim()).map_err(|m| bad(text, m)))
            .collect::<Result<Vec<_>>>()?;
        let format = elements.pop().ok_or_else(|| bad(text, "nothing is named"))?;
        Ok(Self { layers: elements, format })
    }
}

/// Splits a comma-separated list of stacks: `hdf5(a=1,b=2),zarr`.
pub fn parse_stacks(text: &str) -> Result<Vec<Stack>> {
    split_outside(text, ',').map_err(|m| bad(text, m))?.into_iter().map(|part| part.trim().parse()).collect()
}

/// Splits at `separator` where no bracket or quote is open.
fn split_outside(text: &str, separator: char) -> Result<Vec<&str>, &'static str> {
    let mut parts = Vec::new();
    let (mut from, mut open, mut quoted) = (0, false, false);
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' if open => return Err("brackets do not nest"),
            '(' => open = true,
            ')' if !open => return Err("a bracket closes that was never opened"),
            ')' => open = false,
            c if c == separator && !open => {
                parts.push(&text[from..at]);
                from = at + c.len_utf8();
            }
            _ => {}
        }
    }
    if quoted || open {
        return Err("a bracket or quote is never closed");
    }
    parts.push(&text[from..]);
    Ok(parts)
}

fn parse_element(text: &str) -> Result<StackElement, String> {
    let (name, inside) = match text.split_once('(') {
        None => (text, ""),
        Some((name, rest)) => (name, rest.strip_suffix(')').ok_or("something follows the closing bracket")?),
    };
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
        return Err(format!("{name:?} is not a name"));
    }
    let mut options: Vec<(String, String)> = Vec::new();
    if !inside.trim().is_empty() {
        for part in split_outside(inside, ',')? {
            let (key, value) = part.split_once('=').unwrap_or((part, "yes"));
            let (key, value) = (key.trim(), value.trim());
            let value = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(value);
            if key.is_empty() || value.is_empty() || value.contains('"') {
                return Err(format!("{part:?} is not an option"));
            }
            if options.iter().any(|(k, _)| k == key) {
                return Err(format!("option {key} is given twice"));
            }
            options.push((key.into(), value.into()));
        }
    }
    Ok(StackElement { name: name.into(), options })
}

fn parse_extents(text: &str) -> Option<Dims> {
    let extents: Option<Dims> = text.split('x').map(|n| n.parse().ok().filter(|&n: &u64| n > 0)).collect();
    extents.filter(|extents| extents.len() <= crate::MAX_RANK)
}

impl fmt::Display for StackElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (i, (key, value)) in self.options.iter().enumerate() {
            let separator = if i == 0 { "(" } else { "," };
            let special = |c: char| "(),=".contains(c) || c.is_whitespace();
            let quote = if value.contains(special) { "\"" } else { "" };
            match value.as_str() {
                "yes" => write!(f, "{separator}{key}")?,
                _ => write!(f, "{separator}{key}={quote}{value}{quote}")?,
            }
        }
        if !self.options.is_empty() {
            f.write_str(")")?;
        }
        Ok(())
    }
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for layer in &self.layers {
            write!(f, "{layer}/")?;
        }
        write!(f, "{}", self.format)
    }
}

impl TryFrom<String> for Stack {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Stack> for String {
    fn from(stack: Stack) -> Self {
        stack.to_string()
    }
}

impl StackElement {
    /// An element without options.
    pub fn plain(name: &str) -> Self {
        Self { name: name.into(), options: Vec::new() }
    }

    /// Refuses options that are not among `known`, suggesting the closest.
    pub fn check_options(&self, known: &[OptionSpec]) -> Result<()> {
        for (key, _) in &self.options {
            if !known.iter().any(|spec| spec.name == key) {
                let names = known.iter().map(|spec| spec.name);
                let error = Error::invalid("parse stack", format!("{} has no option {key:?}", self.name));
                return Err(if known.is_empty() {
                    error.hint("it takes no options")
                } else {
                    error.hint(suggest::hint(key, names))
                });
            }
        }
        Ok(())
    }

    /// The same with names for bare words: the first word without `=` that is no option among `known` is the value of
    /// the first of `names`, and so on. `slow(200MB/s,2ms)` is `slow(rate=200MB/s,latency=2ms)`.
    pub fn with_names(&self, names: &[&str], known: &[OptionSpec]) -> Result<Self> {
        let is_bare = |key: &str, value: &str| value == "yes" && !known.iter().any(|spec| spec.name == key);
        let mut names = names.iter();
        let mut named = Self::plain(&self.name);
        for (key, value) in &self.options {
            let name = if is_bare(key, value) { names.next() } else { None };
            let option = name.map_or((key.clone(), value.clone()), |name| ((*name).to_owned(), key.clone()));
            if named.get(&option.0).is_some() {
                return Err(Error::invalid(
                    "parse stack",
                    format!("{}: option {} is given twice", self.name, option.0),
                ));
            }
            named.options.push(option);
        }
        Ok(named)
    }

    /// The text of an option.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.options.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// A size such as `1MiB`.
    pub fn size(&self, key: &str) -> Result<Option<u64>> {
        self.get(key).map(|v| units::parse_size(v).map_err(|_| self.refuse(key, v, "a size such as 64KiB"))).transpose()
    }

    /// The same, or the option's default.
    pub fn size_or_default(&self, option: &OptionSpec) -> Result<u64> {
        let text = self.given_or_default(option);
        units::parse_size(text).map_err(|_| self.refuse(option.name, text, "a size such as 64KiB"))
    }

    /// A time such as `10ms`, or the option's default.
    pub fn time_or_default(&self, option: &OptionSpec) -> Result<Duration> {
        let text = self.given_or_default(option);
        units::parse_duration(text).map_err(|_| self.refuse(option.name, text, "a time such as 10ms"))
    }

    /// A rate such as `200MB/s`, or the option's default.
    pub fn rate_or_default(&self, option: &OptionSpec) -> Result<u64> {
        let text = self.given_or_default(option);
        units::parse_rate(text).map_err(|_| self.refuse(option.name, text, "a rate such as 200MB/s"))
    }

    fn given_or_default<'a>(&'a self, option: &OptionSpec) -> &'a str {
        self.get(option.name).unwrap_or(option.default_value())
    }

    /// A whole number in a range.
    pub fn number(&self, key: &str, range: std::ops::RangeInclusive<u64>) -> Result<Option<u64>> {
        self.get(key)
            .map(|v| {
                v.parse()
                    .ok()
                    .filter(|n| range.contains(n))
                    .ok_or_else(|| self.refuse(key, v, &format!("a number from {} to {}", range.start(), range.end())))
            })
            .transpose()
    }

    /// The same, or the option's default.
    pub fn number_or_default(&self, option: &OptionSpec, range: std::ops::RangeInclusive<u64>) -> Result<u64> {
        let default =
            || option.default_value().parse().map_err(|_| self.refuse(option.name, option.default, "a number"));
        self.number(option.name, range)?.map_or_else(default, Ok)
    }

    /// `yes` or `no` (also true/false, on/off, 1/0).
    pub fn flag(&self, key: &str) -> Result<Option<bool>> {
        self.get(key)
            .map(|v| match v.to_ascii_lowercase().as_str() {
                "yes" | "true" | "on" | "1" => Ok(true),
                "no" | "false" | "off" | "0" => Ok(false),
                _ => Err(self.refuse(key, v, "yes or no")),
            })
            .transpose()
    }

    /// Extents such as `64x64`.
    pub fn dims(&self, key: &str) -> Result<Option<Dims>> {
        self.get(key).map(|v| parse_extents(v).ok_or_else(|| self.refuse(key, v, "extents such as 64x64"))).transpose()
    }

    /// Extents by number of dimensions: `64x64`, or `1024;64x64` for arrays of one dimension and of two.
    pub fn shapes(&self, key: &str) -> Result<Option<Shapes>> {
        let Some(text) = self.get(key) else { return Ok(None) };
        let mut shapes: Vec<Dims> = Vec::new();
        for part in text.split(';') {
            let extents =
                parse_extents(part).ok_or_else(|| self.refuse(key, text, "extents such as 64x64, or 1024;64x64"))?;
            if shapes.iter().any(|known| known.len() == extents.len()) {
                return Err(self.refuse(key, text, "one shape for each number of dimensions"));
            }
            shapes.push(extents);
        }
        Ok(Some(Shapes(shapes)))
    }

    /// One of several words.
    pub fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)]) -> Result<Option<T>> {
        self.get(key)
            .map(|v| {
                choices.iter().find(|(word, _)| *word == v).map(|(_, t)| *t).ok_or_else(|| {
                    Error::invalid("parse stack", format!("{}: {key}={v} is not understood", self.name))
                        .hint(suggest::hint(v, choices.iter().map(|(word, _)| *word)))
                })
            })
            .transpose()
    }

    fn refuse(&self, key: &str, value: &str, wanted: &str) -> Error {
        Error::invalid("parse stack", format!("{}: {key}={value} should be {wanted}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_round_trip() {
        for text in [
            "posix",
            "hdf5(chunk=64x64,deflate=4,align=1MiB)",
            "auto/log(dir=/nvme/x)/hdf5(align=1MiB)",
            "posix(dir=\"a,b (c)\")",
            "log(dir=\"a\n\")/posix(dir=\"\tb\")", // white space at the ends counts inside quotes only
            "slow(200MB/s,2ms)/posix(direct)",
        ] {
            let stack: Stack = text.parse().unwrap();
            assert_eq!(stack.to_string(), text);
        }
        let list = parse_stacks("hdf5(a=1,b=2), zarr").unwrap();
        assert_eq!(list.len(), 2);
        assert_eq!("posix(direct)".parse::<Stack>().unwrap().format.get("direct"), Some("yes"));
    }

    #[test]
    fn bad_stacks_are_refused() {
        for text in ["", "/", "a/", "a(", "a)", "a(b=1", "a(b=1)c", "a(b=)", "a((b=1))", "a(b=1,b=2)", "a(\"", "a b"] {
            assert!(text.parse::<Stack>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn bare_words_get_the_names_of_their_places() {
        const KNOWN: &[OptionSpec] = &[
            OptionSpec { name: "rate", value: "", default: "", about: "" },
            OptionSpec { name: "shared", value: "", default: "", about: "" },
        ];
        let named = |text: &str| text.parse::<Stack>().unwrap().format.with_names(&["rate", "latency"], KNOWN);
        assert_eq!(named("slow(200MB/s,2ms)").unwrap().to_string(), "slow(rate=200MB/s,latency=2ms)");
        assert_eq!(named("slow(rate=1MB/s,shared)").unwrap().to_string(), "slow(rate=1MB/s,shared)");
        assert_eq!(named("slow(shared,1MB/s)").unwrap().get("rate"), Some("1MB/s"));
        assert!(named("slow(1MB/s,rate=2MB/s)").is_err());
    }

    #[test]
    fn defaults_are_those_of_the_table() {
        let option = |name, default| OptionSpec { name, value: "", default, about: "" };
        let element = |text: &str| text.parse::<Stack>().unwrap().format;
        let buffer = option("buffer", "8MiB; 1MiB where ranks are of one machine");
        assert_eq!(element("a").size_or_default(&buffer).unwrap(), 8 << 20);
        assert_eq!(element("a(buffer=4KiB)").size_or_default(&buffer).unwrap(), 4 << 10);
        assert!(element("a(buffer=much)").size_or_default(&buffer).is_err());
        assert_eq!(element("a").number_or_default(&option("w0", "libhdf5's (75)"), 0..=100).unwrap(), 75);
        assert!(element("a(w0=101)").number_or_default(&option("w0", "libhdf5's (75)"), 0..=100).is_err());
        assert_eq!(element("a").time_or_default(&option("age", "2s")).unwrap(), Duration::from_secs(2));
        assert_eq!(element("a").rate_or_default(&option("rate", "200MB/s")).unwrap(), 200 << 20);
        assert!(element("a").size_or_default(&option("limit", "half of the free space")).is_err());
    }

    #[test]
    fn options_are_checked() {
        const KNOWN: &[OptionSpec] = &[OptionSpec { name: "chunk", value: "", default: "", about: "" }];
        let element = |text: &str| text.parse::<Stack>().unwrap().format;
        let error = element("hdf5(chunks=4)").check_options(KNOWN).unwrap_err();
        assert!(error.to_string().contains("did you mean \"chunk\""), "{error}");
        assert_eq!(element("h(chunk=4x5)").dims("chunk").unwrap().unwrap().as_slice(), [4, 5]);
        assert!(element("h(chunk=4x0)").dims("chunk").is_err());
        let shapes = element("h(chunk=8;4x5)").shapes("chunk").unwrap().unwrap();
        assert_eq!(
            (shapes.of_rank(2).unwrap().as_slice(), shapes.of_rank(3), shapes.single()),
            (&[4, 5][..], None, None)
        );
        assert!(element("h(chunk=4x5)").shapes("chunk").unwrap().unwrap().single().is_some());
        for bad in ["h(chunk=8;)", "h(chunk=8;9)", "h(chunk=8;4x0)"] {
            assert!(element(bad).shapes("chunk").is_err(), "{bad}");
        }
        assert!(element("h(n=12)").number("n", 0..=9).is_err());
        assert_eq!(element("h(f=on)").flag("f").unwrap(), Some(true));
        assert!(
            element("h(l=contig)").choice("l", &[("contiguous", 1)]).unwrap_err().to_string().contains("contiguous")
        );
    }
}
