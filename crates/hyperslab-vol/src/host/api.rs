//! The functions of a host's libhdf5, found by name in the library that loaded the connector.

use super::parallel::Parallel;
use libc::{c_char, c_int, c_uint, c_void, size_t};

/// An identifier of HDF5.
pub(crate) type Hid = i64;
/// A status of HDF5; negative for failure.
pub(crate) type Herr = c_int;
/// Something of the library, or of the program.
pub(crate) type Ptr = *mut c_void;
/// The same, not to be changed.
pub(crate) type Const = *const c_void;
/// Text that ends in NUL.
pub(crate) type Text = *const c_char;
/// Where a request of an asynchronous operation goes.
pub(crate) type Req = *mut *mut c_void;

/// No property list in particular.
pub(crate) const H5P_DEFAULT: Hid = 0;
/// All elements.
pub(crate) const H5S_ALL: Hid = 0;
/// Memory in one piece, as many elements as the file's selection has.
pub(crate) const H5S_BLOCK: Hid = 1;
/// The selection that is in the transfer list.
pub(crate) const H5S_PLIST: Hid = 2;
/// No address in a file.
pub(crate) const HADDR_UNDEF: u64 = u64::MAX;
/// The error stack of the calling thread.
const H5E_DEFAULT: Hid = 0;

macro_rules! api {
    ($($name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions.
        #[allow(non_snake_case)]
        struct Functions {
            $($name: unsafe extern "C" fn($($type),*) $(-> $result)?,)*
        }

        impl Functions {
            fn find(find: &dyn Fn(&str) -> Ptr) -> Result<Self, &'static str> {
                Ok(Self {
                    $($name: {
                        let found = find(stringify!($name));
                        if found.is_null() {
                            return Err(stringify!($name));
                        }
                        // SAFETY: the library's function of this name has this type, in all versions that are served.
                        unsafe { std::mem::transmute::<Ptr, unsafe extern "C" fn($($type),*) $(-> $result)?>(found) }
                    },)*
                })
            }
        }

        /// Calls of the library. Their contracts are those of the library, and only a thread that it called may make them.
        #[allow(non_snake_case, clippy::too_many_arguments, clippy::missing_safety_doc)]
        impl Api {
            $(pub(crate) unsafe fn $name(&self, $($arg: $type),*) $(-> $result)? {
                // SAFETY: the caller keeps the library's contract.
                unsafe { (self.functions.$name)($($arg),*) }
            })*
        }
    };
}

