"""Checks files of application kernels against what their programs write:  kernels.py KERNEL DIRECTORY

Layouts are worked out here from the programs' own rules, values from fill_rules.py. Prints "right", or what is wrong and fails.
"""

import pathlib
import sys

import h5py
import numpy as np

import fill_rules


def whole(file, name, dtype, shape, fill="random"):
    """The array is of this type and shape and holds what the rule says."""
    found = file[name][...]
    assert found.dtype == np.dtype(dtype), f"{name} has type {found.dtype}"
    assert list(found.shape) == list(shape), f"{name} has shape {found.shape}"
    want = fill_rules.whole(np.dtype(dtype), fill, name, 1, list(shape))
    assert found.tobytes() == want.tobytes(), f"{name} holds something else"


def names(file):
    out = []
    file.visititems(lambda name, item: out.append(name) if isinstance(item, h5py.Dataset) else None)
    return sorted(out)


def flash(directory):
    """FLASH-IO with blocks=5 and guard=4 on 3 ranks: 5 + 6 + 7 blocks of 8^3 cells."""
    for suffix, variables, extent, real in [("chk", 24, 8, "<f8"), ("plt_cnt", 4, 8, "<f4"), ("plt_crn", 4, 9, "<f4")]:
        with h5py.File(directory / f"flash_{suffix}_0000.h5") as file:
            for name, shape, dtype, fill in [
                ("lrefine", [18], "<i4", "index"),
                ("nodetype", [18], "<i4", "index"),
                ("gid", [18, 15], "<i4", "index"),
                ("coordinates", [18, 3], real, "ramp"),
                ("blocksize", [18, 3], real, "ramp"),
                ("bndbox", [18, 3, 2], real, "ramp"),
            ]:
                whole(file, name, dtype, shape, fill)
            for number in range(1, variables + 1):
                whole(file, f"var{number:02}", real, [18, extent, extent, extent])
            assert len(names(file)) == 6 + variables


def btio(directory):
    """BTIO on a grid of 12 x 13 x 14 with 3 dumps."""
    with h5py.File(directory / "btio.h5") as file:
        whole(file, "var", "<f8", [3, 12, 13, 14, 5])
        assert file["var"].maxshape == (None, 12, 13, 14, 5)


def cosmoflow(directory):
    """32 samples in 4 files."""
    for number in range(4):
        with h5py.File(directory / f"cosmoflow_{number:05}.h5") as file:
            whole(file, "full", "<u2", [8, 32, 32, 32, 4])


def e3sm(directory):
    """The atmosphere: in the canonical layout every element is written; blobs say where theirs belong."""
    counts = {"D1": 1, "D2": 22, "D3": 1}
    shapes = {"D1": [866], "D2": [866], "D3": [72, 866]}
    with h5py.File(directory / "canonical" / "e3sm-f_h1.h5") as file:
        for group, count in counts.items():
            for number in range(1, count + 1):
                whole(file, f"{group}_{number:03}", "<f4", [2] + shapes[group])
                assert file[f"{group}_{number:03}"].maxshape[0] is None
        for number in range(1, 28):
            whole(file, f"other_{number:03}", "<f8", [2], "index")
    with h5py.File(directory / "blob" / "e3sm-f_h1.h5") as file:
        for number, (group, count) in enumerate(counts.items()):
            table = {name: file[f"{group}.{name}"][...] for name in ("nreqs", "blob_start", "blob_count", "offsets", "lengths")}
            elements = int(np.prod(shapes[group]))
            place = np.full(elements, -1)
            for rank, requests in enumerate(table["nreqs"]):
                at = table["blob_start"][rank]
                for offset, length in zip(table["offsets"][rank][:requests], table["lengths"][rank][:requests]):
                    assert (place[offset : offset + length] == -1).all(), f"{group}: an element is in two blobs"
                    place[offset : offset + length] = np.arange(at, at + length)
                    at += length
                assert at == table["blob_start"][rank] + table["blob_count"][rank]
            assert sorted(place) == list(range(elements)), f"{group}: the blobs are no permutation of the variable"
            for variable in range(1, count + 1):
                name = f"{group}_{variable:03}"
                whole(file, name, "<f4", [2, elements])
                assert file[name].attrs["decomposition_ID"] == number + 1
                assert list(file[name].attrs["global_dims"]) == shapes[group]


