//! How arrays are to be stored in the output: what `--chunk`, `--filter` and `--align` say.

use crate::filter_words::parse_filter;
use anyhow::{Result, bail};
use hyperslab_core::units::parse_size;
use hyperslab_core::{ArraySpec, Caps, Dims, Error, Filter, Shapes, Stack, StackElement, dims};

/// What the user asks for, beside the stack.
#[derive(Debug, Default)]
pub struct Storage {
    /// Chunks of one array, or of all of a number of dimensions.
    chunks: Vec<(Option<String>, Shapes)>,
    filters: Option<Vec<Filter>>,
}

impl Storage {
    /// Reads `--chunk [ARRAY=]SHAPE` and `--filter LIST`.
    pub fn parse(chunks: &[String], filters: Option<&str>) -> Result<Self> {
        let chunk = |text: &String| {
            let (array, shape) = match text.rsplit_once('=') {
                Some((array, shape)) => (Some(array.trim_matches('/').to_owned()), shape),
                None => (None, text.as_str()),
            };
            let mut said = StackElement::plain("convert");
            said.options.push(("chunk".into(), shape.into()));
            match said.shapes("chunk") {
                Ok(Some(shapes)) if shapes.all().iter().all(|shape| !shape.contains(&0)) => Ok((array, shapes)),
                _ => bail!("--chunk {text} is not understood\n  try: 64x64, 1024;64x64 or fields/t=64x64"),
            }
        };
        let filters = match filters {
            None => None,
            Some("none") => Some(Vec::new()),
            Some(list) => {
                Some(list.split(',').map(|one| parse_filter(one.trim(), "--filter")).collect::<Result<Vec<_>>>()?)
            }
        };
        Ok(Self { chunks: chunks.iter().map(chunk).collect::<Result<_>>()?, filters })
    }

    /// Refuses what the output's format cannot store.
    pub fn check(&self, caps: &Caps, to: &Stack) -> Result<()> {
        if !self.chunks.is_empty() && !caps.data.chunks {
            bail!("{} has no chunks\n  try: another format, such as --to hdf5, or no --chunk", to.format.name);
        }
        if let Some(filter) = self.filters.iter().flatten().find(|filter| !caps.has(filter)) {
            bail!("{} has no filter {filter:?}\n  try: hyperslab formats {}", to.format.name, to.format.name);
        }
        Ok(())
    }

    /// Refuses shapes that suit none of the arrays, which are likely to be slips of the pen.
    pub fn check_arrays(&self, arrays: &[(String, ArraySpec)]) -> hyperslab_core::Result<()> {
        let suits = |(name, shapes): &(Option<String>, Shapes), (array, spec): &(String, ArraySpec)| {
            name.as_ref().is_none_or(|name| name == array) && shapes.of_rank(spec.shape.len()).is_some()
        };
        match self.chunks.iter().find(|chunk| !arrays.iter().any(|array| suits(chunk, array))) {
            None => Ok(()),
            Some((name, shapes)) => {
                let shapes: Vec<String> = shapes.all().iter().map(|shape| dims::display(shape)).collect();
                let whose = name.as_ref().map_or_else(|| "any array".to_owned(), |name| format!("the array {name}"));
                let message = format!("chunks of {} do not suit {whose}", shapes.join(";"));
                Err(Error::invalid("convert", message)
                    .hint("an extent for each dimension of it; hyperslab show IN lists arrays"))
            }
        }
    }

    /// The array stored as asked for.
    pub fn apply(&self, name: &str, spec: &mut ArraySpec) {
        if spec.shape.is_empty() {
            return; // scalars have neither chunks nor filters
        }
        if let Some(chunk) = self.chunk(name, spec.shape.len()) {
            spec.chunk = Some(chunk.clone());
        }
        if let Some(filters) = &self.filters {
            spec.filters.clone_from(filters);
        }
    }

    /// What is said of this array comes before what is said of all.
    fn chunk(&self, name: &str, rank: usize) -> Option<&Dims> {
        let of = |whose: Option<&str>| {
            let mut said = self.chunks.iter().rev().filter(move |(array, _)| array.as_deref() == whose);
            said.find_map(|(_, shapes)| shapes.of_rank(rank))
        };
        of(Some(name)).or_else(|| of(None))
    }
}

/// The stack with alignment, by the option that its format has for it.
pub fn aligned(mut stack: Stack, align: &str) -> Result<Stack> {
    if let Err(error) = parse_size(align) {
        bail!("--align {align}: {error}");
    }
    let has = |name: &&str| hyperslab_formats::format(&stack.format.name).is_ok_and(|entry| entry.has_option(name));
    let Some(option) = ["align", "var_align"].into_iter().find(has) else {
        bail!("{} aligns nothing\n  try: no --align, or --to hdf5", stack.format.name);
    };
    if stack.format.get(option).is_some() {
        bail!("the stack {stack} says {option} already\n  try: no --align");
    }
    stack.format.options.push((option.into(), align.into()));
    Ok(stack)
}
