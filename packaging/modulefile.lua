-- Hyperslab, for Lmod. Nothing is accelerated by loading it: `hyperslab run` does that, or HDF5_VOL_CONNECTOR=hyperslab.
help([[Fast, predictable and safe array I/O.
  hyperslab run -- COMMAND               a program with its HDF5 calls accelerated
  export HDF5_VOL_CONNECTOR=hyperslab    the same for all programs of a job
  man hyperslab                          the commands]])
whatis("Name: hyperslab")
whatis("Version: @VERSION@")
whatis("Description: makes scientific array I/O fast, predictable and safe")
conflict("hyperslab")

local prefix = "@PREFIX@"
prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("MANPATH", pathJoin(prefix, "share/man"))
prepend_path("HDF5_PLUGIN_PATH", pathJoin(prefix, "lib/hyperslab"))
prepend_path("PYTHONPATH", pathJoin(prefix, "lib/hyperslab-python"))
setenv("HYPERSLAB_ROOT", prefix)
