"""Puts the connector under HDF5 files of this process, and takes it away again.

Where no libhdf5 is loaded yet, variables of the environment do it: libhdf5 reads them when it starts. Where h5py has
loaded its libhdf5 already, the access list of each file that h5py opens from then on names the connector.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import _hosts
from ._program import ProgramFailed, capture, plugin_folder

# Libraries that make access lists of their own: once they have started HDF5, nothing reaches the files that they open.
_NOT_REACHED_LATER = {"netCDF4": "netCDF4", "tables": "PyTables"}
_VARIABLES = ("HDF5_PLUGIN_PATH", "HDF5_VOL_CONNECTOR")
_SETTINGS = (
    "mode",
    "memory",
    "threads",
    "log_dir",
    "log_limit",
    "durability",
    "on_log_failure",
    "lag",
    "state",
    "explain",
    "stats",
)
_lock = threading.RLock()
_active: "Connector | None" = None


class TooLate(RuntimeError):
    """A library that was imported before cannot be given the connector any more."""


@dataclass
class Connector:
    """The connector as it is enabled: what ``enable`` returns, and a context manager that disables it at its end."""

    settings: dict[str, str]
    #: The HDF5 of h5py if it was loaded already, ``None`` if the environment does all.
    h5py_hdf5: str | None = None
    #: Folder of the statistics of this process and its children.
    _statistics: Path | None = None
    _before: dict[str, str | None] = field(default_factory=dict, repr=False)
    _outer: "Connector | None" = field(default=None, repr=False)

    @property
    def mode(self) -> str:
        """The modes, such as ``codec+async``."""
        return self.settings["mode"]

    def __enter__(self) -> "Connector":
        return self

    def __exit__(self, *_: Any) -> None:
        with _lock:
            if _active is self:
                _leave(self)


def enable(mode: str = "codec", *, partly: bool = False, **settings: Any) -> Connector:
    """Accelerates every HDF5 file that is opened from now on, here and in processes that this one starts.

    ``mode`` and ``settings`` are those of ``hyperslab run``: ``memory="1GiB"``, ``threads=4``, ``log_dir="/nvme"``,
    ``log_limit``, ``durability``, ``on_log_failure``, ``lag``, ``state``, ``explain``. Files that are open already stay
    as they are.

    Works before or after ``import h5py``. netCDF4 and PyTables must be imported afterwards; if one of them was imported
    before, ``TooLate`` is raised and nothing is changed, unless ``partly=True`` asks for h5py's files alone.

    Returns a ``Connector``, also to be used as ``with hyperslab.enable(): ...``.

    >>> import h5py
    >>> with hyperslab.enable("codec", threads=2) as connector:
    ...     with h5py.File(new, "w") as file:
    ...         _ = file.create_dataset("x", data=range(1000), chunks=(100,), compression="gzip")
    >>> connector.mode, hyperslab.enabled()
    ('codec', None)
    """
    global _active
    for name in settings:
        if name not in _SETTINGS:
            raise TypeError(f"enable() has no setting {name!r}; there are {', '.join(_SETTINGS)}")
    with _lock:
        folder = plugin_folder()
        _refuse_others(partly)
        values = {"mode": mode} | {name: _text(value) for name, value in settings.items() if value is not None}
        statistics = None
        if "stats" not in values:
            statistics = _statistics_folder()
            values["stats"] = str(statistics / "%p.json")
        host = _hosts.h5py_host()
        if host is not None:
            # Checks the settings, too, before anything is changed.
            host.use("hyperslab", folder, _string(values))
        else:
            _refuse_wrong(values)
        outer = _active
        connector = Connector(values, host.version if host else None, statistics, _outer=outer)
        connector._before = _set_environment(folder, values)
        _active = connector
        return connector


def disable() -> None:
    """Files that are opened from now on are left to HDF5 alone, here and in processes that this one starts.

    >>> _ = hyperslab.enable("codec+async")
    >>> hyperslab.disable()
    >>> hyperslab.enabled() is None
    True
    """
    with _lock:
        while _active is not None:
            _leave(_active)
        if os.environ.get("HDF5_VOL_CONNECTOR", "").split(" ")[0] == "hyperslab":
            # It was there when this process began, such as by `hyperslab run`.
            del os.environ["HDF5_VOL_CONNECTOR"]
        host = _hosts.h5py_host()
        if host is not None:
            host.use("native", None, "")


def enabled() -> Connector | None:
    """The connector as it is enabled for files that are opened now, or ``None``.

    >>> with hyperslab.enable("safe"):
    ...     hyperslab.enabled().mode
    'safe'
    """
    with _lock:
        if _active is not None:
            return _active
        named = os.environ.get("HDF5_VOL_CONNECTOR", "").split(" ")
        if named[0] != "hyperslab" or _hosts.h5py_is_native():
            return None
        values = {key: os.environ[_variable(key)] for key in _SETTINGS if _variable(key) in os.environ}
        values |= dict(part.split("=", 1) for part in "".join(named[1:]).split(";") if "=" in part)
        return Connector({"mode": "codec"} | values)


def flush() -> int:
    """Flushes every file that h5py has open for writing; says how many these were. Raises what a flush raises, after all.

    >>> hyperslab.flush()
    0
    """
    if "h5py" not in sys.modules:
        return 0
    import h5py

    errors = []
    flushed = 0
    for identifier in h5py.h5f.get_obj_ids(types=h5py.h5f.OBJ_FILE):
        if identifier.get_intent() & h5py.h5f.ACC_RDWR:
            try:
                h5py.h5f.flush(identifier)
                flushed += 1
            except Exception as error:  # told below
                errors.append(error)
    if errors:
        raise errors[0]
    return flushed


def _leave(connector: Connector) -> None:
    """Ends what `enable` began: the outer one, or HDF5 alone, holds for files opened afterwards."""
    global _active
    for name, value in connector._before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    _active = connector._outer
    host = _hosts.h5py_host()
    if host is None:
        return
    if _active is not None:
        host.use("hyperslab", plugin_folder(), _string(_active.settings))
    elif os.environ.get("HDF5_VOL_CONNECTOR", "").startswith("hyperslab"):
        host.forget()
    else:
        host.use("native", None, "")


def _refuse_wrong(values: dict[str, str]) -> None:
    """Has the program look at settings that no libhdf5 is there to read yet; the others are told when one starts."""
    options = [f"--{key.replace('_', '-')}={values[key]}" for key in ("mode", "memory", "threads", "log_dir") if key in values]
    try:
        capture(["run", "--quiet", *options, "--", "true"])
    except ProgramFailed as error:
        raise ValueError(error.output.strip()) from None


def _refuse_others(partly: bool) -> None:
    running = os.environ.get("HDF5_VOL_CONNECTOR", "").split(" ")[0]
    if running and running != "hyperslab":
        raise TooLate(
            f"HDF5_VOL_CONNECTOR names another connector: {running}\n  try: unset it before this process starts"
        )
    late = [name for module, name in _NOT_REACHED_LATER.items() if module in sys.modules]
    if late and running != "hyperslab" and not partly:
        names = " and ".join(late)
        raise TooLate(
            f"{names} was imported before: the files that it opens cannot be given the connector any more\n"
            f"  try: restart, and call hyperslab.enable() before importing {names}; or partly=True for h5py alone"
        )


def _set_environment(folder: Path, values: dict[str, str]) -> dict[str, str | None]:
    """Sets the variables for libraries and processes that start later; gives back what was there."""
    others = [part for part in os.environ.get("HDF5_PLUGIN_PATH", "/usr/local/hdf5/lib/plugin").split(":") if part]
    path = ":".join([str(folder), *(part for part in others if part != str(folder))])
    new: dict[str, str | None] = {"HDF5_PLUGIN_PATH": path, "HDF5_VOL_CONNECTOR": "hyperslab"}
    for name in _SETTINGS:
        new[_variable(name)] = values.get(name)
    before = {name: os.environ.get(name) for name in new}
    for name, value in new.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    return before


def _variable(key: str) -> str:
    return "HYPERSLAB_" + key.upper()


def _string(values: dict[str, str]) -> str:
    return ";".join(f"{key}={value}" for key, value in values.items())


def _text(value: Any) -> str:
    text = os.fspath(value) if isinstance(value, os.PathLike) else str(value)
    if ";" in text or "\0" in text:
        raise ValueError(f"{text!r}: settings cannot hold a semicolon")
    return text


_statistics: Path | None = None
_statistics_owner = 0


def _statistics_folder() -> Path:
    """A folder for the statistics of this process and its children, removed when it ends."""
    global _statistics, _statistics_owner
    if _statistics is None or not _statistics.is_dir():
        import atexit

        _statistics = Path(tempfile.mkdtemp(prefix="hyperslab-stats-"))
        _statistics_owner = os.getpid()
        atexit.register(_remove_statistics)
    return _statistics


def _remove_statistics() -> None:
    # A forked child inherits this function, not the folder.
    if _statistics is not None and os.getpid() == _statistics_owner:
        shutil.rmtree(_statistics, ignore_errors=True)
