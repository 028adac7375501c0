//! A stack on `netcdf4` in the words of netCDF4, xarray, netcdf-c, nccopy and the connector.

use crate::hdf5_entry;
use crate::python_words::{shapes, tuples, zlib};
use crate::registry::{ProgramWords, Surroundings};
use hyperslab_core::StackElement;

/// Lines that ask other programs for the same.
pub(super) fn settings(format: &StackElement, around: &Surroundings<'_>) -> ProgramWords {
    let chunks = shapes(format, "chunk");
    let size = |key: &str| format.size(key).ok().flatten();
    let level = format.get("deflate");
    let shuffle = format.get("shuffle") == Some("yes");
    let truth = |value: bool| if value { "True" } else { "False" };
    let fills = matches!(format.get("fill"), None | Some("netcdf" | "zero"));

    let mut keywords = tuples("chunksizes", &chunks);
    let mut encoding = Vec::new();
    if let [chunk] = chunks.as_slice() {
        encoding.push(format!("\"chunksizes\": {}", tuples("", std::slice::from_ref(chunk)).trim_start_matches(", =")));
    }
    match level {
        Some(level) => {
            keywords.push_str(&format!(", compression=\"zlib\", complevel={level}, shuffle={}", truth(shuffle)));
            encoding.push(format!("\"zlib\": True, \"complevel\": {level}, \"shuffle\": {}", truth(shuffle)));
        }
        // What arrays have by themselves they keep.
        None if around.kept.is_none_or(|filters| !filters.is_empty()) => match around.kept.and_then(zlib) {
            Some((level, shuffle)) => {
                keywords.push_str(&format!(", compression=\"zlib\", complevel={level}, shuffle={}", truth(shuffle)));
                encoding.push(format!("\"zlib\": True, \"complevel\": {level}, \"shuffle\": {}", truth(shuffle)));
            }
            None => keywords.push_str(", and its filters as now"),
        },
        None if chunks.is_empty() && format.get("layout") != Some("chunked") => {
            keywords.push_str(", contiguous=True");
            encoding.push("\"contiguous\": True".into());
        }
        None => {}
    }
    if !fills {
        keywords.push_str(", fill_value=False");
        encoding.push("\"_FillValue\": None".into());
    }
    let mut out = Vec::new();
    let align = size("align").filter(|bytes| *bytes > 1);
    let threshold = align.map(|bytes| hdf5_entry::align_threshold(size("align_threshold"), bytes));
    if let (Some(bytes), Some(threshold)) = (align, threshold) {
        out.push(format!("netCDF4:      netCDF4.set_alignment({threshold}, {bytes})     (before the file is made)"));
        out.push(format!("netcdf-c:     nc_set_alignment({threshold}, {bytes});     (before nc_create)"));
    }
    let parallel = if around.collective { ", parallel=True" } else { "" };
    out.push(format!("netCDF4:      dataset = netCDF4.Dataset(path, \"w\"{parallel})"));
    if !fills {
        out.push("              dataset.set_fill_off()".into());
    }
    out.push(format!("              variable = dataset.createVariable(name, dtype, dimensions{keywords})"));
    out.extend(around.collective.then(|| "              variable.set_collective(True)     (MPI)".into()));
    if let Some(bytes) = size("cache") {
        out.push(format!("              variable.set_var_chunk_cache(size={bytes})"));
    }
    if !encoding.is_empty() {
        let encoding = encoding.join(", ");
        out.push(format!("xarray:       data.to_netcdf(path, engine=\"netcdf4\", encoding={{name: {{{encoding}}}}})"));
    }
    out.push(nccopy(format));
    out.push(ncks(format));
    let direct = (format.get("plane") == Some("on")).then_some("codec");
    let modes: Vec<&str> = direct.into_iter().chain(around.connector_mode).collect();
    let connector = (!modes.is_empty() && !around.collective).then(|| {
        let modes = modes.join("+");
        format!("any program:  hyperslab run --mode {modes} -- python program.py     (docs/connector.md)")
    });
    ProgramWords { libraries: out, connector, benchmarks: Vec::new() }
}

/// The same for a file that exists.
fn nccopy(format: &StackElement) -> String {
    let mut options = String::from("-k nc4");
    if let Some(level) = format.get("deflate") {
        options.push_str(&format!(" -d {level}"));
    }
    if format.get("shuffle") == Some("yes") {
        options.push_str(" -s");
    }
    if let [chunk] = shapes(format, "chunk").as_slice() {
        let extents: Vec<String> = chunk.iter().map(u64::to_string).collect();
        options.push_str(&format!(" -c name:{}", extents.join(",")));
    }
    format!("nccopy:       nccopy {options} old.nc new.nc")
}

/// The same with NCO. Dimensions are named by their place, for the user to name.
fn ncks(format: &StackElement) -> String {
    let mut options = String::from("-4");
    if let Some(level) = format.get("deflate") {
        options.push_str(&format!(" -L {level}"));
    }
    if let [chunk] = shapes(format, "chunk").as_slice() {
        let extents = chunk.iter().enumerate().map(|(place, extent)| format!(" --cnk_dmn dim{place},{extent}"));
        options.extend(extents);
    }
    format!("ncks:         ncks {options} old.nc new.nc")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_core::Stack;

    #[test]
    fn options_are_settings_of_others() {
        let stack: Stack = "netcdf4(chunk=1x721x1440,deflate=1,shuffle=yes,align=1MiB,fill=no)".parse().unwrap();
        let text =
            settings(&stack.format, &Surroundings { kept: Some(&[]), ..Surroundings::default() }).libraries.join("\n");
        for wanted in [
            "netCDF4.set_alignment(65536, 1048576)",
            "nc_set_alignment(65536, 1048576)",
            "chunksizes=(1, 721, 1440), compression=\"zlib\", complevel=1, shuffle=True, fill_value=False",
            "\"chunksizes\": (1, 721, 1440), \"zlib\": True",
            "set_fill_off()",
            "nccopy -k nc4 -d 1 -s -c name:1,721,1440 old.nc new.nc",
            "ncks -4 -L 1 --cnk_dmn dim0,1 --cnk_dmn dim1,721 --cnk_dmn dim2,1440 old.nc new.nc",
        ] {
            assert!(text.contains(wanted), "{wanted}:\n{text}");
        }
        let plain: Stack = "netcdf4".parse().unwrap();
        let text =
            settings(&plain.format, &Surroundings { kept: Some(&[]), ..Surroundings::default() }).libraries.join("\n");
        assert!(text.contains("contiguous=True") && !text.contains("set_alignment"), "{text}");
    }
}
