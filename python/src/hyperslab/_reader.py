"""Arrays of HDF5, NetCDF, Zarr and raw files with numpy's way of indexing, read by Hyperslab without Python's lock."""

from __future__ import annotations

import ctypes
import json
import os
import stat
import threading
import weakref
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator

import numpy as np

from ._indexing import Plan, plan
from ._program import ProgramMissing, program

_VERSION = 1
_LIBRARY = "libhyperslab_reader.so"


class _Text(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char_p), ("length", ctypes.c_size_t)]

    @classmethod
    def of(cls, text: str) -> "_Text":
        encoded = text.encode()
        return cls(encoded, len(encoded))


_ERRORS: dict[str, type[Exception]] = {
    "InvalidInput": ValueError,
    "NotFound": FileNotFoundError,
    "Unsupported": NotImplementedError,
    "Corrupt": OSError,
    "Busy": BlockingIOError,
    "Panic": RuntimeError,
}
_library: ctypes.CDLL | None = None
_loading = threading.Lock()


def _functions() -> ctypes.CDLL:
    global _library
    with _loading:
        if _library is None:
            _library = _load()
        return _library


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(str(_find()))
    if library.hs_version() != _VERSION:
        raise ProgramMissing(f"{_LIBRARY} is of another version than this package\n  try: install the package again")
    handle, text, size = ctypes.c_void_p, _Text, ctypes.c_size_t
    for name, arguments in (
        ("hs_open", [text, text, ctypes.POINTER(handle)]),
        ("hs_close", [handle]),
        ("hs_describe", [handle, text, ctypes.POINTER(handle)]),
        ("hs_array", [handle, text, ctypes.POINTER(handle)]),
        ("hs_release_array", [handle]),
        ("hs_read", [handle, size, size, handle, handle, size, ctypes.c_uint32]),
    ):
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, handle
    library.hs_free_text.argtypes, library.hs_free_text.restype = [handle], None
    return library


def _find() -> Path:
    packaged = Path(__file__).resolve().parent / "_data" / "lib" / _LIBRARY
    at = program().resolve().parent
    for path in (packaged, at / _LIBRARY, at.parent / "lib" / _LIBRARY):
        if path.exists():
            return path
    raise ProgramMissing(
        f"the reader {_LIBRARY} is neither in this package nor beside {at}\n"
        "  try: cargo build --release -p hyperslab-python in a checkout, or install the package again"
    )


def _check(error: int | None) -> None:
    if error:
        kind, _, message = _take(error).partition(" ")
        raise _ERRORS.get(kind, OSError)(message)


def _take(text: int | None) -> str:
    library = _functions()
    try:
        return ctypes.string_at(text).decode(errors="replace")
    finally:
        library.hs_free_text(text)


class _Handle:
    """What C functions opened: released once, when nobody uses it any more."""

    def __init__(self, value: int, release: Any):
        self.value = value
        self._finalizer = weakref.finalize(self, _release, release, value, os.getpid())

    def close(self) -> None:
        self._finalizer()


def _release(release: Any, value: int, owner: int) -> None:
    # A forked child has the memory, not the threads and locks that go with it.
    if os.getpid() == owner:
        _check(release(value))


_open_files: "weakref.WeakSet[File]" = weakref.WeakSet()


def _renew_locks() -> None:
    """In a forked child: threads that held a lock are not there."""
    for file in list(_open_files):
        file._lock, file._calls = threading.Condition(threading.RLock()), 0


os.register_at_fork(after_in_child=_renew_locks)


def _identity(path: str) -> tuple[int, ...]:
    """Says whether a file is still the same one, unchanged. Directories (Zarr) change with each chunk that is written."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    if stat.S_ISDIR(status.st_mode):
        return status.st_dev, status.st_ino
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _close_changed(path: str) -> None:
    """Closes what is open of a file in an earlier state, which libhdf5 would hand out again."""
    now = _identity(path)
    for file in list(_open_files):
        if file._handle is not None and file._identity[:2] == now[:2] and file._identity != now:
            file.close()


def open(path: str | os.PathLike[str], stack: str = "") -> "File":
    """Opens an HDF5, NetCDF or Zarr file, or whatever ``hyperslab formats`` lists, for reading.

    ``stack`` is detected if it is not given; ``"cache(memory=1GiB)/hdf5(plane=on)"`` keeps what was read.

    >>> with hyperslab.open("run.h5") as file:       # doctest: +SKIP
    ...     rows = file["temperature"][::10, [3, 1]]
    """
    return File(path, stack)


class _Described:
    """An object with attributes."""

    def __init__(self, file: "File", name: str):
        self._file_, self.name = file, name
        self._said: dict[str, Any] | None = None

    @property
    def _description(self) -> dict[str, Any]:
        if self._said is None:
            self._said = self._file_._describe(self.name)
        return self._said

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes: text as ``str``, numbers as numpy scalars and arrays."""
        return {name: _attribute(value) for name, value in self._description["attributes"].items()}


