"""zarr-python checks a store that we wrote, or writes one for us: with_zarr.py check|write MANIFEST STORE."""

import sys
import warnings

import numpy as np
import zarr
from expected import Report, dtype_of, expected, fill, manifest, same

# Structures and raw bytes are extensions of version 3; that is known.
warnings.simplefilter("ignore")


def plain(dtype):
    """The dtype without byte order: version 3 keeps the order in a codec."""
    return dtype.newbyteorder("=") if dtype.names is None else dtype


def codec_names(array):
    if array.metadata.zarr_format == 2:
        found = [array.metadata.compressor, *(array.metadata.filters or ())]
        return {codec.codec_id for codec in found if codec is not None}
    codecs = list(array.metadata.codecs)
    for codec in list(codecs):
        codecs.extend(getattr(codec, "codecs", ()))
    names = {type(codec).__name__ for codec in codecs}
    known = {"GzipCodec": "gzip", "ZstdCodec": "zstd", "BloscCodec": "blosc", "Crc32cCodec": "crc32c"}
    return {known[name] for name in names if name in known}


def check(cases, path, report):
    root = zarr.open_group(path, mode="r")
    report.check("root", "zarr_format", root.metadata.zarr_format, cases["version"])
    for case in cases["arrays"]:
        check_array(root, case, cases, report)
    for group in cases["groups"]:
        report.check(group, "kind", isinstance(root[group], zarr.Group), True)
    for attribute in cases["attributes"]:
        target = root[attribute["object"]] if attribute["object"] else root
        name = f"{attribute['object']}@{attribute['name']}"
        report.check(name, "value", target.attrs[attribute["name"]], attribute["value"])


def check_array(root, case, cases, report):
    name, wanted = case["name"], expected(case)
    array = root[name]
    dtype = dtype_of(case["dtype"])
    raw = dtype.names is not None and array.dtype.names is None
    if not raw:
        report.check(name, "dtype", plain(array.dtype), plain(dtype))
        if cases["version"] == 2:
            report.check(name, "dtype with its byte order", array.dtype, dtype)
    report.check(name, "shape", array.shape, tuple(case["shape"]))
    report.check(name, "values are right", same(array[...], wanted), True)
    if case["chunk"] is not None:
        report.check(name, "chunks", array.chunks, tuple(case["chunk"]))
    if cases["shard"] is not None:
        report.check(name, "shards", array.shards, tuple(cases["shard"]))
    if case["codec"] is not None:
        report.check(name, f"uses {case['codec']}", case["codec"] in codec_names(array), True)
    if case["fill"] is not None and not raw:
        report.check(name, "fill value is right", same(np.asarray(array.fill_value, plain(dtype)), fill(case)), True)


def compressor(name, version):
    if version == 2:
        import numcodecs

        return {
            "gzip": numcodecs.GZip(5),
            "zlib": numcodecs.Zlib(5),
            "zstd": numcodecs.Zstd(3),
            "blosc": numcodecs.Blosc("lz4", 5),
        }[name]
    return {
        "gzip": zarr.codecs.GzipCodec(level=5),
        "zstd": zarr.codecs.ZstdCodec(level=3),
        "blosc": zarr.codecs.BloscCodec(cname="lz4", clevel=5),
    }[name]


def write(cases, path, report):
    root = zarr.open_group(path, mode="w", zarr_format=cases["version"])
    for case in cases["arrays"]:
        try:
            array = create(root, case, cases)
        except (ValueError, TypeError, NotImplementedError, KeyError) as reason:
            report.skip(case["name"], reason)
            continue
        if case["grown_from"] is not None:
            array.resize(tuple(case["shape"]))
        whole = expected(case)
        written = case["written"]
        box = tuple(slice(start, start + count) for start, count in zip(*written)) if written else ...
        array[box] = whole[box]
    for group in cases["groups"]:
        root.require_group(group)
    for attribute in cases["attributes"]:
        target = root[attribute["object"]] if attribute["object"] else root
        target.attrs[attribute["name"]] = attribute["value"]


def create(root, case, cases):
    options = {}
    if case["chunk"] is not None:
        options["chunks"] = tuple(case["chunk"])
    if cases["shard"] is not None:
        options["shards"] = tuple(cases["shard"])
    if case["fill"] is not None:
        options["fill_value"] = fill(case)
    name = case["codec"]
    options["compressors"] = None if name is None else compressor(name, cases["version"])
    shape = tuple(case["grown_from"] or case["shape"])
    if cases["version"] == 3 and dtype_of(case["dtype"]).byteorder == ">":
        options["serializer"] = zarr.codecs.BytesCodec(endian="big")
    return root.create_array(case["name"], shape=shape, dtype=dtype_of(case["dtype"]), **options)


if __name__ == "__main__":
    report = Report()
    {"check": check, "write": write}[sys.argv[1]](manifest(sys.argv[2]), sys.argv[3], report)
    report.finish()
