//! Headers of classic NetCDF files: what is whole is written again and read the same way, and no bytes take more memory than
//! follows from their number.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    hyperslab_formats::netcdf3::fuzzing::header(bytes);
});