class Group(_Described, Mapping):
    """A group: arrays and groups by name, with paths such as ``"a/b"``."""

    def __getitem__(self, name: str) -> "Array | Group":
        path = "/".join(part for part in (self.name, *name.split("/")) if part)
        if path in self._file_._arrays:
            return self._file_._array(path)
        if path in self._file_._groups:
            return Group(self._file_, path)
        near = ", ".join(sorted(self)[:8])
        raise KeyError(f"{path!r} is not in {self._file_.path}; there are {near or 'no arrays'}")

    def __iter__(self) -> Iterator[str]:
        start = f"{self.name}/" if self.name else ""
        names = (path[len(start) :].split("/")[0] for path in self._file_._all if path.startswith(start) and path != start)
        return iter(dict.fromkeys(names))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    # Identity: a Mapping would compare every element.
    __eq__, __hash__ = object.__eq__, object.__hash__

    def __repr__(self) -> str:
        return f"<hyperslab {type(self).__name__.lower()} {self.name or self._file_.path!s}: {', '.join(self) or 'empty'}>"


class File(Group):
    """An open file. Reads may be made by any number of threads at once."""

    def __init__(self, path: str | os.PathLike[str], stack: str = ""):
        self.path = os.fspath(path)
        self._stack = stack
        self._lock = threading.Condition(threading.RLock())
        self._calls = 0
        _close_changed(self.path)
        self._open()
        super().__init__(self, "")
        said = self._description
        self._arrays = set(said["arrays"])
        self._groups = set(said["groups"]) | {
            name.rsplit("/", depth)[0] for name in said["arrays"] for depth in range(1, name.count("/") + 1)
        }
        self._all = sorted(self._arrays | self._groups)
        self._opened: weakref.WeakValueDictionary[str, Array] = weakref.WeakValueDictionary()

    @property
    def stack(self) -> str:
        """The stack that reads it."""
        return self._description["stack"]

    def close(self) -> None:
        """Releases the file, when reads of other threads have ended; its arrays cannot be read any more."""
        with self._lock:
            self._lock.wait_for(lambda: self._calls == 0)
            for array in list(self._opened.values()):
                array._release()
            if self._handle is not None:
                self._handle.close()
                self._handle = None

    def __enter__(self) -> "File":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __reduce__(self) -> Any:
        return File, (self.path, self._stack)

    def _open(self) -> None:
        library, handle = _functions(), ctypes.c_void_p()
        identity = _identity(self.path)
        _check(library.hs_open(_Text.of(self.path), _Text.of(self._stack), ctypes.byref(handle)))
        self._handle: _Handle | None = _Handle(handle.value or 0, library.hs_close)
        self._owner, self._identity = os.getpid(), identity
        _open_files.add(self)

    @contextmanager
    def _in_use(self) -> Iterator[int]:
        """The handle, which nobody closes meanwhile; in a forked child that of the file opened anew. Refuses a file that was
        changed since it was opened: what libhdf5 keeps of it would be mixed with what is there now."""
        with self._lock:
            if self._handle is None:
                raise ValueError(f"{self.path} is closed")
            if _identity(self.path) != self._identity:
                raise OSError(f"{self.path} was changed or replaced since it was opened\n  try: open it again")
            if self._owner != os.getpid():
                self._open()
            self._calls += 1
            value = self._handle.value
        try:
            yield value
        finally:
            with self._lock:
                self._calls -= 1
                self._lock.notify_all()

    def _describe(self, name: str) -> dict[str, Any]:
        json_ = ctypes.c_void_p()
        with self._in_use() as handle:
            _check(_functions().hs_describe(handle, _Text.of(name), ctypes.byref(json_)))
        return json.loads(_take(json_.value))

    def _array(self, name: str) -> "Array":
        with self._lock:
            array = self._opened.get(name)
            if array is None:
                array = self._opened[name] = Array(self, name)
            return array


