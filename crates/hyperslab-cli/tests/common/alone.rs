//! For programs whose tests make HDF5 files themselves and start commands.

/// A command that another test starts may inherit a file that is being made, and its lock with it. Held by every such test.
pub static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
