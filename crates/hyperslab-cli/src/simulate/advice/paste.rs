//! A choice in words of other programs, to be pasted.

use super::choices::Choice;
use hyperslab_core::Stack;
use hyperslab_core::units::parse_size;

/// Objects below this many bytes need not be aligned.
const THRESHOLD: u64 = 64 << 10;

/// Lines by the program that they are for.
pub fn lines(choice: &Choice, file: &str) -> Vec<(&'static str, Vec<String>)> {
    let mut all = vec![(
        "Lustre, before the file is made",
        vec![format!("lfs setstripe -c {} -S {} {file}", choice.stripe_count, choice.stripe_size)],
    )];
    let twophase = choice.stack.layers.iter().find(|layer| layer.name == "twophase");
    let aggregators = twophase.and_then(|layer| layer.get("aggregators"));
    let mut hints =
        vec![format!("striping_factor {}", choice.stripe_count), format!("striping_unit {}", choice.stripe_size)];
    match (choice.collective, aggregators) {
        (true, Some(number)) => hints.extend(["romio_cb_write enable".to_owned(), format!("cb_nodes {number}")]),
        (true, None) => hints.push("romio_cb_write disable".into()),
        (false, _) => {}
    }
    all.push(("MPI-IO, a file that ROMIO_HINTS names", hints));
    let option = |key: &str| choice.stack.format.get(key);
    let (mut hdf5, mut netcdf) = (Vec::new(), Vec::new());
    if let Some(align) = option("align").and_then(|text| parse_size(text).ok()) {
        hdf5.push(format!("H5Pset_alignment(fapl, {THRESHOLD}, {align});"));
        netcdf.push(format!("nc_set_alignment({THRESHOLD}, {align});"));
    }
    if let Some(chunk) = option("chunk") {
        let extents = chunk.replace('x', ", ");
        let rank = extents.split(", ").count();
        hdf5.push(format!("hsize_t chunk[] = {{{extents}}}; H5Pset_chunk(dcpl, {rank}, chunk);"));
        netcdf.push(format!("size_t chunk[] = {{{extents}}}; nc_def_var_chunking(nc, var, NC_CHUNKED, chunk);"));
    }
    if option("driver").is_some() {
        hdf5.push("H5Pset_fapl_subfiling(fapl, NULL);".into());
    }
    let (mode, access) = match choice.collective {
        true => ("H5FD_MPIO_COLLECTIVE", "NC_COLLECTIVE"),
        false => ("H5FD_MPIO_INDEPENDENT", "NC_INDEPENDENT"),
    };
    hdf5.push(format!("H5Pset_dxpl_mpio(dxpl, {mode});"));
    netcdf.push(format!("nc_var_par_access(nc, var, {access});"));
    all.extend([("HDF5", hdf5), ("NetCDF-4", netcdf)]);
    let mut own = vec![format!("hyperslab bench ... --stack '{}'{}", choice.stack, transfers(choice))];
    own.extend(connector(&choice.stack));
    all.push(("Hyperslab", own));
    all
}

fn transfers(choice: &Choice) -> &'static str {
    if choice.collective { " --transfers collective" } else { " --transfers independent" }
}

/// The layer below a program that is not changed.
fn connector(stack: &Stack) -> Option<String> {
    let mode = ["async", "log"].into_iter().find(|name| stack.has_layer(name))?;
    Some(format!("hyperslab run --mode {mode} PROGRAM"))
}
