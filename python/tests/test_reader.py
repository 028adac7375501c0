"""`hyperslab.open` against numpy and h5py on real files."""

import itertools
import os
import pickle
import threading

import numpy as np
import pytest

h5py = pytest.importorskip("h5py")

import hyperslab
from hyperslab._indexing import plan


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("reader") / "a.h5"
    with h5py.File(path, "w") as file:
        data = np.arange(40 * 30 * 7, dtype="f4").reshape(40, 30, 7)
        file.create_dataset("plain", data=data)
        file.create_dataset("group/packed", data=data, chunks=(8, 5, 7), compression="gzip", shuffle=True)
        file.create_dataset("group/below/big", data=data.astype(">i4"))
        file["scalar"] = 3.5
        file["flags"] = np.array([True, False, True])
        record = np.dtype([("a", "i2"), ("b", "f8")], align=True)
        file["records"] = np.array([(1, 2.0), (3, 4.0)], record)
        file.create_dataset("empty", shape=(0, 4), dtype="i8")
        file.attrs["title"] = "text"
        file["plain"].attrs["scale"] = np.array([1.5, 2.5])
        file["plain"].attrs["count"] = 7
    return path


SLICES = [slice(None), slice(3, 20), slice(1, None, 4), slice(None, None, -1), slice(25, 2, -3), slice(5, 5), slice(-4, None)]


def test_slices_are_those_of_numpy(path):
    with h5py.File(path) as plain, hyperslab.open(path) as file:
        data = plain["plain"][...]
        for name in ("plain", "group/packed", "group/below/big"):
            array = file[name]
            assert array.dtype == plain[name].dtype and array.shape == data.shape
            for first, second in itertools.product(SLICES, repeat=2):
                got = array[first, second]
                assert got.dtype == plain[name].dtype and np.array_equal(got, data[first, second]), (first, second)


@pytest.mark.parametrize(
    "index",
    [
        0, -1, (3, 4), (3, 4, 5), ..., (..., 2), (1, ..., 2), (slice(2, 9), None, 4), None, (None, ..., None),
        [1, 2, 3, 9], [9, 1, 1, -40, 4], (slice(None), [29, 0]), np.array([5]), [], (4, [2, 1], slice(1, 3)),
        np.int64(7), np.arange(40) % 3 == 0, (slice(None, None, -2), [3, 1, 2]),
    ],
)  # fmt: skip
def test_indices_are_those_of_numpy(path, index):
    with h5py.File(path) as plain, hyperslab.open(path) as file:
        data = plain["plain"][...]
        for name in ("plain", "group/packed"):
            got = file[name][index]
            wanted = data[index]
            assert np.shape(got) == wanted.shape and np.array_equal(got, wanted), name


def test_lists_in_two_dimensions_are_rows_and_columns(path):
    with h5py.File(path) as plain, hyperslab.open(path) as file:
        data = plain["plain"][...]
        assert np.array_equal(file["plain"][[5, 2, 2], [1, 0], 3], data[np.ix_([5, 2, 2], [1, 0])][:, :, 3])


def test_random_plans_are_those_of_numpy():
    random = np.random.default_rng(7)
    for _ in range(400):
        shape = tuple(int(n) for n in random.integers(1, 8, random.integers(1, 4)))
        data = np.arange(np.prod(shape)).reshape(shape)
        index, orthogonal = [], []
        for extent in shape:
            kind = random.integers(0, 3)
            if kind == 0:
                entry = slice(*(None if random.random() < 0.3 else int(random.integers(-9, 9)) for _ in range(2)),
                              int(random.choice([-3, -2, -1, 1, 2, 3])))
                orthogonal.append(np.arange(extent)[entry])
            elif kind == 1:
                entry = random.integers(-extent, extent, random.integers(0, 6))
                orthogonal.append(entry)
            else:
                entry = random.random(extent) < 0.5
                orthogonal.append(np.flatnonzero(entry))
            index.append(entry)
        made = plan(tuple(index), shape)
        read = np.concatenate([np.empty(0, data.dtype)] + [data[np.ix_(*(np.concatenate(
            [np.arange(s + n * t, s + n * t + b) for n in range(c)] + [np.empty(0, int)]).astype(int)
            for s, t, c, b in slab.tolist()))].ravel() for slab in made.slabs])
        # Slabs of one plan never overlap, and are read in row-major order of all of them.
        read = np.sort(read).reshape(made.read_shape)
        assert np.array_equal(made.finish(read), data[np.ix_(*orthogonal)]), (shape, index)


def test_wrong_indices_are_refused(path):
    with hyperslab.open(path) as file:
        array = file["plain"]
        for index in [40, (0, 0, 0, 0), [41], [-41], (..., ...), [[1]], np.ones(3, bool), np.ones((2, 2), bool), 1.5, [0.5], "x"]:
            with pytest.raises((IndexError, TypeError)):
                array[index]
        with pytest.raises(KeyError, match="group"):
            file["nothing"]


def test_masks_over_all_dimensions(path):
    with h5py.File(path) as plain, hyperslab.open(path) as file:
        data = plain["plain"][...]
        for mask in (data % 11 == 0, (data > 900) & (data < 2000), np.zeros(data.shape, bool)):
            assert np.array_equal(file["group/packed"][mask], data[mask])


