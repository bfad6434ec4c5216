"""Blocks that move to a loop of their readers: which of their points it computes."""

import numpy as np
import pytest

from relayc import te
from relayc.pipelines.evaluate.tir import run
from relayc.tir import Schedule, ScheduleError, from_source


@pytest.mark.parametrize(("shift", "extent"), [(0, 1), (1, 8)])
def test_a_block_of_two_results_computes_all_points_where_they_are_read_apart(shift: int, extent: int) -> None:
    x = te.placeholder((8,), name="X")
    a = te.compute((8,), lambda i: (x[i] + 1.0, x[i] * 2.0), name="A")
    s = Schedule(te.create_prim_func([x, te.compute((7,), lambda j: a[0][j] - a[1][j + shift], name="B")]))
    s.compute_at("A", "j", preserve_unit_loops=True)
    with s.mod.context:
        assert [loop.extent for loop in s.nest.blocks()["A"].around] == [7, extent]
    array = np.arange(8, dtype=np.float32) ** 2
    np.testing.assert_array_equal(run(s.mod, [array])[0], (array + 1)[:7] - 2 * array[shift : shift + 7])


def test_a_block_computes_the_fewest_points_that_any_of_its_indices_says() -> None:
    """Of a diagonal two rows are read, but one column."""
    s = Schedule(
        from_source("""
def main(X: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    t = T.alloc_buffer((8, 8))
    for i in range(8):
        with T.block("A"):
            v = T.axis.spatial(8, i)
            t[v, v] = X[v] * 2.0
    for j in range(8):
        for k in range(2):
            with T.block("B"):
                w = T.axis.spatial(8, j)
                r = T.axis.reduce(2, k)
                with T.init():
                    B[w] = 1.0
                B[w] = B[w] + T.if_then_else(w // 2 * 2 + r == w, t[w // 2 * 2 + r, w], 0.0)
""")
    )
    s.compute_at("A", "j", preserve_unit_loops=True)
    with s.mod.context:
        assert [loop.extent for loop in s.nest.blocks()["A"].around] == [8, 1]
    array = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(run(s.mod, [array])[0], array * 2 + 1)


@pytest.mark.parametrize(("consumers", "readers"), [(None, ["B", "C"]), (["C"], ["C"])])
def test_a_copy_is_read_by_all_readers_or_by_those_that_are_named(consumers: list[str] | None, readers: list[str]) -> None:
    x = te.placeholder((8,), name="X")
    s = Schedule(te.create_prim_func([x, *(te.compute((8,), lambda i, f=f: x[i] * f, name=name) for name, f in (("B", 2.0), ("C", 3.0)))]))
    s.cache_read("C", "X", "local", consumers)
    with s.mod.context:
        copy = s.nest.buffers()["X_local"]
        assert [name for name, block in s.nest.blocks().items() if copy in block.inputs()] == readers
    array = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(run(s.mod, [array]), [array * 2, array * 3])


def test_a_block_that_nothing_reads_moves_nowhere() -> None:
    s = Schedule(
        from_source("""
def main(X: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    t = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("A"):
            v = T.axis.spatial(8, i)
            t[v] = X[v] * 2.0
    for j in range(8):
        with T.block("B"):
            w = T.axis.spatial(8, j)
            B[w] = X[w] + 1.0
""")
    )
    for step in (lambda: s.compute_inline("A"), lambda: s.compute_at("A", "j")):
        with pytest.raises(ScheduleError, match="block A: expected a block that is read, found no consumer"):
            step()
