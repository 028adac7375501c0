//! A container with named dimensions, as `ncdump -h` prints a NetCDF file, with what is stored of it.

use super::element;
use crate::terminal::plain;
use anyhow::Result;
use hyperslab_core::units::display_size;
use hyperslab_core::{ArraySpec, Attribute, Container, Datatype, dims};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// A dimension: its length now, and whether it grows.
type Dimension = (u64, bool);

/// What is printed of a container.
pub struct CdlHeader<'a> {
    file: &'a dyn Container,
    arrays: BTreeMap<String, ArraySpec>,
    refused: BTreeMap<String, String>,
    dimensions: BTreeMap<String, Dimension>,
    groups: Vec<String>,
    /// Bytes in the file, of each array whose format tells.
    stored: BTreeMap<String, u64>,
}

/// The group of an object and its name in it.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

impl<'a> CdlHeader<'a> {
    /// Looks at everything but elements.
    pub fn read(file: &'a dyn Container, stored: BTreeMap<String, u64>) -> Result<Self> {
        let (mut arrays, mut refused) = (BTreeMap::new(), BTreeMap::new());
        let mut dimensions: BTreeMap<String, Dimension> = BTreeMap::new();
        for name in file.arrays()? {
            let spec =
                match file.array(&name).and_then(|array| array.spec().and_then(|spec| array.close().map(|()| spec))) {
                    Ok(spec) => spec,
                    Err(error) => {
                        refused.insert(name, error.to_string().replace('\n', " "));
                        continue;
                    }
                };
            for (d, path) in spec.dims.iter().flatten().enumerate() {
                let grows = spec.max_shape.as_ref().is_some_and(|max| max[d] != Some(spec.shape[d]));
                let known = dimensions.entry(path.clone()).or_insert((0, false));
                *known = (known.0.max(spec.shape[d]), known.1 || grows);
            }
            arrays.insert(name, spec);
        }
        let groups = file.groups()?;
        Ok(Self { file, arrays, refused, dimensions, groups, stored })
    }

    /// Prints all but the end, a closing brace.
    pub fn print(&self, out: &mut dyn Write, name: &str) -> Result<()> {
        writeln!(out, "netcdf {} {{", plain(name))?;
        self.group(out, "", 0)
    }

    /// The arrays that could be opened.
    pub fn arrays(&self) -> &BTreeMap<String, ArraySpec> {
        &self.arrays
    }

    fn group(&self, out: &mut dyn Write, group: &str, depth: usize) -> Result<()> {
        let indent = "  ".repeat(depth);
        let dimensions: Vec<_> = self.dimensions.iter().filter(|(path, _)| split(path).0 == group).collect();
        if !dimensions.is_empty() {
            writeln!(out, "{indent}dimensions:")?;
        }
        for (path, (len, grows)) in dimensions {
            let name = plain(split(path).1);
            match grows {
                true => writeln!(out, "{indent}\t{name} = UNLIMITED ; // ({len} currently)")?,
                false => writeln!(out, "{indent}\t{name} = {len} ;")?,
            }
        }
        let inside = |path: &str| split(path).0 == group;
        if self.arrays.keys().chain(self.refused.keys()).any(|path| inside(path)) {
            writeln!(out, "{indent}variables:")?;
        }
        for (path, spec) in self.arrays.iter().filter(|(path, _)| inside(path)) {
            self.variable(out, path, spec, &indent)?;
        }
        for (path, why) in self.refused.iter().filter(|(path, _)| inside(path)) {
            writeln!(out, "{indent}\t// {}: {}", plain(split(path).1), plain(why))?;
        }
        let attributes = self.file.attributes(group).unwrap_or_default();
        if !attributes.is_empty() {
            let what = if group.is_empty() { "global" } else { "group" };
            writeln!(out, "\n{indent}// {what} attributes:")?;
            self.attributes(out, group, "", &attributes, &indent)?;
        }
        for inner in self.groups.iter().filter(|path| split(path).0 == group && path.as_str() != group) {
            let name = plain(split(inner).1);
            writeln!(out, "\n{indent}group: {name} {{")?;
            self.group(out, inner, depth + 1)?;
            writeln!(out, "{indent}  }} // group {name}")?;
        }
        Ok(())
    }