api! {
    H5get_libversion(major: *mut c_uint, minor: *mut c_uint, release: *mut c_uint) -> Herr;
    H5allocate_memory(size: size_t, clear: bool) -> Ptr;
    H5free_memory(memory: Ptr) -> Herr;
    H5Iinc_ref(id: Hid) -> c_int;
    H5Idec_ref(id: Hid) -> c_int;
    H5Eget_current_stack() -> Hid;
    H5Eset_current_stack(stack: Hid) -> Herr;
    H5Ewalk2(stack: Hid, direction: c_int, function: Ptr, data: Ptr) -> Herr;
    H5Eget_auto2(stack: Hid, function: *mut Ptr, data: *mut Ptr) -> Herr;
    H5Eset_auto2(stack: Hid, function: Ptr, data: Ptr) -> Herr;
    H5Pget_vol_info(list: Hid, info: *mut Ptr) -> Herr;
    H5Pset_vol(list: Hid, connector: Hid, info: Const) -> Herr;
    H5Pcopy(list: Hid) -> Hid;
    H5Pcreate(class: Hid) -> Hid;
    H5Pclose(list: Hid) -> Herr;
    H5Pequal(one: Hid, other: Hid) -> c_int;
    H5Pexist(list: Hid, name: Text) -> c_int;
    H5Pcopy_prop(to: Hid, from: Hid, name: Text) -> Herr;
    H5Pget(list: Hid, name: Text, value: Ptr) -> Herr;
    H5Pset_cache(list: Hid, metadata: c_int, slots: size_t, bytes: size_t, w0: f64) -> Herr;
    H5Pget_layout(list: Hid) -> c_int;
    H5Pset_layout(list: Hid, layout: c_int) -> Herr;
    H5Pset_chunk(list: Hid, rank: c_int, extents: *const u64) -> Herr;
    H5Premove_filter(list: Hid, number: c_int) -> Herr;
    H5Pset_deflate(list: Hid, level: c_uint) -> Herr;
    H5Pset_shuffle(list: Hid) -> Herr;
    H5Pset_fletcher32(list: Hid) -> Herr;
    H5Pset_alignment(list: Hid, threshold: u64, alignment: u64) -> Herr;
    H5Pget_chunk(list: Hid, rank: c_int, extents: *mut u64) -> c_int;
    H5Pget_chunk_opts(list: Hid, options: *mut c_uint) -> Herr;
    H5Pget_chunk_cache(list: Hid, slots: *mut size_t, bytes: *mut size_t, w0: *mut f64) -> Herr;
    H5Pset_chunk_cache(list: Hid, slots: size_t, bytes: size_t, w0: f64) -> Herr;
    H5Pget_cache(list: Hid, metadata: *mut c_int, slots: *mut size_t, bytes: *mut size_t, w0: *mut f64) -> Herr;
    H5Pget_nfilters(list: Hid) -> c_int;
    H5Pget_filter2(list: Hid, at: c_uint, flags: *mut c_uint, number: *mut size_t, values: *mut c_uint, room: size_t, name: *mut c_char, config: *mut c_uint) -> c_int;
    H5Pget_external_count(list: Hid) -> c_int;
    H5Pget_alloc_time(list: Hid, time: *mut c_int) -> Herr;
    H5Pget_fill_time(list: Hid, time: *mut c_int) -> Herr;
    H5Pfill_value_defined(list: Hid, status: *mut c_int) -> Herr;
    H5Pget_fill_value(list: Hid, kind: Hid, value: Ptr) -> Herr;
    H5Pget_driver(list: Hid) -> Hid;
    H5Pset_fapl_sec2(list: Hid) -> Herr;
    H5Pset_driver(list: Hid, driver: Hid, info: Const) -> Herr;
    H5FDregister(class: Const) -> Hid;
    H5Iis_valid(id: Hid) -> c_int;
    H5Pget_sieve_buf_size(list: Hid, bytes: *mut size_t) -> Herr;
    H5Pset_sieve_buf_size(list: Hid, bytes: size_t) -> Herr;
    H5Pget_page_buffer_size(list: Hid, bytes: *mut size_t, metadata: *mut c_uint, raw: *mut c_uint) -> Herr;
    H5Pget_userblock(list: Hid, bytes: *mut u64) -> Herr;
    H5Sget_select_type(space: Hid) -> c_int;
    H5Sget_select_npoints(space: Hid) -> i64;
    H5Sget_simple_extent_dims(space: Hid, extents: *mut u64, most: *mut u64) -> c_int;
    H5Sis_regular_hyperslab(space: Hid) -> c_int;
    H5Sget_regular_hyperslab(space: Hid, start: *mut u64, stride: *mut u64, count: *mut u64, block: *mut u64) -> c_int;
    H5Sget_select_bounds(space: Hid, first: *mut u64, last: *mut u64) -> Herr;
    H5Sget_select_hyper_nblocks(space: Hid) -> i64;
    H5Sget_select_hyper_blocklist(space: Hid, first: u64, number: u64, corners: *mut u64) -> Herr;
    H5Ssel_iter_create(space: Hid, element: size_t, flags: c_uint) -> Hid;
    H5Ssel_iter_get_seq_list(iterator: Hid, most: size_t, most_bytes: size_t, number: *mut size_t, bytes: *mut size_t, offsets: *mut u64, lengths: *mut size_t) -> Herr;
    H5Ssel_iter_close(iterator: Hid) -> Herr;
    H5Sget_select_elem_pointlist(space: Hid, first: u64, number: u64, points: *mut u64) -> Herr;
    H5Screate_simple(rank: c_int, extents: *const u64, most: *const u64) -> Hid;
    H5Sselect_none(space: Hid) -> Herr;
    H5Sselect_hyperslab(space: Hid, how: c_int, start: *const u64, stride: *const u64, count: *const u64, block: *const u64) -> Herr;
    H5Sclose(space: Hid) -> Herr;
    H5Tget_size(kind: Hid) -> size_t;
    H5Tget_class(kind: Hid) -> c_int;
    H5Tget_order(kind: Hid) -> c_int;
    H5Tget_sign(kind: Hid) -> c_int;
    H5Tget_precision(kind: Hid) -> size_t;
    H5Tget_offset(kind: Hid) -> c_int;
    H5Tget_fields(kind: Hid, sign: *mut size_t, exponent: *mut size_t, exponent_size: *mut size_t, mantissa: *mut size_t, mantissa_size: *mut size_t) -> Herr;
    H5Tget_ebias(kind: Hid) -> size_t;
    H5Tget_norm(kind: Hid) -> c_int;
    H5Tget_nmembers(kind: Hid) -> c_int;
    H5Tget_member_name(kind: Hid, at: c_uint) -> *mut c_char;
    H5Tget_member_offset(kind: Hid, at: c_uint) -> size_t;
    H5Tget_member_type(kind: Hid, at: c_uint) -> Hid;
    H5Tis_variable_str(kind: Hid) -> c_int;
    H5Tconvert(from: Hid, to: Hid, elements: size_t, buffer: Ptr, background: Ptr, list: Hid) -> Herr;
    H5Tequal(one: Hid, other: Hid) -> c_int;
    H5Tcopy(kind: Hid) -> Hid;
    H5Tget_strpad(kind: Hid) -> c_int;
    H5Tget_super(kind: Hid) -> Hid;
    H5Tget_member_value(kind: Hid, at: c_uint, value: Ptr) -> Herr;
    H5Tget_member_index(kind: Hid, name: Text) -> c_int;
    H5Tcommitted(kind: Hid) -> Herr;
    H5Tclose(kind: Hid) -> Herr;
    H5VLget_value(connector: Hid, value: *mut c_int) -> Herr;
    H5VLregister_connector(class: Const, list: Hid) -> Hid;
    H5VLregister_connector_by_value(value: c_int, list: Hid) -> Hid;
    H5VLcopy_connector_info(connector: Hid, to: *mut Ptr, from: Ptr) -> Herr;
    H5VLcmp_connector_info(result: *mut c_int, connector: Hid, one: Const, other: Const) -> Herr;
    H5VLcmp_connector_cls(result: *mut c_int, one: Hid, other: Hid) -> Herr;
    H5VLfree_connector_info(connector: Hid, info: Ptr) -> Herr;
    H5VLconnector_info_to_str(info: Const, connector: Hid, text: *mut *mut c_char) -> Herr;
    H5VLconnector_str_to_info(text: Text, connector: Hid, info: *mut Ptr) -> Herr;
    H5VLget_object(object: Ptr, connector: Hid) -> Ptr;
    H5VLget_wrap_ctx(object: Ptr, connector: Hid, context: *mut Ptr) -> Herr;
    H5VLwrap_object(object: Ptr, kind: c_int, connector: Hid, context: Ptr) -> Ptr;
    H5VLunwrap_object(object: Ptr, connector: Hid) -> Ptr;
    H5VLfree_wrap_ctx(context: Ptr, connector: Hid) -> Herr;
    H5VLattr_create(object: Ptr, place: Const, connector: Hid, name: Text, kind: Hid, space: Hid, create: Hid, access: Hid, transfer: Hid, request: Req) -> Ptr;
    H5VLattr_open(object: Ptr, place: Const, connector: Hid, name: Text, access: Hid, transfer: Hid, request: Req) -> Ptr;
    H5VLattr_read(object: Ptr, connector: Hid, kind: Hid, data: Ptr, transfer: Hid, request: Req) -> Herr;
    H5VLattr_write(object: Ptr, connector: Hid, kind: Hid, data: Const, transfer: Hid, request: Req) -> Herr;
    H5VLattr_get(object: Ptr, connector: Hid, arguments: Ptr, transfer: Hid, request: Req) -> Herr;
    H5VLattr_specific(object: Ptr, place: Const, connector: Hid, arguments: Ptr, transfer: Hid, request: Req) -> Herr;
    H5VLattr_optional(object: Ptr, connector: Hid, arguments: Ptr, transfer: Hid, request: Req) -> Herr;
    H5VLattr_close(object: Ptr, connector: Hid, transfer: Hid, request: Req) -> Herr;
    H5VLdataset_create(object: Ptr, place: Const, connector: Hid, name: Text, link: Hid, kind: Hid, space: Hid, create: Hid, access: Hid, transfer: Hid, request: Req) -> Ptr;
    H5VLdataset_open(object: Ptr, place: Const, connector: Hid, name: Text, access: Hid, transfer: Hid, request: Req) -> Ptr;
    H5VLdataset_read(count: size_t, objects: *mut Ptr, connector: Hid, kinds: *mut Hid, memory: *mut Hid, files: *mut Hid, transfer: Hid, data: *mut Ptr, request: Req) -> Herr;
    H5VLdataset_write(count: size_t, objects: *mut Ptr, connector: Hid, kinds: *mut Hid, memory: *mut Hid, files: *mut Hid, transfer: Hid, data: *mut Const, request: Req) -> Herr;
    H5VLdataset_get(object: Ptr, connector: Hid, arguments: Ptr, transfer: Hid, request: Req) -> Herr;
    H5VLdataset_specific(object: Ptr, connector: Hid, arguments: Ptr, transfer: Hid, request: Req) -> Herr;
    H5VLdataset_optional(object: Ptr, connector: Hid, arguments: Ptr, transfer: Hid, request: Req) -> Herr;
    H5VLdataset_close(object: Ptr, connector: Hid, transfer: Hid, request: Req) -> Herr;
    H5VLdatatype_commit(object: Ptr, place: Const, connector: Hid, name: Text, kind: Hid, link: Hid, create: Hid, access: Hid, transfer: Hid, request: Req) -> Ptr;
    H5VLdatatype_open(object: Ptr, place: Const, connector: Hid, name: Text, access: Hid, transfer: Hid, request: Req) -> Ptr;
    H5VLdatatype_get(object: Ptr, connector: Hid, arguments: Ptr, transfer: Hid, request: Req) -> Herr;
    H5VLdatatype_specific(object: Ptr, connector: Hid, arguments: Ptr, transfer: Hid, request: Req) -> Herr;
    H5VLdatatype_optional(object: Ptr, connector: Hid, arguments: Ptr, transfer: Hid, request: Req) -> Herr;
    H5VLdatatype_close(object: Ptr, connector: Hid, transfer: Hid, request: Req) -> Herr;
    H5VLfile_create(name: Text, flags: c_uint, create: Hid, access: Hid, transfer: Hid, request: Req) -> Ptr;
    H5VLfile_open(name: Text, flags: c_uint, access: Hid, transfer: Hid, request: Req) -> Ptr;
    H5VLfile_get(object: Ptr, connector: Hid, arguments: Ptr, transfer: Hid, request: Req) -> Herr;
    H5VLfile_specific(object: Ptr, connector: Hid, arguments: Ptr, transfer: Hid, request: Req) -> Herr;
    H5VLfile_optional(object: Ptr, connector: Hid, arguments: Ptr, transfer: Hid, request: Req) -> Herr;
    H5VLfile_close(object: Ptr, connector: Hid, transfer: Hid, request: Req) -> Herr;
    H5VLgroup_create(object: Ptr, place: Const, connector: Hid, name: Text, link: Hid, create: Hid, access: Hid, transfer: Hid, request: Req) -> Ptr;
    H5VLgroup_open(object: Ptr, place: Const, connector: Hid, name: Text, access: Hid, transfer: Hid, request: Req) -> Ptr;
    H5VLgroup_get(object: Ptr, connector: Hid, arguments: Ptr, transfer: Hid, request: Req) -> Herr;
    H5VLgroup_specific(object: Ptr, connector: Hid, arguments: Ptr, transfer: Hid, request: Req) -> Herr;
    H5VLgroup_optional(object: Ptr, connector: Hid, arguments: Ptr, transfer: Hid, request: Req) -> Herr;
    H5VLgroup_close(object: Ptr, connector: Hid, transfer: Hid, request: Req) -> Herr;
    H5VLlink_create(arguments: Ptr, object: Ptr, place: Const, connector: Hid, create: Hid, access: Hid, transfer: Hid, request: Req) -> Herr;
    H5VLlink_copy(from: Ptr, from_place: Const, to: Ptr, to_place: Const, connector: Hid, create: Hid, access: Hid, transfer: Hid, request: Req) -> Herr;
    H5VLlink_move(from: Ptr, from_place: Const, to: Ptr, to_place: Const, connector: Hid, create: Hid, access: Hid, transfer: Hid, request: Req) -> Herr;
    H5VLlink_get(object: Ptr, place: Const, connector: Hid, arguments: Ptr, transfer: Hid, request: Req) -> Herr;
    H5VLlink_specific(object: Ptr, place: Const, connector: Hid, arguments: Ptr, transfer: Hid, request: Req) -> Herr;
    H5VLlink_optional(object: Ptr, place: Const, connector: Hid, arguments: Ptr, transfer: Hid, request: Req) -> Herr;
    H5VLobject_open(object: Ptr, place: Const, connector: Hid, kind: *mut c_int, transfer: Hid, request: Req) -> Ptr;
    H5VLobject_copy(from: Ptr, from_place: Const, from_name: Text, to: Ptr, to_place: Const, to_name: Text, connector: Hid, copy: Hid, link: Hid, transfer: Hid, request: Req) -> Herr;
    H5VLobject_get(object: Ptr, place: Const, connector: Hid, arguments: Ptr, transfer: Hid, request: Req) -> Herr;
    H5VLobject_specific(object: Ptr, place: Const, connector: Hid, arguments: Ptr, transfer: Hid, request: Req) -> Herr;
    H5VLobject_optional(object: Ptr, place: Const, connector: Hid, arguments: Ptr, transfer: Hid, request: Req) -> Herr;
    H5VLintrospect_get_conn_cls(object: Ptr, connector: Hid, level: c_int, class: *mut Const) -> Herr;
    H5VLintrospect_get_cap_flags(info: Const, connector: Hid, flags: *mut u64) -> Herr;
    H5VLintrospect_opt_query(object: Ptr, connector: Hid, class: c_int, operation: c_int, flags: *mut u64) -> Herr;
    H5VLrequest_wait(request: Ptr, connector: Hid, timeout: u64, status: *mut c_int) -> Herr;
    H5VLrequest_notify(request: Ptr, connector: Hid, function: Ptr, context: Ptr) -> Herr;
    H5VLrequest_cancel(request: Ptr, connector: Hid, status: *mut c_int) -> Herr;
    H5VLrequest_specific(request: Ptr, connector: Hid, arguments: Ptr) -> Herr;
    H5VLrequest_optional(request: Ptr, connector: Hid, arguments: Ptr) -> Herr;
    H5VLrequest_free(request: Ptr, connector: Hid) -> Herr;
    H5VLblob_put(object: Ptr, connector: Hid, data: Const, size: size_t, id: Ptr, context: Ptr) -> Herr;
    H5VLblob_get(object: Ptr, connector: Hid, id: Const, data: Ptr, size: size_t, context: Ptr) -> Herr;
    H5VLblob_specific(object: Ptr, connector: Hid, id: Ptr, arguments: Ptr) -> Herr;
    H5VLblob_optional(object: Ptr, connector: Hid, id: Ptr, arguments: Ptr) -> Herr;
    H5VLtoken_cmp(object: Ptr, connector: Hid, one: Const, other: Const, result: *mut c_int) -> Herr;
    H5VLtoken_to_str(object: Ptr, kind: c_int, connector: Hid, token: Const, text: *mut *mut c_char) -> Herr;
    H5VLtoken_from_str(object: Ptr, kind: c_int, connector: Hid, text: Text, token: Ptr) -> Herr;
    H5VLoptional(object: Ptr, connector: Hid, arguments: Ptr, transfer: Hid, request: Req) -> Herr;
}

