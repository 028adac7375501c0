//! Registration for programs that link with a libhdf5 and with this crate, and cannot load a plugin.

/// Registers the connector with the libhdf5 that the program is linked with: `hyperslab_core::Result<i64>`, the
/// identifier for `H5Pset_vol`. The program must not be inside a call of libhdf5 on another thread.
///
/// It names symbols of libhdf5, so it must stand in a crate that is linked with one.
#[macro_export]
macro_rules! register {
    () => {{
        #[allow(non_snake_case, clashing_extern_declarations)]
        fn find(name: &str) -> *mut ::std::ffi::c_void {
            $crate::register!(@find name {
            H5get_libversion H5allocate_memory H5free_memory H5Iinc_ref H5Idec_ref H5Eget_current_stack
            H5Eset_current_stack H5Ewalk2 H5Eget_auto2 H5Eset_auto2 H5Pget_vol_info H5Pset_vol H5Pcopy H5Pcreate H5Pclose
            H5Pequal H5Pexist H5Pcopy_prop H5Pget H5Pset_cache H5Pget_layout H5Pget_chunk H5Pget_chunk_opts
            H5Pget_chunk_cache H5Pset_chunk_cache H5Pget_cache H5Pget_nfilters H5Pget_filter2 H5Pget_external_count
            H5Pget_alloc_time H5Pget_fill_time H5Pfill_value_defined H5Pget_fill_value H5Pget_driver H5Pset_fapl_sec2
            H5Pget_sieve_buf_size H5Pset_sieve_buf_size H5Pget_page_buffer_size H5Pget_userblock H5Sget_select_type
            H5Sget_select_npoints H5Sget_simple_extent_dims H5Sis_regular_hyperslab H5Sget_regular_hyperslab
            H5Sget_select_bounds H5Sget_select_hyper_nblocks H5Sget_select_hyper_blocklist
            H5Sget_select_elem_pointlist H5Screate_simple H5Sselect_none H5Sselect_hyperslab H5Sclose H5Tget_size
            H5Tget_class H5Tget_order H5Tget_sign H5Tget_precision H5Tget_offset H5Tget_fields H5Tget_ebias
            H5Tget_norm H5Tget_nmembers H5Tget_member_name H5Tget_member_offset H5Tget_member_type H5Tis_variable_str
            H5Tequal H5Tcopy H5Tget_strpad H5Tget_super H5Tget_member_value H5Tget_member_index H5Tcommitted H5Tclose
            H5VLget_value H5VLregister_connector H5VLregister_connector_by_value H5VLcopy_connector_info
            H5VLcmp_connector_info H5VLcmp_connector_cls H5VLfree_connector_info H5VLconnector_info_to_str
            H5VLconnector_str_to_info H5VLget_object H5VLget_wrap_ctx H5VLwrap_object H5VLunwrap_object
            H5VLfree_wrap_ctx H5VLattr_create H5VLattr_open H5VLattr_read H5VLattr_write H5VLattr_get
            H5VLattr_specific H5VLattr_optional H5VLattr_close H5VLdataset_create H5VLdataset_open H5VLdataset_read
            H5VLdataset_write H5VLdataset_get H5VLdataset_specific H5VLdataset_optional H5VLdataset_close
            H5VLdatatype_commit H5VLdatatype_open H5VLdatatype_get H5VLdatatype_specific H5VLdatatype_optional
            H5VLdatatype_close H5VLfile_create H5VLfile_open H5VLfile_get H5VLfile_specific H5VLfile_optional
            H5VLfile_close H5VLgroup_create H5VLgroup_open H5VLgroup_get H5VLgroup_specific H5VLgroup_optional
            H5VLgroup_close H5VLlink_create H5VLlink_copy H5VLlink_move H5VLlink_get H5VLlink_specific
            H5VLlink_optional H5VLobject_open H5VLobject_copy H5VLobject_get H5VLobject_specific H5VLobject_optional
            H5VLintrospect_get_conn_cls H5VLintrospect_get_cap_flags H5VLintrospect_opt_query H5VLrequest_wait
            H5VLrequest_notify H5VLrequest_cancel H5VLrequest_specific H5VLrequest_optional H5VLrequest_free
            H5VLblob_put H5VLblob_get H5VLblob_specific H5VLblob_optional H5VLtoken_cmp H5VLtoken_to_str
            H5VLtoken_from_str H5VLoptional H5Epush2 H5Pset_driver H5FDregister H5Iis_valid
            H5Ssel_iter_create H5Ssel_iter_get_seq_list H5Ssel_iter_close H5Tconvert H5Pset_layout H5Pset_chunk
            H5Premove_filter H5Pset_deflate H5Pset_shuffle H5Pset_fletcher32 H5Pset_alignment
            } {
            H5P_CLS_DATASET_ACCESS_ID_g H5P_LST_DATASET_XFER_ID_g H5E_ERR_CLS_g H5E_VOL_g H5E_WRITEERROR_g
            H5E_FILE_g H5E_IO_g H5E_VFL_g H5E_CANTOPENFILE_g H5E_READERROR_g H5E_CANTLOCKFILE_g
            H5P_CLS_DATASET_CREATE_ID_g
            })
        }
        // SAFETY: the symbols are those of the libhdf5 that the program is linked with.
        unsafe { $crate::register_with(&find) }
    }};
    (@find $name:ident { $($function:ident)* } { $($variable:ident)* }) => {{
        #[allow(non_upper_case_globals)]
        mod symbols {
            unsafe extern "C" {
                $(pub fn $function();)*
                $(pub static $variable: i64;)*
            }
        }
        match $name {
            $(stringify!($function) => symbols::$function as *const () as *mut ::std::ffi::c_void,)*
            $(stringify!($variable) => (&raw const symbols::$variable).cast_mut().cast(),)*
            _ => ::std::ptr::null_mut(),
        }
    }};
}
