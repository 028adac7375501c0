#%Module1.0
# Hyperslab, for Tcl modules. Nothing is accelerated by loading it: `hyperslab run` does that, or HDF5_VOL_CONNECTOR=hyperslab.
proc ModulesHelp { } {
    puts stderr "Fast, predictable and safe array I/O."
    puts stderr "  hyperslab run -- COMMAND               a program with its HDF5 calls accelerated"
    puts stderr "  export HDF5_VOL_CONNECTOR=hyperslab    the same for all programs of a job"
    puts stderr "  man hyperslab                          the commands"
}
module-whatis "hyperslab @VERSION@: makes scientific array I/O fast, predictable and safe"
conflict hyperslab

set prefix {@PREFIX@}
prepend-path PATH $prefix/bin
prepend-path MANPATH $prefix/share/man
prepend-path HDF5_PLUGIN_PATH $prefix/lib/hyperslab
prepend-path PYTHONPATH $prefix/lib/hyperslab-python
setenv HYPERSLAB_ROOT $prefix
