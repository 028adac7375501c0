//! The arrays and attributes that go through both libraries, and what they hold.

use hyperslab_core::{
    ArraySpec, Attribute, ByteOrder, Container, Datatype, Dims, Error, ErrorKind, Filter, MemoryView, MemoryViewMut,
    Result, Selection, TransferMode, dims::element_count,
};
use hyperslab_testkit::cases;
use serde_json::{Value, json};
use std::sync::Arc;

/// One array.
#[derive(Clone)]
pub struct Case {
    pub name: String,
    pub spec: ArraySpec,
    /// The shape it has before it grows.
    pub grown_from: Option<Dims>,
    /// (start, count) of what is written; the rest is fill. `None` for all.
    pub written: Option<(Dims, Dims)>,
    /// The row-major number whose value is the fill value.
    pub fill: Option<u64>,
    /// HDF5 only: stored in the object header.
    pub compact: bool,
    /// Zarr only: the compressor that the other side must see, or use.
    pub codec: Option<&'static str>,
}

impl Case {
    pub fn new(name: impl Into<String>, spec: ArraySpec) -> Self {
        Self { name: name.into(), spec, grown_from: None, written: None, fill: None, compact: false, codec: None }
    }

    pub fn filled(mut self, number: u64, start: &[u64], count: &[u64]) -> Self {
        self.fill = Some(number);
        self.spec.fill_value = Some(value(&self.spec.dtype, number));
        self.written = Some((start.into(), count.into()));
        self
    }

    pub fn grown(mut self, from: &[u64]) -> Self {
        self.spec.max_shape = Some(vec![None; from.len()]);
        self.grown_from = Some(from.into());
        self
    }

    pub fn json(&self) -> Value {
        json!({
            "name": self.name,
            "dtype": self.spec.dtype,
            "shape": self.spec.shape,
            "max_shape": self.spec.max_shape,
            "chunk": self.spec.chunk,
            "filters": self.spec.filters,
            "fill": self.fill,
            "written": self.written,
            "grown_from": self.grown_from,
            "compact": self.compact,
            "codec": self.codec,
        })
    }

    fn selection(&self) -> Result<Selection> {
        match &self.written {
            Some((start, count)) => Selection::dense(start, count),
            None => Selection::all(&self.spec.shape),
        }
    }

    /// Writes the array the way a program does.
    pub fn write(&self, container: &Arc<dyn Container>) -> Result<()> {
        let spec = ArraySpec { shape: self.grown_from.clone().unwrap_or(self.spec.shape.clone()), ..self.spec.clone() };
        let array = container.create(&self.name, &spec)?;
        if self.grown_from.is_some() {
            array.resize(&self.spec.shape)?;
        }
        let whole = elements(&self.spec.dtype, element_count(&self.spec.shape)?);
        let selection = self.selection()?;
        let size = self.spec.dtype.size();
        let packed: Vec<u8> = selection
            .runs(&self.spec.shape, size)?
            .flat_map(|run| whole[run.offset as usize..run.end() as usize].to_vec())
            .collect();
        array.write(&selection, MemoryView::packed(&packed), TransferMode::Independent)
    }

    /// Compares the array with what it should be.
    pub fn check(&self, container: &Arc<dyn Container>) -> Result<()> {
        let wrong =
            |what: String| Err(Error::new(ErrorKind::Mismatch, "check", what).target(format!("{:?}", self.name)));
        let array = container.array(&self.name)?;
        let spec = array.spec()?;
        if spec.dtype != self.spec.dtype {
            return wrong(format!("the type is {}, expected {}", spec.dtype, self.spec.dtype));
        }
        if spec.shape != self.spec.shape {
            return wrong(format!("the shape is {:?}, expected {:?}", spec.shape, self.spec.shape));
        }
        if self.spec.chunk.is_some() && spec.chunk != self.spec.chunk {
            return wrong(format!("the chunk is {:?}, expected {:?}", spec.chunk, self.spec.chunk));
        }
        if self.codec.is_none() && !self.spec.filters.is_empty() && spec.filters != self.spec.filters {
            return wrong(format!("the filters are {:?}, expected {:?}", spec.filters, self.spec.filters));
        }
        let size = spec.dtype.size() as usize;
        let count = element_count(&spec.shape)?;
        let mut found = vec![0; count as usize * size];
        array.read(&Selection::all(&spec.shape)?, MemoryViewMut::packed(&mut found), TransferMode::Independent)?;
        let fill = self.fill.map_or(vec![0; size], |number| value(&spec.dtype, number));
        let mut wanted =
            if self.written.is_some() { fill.repeat(count as usize) } else { vec![0; count as usize * size] };
        let whole = elements(&spec.dtype, count);
        for run in self.selection()?.runs(&spec.shape, size as u64)? {
            let bytes = run.offset as usize..run.end() as usize;
            wanted[bytes.clone()].copy_from_slice(&whole[bytes]);
        }
        let counts = meaningful(&spec.dtype);
        match (0..found.len()).find(|at| counts[at % size] && found[*at] != wanted[*at]) {
            None => Ok(()),
            Some(at) => {
                let element = at / size * size..(at / size + 1) * size;
                wrong(format!(
                    "element {} is {:?}, expected {:?}",
                    at / size,
                    &found[element.clone()],
                    &wanted[element]
                ))
            }
        }
    }
}

