"""Files that are not what they seem, through `hyperslab.open`: an error, never wrong memory, and nothing left behind."""

import gc
import os
import resource
import subprocess
import sys
import textwrap

import numpy as np
import pytest

h5py = pytest.importorskip("h5py")

import hyperslab


def make(folder):
    """Small files of several formats: path, and what its array holds."""
    data = np.arange(600, dtype="i4").reshape(20, 30)
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("x", data=data, chunks=(5, 7), compression="gzip", shuffle=True)
        file["plain"] = data
        file.attrs["title"] = "words"
    names = ["a.h5"]
    try:
        import netCDF4
    except ImportError:
        return [folder / name for name in names]
    for name, kind in (("classic.nc", "NETCDF3_CLASSIC"), ("four.nc", "NETCDF4")):
        with netCDF4.Dataset(folder / name, "w", format=kind) as file:
            file.createDimension("y", 20), file.createDimension("x", 30)
            file.createVariable("x", "i4", ("y", "x"))[:] = data
        names.append(name)
    return [folder / name for name in names]


# In a process of its own, so that a crash is seen as one: reads all that a file offers, and tells how it went.
READ = """
import sys, hyperslab
for path in sys.argv[1:]:
    try:
        with hyperslab.open(path) as file:
            file._repr_html_()
            for name in sorted(file._arrays):
                try:
                    array = file[name]
                    if array.nbytes < 1 << 24:
                        array[...]
                    array.attrs
                except (OSError, ValueError, NotImplementedError, BlockingIOError, MemoryError, IndexError, KeyError, TypeError) as error:
                    assert str(error), path
    except (OSError, ValueError, NotImplementedError, BlockingIOError) as error:
        assert str(error), path
print("all told")
"""


def read_all(paths):
    def limited():
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

    return subprocess.run([sys.executable, "-c", READ, *map(str, paths)], capture_output=True, text=True, timeout=300, preexec_fn=limited)


def mutated(original, random):
    """Bytes with some of them changed, most of those in the beginning, where formats say what is where."""
    data = bytearray(original)
    for _ in range(int(random.integers(1, 6))):
        reach = len(data) if random.random() < 0.5 else min(len(data), 2048)
        at = int(random.integers(0, reach))
        kind = random.integers(0, 4)
        if kind == 0:
            data[at] ^= 1 << int(random.integers(0, 8))
        elif kind == 1:
            data[at] = int(random.integers(0, 256))
        elif kind == 2:
            data[at : at + 8] = b"\xff" * len(data[at : at + 8])
        else:
            data[at : at + 4] = b"\0" * len(data[at : at + 4])
    return bytes(data[: int(random.integers(1, len(data) + 1))]) if random.random() < 0.1 else bytes(data)


@pytest.mark.parametrize("count", [40, pytest.param(4000, marks=pytest.mark.long)])
def test_damaged_files_are_told(tmp_path, count):
    originals = make(tmp_path)
    random = np.random.default_rng(33)
    for first in range(0, count, 200):
        paths = []
        for number in range(first, min(count, first + 200)):
            original = originals[number % len(originals)]
            path = tmp_path / f"bad-{number}{original.suffix}"
            path.write_bytes(mutated(original.read_bytes(), random))
            paths.append(path)
        done = read_all(paths)
        assert done.returncode == 0 and "all told" in done.stdout, f"files {first} and later: {done.returncode}\n{done.stderr[-2000:]}"
        for path in paths:
            path.unlink()


@pytest.mark.parametrize(
    "content",
    [b"", b"\x89HDF\r\n\x1a\n", b"CDF\x05" + b"\xff" * 64, b"CDF\x01" + b"\x7f" * 4096, b"{}", b"\0" * 4096],
)
def test_stumps_are_told(tmp_path, content):
    path = tmp_path / "stump.h5"
    path.write_bytes(content)
    with pytest.raises((OSError, ValueError, NotImplementedError)):
        hyperslab.open(path)


def test_names_that_are_hostile_stay_text(tmp_path):
    name = "<script>alert(1)</script>"
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file[name] = np.arange(3)
        file[name].attrs["<img src=x onerror=alert(1)>"] = "</td><script>"
        file.attrs["t"] = "<b>"
    with hyperslab.open(tmp_path / "a.h5") as file:
        pages = [file._repr_html_(), file["<script>alert(1)<"]._repr_html_(), file[name]._repr_html_()]
    for page in pages:
        assert "<script" not in page and "<img" not in page and "&lt;script&gt;" in page


def test_odd_paths_are_refused(tmp_path):
    for path in ["", "\0", str(tmp_path), "x" * 5000, "/dev/null", "/dev/zero", "-", "/proc/self/mem"]:
        with pytest.raises((OSError, ValueError, NotImplementedError)):
            hyperslab.open(path)
    with pytest.raises((ValueError, OSError, NotImplementedError)):
        hyperslab.open(tmp_path / "a.h5", "no-such-stack(((")


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.long)])
def test_memory_and_descriptors_stay_flat(tmp_path, count):
    paths = make(tmp_path)

    def used():
        gc.collect()
        pages = int(open("/proc/self/statm").read().split()[1])
        return pages * resource.getpagesize(), len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    def turn(number):
        with hyperslab.open(paths[number % len(paths)]) as file:
            array = file["x"]
            assert array[3, 4] == 94
            array.take([7, 2])
        with pytest.raises(OSError):
            hyperslab.open(tmp_path / "nowhere.h5")

    for number in range(100):
        turn(number)
    before = used()
    for number in range(count):
        turn(number)
    after = used()
    assert after[0] - before[0] < 16 << 20, f"{after[0] - before[0]} bytes more after {count} files"
    assert after[1] <= before[1] + 1 and after[2] <= before[2] + 1, (before, after)


def test_workers_by_spawn_and_by_fork(tmp_path):
    """A loader's workers: the reader is pickled to spawned ones and inherited by forked ones, while the parent reads, too."""
    make(tmp_path)
    script = tmp_path / "workers.py"
    script.write_text(
        textwrap.dedent(
            """
            import multiprocessing, sys, threading
            import numpy as np
            import hyperslab

            def total(reader):
                return int(sum(batch.sum() for batch in reader))

            if __name__ == "__main__":
                path = sys.argv[1]
                whole = hyperslab.SampleReader(path, "x", batch=3)
                expected = total(whole)
                assert expected == sum(range(600)), expected
                for method in ("fork", "spawn"):
                    readers = [hyperslab.SampleReader(path, "x", batch=3, part=(k, 2)) for k in range(2)]
                    # Opened here before, so that a forked worker inherits an open file.
                    [next(iter(reader)) for reader in readers]
                    with multiprocessing.get_context(method).Pool(2) as pool:
                        parts = pool.map_async(total, readers)
                        threads = [threading.Thread(target=total, args=(whole,)) for _ in range(2)]
                        [thread.start() for thread in threads]
                        assert sum(parts.get(120)) == expected, method
                        [thread.join() for thread in threads]
                print("both")
            """
        )
    )
    done = subprocess.run([sys.executable, script, tmp_path / "a.h5"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "both" in done.stdout, done.stderr
