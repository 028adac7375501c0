//! What NetCDF-4 needs of libhdf5 beside arrays and attributes: dimension scales, the references between them and arrays, and
//! attributes of the forms that netcdf-c writes. Everything but [`Hdf5Container::define`] and [`Hdf5Container::inspect`] is
//! called under the lock.

use super::array;
use super::attribute;
use super::container::Hdf5Container;
use super::dataspace::{self, Extents};
use super::datatype;
use super::errors;
use super::library::{self, Id, c_text, done, hid_t, truth};
use super::objects;
use super::properties;
use hdf5_metno_sys::h5::{H5_INDEX_NAME, H5_ITER_INC};
use hdf5_metno_sys::h5d::{self, H5D_fill_time_t};
use hdf5_metno_sys::h5o::{self, H5O_INFO_BASIC, H5O_info2_t, H5O_type_t};
use hdf5_metno_sys::h5p::{self, H5P_DEFAULT};
use hdf5_metno_sys::h5s::{self, H5S_class_t};
use hdf5_metno_sys::h5t::{self, H5T_class_t, H5T_str_t, hvl_t};
use hdf5_metno_sys::{h5a, h5f, h5i, h5l};
use hyperslab_core::{Dims, Error, Result};
use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const WRITING: &str = "write dimensions";
const READING: &str = "read dimensions";
/// Most elements of a list of references or dimension numbers that are read.
const MOST: u64 = 1 << 20;
/// Largest chunk of a dimension without variable: nothing is ever stored in it.
const LARGEST_CHUNK: u64 = 1 << 20;

/// An object reference as stored: the address of the object's header.
pub(crate) type Reference = u64;

/// An open file, for calls under the lock.
pub(crate) struct File<'a>(&'a Id);

/// Opens a file for looking at it.
pub(crate) fn look_at<T>(path: &Path, body: impl FnOnce(&File<'_>) -> Result<T>) -> Result<T> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| Error::invalid(READING, "a NUL in the path"))?;
    library::with(|| {
        // SAFETY: the name ends in NUL.
        let file = Id::take(READING, unsafe { h5f::H5Fopen(name.as_ptr(), h5f::H5F_ACC_RDONLY, H5P_DEFAULT) })?;
        body(&File(&file))
    })
    .map_err(|error| error.target(path.display()))
}

/// What the attributes of a dataset say of dimensions.
#[derive(Debug, Default)]
pub(crate) struct Surveyed {
    /// Its path.
    pub(crate) path: String,
    pub(crate) address: Reference,
    /// Its extents and maxima; `None` without any (a null dataspace).
    pub(crate) extents: Option<(Dims, Vec<Option<u64>>)>,
    /// The attribute NAME of a dimension scale.
    pub(crate) scale: Option<String>,
    /// `_Netcdf4Dimid`.
    pub(crate) number: Option<i32>,
    /// `_Netcdf4Coordinates`.
    pub(crate) coordinates: Option<Vec<i32>>,
    /// The first scale of each dimension.
    pub(crate) scales: Option<Vec<Option<Reference>>>,
}

impl Hdf5Container {
    /// Changes the file as [`Self::create_group`](hyperslab_core::Container::create_group) does: `None` where another rank made
    /// the change. Collective; `body` does the same on every rank.
    pub(crate) fn define<T>(
        &self,
        operation: &'static str,
        checked: Result<()>,
        body: impl FnOnce(&File<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        self.change(operation, checked, |file| body(&File(file)))
    }

    /// Looks at the file. Not collective.
    pub(crate) fn inspect<T>(&self, operation: &'static str, body: impl FnOnce(&File<'_>) -> Result<T>) -> Result<T> {
        self.with(operation, |file| body(&File(file)))
    }
}

/// Bytes of an attribute, and the type and space of them.
struct Value<'a> {
    kind: Id,
    space: Id,
    data: &'a [u8],
}

