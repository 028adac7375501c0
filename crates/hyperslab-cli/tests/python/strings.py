"""Makes files with strings of variable length as others write them, and looks at what conversion made of them."""

import pathlib
import sys

import h5py
import netCDF4
import numpy as np
import xarray
import zarr

STATIONS = ["Zürich", "", "a longer name than the others", "x"]
CODES = [["ab", "c"], ["", "défg"], ["h", "i"]]


def make(folder):
    with netCDF4.Dataset(folder / "netcdf4.nc", "w") as file:
        file.createDimension("station", 4)
        file.createDimension("time", None)
        file.createDimension("two", 2)
        file.createVariable("station", str, ("station",))[:] = np.array(STATIONS, dtype=object)
        codes = file.createVariable("g/codes", str, ("time", "two"))
        codes[:] = np.array(CODES, dtype=object)
        codes.setncattr_string("note", "ünï")
        codes.setncattr_string("list", ["one", "", "three"])
        values = file.createVariable("values", "f4", ("time", "station"), zlib=True, fill_value=-1.0)
        values[:] = np.arange(12).reshape(3, 4)
        values.units = "K"
        file.createVariable("scalar", str, ())[...] = "only"
        file.title = "strings"
    data = xarray.Dataset(
        {"t": (("name", "x"), np.arange(8.0).reshape(4, 2))},
        coords={"name": np.array(STATIONS, dtype=object), "x": [1, 2]},
        attrs={"history": "hé", "numbers": [1.5, 2.5]},
    )
    data.to_netcdf(folder / "xarray.nc", engine="netcdf4")
    with h5py.File(folder / "h5py.h5", "w") as file:
        text = file.create_dataset("text", data=np.array(STATIONS, dtype=object), dtype=h5py.string_dtype())
        text.attrs["kind"] = "é"
        text.attrs.create("kinds", ["a", "bcd"], dtype=h5py.string_dtype())
        file.create_dataset("zipped", data=np.array(CODES, dtype=object), dtype=h5py.string_dtype(), chunks=(2, 1),
                            maxshape=(None, 2), compression="gzip", shuffle=True)
        file.create_dataset("numbers", data=np.arange(4.0))
        file["text"].make_scale("names")
        file["numbers"].dims[0].attach_scale(file["text"])
    with h5py.File(folder / "references.h5", "w") as file:
        file.create_dataset("numbers", data=np.arange(4.0))
        file.attrs["friend"] = file["numbers"].ref
        file.create_dataset("links", data=[file["numbers"].ref], dtype=h5py.ref_dtype)
    for version in (2, 3):
        group = zarr.open_group(str(folder / f"zarr{version}.zarr"), mode="w", zarr_format=version)
        array = group.create_array("codes", shape=(3, 2), chunks=(2, 2), dtype=str)
        array[:] = np.array(CODES, dtype=object)
        plain = group.create_array("stations", shape=(4,), chunks=(3,), dtype=str, compressors=None)
        plain[:] = np.array(STATIONS, dtype=object)


def read(path, name):
    """The strings of an array, by a library that is not ours."""
    if path.is_dir():
        found = zarr.open_group(str(path), mode="r")[name][...]
        return found if isinstance(found, str) else found.tolist()
    with h5py.File(path) as file:
        # Where a dimension has the name of an array that is not its coordinate variable.
        found = file[name]
        return found.asstr()[...].tolist() if found.shape else found.asstr()[()]


def check_netcdf(path):
    """Against what `make` wrote with netCDF4."""
    if path.suffix == ".nc":
        with netCDF4.Dataset(path) as file:
            assert file["station"][:].tolist() == STATIONS, file["station"][:]
            assert file["g/codes"][:].tolist() == CODES
            assert file["g/codes"].dimensions == ("time", "two") and file.dimensions["time"].isunlimited()
            assert file["g/codes"].note == "ünï" and list(file["g/codes"].list) == ["one", "", "three"]
            assert file["scalar"][...] == "only" and file.title == "strings"
            assert file["values"][:].tolist() == np.arange(12.0).reshape(3, 4).tolist() and file["values"].units == "K"
            assert file["values"]._FillValue == -1.0
        with netCDF4.Dataset(path, "a") as file:
            file["g/codes"][3] = np.array(["new", "ñ"], dtype=object)
        with netCDF4.Dataset(path) as file:
            assert file["g/codes"][3].tolist() == ["new", "ñ"]
        return
    assert read(path, "station") == STATIONS and read(path, "g/codes") == CODES
    assert read(path, "scalar") in ("only", ["only"])


def check_xarray(path):
    engine = {"engine": "zarr", "consolidated": False} if path.is_dir() else {"engine": "netcdf4"}
    with xarray.open_dataset(path, **engine) as data:
        assert data["name"].values.tolist() == STATIONS, data["name"].values
        assert data["t"].sel(name="x").values.tolist() == [6.0, 7.0]
        assert data.attrs["history"] == "hé" and np.ravel(data.attrs["numbers"]).tolist() == [1.5, 2.5]


def check_h5py(path):
    with h5py.File(path) as file:
        assert file["text"].asstr()[...].tolist() == STATIONS and file["zipped"].asstr()[...].tolist() == CODES
        assert file["text"].attrs["kind"] == "é" and file["text"].attrs["kinds"].tolist() == ["a", "bcd"]
        assert file["zipped"].chunks == (2, 1) and file["zipped"].maxshape == (None, 2)


def check_zarr(path):
    assert read(path, "codes") == CODES and read(path, "stations") == STATIONS


if __name__ == "__main__":
    globals()[sys.argv[1]](pathlib.Path(sys.argv[2]))
    print("right")