type Push = unsafe extern "C" fn(Hid, Text, Text, c_uint, Hid, Hid, Hid, Text, ...) -> Herr;

/// An identifier that the library keeps in a variable. Where a program uses the variable too, the linker may have given it a
/// place in the program, and the library's own is never set.
#[derive(Clone, Copy)]
struct Variable {
    of_library: *const Hid,
    of_program: *const Hid,
}

impl Variable {
    fn find(name: &'static str, find: &dyn Fn(&str) -> Ptr) -> Result<Self, &'static str> {
        let of_library = find(name) as *const Hid;
        let text = std::ffi::CString::new(name).map_err(|_| name)?;
        // SAFETY: the name ends in NUL.
        let of_program = unsafe { libc::dlsym(libc::RTLD_DEFAULT, text.as_ptr()) } as *const Hid;
        if of_library.is_null() { Err(name) } else { Ok(Self { of_library, of_program }) }
    }

    fn get(self) -> Hid {
        // SAFETY: variables of a library and of a program that stay loaded.
        unsafe {
            match *self.of_library {
                id if id <= 0 && !self.of_program.is_null() => *self.of_program,
                id => id,
            }
        }
    }
}

/// Identifiers that the library keeps in variables.
struct Variables {
    dataset_access: Variable,
    dataset_creation: Variable,
    transfer: Variable,
    error_class: Variable,
    error_major: Variable,
    error_minor: Variable,
    error_file: Variable,
    error_io: Variable,
    error_driver: Variable,
    error_open: Variable,
    error_read: Variable,
    error_lock: Variable,
}

/// What the file driver failed at, in libhdf5's classes of errors: the same as of its own driver.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Blame {
    Open,
    Read,
    Write,
    Lock,
}

