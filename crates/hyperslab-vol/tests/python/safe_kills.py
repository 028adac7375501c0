"""Programs under mode safe, killed at the n-th system call that changes a file.

    safe_kills.py run PROGRAM LIBVER FOLDER    runs one; digests of the file go to FOLDER/states, one line for each flush
    safe_kills.py digest FILE                  a digest of everything in a file
    safe_kills.py campaign SHIM [STEP]         kills every program at every STEP-th call, under the connector and without

Each state is recorded before its flush begins: after a kill within a flush, the file is as of that one or the one before.
"""

import hashlib
import os
import signal
import subprocess
import sys
import tempfile

import h5py
import numpy as np


def digest(f):
    """All groups, datasets, values, types, attributes and links of an open file."""
    parts = []

    def attributes(thing):
        for key in sorted(thing.attrs):
            value = np.asarray(thing.attrs[key])
            parts.append(("attribute", key, str(value.dtype), value.shape, value.tolist()))

    def walk(group):
        attributes(group)
        for name in sorted(group):
            link = group.get(name, getlink=True)
            parts.append((type(link).__name__, group.name, name))
            thing = group.get(name)
            if isinstance(thing, h5py.Group):
                walk(thing)
            elif isinstance(thing, h5py.Dataset):
                parts.append((str(thing.dtype), thing.shape, str(thing.chunks), str(thing.compression)))
                parts.append(hashlib.sha256(np.ascontiguousarray(thing[()]).tobytes()
                             if thing.dtype.kind != "O" else repr(thing[()].tolist()).encode()).hexdigest())
                attributes(thing)

    walk(f)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


class Program:
    def __init__(self, folder, libver):
        self.folder, self.path = folder, os.path.join(folder, "data", "file.h5")
        self.libver, self.states = libver, os.path.join(folder, "states")

    def open(self, mode):
        return h5py.File(self.path, mode, libver=self.libver)

    def flush(self, f):
        self.expect(f)
        f.flush()
        self.note("flushed")

    def close(self, f):
        self.expect(f)
        f.close()
        self.note("flushed")

    def expect(self, f):
        self.note("expects " + digest(f))

    def note(self, line):
        with open(self.states, "a") as states:
            states.write(line + "\n")


def datasets(p):
    with_data = p.open("w")
    p.note("created")
    for i in range(12):
        with_data.create_dataset(f"d{i}", data=np.arange(400) + i)
        with_data[f"d{i}"].attrs["number"] = i
        if i % 4 == 3:
            p.flush(with_data)
    p.close(with_data)


def groups(p):
    f = p.open("w")
    p.note("created")
    for i in range(30):
        g = f.require_group(f"a{i % 3}/b{i % 5}/c{i}")
        g.attrs["text"] = "x" * (i * 20)
        if i % 7 == 6:
            p.flush(f)
    f["soft"] = h5py.SoftLink("/a0")
    f["hard"] = f["a1"]
    p.flush(f)
    f.move("a2", "moved")
    p.close(f)


