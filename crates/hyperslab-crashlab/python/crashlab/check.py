"""Judges files: reads requests as lines of JSON, answers each with one line. `python -m crashlab.check`

A request: `file`, `flavour` (`h5py`, `netcdf`), `seed`, `length`, `begun`, `acked`, `promise` (`safe`, `log` or `flush`). The answer: `verdict` (`kept`,
`lost`, `unreadable`) and `why`. Each file is opened in a child, since HDF5 may crash, hang or keep what it has seen.
"""

import functools
import json
import os
import select
import signal
import sys

from . import grammar, judge, model, netcdf, view

LIMIT = 20


@functools.lru_cache(maxsize=8)
def known(flavour, seed, length):
    if flavour == "netcdf":
        import netCDF4  # noqa: F401: children would load it each time

        program = netcdf.generate(seed, length)
        return program, netcdf.states(program)
    program = grammar.generate(seed, length)
    return program, model.states(program)


def check(request):
    program, states = known(request["flavour"], request["seed"], request["length"])
    if request["acked"] < 0:
        return {"verdict": "kept", "why": "nothing had been promised"}
    try:
        found = (netcdf if request["flavour"] == "netcdf" else view).read(request["file"])
    except Exception as error:
        return {"verdict": "unreadable", "why": str(error)[:300]}
    expected = judge.Expected(states, program, request["begun"], request["acked"])
    promise = request["promise"]
    if promise == "safe" and request["flavour"] == "netcdf":
        promise = "moment"  # netCDF flushes by itself whenever a definition ends
    why = judge.judge(found, expected, promise)
    return {"verdict": "lost", "why": why} if why else {"verdict": "kept", "why": ""}


def in_child(request):
    known(request["flavour"], request["seed"], request["length"])
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            answer = check(request)
        except BaseException as error:
            answer = {"verdict": "unreadable", "why": "the checker failed: " + repr(error)}
        os.write(writing, json.dumps(answer).encode())
        os._exit(0)
    os.close(writing)
    answer = b""
    while select.select([reading], [], [], LIMIT)[0]:
        part = os.read(reading, 65536)
        if not part:
            break
        answer += part
    else:
        os.kill(child, signal.SIGKILL)
    os.close(reading)
    os.waitpid(child, 0)
    return json.loads(answer) if answer else {"verdict": "unreadable", "why": "HDF5 crashed or hung"}


def main():
    for line in sys.stdin:
        print(json.dumps(in_child(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
