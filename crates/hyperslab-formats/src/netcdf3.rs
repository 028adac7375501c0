//! Classic NetCDF files: CDF-1, CDF-2 and CDF-5.

mod decode;
mod encode;
mod header;
mod layout;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod types;
