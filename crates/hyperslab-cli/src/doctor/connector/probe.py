"""Lists packages that bring a libhdf5 ("list"), or makes a small file with one of them ("try NAME"). Answers in JSON."""
import ctypes
import glob
import importlib.metadata
import importlib.util
import json
import os
import re
import sys

DISTRIBUTIONS = {"h5py": "h5py", "netCDF4": "netCDF4", "tables": "tables"}
LIBRARY = re.compile(r"/libhdf5(_serial|_openmpi|_mpich)?[-.0-9a-f]*\.(so|dylib)[.0-9]*$")


def packages():
    found = []
    for module, distribution in DISTRIBUTIONS.items():
        if importlib.util.find_spec(module) is not None:
            try:
                version = importlib.metadata.version(distribution)
            except importlib.metadata.PackageNotFoundError:
                version = ""
            found.append({"name": module, "version": version, "library": None})
    for folder in sys.path:
        for path in sorted(glob.glob(os.path.join(glob.escape(folder), "*", "libhdf5*"))):
            name = os.path.basename(os.path.dirname(path)).removesuffix(".libs").removesuffix(".dylibs")
            if LIBRARY.search(path) and name.lower() not in [package["name"].lower() for package in found]:
                found.append({"name": name, "version": "", "library": path})
    return found


def loaded():
    paths = set()
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.split(maxsplit=5)[5].strip() if line.count("/") else ""
            if LIBRARY.search(path):
                paths.add(path)
    facts = []
    for path in sorted(paths):
        library = ctypes.CDLL(path)
        numbers = [ctypes.c_uint() for _ in range(3)]
        library.H5get_libversion(*map(ctypes.byref, numbers))
        safe = ctypes.c_bool()
        library.H5is_library_threadsafe(ctypes.byref(safe))
        facts.append({"path": path, "version": [n.value for n in numbers], "thread_safe": safe.value})
    return facts


def use(name):
    if name == "h5py":
        import h5py
        with h5py.File("probe.h5", "w") as file:
            file.create_dataset("x", data=list(range(100)), chunks=(10,), compression="gzip")
        with h5py.File("probe.h5", "r") as file:
            assert file["x"][...].sum() == 4950
    elif name == "netCDF4":
        import netCDF4
        with netCDF4.Dataset("probe.nc", "w") as file:
            file.createDimension("n", 100)
            file.createVariable("x", "i4", ("n",), zlib=True)[:] = range(100)
        with netCDF4.Dataset("probe.nc") as file:
            assert file["x"][:].sum() == 4950
    elif name == "tables":
        import tables
        with tables.open_file("probe.h5", "w") as file:
            file.create_array("/", "x", list(range(100)))
        with tables.open_file("probe.h5") as file:
            assert sum(file.root.x.read()) == 4950
    else:
        library = ctypes.CDLL(name)
        library.H5Fcreate.restype = ctypes.c_int64
        library.H5Fcreate.argtypes = [ctypes.c_char_p, ctypes.c_uint, ctypes.c_int64, ctypes.c_int64]
        library.H5Fclose.argtypes = [ctypes.c_int64]
        file = library.H5Fcreate(b"probe.h5", 2, 0, 0)
        assert file >= 0, "H5Fcreate failed"
        library.H5Fclose(file)


if sys.argv[1] == "list":
    print(json.dumps(packages()))
else:
    error = None
    try:
        use(sys.argv[2])
    except BaseException as raised:
        error = f"{type(raised).__name__}: {raised}".splitlines()[0]
    print(json.dumps({"libraries": loaded(), "error": error}), flush=True)
