"""Round trips of netCDF4 and xarray, with h5py as a third opinion: python netcdf.py write|append|check FOLDER"""

import sys

import h5py
import netCDF4
import numpy as np
import xarray

STEPS, ROWS, COLUMNS = 12, 40, 50


def field(step):
    return (np.sin(np.arange(ROWS * COLUMNS) / 100 + step) * 20).reshape(ROWS, COLUMNS).astype("f4")


def write(folder):
    with netCDF4.Dataset(f"{folder}/model.nc", "w") as file:
        file.createDimension("time", None)
        file.createDimension("y", ROWS)
        file.createDimension("x", COLUMNS)
        time = file.createVariable("time", "f8", ("time",))
        time.units, time.calendar = "hours since 2020-01-01", "standard"
        file.createVariable("y", "i4", ("y",))[:] = np.arange(ROWS)
        packed = dict(zlib=True, complevel=4, shuffle=True)
        temperature = file.createVariable("temperature", "f4", ("time", "y", "x"), chunksizes=(1, 16, 50), fill_value=-999.0, **packed)
        temperature.units = "degC"
        scaled = file.createVariable("scaled", "i2", ("time", "x"), fletcher32=True, **packed)
        scaled.scale_factor, scaled.add_offset = 0.01, 5.0
        file.createVariable("plain", "f8", ("y", "x"))[:] = field(0)
        station = file.createVariable("station", str, ("y",))
        station[0], station[ROWS - 1] = "first", "last"
        kind = file.createEnumType("u1", "kind", {"clear": 0, "cloudy": 1})
        file.createVariable("sky", kind, ("x",))[:] = np.arange(COLUMNS) % 2
        group = file.createGroup("deeper")
        group.createVariable("copy", "i8", ("time", "y"))[:] = np.zeros((0, ROWS))
        file.title = "a model"
    steps(folder, 0, STEPS // 2)
    data = xarray.Dataset(
        {"a": (("t", "y", "x"), np.stack([field(step) for step in range(4)])), "b": (("y",), np.arange(ROWS))},
        coords={"t": np.array(["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-04"], "M8[ns]"), "name": ("y", [f"row {y}" for y in range(ROWS)])},
    )
    data.to_netcdf(f"{folder}/xarray.nc", engine="netcdf4", unlimited_dims=["t"], encoding={"a": {"zlib": True, "complevel": 3}})


def steps(folder, begin, end):
    with netCDF4.Dataset(f"{folder}/model.nc", "a") as file:
        for step in range(begin, end):
            file["time"][step] = step
            file["temperature"][step] = field(step)
            file["scaled"][step] = np.round(field(step)[0], 1)
            file["deeper/copy"][step] = np.arange(ROWS) * step
            if step % 3 == 1:
                file.sync()
                assert np.array_equal(file["temperature"][step], field(step))


def append(folder):
    steps(folder, STEPS // 2, STEPS)
    with xarray.open_dataset(f"{folder}/xarray.nc") as data:
        data = data.load()
    data["a"] = data["a"] + 1
    data.to_netcdf(f"{folder}/again.nc", encoding={"a": {"zlib": True, "chunksizes": (1, 16, 16)}})


def check(folder):
    with netCDF4.Dataset(f"{folder}/model.nc") as file:
        assert file.title == "a model" and file["temperature"].units == "degC"
        assert file.dimensions["time"].isunlimited() and len(file.dimensions["time"]) == STEPS
        for step in range(STEPS):
            assert np.array_equal(file["temperature"][step], field(step)), step
            assert np.abs(file["scaled"][step] - np.round(field(step)[0], 1)).max() < 0.006, step
        assert np.array_equal(file["deeper/copy"][:], np.arange(STEPS)[:, None] * np.arange(ROWS))
        assert file["station"][0] == "first" and file["station"][ROWS - 1] == "last" and file["station"][1] == ""
        assert np.array_equal(file["sky"][:], np.arange(COLUMNS) % 2)
        assert np.array_equal(file["plain"][:], field(0))
    with h5py.File(f"{folder}/model.nc") as file:
        assert np.array_equal(file["temperature"][...], [field(step) for step in range(STEPS)])
        assert file["temperature"].dims[0][0] == file["time"]
    with xarray.open_dataset(f"{folder}/model.nc") as data:
        assert data["temperature"].dims == ("time", "y", "x") and data["time"].dtype.kind == "M"
        assert np.array_equal(data["temperature"].isel(time=slice(2, 9, 3), x=slice(10, 40)), np.stack([field(s)[:, 10:40] for s in (2, 5, 8)]))
    with xarray.open_dataset(f"{folder}/xarray.nc") as first, xarray.open_dataset(f"{folder}/again.nc") as second:
        assert np.array_equal(first["a"], np.stack([field(step) for step in range(4)]))
        assert np.array_equal(second["a"], first["a"] + 1) and np.array_equal(second["b"], np.arange(ROWS))
        assert list(second["name"].values) == [f"row {y}" for y in range(ROWS)]


if __name__ == "__main__":
    {"write": write, "append": append, "check": check}[sys.argv[1]](sys.argv[2])
