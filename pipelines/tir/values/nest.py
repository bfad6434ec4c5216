"""Control flow whose bodies are scopes of an evaluator: nested and parallel loops, branches, extents cut in tiles."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from relayc.dialects.mlir import ir, scf
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, even_runs
from relayc.pipelines.te.read.graph import NotStructured
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Size, ceil_div, guess, proves


@contextmanager
def serial(variables: Sequence[Var], evaluator: Evaluator) -> Iterator[None]:
    """Loops from 0 to the upper bounds of variables, outermost first."""
    with ExitStack() as nest:
        for var in variables:
            nest.enter_context(emit.for_loop(0, var.extent, 1, var))
            nest.enter_context(evaluator.scope())
        yield


def parallel(variables: Sequence[Var], evaluator: Evaluator, body: Callable[[], None], work: Size = 0, grain: int = 0) -> None:
    """One parallel loop over the box of variables; where the work is a symbolic size, from `grain` on (see emit.parallel_loop)."""

    def inside() -> None:
        with evaluator.scope():
            body()

    emit.parallel_loop(variables, inside, work, grain)


def tasks(
    variables: Sequence[Var],
    evaluator: Evaluator,
    is_parallel: bool,
    body: Callable[[], None],
    begin: Callable[[], None] = lambda: None,
    work: Size = 0,
    grain: int = 0,
) -> None:
    """Independent iterations over a box, in one parallel loop (of at least one variable) where that is asked for.

    Args:
      begin: is emitted first in the code of each thread: makes buffers.
      work, grain: where the work is a symbolic size, the loop is parallel from `grain` on only.
    """
    if is_parallel and variables:

        def inside() -> None:
            begin()
            body()

        parallel(variables, evaluator, inside, work, grain)
        return
    begin()
    with serial(variables, evaluator):
        body()


def box(
    extents: Sequence[Size],
    evaluator: Evaluator,
    body: Callable[[list[Index]], None],
    parallel_loops: int = 0,
    begin: Callable[[], None] = lambda: None,
    work: Size = 0,
    grain: int = 0,
) -> None:
    """`body(indices)` for every point of a box; the first `parallel_loops` loops are one parallel loop, and loops of one iteration none.

    Args:
      begin: is emitted first in the code of each thread: makes buffers.
      work, grain: where the work is a symbolic size, the loop is parallel from `grain` on only.
    """
    variables = [Var(0, extent - 1, name=f"d{d}") for d, extent in enumerate(extents)]
    together, rest = ([v for v in some if v.extent != 1] for some in (variables[:parallel_loops], variables[parallel_loops:]))

    def inside() -> None:
        begin()
        with serial(rest, evaluator):
            body([Index.of(v) if v.extent != 1 else Index() for v in variables])

    if together:
        parallel(together, evaluator, inside, work, grain)
    else:
        with evaluator.scope():
            inside()


def when(condition: ir.Value, evaluator: Evaluator, then: Callable[[], None], otherwise: Callable[[], None] | None = None) -> None:
    """A branch."""
    branch = scf.IfOp(condition, has_else=otherwise is not None)
    for region, code in ((branch.then_block, then), (branch.else_block if otherwise is not None else None, otherwise)):
        if region is not None and code is not None:
            with ir.InsertionPoint(region), evaluator.scope():
                code()
                emit.yield_values([])


def either(condition: ir.Value, evaluator: Evaluator, then: Callable[[], list[ir.Value]], otherwise: Sequence[ir.Value]) -> list[ir.Value]:
    """The values that `then` emits where a condition holds, else those given."""
    branch = scf.IfOp(condition, [v.type for v in otherwise], has_else=True)
    with ir.InsertionPoint(branch.then_block), evaluator.scope():
        emit.yield_values(then())
    with ir.InsertionPoint(branch.else_block):
        emit.yield_values(otherwise)
    return list(branch.results)


def at_least(sizes: Sequence[tuple[Size, int]], evaluator: Evaluator, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
    """One of two codes: whether each size is at least a number. Where that is known there is no branch."""
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
    """How many leading loops have at least `wanted` iterations together where symbols have their typical sizes, at most all of them."""
    count, iterations = 0, 1
    while count < len(extents) and iterations < wanted:
        iterations *= guess(extents[count])
        count += 1
    return count


@contextmanager
def blocks(extent: Size, size: int, evaluator: Evaluator) -> Iterator[Index]:
    """A loop over blocks of `size` that cover an extent, the last of which starts early rather than ending late; gives where one starts."""
    count = ceil_div(extent, size)
    var = Var(0, count - 1, name="block")
    with emit.for_loop(0, count, 1, var):
        start = emit.at_most(Index.of(var) * size, extent - size)
        with evaluator.scope():
            yield start


MOST_EDGES = 1 << 10
"""Tiles at the ends of an extent, each of which has code of its own."""


@dataclass(frozen=True)
class TileRun:
    """Equal tiles one after the other, from `start` on. A run of several is inside all of it (see `tile_runs`)."""

    start: int
    size: int
    count: int
    is_inside: bool


def tiles_inside(low: int, high: int, step: int, extent: int, count: int) -> tuple[int, int]:
    """Of `count` tiles, which reach from index `low` to `high` and each `step` further than the one before, the first that stays in
    [0, extent), and the one behind the last of them; both are `count` where there is none."""
    below, above = low, extent - 1 - high
    if step < 0:
        below, above, step = above, below, -step
    # Tile k has below + k * step before it and above - k * step behind it.
    first, end = max(0, -(below // step)), min(count, above // step + 1)
    return (first, end) if first < end else (count, count)


def tile_runs(extent: int, most: int, inside: Callable[[int, int, int], tuple[int, int]]) -> Iterator[TileRun]:
    """Runs of tiles of at most `most` that cover an extent evenly: those that are inside together, the others by themselves.

    Args:
      inside: gives, for (start, size, count) of equal tiles, the first one that is inside, and the one behind the last.

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
    """A loop over tiles of a run, where there are several; gives where one starts."""
    start, size, count = run.start, run.size, run.count
    if count == 1:
        with evaluator.scope():
            yield Index(start)
        return
    var = Var(start, start + (count - 1) * size, step=size if start % size == 0 else 1, name="tile")
    with emit.for_loop(start, start + count * size, size, var), evaluator.scope():
        yield Index.of(var)
