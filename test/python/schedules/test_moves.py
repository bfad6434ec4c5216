"""Primitives that move and change blocks: what they are refused for, and what they make, for kernels of several blocks."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from schedules.te_kernels import Kernel, convolution, dense, softmax

from relayc import te
from relayc.dialects.relay import IRModule
from relayc.pipelines.evaluate.tir import run
from relayc.pipelines.tir.analysis.regions import region_of
from relayc.pipelines.tir.strategy.packing import Packing
from relayc.pipelines.tir.tree.layouts import affine_map
from relayc.tir import Schedule, ScheduleError, T, prim_func

DENSE, SOFTMAX = dense, softmax


def _mirrored() -> Kernel:
    """A block B that reads an element of A and the one at the same distance from the end."""
    x = te.placeholder((8,), name="X")
    a = te.compute((8,), lambda i: x[i] + 1.0, name="A")
    b = te.compute((8,), lambda j: a[j] + a[7 - j], name="B")
    array = np.arange(8, dtype=np.float32)
    return Kernel(te.create_prim_func([x, b]), [array], array + array[::-1] + 2)


def _windows(taps: int) -> Kernel:
    """Maxima B of windows of A with stride 4."""
    x = te.placeholder((32,), name="X")
    a = te.compute((32,), lambda i: x[i] + 1.0, name="A")
    k = te.reduce_axis((0, taps), name="k")
    b = te.compute((7,), lambda j: te.max(a[4 * j + k], axis=k), name="B")
    array = np.random.default_rng(2).standard_normal(32).astype(np.float32)
    expected = np.lib.stride_tricks.sliding_window_view(array, taps)[:28:4][:7].max(1) + 1
    return Kernel(te.create_prim_func([x, b]), [array], expected)


def _rows_of_four() -> Kernel:
    """A vector A, whose elements are rows of four of B."""
    x = te.placeholder((12,), name="X")
    a = te.compute((12,), lambda i: x[i] + 1.0, name="A")
    b = te.compute((3, 4), lambda p, q: a[4 * p + q] * 2.0, name="B")
    array = np.arange(12, dtype=np.float32)
    return Kernel(te.create_prim_func([x, b]), [array], (array.reshape(3, 4) + 1) * 2)


def _windows_at_their_elements(s: Schedule) -> None:
    outer, _ = s.split("i", [None, 4])
    s.reverse_compute_at("B", outer)


def _read_in_part(rows: int, columns: int) -> Kernel:
    """B of the first elements of the first row of A, whose rows have 8."""
    x = te.placeholder((rows, 8), name="X")
    a = te.compute((rows, 8), lambda i, j: x[i, j] + 1.0, name="A")
    b = te.compute((columns,), lambda k: a[0, k] * 2.0, name="B")
    array = np.random.default_rng(3).standard_normal((rows, 8)).astype(np.float32)
    return Kernel(te.create_prim_func([x, b]), [array], (array[0, :columns] + 1) * 2)


def _inlined_with_padding(s: Schedule) -> None:
    s.transform_layout("A", "A", lambda i, j: [i, j // 3, j % 3])
    s.compute_inline("A")


REFUSED: dict[str, tuple[Callable[[], Kernel], Callable[[Schedule], Any], str]] = {
    "under it already": (DENSE, lambda s: s.compute_at("C", "i"), "block C: expected a loop that is not around it, found i"),
    "an output": (DENSE, lambda s: s.compute_at("R", "x"), "block R: expected no output of @main, found that it writes R"),
    "consumer outside": (DENSE, lambda s: s.compute_at("C", "p"), "block C: expected all of its consumers under loop p, found D outside"),
    "consumers elsewhere": (
        SOFTMAX,
        lambda s: s.compute_at("E", "c"),
        "block E: expected all of its consumers under loop c, found N outside",
    ),
    "no producer there": (
        DENSE,
        lambda s: s.reverse_compute_at("R", "i"),
        "block R: expected all of its producers under loop i .*, found D",
    ),
    "unfinished": (DENSE, lambda s: s.reverse_compute_at("D", "k"), "block D: expected that C is done in an iteration of loop k"),
    "a split reduction": (SOFTMAX, lambda s: s.reverse_compute_at("S", "b"), "block S: dimension 1 of E: .* in one iteration of loop b"),
    "windows that overlap": (lambda: _windows(5), _windows_at_their_elements, "block B: dimension 0 of A: expected"),
    "neighbours": (_mirrored, lambda s: s.reverse_compute_at("B", "i"), "block B: dimension 0 of A: expected an index that tells"),
    "inlined reduction": (DENSE, lambda s: s.compute_inline("C"), "block C: expected parallel iterators only, found a reduction"),
    "inlined output": (DENSE, lambda s: s.compute_inline("R"), "block R: expected no output of @main"),
    "inlined into a reduction": (
        DENSE,
        lambda s: s.reverse_compute_inline("D"),
        "producer C: expected a complete block, found a reduction",
    ),
    "several consumers": (SOFTMAX, lambda s: s.reverse_compute_inline("N"), "block N: producer S: expected a complete block"),
    "several loads": (_mirrored, lambda s: s.reverse_compute_inline("B"), "producer A: expected one element of A at each point"),
    "one row of two": (
        lambda: _read_in_part(2, 8),
        lambda s: s.reverse_compute_inline("B"),
        "block B: expected it to go over all 2 elements of dimension 0 of A, found those at 0",
    ),
    "half a row": (
        lambda: _read_in_part(1, 4),
        lambda s: s.reverse_compute_inline("B"),
        "block B: expected it to go over all 8 elements of dimension 1 of A, found 4",
    ),
    "inlined with padding": (
        lambda: _read_in_part(1, 8),
        _inlined_with_padding,
        r"block A: expected a layout of A without elements that pad it, found \[1, 3, 3\]",
    ),
    "no such buffer": (
        DENSE,
        lambda s: s.cache_read("C", 2, "local"),
        r"block C: expected one of the 2 buffers it reads \(A, B\), found 2",
    ),
    "no such reader": (
        DENSE,
        lambda s: s.cache_read("C", "A", "local", ["D"]),
        "consumer_blocks: expected readers of A, out of C, found 'D'",
    ),
    "no such output": (
        DENSE,
        lambda s: s.cache_write("C", "A", "local"),
        r"block C: expected one of the 1 buffers it writes \(C\), found A",
    ),
    "no such scope": (
        DENSE,
        lambda s: s.cache_read("C", 0, "shard"),
        "storage_scope: expected one of global, shared, warpgroup, warp, local, found 'shard'",
    ),
    "scope of an argument": (
        DENSE,
        lambda s: s.set_scope("R", 0, "local"),
        "block R: expected a buffer inside of @main, found its argument R",
    ),
    "layout of an input": (DENSE, lambda s: s.transform_layout("C", "A", lambda i, j: [j, i]), "buffer A: .* use cache_read first"),
    "layout of an output": (DENSE, lambda s: s.transform_layout("R", "R", lambda i, j: [j, i]), "buffer R: .* use cache_write first"),
    "layout that loses": (DENSE, lambda s: s.transform_layout("C", "C", lambda i, j: [i]), "expected another place for each element"),
    "layout below 0": (DENSE, lambda s: s.transform_layout("C", "C", lambda i, j: [i - 1, j]), "index_map: expected indices of 0 or more"),
    "layout of a rank": (DENSE, lambda s: s.transform_layout("C", "C", lambda i: [i]), "index_map: expected one of 2 indices"),
    "layout of floats": (
        DENSE,
        lambda s: s.transform_layout("C", "C", lambda i, j: [i, 0.5]),
        "index_map: expected indices by .*, found 0.5",
    ),
    "two blocks": (DENSE, lambda s: (s.compute_at("D", "p"), s.blockize("p")), "loop p: expected one block in loops in it, found 2"),
    "no such block": (DENSE, lambda s: s.compute_at("Z", "p"), "expected a block of @main, out of C, D, R, found 'Z'"),
    "no such loop": (DENSE, lambda s: s.compute_at("D", "zz"), "expected a loop of @main, out of .*, found 'zz'"),
}


@prim_func
def _rewritten(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), E: T.Buffer((8,), "float32")):
    """A buffer t whose elements are read by b, written again, and read by e."""
    t, b = T.alloc_buffer((8,), "float32"), T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("first"):
            v = T.axis.spatial(8, i)
            t[v] = A[v] + 1.0
    for i in range(8):
        with T.block("b"):
            v = T.axis.spatial(8, i)
            b[v] = t[v] * 2.0
    for i in range(8):
        with T.block("second"):
            v = T.axis.spatial(8, i)
            t[v] = A[v] + 100.0
    for i in range(8):
        with T.block("c"):
            v = T.axis.spatial(8, i)
            C[v] = b[v]
    for i in range(8):
        with T.block("e"):
            v = T.axis.spatial(8, i)
            E[v] = t[v]


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (lambda s: s.compute_inline("b"), "block b: expected that what it reads stays as it is, found that second writes t after it"),
        (lambda s: s.compute_at("b", s.get_loops("c")[0]), "block b: expected that what it reads stays as it is"),
        (
            lambda s: s.cache_read("b", "t", "global"),
            "buffer t: expected readers between which nothing writes it, found b, e before and behind second",
        ),
    ],
    ids=["compute_inline", "compute_at", "cache_read"],
)
def test_values_that_are_written_again_are_not_read_later(steps: Callable[[Schedule], Any], words: str) -> None:
    with pytest.raises(ScheduleError, match=words):
        steps(Schedule(_rewritten))
    s = Schedule(_rewritten)
    s.cache_read("b", "t", "local", ["b"])
    s.cache_read("e", "t", "local", ["e"])
    array = np.arange(8, dtype=np.float32)
    for found, wanted in zip(run(s.mod, [array]), ((array + 1) * 2, array + 100), strict=True):
        np.testing.assert_array_equal(found, wanted)


STORES = """
func.func @main(%a: memref<8xf32> {tir.buffer = "A"}, %b: memref<8xf32> {tir.buffer = "B", tir.output}) attributes {tir.blocks} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %x = memref.load %a[%i] : memref<8xf32>
    memref.store %x, %b[%i] : memref<8xf32>
  } {tir.loop = "i"}
  return
}"""


def test_text_with_stores_outside_of_blocks_is_refused() -> None:
    with pytest.raises(ScheduleError, match=r"expected stores in blocks \(tir.block\), found one in scf.for"):
        Schedule(STORES)
    with pytest.raises(ScheduleError, match="expected MLIR text of blocks and loops, or of the te stage, found"):
        Schedule("nonsense")


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_legal_is_refused_by_name(case: str) -> None:
    kernel, steps, words = REFUSED[case]
    with pytest.raises(ScheduleError, match=words):
        steps(Schedule(kernel().mod))


def test_a_row_moves_to_where_all_of_it_is_written() -> None:
    kernel = _rows_of_four()
    s = Schedule(kernel.mod)
    outer, half, _ = s.split("i", [None, 2, 2])
    with pytest.raises(ScheduleError, match="block B: dimension 0 of A: expected an index that tells"):
        s.reverse_compute_at("B", half)
    s.reverse_compute_at("B", outer)
    kernel.check(s)


def test_a_chain_at_the_tiles_of_its_last_block() -> None:
    kernel = dense(symbols="m")
    s = Schedule(kernel.mod)
    outer, _ = s.split("p", [None, 4])
    assert [str(loop) for loop in s.compute_at("D", outer)] == ["ax0", "ax1"]
    s.compute_at("C", s.get_loops("D")[1])
    assert [str(loop) for loop in s.get_loops("C")][:2] == [str(outer), "ax0"]
    kernel.check(s)
    assert len(s.reverse_compute_at("R", s.get_loops("D")[1], preserve_unit_loops=True)) == 2
    kernel.check(s)


def test_rows_of_softmax_one_after_the_other() -> None:
    kernel = softmax()
    s = Schedule(kernel.mod)
    row = s.get_loops("T")[0]
    for block in ("E", "S", "N"):
        s.reverse_compute_at(block, row)
    assert all(s.get_loops(b)[0] == row for b in s.get_blocks())
    kernel.check(s)


def test_windows_side_by_side_at_their_elements() -> None:
    kernel = _windows(4)
    s = Schedule(kernel.mod)
    _windows_at_their_elements(s)
    kernel.check(s)


def test_the_halo_of_a_convolution_is_computed_at_its_tiles() -> None:
    kernel = convolution()
    s = Schedule(kernel.mod)
    outer, _ = s.split("i2", [None, 4])
    s.reorder(outer, "f")
    made = s.compute_at("P", outer)
    with s.mod.context:
        loops = s.nest.loops()
        # Four rows of the result read six of the padded image, as far as there are so many.
        assert [loops[str(loop)].extent for loop in made] == [3, 6, 7]
        low, channels = region_of(s.nest, s.nest.buffers()["P"], loops[str(outer)])[1], loops[str(made[0])].extent
        assert (str(low.low), low.extent, channels) == (f"4*{outer} + 0", 6, 3)
    kernel.check(s)
    s.compute_inline("P")
    kernel.check(s)


def test_caches_at_a_tile() -> None:
    kernel = dense()
    s = Schedule(kernel.mod)
    outer, _ = s.split("j", [None, 4])
    s.reorder(outer, "i", "j_1")
    packed = s.cache_read("C", "B", "local")
    s.compute_at(packed, outer)
    result = s.cache_write("C", 0, "local")
    s.reverse_compute_at(result, "i")
    kernel.check(s)
    s.transform_layout("C", ("read", "B_local"), lambda k, j: [j // 4, k, j % 4])
    s.transform_layout("C", ("write", 0), lambda i, j: [j, i])
    kernel.check(s)


def test_parameters_are_packed() -> None:
    kernel = dense()
    text = str(kernel.mod).replace('relay.name = "B"', 'relay.name = "B", relay.param = "weights"')
    s = Schedule(IRModule.parse(text))
    s.transform_layout("generic", ("read", "B"), lambda k, j: [j // 4, k, j % 4], pad_value=0)
    s.transform_layout("generic", ("read", "B"), lambda a, k, b: [k, a, b])
    assert "tir.layout = affine_map<(d0, d1) -> (d0, d1 floordiv 4, d1 mod 4)>, tir.pad = 0.0" in str(s.mod)
    with s.mod.context:
        a, b, bias = kernel.inputs
        layout = affine_map(lambda k, j: [k, j // 4, j % 4])
        packing = Packing.layout(layout, b.shape, (b.shape[0], -(-b.shape[1] // 4), 4))
        packed = np.empty(packing.shape, b.dtype)
        packing.pack(b, packed)
        np.testing.assert_array_equal(run(s.mod, [a, packed, bias])[0], kernel.expected)


def test_a_block_of_which_not_all_results_are_read_moves() -> None:
    x = te.placeholder((6, 4), name="X")
    a, _ = te.compute((6, 4), lambda i, j: (x[i, j] + 1.0, x[i, j] * 2.0), name="A")
    b = te.compute((6, 4), lambda i, j: a[i, j] * 3.0, name="B")
    array = np.arange(24, dtype=np.float32).reshape(6, 4)
    kernel = Kernel(te.create_prim_func([x, b]), [array], (array + 1) * 3)
    s = Schedule(kernel.mod)
    assert len(s.compute_at("A", s.get_loops("B")[0])) == 1
    kernel.check(s)
