"""Processes that a program makes after it has used HDF5: python forks.py FOLDER METHOD.

Every child opens a file of its own, writes and reads it, and ends as such children do: by `_exit`, or killed with the file open.
"""

import multiprocessing
import os
import signal
import sys
import threading
import time

import h5py
import numpy as np

N = 1 << 18
CHILDREN = 3
DATA = np.arange(N, dtype="<i4")


def create(path):
    file = h5py.File(path, "w")
    file.create_dataset("packed", data=DATA, chunks=(1 << 14,), compression="gzip", shuffle=True)
    file.create_dataset("plain", (N,), "<i4")[...] = DATA
    return file


def check(path):
    with h5py.File(path) as file:
        assert all((file[name][...] == DATA).all() for name in ("packed", "plain")), path


def work(folder, at):
    path = f"{folder}/child{at}.h5"
    create(path).close()
    check(path)


def by_os(folder, at, keeps_open):
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        if keeps_open:
            file = create(f"{folder}/child{at}.h5")
            file.flush()
            open(f"{folder}/ready{at}", "w").close()
            time.sleep(60)
        work(folder, at)
        code = 0
    finally:
        os._exit(code)


def wait_for(path):
    for _ in range(6000):
        if os.path.exists(path):
            return
        time.sleep(0.005)
    raise SystemExit(f"{path} does not come")


def busy(folder, stop):
    """Another thread is in the connector when the process forks."""
    at = 0
    with h5py.File(f"{folder}/busy.h5", "w") as file:
        while not stop.is_set():
            file.create_dataset(f"x{at}", data=DATA[: 1 << 14], chunks=(1 << 12,), compression="gzip")
            at += 1


def main(folder, method):
    create(f"{folder}/parent.h5").close()
    if method in ("fork", "forkserver", "spawn"):
        context = multiprocessing.get_context(method)
        children = [context.Process(target=work, args=(folder, at)) for at in range(CHILDREN)]
        for child in children:
            child.start()
        for child in children:
            child.join()
            assert child.exitcode == 0, child.exitcode
    elif method == "os":
        for at in range(CHILDREN):
            assert os.waitstatus_to_exitcode(os.waitpid(by_os(folder, at, False), 0)[1]) == 0
    elif method == "threads":
        stop = threading.Event()
        thread = threading.Thread(target=busy, args=(folder, stop))
        thread.start()
        for at in range(CHILDREN):
            assert os.waitstatus_to_exitcode(os.waitpid(by_os(folder, at, False), 0)[1]) == 0
        stop.set()
        thread.join()
    elif method == "killed":
        for at in range(CHILDREN):
            child = by_os(folder, at, True)
            wait_for(f"{folder}/ready{at}")
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    check(f"{folder}/parent.h5")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
