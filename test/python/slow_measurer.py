"""Loaded into a worker of Dask in tests: its measurements take a moment, and their times are made up."""

import time

from relayc.tools.timing import Comparison
from relayc.tune import cluster
from relayc.tune.process import Measurer
from relayc.tune.worker import Measured


class Slow(Measurer):
    """Fewer rows are faster."""

    def measure(self, task, base, candidate, seconds):
        time.sleep(0.3)
        before, after = (1.0 + 0.1 * one.numbers.get("rows", 4) for one in (base, candidate))
        return Measured("measured", Comparison(before, after, before / after, before / after * 0.999, before / after * 1.001, 8))


cluster.WorkerProcess = Slow
