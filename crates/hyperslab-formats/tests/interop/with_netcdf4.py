"""Reads, extends and writes NetCDF-4 files with netCDF4, xarray (both engines) and h5py: python with_netcdf4.py WHAT PATH."""

import sys
import warnings

import netCDF4
import numpy as np

NUMBERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]


def values(dtype, shape, first=0):
    count = int(np.prod(shape))
    return np.array([(7 * i + 3) % 100 for i in range(first, first + count)]).reshape(shape).astype(dtype)


def same(found, expected, what):
    if isinstance(found, np.ma.MaskedArray):
        assert not np.any(found.mask), f"{what}: masked {found}"
        found = found.data
    found = np.asarray(found)
    assert found.shape == expected.shape and np.array_equal(found, expected), f"{what}: {found}, expected {expected}"


def check_contents(data, rows):
    assert data.data_model == "NETCDF4" and data.disk_format == "HDF5", (data.data_model, data.disk_format)
    for name in NUMBERS:
        variable = data["types"][name]
        assert variable.dtype == np.dtype(name) and variable.dimensions == ("d5", "d7"), variable
        same(variable[:], values(name, (5, 7)), name)
    assert set(data.dimensions) >= {"time", "x", "d5", "d7", "string4"}, list(data.dimensions)
    assert data.dimensions["time"].isunlimited() and len(data.dimensions["time"]) == rows
    assert not data.dimensions["x"].isunlimited() and len(data.dimensions["x"]) == 3
    assert data["square"].dimensions == ("d3", "d3_2"), data["square"].dimensions
    same(data["square"][:], values("i4", (3, 3)), "square")
    same(data["scalar"][...], values("f8", ()), "scalar")
    assert list(netCDF4.chartostring(data["text"][:], encoding="ascii")) == ["abcd", "efgh", "ijkl"]
    assert data["flags"].getncattr("dtype") == "bool" and list(data["flags"][:]) == [1, 0, 1, 1]
    pairs = data["pairs"][:]
    assert pairs.dtype.names == ("a", "b") and list(pairs["a"]) == [3, 10] and list(pairs["b"]) == [4.5, 11.5], pairs
    assert data["time"].dimensions == ("time",) and data["grows"].dimensions == ("time", "x")
    same(data["time"][:4], values("f8", (4,)), "time")
    same(data["grows"][:4], values("f4", (4, 3)), "grows")
    assert data["lonely"].dimensions == ("lonely_0",) and len(data.dimensions["lonely_0"]) == 2
    same(data["lonely"][:], values("i4", (2,)), "lonely")
    filled = data["filled"]
    assert filled._FillValue == -1.0 and filled.units == "m s-1", filled
    assert list(filled[:].mask) == [True, False, False, True], filled[:]
    assert list(filled.list) == [1.5, -2.5] and filled.ncattrs() == ["_FillValue", "units", "list"], filled.ncattrs()
    assert list(data.names) == ["one", "zwölf"] and data.title == "été" and data.empty == "" and data.number == 7
    inner = data["g/h/x"]
    assert inner.dimensions == ("x",) and inner.group().path == "/g/h", inner
    same(inner[:], values("i2", (3,)), "g/h/x")
    assert data["x"].dimensions == ("d2",), data["x"]
    same(data["x"][:], values("i4", (2,)), "x")
    packed = data["packed"]
    assert packed.chunking() == [2, 3] and packed.filters()["zlib"] and packed.filters()["shuffle"], packed.filters()
    same(packed[:], values("f8", (4, 6)), "packed")


def check(path):
    with netCDF4.Dataset(path) as data:
        check_contents(data, 4)
    check_others(path, 4)