def openpmd(directory):
    """Two iterations of meshes of 64^3, read by openPMD-api too where it is installed."""
    path = directory / "8a_parallel_3Db.h5"
    with h5py.File(path) as file:
        for step in (1, 2):
            for mesh in ["E/x", "E/y", "E/z", "B/x", "B/y", "B/z", "rho"]:
                whole(file, f"data/{step}/fields/{mesh}", "<f8", [64, 64, 64])
            whole(file, f"data/{step}/particles/ion/id", "<u8", [64**3], "index")
            whole(file, f"data/{step}/particles/ion/charge", "<f8", [64**3], "ramp")
            offset = file[f"data/{step}/particles/ion/positionOffset/x"]
            assert list(offset.attrs["shape"]) == [64**3] and offset.attrs["value"] == 0.0
        assert file.attrs["openPMD"] == b"1.1.0" and file.attrs["iterationEncoding"] == b"groupBased"
        assert [label.decode() for label in file["data/1/fields/E"].attrs["axisLabels"]] == ["x", "y", "z"]
    try:
        import openpmd_api
    except ImportError:
        return
    series = openpmd_api.Series(str(path), openpmd_api.Access.read_only)
    assert list(series.iterations) == [1, 2]
    rho = series.iterations[2].meshes["rho"][openpmd_api.Mesh_Record_Component.SCALAR]
    found = rho.load_chunk([3, 0, 0], [1, 64, 64])
    series.flush()
    want = fill_rules.whole(np.dtype("<f8"), "random", "data/2/fields/rho", 1, [64, 64, 64])
    assert (found == want[3:4]).all()


def amrex(directory):
    """Two levels: boxes in the order of their owners, i fastest, all components of a box together."""
    with h5py.File(directory / "plt00001.h5") as file:
        assert (file.attrs["num_levels"], file.attrs["dim"], file.attrs["num_components"]) == (2, 3, 6)
        assert file.attrs["component_5"] == b"component_5"
        for level, (first, cells) in enumerate([(0, 32), (16, 32)]):
            group = file[f"level_{level}"]
            boxes = group["boxes"][...]
            assert boxes.dtype.names == ("lo_i", "lo_j", "lo_k", "hi_i", "hi_j", "hi_k")
            want = []
            for k in range(4):
                for j in range(4):
                    for i in range(4):
                        low = [first + 8 * i, first + 8 * j, first + 8 * k]
                        want.append(tuple(low + [at + 7 for at in low]))
            assert [tuple(box.tolist()) for box in boxes] == want
            sizes = [(hi - lo + 1) for lo, hi in zip(boxes["lo_i"], boxes["hi_i"])]
            offsets = np.concatenate([[0], np.cumsum([size**3 * 6 for size in sizes])])
            assert (group["data:offsets=0"][...] == offsets).all()
            whole(file, f"level_{level}/data:datatype=0", "<f8", [cells**3 * 6])
            assert group.attrs["ngrid"] == 64 and group.attrs["dx"] == 1 / (32 * 2**level)
    with h5py.File(directory / "plt00000_particle0.h5") as file:
        particles = 2 * 32**3
        whole(file, "level_0/data:datatype=0", "<i4", [6 * particles], "index")
        whole(file, "level_0/data:datatype=1", "<f8", [15 * particles])
        assert file["level_0/nparticles_grid"][...].tolist() == [1024] * 64


def macsio(directory):
    """Four ranks with a part each: 100 x 100 nodes, 99 x 99 zones; shared, 2 x 2 parts."""
    variables = ["constant", "random", "spherical", "xramp", "ysin", "noise", "noise_sum", "xlayers"]
    on_nodes = {"xramp", "ysin", "noise", "noise_sum"}
    for number in range(20):
        kind = variables[number % 8]
        name = kind if number < 8 else f"{kind}_{number:03}"
        dtype = "<i4" if kind == "xlayers" else "<f8"
        with h5py.File(directory / "shared" / "macsio_hdf5_001.h5") as file:
            extent = 199 if kind in on_nodes else 198
            whole(file, name, dtype, [extent, extent])
        with h5py.File(directory / "own" / "rank_2_macsio_hdf5_001.h5") as file:
            extent = 100 if kind in on_nodes else 99
            whole(file, f"domain_0000002/{name}", dtype, [extent, extent])
            assert len(names(file)) == 20


def stream(directory):
    with h5py.File(directory / "vl_stream.h5") as file:
        whole(file, "my_test_dataset", "<i4", [2000], "index")
        assert file["my_test_dataset"].chunks == (2048,) and file["my_test_dataset"].maxshape == (None,)


def strings(directory):
    with h5py.File(directory / "vl_stream.h5") as file:
        stream = file["my_test_dataset"]
        assert stream.asstr()[...].tolist() == ["abcd"] * 300
        assert stream.chunks == (2048,) and stream.maxshape == (None,)
        assert h5py.check_string_dtype(stream.dtype).length is None


if __name__ == "__main__":
    globals()[sys.argv[1]](pathlib.Path(sys.argv[2]))
    print("right")
