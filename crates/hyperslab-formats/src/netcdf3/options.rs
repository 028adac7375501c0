//! What a stack string may say about `netcdf3`.

use super::layout::Spacing;
use super::types::Version;
use crate::posix::options::{BUFFER_SPEC, buffer};
use hyperslab_core::{Error, OptionSpec, Result, StackElement, units};

/// The options of `netcdf3`, checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    /// Of new files.
    pub version: Version,
    pub spacing: Spacing,
    /// Bytes of one staging buffer.
    pub buffer: usize,
}

const HEADER_PAD: u64 = 64 << 10;
/// Larger alignments make files of holes.
const LARGEST: u64 = 1 << 30;

const fn hint(name: &'static str, about: &'static str) -> OptionSpec {
    OptionSpec { name, value: "SIZE", default: "4", about }
}

pub(crate) const SPECS: &[OptionSpec] = &[
    OptionSpec { name: "version", value: "1|2|5", default: "5", about: "form of new files: CDF-1, CDF-2 or CDF-5" },
    OptionSpec {
        name: "header_pad",
        value: "SIZE",
        default: "64KiB",
        about: "room of the header comes in multiples of this; what outgrows it moves all data",
    },
    hint("var_align", "what each array without records begins at a multiple of"),
    hint("record_align", "what the first record begins at a multiple of"),
    hint("nc_header_align_size", "PnetCDF's hint: what the first array begins at a multiple of"),
    hint("nc_var_align_size", "PnetCDF's hint: the same, and stronger"),
    hint("nc_record_align_size", "PnetCDF's hint for record_align"),
    BUFFER_SPEC,
];

/// An alignment: a multiple of 4 bytes.
fn alignment(element: &StackElement, name: &str) -> Result<Option<u64>> {
    let Some(size) = element.size(name)? else { return Ok(None) };
    if size == 0 || !size.is_multiple_of(4) || size > LARGEST {
        let message = format!("netcdf3: {name}={size} should be a multiple of 4 bytes, at most 1GiB");
        return Err(Error::invalid("parse stack", message));
    }
    Ok(Some(size))
}

impl Options {
    pub fn parse(element: &StackElement) -> Result<Self> {
        let versions = [("1", Version::Classic), ("2", Version::Offset64), ("5", Version::Data64)];
        let header_pad = element.size("header_pad")?.unwrap_or(HEADER_PAD);
        if header_pad > LARGEST {
            let message = format!("netcdf3: header_pad={} should be at most 1GiB", units::exact_size(header_pad));
            return Err(Error::invalid("parse stack", message));
        }
        let hinted = alignment(element, "nc_header_align_size")?;
        let data_align = alignment(element, "nc_var_align_size")?.or(hinted).unwrap_or(4);
        let record_align = match (alignment(element, "record_align")?, alignment(element, "nc_record_align_size")?) {
            (Some(ours), Some(theirs)) if ours != theirs => {
                let message = "netcdf3: record_align and nc_record_align_size mean the same, but differ";
                return Err(Error::invalid("parse stack", message));
            }
            (ours, theirs) => ours.or(theirs).unwrap_or(4),
        };
        let var_align = alignment(element, "var_align")?.unwrap_or(4);
        Ok(Self {
            version: element.choice("version", &versions)?.unwrap_or(Version::Data64),
            spacing: Spacing { header_pad, data_align, var_align, record_align },
            buffer: buffer(element)?,
        })
    }
}
