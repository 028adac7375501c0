"""Containers of three formats, read with h5py, zarr-python and numpy."""

import json
import pathlib

import numpy as np


class Hdf5:
    def __init__(self, path):
        import h5py

        self.h5py, self.file = h5py, h5py.File(path, "r")

    def names(self):
        out = []
        self.file.visititems(lambda name, item: out.append(name) if isinstance(item, self.h5py.Dataset) else None)
        return sorted(out)

    def read(self, name):
        return self.file[name][...]

    def seed(self):
        value = self.file.attrs["hyperslab_seed"]
        assert np.asarray(value).dtype == np.dtype("<i8"), value
        return int(np.asarray(value).reshape(-1)[0])

    def part(self):
        return self.file.attrs.get("hyperslab_part")

    def attributes(self, name):
        return dict(self.file[name].attrs)

    def layout(self, name):
        dataset = self.file[name]
        plist = dataset.id.get_create_plist()
        filters = [plist.get_filter(n) for n in range(plist.get_nfilters())]
        words = {1: lambda values: f"deflate={values[0]}", 2: lambda _: "shuffle", 3: lambda _: "fletcher32"}
        return {
            "chunks": None if dataset.chunks is None else list(dataset.chunks),
            "maxshape": list(dataset.maxshape),
            "filters": [words[code](values) for code, _, values, _ in filters],
        }

    def offsets(self, name):
        dataset = self.file[name]
        if dataset.chunks is None:
            return [dataset.id.get_offset()]
        return [dataset.id.get_chunk_info(n).byte_offset for n in range(dataset.id.get_num_chunks())]

    def close(self):
        self.file.close()


class Zarr:
    def __init__(self, path):
        import zarr

        self.path, self.zarr = pathlib.Path(path), zarr
        self.group = zarr.open_group(path, mode="r")

    def names(self):
        out = []
        for file in self.path.rglob("zarr.json"):
            if json.loads(file.read_text())["node_type"] == "array":
                out.append(str(file.parent.relative_to(self.path)))
        return sorted(out)

    def read(self, name):
        return self.group[name][...]

    def seed(self):
        return self.group.attrs["hyperslab_seed"]

    def layout(self, name):
        return {"chunks": list(self.group[name].chunks)}

    def close(self):
        pass


class Posix:
    """Raw files with a description beside each, as docs/posix-format.md says."""

    def __init__(self, path):
        self.path = pathlib.Path(path)

    def names(self):
        files = self.path.rglob("*.json")
        return sorted(str(f.relative_to(self.path).with_suffix("")) for f in files if f.name != "hyperslab.json")

    def read(self, name):
        about = json.loads((self.path / f"{name}.json").read_text())
        dtype = about["dtype"]
        if not isinstance(dtype, str):
            fields = dtype["fields"]
            columns = {"names": "name", "formats": "type", "offsets": "offset"}
            dtype = {key: [field[column] for field in fields] for key, column in columns.items()}
            dtype["itemsize"] = about["dtype"]["size"]
        return np.fromfile(self.path / f"{name}.raw", np.dtype(dtype)).reshape(about["shape"])

    def seed(self):
        return json.loads((self.path / "hyperslab.json").read_text())["attributes"]["hyperslab_seed"]

    def layout(self, name):
        return {}

    def close(self):
        pass


def open(kind, path):
    return {"hdf5": Hdf5, "zarr": Zarr, "posix": Posix}[kind](path)
