"""Writes to a file whose n-th write call fails: python failing_writes.py FOLDER; the file is FOLDER/data.h5, and FOLDER/met is
there once a call has failed.

No write that failed may be taken for one that went well: a call of h5py raises, or what is read back is right.
"""

import os
import sys

import h5py
import numpy as np

folder = sys.argv[1]
path = f"{folder}/data.h5"
ROWS, COLUMNS = 60, 3000
TABLE = [("a", "<i4"), ("b", "<i4")]
# Objects are closed by the file, where an error can be told.
seen, kept = [], []


def attempt(what, work):
    try:
        work()
        return True
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        seen.append((what, error))
        return False


def row(at):
    return np.random.default_rng(at).integers(0, 1 << 30, COLUMNS, dtype="<i4")


def main():
    file, datasets = None, {}
    kept.append(datasets)
    written, names = {}, {"plain": {}, "chunked": {"chunks": (4, 1000)}, "packed": {"chunks": (4, 1000), "compression": "gzip", "compression_opts": 1}}

    def begin():
        nonlocal file
        file = h5py.File(path, "w")
        for name, words in names.items():
            datasets[name] = file.create_dataset(name, (ROWS, COLUMNS), "<i4", **words)
        datasets["table"] = file.create_dataset("table", (ROWS, COLUMNS), TABLE)

    if not attempt("create", begin):
        return None
    for at in range(ROWS):
        for name in names:
            if attempt(f"write {name} {at}", lambda: datasets[name].__setitem__(at, row(at))):
                written[name, at] = True
        # Fields of one row after the other, of every third row with other elements between them.
        for late, field in [(at, "a"), (at, "b")] if at % 3 else [(at, "a"), (max(0, at - 1), "b"), (at, "b")]:
            attempt(f"write {field} {late}", lambda: datasets["table"].__setitem__((late, field), row(late)))
        if at % 20 == 19:
            attempt("flush", file.flush)
    attempt("flush", file.flush)
    attempt("close", file.close)
    return written


written = main()
met = os.path.exists(f"{folder}/met")
os.environ.pop("HYPERSLAB_FAULT", None)
if met and not seen:
    # Nobody was told, so nothing may be missing.
    import subprocess

    clean = {key: value for key, value in os.environ.items() if not key.startswith(("HDF5_", "HYPERSLAB_", "LD_PRELOAD"))}
    code = f"""
import h5py, numpy as np
with h5py.File({path!r}) as file:
    for name in file:
        for at in range({ROWS}):
            row = np.random.default_rng(at).integers(0, 1 << 30, {COLUMNS}, dtype="<i4")
            found = file[name][at]
            assert all((part == row).all() for part in ([found["a"], found["b"]] if name == "table" else [found])), (name, at)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=clean)
    assert done.returncode == 0, "a write failed and nobody was told: " + done.stderr
print(met, [(what, str(error)[:150]) for what, error in seen[:3]], flush=True)
# libhdf5 itself does not survive its own clean-up after some of these errors.
os._exit(0)
