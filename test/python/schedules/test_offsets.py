"""Reads at an offset: stencils, convolutions by offsets and a blur in two steps are blocks without copies, whose schedules give what numpy
gives."""

import contextlib
from collections.abc import Callable

import numpy as np
import pytest
from schedules.te_kernels import dense
from schedules.test_launches import lower

import relayc
from relayc import te
from relayc.dialects.mlir import ir, make_context
from relayc.dialects.relay import IRModule
from relayc.pipelines.context.target import Target
from relayc.pipelines.evaluate.tir import run
from relayc.pipelines.tir.tree import layouts
from relayc.symbolic import Size, symbol
from relayc.tir import Schedule, ScheduleError, from_source


def _numbers(*shape: int) -> np.ndarray:
    """Small integers, so that sums are exact in any order."""
    return np.random.default_rng(sum(shape)).integers(-3, 4, shape).astype(np.float32)


def _compiled(s: Schedule, mod: IRModule, inputs: list[np.ndarray], wanted: np.ndarray, sizes: dict[str, int]) -> None:
    (found,) = run(s.mod, inputs, sizes)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(relayc.compile_kernel(mod, schedule=s.trace)(*inputs), wanted)


def _names(s: Schedule) -> list[str]:
    return [block.name for block in s.get_blocks()]


@pytest.mark.parametrize("is_symbolic", [False, True])
def test_stencil_of_five_points(is_symbolic: bool) -> None:
    n = te.var("n") if is_symbolic else 21
    a = te.placeholder((n, 34), name="A")

    def around(i: te.Var, j: te.Var) -> te.Expr:
        return a[i, j + 1] + a[i + 1, j] + a[i + 2, j + 1] + a[i + 1, j + 2] - 4.0 * a[i + 1, j + 1]

    mod = te.create_prim_func([a, te.compute((n - 2, 32), around, name="B")])
    s = Schedule(mod)
    assert _names(s) == ["B"]
    i, j = s.get_loops("B")
    rows, _ = s.split(i, [None, 4])
    _, lanes = s.split(j, [None, 8])
    s.parallel(rows)
    s.vectorize(lanes)
    x = _numbers(21, 34)
    wanted = x[:-2, 1:-1] + x[1:-1, :-2] + x[2:, 1:-1] + x[1:-1, 2:] - 4 * x[1:-1, 1:-1]
    _compiled(s, mod, [x], wanted, {"n": 21} if is_symbolic else {})


@pytest.mark.parametrize("stride", [1, 2])
def test_convolution_by_offsets(stride: int) -> None:
    a, w = te.placeholder((64 * stride + 2,), name="A"), te.placeholder((3,), name="W")
    b = te.compute((64,), lambda i: sum((a[stride * i + k] * w[k] for k in range(1, 3)), a[stride * i] * w[0]), name="B")
    mod = te.create_prim_func([a, w, b])
    s = Schedule(mod)
    assert _names(s) == ["B"]
    s.cache_read("B", 0, "local")
    outer, lanes = s.split("i", [None, 16])
    s.compute_at("A_local", outer)
    s.vectorize(lanes)
    x, weights = _numbers(64 * stride + 2), _numbers(3)
    wanted = np.convolve(x, weights[::-1], "valid")[::stride][:64]
    _compiled(s, mod, [x, weights], wanted, {})


@pytest.mark.parametrize("is_symbolic", [False, True])
def test_blur_in_two_steps(is_symbolic: bool) -> None:
    h, w = (te.var("h"), te.var("w")) if is_symbolic else (18, 34)
    a = te.placeholder((h, w), name="A")
    across = te.compute((h, w - 2), lambda i, j: a[i, j] + a[i, j + 1] + a[i, j + 2], name="H")
    down = te.compute((h - 2, w - 2), lambda y, x: across[y, x] + across[y + 1, x] + across[y + 2, x], name="V")
    mod = te.create_prim_func([a, down])
    s = Schedule(mod)
    assert _names(s) == ["H", "V"]
    strip, _ = s.split("y", [None, 4])
    _, lanes = s.split("x", [None, 8])
    s.vectorize(lanes)
    s.compute_at("H", strip)
    assert s.get_loops("H")[0] == strip
    s.parallel(strip)
    x = _numbers(18, 34)
    rows = x[:, :-2] + x[:, 1:-1] + x[:, 2:]
    _compiled(s, mod, [x], rows[:-2] + rows[1:-1] + rows[2:], {"h": 18, "w": 34} if is_symbolic else {})