/// Bytes that are no padding.
fn meaningful(dtype: &Datatype) -> Vec<bool> {
    let mut out = vec![dtype.fields().is_empty(); dtype.size() as usize];
    for field in dtype.fields() {
        out[field.offset as usize..][..field.dtype.size() as usize].copy_from_slice(&meaningful(&field.dtype));
    }
    out
}

fn elements(dtype: &Datatype, count: u64) -> Vec<u8> {
    (0..count).flat_map(|number| value(dtype, number)).collect()
}

/// The element of a row-major number. `expected.py` computes the same with numpy.
pub fn value(dtype: &Datatype, number: u64) -> Vec<u8> {
    let ordered = |mut little: Vec<u8>, order: ByteOrder| {
        if order == ByteOrder::Big {
            little.reverse();
        }
        little
    };
    match dtype {
        Datatype::Bool => vec![u8::from(number.is_multiple_of(3))],
        Datatype::Integer { size, order, .. } => {
            ordered(((number * 7 + 3) % 100).to_le_bytes()[..*size as usize].to_vec(), *order)
        }
        Datatype::Float { size, order } => {
            let value = number as f64 * 0.5 - 3.0;
            let little = match size {
                2 => half_bytes(value),
                4 => (value as f32).to_le_bytes().to_vec(),
                _ => value.to_le_bytes().to_vec(),
            };
            ordered(little, *order)
        }
        Datatype::FixedString(size) => {
            let mut text = format!("s{number}").into_bytes();
            text.resize(*size as usize, 0);
            text
        }
        Datatype::VariableString => unreachable!("strings have no packed form"),
        Datatype::Opaque(size) => (0..u64::from(*size)).map(|j| ((number + j) % 256) as u8).collect(),
        Datatype::Compound(compound) => {
            let mut out = vec![0; compound.size as usize];
            for (i, field) in compound.fields.iter().enumerate() {
                let bytes = value(&field.dtype, number + i as u64);
                out[field.offset as usize..][..bytes.len()].copy_from_slice(&bytes);
            }
            out
        }
    }
}

/// A multiple of one half below 1024 in IEEE half precision, which holds it exactly.
fn half_bytes(value: f64) -> Vec<u8> {
    if value == 0.0 {
        return vec![0, 0];
    }
    let sign = u16::from(value < 0.0) << 15;
    let magnitude = value.abs();
    let exponent = magnitude.log2().floor() as i32;
    let fraction = (magnitude / 2f64.powi(exponent) - 1.0) * 1024.0;
    (sign | (((exponent + 15) as u16) << 10) | fraction as u16).to_le_bytes().to_vec()
}

/// Every datatype, and arrays that stand for what else can be said about arrays.
pub fn common() -> Result<Vec<Case>> {
    let mut out = Vec::new();
    for (name, dtype) in cases::datatypes()? {
        let name: String = name
            .chars()
            .map(|c| {
                if c == '<' {
                    'l'
                } else if c == '>' {
                    'b'
                } else {
                    c
                }
            })
            .collect();
        out.push(Case::new(format!("types/{name}"), ArraySpec::new(dtype.clone(), &[5, 7])));
    }
    for shape in cases::shapes() {
        out.push(Case::new(format!("ranks/{}", shape.len()), ArraySpec::new(Datatype::I32, &shape)));
    }
    let chunked =
        |shape: &[u64], chunk: &[u64]| ArraySpec { chunk: Some(chunk.into()), ..ArraySpec::new(Datatype::F64, shape) };
    out.push(Case::new("chunks/uneven", chunked(&[11, 7], &[4, 3])));
    out.push(Case::new("chunks/three dimensions", chunked(&[5, 6, 7], &[2, 5, 3])));
    out.push(Case::new("fill/été", chunked(&[9, 8], &[4, 3])).filled(1000, &[2, 3], &[3, 2]));
    let integers = ArraySpec { dtype: Datatype::I32, ..chunked(&[9, 8], &[4, 3]) };
    out.push(Case::new("fill/integers", integers).filled(1001, &[0, 0], &[1, 1]));
    out.push(Case::new("grown", chunked(&[9, 5], &[4, 3])).grown(&[3, 5]));
    out.push(Case::new("shrunk", chunked(&[2, 5], &[4, 3])).grown(&[8, 5]));
    Ok(out)
}

/// A case with filters.
pub fn filtered(name: &str, filters: &[Filter]) -> Case {
    let spec = ArraySpec {
        chunk: Some([4, 3].as_slice().into()),
        filters: filters.to_vec(),
        ..ArraySpec::new(Datatype::F32, &[11, 7])
    };
    Case::new(name, spec)
}

/// (object, name, kind for numpy or `text`, the value as JSON, the value for us)
pub fn attributes() -> Vec<(&'static str, &'static str, &'static str, Value, Attribute)> {
    let floats = [1.5, -2.25, 1e300];
    let list = Attribute {
        dtype: Datatype::F64,
        shape: [3].as_slice().into(),
        data: floats.iter().flat_map(|value: &f64| value.to_ne_bytes()).collect(),
    };
    let mut out = Vec::new();
    for object in ["", "types", "grown"] {
        out.push((object, "units", "text", json!("metres per second"), Attribute::text("metres per second")));
        out.push((object, "été", "text", json!("µm ≤ 日本"), Attribute::text("µm ≤ 日本")));
        out.push((object, "count", "<i8", json!(-42), Attribute::integer(-42)));
        out.push((object, "step", "<f8", json!(0.1), Attribute::float(0.1)));
        out.push((object, "list", "<f8", json!(floats), list.clone()));
    }
    out
}
