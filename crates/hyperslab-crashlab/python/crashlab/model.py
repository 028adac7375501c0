"""What a program's file must hold after each of its operations, without HDF5."""

import posixpath

import numpy as np

from . import values


class Item:
    """A group or dataset. `data` is never changed in place, so that snapshots may share it."""

    def __init__(self, identity, kind, data=None):
        self.identity, self.kind, self.data, self.attributes, self.links = identity, kind, data, {}, {}
        self.fill, self.resizable = None, False


class Model:
    """The tree of a file."""

    def __init__(self):
        self.count = 0
        self.root = self.item("group")

    def item(self, kind, data=None):
        self.count += 1
        return Item(self.count, kind, data)

    def parent(self, path):
        group = self.root
        for name in posixpath.dirname(path).strip("/").split("/"):
            if name:
                group = group.links.setdefault(name, self.item("group")) if name not in group.links else group.links[name]
        return group

    def find(self, path):
        return self.parent(path).links[posixpath.basename(path)] if path.strip("/") else self.root

    def link(self, path, item):
        self.parent(path).links[posixpath.basename(path)] = item

    def unlink(self, path):
        del self.parent(path).links[posixpath.basename(path)]

    def snapshot(self):
        """Path to (identity, kind, attributes, data)."""
        flat = {}

        def walk(path, item):
            flat[path or "/"] = (item.identity, item.kind, dict(item.attributes), item.data)
            for name, child in item.links.items():
                walk(path + "/" + name, child)

        walk("", self.root)
        return flat


def fill(op):
    """A dataset that was made and not written."""
    array = np.zeros(op["shape"], values.DTYPES[op["dtype"]])
    if op.get("fill") is not None:
        array[...] = op["fill"]
    return array


def grown(array, shape, fillvalue):
    out = np.zeros(shape, array.dtype)
    if fillvalue is not None:
        out[...] = fillvalue
    common = tuple(slice(0, min(a, b)) for a, b in zip(array.shape, shape))
    out[common] = array[common]
    return out


def apply(model, op):
    """Makes the operation. Yields the identity of the dataset whose elements it wrote, or None, once for each step that a
    kill may leave alone."""
    kind = op["op"]
    if kind == "create":
        item = model.item("dataset", fill(op))
        item.fill, item.resizable = op.get("fill"), bool(op.get("maxshape"))
        model.link(op["path"], item)
        yield None
        if op.get("seed") is not None:
            item.data = values.contents(op["dtype"], op["shape"], op["seed"])
            yield item.identity
    elif kind == "assign":
        item = model.item("dataset", values.contents(op["dtype"], op["shape"], op["seed"]))
        model.link(op["path"], item)
        yield item.identity
    elif kind == "strings":
        item = model.item("strings", ("",) * op["count"])
        model.link(op["path"], item)
        yield None
        item.data = tuple(values.strings(op["count"], op["seed"]))
        yield item.identity
    elif kind == "write_strings":
        item = model.find(op["path"])
        item.data = tuple(values.strings(len(item.data), op["seed"]))
        yield item.identity
    elif kind == "write":
        item = model.find(op["path"])
        data = item.data.copy()
        where = values.selection(op["slices"])
        data[where] = values.contents(op["dtype"], data[where].shape, op["seed"]).astype(data.dtype)
        item.data = data
        yield item.identity
    elif kind == "field":
        item = model.find(op["path"])
        data = item.data.copy()
        where = values.selection(op["slices"])
        data[op["field"]][where] = values.contents("i4", data[where].shape, op["seed"])
        item.data = data
        yield item.identity
    elif kind == "resize":
        item = model.find(op["path"])
        item.data = grown(item.data, op["shape"], item.fill)
        yield None
    elif kind == "attribute":
        model.find(op["path"]).attributes[op["name"]] = op["value"]
        yield None
    elif kind == "no_attribute":
        del model.find(op["path"]).attributes[op["name"]]
        yield None
    elif kind == "group":
        model.link(op["path"], model.item("group"))
        yield None
    elif kind == "alias":
        model.link(op["new"], model.find(op["path"]))
        yield None
    elif kind == "soft":
        model.link(op["new"], model.item("soft", op["path"]))
        yield None
    elif kind == "move":
        item = model.find(op["path"])
        model.unlink(op["path"])
        model.link(op["new"], item)
        yield None
    elif kind == "copy":
        old = model.find(op["path"])
        item = model.item(old.kind, old.data)
        item.attributes, item.fill = dict(old.attributes), old.fill
        item.resizable = old.resizable
        model.link(op["new"], item)
        yield item.identity
    elif kind == "delete":
        model.unlink(op["path"])
        yield None
    else:
        yield None


#: Operations after which the file is as it is now, whatever comes.
COMMITS = ("open", "flush", "close")


def states(program):
    """For each operation, the list of its steps: pairs of snapshot and the identity written."""
    model = Model()
    return [[(model.snapshot(), written) for written in apply(model, op)] for op in program]