def test_offsets_from_a_size() -> None:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    mod = te.create_prim_func([a, te.compute((n // 2,), lambda i: a[2 * i] - a[i + n // 2], name="B")])
    s = Schedule(mod)
    assert _names(s) == ["B"]
    s.split("i", [None, 4])
    x = _numbers(19)
    _compiled(s, mod, [x], x[:18:2] - x[9:18], {"n": 19})


def test_quotients_and_remainders_by_a_size_round_down() -> None:
    mod = from_source("""
def main(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32"), C: T.Buffer(("n",), "float32")):
    n = T.int64()
    for i in range(n):
        with T.block("B"):
            v = T.axis.spatial(n, i)
            B[v] = A[(v - 3) % n]
            C[v] = T.cast((v - 3) // n, "float32")
""")
    kernel = relayc.compile_kernel(mod)
    for n in (1, 2, 3, 7):
        x = np.arange(n, dtype=np.float32)
        for b, c in (run(Schedule(mod).mod, [x], {"n": n}), kernel(x)):
            np.testing.assert_array_equal(b, np.roll(x, 3))
            np.testing.assert_array_equal(c, (np.arange(n) - 3) // n)


@pytest.mark.parametrize(
    ("layout", "shape"),
    [
        (lambda i, j: [j, 0, i], "10x1x7"),
        (lambda i, j: [6 - i, 2 * (9 - j)], "7x19"),
        (lambda i, j: [i * 10 + j], "70"),
        (lambda i, j: [j // 4, i, j % 4], "3x7x4"),
    ],
)
def test_a_buffer_in_a_layout(layout: Callable, shape: str) -> None:
    kernel = dense()
    s = Schedule(kernel.mod)
    s.transform_layout("C", ("write", 0), layout)
    assert f"memref<{shape}xf32>" in str(s.mod)
    kernel.check(s)


def test_a_difference_of_indices_is_a_sum() -> None:
    with make_context():
        expected = ir.AffineMapAttr.parse("affine_map<(d0, d1) -> (d0 - d1 + 9, d1)>").value
        assert layouts.affine_map(lambda i, j: [i - j + 9, j]) == expected


@pytest.mark.parametrize("most", [1000, 20])
@pytest.mark.parametrize(("layout", "is_distinct"), [("d0 * 10000 + d1 * 100 + d2", True), ("d0 * 10000 + d1 * 100 + d2 * 100", False)])
def test_large_layouts_are_checked_at_some_points(layout: str, is_distinct: bool, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layouts, "MOST_POINTS", most)
    with make_context():
        amap = ir.AffineMapAttr.parse(f"affine_map<(d0, d1, d2) -> ({layout})>").value
        with contextlib.nullcontext() if is_distinct else pytest.raises(ScheduleError, match="expected another place for each element"):
            assert layouts.shape_in(layouts.affine_map(amap), [200, 100, 100]) == [2000000]


@pytest.mark.parametrize(
    ("layout", "extent", "shape"),
    [
        (lambda i: [i % 4, i // 4 % 2], 8, [4, 2]),
        (lambda i: [i % 4, i // 4 % 2], 9, None),
        (lambda i: [i % 4, i // 4 % 4], 16, [4, 4]),
        (lambda i: [i % 4, i // 4 % 4], 17, None),
        (lambda i: [i % 4, i // 4 % 4], symbol("n"), None),
        (lambda i: [i // 4, i % 4, i * 0], symbol("n") * 4, [symbol("n"), 4, 1]),
    ],
)
def test_remainders_of_quotients_are_of_all_elements(layout: Callable, extent: Size, shape: list[Size] | None) -> None:
    with make_context():
        amap = layouts.affine_map(layout)
        with contextlib.nullcontext() if shape else pytest.raises(ScheduleError, match="expected another place for each element"):
            assert layouts.shape_in(amap, [extent]) == shape


@pytest.mark.parametrize("layout", [lambda k, j: [k * 10 + j], lambda k, j: [j, 11 - k]])
def test_a_parameter_is_packed_by_parts_of_its_dimensions(layout: Callable) -> None:
    kernel = dense()

    def packed(s: Schedule) -> None:
        s.transform_layout("C", ("read", "B"), layout)

    words = "buffer B: transform_layout of a parameter: expected a dimension, its quotient or its remainder, found"
    with pytest.raises(ScheduleError, match=words):
        relayc.compile_kernel(kernel.mod, params={1: kernel.inputs[1]}, schedule=packed)


def test_the_rest_of_tiles_of_six_rows() -> None:
    """Four, two and one of them, by the bits of their number."""
    kernel = relayc.compile_kernel(
        from_source("""
def main(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
    n = T.int64()
    for o in range((n + 5) // 6):
        for i in T.unroll(6):
            with T.block("B"):
                v = T.axis.spatial(n, o * 6 + i)
                T.where(o * 6 + i < n)
                B[v] = A[v] + 1.0
""")
    )
    for n in (1, 5, 6, 7, 9, 10, 12, 17):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(kernel(x), x + 1)


@pytest.mark.parametrize(("row", "is_asked"), [("vk", True), ("T.max(vk, 3)", False), ("T.cast(at[vk], 'index')", False)])
def test_the_memory_is_asked_ahead_where_elements_follow_each_other(row: str, is_asked: bool) -> None:
    mod = from_source(f"""
def main(A: T.Buffer((64, 32), "float32"), at: T.Buffer((64,), "int64"), B: T.Buffer((32,), "float32")):
    for k in range(64):
        for j in T.vectorized(32):
            with T.block("B"):
                vk, vj = T.axis.remap("RS", [k, j])
                with T.init():
                    B[vj] = 0.0
                B[vj] = B[vj] + A[{row}, vj]
""")
    s = Schedule(mod)
    s.annotate("k", "prefetch", ["A", "k", 4, 1])
    assert ("memref.prefetch" in lower(s, target=relayc.Target("cpu"))) == is_asked


@pytest.mark.parametrize("cpu", ["x86-64-v3", "x86-64-v4"])
def test_sums_in_lanes_up_to_a_size(cpu: str) -> None:
    """Several vectors at a time, one, and the rest in a mask or one by one."""
    mod = from_source("""
def main(A: T.Buffer((3, "n"), "float32"), B: T.Buffer((3,), "float32")):
    n = T.int64()
    for i in range(3):
        for k0 in range((n + 31) // 32):
            for k1 in T.vectorized(32):
                with T.block("B"):
                    vi = T.axis.spatial(3, i)
                    vk = T.axis.reduce(n, k0 * 32 + k1)
                    T.where(k0 * 32 + k1 < n)
                    with T.init():
                        B[vi] = 1.0
                    B[vi] = B[vi] + A[vi, vk]
""")
    text = lower(mod, target=relayc.Target("cpu", mcpu=cpu))
    assert "vector.reduction" in text or "vector.shuffle" in text
    if cpu == "x86-64-v3":
        kernel = relayc.compile_kernel(mod)
        for n in (0, 1, 7, 8, 31, 32, 77):
            x = np.arange(3 * n, dtype=np.float32).reshape(3, n)
            np.testing.assert_array_equal(kernel(x), x.sum(1) + 1)


@pytest.mark.parametrize(("kind", "branches"), [("serial", 0), ("vectorized", 1)])
def test_whole_tiles_of_parallel_loops_have_a_branch_where_a_block_in_them_has_no_loop_to_end(kind: str, branches: int) -> None:
    mod = from_source(f"""
def main(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32"), C: T.Buffer(("n",), "float32")):
    n = T.int64()
    for o in T.parallel((n + 3) // 4):
        for i in range(4):
            with T.block("B"):
                v = T.axis.spatial(n, o * 4 + i)
                T.where(o * 4 + i < n)
                B[v] = A[v] + 1.0
        for j in T.{kind}(4):
            with T.block("C"):
                v = T.axis.spatial(n, o * 4 + j)
                T.where(o * 4 + j < n)
                C[v] = A[v] * 2.0
""")
    assert lower(mod, target=relayc.Target("cpu")).count("scf.if") == branches


@pytest.mark.parametrize("step", [lambda s: s.reverse_compute_inline("B"), lambda s: s.compute_inline("t")])
def test_dimensions_and_iterators_of_one_element_are_left_out(step: Callable[[Schedule], None]) -> None:
    s = Schedule(
        from_source("""
def main(A: T.Buffer((1, 12), "float32"), B: T.Buffer((1, 12), "float32")):
    t = T.alloc_buffer((1, 12))
    for u, i in T.grid(1, 12):
        with T.block("t"):
            vu, vi = T.axis.remap("SS", [u, i])
            t[0, vi] = A[0, vi] + 1.0
    for p, j in T.grid(1, 12):
        with T.block("B"):
            vp, vj = T.axis.remap("SS", [p, j])
            B[0, vj] = t[0, vj] * 2.0
""")
    )
    step(s)
    assert len(s.get_blocks()) == 1
    x = np.arange(12, dtype=np.float32)[None]
    np.testing.assert_array_equal(run(s.mod, [x])[0], (x + 1) * 2)


@pytest.mark.parametrize(("index", "place"), [("v // 3", lambda v: v // 3), ("T.max(v, 3)", lambda v: max(v, 3)), ("v", lambda v: v)])
def test_what_was_read_is_read_again_once_it_is_written(index: str, place: Callable[[int], int]) -> None:
    mod = from_source(f"""
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    L = T.alloc_buffer((8,), "float32")
    for i in T.serial(8):
        with T.block("L"):
            v = T.axis.spatial(8, i)
            L[v] = A[v]
    for i in T.serial(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = L[{index}]
        with T.block("L2"):
            v = T.axis.opaque(8, i)
            L[{index}] = A[v] + 1.0
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = L[{index}]
""")
    a = _numbers(8)
    kept, before = a.copy(), []
    for v in range(8):
        before.append(kept[place(v)])
        kept[place(v)] = a[v] + np.float32(1)
    found, after = relayc.compile_kernel(mod)(a)
    np.testing.assert_array_equal(found, before)
    np.testing.assert_array_equal(after, a + 1)


@pytest.mark.parametrize("kind", ["serial", "parallel", "unrolled", "vectorized", "threads"])
def test_neighbours_at_the_edges_are_the_first_and_the_last(kind: str) -> None:
    loops = "T.thread_binding(16, thread='threadIdx.x')" if kind == "threads" else f"T.{kind.replace('unrolled', 'unroll')}(16)"
    mod = from_source(f"""
def main(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    for i in {loops}:
        for j in T.serial(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[T.max(vi - 1, 0), vj] + A[T.min(vi + 1, 15), T.max(vj, 1)] + A[(vi + 15) // 16, vi // 15]
""")
    a, rows = _numbers(16, 8), np.arange(16)
    target = Target("cuda", emulate=True) if kind == "threads" else Target("cpu")
    found = relayc.compile_kernel(mod, target=target)(a)
    expected = a[np.maximum(rows - 1, 0)] + a[np.minimum(rows + 1, 15)][:, np.maximum(np.arange(8), 1)]
    np.testing.assert_array_equal(found, expected + a[(rows + 15) // 16, rows // 15][:, None])
