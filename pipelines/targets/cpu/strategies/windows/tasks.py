"""What the strategies of windows share: runs of rows that are tasks."""

from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cpu.strategies.windows.taps import Bounds
from relayc.symbolic import Dim, Size, ceil_div, proves

Point = dict[Var, Index]


def run_length(extent: int, pieces: int) -> int:
    """Length of the runs that cut `extent` in about `pieces`."""
    return ceil_div(extent, max(1, pieces))


def run_bounds(run: Index, length: int, extent: Size) -> Bounds:
    """The steps of a run, the last of which may be shorter."""
    if proves(lambda: length >= extent):
        return 0, extent
    low, high = emit.materialize(run * length), emit.materialize(run * length + length)
    return low, emit.smaller(high, extent) if isinstance(extent, Dim) or extent % length else high
