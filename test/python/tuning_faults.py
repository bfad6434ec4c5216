"""A worker of the tuner whose candidates have faults, by their number of rows."""

import os
import signal
import time

import numpy as np

from relayc.tune import worker

_compiled = worker.compiled


def compiled(task, candidate, params):
    rows = candidate.numbers.get("rows")
    if rows == 2:
        os.kill(os.getpid(), signal.SIGSEGV)
    elif rows == 3:
        time.sleep(1000)
    elif rows == 5:
        np.ones(64 << 30, np.uint8)
    elif rows == 6:
        raise ValueError("six rows")
    return _compiled(task, candidate, params)


class Bench(worker.Bench):
    def _made(self, task, candidate):
        specs, results, call = super()._made(task, candidate)
        return specs, [array + (candidate.numbers.get("rows") == 4) for array in results], call


def main():
    worker.compiled = compiled
    worker.main(Bench())
