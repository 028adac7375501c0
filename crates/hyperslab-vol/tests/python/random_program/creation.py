"""Operations that make datasets."""

import h5py
import hdf5plugin
import numpy as np

from . import selections, values
from .transfers import group_of, pick, store
from .values import KINDS
from .world import Dataset, References

PLUGINS = {
    "zstd": lambda: hdf5plugin.Zstd(clevel=2),
    "lz4": lambda: hdf5plugin.LZ4(),
    "blosc": lambda: hdf5plugin.Blosc(cname="lz4", clevel=3, shuffle=hdf5plugin.Blosc.SHUFFLE),
    "blosc-zstd": lambda: hdf5plugin.Blosc(cname="zstd", clevel=2, shuffle=hdf5plugin.Blosc.BITSHUFFLE),
    "blosc2": lambda: hdf5plugin.Blosc2(cname="zstd", clevel=2, filters=hdf5plugin.Blosc2.SHUFFLE),
    "blosc2-lz4": lambda: hdf5plugin.Blosc2(cname="lz4", clevel=3, filters=hdf5plugin.Blosc2.NOFILTER),
    "bitshuffle": lambda: hdf5plugin.Bitshuffle(cname="lz4"),
    "bitshuffle-zstd": lambda: hdf5plugin.Bitshuffle(cname="zstd"),
}


def random_shape(rng, most=3):
    rank = rng.choice([0, 1, 1, 1, 2, 2, 2, 3, 3, 4][: most * 3])
    style = rng.random()
    if style < 0.05 and rank:
        return [0] + [rng.randint(1, 5) for _ in range(rank - 1)]
    if style < 0.12:
        return {0: [], 1: [rng.randint(60_000, 300_000)], 2: [rng.randint(200, 500), rng.randint(200, 500)]}.get(
            rank, [rng.randint(20, 60) for _ in range(rank)][:3]
        )
    return [rng.randint(1, {1: 3000, 2: 70, 3: 17}.get(rank, 8)) for _ in range(rank)]


def random_filters(rng, kind, chunk):
    """Filters for chunks of a kind; `h5py` are words of its own, `plugin` is a filter of hdf5plugin."""
    dtype, style = kind.dtype, rng.random()
    simple = kind.group in ("number", "plain", "compound")
    if style < 0.3:
        return {}
    if style < 0.6:
        words = {"compression": "gzip", "compression_opts": rng.choice([1, 4, 6, 9]), "shuffle": rng.random() < 0.5}
        return {"h5py": words | ({"fletcher32": True} if simple and rng.random() < 0.3 else {})}
    if style < 0.66 and simple:
        return {"h5py": rng.choice([{"shuffle": True}, {"fletcher32": True}, {"shuffle": True, "fletcher32": True}])}
    if not simple:
        return {"h5py": {"compression": "gzip", "shuffle": True}}
    if style < 0.72:
        return {"h5py": {"compression": "lzf", "shuffle": rng.random() < 0.5}}
    if style < 0.76 and kind.group == "number" and dtype.kind != "c" and int(np.prod(chunk)) >= 64:
        return {"h5py": {"compression": "szip", "compression_opts": (rng.choice(["nn", "ec"]), 8)}}
    if style < 0.8 and kind.group == "number" and dtype.kind in "iu":
        return {"h5py": {"scaleoffset": 0}}
    return {"plugin": rng.choice(sorted(PLUGINS)), "h5py": {"shuffle": True} if rng.random() < 0.1 else {}}


def make_table(world, rng):
    """A dataset whose elements have fields."""
    return make_dataset(world, rng, ["flat", "nested"])


