//! What libraries of Python add to the storage below them: the time of a call, of a chunk, of an element that is scattered.

use crate::configuration::Class;
use crate::counter::{Costs, Work};
use crate::counts::Count;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A library of Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PythonLibrary {
    /// On libhdf5.
    H5py,
    /// On libhdf5, below netCDF-C.
    Netcdf4,
    /// On files, by itself.
    ZarrPython,
}

/// Seconds that a library of Python takes beside what is predicted for HDF5; for zarr-python, which has no Rust below it, with
/// the files in memory.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PythonCosts {
    /// Of a read.
    pub read_call: f64,
    /// Of a write.
    pub write_call: f64,
    /// Of a chunk that is read, where the library handles chunks.
    pub read_chunk: f64,
    /// Of a chunk that is written.
    pub write_chunk: f64,
}

impl PythonLibrary {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::H5py, Self::Netcdf4, Self::ZarrPython];

    /// The name of the package.
    pub fn name(self) -> &'static str {
        match self {
            Self::H5py => "h5py",
            Self::Netcdf4 => "netCDF4",
            Self::ZarrPython => "zarr-python",
        }
    }

    /// What is ordinary, to a factor of a few, where nobody has measured it.
    pub fn ordinary(self) -> PythonCosts {
        match self {
            Self::H5py => PythonCosts { read_call: 70e-6, write_call: 70e-6, read_chunk: 0.0, write_chunk: 0.0 },
            Self::Netcdf4 => PythonCosts { read_call: 100e-6, write_call: 80e-6, read_chunk: 0.0, write_chunk: 0.0 },
            Self::ZarrPython => {
                PythonCosts { read_call: 500e-6, write_call: 500e-6, read_chunk: 150e-6, write_chunk: 300e-6 }
            }
        }
    }

    /// Whether it stores as this way does.
    pub fn stores(self, class: Class) -> bool {
        match self {
            Self::H5py | Self::Netcdf4 => class == Class::Hdf5,
            Self::ZarrPython => matches!(class, Class::Zarr | Class::ZarrSharded),
        }
    }
}

/// Seconds of a workload by a library of Python. `below`: what is predicted for the same by libhdf5, or by Hyperslab's own Zarr.
/// `copy_rate`: bytes copied in memory in a second.
pub fn seconds_in_python(
    library: PythonLibrary,
    known: &BTreeMap<PythonLibrary, PythonCosts>,
    costs: &Costs,
    below: f64,
    copy_rate: Option<f64>,
) -> f64 {
    /// Where no rate is known.
    const USUAL_RATE: f64 = 4e9;
    let each = known.get(&library).copied().unwrap_or_else(|| library.ordinary());
    let of = |work: &Work| {
        let (reads, writes) = (&work.reading, &work.writing);
        each.read_call * reads[Count::Requests] as f64
            + each.write_call * writes[Count::Requests] as f64
            + each.read_chunk * reads[Count::ChunkVisits] as f64
            + each.write_chunk * writes[Count::ChunkVisits] as f64
    };
    let calls = costs.by_rank.iter().map(of).fold(0.0, f64::max);
    match library {
        PythonLibrary::H5py | PythonLibrary::Netcdf4 => below + calls,
        // Its elements are copied once more, and it is never faster than what does the same in Rust.
        PythonLibrary::ZarrPython => {
            let bytes = costs.bytes_read.saturating_add(costs.bytes_written) as f64;
            below.max(calls + bytes / copy_rate.unwrap_or(USUAL_RATE))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_costs_what_was_measured() {
        let mut work = Work::default();
        work.reading.add(Count::Requests, 100);
        work.reading.add(Count::ChunkVisits, 1000);
        let costs = Costs { by_rank: vec![work], ranks: 1, ..Costs::default() };
        let measured = PythonCosts { read_call: 1e-3, write_call: 0.0, read_chunk: 1e-4, write_chunk: 0.0 };
        let known = BTreeMap::from([(PythonLibrary::ZarrPython, measured)]);
        let zarr = seconds_in_python(PythonLibrary::ZarrPython, &known, &costs, 0.05, None);
        assert!((zarr - 0.2).abs() < 1e-9, "{zarr}");
        let hdf5 = seconds_in_python(PythonLibrary::H5py, &known, &costs, 0.05, None);
        assert!((hdf5 - 0.05 - 100.0 * PythonLibrary::H5py.ordinary().read_call).abs() < 1e-9, "{hdf5}");
        assert!(PythonLibrary::H5py.stores(Class::Hdf5) && !PythonLibrary::H5py.stores(Class::Hdf5Plane));
    }
}
