"""Vectorized loops over an extent known only at run time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from relayc.dialects.mlir import ir, scf
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import bounds, proves

Values = list[ir.Value]
Block = Callable[[Index, int, int, ir.Value | None, Values], Values]
"""Emits the code for adjacent vectors, from: the index of the first one, lanes per vector, number of vectors, mask of the last one (None:
all lanes), and loop-carried values; returns the updated values."""


@dataclass(frozen=True)
class LaneCover:
    """The cover of an extent by vectors.

    Attributes:
      width: lanes of a vector.
      unroll: vectors per iteration.
      masked: whether the remainder is one masked vector; otherwise it is handled element by element.
      cheap_masks: whether a masked vector costs no more than an unmasked one.
      single: whether one masked vector is known to suffice: there are 1 to `width` elements.
    """

    width: int
    unroll: int = 1
    masked: bool = False
    cheap_masks: bool = False
    single: bool = False


def cover(begin: Index, end: Index, lanes: LaneCover, evaluator: Evaluator, block: Block, values: Sequence[ir.Value] = ()) -> Values:
    """Emits `block` for all elements in [begin, end): unrolled vectors, single vectors, and the remainder.

    No code for a remainder that is known to be empty.
    """
    if lanes.single:
        mask = emit.first_lanes(emit.materialize(end - begin), lanes.width)
        return block(begin, lanes.width, 1, mask, list(values))
    carried, width, step = list(values), lanes.width, lanes.width * lanes.unroll
    low, high = begin.bounds()[0], end.bounds()[1]
    most = bounds(high - low)[1]
    multiple = (end - begin).divisor
    start = emit.materialize(begin)

    def loop(stop: ir.Value, stride: int, last: int, masked: bool = False) -> None:
        """Continues to `stop` with `stride` elements per iteration, in vectors of `last` lanes."""
        nonlocal start, carried
        # Inactive lanes do not extend the bounds of the variable.
        var = Var(low, high - stride, name="l")
        with emit.for_loop(start, stop, stride, var, carried) as made, evaluator.scope():
            inside = carried and list(made.inner_iter_args)
            mask = emit.first_lanes(emit.arith("subi", stop, var.value), last) if masked else None
            inside = block(Index.of(var), last, stride // last, mask, inside)
            if carried:
                emit.yield_values(inside)
        start, carried = stop, carried and list(made.results)

    def whole(unit: int) -> ir.Value:
        """The end of the last full unit."""
        if multiple % unit == 0:
            return stop
        count = emit.arith("subi", stop, start)
        count = emit.arith("andi", emit.larger(count, 0), emit.index_constant(-unit))
        return emit.create("arith.addi", [count.type], [start, count], emit.no_overflow())

    stop = emit.materialize(end)
    if lanes.unroll > 1 and most >= step:
        loop(whole(step), step, width)
        if multiple % step == 0:
            return carried
    if most >= width and not (lanes.masked and lanes.cheap_masks):
        loop(whole(width), width, width)
        if multiple % width == 0:
            return carried
    if lanes.masked:
        loop(stop, width, width, masked=True)
    else:
        loop(stop, 1, 1)
    return carried


def cover_sums(
    extent: Index,
    lanes: LaneCover,
    evaluator: Evaluator,
    block: Block,
    wide: Values,
    narrow: Values,
    neutral: Values,
    combine: Callable[[list[Values]], Values],
) -> tuple[Values, Values]:
    """Emits `block` for all elements in [0, extent) with accumulators: for several vectors at a time, whose accumulators are combined after
    the loop (not worthwhile for short rows), then for single vectors, and for the remainder.

    Args:
      wide: initial vector accumulators.
      narrow: initial scalar accumulators; empty if the remainder is masked.
      neutral: vectors of the neutral element, for the additional accumulators.
      combine: combines several sets of accumulators into one.
    """
    step, count, begin = lanes.width * lanes.unroll, len(wide), Index()
    low, high = extent.bounds()
    if lanes.unroll > 1 and not lanes.single and not proves(lambda: high < step):
        stop = emit.materialize(extent)
        end = emit.arith("andi", stop if proves(lambda: low >= 0) else emit.larger(stop, 0), emit.index_constant(-step))
        branch = scf.IfOp(emit.compare("ne", end, emit.index_constant(0)), [v.type for v in wide], has_else=True)
        with ir.InsertionPoint(branch.else_block):
            emit.yield_values(wide)
        with ir.InsertionPoint(branch.then_block), evaluator.scope():
            var = Var(0, high - step, step=step, name="l")
            with emit.for_loop(0, end, step, var, wide + neutral * (lanes.unroll - 1)) as loop, evaluator.scope():
                emit.yield_values(block(Index.of(var), lanes.width, lanes.unroll, None, list(loop.inner_iter_args)))
            sums = list(loop.results)
            emit.yield_values(combine([sums[i : i + count] for i in range(0, len(sums), count)]))
        wide, begin = list(branch.results), Index.of(Var(0, high, end, name="done"))

    def some(first: Index, width: int, unroll: int, mask: ir.Value | None, values: Values) -> Values:
        if width == 1:
            return values[:count] + block(first, width, unroll, mask, values[count:])
        return block(first, width, unroll, mask, values[:count]) + values[count:]

    found = cover(begin, extent, replace(lanes, unroll=1), evaluator, some, [*wide, *narrow])
    return found[:count], found[count:]
