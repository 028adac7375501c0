"""A program that ends in the middle of its writes: python ends.py FILE HOW.

It writes datasets that wait in memory, says `ready`, and waits for a signal, or ends by itself.
"""

import os
import signal
import sys
import time

import h5py
import numpy as np

path, how = sys.argv[1:]
if how == "handler":
    signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
file = h5py.File(path, "w")
large = file.create_dataset("large", (8, 1 << 20), "<f4")
for row in range(8):
    large[row] = row + 1
print("ready", flush=True)
if how == "leaves":
    sys.exit(0)
if how == "continues":
    # More of the same is not acknowledged once the signal is there.
    for row in range(8, 100_000):
        large[row % 8] = row % 8 + 1
        time.sleep(0.001)
time.sleep(60)
