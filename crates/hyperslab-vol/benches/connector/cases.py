"""Cases of the benchmark: CASE ACTION FILE LESS. Prints the seconds that its I/O took, or the bytes that are to be
compared; LESS divides the amount of data."""
import resource
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


def objects(file, count):
    for number in range(count):
        dataset = file.create_dataset(f"g{number}/x", data=np.arange(16))
        dataset.attrs["units"] = "m"
        dataset.attrs["number"] = number


def create():
    """Many objects, nothing flushed before the end."""
    count = 4000 // less

    def write():
        with h5py.File(path, "w") as file:
            objects(file, count)

    if action == "write":
        return timed(write)[0]
    with h5py.File(path, "r") as file:
        assert [file[f"g{number}/x"].attrs["number"] for number in range(count)] == list(range(count))
    return 0.0


def change():
    """Objects that are there already get other attributes and names, some go, and all is flushed now and then."""
    count = 2000 // less

    def write():
        with h5py.File(path, "r+") as file:
            for number in range(count):
                file[f"g{number}/x"].attrs["number"] = -number
                if number % 2:
                    file.move(f"g{number}", f"h{number}")
                if number % 10 == 0:
                    del file[f"g{number}"]
                if number % 100 == 99:
                    file.flush()

    if action == "write":
        with h5py.File(path, "w") as file:
            objects(file, count)
        return timed(write)[0]
    with h5py.File(path, "r") as file:
        names = {f"h{n}" if n % 2 else f"g{n}": n for n in range(count) if n % 10}
        assert set(file) == set(names) and all(file[name]["x"].attrs["number"] == -n for name, n in names.items())
    return 0.0


def append():
    """Rows that are appended one by one, flushed now and then."""
    count = 8000 // less

    def write():
        with h5py.File(path, "w") as file:
            x = file.create_dataset("x", (0, 64), "f4", maxshape=(None, 64), chunks=(64, 64))
            for row in range(count):
                x.resize(row + 1, 0)
                x[row] = row
                if row % 100 == 99:
                    file.flush()

    if action == "write":
        return timed(write)[0]
    with h5py.File(path, "r") as file:
        assert (file["x"][:, 0] == np.arange(count)).all() and (file["x"][:, 63] == np.arange(count)).all()
    return 0.0


def replace():
    """Elements that a commit has are written over; the most memory that the process had, in bytes."""
    n, each = (1 << 27) // less, 1 << 22
    if action == "write":
        with h5py.File(path, "w") as file:
            x = file.create_dataset("x", (n,), np.int32)
            for times in (1, 2):
                for start in range(0, n, each):
                    x[start : start + each] = times
                file.flush()
        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10)
    with h5py.File(path, "r") as file:
        assert all((file["x"][start : start + each] == 2).all() for start in range(0, n, each))
    return 0.0


RUN = {"create": create, "change": change, "append": append, "replace": replace, "rows": rows, "fields": fields, "contiguous": contiguous, "hidden": hidden}
print(RUN.get(case, filtered)())
