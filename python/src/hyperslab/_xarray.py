"""The engine ``hyperslab`` of xarray: ``xarray.open_dataset(path, engine="hyperslab")``."""

from __future__ import annotations

import os
from typing import Any, Iterable

import numpy as np
import xarray
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.backends.zarr import FillValueCoder
from xarray.core import indexing

from ._reader import Array, File


class HyperslabEntrypoint(BackendEntrypoint):
    """Reads HDF5, NetCDF and Zarr by Hyperslab: lazily, and by any number of threads at once."""

    description = "Open HDF5, NetCDF and Zarr files with Hyperslab"
    url = ""
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "group", "stack")

    def open_dataset(  # type: ignore[override]
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: bool | None = None,
        decode_times: Any = None,
        concat_characters: bool | None = None,
        decode_coords: Any = None,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: Any = None,
        decode_timedelta: Any = None,
        group: str | None = None,
        stack: str = "",
    ) -> xarray.Dataset:
        file = File(os.fspath(filename_or_obj), stack)
        start = f"{group.strip('/')}/" if group and group.strip("/") else ""
        names = [name for name in sorted(file._arrays) if name.startswith(start) and "/" not in name[len(start) :]]
        if start and not names and start[:-1] not in file._groups:
            raise KeyError(f"group {group!r} is not in {file.path}")
        unnamed = _Unnamed()
        variables = {name[len(start) :]: _variable(file[name], unnamed) for name in names}  # type: ignore[arg-type]
        attributes = file[start[:-1]].attrs if start else file.attrs
        options = {
            "mask_and_scale": mask_and_scale,
            "decode_times": decode_times,
            "concat_characters": concat_characters,
            "decode_coords": decode_coords,
            "use_cftime": use_cftime,
            "decode_timedelta": decode_timedelta,
        }
        decoded, attributes, coordinates = xarray.conventions.decode_cf_variables(
            variables,
            attributes,
            drop_variables=drop_variables,
            **_defaults(options),
        )
        dataset = xarray.Dataset(decoded, attrs=attributes).set_coords(coordinates & set(decoded))
        dataset.set_close(file.close)
        return dataset

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Never: it is used where it is asked for."""
        return False


def _defaults(options: dict[str, Any]) -> dict[str, Any]:
    return {
        name: True if value is None and name != "use_cftime" and name != "decode_timedelta" else value
        for name, value in options.items()
    }


class _Unnamed:
    """Names for dimensions that have none: one for each length, a second where an array has that length twice."""

    def __init__(self) -> None:
        self._of: dict[tuple[int, int], str] = {}

    def names(self, shape: tuple[int, ...]) -> tuple[str, ...]:
        keys = [(extent, shape[:n].count(extent)) for n, extent in enumerate(shape)]
        return tuple(self._of.setdefault(key, f"phony_dim_{len(self._of)}") for key in keys)


def _variable(array: Array, unnamed: _Unnamed) -> xarray.Variable:
    dims = tuple(name.rsplit("/", 1)[-1] for name in array.dims) if array.dims else unnamed.names(array.shape)
    data = indexing.LazilyIndexedArray(_LazyArray(array))
    encoding = {"source": array._file_.path, "original_shape": array.shape, "dtype": array.dtype}
    if array.chunks:
        encoding |= {"chunksizes": array.chunks, "preferred_chunks": dict(zip(dims, array.chunks))}
    return xarray.Variable(dims, data, _attributes(array), encoding)


def _attributes(array: Array) -> dict[str, Any]:
    """The attributes as xarray decodes them: which values are missing is an attribute of NetCDF, the fill value of an array of
    Zarr's version 2, and in version 3 an attribute in a form of xarray's own."""
    attributes = dict(array.attrs)
    said = attributes.get("_FillValue")
    kind = array._file_.stack.rsplit("/", 1)[-1].partition("(")[0]
    if isinstance(said, str) and array.dtype.kind == "f" and kind == "zarr":
        attributes["_FillValue"] = array.dtype.type(FillValueCoder.decode(said, array.dtype))
    elif said is None and array.fill_value is not None and kind != "hdf5" and not _is_default(array.fill_value):
        attributes["_FillValue"] = array.fill_value
    return attributes


# NetCDF's fill values of arrays that state none: by kind and size, as in numpy's names of types.
_DEFAULTS = {
    "i1": -127, "i2": -32767, "i4": -2147483647, "i8": -9223372036854775806, "f4": np.float32(9.969209968386869e36),
    "u1": 255, "u2": 65535, "u4": 4294967295, "u8": 18446744073709551614, "f8": 9.969209968386869e36, "S1": b"",
}  # fmt: skip


def _is_default(fill: Any) -> bool:
    return _DEFAULTS.get(fill.dtype.str[1:]) == fill


class _LazyArray(BackendArray):
    def __init__(self, array: Array):
        self.array = array
        self.shape = array.shape
        self.dtype = np.dtype(array.dtype)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> np.ndarray:
        return np.asarray(self.array[key])
