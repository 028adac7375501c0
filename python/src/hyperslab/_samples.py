"""Batches of samples of an array, epoch after epoch, for training loops."""

from __future__ import annotations

import os
import queue
import threading
from typing import Any, Iterator

import numpy as np

from ._reader import Array, File


class SampleReader:
    """Batches of an array's samples, which lie along its first dimension; iterating over it is an epoch.

    Every epoch has each sample once, in another order if ``shuffle`` is set; the order follows from ``seed`` and the number
    of the epoch. ``prefetch`` batches are read ahead by a thread. ``cache`` (such as ``"4GiB"``) keeps samples in memory for
    later epochs. With ``part=(k, n)`` only every n-th sample from the k-th on of each epoch's order is read: for worker k of n.

    Works in workers made by fork and by spawn: each process opens the file for itself.

    >>> reader = hyperslab.SampleReader(path, "t", batch=3, shuffle=False)
    >>> [batch.shape for batch in reader]
    [(3, 3), (1, 3)]
    >>> reader.close()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        name: str,
        batch: int = 32,
        shuffle: bool = True,
        prefetch: int = 2,
        seed: int = 0,
        cache: str | None = None,
        part: tuple[int, int] = (0, 1),
        drop_last: bool = False,
    ):
        if batch < 1 or prefetch < 0:
            raise ValueError("batch is at least 1, prefetch at least 0")
        if not 0 <= part[0] < part[1]:
            raise ValueError(f"part=(k, n) is one of n parts, counted from 0, not {part}")
        self.path, self.name = os.fspath(path), name
        self.batch, self.shuffle, self.prefetch, self.seed = batch, shuffle, prefetch, seed
        self.part, self.drop_last = part, drop_last
        self._cache = cache
        self._file: File | None = None
        self._owner = 0
        #: The number of the next epoch.
        self.epoch = 0

    @property
    def array(self) -> Array:
        """The array, opened in this process."""
        if self._file is None or self._owner != os.getpid():
            with File(self.path) as file:
                stack = f"cache(memory={self._cache})/{file.stack}" if self._cache else file.stack
            self._file, self._owner = File(self.path, stack), os.getpid()
        return self._file[self.name]  # type: ignore[return-value]

    def order(self, epoch: int) -> np.ndarray:
        """Samples of this part in the order of an epoch."""
        samples = np.arange(len(self.array))
        if self.shuffle:
            np.random.default_rng((self.seed, epoch)).shuffle(samples)
        return samples[self.part[0] :: self.part[1]]

    def __len__(self) -> int:
        """Batches of an epoch."""
        samples = len(range(self.part[0], len(self.array), self.part[1]))
        return samples // self.batch if self.drop_last else -(-samples // self.batch)

    def __iter__(self) -> Iterator[np.ndarray]:
        epoch, self.epoch = self.epoch, self.epoch + 1
        order = self.order(epoch)
        batches = [order[n * self.batch : (n + 1) * self.batch] for n in range(len(self))]
        array = self.array
        if self.prefetch == 0:
            return (array.take(batch) for batch in batches)
        return _ahead(array, batches, self.prefetch)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_file": None, "_owner": 0}

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None and self._owner == os.getpid():
            self._file.close()
        self._file = None


def _ahead(array: Array, batches: list[np.ndarray], depth: int) -> Iterator[np.ndarray]:
    """Reads batches on a thread, at most ``depth`` ahead. The thread ends when the iterator does."""
    ready: queue.Queue[Any] = queue.Queue(depth)
    stopped = threading.Event()

    def put(item: Any) -> bool:
        while not stopped.is_set():
            try:
                ready.put(item, timeout=0.1)
                return True
            except queue.Full:
                pass
        return False

    def read() -> None:
        for batch in batches:
            try:
                item: Any = array.take(batch)
            except BaseException as error:
                put(error)
                return
            if not put(item):
                return

    thread = threading.Thread(target=read, name="hyperslab-samples", daemon=True)
    thread.start()
    try:
        for _ in batches:
            item = ready.get()
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
        thread.join()