def check_others(path, rows):
    try:
        import xarray
    except ImportError:
        print("skip\txarray\tit is not installed")
        return
    engines = ["netcdf4"]
    try:
        import h5netcdf  # noqa: F401

        engines.append("h5netcdf")
    except ImportError:
        print("skip\th5netcdf\tit is not installed")
    for engine in engines:
        with warnings.catch_warnings(), xarray.open_dataset(path, engine=engine, decode_times=False) as data:
            warnings.simplefilter("ignore")
            assert data.sizes["time"] == rows and "time" in data.coords, (engine, data)
            assert data["grows"].dims == ("time", "x"), (engine, data["grows"].dims)
            same(data["grows"].values[:4], values("f4", (4, 3)), f"{engine}: grows")
            assert data["flags"].dtype == bool and list(data["flags"].values) == [True, False, True, True], engine
            assert list(data["text"].values) == [b"abcd", b"efgh", b"ijkl"], (engine, data["text"].values)
            assert data.attrs["title"] == "été", engine
    import h5py

    with h5py.File(path) as file:
        assert file["grows"].dims[0][0] == file["time"] and file["grows"].dims[1][0].name == "/x"
        assert file["time"].is_scale and not file["grows"].is_scale
        listed = [file[row[0]].name for row in file["time"].attrs["REFERENCE_LIST"]]
        assert "/grows" in listed and "/time" not in listed, listed


def append(path):
    with netCDF4.Dataset(path, "a") as data:
        data["time"][4] = 99.0
        data["grows"][4, :] = values("f4", (3,), 12)
        data.createDimension("theirs", 6)
        data.createVariable("theirs", "i4", ("theirs",))[:] = values("i4", (6,))
        data.createVariable("both", "i4", ("theirs", "x"))[:] = values("i4", (6, 3))
        data.history = "appended"
        data.createGroup("g/new").createVariable("v", "f8", ("x",))[:] = [1, 2, 3]


def appended(path):
    """Theirs, then ours on top."""
    with netCDF4.Dataset(path) as data:
        assert data["ours"].dimensions == ("time", "x") and len(data.dimensions["time"]) == 6
        same(data["ours"][:], values("i4", (6, 3)), "ours")
        same(data["records"][:2], values("f4", (2, 3)), "records")
        same(data["records"][2:6], values("f4", (4, 3), 6), "records")
        same(data["later"][:], values("f8", (3,)), "later")
        assert data["x"].dimensions == ("x",) and list(data["x"][:]) == [0.5, 1.5, 2.5], data["x"]
        assert data["records"].dimensions == ("time", "x") and data.title == "theirs and ours"


def write(path):
    with netCDF4.Dataset(path, "w") as data:
        data.createDimension("time", None)
        data.createDimension("x", 3)
        data.createDimension("unused", 17)
        data.createVariable("records", "f4", ("time", "x"))[0:2] = values("f4", (2, 3))
        data.createVariable("explicit", "f4", ("x",), fill_value=netCDF4.default_fillvals["f4"])[:] = [1, 2, 3]
        data.createVariable("own", "i4", ("x",), fill_value=-5)[0] = 1
        data.createVariable("packed", "f8", ("x",), zlib=True, complevel=4, shuffle=True)[:] = [1, 2, 3]
        data.createVariable("letters", "S1", ("x",))[:] = [b"a", b"b", b"c"]
        group = data.createGroup("g")
        group.createDimension("y", 2)
        group.createVariable("y", "f8", ("y",))[:] = [1, 2]
        group.createVariable("v", "i2", ("y", "x"))[:] = values("i2", (2, 3))
        data.title = "theirs"
        data.numbers = np.array([1, 2, 3], "i4")
        data.one = np.float32(2.5)
        data["records"].units = "K"


def phony(path):
    import h5py

    with h5py.File(path, "w") as file:
        for name, shape in [("a", (3, 4)), ("b", (3, 5)), ("c", (4, 4))]:
            file[name] = values("i4", shape)


if __name__ == "__main__":
    {f.__name__: f for f in (check, append, appended, write, phony)}[sys.argv[1]](sys.argv[2])
