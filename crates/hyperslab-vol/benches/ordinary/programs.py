"""Ordinary programs with HDF5: NAME prepare|run|content FILE.

`prepare` makes what a program reads, `run` prints the seconds that the program took from opening its file to having closed it,
those of the processors, and a digest of what it read, `content` a digest of everything in a file. `programs.py list` prints the names."""
import functools
import hashlib
import sys
import time

import numpy as np

PROGRAMS = {}
# What is read must be made first.
PREPARES = {}


def program(function):
    PROGRAMS[function.__name__.replace("_", "-")] = function
    return function


def prepares(*names):
    def register(function):
        PREPARES.update({name: function for name in names})
        return function

    return register


class Aside:
    """Time that is no program's: making the data."""

    seconds = processors = depth = 0

    def __enter__(self):
        self.depth += 1
        if self.depth == 1:
            self.begin = time.perf_counter(), time.process_time()

    def __exit__(self, *_):
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.begin[0]
            self.processors += time.process_time() - self.begin[1]

    def __call__(self, function):
        @functools.wraps(function)
        def timed(*arguments, **options):
            with self:
                return function(*arguments, **options)

        return timed


aside = Aside()


@aside
def smooth(*shape, dtype=np.float32):
    """Smooth numbers with a little noise, as instruments and simulations make them."""
    n = int(np.prod(shape))
    x = np.arange(n, dtype=np.float32) * np.float32(1e-4)
    noise = np.random.default_rng(1).integers(0, 1000, n).astype(np.float32) * np.float32(1e-5)
    return (100 * np.sin(x) + noise).astype(dtype).reshape(shape)


@aside
def images(number, side=512):
    return (smooth(number, side, side) * 20 + 2000).astype(np.uint16)


@aside
def table(rows):
    kind = np.dtype([("time", "<f8"), ("id", "<i4"), ("energy", "<f4"), ("pos", "<f4", (3,)), ("flag", "i1")])
    data = np.zeros(rows, dtype=kind)
    data["time"] = np.arange(rows) * 1e-3
    data["id"] = np.arange(rows) % 97
    data["energy"] = smooth(rows)
    data["pos"] = smooth(rows, 3)
    data["flag"] = np.arange(rows) % 3
    return data


def h5(path, mode, **options):
    import h5py

    return h5py.File(path, mode, **options)


# Loggers and time series


@program
def logger_compressed(path):
    """Blocks of 200 rows appended to a compressed dataset that grows, flushed now and then."""
    block = smooth(200, 8)
    with h5(path, "w") as file:
        data = file.create_dataset("log", (0, 8), "f4", maxshape=(None, 8), chunks=(4096, 8), compression="gzip")
        for number in range(600):
            data.resize((number + 1) * 200, axis=0)
            data[number * 200 :] = block + number
            if number % 200 == 199:
                file.flush()


@program
def logger_rows(path):
    """Single rows appended to a dataset that grows."""
    row = smooth(64)
    with h5(path, "w") as file:
        data = file.create_dataset("log", (0, 64), "f4", maxshape=(None, 64), chunks=(256, 64))
        for number in range(2500):
            data.resize(number + 1, axis=0)
            data[number] = row + number


@program
def series_write(path):
    """Sixteen channels in large compressed blocks."""
    data = smooth(16, 1 << 19)
    with h5(path, "w") as file:
        for channel, values in enumerate(data):
            file.create_dataset(f"channel{channel}", data=values, chunks=(1 << 16,), compression="gzip", shuffle=True)


@prepares("series-read", "series-windows")
def prepare_series(path):
    series_write(path)


@program
def series_read(path):
    with h5(path, "r") as file:
        return [data[...] for data in file.values()]


@program
def series_windows(path):
    """Windows at random of random channels."""
    random = np.random.default_rng(3)
    with h5(path, "r") as file:
        names = list(file)
        windows = []
        for _ in range(400):
            start = int(random.integers(0, (1 << 19) - 4096))
            windows.append(file[names[random.integers(0, 16)]][start : start + 4096])
        return windows


# Images


@program
def images_write(path):
    """A stack of images, a chunk each, as a detector writes them."""
    data = images(60)
    with h5(path, "w") as file:
        stack = file.create_dataset("entry/data", data.shape, data.dtype, chunks=(1, 512, 512), compression="gzip", compression_opts=1)
        for number, image in enumerate(data):
            stack[number] = image


@prepares("images-read", "images-crops")
def prepare_images(path):
    images_write(path)


@program
def images_read(path):
    with h5(path, "r") as file:
        return [image for image in file["entry/data"]]


@program
def images_crops(path):
    """The same crop of every image, then random crops."""
    random = np.random.default_rng(4)
    with h5(path, "r") as file:
        stack = file["entry/data"]
        crops = [stack[:, 100:164, 200:264]]
        for _ in range(60):
            n, y, x = random.integers(0, 60), random.integers(0, 448), random.integers(0, 448)
            crops.append(stack[n, y : y + 64, x : x + 64])
        return crops


