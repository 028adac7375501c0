"""Opens and closes files very often: python cycles.py FOLDER COUNT. Prints what grew as JSON."""

import gc
import json
import os
import sys

import h5py
import numpy as np

folder, count = sys.argv[1], int(sys.argv[2])
DATA = np.arange(3000, dtype="<i4")


def state():
    gc.collect()
    with open("/proc/self/status") as status:
        words = dict(line.split(":", 1) for line in status)
    return {"kib": int(words["VmRSS"].split()[0]), "threads": int(words["Threads"]), "descriptors": len(os.listdir("/proc/self/fd"))}


def cycle(at):
    path = f"{folder}/cycle{at % 7}.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("plain", data=DATA)
        file.create_dataset("packed", data=DATA, chunks=(500,), compression="gzip", compression_opts=1)
        file["plain"][100:200] = at
    with h5py.File(path, "r+" if at % 2 else "r") as file:
        assert file["plain"][150] == at and file["packed"][2999] == 2999
        if at % 2:
            file["packed"][10:20] = at
            assert file["packed"][15] == at
    if at % 5 == 0:
        try:
            h5py.File(f"{folder}/missing.h5", "r")
        except OSError:
            pass


warm = max(count // 4, 100)
for at in range(warm):
    cycle(at)
before = state()
for at in range(warm, count):
    cycle(at)
after = state()
print(json.dumps({"before": before, "after": after}))