// SAFETY: they point to variables of a library that stays loaded.
unsafe impl Send for Variables {}
// SAFETY: as above; they are set before any connector is called.
unsafe impl Sync for Variables {}

/// How a thread that the library has not called gets what its functions need of a call.
#[derive(Clone, Copy)]
enum Context {
    /// Since 2.0.
    Opened(unsafe extern "C" fn(*mut Ptr) -> Herr, unsafe extern "C" fn(Ptr) -> Herr),
    /// Before.
    Started(unsafe extern "C" fn() -> Herr, unsafe extern "C" fn() -> Herr),
}

impl Context {
    fn find(find: &dyn Fn(&str) -> Ptr) -> Option<Self> {
        let both =
            |begin, end| Some((find(begin), find(end))).filter(|(begin, end)| !begin.is_null() && !end.is_null());
        // SAFETY: the library's functions of these names have these types.
        unsafe {
            if let Some((open, close)) = both("H5VLopen_lib_context", "H5VLclose_lib_context") {
                let open = std::mem::transmute::<Ptr, unsafe extern "C" fn(*mut Ptr) -> Herr>(open);
                return Some(Self::Opened(open, std::mem::transmute::<Ptr, unsafe extern "C" fn(Ptr) -> Herr>(close)));
            }
            let (start, finish) = both("H5VLstart_lib_state", "H5VLfinish_lib_state")?;
            let function = |found| std::mem::transmute::<Ptr, unsafe extern "C" fn() -> Herr>(found);
            Some(Self::Started(function(start), function(finish)))
        }
    }
}