@program
def images_bitshuffle(path):
    """The same with bitshuffle and LZ4, as fast detectors do."""
    import hdf5plugin

    data = images(120)
    with h5(path, "w") as file:
        stack = file.create_dataset("entry/data", data.shape, data.dtype, chunks=(1, 512, 512), **hdf5plugin.Bitshuffle())
        for number, image in enumerate(data):
            stack[number] = image


@prepares("samples-epochs")
def prepare_samples(path):
    data = smooth(600, 32, 32, 8)
    with h5(path, "w") as file:
        file.create_dataset("x", data=data, chunks=(1, 32, 32, 8), compression="gzip", compression_opts=1)
        file["y"] = np.arange(600)


@program
def samples_epochs(path):
    """Shuffled samples, a chunk each, for two epochs."""
    random = np.random.default_rng(5)
    with h5(path, "r") as file:
        x, y = file["x"], file["y"]
        return [(x[n], y[n]) for _ in range(2) for n in random.permutation(600)]


# Tables


@program
def table_write(path):
    data = table(300_000)
    with h5(path, "w") as file:
        stored = file.create_dataset("events", data.shape, data.dtype, chunks=(16384,), compression="gzip", compression_opts=2)
        for start in range(0, len(data), 50_000):
            stored[start : start + 50_000] = data[start : start + 50_000]


@prepares("table-columns")
def prepare_table(path):
    table_write(path)


@program
def table_columns(path):
    """Column by column."""
    with h5(path, "r") as file:
        return [file["events"][name] for name in ("time", "id", "energy", "pos", "flag")]


# Many small things


@program
def small_datasets_write(path):
    with h5(path, "w") as file:
        for number in range(1200):
            group = file.require_group(f"run{number // 100}")
            group[f"data{number}"] = np.arange(number % 50 + 1, dtype=np.float32)


@prepares("small-datasets-read")
def prepare_small(path):
    small_datasets_write(path)


@program
def small_datasets_read(path):
    with h5(path, "r") as file:
        return [data[...] for group in file.values() for data in group.values()]


@program
def attributes(path):
    with h5(path, "w") as file:
        for number in range(300):
            group = file.create_group(f"sample{number}")
            for key in range(8):
                group.attrs[f"key{key}"] = key * number
            group.attrs["name"] = f"sample {number}"
            group.create_dataset("x", data=np.arange(10)).attrs["unit"] = "m/s"
    with h5(path, "r") as file:
        return [dict(group.attrs) for group in file.values()]


@program
def strings(path):
    """Text of variable length, and numbers beside it."""
    import h5py

    with aside:
        words = [f"word {number % 1000} of a text" for number in range(60_000)]
    with h5(path, "w") as file:
        file.create_dataset("words", data=words, dtype=h5py.string_dtype())
        file["length"] = np.array([len(word) for word in words])
    with h5(path, "r") as file:
        return [file["words"].asstr()[...].tolist(), file["length"][...]]


# Selections


@prepares("mask-read", "columns-read", "points-read")
def prepare_matrix(path):
    with h5(path, "w") as file:
        file.create_dataset("plain", data=smooth(3000, 2000))
        file.create_dataset("chunked", data=smooth(3000, 2000), chunks=(250, 250))


@program
def mask_read(path):
    data = smooth(3000, 2000)
    rows = data[:, 0] > 0
    with h5(path, "r") as file:
        return [file["plain"][rows], file["chunked"][rows], file["plain"][:40][data[:40] > 50]]


@program
def columns_read(path):
    columns = np.sort(np.random.default_rng(6).choice(2000, 200, replace=False))
    with h5(path, "r") as file:
        return [file["plain"][:, columns], file["chunked"][:, columns]]


@program
def columns_write(path):
    """Random columns of a small matrix."""
    columns = np.sort(np.random.default_rng(7).choice(1000, 433, replace=False))
    with h5(path, "w") as file:
        data = file.create_dataset("x", (400, 1000), "f8")
        for _ in range(3):
            data[:, columns] = smooth(400, 433, dtype=np.float64)


