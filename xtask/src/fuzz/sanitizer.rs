//! AddressSanitizer in everything that is built: Rust by the stable compiler, C by gcc or clang.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell;

/// How programs are run: everything ends at the first error. What is never freed is none, nor is a table that libdeflate has in
/// several of its files, which gcc and the runtime of rustc take for one that is defined twice.
pub const OPTIONS: &str = "detect_leaks=0:detect_odr_violation=0:abort_on_error=0";

/// For C libraries, also those that CMake builds.
const C_FLAGS: &str = "-fsanitize=address -fno-omit-frame-pointer -g1";

/// Makes a cargo command build with the sanitizer and with `flags`. Its target must be named (`--target`), or build scripts
/// and macros would be built with them, too.
pub fn apply(command: &mut Command, flags: &[&str]) -> Result<()> {
    check()?;
    let flags = [&["-Zsanitizer=address"], flags].concat().join(" ");
    command.env("RUSTFLAGS", flags).env_remove("CARGO_ENCODED_RUSTFLAGS");
    // The flag is not a stable one; the compiler is.
    command.env("RUSTC_BOOTSTRAP", "1");
    // C only: libFuzzer is C++ and must not watch itself. Snappy, the other library in C++, goes without for that.
    command.env("CFLAGS", C_FLAGS);
    Ok(())
}

/// Fails if the compiler comes without the sanitizer's runtime.
fn check() -> Result<()> {
    let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let said = shell::output(command.args(["--print", "target-libdir"]), "look whether rustc is on the PATH")?;
    let folder = Path::new(said.trim());
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    if !names.any(|name| name.starts_with("librustc") && name.ends_with("_rt.asan.a")) {
        bail!("this Rust has no runtime of AddressSanitizer\n  try: a toolchain of rustup, on x86-64 or aarch64 Linux");
    }
    Ok(())
}