fn put(object: &Id, name: &str, value: &Value<'_>) -> Result<()> {
    // SAFETY: the callers below give data of the bytes that type and space say.
    unsafe { attribute::replace(object, name, &value.kind, &value.space, value.data.as_ptr().cast()) }
}

/// A copy of one of libhdf5's own types.
fn copy_of(kind: hid_t) -> Result<Id> {
    // SAFETY: libhdf5 checks the identifier and makes a new type.
    Id::take(WRITING, unsafe { h5t::H5Tcopy(kind) })
}

/// Text of `size` bytes that ends in NUL where it is shorter.
fn text_type(size: usize) -> Result<Id> {
    let kind = copy_of(*h5t::H5T_C_S1)?;
    // SAFETY: a live string type of our own.
    unsafe {
        done(WRITING, h5t::H5Tset_size(kind.raw(), size))?;
        done(WRITING, h5t::H5Tset_strpad(kind.raw(), H5T_str_t::H5T_STR_NULLTERM))?;
    }
    Ok(kind)
}

fn variable_text_type() -> Result<Id> {
    let kind = text_type(h5t::H5T_VARIABLE)?;
    datatype::mark_utf8(&kind)?;
    Ok(kind)
}

fn reference_list_type() -> Result<Id> {
    let reference = copy_of(*h5t::H5T_STD_REF_OBJ)?;
    let number = copy_of(*h5t::H5T_NATIVE_UINT32)?;
    datatype::compound(16, &[("dataset", 0, reference), ("dimension", 8, number)])
}

fn references_type() -> Result<Id> {
    // SAFETY: makes a new type of libhdf5's own.
    Id::take(WRITING, unsafe { h5t::H5Tvlen_create(*h5t::H5T_STD_REF_OBJ) })
}

