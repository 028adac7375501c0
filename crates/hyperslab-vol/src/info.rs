//! What a file access list says about the connector.
#![expect(unsafe_op_in_unsafe_fn, reason = "the contract of callbacks is stated in `object`")]

use crate::host::api::{Const, H5P_DEFAULT, Herr, Hid, Ptr, Text};
use crate::host::{self, Host, of_slot};
use crate::settings::Settings;
use std::ffi::{CString, c_char, c_int};
use std::ptr::null_mut;
use std::sync::Arc;

/// The settings of a file, and the connector below.
pub(crate) struct Info {
    pub(crate) host: &'static Host,
    pub(crate) connector: Hid,
    /// What the connector below is told.
    pub(crate) under: Ptr,
    pub(crate) settings: Arc<Settings>,
}

impl Drop for Info {
    fn drop(&mut self) {
        // SAFETY: the reference and the information below are this one's own; it ends inside a call of the library.
        self.host.preserving_error_stack(|| unsafe {
            if !self.under.is_null() {
                self.host.H5VLfree_connector_info(self.connector, self.under);
            }
            self.host.H5Idec_ref(self.connector);
        });
    }
}

impl Info {
    /// Reads the connector's string.
    unsafe fn parse(host: &'static Host, text: &str) -> Option<Self> {
        let (settings, under, wrong) = Settings::parse(text, &|name| std::env::var(name).ok());
        if let Some(wrong) = wrong {
            host.say_once(&format!("{wrong}; nothing is accelerated"));
        }
        let connector = host.H5VLregister_connector_by_value(under.value, H5P_DEFAULT);
        if connector < 0 {
            return None;
        }
        let connector = if under.value == 0 { host.only_native(connector) } else { connector };
        let settings = Arc::new(settings);
        host.set_settings(settings.clone());
        let mut info = Self { host, connector, under: null_mut(), settings };
        if !under.info.is_empty() {
            let text = CString::new(under.info).ok()?;
            if host.H5VLconnector_str_to_info(text.as_ptr(), connector, &raw mut info.under) < 0 {
                return None;
            }
        }
        Some(info)
    }

    /// What a file access list says; of one that says nothing, what the environment does.
    pub(crate) unsafe fn of_list(host: &'static Host, list: Hid) -> Option<Box<Self>> {
        let mut info: Ptr = null_mut();
        if host.H5Pget_vol_info(list, &raw mut info) < 0 {
            return None;
        }
        if info.is_null() {
            return Self::parse(host, "").map(Box::new);
        }
        Some(Box::from_raw(info.cast::<Self>()))
    }
}

pub(crate) unsafe extern "C" fn copy<const SLOT: usize>(info: Const) -> Ptr {
    let Some(host) = of_slot(SLOT).filter(|_| !info.is_null()) else { return null_mut() };
    let info = &*info.cast::<Info>();
    host.H5Iinc_ref(info.connector);
    let mut new = Info { host, connector: info.connector, under: null_mut(), settings: info.settings.clone() };
    if !info.under.is_null() && host.H5VLcopy_connector_info(info.connector, &raw mut new.under, info.under) < 0 {
        return null_mut();
    }
    Box::into_raw(Box::new(new)).cast()
}

pub(crate) unsafe extern "C" fn compare<const SLOT: usize>(result: *mut c_int, one: Const, other: Const) -> Herr {
    *result = 0;
    if one.is_null() || other.is_null() {
        *result = c_int::from(other.is_null()) - c_int::from(one.is_null());
        return 0;
    }
    let Some(host) = of_slot(SLOT) else { return -1 };
    let (one, other) = (&*one.cast::<Info>(), &*other.cast::<Info>());
    if host.H5VLcmp_connector_cls(result, one.connector, other.connector) < 0 {
        return -1;
    }
    if *result == 0 && host.H5VLcmp_connector_info(result, one.connector, one.under, other.under) < 0 {
        return -1;
    }
    if *result == 0 && one.settings != other.settings {
        *result = if one.settings.text() < other.settings.text() { -1 } else { 1 };
    }
    0
}

pub(crate) unsafe extern "C" fn free(info: Ptr) -> Herr {
    if !info.is_null() {
        drop(Box::from_raw(info.cast::<Info>()));
    }
    0
}

pub(crate) unsafe extern "C" fn to_text(info: Const, text: *mut *mut c_char) -> Herr {
    *text = null_mut();
    if info.is_null() {
        return 0;
    }
    let info = &*info.cast::<Info>();
    let host = info.host;
    let (mut value, mut under): (c_int, *mut c_char) = (0, null_mut());
    host.H5VLget_value(info.connector, &raw mut value);
    host.H5VLconnector_info_to_str(info.under, info.connector, &raw mut under);
    let said = host::text(under);
    if !under.is_null() {
        host.H5free_memory(under.cast());
    }
    let whole = format!("{};under_vol={value};under_info={{{said}}}", info.settings.text());
    let Ok(whole) = CString::new(whole) else { return -1 };
    let bytes = whole.as_bytes_with_nul();
    // The library frees it with its own allocator.
    let room = host.H5allocate_memory(bytes.len(), false).cast::<u8>();
    if room.is_null() {
        return -1;
    }
    std::ptr::copy_nonoverlapping(bytes.as_ptr(), room, bytes.len());
    *text = room.cast();
    0
}

pub(crate) unsafe extern "C" fn from_text<const SLOT: usize>(text: Text, info: *mut Ptr) -> Herr {
    let Some(host) = of_slot(SLOT) else { return -1 };
    match crate::object::catch_panics(|| match Info::parse(host, &host::text(text)) {
        Some(info) => Box::into_raw(Box::new(info)).cast(),
        None => null_mut(),
    }) {
        pointer if pointer.is_null() => -1,
        pointer => {
            *info = pointer;
            0
        }
    }
}
