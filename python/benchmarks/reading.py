"""What `hyperslab.open`, `take` and the engine of xarray gain, against h5py, netCDF4, hidefix and TensorStore.

    python python/benchmarks/reading.py [--mebibytes 256] [--rounds 5] [--folder DIR]

Needs hyperslab, h5py and numpy; what else is missing is left out and said so. The ways take turns, round after round, all
in this process, with files in the page cache; figures are medians, ratios are of medians. Every result is compared first.
"""

import argparse
import importlib.util
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np

import hyperslab


def side_by_side(title, ways, rounds, aims):
    """Times each way in turn; the first is what the others are held against. All must give the same."""
    expected = None
    for name, way in ways.items():
        got = way()
        if expected is None:
            expected = got
        assert np.array_equal(got, expected), f"{title}: {name} reads something else"
    times = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            begin = time.perf_counter()
            way()
            times[name].append(time.perf_counter() - begin)
    medians = {name: statistics.median(values) for name, values in times.items()}
    print(f"{title}", flush=True)
    ours = medians["hyperslab"]
    for name, median in medians.items():
        spread = f"{min(times[name]):.3f} to {max(times[name]):.3f}"
        ratio = "" if name == "hyperslab" else f"  hyperslab is {median / ours:5.2f} x as fast, aim {aims.get(name, '-')}"
        print(f"  {name:<12} {median:8.3f} s ({spread}){ratio}", flush=True)


def have(module):
    there = importlib.util.find_spec(module) is not None
    if not there:
        print(f"left out: {module} is not installed", flush=True)
    return there


def whole_array(folder, data, rounds):
    path = folder / "gzip.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=data, chunks=(256, 1024), compression="gzip", compression_opts=4, shuffle=True)

    def plain():
        with h5py.File(path) as file:
            return file["x"][...]

    def ours():
        with hyperslab.open(path) as file:
            return file["x"][...]

    ways = {"h5py": plain, "hyperslab": ours}
    if have("hidefix"):
        import hidefix

        index = hidefix.Index(str(path))
        ways["hidefix"] = lambda: np.asarray(index.dataset("x")[:, :])
    side_by_side(f"gzip, {data.nbytes >> 20} MiB, whole", ways, rounds, {"h5py": 4, "hidefix": 1})
    if have("tensorstore") and have("zarr"):
        import tensorstore
        import zarr

        store = folder / "gzip.zarr"
        codec = zarr.codecs.GzipCodec(level=4)
        group = zarr.open_group(store, mode="w", zarr_format=3)
        group.create_array("x", shape=data.shape, chunks=(256, 1024), dtype=data.dtype, compressors=[codec])[...] = data
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(store / "x")}}

        def stored():
            return tensorstore.open(spec, open=True, read=True).result().read().result()

        def ours_of_zarr():
            with hyperslab.open(store) as file:
                return file["x"][...]

        ways = {"tensorstore": stored, "hyperslab": ours_of_zarr}
        side_by_side(f"Zarr with gzip, {data.nbytes >> 20} MiB, whole", ways, rounds, {"tensorstore": 1})


def rows(folder, data, rounds):
    path = folder / "rows.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=data, chunks=(64, 1024), compression="gzip", compression_opts=4, shuffle=True)
    random = np.random.default_rng(1)
    at = random.integers(0, len(data), 1000).tolist()
    scattered = np.sort(random.choice(len(data) * 64, 10_000, replace=False))

    def one_by_one(opened):
        array = opened["x"]
        return np.stack([array[row] for row in at])

    def plain_rows():
        with h5py.File(path) as file:
            return one_by_one(file)

    def our_rows():
        with hyperslab.open(path, "cache(memory=512MiB)/hdf5(plane=on)") as file:
            return one_by_one(file)

    def our_rows_without_cache():
        with hyperslab.open(path) as file:
            return one_by_one(file)

    ways = {"h5py": plain_rows, "hyperslab": our_rows_without_cache, "with cache": our_rows}
    side_by_side("1,000 random rows, one by one, gzip", ways, max(1, rounds // 2), {"h5py": 8})
    many = folder / "take.h5"
    narrow = data.reshape(len(data) * 64, -1)
    with h5py.File(many, "w") as file:
        file.create_dataset("x", data=narrow, chunks=(4096, narrow.shape[1]))

    def plain_take():
        with h5py.File(many) as file:
            return file["x"][scattered]

    def our_take():
        with hyperslab.open(many) as file:
            return file["x"].take(scattered)

    side_by_side("10,000 scattered rows at once", {"h5py": plain_take, "hyperslab": our_take}, max(1, rounds // 2), {"h5py": 10})


def datasets(folder, data, rounds):
    if not (have("xarray") and have("dask") and have("netCDF4")):
        return
    import dask
    import xarray

    from hyperslab._xarray import HyperslabEntrypoint

    for name, encoding, aim in (("uncompressed", {}, 1.5), ("compressed", {"zlib": True, "complevel": 4, "shuffle": True}, 4)):
        path = folder / f"{name}.nc"
        whole = xarray.Dataset({"t": (("time", "y", "x"), data.reshape(64, -1, 1024))})
        whole.to_netcdf(path, engine="netcdf4", encoding={"t": encoding | {"chunksizes": (1, min(128, len(data) // 64), 1024)}})

        def mean(engine):
            with dask.config.set(scheduler="threads", num_workers=2):
                with xarray.open_dataset(path, engine=engine, chunks={"time": 4}) as dataset:
                    return dataset["t"].mean(("y", "x"), dtype="f8").values

        ways = {"netCDF4": lambda: mean("netcdf4"), "hyperslab": lambda: mean(HyperslabEntrypoint)}
        side_by_side(f"xarray with 2 threads of dask, {name}, mean", ways, rounds, {"netCDF4": aim})


def imports(rounds):
    def took(code):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - begin

    measured = {code: [] for code in ("pass", "import hyperslab", "import numpy", "import numpy, hyperslab; hyperslab.open")}
    for _ in range(max(5, rounds)):
        for code, times in measured.items():
            times.append(took(code))
    medians = {code: statistics.median(times) for code, times in measured.items()}
    print("start of Python, and what imports add")
    for code, median in medians.items():
        print(f"  {code:<45} {1e3 * median:6.1f} ms  (+{1e3 * (median - medians['pass']):.1f})", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mebibytes", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", nargs="*", default=["whole", "rows", "datasets", "imports"])
    options = parser.parse_args()
    print(f"{hyperslab.version().strip()}, h5py {h5py.__version__}, {os.cpu_count()} processors")
    folder = Path(tempfile.mkdtemp(prefix="hyperslab-reading-", dir=options.folder))
    try:
        # Smooth with some noise, as of a simulation: gzip halves it.
        shape = (options.mebibytes * 256, 1024)
        noise = np.random.default_rng(0).integers(0, 1 << 10, shape, dtype="i4")
        data = (np.arange(noise.size, dtype="i4").reshape(shape) // 7 + noise).astype("f4")
        if "whole" in options.only:
            whole_array(folder, data, options.rounds)
        if "rows" in options.only:
            rows(folder, data, options.rounds)
        if "datasets" in options.only:
            datasets(folder, data, options.rounds)
        if "imports" in options.only:
            imports(options.rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
