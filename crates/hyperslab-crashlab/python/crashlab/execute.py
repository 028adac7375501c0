"""Runs a program with h5py: `python -m crashlab.execute FILE ACKS SEED LENGTH h5py|netcdf`.

Before and after each operation a line goes to ACKS by one system call, so that a trace of the run says what had returned
when: `B 7` and `E 7`, or `X 7 why` when it failed.
"""

import os
import signal
import sys

import h5py
import numpy as np

from . import grammar, netcdf, values


class Runner:
    """The file of a program."""

    def __init__(self, path):
        self.path, self.file = path, None

    def create(self, op):
        dcpl = None
        if op.get("compact"):
            dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            dcpl.set_layout(h5py.h5d.COMPACT)
        options = {name: op[name] for name in ("compression", "shuffle", "fletcher32") if op.get(name)}
        if op.get("chunks"):
            options["chunks"] = tuple(op["chunks"])
        if op.get("maxshape"):
            options["maxshape"] = (None,) * len(op["shape"])
        if op.get("fill") is not None:
            options["fillvalue"] = op["fill"]
        dtype, shape = values.DTYPES[op["dtype"]], tuple(op["shape"])
        data = None if op.get("seed") is None else values.contents(op["dtype"], shape, op["seed"])
        if dcpl is None:
            self.file.create_dataset(op["path"], shape, dtype, data=data, **options)
            return
        if op.get("fill") is not None:
            dcpl.set_fill_value(np.array(op["fill"], dtype))
        lcpl = h5py.h5p.create(h5py.h5p.LINK_CREATE)
        lcpl.set_create_intermediate_group(True)
        space, kind = h5py.h5s.create_simple(shape) if shape else h5py.h5s.create(h5py.h5s.SCALAR), h5py.h5t.py_create(dtype)
        made = h5py.Dataset(h5py.h5d.create(self.file.id, op["path"].encode(), kind, space, dcpl, lcpl))
        if data is not None:
            made[...] = data

    def run(self, op):
        """Makes one operation."""
        file, kind = self.file, op["op"]
        if kind == "open":
            self.file = h5py.File(self.path, op["mode"], libver=op["libver"])
        elif kind == "close":
            file.close()
        elif kind == "flush":
            file.flush()
        elif kind == "flush_dataset":
            file[op["path"]].flush()
        elif kind == "create":
            self.create(op)
        elif kind == "assign":
            file[op["path"]] = values.contents(op["dtype"], op["shape"], op["seed"])
        elif kind == "strings":
            texts = values.strings(op["count"], op["seed"])
            file.create_dataset(op["path"], data=np.array(texts, object), dtype=h5py.string_dtype())
        elif kind == "write_strings":
            dataset = file[op["path"]]
            dataset[...] = np.array(values.strings(len(dataset), op["seed"]), object)
        elif kind == "write":
            dataset, where = file[op["path"]], values.selection(op["slices"])
            shape = np.empty(dataset.shape, "u1")[where].shape
            dataset[where] = values.contents(op["dtype"], shape, op["seed"])
        elif kind == "field":
            dataset, where = file[op["path"]], values.selection(op["slices"])
            shape = np.empty(dataset.shape, "u1")[where].shape
            kind = dataset.dtype.fields[op["field"]][0]
            place = where if isinstance(where, tuple) else (where,)
            dataset[(op["field"], *place)] = values.contents("i4", shape, op["seed"]).astype(kind)
        elif kind == "resize":
            file[op["path"]].resize(tuple(op["shape"]))
        elif kind == "attribute":
            file[op["path"]].attrs[op["name"]] = op["value"]
        elif kind == "no_attribute":
            del file[op["path"]].attrs[op["name"]]
        elif kind == "group":
            file.create_group(op["path"])
        elif kind == "alias":
            file[op["new"]] = file[op["path"]]
        elif kind == "soft":
            file[op["new"]] = h5py.SoftLink("/" + op["path"])
        elif kind == "move":
            file.move(op["path"], op["new"])
        elif kind == "copy":
            file.copy(op["path"], op["new"])
        elif kind == "delete":
            del file[op["path"]]
        else:
            raise ValueError(kind)


def main():
    path, acks, seed, length = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    out = os.open(acks, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    module, runner = (netcdf, netcdf.Runner(path)) if sys.argv[5:] == ["netcdf"] else (grammar, Runner(path))
    for number, op in enumerate(module.generate(seed, length)):
        os.write(out, b"B %d\n" % number)
        try:
            runner.run(op)
        except Exception as error:  # what fails is not promised; the program goes no further, and closes nothing
            os.write(out, b"X %d %s: %s\n" % (number, op["op"].encode(), repr(str(error))[:300].encode()))
            os.kill(os.getpid(), signal.SIGKILL)
        os.write(out, b"E %d\n" % number)
    if number and op["op"] != "close":
        # The program ends without having closed its file, as one that is killed.
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
