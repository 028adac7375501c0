"""xarray: writes a compressed dataset and reads parts of it."""
import numpy, xarray

a = numpy.random.default_rng(1).random((60, 150, 200), dtype="f4")
b = xarray.DataArray(a, dims=("t", "y", "x"), name="v")
b.to_netcdf("fields.nc", engine="netcdf4", encoding={"v": {"zlib": True, "complevel": 4, "chunksizes": (60, 10, 10)}})
with xarray.open_dataset("fields.nc") as c:
    print(sum(float(c["v"][i].sum()) for i in range(0, 60, 4)))