def make_dataset(world, rng, kinds=tuple(sorted(KINDS))):
    kind = KINDS[rng.choice(kinds)]
    shape = random_shape(rng, 3 if kind.group in ("number", "plain", "compound") else 2)
    if kind.group in ("variable", "record"):
        shape = [min(n, 40) for n in shape] or [2]
    if kind.name == "nested":
        # Its text is made one by one.
        shape = [min(n, 3000 if len(shape) == 1 else 70) for n in shape]
    layout = rng.choice(["contiguous", "contiguous", "compact", "chunked", "chunked", "chunked", "chunked", "external"])
    bytes_of = int(np.prod(shape, dtype=int)) * kind.dtype.itemsize
    if (layout == "compact" and bytes_of > 30_000) or (layout == "chunked" and not shape):
        layout = "contiguous"
    if layout == "external" and (kind.group not in ("number", "plain") or not bytes_of):
        layout = "contiguous"
    if layout == "contiguous" and shape and not bytes_of:
        layout = "chunked"
    op = dict(kind=kind.name, shape=shape, layout=layout, number=world.next, via=rng.randrange(60))
    if layout == "chunked":
        grows = [rng.random() < 0.4 for _ in shape]
        op["chunks"] = [rng.randint(1, max(1, n + (2 if more else 0))) for n, more in zip(shape, grows)]
        while int(np.prod(op["chunks"])) * 8000 < int(np.prod(shape)) * 8:
            op["chunks"] = [min(max(1, n), 2 * c + 1) for n, c in zip(shape, op["chunks"])]
        if any(grows) or not bytes_of:
            bounded = rng.random() < 0.3
            op["maxshape"] = [(2 * n + 3 if bounded else None) if more or not n else n for n, more in zip(shape, grows)]
            op["chunks"] = [c if m is None else max(1, min(c, m)) for c, m in zip(op["chunks"], op["maxshape"])]
        op["filters"] = random_filters(rng, kind, op["chunks"])
    if kind.fill_of and rng.random() < 0.4 and "scaleoffset" not in op.get("filters", {}).get("h5py", {}):
        op["fill"] = rng.randrange(1 << 30)
    op["alloc"] = rng.choice(["", "", "early", "late", "incremental"])
    if layout != "chunked" and op["alloc"] == "incremental" or layout in ("compact", "external"):
        op["alloc"] = ""
    if op["alloc"] == "late" and "maxshape" in op:
        # libhdf5 then leaves what is past the edge of the dataset without the fill value.
        op["alloc"] = ""
    op["fill_time"] = rng.choice([None, None, None, "alloc", "ifset", "never"]) if kind.group == "number" and "maxshape" not in op else None
    if op["fill_time"] == "ifset" and "fill" not in op:
        op["fill_time"] = None
    op["data"] = rng.randrange(1 << 30) if op["fill_time"] == "never" or layout == "external" or rng.random() < 0.5 else None
    if layout == "contiguous" and op["data"] is None and "fill" not in op:
        # Otherwise nobody says what is read before all is written.
        op["fill_time"] = "alloc"
    op["track_order"] = rng.choice([None, True])
    op["file"] = rng.choice(sorted(world.links))
    op["path"] = f"{rng.choice(world.groups(op['file']))}/dataset{world.next}"
    return op


def do_dataset(world, op):
    parent = op["path"].rsplit("/", 1)[0]
    if parent not in world.groups(op["file"]):
        return
    kind, filters = KINDS[op["kind"]], op.get("filters") or {}
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    words = dict(filters.get("h5py", {}))
    if filters.get("plugin"):
        words |= dict(PLUGINS[filters["plugin"]]())
    if op["layout"] == "compact":
        creation.set_layout(h5py.h5d.COMPACT)
    if op["alloc"]:
        creation.set_alloc_time(getattr(h5py.h5d, f"ALLOC_TIME_{'INCR' if op['alloc'] == 'incremental' else op['alloc'].upper()}"))
    if op["layout"] == "external":
        size = int(np.prod(op["shape"])) * kind.dtype.itemsize
        words["external"] = [(f"{world.folder}/{op['file']}-{op['number']}.bin", 0, size)]
    for key in ("chunks", "maxshape"):
        if op.get(key):
            words[key] = tuple(op[key])
    fill = kind.fill(op["fill"]) if "fill" in op else None
    handle = world.file(op["file"], op["via"]).create_dataset(
        op["path"], tuple(op["shape"]), kind.dtype, fillvalue=fill, fill_time=op["fill_time"], track_order=op["track_order"], dcpl=creation, **words
    )
    thing = Dataset(
        op["kind"], op["shape"], op["layout"], fill=fill, filters=filters, never_filled=op["fill_time"] == "never",
        maxshape=op.get("maxshape"), chunks=op.get("chunks"),
    )
    world.next = op["number"]
    number = world.new(thing, op["file"], op["path"])
    if op["data"] is not None and not (op["kind"] == "lists" and thing.array.size < 2):
        store(world, number, handle, ["all"], kind.values(op["data"], op["shape"]))
    if op["via"] % 2:
        world.kept.setdefault(number, []).append(handle)


def make_null(world, rng):
    file = rng.choice(sorted(world.links))
    return dict(number=world.next, file=file, path=f"/null{world.next}", kind=rng.choice(["<f4", "text", "flat"]))


