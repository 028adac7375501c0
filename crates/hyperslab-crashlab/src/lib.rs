//! The crash laboratory. `docs/crash-laboratory.md` says how to run it and how to read what it prints.
//!
//! A random program (`python/crashlab`) runs with the preloaded recorder of `hyperslab-faultshim`. Every prefix of what was
//! recorded is an image of the disk at which the program might have been killed. Each image is recovered, opened with plain
//! h5py, and held against what had been acknowledged by then.
#![allow(clippy::print_stdout, reason = "a program for the command line: its output is what it is for")]

mod acks;
mod campaign;
mod checker;
mod disk;
mod faults;
mod jobs;
mod kills;
mod options;
mod power;
mod report;
mod subject;
mod tools;
mod trace;
mod workshop;

pub use campaign::run;
pub use options::Options;
