"""Fast, predictable and safe array I/O, from Python.

``hyperslab.enable()`` puts the Hyperslab connector under every HDF5 file that is opened from then on, in this process and
in those that it starts:

>>> import hyperslab
>>> hyperslab.enable(mode="codec+async")            # doctest: +SKIP
>>> import h5py                                     # before or after
>>> with h5py.File("run.h5", "w") as file:          # doctest: +SKIP
...     file.create_dataset("t", data=t, chunks=True, compression="gzip")
>>> print(hyperslab.stats())                        # doctest: +SKIP

The rest of the module runs the ``hyperslab`` program, which comes with the package, and gives back what it found.
"""

from ._commands import Report, advise, bench, doctor, predict, recover, report, tune
from ._connector import Connector, TooLate, disable, enable, enabled, flush
from ._program import ProgramFailed, ProgramMissing, program, version
from ._stats import Stats, stats

__all__ = [
    "Array",
    "Connector",
    "File",
    "Group",
    "ProgramFailed",
    "ProgramMissing",
    "Report",
    "SampleReader",
    "Stats",
    "TooLate",
    "advise",
    "bench",
    "disable",
    "doctor",
    "enable",
    "enabled",
    "flush",
    "open",
    "predict",
    "program",
    "recover",
    "report",
    "stats",
    "tune",
    "version",
]


# The reader needs numpy, which the rest of this module does without.
_READER = {"open": "_reader", "File": "_reader", "Group": "_reader", "Array": "_reader", "SampleReader": "_samples"}


def __getattr__(name: str):
    if name in _READER:
        from importlib import import_module

        return getattr(import_module(f".{_READER[name]}", __name__), name)
    raise AttributeError(f"module 'hyperslab' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_READER])


def load_ipython_extension(shell):
    """What ``%load_ext hyperslab`` calls: adds the magics ``%hyperslab`` and ``%%hyperslab``."""
    from ._magic import register

    register(shell)