@program
def points_read(path):
    """A union of many pieces, as maps of unstructured grids make it: single elements and short runs."""
    random = np.random.default_rng(8)
    with h5(path, "r") as file:
        import h5py

        total = 0
        for name in ("plain", "chunked"):
            data = file[name]
            rows = np.sort(random.choice(3000, 1500, replace=False))
            total += int(data[rows, 5].sum())
            starts = np.sort(random.choice(590_000, 40_000, replace=False)) * 10
            space = data.id.get_space()
            coordinates = np.stack([starts // 2000, starts % 2000], axis=1)
            space.select_elements(coordinates)
            out = np.empty(len(starts), dtype=np.float32)
            data.id.read(h5py.h5s.create_simple(out.shape), space, out)
            total += float(out.sum())
        return total


@program
def unions_write(path):
    """What each task of a climate model writes: a union of thousands of runs of a variable, a few variables."""
    import h5py

    random = np.random.default_rng(9)
    starts = np.sort(random.choice(100_000, 6000, replace=False)) * 8
    with h5(path, "w") as file:
        for variable in range(3):
            data = file.create_dataset(f"v{variable}", (800_000,), "f8", fillvalue=0.0)
            with aside:
                space = data.id.get_space()
                space.select_none()
                for start in starts:
                    space.select_hyperslab((int(start),), (5,), op=h5py.h5s.SELECT_OR)
                values = smooth(len(starts) * 5, dtype=np.float64)
            data.id.write(h5py.h5s.create_simple(values.shape), space, values)


@program
def updates_unaligned(path):
    """Small boxes of a chunked array changed one by one."""
    random = np.random.default_rng(10)
    box = smooth(20, 20)
    with h5(path, "w") as file:
        data = file.create_dataset("x", (2000, 2000), "f4", chunks=(200, 200))
        data[...] = 0
        for _ in range(1500):
            y, x = random.integers(0, 1980, 2)
            data[y : y + 20, x : x + 20] = box


@program
def updates_compressed(path):
    """The same with compression."""
    random = np.random.default_rng(11)
    box = smooth(20, 20)
    with h5(path, "w") as file:
        data = file.create_dataset("x", (600, 600), "f4", chunks=(100, 100), compression="gzip")
        data[...] = 0
        for _ in range(600):
            y, x = random.integers(0, 580, 2)
            data[y : y + 20, x : x + 20] = box


# Types


@program
def float64_to_float32(path):
    """Python computes with float64 and keeps float32."""
    data = smooth(16_000_000, dtype=np.float64)
    with h5(path, "w") as file:
        file.create_dataset("x", data.shape, "f4")[...] = data


@prepares("float32-as-float64", "integers-as-floats")
def prepare_numbers(path):
    with h5(path, "w") as file:
        file["x"] = smooth(24_000_000)
        file["n"] = (smooth(32_000_000) * 100).astype(np.int16)


@program
def float32_as_float64(path):
    with h5(path, "r") as file:
        return [file["x"].astype("f8")[...]]


@program
def integers_as_floats(path):
    with h5(path, "r") as file:
        return [file["n"].astype("f4")[...]]


@prepares("big-endian-read")
def prepare_big_endian(path):
    with h5(path, "w") as file:
        file["x"] = smooth(16_000_000).astype(">f4")
        file.create_dataset("z", data=smooth(2_000_000).astype(">f8"), chunks=(1 << 17,), compression="gzip", compression_opts=1)


@program
def big_endian_read(path):
    with h5(path, "r") as file:
        return [file[name].astype(file[name].dtype.newbyteorder("="))[...] for name in "xz"]


@program
def contiguous(path):
    """An array in one piece, as big as programs often have them."""
    data = smooth(4000, 4000)
    with h5(path, "w") as file:
        file["x"] = data
    with h5(path, "r") as file:
        return [file["x"][...]]


@program
def checkpoint(path):
    """A state of several arrays written again and again over the old one, flushed each time."""
    state = {f"a{number}": smooth(300, 300, dtype=np.float64) for number in range(8)}
    with h5(path, "w") as file:
        for name, values in state.items():
            file.create_dataset(name, data=values)
        for step in range(25):
            for name, values in state.items():
                file[name][...] = values + step
            file.attrs["step"] = step
            file.flush()


# Other libraries above HDF5


@program
def netcdf_records(path):
    import netCDF4

    data = smooth(40, 180, 360)
    with netCDF4.Dataset(path, "w") as file:
        for name, size in (("time", None), ("lat", 180), ("lon", 360)):
            file.createDimension(name, size)
        times = file.createVariable("time", "f8", ("time",))
        variables = [file.createVariable(name, "f4", ("time", "lat", "lon"), zlib=True, complevel=2, chunksizes=(1, 180, 360)) for name in "tuv"]
        for step, values in enumerate(data):
            times[step] = step * 6.0
            for variable in variables:
                variable[step] = values


@prepares("netcdf-read")
def prepare_netcdf(path):
    netcdf_records(path)


@program
def netcdf_read(path):
    import netCDF4

    with netCDF4.Dataset(path) as file:
        return [np.ma.getdata(file[name][...]) for name in ("time", "t", "u", "v")] + [np.ma.getdata(file["t"][:, 90, 180])]


@program
def xarray_dataset(path):
    import xarray

    axes = {"time": np.arange(60), "y": np.arange(200.0), "x": np.arange(200.0)}
    data = xarray.Dataset({name: (("time", "y", "x"), smooth(60, 200, 200)) for name in ("u", "v")}, axes)
    packing = {name: {"zlib": True, "complevel": 1} for name in ("u", "v")}
    data.to_netcdf(path, engine="netcdf4", encoding=packing)
    with xarray.open_dataset(path, engine="netcdf4") as again:
        return [again["u"].mean("time").values, again["v"][5].values]


@program
def pandas_tables(path):
    import pandas

    frame = pandas.DataFrame({f"c{number}": smooth(100_000, dtype=np.float64) * number for number in range(8)})
    frame.to_hdf(path, key="fixed", mode="w", complevel=1, complib="zlib")
    frame[:30_000].to_hdf(path, key="rows", format="table", append=True)
    return [pandas.read_hdf(path, "fixed").values, pandas.read_hdf(path, "rows", where="index > 25000").values]


@program
def pytables_events(path):
    import tables

    rows = table(60_000)
    with tables.open_file(path, "w") as file:
        filters = tables.Filters(complevel=1, complib="zlib", shuffle=True)
        events = file.create_table("/", "events", rows.dtype, filters=filters, expectedrows=len(rows))
        for start in range(0, len(rows), 2000):
            events.append(rows[start : start + 2000])
        frames = file.create_earray("/", "frames", tables.Float32Atom(), (0, 64, 64), filters=filters)
        for _ in range(80):
            frames.append(smooth(2, 64, 64))
    with tables.open_file(path, "r") as file:
        return [file.root.events.read_where("energy > 50"), file.root.frames[10:30]]


@program
def anndata_cells(path):
    import anndata
    import scipy.sparse

    with aside:
        counts = scipy.sparse.random(4000, 3000, density=0.08, format="csr", dtype=np.float32, random_state=1)
    cells = anndata.AnnData(counts)
    cells.obs["batch"] = [f"batch{number % 7}" for number in range(4000)]
    cells.obsm["pca"] = smooth(4000, 50)
    cells.write_h5ad(path, compression="gzip", compression_opts=1)
    again = anndata.read_h5ad(path)
    return [again.X.data, again.X.indices, again.obsm["pca"], list(again.obs["batch"])]


def plain_bytes(value):
    """What a value is, as bytes."""
    if isinstance(value, np.ndarray):
        head = f"{value.dtype.str}{value.shape}".encode()
        return head + (repr(value.tolist()).encode() if value.dtype.hasobject else np.ascontiguousarray(value).tobytes())
    if isinstance(value, (list, tuple)):
        return b"".join(plain_bytes(one) for one in value)
    return repr(value).encode()


def content(path):
    """Everything in a file but the times of its objects: names, types, shapes, chunks, filters, attributes, elements."""
    import h5py
    import hdf5plugin  # noqa: F401

    digest = hashlib.sha256()

    def note(*what):
        digest.update(plain_bytes(what))

    def visit(name, item):
        note(name, type(item).__name__)
        for key in sorted(item.attrs):
            value = item.attrs[key]
            note(key, value if not isinstance(value, (h5py.Reference, h5py.h5r.Reference)) else "reference")
        if isinstance(item, h5py.Dataset):
            note(item.dtype.str, item.shape, item.maxshape, item.chunks, item.compression, item.shuffle)
            note(np.asarray(item[()]) if item.dtype.kind != "O" else [bytes(one) if isinstance(one, bytes) else repr(one) for one in np.ravel(item[()])])

    with h5py.File(path, "r") as file:
        visit("/", file)
        file.visititems(visit)
    return digest.hexdigest()


def main():
    if sys.argv[1] == "list":
        print(*PROGRAMS)
        return
    name, action, path = sys.argv[1:4]
    if action == "prepare":
        if name in PREPARES:
            PREPARES[name](path)
            print("made")
        else:
            print("nothing")
    elif action == "content":
        print(content(path))
    else:
        # Libraries are loaded before, without a file.
        for module in MODULES.get(name, ["h5py"]):
            __import__(module)
        begin = time.perf_counter(), time.process_time()
        result = PROGRAMS[name](path)
        seconds = time.perf_counter() - begin[0] - aside.seconds
        processors = time.process_time() - begin[1] - aside.processors
        print(seconds, processors, hashlib.sha256(plain_bytes(result)).hexdigest())


MODULES = {
    "images-bitshuffle": ["h5py", "hdf5plugin"],
    "netcdf-records": ["netCDF4"],
    "netcdf-read": ["netCDF4"],
    "xarray-dataset": ["netCDF4", "xarray"],
    "pandas-tables": ["pandas", "tables"],
    "pytables-events": ["tables"],
    "anndata-cells": ["anndata", "scipy.sparse"],
}

if __name__ == "__main__":
    main()