def test_other_types_and_attributes(path):
    with hyperslab.open(path) as file:
        assert file["scalar"][()] == 3.5 and file["scalar"].shape == ()
        assert file["flags"].dtype == bool and file["flags"][...].tolist() == [True, False, True]
        assert file["records"][:].tolist() == [(1, 2.0), (3, 4.0)]
        assert file["empty"][...].shape == (0, 4)
        assert file.attrs == {"title": "text"}
        assert file["plain"].attrs["count"] == 7 and file["plain"].attrs["scale"].tolist() == [1.5, 2.5]
        assert sorted(file) == ["empty", "flags", "group", "plain", "records", "scalar"]
        assert sorted(file["group"]) == ["below", "packed"] and "below/big" in file["group"]
        assert np.asarray(file["plain"]).sum() == file["plain"][...].sum()


def test_threads_and_pickles_and_forks(path):
    with h5py.File(path) as plain:
        data = plain["plain"][...]
    file = hyperslab.open(path)
    array = file["group/packed"]
    wrong = []

    def work(seed):
        random = np.random.default_rng(seed)
        for _ in range(50):
            rows = random.integers(0, 40, 5)
            if not np.array_equal(array[rows], data[rows]):
                wrong.append(rows)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong
    again = pickle.loads(pickle.dumps(file))
    assert np.array_equal(again["plain"][3], data[3])
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(array[1:9], data[1:9]) else 1)
    assert os.waitpid(child, 0)[1] == 0
    file.close()
    with pytest.raises(ValueError, match="closed"):
        array[0]


def test_files_that_change_are_never_mixed(tmp_path):
    path = tmp_path / "a.h5"

    def write(value, **more):
        with h5py.File(path, "w", locking=False) as file:
            file.create_dataset("x", data=np.full(1000, value), **more)

    write(1)
    old = hyperslab.open(path)
    kept = old["x"]
    assert (kept[...] == 1).all()
    write(2, chunks=(100,), compression="gzip")
    with pytest.raises(OSError, match="open it again"):
        kept[...]
    with hyperslab.open(path) as new:
        assert (new["x"][...] == 2).all() and new["x"].chunks == (100,)
    with pytest.raises(ValueError, match="closed"):
        kept[0]
    other = tmp_path / "b.h5"
    with hyperslab.open(path) as file:
        write_to = h5py.File(other, "w")
        write_to["x"] = np.zeros(3)
        write_to.close()
        os.replace(other, path)
        with pytest.raises(OSError, match="open it again"):
            file["x"]
    with hyperslab.open(path) as file:
        assert file["x"].shape == (3,)


def test_closing_waits_for_reads(path):
    with h5py.File(path) as plain:
        data = plain["plain"][...]
    for _ in range(20):
        file = hyperslab.open(path)
        array = file["group/packed"]
        said = []

        def read():
            try:
                while True:
                    said.append(np.array_equal(array[2:30], data[2:30]))
            except ValueError:
                pass

        threads = [threading.Thread(target=read) for _ in range(3)]
        [thread.start() for thread in threads]
        while len(said) < 3:
            pass
        file.close()
        [thread.join() for thread in threads]
        assert all(said)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(OSError):
        hyperslab.open(tmp_path / "none.h5")
    hostile = tmp_path / "bad.h5"
    hostile.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(range(256)) * 8)
    with pytest.raises((OSError, NotImplementedError)):
        hyperslab.open(hostile)


def test_many_opens_leave_nothing(path):
    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    for _ in range(20):
        hyperslab.open(path)["plain"][0]
    before = descriptors()
    for _ in range(200):
        with hyperslab.open(path) as file:
            file["group/packed"][0]
    assert descriptors() <= before + 2


def test_zarr_and_classic_netcdf(tmp_path):
    data = np.arange(600.0).reshape(20, 30)
    zarr = pytest.importorskip("zarr")
    array = zarr.open_group(tmp_path / "a.zarr").create_array("x", shape=data.shape, chunks=(5, 7), dtype="f8")
    array[...] = data
    with hyperslab.open(tmp_path / "a.zarr") as file:
        assert np.array_equal(file["x"][::3, [4, 1]], data[::3][:, [4, 1]])
    netcdf = pytest.importorskip("netCDF4")
    with netcdf.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("y", 20), file.createDimension("x", 30)
        file.createVariable("v", "f8", ("y", "x"))[:] = data
    with hyperslab.open(tmp_path / "a.nc") as file:
        assert np.array_equal(file["v"][3:9], data[3:9])


def test_a_zarr_store_that_is_one_array(tmp_path):
    zarr = pytest.importorskip("zarr")
    data = np.arange(600.0).reshape(20, 30)
    for version in (2, 3):
        path = tmp_path / f"{version}.zarr"
        zarr.create_array(path, shape=data.shape, chunks=(5, 7), dtype="f8", zarr_format=version)[...] = data
        with hyperslab.open(path) as file:
            assert list(file) == [""] and np.array_equal(file[""][::3, 5], data[::3, 5])
            assert "20 × 30" in file._repr_html_()


@pytest.mark.parametrize("cache", [None, "64MiB"])
@pytest.mark.parametrize("prefetch", [0, 3])
def test_epochs_have_every_sample_once(path, cache, prefetch):
    with h5py.File(path) as plain:
        data = plain["plain"][...]
    reader = hyperslab.SampleReader(path, "group/packed", batch=7, prefetch=prefetch, cache=cache)
    assert len(reader) == 6
    orders = []
    for epoch in range(3):
        batches = list(reader)
        order = reader.order(epoch)
        orders.append(order.tolist())
        assert [len(batch) for batch in batches] == [7, 7, 7, 7, 7, 5]
        assert np.array_equal(np.concatenate(batches), data[order])
    assert sorted(orders[0]) == list(range(40)) and orders[0] != orders[1] != orders[2]
    for batch in reader:
        break
    parts = [hyperslab.SampleReader(path, "plain", part=(k, 3)).order(0).tolist() for k in range(3)]
    assert sorted(sum(parts, [])) == list(range(40))
    reader.close()
