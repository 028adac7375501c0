"""Random programs: lists of operations that follow from a seed."""

import random

from . import model as models

NAMES = ["a", "b", "c", "g/a", "g/b", "h/a", "h/k/b", "d", "e"]


class Writer:
    """A program that is being written, with the model that says what is there."""

    def __init__(self, seed, length):
        self.random = random.Random(seed)
        self.model = models.Model()
        self.program = []
        self.made = 0
        self.libver = self.random.choice([None, "latest", "earliest"])
        self.add({"op": "open", "mode": "w", "libver": self.libver})
        choices = [(method, weight) for method, weight in (
            (self.create, 5), (self.assign, 3), (self.write, 9), (self.field, 2), (self.resize, 3), (self.append, 2),
            (self.attribute, 3), (self.no_attribute, 1), (self.group, 1), (self.alias, 1), (self.soft, 1), (self.move, 2),
            (self.copy, 1), (self.delete, 2), (self.strings, 1), (self.flush, 3), (self.flush_dataset, 1),
            (self.reopen, 1))]
        self.create()
        if seed % 8 == 7:
            self.large()
        while len(self.program) < length:
            method = self.random.choices([one for one, _ in choices], [weight for _, weight in choices])[0]
            method()
        if self.random.random() < 0.8:
            self.add({"op": "close"})

    def add(self, op):
        for _ in models.apply(self.model, op):
            pass
        self.program.append(op)

    def seed(self):
        self.made += 1
        return self.made

    def paths(self, *kinds, where=lambda item: True):
        flat = []

        def walk(path, item):
            if item.kind in kinds and path and where(item):
                flat.append(path.lstrip("/"))
            for name, child in item.links.items():
                walk(path + "/" + name, child)

        walk("", self.model.root)
        return flat

    def free(self):
        taken = set(self.paths("group", "dataset", "strings", "soft"))
        free = []
        while not free:
            free = [name for name in NAMES + [f"n{self.made}"] if name not in taken and not any(
                name.startswith(path + "/") for path in self.paths("dataset", "strings", "soft"))]
            # All of them are taken: the next number makes a name that is not.
            self.made += not free
        return self.random.choice(free)

    def create(self):
        pick = self.random.choice
        dtype = pick(["f8", "f8", "f4", "i4", "i2be", "u1", "s8", "pair"])
        rank = pick([0, 1, 1, 2])
        shape = [pick([3, 10, 64]) for _ in range(rank)]
        op = {"op": "create", "path": self.free(), "dtype": dtype, "shape": shape}
        layout = pick(["contiguous", "contiguous", "chunked", "chunked", "filtered", "filtered", "compact"])
        if rank and layout in ("chunked", "filtered"):
            op["chunks"] = [max(1, size // pick([1, 2, 3])) for size in shape]
            if pick([True, False]):
                op["maxshape"] = True
            if layout == "filtered":
                op["compression"] = pick(["gzip", "lzf", None])
                op["shuffle"] = pick([True, False])
                op["fletcher32"] = pick([True, False])
        elif layout == "compact":
            op["compact"] = True
        if dtype in ("f8", "i4") and pick([True, False, False]):
            op["fill"] = 5
        if pick([True, True, False]):
            op["seed"] = self.seed()
        self.add(op)

    def large(self):
        """More than small logs take."""
        op = {"op": "create", "path": self.free(), "dtype": "f8", "shape": [170000], "seed": self.seed()}
        if self.random.random() < 0.5:
            op.update(chunks=[60000], compression=self.random.choice(["lzf", None]))
        self.add(op)

    def assign(self):
        pick = self.random.choice
        shape = [pick([3, 10, 50]) for _ in range(pick([0, 1, 1, 2]))]
        dtype = pick(["f8", "i4", "u1", "pair"])
        self.add({"op": "assign", "path": self.free(), "dtype": dtype, "shape": shape, "seed": self.seed()})

    def slices(self, shape):
        if self.random.random() < 0.4:
            return None
        out = []
        for size in shape:
            start = self.random.randrange(size)
            out.append([start, self.random.randint(start + 1, size), self.random.choice([1, 1, 1, 2])])
        return out

    def write(self):
        datasets = self.paths("dataset", where=lambda item: 0 not in item.data.shape)
        if not datasets:
            return
        path = self.random.choice(datasets)
        data = self.model.find(path).data
        own = next(name for name, dtype in models.values.DTYPES.items() if dtype == data.dtype)
        dtype = self.random.choice([own, own, "f8"]) if data.dtype.kind in "fi" else own
        self.add({"op": "write", "path": path, "slices": self.slices(data.shape), "dtype": dtype, "seed": self.seed()})

    def field(self):
        datasets = self.paths("dataset", where=lambda item: item.data.dtype.names and item.data.size)
        if datasets:
            path = self.random.choice(datasets)
            slices = self.slices(self.model.find(path).data.shape)
            field = self.random.choice(["a", "b"])
            self.add({"op": "field", "path": path, "field": field, "slices": slices, "seed": self.seed()})

    def resize(self):
        datasets = self.paths("dataset", where=lambda item: getattr(item, "resizable", False))
        if datasets:
            path = self.random.choice(datasets)
            shape = self.model.find(path).data.shape
            new = [max(1, size + self.random.choice([-5, 1, 7, 20])) for size in shape]
            self.add({"op": "resize", "path": path, "shape": new})

    def append(self):
        datasets = self.paths("dataset", where=lambda item: getattr(item, "resizable", False))
        if datasets:
            path = self.random.choice(datasets)
            data = self.model.find(path).data
            old = data.shape[0]
            self.add({"op": "resize", "path": path, "shape": [old + 4, *data.shape[1:]]})
            own = next(name for name, dtype in models.values.DTYPES.items() if dtype == data.dtype)
            slices = [[old, old + 4, 1]] + [[0, size, 1] for size in data.shape[1:]]
            self.add({"op": "write", "path": path, "slices": slices, "dtype": own, "seed": self.seed()})

    def attribute(self):
        paths = self.paths("dataset", "group", "strings") + ["/"]
        value = self.random.choice([self.seed(), "text" * (self.seed() % 9), [1.5, self.seed()], list(range(300))])
        name = self.random.choice(["one", "two", "three"])
        self.add({"op": "attribute", "path": self.random.choice(paths), "name": name, "value": value})

    def no_attribute(self):
        paths = self.paths("dataset", "group", "strings", where=lambda item: item.attributes)
        if paths:
            path = self.random.choice(paths)
            name = self.random.choice(sorted(self.model.find(path).attributes))
            self.add({"op": "no_attribute", "path": path, "name": name})

    def group(self):
        self.add({"op": "group", "path": self.free()})

    def alias(self):
        paths = self.paths("dataset", "strings")
        if paths:
            self.add({"op": "alias", "path": self.random.choice(paths), "new": self.free()})

    def soft(self):
        paths = self.paths("dataset", "strings")
        if paths:
            self.add({"op": "soft", "path": self.random.choice(paths), "new": self.free()})

    def move(self):
        paths = self.paths("dataset", "strings", "group")
        if paths:
            path = self.random.choice(paths)
            new = self.free()
            if not (new + "/").startswith(path + "/"):
                self.add({"op": "move", "path": path, "new": new})

    def copy(self):
        paths = self.paths("dataset", "strings")
        if paths:
            self.add({"op": "copy", "path": self.random.choice(paths), "new": self.free()})

    def delete(self):
        paths = self.paths("dataset", "strings", "soft", "group")
        if len(paths) > 1:
            self.add({"op": "delete", "path": self.random.choice(paths)})

    def strings(self):
        paths = self.paths("strings")
        if paths and self.random.random() < 0.5:
            self.add({"op": "write_strings", "path": self.random.choice(paths), "seed": self.seed()})
        else:
            self.add({"op": "strings", "path": self.free(), "count": 4, "seed": self.seed()})

    def flush(self):
        self.add({"op": "flush"})

    def flush_dataset(self):
        paths = self.paths("dataset")
        if paths:
            self.add({"op": "flush_dataset", "path": self.random.choice(paths)})

    def reopen(self):
        self.add({"op": "close"})
        self.add({"op": "open", "mode": self.random.choice(["a", "r+"]), "libver": self.libver})


def generate(seed, length):
    """The program of this seed."""
    return Writer(seed, length).program
