"""Names that the examples in docstrings use: `hyperslab`, `path` of a small file, `new` of a file that is not there."""

import numpy as np
import pytest

import hyperslab


@pytest.fixture(autouse=True)
def _examples(request):
    if not isinstance(request.node, pytest.DoctestItem):
        return
    h5py = pytest.importorskip("h5py")
    folder = request.getfixturevalue("tmp_path")
    path = folder / "small.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("t", data=np.arange(12, dtype="f4").reshape(4, 3), chunks=(2, 3), compression="gzip")
        for axis, name in enumerate("yx"):
            file["t"].dims[axis].label = name
    request.node.dtest.globs.update(hyperslab=hyperslab, path=path, new=folder / "new.h5")


@pytest.fixture
def xarray():
    return pytest.importorskip("xarray")


def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes long; run with HYPERSLAB_LONG=1")


def pytest_collection_modifyitems(items):
    import os

    for item in items:
        if item.get_closest_marker("long") and not os.environ.get("HYPERSLAB_LONG"):
            item.add_marker(pytest.mark.skip(reason="takes long: HYPERSLAB_LONG=1"))