    fn variable(&self, out: &mut dyn Write, path: &str, spec: &ArraySpec, indent: &str) -> Result<()> {
        let name = plain(split(path).1);
        let mut names: Vec<String> = match &spec.dims {
            Some(dims) => dims.iter().map(|dim| plain(split(dim).1)).collect(),
            None => spec.shape.iter().map(u64::to_string).collect(),
        };
        if let Datatype::FixedString(length @ 2..) = spec.dtype {
            names.push(format!("string{length}"));
        }
        let list = if names.is_empty() { String::new() } else { format!("({})", names.join(", ")) };
        writeln!(out, "{indent}\t{} {name}{list} ;{}", type_name(&spec.dtype), remark(&spec.dtype))?;
        let listed = self.file.attributes(path)?;
        // An array has NetCDF's default fill value without an attribute that says so.
        let default = hyperslab_formats::netcdf_fill::default_fill(&spec.dtype);
        let is_stated = spec.fill_value != default || listed.iter().any(|name| name == "_FillValue");
        if let Some(fill) = spec.fill_value.as_ref().filter(|_| is_stated) {
            let bytes = if matches!(spec.dtype, Datatype::FixedString(_)) { &fill[..1.min(fill.len())] } else { fill };
            let kind = if spec.dtype == Datatype::VariableString { "string " } else { "" };
            writeln!(out, "{indent}\t\t{kind}{name}:_FillValue = {} ;", element::text(&spec.dtype, bytes))?;
        }
        let attributes: Vec<String> = listed.into_iter().filter(|name| name != "_FillValue").collect();
        self.attributes(out, path, &name, &attributes, indent)?;
        writeln!(out, "{indent}\t\t// {}", self.storage(path, spec))?;
        Ok(())
    }

    fn attributes(
        &self,
        out: &mut dyn Write,
        object: &str,
        shown: &str,
        names: &[String],
        indent: &str,
    ) -> io::Result<()> {
        for name in names {
            let (kind, value) = match self.file.attribute(object, name) {
                Ok(value) => (if is_strings(&value) { "string " } else { "" }, value_text(&value)),
                Err(error) => ("", format!("// {}", plain(&error.to_string()))),
            };
            writeln!(out, "{indent}\t\t{kind}{shown}:{} = {value} ;", plain(name))?;
        }
        Ok(())
    }

    /// How an array lies in the file.
    fn storage(&self, path: &str, spec: &ArraySpec) -> String {
        let size =
            |extents: &[u64]| dims::byte_count(extents, spec.dtype.size()).map_or_else(|e| e.to_string(), display_size);
        let strings = |extents: &[u64]| {
            dims::element_count(extents)
                .map_or_else(|e| e.to_string(), |n| format!("{n} string{}", if n == 1 { "" } else { "s" }))
        };
        let is_text = spec.dtype == Datatype::VariableString;
        let size = |extents: &[u64]| if is_text { strings(extents) } else { size(extents) };
        let mut words = vec![size(&spec.shape)];
        words.push(match &spec.chunk {
            Some(chunk) => format!("chunks of {} ({})", dims::display(chunk), size(chunk)),
            None => "contiguous".into(),
        });
        if !spec.filters.is_empty() {
            let filters: Vec<_> = spec.filters.iter().map(|filter| format!("{filter:?}")).collect();
            words.push(format!("filters {}", filters.join(" then ")));
        }
        if let Some(bytes) = self.stored.get(path) {
            words.push(format!("{} on disk", display_size(*bytes)));
        }
        words.join(", ")
    }
}

/// Whether NetCDF has a value as strings, not as characters: lists of texts always are.
fn is_strings(value: &Attribute) -> bool {
    match value.dtype {
        Datatype::VariableString => true,
        Datatype::FixedString(_) => !value.shape.is_empty(),
        _ => false,
    }
}

/// What NetCDF calls a type.
fn type_name(dtype: &Datatype) -> String {
    match dtype {
        Datatype::Integer { size: 1, signed: true, .. } | Datatype::Bool => "byte".into(),
        Datatype::Integer { size: 1, .. } => "ubyte".into(),
        Datatype::Integer { size: 2, signed: true, .. } => "short".into(),
        Datatype::Integer { size: 2, .. } => "ushort".into(),
        Datatype::Integer { size: 4, signed: true, .. } => "int".into(),
        Datatype::Integer { size: 4, .. } => "uint".into(),
        Datatype::Integer { signed: true, .. } => "int64".into(),
        Datatype::Integer { .. } => "uint64".into(),
        Datatype::Float { size: 4, .. } => "float".into(),
        Datatype::Float { size: 8, .. } => "double".into(),
        Datatype::FixedString(_) => "char".into(),
        Datatype::VariableString => "string".into(),
        Datatype::Compound(compound) => {
            let fields =
                compound.fields.iter().map(|field| format!("{} {}", type_name(&field.dtype), plain(&field.name)));
            format!("compound {{{}}}", fields.collect::<Vec<_>>().join("; "))
        }
        other => other.to_string(),
    }
}

fn remark(dtype: &Datatype) -> &'static str {
    match dtype {
        Datatype::Bool => " // true or false",
        _ => "",
    }
}

/// The value of an attribute.
pub fn value_text(value: &Attribute) -> String {
    let size = (value.dtype.size() as usize).max(1);
    if let (Datatype::VariableString, Some(texts)) = (&value.dtype, value.texts()) {
        return texts.into_iter().map(element::quoted).collect::<Vec<_>>().join(", ");
    }
    let words: Vec<String> = value.data.chunks(size).map(|bytes| element::text(&value.dtype, bytes)).collect();
    words.join(", ")
}
