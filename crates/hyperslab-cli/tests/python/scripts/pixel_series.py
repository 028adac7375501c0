"""Writes compressed images and reads what single pixels did over time."""
import h5py, numpy

image = (numpy.arange(200 * 200).reshape(200, 200) % 251).astype("u2")
with h5py.File("series.h5", "w") as f:
    d = f.create_dataset("frames", (150, 200, 200), "u2", chunks=(1, 200, 200), compression="gzip", shuffle=True)
    for i in range(150):
        d[i] = image + i
with h5py.File("series.h5") as f:
    d = f["frames"]
    print(sum(int(d[:, y, 7].sum()) for y in range(0, 200, 10)))
