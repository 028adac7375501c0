"""The libhdf5 that h5py has loaded, and the connector of the files that h5py opens with it."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

_OLDEST = (1, 14, 0)
_host: "_H5pyHost | None" = None


def h5py_host() -> "_H5pyHost | None":
    """The libhdf5 of h5py if h5py is imported; `None` otherwise, when the environment will reach it."""
    global _host
    if "h5py" not in sys.modules:
        return None
    if _host is None:
        _host = _H5pyHost()
    return _host


def h5py_is_native() -> bool:
    """Whether h5py's files were given to HDF5 alone."""
    return _host is not None and _host.connector_name == "native"


class _H5pyHost:
    def __init__(self) -> None:
        import h5py
        import h5py._hl.files as files

        # Symbols are looked up in what this extension is linked to, which is the right one of several libhdf5.
        self._library = ctypes.CDLL(h5py.defs.__file__)
        self.version = h5py.version.hdf5_version
        self._phil = h5py._objects.phil
        self._files = files
        self._make_fapl = files.make_fapl
        self.connector_name: str | None = None
        self._connector = -1
        self._info = ctypes.c_void_p()
        self._registered: dict[str, int] = {}
        parts = tuple(int(part) for part in self.version.split("-")[0].split(".")[:3])
        if parts < _OLDEST:
            raise RuntimeError(
                f"h5py {h5py.__version__} has HDF5 {self.version}; connectors need 1.14 or newer\n"
                "  try: pip install --upgrade h5py"
            )
        self._declare()

    def use(self, name: str, folder: Path | None, string: str) -> None:
        """Every file that h5py opens from now on has this connector. Raises, and changes nothing, if HDF5 refuses."""
        with self._phil:
            connector = self._register(name, folder)
            info = ctypes.c_void_p()
            if string:
                self._check(
                    self._library.H5VLconnector_str_to_info(string.encode(), connector, ctypes.byref(info)),
                    f"the connector refuses the settings {string!r}",
                )
                self._check_settings(info, connector, string)
            if self._info:
                self._library.H5VLfree_connector_info(self._connector, self._info)
            self._connector, self._info, self.connector_name = connector, info, name
            self._files.make_fapl = self._make_fapl_with_connector

    def forget(self) -> None:
        """h5py's files have again what the environment said when HDF5 started."""
        with self._phil:
            self._files.make_fapl = self._make_fapl
            self.connector_name = None

    def _make_fapl_with_connector(self, *arguments: Any, **keywords: Any) -> Any:
        access = self._make_fapl(*arguments, **keywords)
        driver = arguments[0] if arguments else keywords.get("driver")
        # Other drivers are passed on by the connector, and "hyperslab" would only cost them.
        if driver in (None, "sec2"):
            self._check(
                self._library.H5Pset_vol(access.id, self._connector, self._info),
                "HDF5 does not take the connector for this file",
            )
        return access

    def _check_settings(self, info: ctypes.c_void_p, connector: int, string: str) -> None:
        """A connector that understands its settings repeats them; one that does not says why and has `mode=off`."""
        said = ctypes.c_void_p()
        self._check(
            self._library.H5VLconnector_info_to_str(info, connector, ctypes.byref(said)), "HDF5 cannot read settings"
        )
        text = ctypes.string_at(said.value).decode() if said.value else ""
        self._library.H5free_memory(said)
        if text.startswith("mode=off") and "mode=off" not in string:
            self._library.H5VLfree_connector_info(connector, info)
            raise ValueError(f"the settings {string!r} make no sense to the connector; standard error says why")

    def _register(self, name: str, folder: Path | None) -> int:
        if name not in self._registered:
            if folder is not None:
                self._check(self._library.H5PLprepend(str(folder).encode()), f"HDF5 does not take plugins of {folder}")
            identifier = self._library.H5VLregister_connector_by_name(name.encode(), 0)
            self._check(identifier, f"HDF5 {self.version} cannot load the connector {name}")
            self._registered[name] = identifier
        return self._registered[name]

    def _declare(self) -> None:
        library, identifier, text, pointer = self._library, ctypes.c_int64, ctypes.c_char_p, ctypes.c_void_p
        for name, result, arguments in (
            ("H5PLprepend", ctypes.c_int, [text]),
            ("H5VLregister_connector_by_name", identifier, [text, identifier]),
            ("H5VLconnector_str_to_info", ctypes.c_int, [text, identifier, ctypes.POINTER(pointer)]),
            ("H5VLfree_connector_info", ctypes.c_int, [identifier, pointer]),
            ("H5VLconnector_info_to_str", ctypes.c_int, [pointer, identifier, ctypes.POINTER(pointer)]),
            ("H5free_memory", ctypes.c_int, [pointer]),
            ("H5Pset_vol", ctypes.c_int, [identifier, identifier, pointer]),
        ):
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments

    @staticmethod
    def _check(result: int, message: str) -> None:
        if result < 0:
            raise RuntimeError(message)
