//! IOR.
