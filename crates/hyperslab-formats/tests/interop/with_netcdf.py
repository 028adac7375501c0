"""netCDF4 and, where there is one, scipy on classic NetCDF files: with_netcdf.py check|append|write|appended FILE VERSION

`check` reads what hyperslab wrote, `append` adds to it, `write` makes a file for hyperslab to read, `appended` reads what
hyperslab added to that. Values are (7 i + 3) mod 100 by row-major number i."""

import sys

import netCDF4
import numpy as np

FORMATS = {"1": "NETCDF3_CLASSIC", "2": "NETCDF3_64BIT_OFFSET", "5": "NETCDF3_64BIT_DATA"}
WIDE = ["u1", "u2", "u4", "i8", "u8"]


def types(version):
    return ["i1", "i2", "i4", "f4", "f8"] + (WIDE if version == "5" else [])


def values(dtype, shape, first=0):
    count = int(np.prod(shape, dtype=int))
    return ((7 * (np.arange(count) + first) + 3) % 100).astype(dtype).reshape(shape)


def same(what, found, wanted):
    if not np.array_equal(np.asarray(found), np.asarray(wanted)):
        sys.exit(f"{what}: {found!r}, expected {wanted!r}")


def check(path, version):
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        same("format", file.data_model, FORMATS[version])
        same("title", file.title, "été")
        for dtype in types(version):
            found = file.variables[f"types.{dtype}"]
            same("dtype", found.dtype.newbyteorder("="), np.dtype(dtype))
            same(dtype, found[:], values(dtype, (5, 7)))
            same("dimensions", found.dimensions, ("d5", "d7"))
            same("name", found.hyperslab_name, f"types/{dtype}")
        same("square", file.variables["square"].dimensions, ("d3", "d3_2"))
        same("scalar", file.variables["scalar"][...], 3)
        same("text", file.variables["text"][:].tobytes(), b"abcdefghijkl")
        same("filled", file.variables["filled"][:], np.array([-1, 3, 10, -1], "f8"))
        same("fill value", file.variables["filled"]._FillValue, -1.0)
        same("units", file.variables["filled"].units, "m s-1")
        same("list", file.variables["filled"].list, np.array([1.5, -2.5]))
        for name, dtype, shape in [("grows", "f4", (4, 3)), ("bytes", "i1", (4, 3)), ("alone", "i2", (4,))]:
            found = file.variables[name]
            same("is unlimited", file.dimensions[found.dimensions[0]].isunlimited(), True)
            same(name, found[:], values(dtype, shape))
    if version == "5":
        return
    try:
        from scipy.io import netcdf_file
    except ImportError:
        print("skip\tscipy\tit is not installed")
        return
    with netcdf_file(path, "r", mmap=False) as file:
        same("scipy: grows", file.variables["grows"][:], values("f4", (4, 3)))
        same("scipy: f8", file.variables["types.f8"][:], values("f8", (5, 7)))


def append(path, version):
    with netCDF4.Dataset(path, "a") as file:
        file.variables["grows"][4] = values("f4", (3,), 12)
        file.createDimension("new", 6)
        file.createVariable("theirs", "i4", ("new",))[:] = values("i4", (6,))
        file.history = "appended"


def write(path, version):
    with netCDF4.Dataset(path, "w", format=FORMATS[version]) as file:
        file.createDimension("time", None)
        file.createDimension("x", 3)
        file.createDimension("chars", 4)
        file.title = "theirs"
        file.numbers = np.array([1, 2, 3], "i4")
        for dtype in types(version):
            variable = file.createVariable(f"fixed_{dtype}", dtype, ("x", "chars"))
            variable[:] = values(dtype, (3, 4))
        for name, dtype in [("r1", "i1"), ("r2", "f8"), ("r3", "i2")]:
            variable = file.createVariable(name, dtype, ("time", "x"), fill_value=-9)
            variable.units = "K"
            variable[0:5] = values(dtype, (5, 3))
        text = file.createVariable("text", "S1", ("x", "chars"))
        text[:] = np.frombuffer(b"abcdefghijkl", "S1").reshape(3, 4)


def appended(path, version):
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        same("title", file.title, "theirs and ours")
        for name, dtype in [("r1", "i1"), ("r2", "f8"), ("r3", "i2")]:
            wanted = values(dtype, (7, 3))
            wanted[5:] = -9
            if name == "r2":
                wanted[5:] = values(dtype, (2, 3), 15)
            same(name, file.variables[name][:], wanted)
        same("ours", file.variables["g.ours"][:], values("i4", (2, 2)))
        same("more", file.variables["more"][:], values("i4", (7,)))
        for dtype in types(version):
            same(dtype, file.variables[f"fixed_{dtype}"][:], values(dtype, (3, 4)))


if __name__ == "__main__":
    {"check": check, "append": append, "write": write, "appended": appended}[sys.argv[1]](sys.argv[2], sys.argv[3])