def do_null(world, op):
    world.file(op["file"]).create_dataset(op["path"], data=h5py.Empty(KINDS[op["kind"]].dtype))
    world.next = op["number"]
    world.new(Dataset(op["kind"], None, "null"), op["file"], op["path"])


def make_virtual(world, rng):
    file = rng.choice(sorted(world.links))
    first = pick(world, rng, lambda t: usable(t))
    if first is None:
        return None
    kind, sources, start = world.objects[first].kind, [], 0
    for number in [first, *[pick(world, rng, lambda t: usable(t) and t.kind == kind) for _ in range(rng.randint(0, 3))]]:
        home = world.home(number)
        # A source that is gone reads as the fill value, one whose group is gone as an error.
        if home[1].count("/") > 1:
            continue
        if home[0] != file and not (world.plain(home[0]) and world.plain(file)):
            continue
        shape = world.objects[number].shape
        box = [[at, at + 1, 1] for at in (rng.randrange(n) for n in shape[:-1])] + [selections.dense(rng, shape[-1])]
        count = box[-1][1] - box[-1][0]
        start += rng.choice([0, 0, 3])
        sources.append([*home, box, start, count])
        start += count
    if not sources:
        return None
    if rng.random() < 0.2:
        sources.append([file, "/missing", [[0, 5, 1]], start, 5])
        start += 5
    fill = rng.randrange(1 << 30) if rng.random() < 0.5 else None
    return dict(number=world.next, file=file, path=f"/virtual{world.next}", kind=kind, sources=sources, length=start, fill=fill)


def usable(thing):
    return group_of(thing) == "number" and not thing.maxshape and len(thing.shape) > 0 and thing.array.size and thing.layout != "virtual"


def do_virtual(world, op):
    kind = KINDS[op["kind"]]
    for file, path, box, _, _ in op["sources"]:
        source = world.resolve(file, path)
        if path != "/missing" and (source is None or not selections.fits(["box", box], world.objects[source].shape)):
            return
    layout = h5py.VirtualLayout((op["length"],), kind.dtype)
    for file, path, box, start, count in op["sources"]:
        shape = (5,) if path == "/missing" else world.objects[world.resolve(file, path)].shape
        place = "." if file == op["file"] else world.path(file)
        source = h5py.VirtualSource(place, path, shape, dtype=kind.dtype)
        layout[start : start + count] = source[tuple(slice(*part) for part in box)]
    fill = None if op["fill"] is None else kind.fill(op["fill"])
    world.file(op["file"]).create_virtual_dataset(op["path"], layout, fillvalue=fill)
    world.next = op["number"]
    world.new(Dataset(op["kind"], [op["length"]], "virtual", fill=fill, sources=op["sources"]), op["file"], op["path"])


def make_references(world, rng):
    file = rng.choice(sorted(world.links))
    here = [n for n in world.alive(Dataset) if world.home(n)[0] == file]
    regions = rng.random() < 0.4
    targets = []
    for _ in range(rng.randint(1, 6)):
        aim = rng.choice([None, *here])
        shape = None if aim is None else world.objects[aim].shape
        boxable = bool(shape) and all(shape)
        if aim is not None and regions and not boxable:
            aim = None
        targets.append(None if aim is None else [aim, [selections.dense(rng, n) for n in shape] if regions else None])
    return dict(number=world.next, file=file, path=f"/references{world.next}", regions=regions, targets=targets)


def do_references(world, op):
    file, made = world.file(op["file"]), []
    dtype = h5py.regionref_dtype if op["regions"] else h5py.ref_dtype
    targets = [t if t and world.objects.get(t[0]) and world.home(t[0]) else None for t in op["targets"]]
    for target in targets:
        if target is None:
            made.append(h5py.RegionReference() if op["regions"] else h5py.Reference())
            continue
        thing = file[world.home(target[0])[1]]
        made.append(thing.regionref[tuple(slice(*part) for part in target[1])] if op["regions"] else thing.ref)
    handle = file.create_dataset(op["path"], (len(made),), dtype)
    for at, reference in enumerate(made):
        handle[at] = reference
    world.next = op["number"]
    world.new(References(op["regions"], [tuple(t) if t else None for t in targets]), op["file"], op["path"])


CREATIONS = [(12, make_dataset, do_dataset), (3, make_table, do_dataset), (1, make_null, do_null), (2, make_virtual, do_virtual), (1, make_references, do_references)]
