"""A disk that fills up: python full_disk.py FOLDER, which is on a file system of few MiB.

The error must be one that a program can understand, and what a flush acknowledged before must be there in the end.
"""

import errno
import os
import subprocess
import sys

import h5py
import numpy as np

folder = sys.argv[1]
ROW = np.arange(100_000, dtype="<i4") % 1000


def noise(at):
    return np.random.default_rng(at).integers(0, 1 << 30, 100_000, dtype="<i4")


def plain(code):
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("HDF5_", "HYPERSLAB_"))}
    done = subprocess.run([sys.executable, "-c", "import h5py, numpy as np\n" + code], cwd=folder, capture_output=True, text=True, env=clean)
    assert done.returncode == 0, done.stderr


def by_elements(dataset, at):
    dataset[at] = noise(at)


def by_fields(dataset, at):
    """Fields of the same elements, the last of them after a flush."""
    for field in "ab":
        dataset[at, field] = noise(at)
    dataset.flush()
    dataset[at, "c"] = noise(at)


def fill(name, write=by_elements, dtype="<i4", **words):
    """Writes until the disk is full."""
    path = f"{folder}/{name}.h5"
    with open(f"{folder}/ballast", "wb") as ballast:
        ballast.write(bytes(3 << 20))
    file = h5py.File(path, "w")
    file.create_dataset("safe", data=ROW)
    file.create_dataset("safe-packed", data=ROW, chunks=(5000,), compression="gzip")
    file.flush()
    seen = []
    try:
        growing = file.create_dataset("growing", (100, ROW.size), dtype, **words)
        for at in range(100):
            write(growing, at)
            if at % 5 == 4:
                file.flush()
    except (OSError, RuntimeError) as error:
        seen.append(error)
    assert seen, "40 MB went into a disk of a few"
    assert getattr(seen[0], "errno", None) == errno.ENOSPC or "errno = 28" in str(seen[0]), f"another error: {seen[0]!r}"
    # Now there is room for what the library has still to write.
    os.unlink(f"{folder}/ballast")
    # A write that was acknowledged and then failed is told by the flush or close that needs it; h5py stops there, so the file
    # is closed by another attempt.
    for _ in range(4):
        try:
            file.close()
            break
        except (OSError, RuntimeError) as error:
            seen.append(error)
    assert not file, f"the file cannot be closed: {seen[-1]}"
    plain(f"f = h5py.File({path!r})\nassert all((f[n][...] == np.arange(100_000) % 1000).all() for n in ('safe', 'safe-packed'))")
    os.unlink(path)
    print(name, [str(error)[:200] for error in seen])


fill("contiguous")
fill("chunked", chunks=(1, 10_000))
fill("fields", by_fields, [("a", "<i4"), ("b", "<i4"), ("c", "<i4")])
fill("packed", chunks=(1, 10_000), compression="gzip", compression_opts=1)
# The process is as good as new.
with h5py.File(f"{folder}/after.h5", "w") as file:
    file["a"] = ROW
plain("assert (h5py.File('after.h5')['a'][...] == np.arange(100_000) % 1000).all()")
print("end")
