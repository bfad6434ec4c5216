"""Attention of symbolic sizes at, below and above every limit that its own plan computes, and beyond 1,024 and 2,048 queries."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from symbolic_attention import AVX2, CAUSAL, NATIVE, TILES, Symbolic, compare_at
from symbolic_kernels import SymbolicKernel

import relayc
from relayc.dialects.relay import IRModule
from relayc.pipelines.targets.cpu.strategies.attention.columns import PARALLEL_TASKS, ColumnAttention
from relayc.pipelines.targets.cpu.strategies.attention.kernel import PARALLEL_GRAIN, AttentionKernel
from relayc.pipelines.targets.cpu.strategies.attention.rows import FEW_KEYS, TOGETHER, RowAttention
from relayc.pipelines.targets.cpu.strategies.attention.tiles import MAX_STEP, _TileAttention
from relayc.pipelines.te.read.attention import QUERY_HEAD

MOST_SCORES = 1 << 20
"""Scores of a head at sizes that are drawn, at most: the reference takes some tens of milliseconds for them."""
LARGE = (1024, 2048)

CROSS = Symbolic(("1", "2", "2", "n", "m", "16", "8"), ())
CASES = {
    "cross": (CROSS, NATIVE),
    "batched": (replace(CROSS, shape=("b", "3", "3", "n", "m", "8", "8"), layout="BSHD", mask=("b", "1", "1", "m")), NATIVE),
    "cache": (replace(CROSS, shape=("1", "4", "2", "n", "n + m", "8", "8"), attributes=CAUSAL | {"causal_offset": "m"}), NATIVE),
    "avx2": (replace(CROSS, shape=("1", "1", "1", "n", "m", "64", "64")), AVX2),
    "tiles": (replace(CROSS, shape=("1", "2", "2", "n", "m", "32", "32"), dtype="bfloat16"), TILES),
}


@contextmanager
def recorded() -> Iterator[list[AttentionKernel]]:
    """The emissions that make the kernels that are compiled inside."""
    found: list[AttentionKernel] = []
    emit_tasks = AttentionKernel.emit_tasks
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AttentionKernel, "emit_tasks", lambda self, *arguments: (found.append(self), emit_tasks(self, *arguments)))
        yield found


def limits(emission: AttentionKernel) -> tuple[set[int], set[int]]:
    """Numbers of queries and of keys at which a plan changes: of a vector, a tile, a task and a block, and as many as a buffer holds."""
    if isinstance(emission, RowAttention):
        lanes, group = emission.p.depth_lanes, emission.a.shape[QUERY_HEAD] if QUERY_HEAD in emission.row_loops else 1
        # With more rows than these the buffer of scores has no place for a vector of keys.
        rows = {emission.most_rows, TOGETHER, emission.most_scores // lanes}
        return {n // group for n in rows}, {lanes, FEW_KEYS, lanes + FEW_KEYS, emission.p.keys, emission.most_scores // emission.most_rows}
    if isinstance(emission, ColumnAttention):
        p = emission.p
        rows = {p.lanes, p.width, p.width * p.tiles, p.width * emission.block_tiles, p.width * PARALLEL_TASKS}
        return rows, {p.height, *emission.strips.sizes, emission.block_keys, 2 * emission.block_keys}
    assert isinstance(emission, _TileAttention)
    rows = {emission.height, emission.height * emission.row_tiles, emission.height * emission.row_tiles * emission.tasks}
    return rows, {MAX_STEP, emission.most_keys}


@cache
def plan(name: str) -> tuple[SymbolicKernel, list[int], list[int], int]:
    """A kernel, its limits for queries and for keys, and how many scores of a head it computes on one thread."""
    symbolic, target = CASES[name]
    with recorded() as emissions:
        kernel = SymbolicKernel(symbolic.text(), target)
    assert len(emissions) >= 2
    rows, keys = (set().union(*found) for found in zip(*map(limits, emissions), strict=True))
    heads, depth, width = (int(symbolic.shape[i]) for i in (1, 5, 6))
    return kernel, sorted(rows | set(LARGE)), sorted(keys), PARALLEL_GRAIN // (heads * (depth + width))


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_numpy_around_its_limits(name: str) -> None:
    kernel, rows, keys, alone = plan(name)

    def around(numbers: list[int]) -> st.SearchStrategy[int]:
        return st.builds(int.__add__, st.sampled_from(numbers), st.integers(-1, 1)) | st.integers(0, 70)

    @settings(max_examples=25, derandomize=True, database=None)
    @given(around(rows), around(keys) | st.none(), st.integers(1, 2))
    def at(n: int, m: int | None, b: int) -> None:
        # Without a number of keys: as many as make work for more than one thread.
        m = alone // max(n, 1) + b if m is None else m
        sizes = {"n": n, "m": min(m, MOST_SCORES // max(n, 1)), "b": b}
        _, _, _, queries, keys, _, _ = CASES[name][0].at(sizes).shape
        assume(queries * keys <= MOST_SCORES)
        compare_at(kernel, CASES[name][0], sizes)

    at()


@pytest.mark.parametrize(
    ("least", "most", "expected"),
    [
        (0, 8, {RowAttention}),
        (0, 9, {RowAttention, ColumnAttention}),
        (8, 40, {RowAttention, ColumnAttention}),
        (9, 40, {ColumnAttention}),
    ],
)
def test_versions_that_no_size_selects_are_omitted(least: int, most: int, expected: set[type]) -> None:
    """Up to a vector of queries are few."""
    text = replace(CROSS, ranges=f"n = array<i64: {least}, {most}, {most}>").text()
    with recorded() as emissions:
        relayc.compile(IRModule.parse(text), AVX2, stop_after="tir", cache=False)
    assert {type(emission) for emission in emissions} == expected


@pytest.mark.parametrize("name", CASES)
def test_more_queries_than_any_limit(name: str) -> None:
    kernel, rows, _, _ = plan(name)
    for n in (limit + 1 for limit in rows if limit >= LARGE[0] // 2):
        compare_at(kernel, CASES[name][0], {"n": n, "m": 21, "b": 1})
