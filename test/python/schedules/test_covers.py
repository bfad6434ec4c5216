"""Extents that vectors and tiles cover: which of them there are, just below a limit, at it and above it."""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from relayc.dialects.mlir import ir, make_context
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.te.read.graph import NotStructured
from relayc.pipelines.tir.gpu.aligned import load
from relayc.pipelines.tir.lower.shared_memory import LEAST_BYTES, Arena
from relayc.pipelines.tir.values import nest
from relayc.pipelines.tir.values.buffers import MOST_LOCAL_BYTES, local_buffer
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.pipelines.tir.values.lanes import LaneCover, cover, cover_sums
from relayc.symbolic import Range, Ranges, symbol


@contextmanager
def _function() -> Iterator[tuple[ir.Module, ir.Value]]:
    """A module with a function of a size, at whose beginning operations are inserted."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse("func.func @f(%n: index) {\n  return\n}")
        block = module.body.operations[0].regions[0].blocks[0]
        with ir.InsertionPoint.at_block_begin(block):
            yield module, block.arguments[0]


@pytest.mark.parametrize(
    ("lanes", "most", "step", "expected"),
    [
        (LaneCover(4, 2), 8, 1, ["4x2", "4x1", "1x1"]),
        (LaneCover(4, 2), 7, 1, ["4x1", "1x1"]),
        (LaneCover(4, 2), 4, 1, ["4x1", "1x1"]),
        (LaneCover(4, 2), 3, 1, ["1x1"]),
        (LaneCover(4, 2), 16, 8, ["4x2"]),
        (LaneCover(4, 2), 12, 4, ["4x2", "4x1"]),
        (LaneCover(4), 9, 1, ["4x1", "1x1"]),
        (LaneCover(1), 9, 1, ["1x1"]),
        (LaneCover(4, 2, masked=True), 8, 1, ["4x2", "4x1", "4x1 masked"]),
        (LaneCover(4, 2, masked=True, cheap_masks=True), 8, 1, ["4x2", "4x1 masked"]),
        (LaneCover(4, 2, masked=True, single=True), 8, 1, ["4x1 masked"]),
    ],
)
def test_vectors_cover_an_extent(lanes: LaneCover, most: int, step: int, expected: Sequence[str]) -> None:
    found = []

    def block(first: Index, width: int, count: int, mask: ir.Value | None, values: list[ir.Value]) -> list[ir.Value]:
        found.append(f"{width}x{count}{'' if mask is None else ' masked'}")
        return values

    with _function() as (module, size):
        cover(Index(), Index.of(Var(0, most, size, step)), lanes, Evaluator({}), block)
        assert found == expected and module.operation.verify()


@pytest.mark.parametrize(
    ("lanes", "low", "most", "branches", "larger"),
    [
        (LaneCover(4, 2), 0, 7, 0, 0),
        (LaneCover(4, 2), 0, 8, 1, 0),
        (LaneCover(4, 2), -1, 8, 1, 1),
        (LaneCover(4, 1), 0, 8, 0, 0),
        (LaneCover(4, 2, masked=True, single=True), 0, 8, 0, 0),
    ],
)
def test_sums_of_several_vectors_at_a_time_are_in_a_branch(lanes: LaneCover, low: int, most: int, branches: int, larger: int) -> None:
    with _function() as (module, size):
        zero = emit.number(0.0, emit.vector_of(4, ir.F32Type.get()))
        one = emit.number(0.0, ir.F32Type.get())
        wide, narrow = cover_sums(
            Index.of(Var(low, most, size)),
            lanes,
            Evaluator({}),
            lambda first, width, count, mask, values: values,
            [zero],
            [] if lanes.masked else [one],
            [zero],
            lambda sets: sets[0],
        )
        text = str(module)
        assert len(wide) == 1 and len(narrow) == (not lanes.masked) and module.operation.verify()
        # The ends of the loops over single vectors are clipped where the extent may be below 0, too.
        assert text.count("scf.if") == branches and (text.count("arith.maxsi") > text.count("arith.subi")) == bool(larger), text


def test_tiles_that_lie_inside() -> None:
    for low, high, step, extent, count in itertools.product((-2, 0, 1), (0, 2, 3), (-3, -1, 1, 2), (3, 5), range(1, 5)):
        if low > high:
            continue
        shifts = [k * step for k in range(count)]
        inside = [k for k, shift in enumerate(shifts) if low + shift >= 0 and high + shift < extent]
        assert nest.tiles_inside(low, high, step, extent, count) == ((inside[0], inside[-1] + 1) if inside else (count, count))


def test_runs_of_tiles_cover_an_extent_once() -> None:
    def inside(start: int, size: int, count: int) -> tuple[int, int]:
        return nest.tiles_inside(start - 1, start + size, size, 12, count)

    for extent, most in itertools.product(range(1, 14), range(1, 6)):
        tiles = [
            (run.start + i * run.size, run.size, run.is_inside) for run in nest.tile_runs(extent, most, inside) for i in range(run.count)
        ]
        assert [i for start, size, _ in tiles for i in range(start, start + size)] == list(range(extent))
        assert all(is_inside == (start >= 1 and start + size < 12) and size <= most for start, size, is_inside in tiles)
    none = lambda start, size, count: (count, count)  # noqa: E731 (an argument)
    assert len(list(nest.tile_runs(nest.MOST_EDGES, 1, none))) == nest.MOST_EDGES
    with pytest.raises(NotStructured, match=f"{nest.MOST_EDGES + 1} tiles that a padding touches"):
        list(nest.tile_runs(nest.MOST_EDGES + 1, 1, none))


def test_loops_that_give_enough_iterations() -> None:
    assert [nest.leading([2, 3, 4], wanted) for wanted in (1, 2, 3, 6, 7, 24, 25)] == [0, 1, 2, 2, 3, 3, 3]


def test_codes_for_sizes_that_are_known_have_no_branch() -> None:
    n = symbol("n")
    for sizes, expected in (([(n, 4)], ["then"]), ([(n, 11)], ["otherwise"]), ([(4, 4), (3, 4)], ["otherwise"]), ([(4, 4)], ["then"])):
        found: list[str] = []
        with Ranges({"n": Range(4, 10)}):
            nest.at_least(sizes, Evaluator({}), lambda: found.append("then"), lambda: found.append("otherwise"))  # noqa: B023 (called at once)
        assert found == expected


@pytest.mark.parametrize(("work", "is_parallel"), [(99, False), (100, True)])
def test_tasks_are_parallel_from_a_grain_on(work: int, is_parallel: bool) -> None:
    with _function() as (module, _):
        with nest.tasks([Var.below(4)], Evaluator({}), work, 100):
            pass
        assert ("scf.parallel" in str(module), "scf.for" in str(module)) == (is_parallel, not is_parallel)


@pytest.mark.parametrize(
    ("factor", "const", "lanes", "alignment"),
    [(4, 0, 4, 16), (4, 2, 4, 8), (4, 1, 4, None), (2, 0, 4, 8), (1, 0, 4, None), (8, 0, 8, 16), (8, 4, 8, 16), (3, 0, 2, None)],
)
def test_vectors_are_aligned_by_what_all_parts_of_their_place_are_multiples_of(
    factor: int, const: int, lanes: int, alignment: int | None
) -> None:
    with _function() as (_, size):
        buffer = local_buffer(64, ir.F32Type.get())
        start = Index.of(Var(0, 4, size)) * factor + const
        found = load(buffer, start, lanes).owner.attributes
        assert (ir.IntegerAttr(found["alignment"]).value if "alignment" in found else None) == alignment


def test_a_buffer_on_the_stack_has_a_limit() -> None:
    with _function():
        assert local_buffer(MOST_LOCAL_BYTES // 4, ir.F32Type.get()).type.rank == 1
        with pytest.raises(NotStructured, match="elements on the stack"):
            local_buffer(MOST_LOCAL_BYTES // 4 + 1, ir.F32Type.get())


def test_shared_buffers_that_are_live_together_have_memory_of_their_own() -> None:
    """An arena that saves nothing holds none of them."""

    def tensors(*lives: str) -> set[str]:
        steps = [SimpleNamespace(accesses=[SimpleNamespace(buffer=buffer) for buffer in live]) for live in lives]
        return set(Arena(steps, dict.fromkeys("ab", LEAST_BYTES)).tensors)

    assert tensors("ab") == set() and tensors("a", "b") == {"a", "b"} and tensors("a", "b", "a") == set()