class Array(_Described):
    """An array of a file: ``shape``, ``dtype``, ``chunks``, ``attrs``, and elements by numpy's indices.

    Index lists of several dimensions select rows *and* columns (``a[[0, 2], [1, 5]]`` is 2 by 2), as h5py, zarr's ``oindex`` and
    xarray have it.
    """

    def __init__(self, file: File, name: str):
        super().__init__(file, name)
        said = self._description
        self.shape: tuple[int, ...] = tuple(said["shape"])
        self.dtype: np.dtype = _dtype(said["dtype"])
        self.chunks: tuple[int, ...] | None = tuple(said["chunk"]) if said["chunk"] else None
        #: Names of the dimensions, if the file has any.
        self.dims: tuple[str, ...] | None = tuple(said["dims"]) if said.get("dims") else None
        self.filters: list[Any] = said["filters"]
        fill = said.get("fill_value")
        #: What elements are that were never written, where the file says it.
        self.fill_value: Any = None if fill is None else np.frombuffer(bytes.fromhex(fill), self.dtype)[0]
        self.ndim = len(self.shape)
        self.size = int(np.prod(self.shape, dtype=object))
        self.nbytes = self.size * self.dtype.itemsize
        self._handle: _Handle | None = None
        self._owner = 0

    def __getitem__(self, index: Any) -> Any:
        wanted = plan(index, self.shape)
        return wanted.finish(self._read(wanted))

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        whole = self[...]
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"{self.name} is a single value")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<hyperslab array {self.name}: {self.dtype}, shape {self.shape}, chunks {self.chunks}>"

    def take(self, indices: Any, axis: int = 0) -> np.ndarray:
        """Elements at these indices along an axis, in their order, any number of times each, as ``numpy.take``."""
        axis = range(self.ndim)[axis]
        return self[(slice(None),) * axis + (np.asarray(indices),)]

    def prefetch(self, index: Any = ...) -> None:
        """Asks for elements that will be read soon. Only stacks with ``async`` or ``cache`` fetch them."""
        self._call(plan(index, self.shape), None)

    def _read(self, wanted: Plan) -> np.ndarray:
        result = np.empty(wanted.read_shape, self.dtype)
        if result.size:
            self._call(wanted, result)
        return result

    def _call(self, wanted: Plan, into: np.ndarray | None) -> None:
        numbers = wanted.slabs
        with self._file_._in_use() as file:
            _check(
                _functions().hs_read(
                    self._value(file),
                    self.ndim,
                    len(numbers),
                    numbers.ctypes.data,
                    None if into is None else into.ctypes.data,
                    0 if into is None else into.nbytes,
                    into is None,
                )
            )

    def __reduce__(self) -> Any:
        return _array_of, (self._file_, self.name)

    def _value(self, file: int) -> int:
        with self._file_._lock:
            if self._handle is None or self._owner != os.getpid():
                library, handle = _functions(), ctypes.c_void_p()
                _check(library.hs_array(file, _Text.of(self.name), ctypes.byref(handle)))
                self._handle, self._owner = _Handle(handle.value or 0, library.hs_release_array), os.getpid()
            return self._handle.value

    def _release(self) -> None:
        if self._handle is not None:
            self._handle.close()
            self._handle = None


def _array_of(file: File, name: str) -> Array:
    return file._array(name)


def _dtype(said: Any) -> np.dtype:
    if said == "string":
        raise NotImplementedError("strings of variable length cannot be read here; use h5py, netCDF4 or zarr")
    if isinstance(said, str):
        return np.dtype("bool" if said == "|b1" else said)
    fields = said["fields"]
    return np.dtype(
        {
            "names": [field["name"] for field in fields],
            "formats": [_dtype(field["type"]) for field in fields],
            "offsets": [field["offset"] for field in fields],
            "itemsize": said["size"],
        }
    )


def _attribute(said: Any) -> Any:
    if isinstance(said, str):
        return said
    if "texts" in said:
        return np.array(said["texts"], dtype=object).reshape(said["shape"])
    values = np.frombuffer(bytes.fromhex(said["data"]), _dtype(said["dtype"])).reshape(said["shape"])
    return values if said["shape"] else values[()]