/// One libhdf5.
pub(crate) struct Api {
    functions: Functions,
    context: Option<Context>,
    /// `None` for a libhdf5 without MPI.
    pub(crate) parallel: Option<Parallel>,
    push: Push,
    variables: Variables,
    /// What it calls itself.
    pub(crate) version: (u32, u32, u32),
}

impl Api {
    /// Finds everything that is needed, or says what is missing.
    pub(crate) fn find(find: &dyn Fn(&str) -> Ptr) -> Result<Self, &'static str> {
        let variable = |name: &'static str| Variable::find(name, find);
        let push = find("H5Epush2");
        if push.is_null() {
            return Err("H5Epush2");
        }
        // SAFETY: the function of this name has this type.
        let push = unsafe { std::mem::transmute::<Ptr, Push>(push) };
        let variables = Variables {
            dataset_access: variable("H5P_CLS_DATASET_ACCESS_ID_g")?,
            dataset_creation: variable("H5P_CLS_DATASET_CREATE_ID_g")?,
            transfer: variable("H5P_LST_DATASET_XFER_ID_g")?,
            error_class: variable("H5E_ERR_CLS_g")?,
            error_major: variable("H5E_VOL_g")?,
            error_minor: variable("H5E_WRITEERROR_g")?,
            error_file: variable("H5E_FILE_g")?,
            error_io: variable("H5E_IO_g")?,
            error_driver: variable("H5E_VFL_g")?,
            error_open: variable("H5E_CANTOPENFILE_g")?,
            error_read: variable("H5E_READERROR_g")?,
            error_lock: variable("H5E_CANTLOCKFILE_g")?,
        };
        let (context, parallel) = (Context::find(find), Parallel::find(find));
        let mut api =
            Self { functions: Functions::find(find)?, context, parallel, push, variables, version: (0, 0, 0) };
        let (mut major, mut minor, mut release) = (0, 0, 0);
        // SAFETY: places to write to are variables.
        unsafe { api.H5get_libversion(&raw mut major, &raw mut minor, &raw mut release) };
        api.version = (major, minor, release);
        Ok(api)
    }

    /// Runs something as if the library had called; `None` if it does not allow that.
    ///
    /// # Safety
    /// No thread is inside the library.
    pub(crate) unsafe fn as_if_called<T>(&self, body: impl FnOnce() -> T) -> Option<T> {
        // SAFETY: begun and ended in pairs; the caller answers for other threads.
        unsafe {
            match self.context? {
                Context::Opened(open, close) => {
                    let mut context = std::ptr::null_mut();
                    (open(&raw mut context) >= 0).then(|| {
                        let result = body();
                        close(context);
                        result
                    })
                }
                Context::Started(start, finish) => (start() >= 0).then(|| {
                    let result = body();
                    finish();
                    result
                }),
            }
        }
    }

    /// Runs calls that are to forget what the program's call has looked up in its lists, such as whether all ranks make it. `None`
    /// if the library does not allow that.
    pub(crate) fn in_new_context<T>(&self, body: impl FnOnce() -> T) -> Option<T> {
        // SAFETY: only this thread is inside the library; contexts lie above each other.
        unsafe { self.as_if_called(body) }
    }

    /// Whether it does.
    pub(crate) fn has_contexts(&self) -> bool {
        self.context.is_some()
    }

    /// The class of dataset access lists.
    pub(crate) fn dataset_access_class(&self) -> Hid {
        self.variables.dataset_access.get()
    }

    /// The class of dataset creation lists.
    pub(crate) fn dataset_creation_class(&self) -> Hid {
        self.variables.dataset_creation.get()
    }

    /// The default transfer list.
    pub(crate) fn default_transfer(&self) -> Hid {
        self.variables.transfer.get()
    }

    /// Adds an error to the calling thread's stack, which the program reads. Only inside a call of the library.
    pub(crate) fn push_error(&self, text: &std::ffi::CStr) {
        self.push_classified(self.variables.error_major, self.variables.error_minor, text);
    }

    /// Adds an error of the file driver to the calling thread's stack. Only inside a call of the library.
    pub(crate) fn push_driver_error(&self, what: Blame, text: &str) {
        let known = &self.variables;
        let (major, minor) = match what {
            Blame::Open => (known.error_file, known.error_open),
            Blame::Read => (known.error_io, known.error_read),
            Blame::Write => (known.error_io, known.error_minor),
            Blame::Lock => (known.error_driver, known.error_lock),
        };
        if let Ok(text) = std::ffi::CString::new(text.replace('\0', "")) {
            self.push_classified(major, minor, &text);
        }
    }

    fn push_classified(&self, major: Variable, minor: Variable, text: &std::ffi::CStr) {
        // SAFETY: the identifiers are the library's own, all text ends in NUL, and the format takes one text.
        unsafe {
            let class = self.variables.error_class.get();
            (self.push)(
                H5E_DEFAULT,
                c"hyperslab".as_ptr(),
                c"connector".as_ptr(),
                0,
                class,
                major.get(),
                minor.get(),
                c"%s".as_ptr(),
                text.as_ptr(),
            );
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn linked_programs_name_every_function() {
        let asked = RefCell::new(Vec::new());
        // Any address: nothing is called.
        let find = |name: &str| {
            asked.borrow_mut().push(name.to_owned());
            std::ptr::without_provenance_mut(8)
        };
        Functions::find(&find).map(drop).unwrap();
        let named = include_str!("../static_link.rs");
        let missing = |name: &&String| !named.split_whitespace().any(|word| word == name.as_str());
        assert_eq!(asked.borrow().iter().filter(missing).collect::<Vec<_>>(), Vec::<&String>::new());
    }
}
