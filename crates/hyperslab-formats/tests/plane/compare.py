"""h5py compares arrays with the bytes they should hold: compare.py MANIFEST."""

import sys

import h5py
import numpy as np
from expected import Report, dtype_of, manifest, same

try:
    import hdf5plugin
except ImportError:
    hdf5plugin = None

# Deflate, shuffle, fletcher32 and LZF.
OF_H5PY = {1, 2, 3, 32000}


def readable(array):
    """Whether h5py has the filters of an array."""
    created = array.id.get_create_plist()
    stated = {created.get_filter(number)[0] for number in range(created.get_nfilters())}
    return hdf5plugin is not None or stated <= OF_H5PY


def compare(case, report):
    dtype, shape = dtype_of(case["dtype"]), tuple(case["shape"])
    with open(case["expected"], "rb") as file:
        wanted = np.frombuffer(file.read(), dtype).reshape(shape)
    with h5py.File(case["file"], "r") as file:
        found = file[case["name"]]
        if not readable(found):
            return report.skip(case["about"], "hdf5plugin is not installed")
        report.check(case["about"], "the shape", found.shape, shape)
        report.check(case["about"], "what h5py reads is right", same(found[()], wanted), True)


if __name__ == "__main__":
    report = Report()
    for case in manifest(sys.argv[1]):
        try:
            compare(case, report)
        except Exception as error:
            report.wrong.append(f"{case['about']}: {error!r}")
    report.finish()
