"""Appends images to a compressed stack whose chunks hold twenty of them."""
import h5py, numpy

image = (numpy.arange(256 * 256).reshape(256, 256) % 251).astype("u2")
with h5py.File("stack.h5", "w", rdcc_nbytes=1 << 20) as f:
    d = f.create_dataset("frames", (100, 256, 256), "u2", chunks=(20, 256, 256), compression="gzip", compression_opts=4)
    for i in range(100):
        d[i] = image + i
