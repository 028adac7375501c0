"""h5py checks a file that we wrote, or writes one for us: with_h5py.py check|write MANIFEST FILE."""

import sys

import h5py
import numpy as np
from expected import Report, dtype_of, expected, fill, manifest, same


def check(cases, path, report):
    with h5py.File(path, "r") as file:
        for case in cases["arrays"]:
            check_array(file[case["name"]], case, report)
        for group in cases["groups"]:
            report.check(group, "kind", isinstance(file[group], h5py.Group), True)
        for attribute in cases["attributes"]:
            check_attribute(file[attribute["object"] or "/"], attribute, report)


def check_array(array, case, report):
    name, wanted = case["name"], expected(case)
    report.check(name, "dtype", array.dtype, dtype_of(case["dtype"]))
    report.check(name, "shape", array.shape, tuple(case["shape"]))
    report.check(name, "values are right", same(array[()], wanted), True)
    if case["chunk"] is not None:
        report.check(name, "chunks", array.chunks, tuple(case["chunk"]))
    if case["max_shape"] is not None:
        report.check(name, "maxshape", array.maxshape, tuple(case["max_shape"]))
    filters = dict((f, True) if isinstance(f, str) else next(iter(f.items())) for f in case["filters"])
    report.check(name, "compression", array.compression, "gzip" if "deflate" in filters else None)
    if "deflate" in filters:
        report.check(name, "level", array.compression_opts, filters["deflate"])
    report.check(name, "shuffle", array.shuffle, "shuffle" in filters)
    report.check(name, "fletcher32", array.fletcher32, "fletcher32" in filters)
    if case["fill"] is not None:
        report.check(name, "fill value is right", same(array.fillvalue, fill(case)), True)


def check_attribute(target, attribute, report):
    name = f"{attribute['object']}@{attribute['name']}"
    found, wanted = target.attrs[attribute["name"]], attribute["value"]
    if attribute["kind"] == "text":
        found = found.decode() if isinstance(found, bytes) else found
    else:
        report.check(name, "dtype", np.asarray(found).dtype, np.dtype(attribute["kind"]))
        found = np.asarray(found).tolist()
    report.check(name, "value", found, wanted)


def write(cases, path, report):
    with h5py.File(path, "w", libver=cases.get("libver", "earliest")) as file:
        for case in cases["arrays"]:
            write_array(file, case)
        for group in cases["groups"]:
            file.require_group(group)
        for attribute in cases["attributes"]:
            target = file[attribute["object"] or "/"]
            value = attribute["value"]
            if attribute["kind"] != "text":
                value = np.array(value, attribute["kind"])
            target.attrs[attribute["name"]] = value


def write_array(file, case):
    options = {}
    for filter in case["filters"]:
        if isinstance(filter, dict):
            options.update(compression="gzip", compression_opts=filter["deflate"])
        else:
            options[filter] = True
    if case["chunk"] is not None:
        options["chunks"] = tuple(case["chunk"])
    if case["max_shape"] is not None:
        options["maxshape"] = tuple(case["max_shape"])
    if case["fill"] is not None:
        options["fillvalue"] = fill(case)
    dtype, shape = dtype_of(case["dtype"]), tuple(case["grown_from"] or case["shape"])
    if case["compact"]:
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_layout(h5py.h5d.COMPACT)
        options["dcpl"] = properties
    array = file.create_dataset(case["name"], shape, dtype, **options)
    if case["grown_from"] is not None:
        array.resize(tuple(case["shape"]))
    whole = expected(case)
    box = tuple(slice(start, start + count) for start, count in zip(*case["written"])) if case["written"] else ()
    array[box] = whole[box]


if __name__ == "__main__":
    report = Report()
    {"check": check, "write": write}[sys.argv[1]](manifest(sys.argv[2]), sys.argv[3], report)
    report.finish()