impl File<'_> {
    /// The file.
    pub(super) fn id(&self) -> &Id {
        self.0
    }

    /// Opens the root, a group or an array.
    pub(crate) fn object(&self, path: &str) -> Result<Object> {
        objects::open(READING, self.0, path, H5P_DEFAULT).map(Object)
    }

    /// What a reference to an object is.
    pub(crate) fn reference(&self, path: &str) -> Result<Reference> {
        let text = objects::path(WRITING, path)?;
        let mut info = MaybeUninit::<H5O_info2_t>::zeroed();
        // SAFETY: the file is live, the name ends in NUL, libhdf5 fills the structure when it succeeds.
        unsafe {
            let (file, into) = (self.0.raw(), info.as_mut_ptr());
            done(WRITING, h5o::H5Oget_info_by_name3(file, text.as_ptr(), into, H5O_INFO_BASIC, H5P_DEFAULT))?;
            Ok(address(info.assume_init_ref()))
        }
    }

    /// Whether a link of that name exists in a group that exists.
    pub(crate) fn exists(&self, path: &str) -> Result<bool> {
        Ok(objects::probe(READING, self.0, path)? != objects::Found::Nothing)
    }

    /// Makes a dataset that is a dimension and nothing else: no element of it is ever written. `len` is `None` for a dimension
    /// that grows; `shared` says that processes share the file.
    pub(crate) fn create_dimension(&self, path: &str, len: Option<u64>, shared: bool) -> Result<Object> {
        let text = objects::path(WRITING, path)?;
        let space = match len {
            Some(len) => dataspace::simple(&[len], None)?,
            None => dataspace::simple(&[0], Some(&[None]))?,
        };
        let list = properties::new(WRITING, *h5p::H5P_CLS_DATASET_CREATE)?;
        properties::track_order(WRITING, &list)?;
        // SAFETY: live lists, types and spaces; the name ends in NUL.
        unsafe {
            // libhdf5 allocates contiguous datasets of shared files at once, whatever it is asked; filtered chunks it does not.
            let chunk = match len {
                None => Some(1),
                Some(len) if shared && len > 0 => Some(len.min(LARGEST_CHUNK)),
                Some(_) => None,
            };
            if let Some(chunk) = chunk {
                done(WRITING, h5p::H5Pset_chunk(list.raw(), 1, &raw const chunk))?;
                if len.is_some() {
                    done(WRITING, h5p::H5Pset_deflate(list.raw(), 1))?;
                }
            }
            done(WRITING, h5p::H5Pset_fill_time(list.raw(), H5D_fill_time_t::H5D_FILL_TIME_NEVER))?;
            let links = properties::link_creation()?;
            let (file, kind) = (self.0.raw(), *h5t::H5T_IEEE_F32BE);
            let made = h5d::H5Dcreate2(file, text.as_ptr(), kind, space.raw(), links.raw(), list.raw(), H5P_DEFAULT);
            Id::take(WRITING, made).map(Object)
        }
    }

    /// Removes the link to an object.
    pub(crate) fn unlink(&self, path: &str) -> Result<()> {
        let text = objects::path(WRITING, path)?;
        // SAFETY: the file is live, the name ends in NUL.
        done(WRITING, unsafe { h5l::H5Ldelete(self.0.raw(), text.as_ptr(), H5P_DEFAULT) })
    }

    /// Gives an object another name.
    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (objects::path(WRITING, from)?, objects::path(WRITING, to)?);
        let links = properties::link_creation()?;
        let file = self.0.raw();
        // SAFETY: the file and the list are live, the names end in NUL.
        done(WRITING, unsafe { h5l::H5Lmove(file, from.as_ptr(), file, to.as_ptr(), links.raw(), H5P_DEFAULT) })
    }

    /// The paths of all datasets, with their addresses.
    fn datasets(&self) -> Result<Vec<(String, Reference)>> {
        let datasets = self.visited()?.into_iter().filter(|(kind, ..)| *kind == H5O_type_t::H5O_TYPE_DATASET);
        Ok(datasets.map(|(_, path, address)| (path, address)).collect())
    }

    /// The paths of all groups and datasets, the root being empty, with their addresses.
    pub(super) fn objects(&self) -> Result<Vec<(String, Reference)>> {
        let known = [H5O_type_t::H5O_TYPE_DATASET, H5O_type_t::H5O_TYPE_GROUP];
        let objects = self.visited()?.into_iter().filter(|(kind, ..)| known.contains(kind));
        Ok(objects.map(|(_, path, address)| (if path == "." { String::new() } else { path }, address)).collect())
    }

    fn visited(&self) -> Result<Vec<Visited>> {
        let mut found: Vec<Visited> = Vec::new();
        // SAFETY: the callback gets exactly the list passed here, which outlives the walk.
        let status = unsafe {
            let (file, into) = (self.0.raw(), (&raw mut found).cast());
            h5o::H5Ovisit3(file, H5_INDEX_NAME, H5_ITER_INC, Some(visit), into, H5O_INFO_BASIC)
        };
        if status < 0 { Err(errors::last(READING)) } else { Ok(found) }
    }

    /// The bytes that elements of each dataset take.
    pub(crate) fn stored_sizes(&self) -> Result<Vec<(String, u64)>> {
        let sizes = self.datasets()?.into_iter().map(|(path, _)| {
            let object = self.object(&path)?;
            // SAFETY: the dataset is live.
            let bytes = unsafe { h5d::H5Dget_storage_size(object.0.raw()) };
            Ok((path, bytes))
        });
        sizes.collect()
    }

    /// Whether any dataset is a dimension scale.
    pub(crate) fn any_scale(&self) -> Result<bool> {
        for (path, _) in self.datasets()? {
            if self.object(&path)?.scale_name()?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What every dataset says of dimensions, sorted by path.
    pub(crate) fn survey(&self) -> Result<Vec<Surveyed>> {
        let mut found = self.datasets()?;
        found.sort_unstable();
        found
            .into_iter()
            .map(|(path, address)| {
                let object = self.object(&path)?;
                object.survey(path, address)
            })
            .collect()
    }
}

/// Type, path and address of an object.
type Visited = (H5O_type_t, String, Reference);

/// Keeps what is known of one object. Must not unwind into C.
extern "C" fn visit(_at: hid_t, name: *const c_char, info: *const H5O_info2_t, client: *mut c_void) -> i32 {
    // SAFETY: `client` is the list of `visited`; libhdf5 passes a valid structure and NUL-terminated text.
    let (found, info, name) = unsafe { (&mut *client.cast::<Vec<Visited>>(), &*info, CStr::from_ptr(name)) };
    found.push((info.type_, name.to_string_lossy().into_owned(), address(info)));
    0
}

/// The address in the token of an object: its first bytes, least significant first.
fn address(info: &H5O_info2_t) -> Reference {
    // SAFETY: a token is an array of 16 bytes.
    let bytes = unsafe { (&raw const info.token).cast::<[u8; 8]>().read_unaligned() };
    u64::from_le_bytes(bytes)
}

/// An open object.
pub(crate) struct Object(Id);

impl Object {
    /// The object.
    pub(super) fn id(&self) -> &Id {
        &self.0
    }

    /// Whether it is a dataset.
    pub(super) fn is_dataset(&self) -> bool {
        // SAFETY: the object is live.
        unsafe { h5i::H5Iget_type(self.0.raw()) == h5i::H5I_type_t::H5I_DATASET }
    }

    /// Whether it has an attribute.
    pub(crate) fn has(&self, name: &str) -> Result<bool> {
        let name = c_text(READING, name)?;
        // SAFETY: the object is live, the name ends in NUL.
        truth(READING, unsafe { h5a::H5Aexists(self.0.raw(), name.as_ptr()) })
    }

    /// Closes it, with the error that this may have.
    pub(crate) fn close(self) -> Result<()> {
        self.0.close(WRITING)
    }

    /// Text of exactly `size` bytes, as the attributes of dimension scales are.
    pub(crate) fn put_fixed_text(&self, name: &str, text: &str, size: usize) -> Result<()> {
        let mut data = text.as_bytes().to_vec();
        data.truncate(size.saturating_sub(1));
        data.resize(size, 0);
        put(&self.0, name, &Value { kind: text_type(size)?, space: dataspace::simple(&[], None)?, data: &data })
    }

    /// A text of its own length; empty text has no elements.
    pub(crate) fn put_text(&self, name: &str, text: &[u8]) -> Result<()> {
        let kind = text_type(text.len().max(1))?;
        if !text.is_ascii() {
            datatype::mark_utf8(&kind)?;
        }
        let space = match text.is_empty() {
            false => dataspace::simple(&[], None)?,
            // SAFETY: makes a new dataspace.
            true => Id::take(WRITING, unsafe { h5s::H5Screate(H5S_class_t::H5S_NULL) })?,
        };
        let data = if text.is_empty() { &[0][..] } else { text };
        put(&self.0, name, &Value { kind, space, data })
    }

    /// Texts, each of its own length.
    pub(crate) fn put_texts(&self, name: &str, texts: &[&[u8]]) -> Result<()> {
        let owned = texts
            .iter()
            .map(|text| {
                let text = std::str::from_utf8(text).map_err(|_| Error::unsupported(WRITING, "a text is not UTF-8"))?;
                c_text(WRITING, text)
            })
            .collect::<Result<Vec<_>>>()?;
        let pointers: Vec<*const c_char> = owned.iter().map(|text| text.as_ptr()).collect();
        let (kind, space) = (variable_text_type()?, dataspace::simple(&[texts.len() as u64], None)?);
        // SAFETY: one pointer to NUL-terminated text for each element, as the type says.
        unsafe { attribute::replace(&self.0, name, &kind, &space, pointers.as_ptr().cast()) }
    }

    /// A list of numbers of a type; `shape` is empty for a scalar.
    pub(crate) fn put_numbers(
        &self,
        name: &str,
        dtype: &hyperslab_core::Datatype,
        shape: &[u64],
        data: &[u8],
    ) -> Result<()> {
        let (kind, space) = (datatype::create(dtype)?, dataspace::simple(shape, None)?);
        put(&self.0, name, &Value { kind, space, data })
    }

    /// 32-bit integers.
    pub(crate) fn put_integers(&self, name: &str, shape: &[u64], values: &[i32]) -> Result<()> {
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        self.put_numbers(name, &hyperslab_core::Datatype::I32, shape, &data)
    }

    /// The scales of each dimension of a dataset, one each.
    pub(crate) fn put_scales(&self, scales: &[Reference]) -> Result<()> {
        let mut scales = scales.to_vec();
        let lists: Vec<hvl_t> =
            scales.iter_mut().map(|scale| hvl_t { len: 1, p: std::ptr::from_mut(scale).cast() }).collect();
        let (kind, space) = (references_type()?, dataspace::simple(&[lists.len() as u64], None)?);
        // SAFETY: one list of one reference for each element; libhdf5 copies them.
        unsafe { attribute::replace(&self.0, "DIMENSION_LIST", &kind, &space, lists.as_ptr().cast()) }
    }

    /// The datasets that use a scale, and which dimension of each.
    pub(crate) fn put_users(&self, users: &[(Reference, u32)]) -> Result<()> {
        let mut data = Vec::with_capacity(users.len() * 16);
        for (user, dimension) in users {
            data.extend(user.to_ne_bytes());
            data.extend(dimension.to_ne_bytes());
            data.extend([0; 4]);
        }
        let (kind, space) = (reference_list_type()?, dataspace::simple(&[users.len() as u64], None)?);
        put(&self.0, "REFERENCE_LIST", &Value { kind, space, data: &data })
    }

    /// Opens an attribute that exists.
    fn open(&self, name: &CStr) -> Result<Option<(Id, Id, Id)>> {
        // SAFETY: the object is live, the name ends in NUL; what is returned is closed by `Id`.
        unsafe {
            if !truth(READING, h5a::H5Aexists(self.0.raw(), name.as_ptr()))? {
                return Ok(None);
            }
            let attribute = Id::take(READING, h5a::H5Aopen(self.0.raw(), name.as_ptr(), H5P_DEFAULT))?;
            let kind = Id::take(READING, h5a::H5Aget_type(attribute.raw()))?;
            let space = Id::take(READING, h5a::H5Aget_space(attribute.raw()))?;
            Ok(Some((attribute, kind, space)))
        }
    }

    /// Integers of an attribute; `None` if there is none, or it is something else.
    fn integers(&self, name: &CStr) -> Result<Option<Vec<i32>>> {
        let Some((attribute, kind, space)) = self.open(name)? else { return Ok(None) };
        // SAFETY: the type is live.
        if unsafe { h5t::H5Tget_class(kind.raw()) } != H5T_class_t::H5T_INTEGER {
            return Ok(None);
        }
        let Some(elements) = elements(&space)? else { return Ok(None) };
        let mut values = vec![0i32; elements];
        // SAFETY: there is room for every element as 32-bit integer.
        unsafe {
            let into = values.as_mut_ptr().cast();
            done(READING, h5a::H5Aread(attribute.raw(), *h5t::H5T_NATIVE_INT32, into))?;
        }
        Ok(Some(values))
    }

    /// The first reference of each element of `DIMENSION_LIST`; `None` if there is none, or it is something else.
    fn scales(&self) -> Result<Option<Vec<Option<Reference>>>> {
        let Some((attribute, kind, space)) = self.open(c"DIMENSION_LIST")? else { return Ok(None) };
        let wanted = references_type()?;
        // SAFETY: both types are live.
        if !truth(READING, unsafe { h5t::H5Tequal(kind.raw(), wanted.raw()) })? {
            return Ok(None);
        }
        let Some(elements) = elements(&space)? else { return Ok(None) };
        let mut lists: Vec<hvl_t> = (0..elements).map(|_| hvl_t { len: 0, p: std::ptr::null_mut() }).collect();
        // SAFETY: there is one list for each element; libhdf5 fills them with memory of its own, which is read before it is
        // given back.
        unsafe {
            done(READING, h5a::H5Aread(attribute.raw(), kind.raw(), lists.as_mut_ptr().cast()))?;
            let first = |list: &hvl_t| (list.len > 0).then(|| list.p.cast::<Reference>().read_unaligned());
            let scales = lists.iter().map(first).collect();
            done(READING, h5t::H5Treclaim(kind.raw(), space.raw(), H5P_DEFAULT, lists.as_mut_ptr().cast()))?;
            Ok(Some(scales))
        }
    }

    /// The NAME of a dimension scale; `None` for other objects.
    pub(crate) fn scale_name(&self) -> Result<Option<String>> {
        // SAFETY: the object is live, the name ends in NUL.
        if !truth(READING, unsafe { h5a::H5Aexists(self.0.raw(), c"CLASS".as_ptr()) })? {
            return Ok(None);
        }
        let text = |name: &str| attribute::get(&self.0, name).ok().and_then(|value| value.as_text().map(str::to_owned));
        Ok(text("CLASS").filter(|class| class == "DIMENSION_SCALE").map(|_| text("NAME").unwrap_or_default()))
    }

    /// The type of a dataset; `None` for other objects.
    fn dataset_type(&self) -> Result<Option<Id>> {
        if !self.is_dataset() {
            return Ok(None);
        }
        // SAFETY: the dataset is live; what is returned is closed by `Id`.
        Id::take(READING, unsafe { h5d::H5Dget_type(self.0.raw()) }).map(Some)
    }

    /// The fill value that a dataset was created with.
    pub(crate) fn fill_value(&self) -> Result<Option<Vec<u8>>> {
        let Some(kind) = self.dataset_type()? else { return Ok(None) };
        // SAFETY: the dataset is live; the list is closed by `Id`.
        let list = Id::take(READING, unsafe { h5d::H5Dget_create_plist(self.0.raw()) })?;
        array::fill_value(&list, &datatype::read(&kind)?)
    }

    /// Whether a dataset holds signed bytes.
    pub(crate) fn is_signed_bytes(&self) -> Result<bool> {
        let Some(kind) = self.dataset_type()? else { return Ok(false) };
        let stored = datatype::read(&kind)?;
        Ok(matches!(stored.dtype, hyperslab_core::Datatype::Integer { size: 1, signed: true, .. }))
    }

    fn survey(&self, path: String, address: Reference) -> Result<Surveyed> {
        // SAFETY: the dataset is live; the space is closed by `Id`.
        let space = Id::take(READING, unsafe { h5d::H5Dget_space(self.0.raw()) })?;
        let extents = dataspace::extents(&space)?.map(|Extents { shape, max }| (shape, max.to_vec()));
        let coordinates = self.integers(c"_Netcdf4Coordinates")?;
        Ok(Surveyed {
            path,
            address,
            scale: self.scale_name()?,
            number: self.integers(c"_Netcdf4Dimid")?.and_then(|list| list.first().copied()),
            scales: self.scales()?,
            coordinates,
            extents,
        })
    }
}

/// The number of elements of a space, if there are any and not too many.
fn elements(space: &Id) -> Result<Option<usize>> {
    let Some(extents) = dataspace::extents(space)? else { return Ok(None) };
    let elements = hyperslab_core::dims::element_count(&extents.shape)?;
    Ok((elements <= MOST).then_some(elements as usize))
}
