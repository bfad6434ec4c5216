"""Control flow whose bodies are scopes of an evaluator: nested and parallel loops, branches, tiled extents."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from relayc.dialects.mlir import ir, scf
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, even_runs
from relayc.pipelines.te.read.graph import NotStructured
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Size, bounds, ceil_div, guess, proves


@contextmanager
def serial(variables: Sequence[Var], evaluator: Evaluator) -> Iterator[None]:
    """Loops from 0 to the upper bounds of variables, outermost first."""
    with ExitStack() as nest:
        for var in variables:
            nest.enter_context(emit.for_loop(0, var.extent, 1, var))
            nest.enter_context(evaluator.scope())
        yield


@contextmanager
def loop(
    low: ir.Value | Size, high: ir.Value | Size, evaluator: Evaluator, step: int = 1, below: Size | None = None, name: str = "i"
) -> Iterator[Index]:
    """A loop from `low` to before `high`, which yields its index.

    Args:
      below: the indices are known to be from 0 to before this; by default from `low` to before `high`, which is a size then.
      name: of the variable of the loop.
    """
    var = _counter(low, high, step, name) if below is None else _counter(0, below, step, name)
    with emit.for_loop(low, high, step, var), evaluator.scope():
        yield Index.of(var)


@contextmanager
def carrying(
    low: ir.Value | Size,
    high: ir.Value | Size,
    evaluator: Evaluator,
    values: Sequence[ir.Value],
    step: int = 1,
    below: Size | None = None,
    name: str = "i",
) -> Iterator[tuple[Index, emit.Serial]]:
    """The same loop with values that an iteration passes to the next; yields the loop, too. Its body ends in `emit.yield_values`."""
    var = _counter(low, high, step, name) if below is None else _counter(0, below, step, name)
    with emit.for_loop(low, high, step, var, values) as made, evaluator.scope():
        yield Index.of(var), made


def _counter(low: ir.Value | Size, high: ir.Value | Size, step: int, name: str) -> Var:
    """The variable of a loop whose indices are from `low`, or from 0 where that is a value, to before `high`."""
    assert not isinstance(high, ir.Value), "what is the loop's index below?"
    first = 0 if isinstance(low, ir.Value) else low
    last = first + (high - 1 - first) // step * step
    return Var(first, last, step=step if first is low and first % step == 0 else 1, name=name)


@contextmanager
def parallel(variables: Sequence[Var], evaluator: Evaluator, work: Size = 0, grain: int = 0) -> Iterator[None]:
    """One parallel loop over a box of variables; if `work` is a symbolic size, parallel only from `grain` on (see emit.parallel_loop)."""
    with emit.parallel_loop(variables, work, grain), evaluator.scope():
        yield


@contextmanager
def tasks(
    variables: Sequence[Var],
    evaluator: Evaluator,
    work: Size,
    grain: int,
    begin: Callable[[], None] = lambda: None,
    is_parallel: bool | None = None,
) -> Iterator[None]:
    """Independent iterations over a box, in one parallel loop (of at least one variable) if `is_parallel`.

    Args:
      work, grain: if `work` is a symbolic size, the loop is parallel only from `grain` on.
      begin: emitted first in the code of each thread, to create buffers.
      is_parallel: whether the work may reach the grain, by default.
    """
    if is_parallel is None:
        is_parallel = bounds(work)[1] >= grain
    if is_parallel and variables:
        with parallel(variables, evaluator, work, grain):
            begin()
            yield
        return
    begin()
    with serial(variables, evaluator):
        yield


@contextmanager
def box(
    extents: Sequence[Size],
    evaluator: Evaluator,
    parallel_loops: int = 0,
    begin: Callable[[], None] = lambda: None,
    work: Size = 0,
    grain: int = 0,
) -> Iterator[list[Index]]:
    """Loops over the points of a box, which yield the indices of one; the first `parallel_loops` loops become one parallel loop; loops of
    one iteration are omitted.

    Args:
      begin: emitted first in the code of each thread, to create buffers.
      work, grain: if `work` is a symbolic size, the loop is parallel only from `grain` on.
    """
    variables = [Var.below(extent, name=f"d{d}") for d, extent in enumerate(extents)]
    together, rest = ([v for v in some if v.extent != 1] for some in (variables[:parallel_loops], variables[parallel_loops:]))
    with parallel(together, evaluator, work, grain) if together else evaluator.scope():
        begin()
        with serial(rest, evaluator):
            yield [Index.of(v) if v.extent != 1 else Index() for v in variables]


def carried(
    count: Size,
    name: str,
    evaluator: Evaluator,
    values: Sequence[ir.Value],
    body: Callable[[Index, list[ir.Value]], Sequence[ir.Value]],
    unrolled: bool = False,
) -> list[ir.Value]:
    """The values after `count` iterations of `body`, which gives those for the next iteration.

    Args:
      name: of the variable of the loop.
      unrolled: whether the iterations are emitted one after the other, without a loop.
    """
    if unrolled:
        for number in range(count):
            values = body(Index(number), list(values))
        return list(values)
    with carrying(0, count, evaluator, values, name=name) as (at, made):
        emit.yield_values(body(at, list(made.inner_iter_args)))
    return list(made.results)


@contextmanager
def if_all(conditions: Sequence[ir.Value], evaluator: Evaluator) -> Iterator[None]:
    """Context in which code is emitted in a branch that runs if all conditions hold; no branch without conditions."""
    with ExitStack() as branch:
        if conditions:
            branch.enter_context(emit.if_all(conditions))
            branch.enter_context(evaluator.scope())
        yield


@contextmanager
def if_inside(axes: Sequence[tuple[Index, Size, Size]], evaluator: Evaluator) -> Iterator[None]:
    """The same, where indices are below extents: (index, extent, size of a tile). An extent of whole tiles needs no condition."""
    conditions = [
        emit.below(index, extent)
        for index, extent, size in axes
        if not proves(lambda: extent % size == 0)  # noqa: B023 (asked at once)
    ]
    with if_all(conditions, evaluator):
        yield


def when(condition: ir.Value, evaluator: Evaluator, then: Callable[[], None], otherwise: Callable[[], None] | None = None) -> None:
    """A branch."""
    branch = scf.IfOp(condition, has_else=otherwise is not None)
    for region, code in ((branch.then_block, then), (branch.else_block if otherwise is not None else None, otherwise)):
        if region is not None and code is not None:
            with ir.InsertionPoint(region), evaluator.scope():
                code()
                emit.yield_values([])


def either(condition: ir.Value, evaluator: Evaluator, then: Callable[[], list[ir.Value]], otherwise: Sequence[ir.Value]) -> list[ir.Value]:
    """The values that `then` emits if a condition holds, otherwise the given ones."""

    def inside() -> list[ir.Value]:
        with evaluator.scope():
            return then()

    return emit.chosen(condition, inside, otherwise)


def at_least(sizes: Sequence[tuple[Size, int]], evaluator: Evaluator, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
    """Selects one of two codes by whether each size is at least a number; no branch if this is known."""
    open_: list[ir.Value] = []
    for size, least in sizes:
        if proves(lambda: size < least):  # noqa: B023 (asked at once)
            otherwise()
            return
        if not proves(lambda: size >= least):  # noqa: B023 (asked at once)
            open_.append(emit.compare("sge", emit.index_constant(size), emit.index_constant(least)))
    if not open_:
        then()
        return
    when(emit.all_of(open_), evaluator, then, otherwise)


def leading(extents: Sequence[Size], wanted: int) -> int:
    """The number of leading loops that together have at least `wanted` iterations for typical sizes of symbols, at most all of them."""
    count, iterations = 0, 1
    while count < len(extents) and iterations < wanted:
        iterations *= guess(extents[count])
        count += 1
    return count


@contextmanager
def blocks(extent: Size, size: int, evaluator: Evaluator) -> Iterator[Index]:
    """A loop over blocks of `size` that cover an extent; the last block overlaps the previous one instead of exceeding the extent. Yields
    the start of a block."""
    with loop(0, ceil_div(extent, size), evaluator, name="block") as number:
        yield emit.at_most(number * size, extent - size)


MOST_EDGES = 1 << 10
"""Limit of the edge tiles of an extent, which each have their own code."""


@dataclass(frozen=True)
class TileRun:
    """Adjacent equal tiles, from `start` on. All tiles of a run of several are inside the input (see `tile_runs`)."""

    start: int
    size: int
    count: int
    is_inside: bool


def tiles_inside(low: int, high: int, step: int, extent: int, count: int) -> tuple[int, int]:
    """Of `count` tiles, which cover indices `low` to `high`, shifted by `step` from tile to tile: the first one inside [0, extent), and the
    one after the last; both are `count` if there is none."""
    below, above = low, extent - 1 - high
    if step < 0:
        below, above, step = above, below, -step
    # Tile k has a margin of below + k * step before it and above - k * step after it.
    first, end = max(0, -(below // step)), min(count, above // step + 1)
    return (first, end) if first < end else (count, count)


def tile_runs(extent: int, most: int, inside: Callable[[int, int, int], tuple[int, int]]) -> Iterator[TileRun]:
    """Runs of tiles of at most `most` that cover an extent evenly: tiles inside the input together, the others one by one.

    Args:
      inside: maps (start, size, count) of equal tiles to the first one inside, and the one after the last.

    Raises:
      NotStructured: more than MOST_EDGES tiles are not inside.
    """
    start = 0
    for size, count in even_runs(extent, most):
        first, end = inside(start, size, count)
        if count - (end - first) > MOST_EDGES:
            raise NotStructured(f"{count - (end - first)} tiles that a padding touches")
        for position in range(first):
            yield TileRun(start + position * size, size, 1, False)
        if first < end:
            yield TileRun(start + first * size, size, end - first, True)
        for position in range(end, count):
            yield TileRun(start + position * size, size, 1, False)
        start += count * size


@contextmanager
def run_of_tiles(run: TileRun, evaluator: Evaluator) -> Iterator[Index]:
    """A loop over the tiles of a run, if there are several; yields the start of a tile."""
    start, size, count = run.start, run.size, run.count
    if count == 1:
        with evaluator.scope():
            yield Index(start)
        return
    with loop(start, start + count * size, evaluator, step=size, name="tile") as at:
        yield at
