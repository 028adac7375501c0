//! Conversions are compared with libhdf5's own, bit by bit: every pair of types, in every byte order, at the ends of their
//! ranges and at random.
#![allow(clippy::unwrap_used)]

mod compounds;
mod library;
mod numbers;
mod refusals;
mod values;
