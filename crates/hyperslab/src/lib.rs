//! Fast, predictable and safe scientific array I/O.
//!
//! A [`File`] is opened on a *stack*: a format, perhaps with layers above it, written as text
//! (`hdf5`, `hdf5(plane=on)`, `log(dir=/scratch)/hdf5`, `async/zarr`). Its [`Array`]s are written and read by selection.
//!
//! ```
//! # fn main() -> hyperslab::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("run.posix");
//! let file = hyperslab::File::create(&path, "posix")?;
//! let temperature = file.create_array::<f32>("temperature", &[4, 6])?;
//! temperature.write(.., &[20.5_f32; 24])?;
//! temperature.write("1:3,::2", &[0.0_f32; 6])?;
//! file.flush(hyperslab::Durability::Durable)?;
//! file.close()?;
//!
//! let file = hyperslab::File::open(&path)?;
//! let row: Vec<f32> = file.array("temperature")?.read("1,:")?;
//! assert_eq!(row, [0.0, 20.5, 0.0, 20.5, 0.0, 20.5]);
//! # file.close()
//! # }
//! ```
//!
//! The same workload can be run ([`play`]), recorded (layer `trace`) and predicted ([`Forecast`]).
//! [`recover`] brings back what a killed program had written through `log` or `cache`.
//!
//! Everything that a file says about itself, collective access by several ranks and workloads live in the crates below;
//! what this crate re-exports of them is what its own signatures name.

mod array;
mod configuration;
mod detect;
mod element;
mod file;
mod forecast;
mod play;
mod recover;
mod select;

pub use array::Array;
pub use configuration::configuration;
pub use detect::{detect_stack, stack_for_name};
pub use element::Element;
pub use file::File;
pub use forecast::Forecast;
pub use play::{Played, load_workload, play};
pub use recover::{Recovered, recover};
pub use select::Select;

pub use hyperslab_core::workload::Workload;
pub use hyperslab_core::{
    ArraySpec, Attribute, Datatype, Durability, Error, ErrorKind, OpenMode, Result, Selection, Stack,
};
pub use hyperslab_model::Profile;
