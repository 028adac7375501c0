"""The engine of xarray against the engines that xarray has."""

import threading

import numpy as np
import pytest

xarray = pytest.importorskip("xarray")
netCDF4 = pytest.importorskip("netCDF4")

from hyperslab._xarray import HyperslabEntrypoint


@pytest.fixture(scope="module")
def dataset():
    time = np.array(["2026-01-01", "2026-01-02", "2026-01-03"], dtype="M8[ns]")
    values = np.random.default_rng(1).normal(size=(3, 20, 30)).astype("f4")
    values[1, 2, 3] = np.nan
    return xarray.Dataset(
        {"t": (("time", "lat", "lon"), values, {"units": "K"}), "count": (("lat",), np.arange(20, dtype="i8"))},
        coords={"time": time, "lat": np.linspace(-90, 90, 20), "lon": np.linspace(0, 348, 30)},
        attrs={"title": "a small one", "version": 3},
    )


@pytest.fixture(scope="module", params=["netcdf4", "classic", "zarr2", "zarr3"])
def path(request, dataset, tmp_path_factory):
    path = tmp_path_factory.mktemp("xarray") / f"{request.param}.nc"
    if request.param.startswith("zarr"):
        pytest.importorskip("zarr")
        path = path.with_suffix(".zarr")
        dataset.to_zarr(path, zarr_format=int(request.param[-1]), consolidated=False)
    elif request.param == "classic":
        dataset.drop_vars("count").to_netcdf(path, format="NETCDF3_64BIT", engine="netcdf4")
    else:
        packed = {"zlib": True, "chunksizes": (1, 10, 30), "scale_factor": 0.01, "dtype": "i2", "_FillValue": -9999}
        dataset.to_netcdf(path, engine="netcdf4", encoding={"t": packed}, unlimited_dims=["time"])
    return path


def test_datasets_are_those_of_other_engines(path):
    other = {"engine": "zarr", "consolidated": False} if path.suffix == ".zarr" else {"engine": "netcdf4"}
    with xarray.open_dataset(path, **other) as expected, xarray.open_dataset(path, engine=HyperslabEntrypoint) as found:
        assert set(found.variables) == set(expected.variables) and found.attrs.keys() == expected.attrs.keys()
        assert dict(found.sizes) == dict(expected.sizes)
        xarray.testing.assert_equal(found.load(), expected.load())
        assert found["t"].attrs == expected["t"].attrs
        assert {name: found[name].dtype for name in found} == {name: expected[name].dtype for name in expected}


def test_parts_are_read_lazily_and_by_threads(path, dataset):
    with xarray.open_dataset(path, engine=HyperslabEntrypoint) as found:
        expected = found["t"].values
        part = found["t"].isel(time=1, lat=slice(None, None, -3), lon=[4, 2, 2])
        np.testing.assert_array_equal(part.values, expected[1, ::-3][:, [4, 2, 2]])
        np.testing.assert_array_equal(found["t"].sel(lat=-90).values, expected[:, 0])

    wrong = []
    with xarray.open_dataset(path, engine=HyperslabEntrypoint) as found:

        def read(row):
            for _ in range(20):
                if not np.array_equal(found["t"].isel(lat=row).values, expected[:, row], equal_nan=True):
                    wrong.append(row)

        threads = [threading.Thread(target=read, args=(row,)) for row in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    assert not wrong


def test_groups_are_datasets_of_their_own(tmp_path, dataset):
    path = tmp_path / "groups.nc"
    dataset.to_netcdf(path, engine="netcdf4", group="model/run")
    with xarray.open_dataset(path, engine=HyperslabEntrypoint, group="model/run") as found:
        xarray.testing.assert_equal(found.load(), dataset)
    with pytest.raises(KeyError, match="nothing"):
        xarray.open_dataset(path, engine=HyperslabEntrypoint, group="nothing")
