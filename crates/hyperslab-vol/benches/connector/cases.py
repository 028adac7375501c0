"""Cases of the benchmark: CASE ACTION FILE LESS. Prints the seconds that its I/O took; LESS divides the amount of data."""
import sys
import time

import h5py
import numpy as np

case, action, path, less = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
FIELDS = list("abcdefgh")


def smooth():
    """Smooth numbers with a little noise, as simulations make them."""
    n = (64 << 20) // less
    x = np.arange(n, dtype=np.float32) * np.float32(1e-4)
    noise = np.random.default_rng(1).integers(0, 1000, n).astype(np.float32) * np.float32(1e-5)
    return 100 * np.sin(x) + 10 * np.cos(np.float32(7.3) * x) + noise


def filters():
    if case == "deflate":
        return {"compression": "gzip", "compression_opts": 4, "shuffle": True}
    import hdf5plugin
    return hdf5plugin.Zstd(clevel=3) if case == "zstd" else hdf5plugin.Blosc2(cname="zstd", clevel=5)


def timed(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def filtered():
    data = smooth()
    kinds = filters()

    def write():
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data.shape, data.dtype, chunks=(1 << 18,), **kinds)[...] = data

    # Fresh memory has no pages yet: the system finds and clears them during the call.
    out = np.ones_like(data) if action == "read" else np.zeros_like(data)

    def read():
        with h5py.File(path, "r") as file:
            file["x"].read_direct(out)
            return out

    if action == "write":
        return timed(write)[0]
    seconds, out = timed(read)
    assert np.array_equal(out, data)
    return seconds


def rows():
    shape = ((1 << 20) // less, 64)
    data = np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape)
    if action == "write":
        with h5py.File(path, "w") as file:
            file.create_dataset("x", shape, data.dtype, chunks=(1 << 16, 1))[...] = data
        return 0.0
    wanted = np.random.default_rng(2).integers(0, shape[0], 1000)

    def read():
        with h5py.File(path, "r") as file:
            x = file["x"]
            return [x[row] for row in wanted]

    seconds, out = timed(read)
    assert np.array_equal(np.stack(out), data[wanted])
    return seconds


def fields():
    n = (8 << 20) // less
    data = np.zeros(n, dtype=[(name, "<f4") for name in FIELDS])
    for number, name in enumerate(FIELDS):
        data[name] = np.arange(n, dtype=np.float32) + number

    def write():
        with h5py.File(path, "w") as file:
            x = file.create_dataset("x", data.shape, data.dtype)
            for name in FIELDS:
                x[name] = data[name]

    if action == "write":
        return timed(write)[0]
    with h5py.File(path, "r") as file:
        assert np.array_equal(file["x"][...], data)
    return 0.0


def contiguous():
    n, each = (1 << 28) // less, 1 << 22
    data = np.arange(each, dtype=np.int32)

    def write():
        with h5py.File(path, "w") as file:
            x = file.create_dataset("x", (n,), np.int32)
            for start in range(0, n, each):
                x[start : start + each] = data

    if action == "write":
        return timed(write)[0]
    with h5py.File(path, "r") as file:
        for start in range(0, n, each):
            assert np.array_equal(file["x"][start : start + each], data)
    return 0.0


def hidden():
    steps, each = 8, (8 << 20) // less
    data = [np.arange(each, dtype=np.int32) + step for step in range(steps)]

    def compute():
        """Longer than the storage takes for a step, without using memory or processors."""
        time.sleep(0.3 / less)

    if action == "write":
        blocked = 0.0
        file = h5py.File(path, "w")
        x = file.create_dataset("x", (steps, each), np.int32)

        def step(number):
            x[number] = data[number]

        for number in range(steps):
            blocked += timed(lambda: step(number))[0]
            compute()
        return blocked + timed(file.close)[0]
    with h5py.File(path, "r") as file:
        assert all(np.array_equal(file["x"][step], data[step]) for step in range(steps))
    return 0.0


RUN = {"rows": rows, "fields": fields, "contiguous": contiguous, "hidden": hidden}
print(RUN.get(case, filtered)())