def filters(p):
    f = p.open("w")
    p.note("created")
    d = f.create_dataset("z", shape=(0, 50), maxshape=(None, 50), chunks=(16, 50), compression="gzip", dtype="i4")
    rng = np.random.default_rng(1)
    for i in range(10):
        d.resize(d.shape[0] + 20, axis=0)
        d[-20:] = rng.integers(0, 1 << (3 * i), (20, 50))
        if i % 3 == 2:
            p.flush(f)
            d[: d.shape[0] // 2] = i
    d.resize(30, axis=0)
    p.close(f)


def overwrite(p):
    f = p.open("w")
    p.note("created")
    f["x"] = np.zeros(20_000)
    f.create_dataset("c", data=np.zeros((200, 50)), chunks=(20, 50))
    f["s"] = ["text", "more text"]
    p.close(f)
    f = p.open("r+")
    for i in range(1, 5):
        f["x"][i * 100: i * 3000] = i
        f["c"][i::3] = i
        f["s"][0] = "changed " * i
        p.flush(f)
    f["x"][:] = 9
    p.close(f)


def delete(p):
    f = p.open("w")
    p.note("created")
    for i in range(8):
        f[f"d{i}"] = np.full(3000, i)
    p.flush(f)
    for i in range(0, 8, 2):
        del f[f"d{i}"]
    f["new"] = np.arange(5000.0)
    p.flush(f)
    for name in list(f):
        del f[name]
    f["last"] = 1
    p.close(f)


PROGRAMS = {p.__name__: p for p in [datasets, groups, filters, overwrite, delete]}


def judge(path, states):
    """What an observer without the connector finds: "good", "older" or why not."""
    lines = open(states).read().split("\n")[:-1] if os.path.exists(states) else []
    allowed, now = set(), None
    for line in lines:
        if line.startswith("expects "):
            now = line.split()[1]
            allowed.add(now)
        elif line == "flushed":
            allowed = {now}
    if not allowed:
        # Nothing but an empty file was promised, and that only after it was created.
        if "created" not in lines:
            return "good"
        allowed = None
    child = subprocess.run([sys.executable, __file__, "digest", path], capture_output=True, text=True, env=plain())
    if child.returncode != 0:
        return "unreadable: " + child.stderr.strip().split("\n")[-1]
    found = child.stdout.strip()
    if allowed is None or lines.count("flushed") == 0:
        allowed = (allowed or set()) | {EMPTY}
    return "good" if found in allowed else "another state"


def plain():
    return {k: v for k, v in os.environ.items() if not k.startswith(("HDF5_", "HYPERSLAB_")) and k != "LD_PRELOAD"}


def empty():
    with tempfile.TemporaryDirectory() as folder:
        with h5py.File(os.path.join(folder, "e"), "w") as f:
            return digest(f)


def campaign(shim, step):
    """Counts, for the connector's mode and without it; fails if the connector lost anything."""
    worst = 0
    modes = os.environ.get("SAFE_KILLS_MODES", "safe codec+safe plain").split()
    for mode in modes:
        total = {"kills": 0, "needed": 0, "good": 0, "unreadable": 0, "another state": 0}
        for program in PROGRAMS:
            for libver in ["earliest", "latest"]:
                nth = 1
                while True:
                    with tempfile.TemporaryDirectory() as folder:
                        ended, found, needed = one(mode, program, libver, folder, shim, nth)
                    if ended == 0:
                        break
                    if ended != -signal.SIGKILL:
                        raise SystemExit(f"{mode} {program} {libver}: ended with {ended}")
                    total["kills"] += 1
                    total["needed"] += needed
                    total[found.split(":")[0]] += 1
                    if found != "good" and mode != "plain":
                        print(f"{mode} {program} {libver} killed at change {nth}: {found}", flush=True)
                        worst = 1
                    nth += step
        print(mode, total, flush=True)
    return worst


def one(mode, program, libver, folder, shim, nth):
    """Runs a program to its nth change; how it ended, what was found after recovery, and whether recovery was needed."""
    data = os.path.join(folder, "data")
    os.mkdir(data)
    env = plain()
    env.update(LD_PRELOAD=shim, HYPERSLAB_FAULT=f"path={data},call=change,nth={nth},fault=KILL")
    if mode != "plain":
        env.update(HDF5_PLUGIN_PATH=os.environ["HDF5_PLUGIN_PATH"], HDF5_VOL_CONNECTOR=f"hyperslab mode={mode}")
    run = subprocess.run([sys.executable, __file__, "run", program, libver, folder], env=env, capture_output=True)
    path, states = os.path.join(data, "file.h5"), os.path.join(folder, "states")
    if run.returncode == 0:
        return 0, judge(path, states), False
    before = judge(path, states)
    if mode == "plain":
        return run.returncode, before, before != "good"
    env = {k: v for k, v in env.items() if k not in ("LD_PRELOAD", "HYPERSLAB_FAULT")}
    env["HDF5_VOL_CONNECTOR"] = "hyperslab mode=codec"
    # Opening it under the connector rolls it back, as `hyperslab recover` does.
    subprocess.run([sys.executable, "-c", "import h5py, sys; h5py.File(sys.argv[1])", path], env=env, capture_output=True)
    return run.returncode, judge(path, states), before != "good"


if __name__ == "__main__":
    if sys.argv[1] == "run":
        PROGRAMS[sys.argv[2]](Program(sys.argv[4], sys.argv[3]))
    elif sys.argv[1] == "digest":
        with h5py.File(sys.argv[2], "r") as f:
            print(digest(f))
    else:
        EMPTY = empty()
        sys.exit(campaign(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 1))
