//! Arrays as variables: what is asked for, and what a variable is.

use super::header::{CdfAttribute, Dimension, Header, Variable};
use super::names::{self, DTYPE, FILL, NAME};
use super::types::{CdfType, Version};
use super::values;
use crate::posix::byte_order::reverse_each;
use crate::posix::placement::Placement;
use hyperslab_core::{ArraySpec, Datatype, Dims, Error, Result};

/// What the header says of an array, apart from its extents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Array {
    pub name: String,
    pub dtype: Datatype,
    /// One element, in the array's byte order.
    pub fill: Option<Vec<u8>>,
    /// Elements are texts along the last dimension of the variable.
    texts: bool,
}

/// A variable and the dimensions that it needs and the header lacks.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub dimensions: Vec<Dimension>,
    pub variable: Variable,
    pub array: Array,
}

fn text_of<'a>(variable: &'a Variable, name: &str) -> Option<&'a str> {
    let found = variable.attributes.iter().find(|attribute| attribute.name == name)?;
    if found.kind == CdfType::Char { std::str::from_utf8(&found.data).ok() } else { None }
}

fn text(name: &str, value: String) -> CdfAttribute {
    CdfAttribute { name: name.into(), kind: CdfType::Char, data: value.into_bytes() }
}

impl Array {
    /// What a variable is.
    pub fn of(header: &Header, variable: &Variable) -> Self {
        let name = text_of(variable, NAME).filter(|name| names::check_name(name).is_ok());
        let plain = values::datatype(variable.kind);
        let last = header.inner_extents(variable).last();
        let stated = text_of(variable, DTYPE).and_then(|text| text.parse::<Datatype>().ok());
        let dtype = stated.filter(|stated| match stated {
            Datatype::Bool => variable.kind == CdfType::Byte,
            Datatype::FixedString(len) => variable.kind == CdfType::Char && last == Some(u64::from(*len)),
            number => values::number_type(number) == Some(variable.kind),
        });
        let dtype = dtype.unwrap_or(plain);
        let texts = matches!(dtype, Datatype::FixedString(2..));
        let fill = variable.attributes.iter().find(|attribute| attribute.name == FILL);
        let fill = fill.filter(|fill| fill.kind == variable.kind && fill.data.len() as u64 == dtype.size());
        let fill = fill.map(|fill| {
            let mut element = fill.data.clone();
            reverse_each(&mut element, values::turned(&dtype));
            element
        });
        Self { name: name.unwrap_or(&variable.name).to_owned(), dtype, fill, texts }
    }

    /// The array with its extents of now.
    pub fn spec(&self, header: &Header, variable: &Variable) -> ArraySpec {
        let mut shape: Dims = header.inner_extents(variable).collect();
        if self.texts {
            shape.pop();
        }
        let mut max_shape = None;
        if header.has_records(variable) {
            max_shape = Some(std::iter::once(None).chain(shape.iter().copied().map(Some)).collect());
            shape.insert(0, header.records);
        }
        let names = variable.dimensions.iter().map(|&at| header.dimensions[at].name.clone());
        let dims = Some(names.take(shape.len()).collect());
        ArraySpec { max_shape, fill_value: self.fill.clone(), dims, ..ArraySpec::new(self.dtype.clone(), &shape) }
    }

    /// Where its elements lie.
    pub fn placement(&self, header: &Header, variable: &Variable) -> Placement {
        let row = header.inner_bytes(variable);
        let pitch = if header.has_records(variable) { header.record_size() } else { row };
        Placement { begin: variable.begin, row, pitch, turned: values::turned(&self.dtype) }
    }

    /// Whether an attribute of the variable is no attribute of the array.
    pub fn hides(&self, attribute: &str) -> bool {
        attribute == NAME || attribute == DTYPE || (attribute == FILL && self.fill.is_some())
    }
}

