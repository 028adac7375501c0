"""netCDF4: writes fields in time and reads series of places."""
import netCDF4, numpy

d = netCDF4.Dataset("weather.nc", "w")
d.createDimension("time", None)
d.createDimension("y", 200)
d.createDimension("x", 300)
t = d.createVariable("temperature", "f4", ("time", "y", "x"), zlib=True, complevel=1, chunksizes=(1, 200, 300))
field = numpy.arange(60_000, dtype="f4").reshape(200, 300)
for i in range(150):
    t[i] = field + i
d.close()
d = netCDF4.Dataset("weather.nc")
print(sum(float(d["temperature"][:, y, 10].sum()) for y in range(0, 200, 10)))