/// Refuses what no variable is.
pub(crate) fn check_spec(spec: &ArraySpec, version: Version) -> Result<CdfType> {
    spec.check()?;
    spec.refuse_strings()?;
    let refuse = |message: String, hint: &str| Err(Error::unsupported("create", message).hint(hint));
    let kind = match &spec.dtype {
        Datatype::Bool => CdfType::Byte,
        Datatype::FixedString(_) => CdfType::Char,
        dtype => match values::number_type(dtype) {
            Some(kind) => kind,
            None => return refuse(format!("classic NetCDF files have no type for {dtype}"), "use hdf5 or zarr"),
        },
    };
    values::check_version("create", kind, version)?;
    if spec.chunk.is_some() || !spec.filters.is_empty() {
        let message = "classic NetCDF files have neither chunks nor filters";
        return refuse(message.into(), "leave them out, or use hdf5 or zarr");
    }
    let growing = |d: usize| spec.max_shape.as_ref().is_some_and(|max| max[d] != Some(spec.shape[d]));
    if (1..spec.shape.len()).any(growing) {
        let message = "only the slowest dimension of an array in a classic NetCDF file can grow";
        return refuse(message.into(), "make the dimension that grows the first one, or use hdf5 or zarr");
    }
    let grows = !spec.shape.is_empty() && growing(0);
    if grows && spec.max_shape.as_ref().is_some_and(|max| max[0].is_some()) {
        let message = "records of a classic NetCDF file have no largest number";
        return refuse(message.into(), "leave the first maximum open");
    }
    if spec.shape.iter().skip(usize::from(grows)).any(|extent| *extent == 0) {
        let message = "a dimension of length 0 is the one that grows in a classic NetCDF file";
        return refuse(message.into(), "leave out arrays without elements, or let the first dimension grow");
    }
    if spec.fill_value.is_some() && matches!(spec.dtype, Datatype::FixedString(2..)) {
        return refuse("a text of several characters cannot be a fill value".into(), "leave it out");
    }
    Ok(kind)
}

/// The variable for a new array, with names that `header` does not have yet.
pub(crate) fn variable_for(header: &Header, name: &str, spec: &ArraySpec) -> Result<Wanted> {
    let kind = check_spec(spec, header.version)?;
    let is_taken = |taken: &str| header.variables.iter().any(|variable| variable.name == taken);
    let stored = names::stored_name(name, is_taken)?;
    let grows = spec.max_shape.as_ref().is_some_and(|max| max.first().is_some_and(Option::is_none));
    let mut new: Vec<Dimension> = Vec::new();
    let mut used: Vec<usize> = Vec::new();
    let mut dimension = |len: u64, wish: String| {
        let all = || header.dimensions.iter().chain(&new).enumerate();
        // The record dimension is shared whatever its name; others by name and length, but not twice in one array.
        let shared = |(at, known): (usize, &Dimension)| {
            let fits = known.len == len && (len == 0 || known.name == wish || is_second(&known.name, &wish));
            (fits && !used.contains(&at)).then_some(at)
        };
        let at = match all().find_map(shared) {
            Some(at) => at,
            None => {
                let name = names::unused(wish, |taken| all().any(|(_, known)| known.name == taken));
                new.push(Dimension { name, len });
                header.dimensions.len() + new.len() - 1
            }
        };
        used.push(at);
    };
    for (d, extent) in spec.shape.iter().enumerate() {
        let records = grows && d == 0;
        let made = || if records { format!("{stored}_0") } else { format!("d{extent}") };
        let wish = match &spec.dims {
            Some(names) => names::stored_name(&names[d], |_| false)?,
            None => made(),
        };
        dimension(if records { 0 } else { *extent }, wish);
    }
    let mut attributes = Vec::new();
    if stored != name {
        attributes.push(text(NAME, name.to_owned()));
    }
    if spec.dtype != values::datatype(kind) {
        attributes.push(text(DTYPE, spec.dtype.to_string()));
    }
    if let Datatype::FixedString(len @ 2..) = spec.dtype {
        dimension(u64::from(len), format!("string{len}"));
    }
    if let Some(fill) = &spec.fill_value {
        let mut data = fill.clone();
        reverse_each(&mut data, values::turned(&spec.dtype));
        attributes.push(CdfAttribute { name: FILL.into(), kind, data });
    }
    let variable = Variable { name: stored, dimensions: used, attributes, kind, begin: 0 };
    let array = Array {
        name: name.to_owned(),
        dtype: spec.dtype.clone(),
        fill: spec.fill_value.clone(),
        texts: matches!(spec.dtype, Datatype::FixedString(2..)),
    };
    Ok(Wanted { dimensions: new, variable, array })
}

/// Whether a name is `wish` with a number, as [`names::unused`] makes it.
fn is_second(name: &str, wish: &str) -> bool {
    let number = name.strip_prefix(wish).and_then(|rest| rest.strip_prefix('_'));
    number.is_some_and(|number| number.parse::<u64>().is_ok())
}
