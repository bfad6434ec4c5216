"""Blocks in blocks, and tensor intrinsics, as code: what is compiled agrees with numpy."""

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from schedules.lowered import arrays, check_product, compiled, first, product

import relayc
from relayc import te
from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.lower.function import lower_function
from relayc.tir import Schedule, ScheduleError, T, TensorCall, TensorIntrin, from_source, prim_func


def check(kernel: Any, shape: tuple[int, int, int]) -> None:
    """Asserts that a kernel is max(A B + bias, 0)."""
    rows, depth, columns = shape
    a, b, bias = arrays((rows, depth), (depth, columns), (columns,))
    check_product(kernel(a, b, bias), a, b, bias)


def tiled(s: Schedule, *factors: int) -> list[Any]:
    """The loops of C in tiles: those over tiles, then those in one."""
    pairs = [s.split(loop, [None, factor]) for loop, factor in zip(s.get_loops("C"), factors, strict=True)]
    loops = [outer for outer, _ in pairs] + [inner for _, inner in pairs]
    s.reorder(*loops)
    return loops


# ---- blocks in blocks


def tiles(s: Schedule) -> None:
    """A reduction that goes on outside: its start in loops of its own."""
    s.blockize(tiled(s, 4, 16, 8)[3])


def tiles_that_start(s: Schedule) -> None:
    """The start in vectors, before a loop in the middle; parallel tiles."""
    i, j, k, inner, *_ = tiled(s, 4, 16, 8)
    s.reorder(k, j)
    s.blockize(inner)
    s.vectorize("j_1_init")
    s.parallel(i)


def whole_tiles(s: Schedule) -> None:
    """A reduction that is all inside."""
    i, *_ = s.get_loops("C")
    outer, inner = s.split(i, [None, 4])
    s.blockize(inner)
    s.parallel(outer)


def in_one_another(s: Schedule) -> None:
    """Blocks in blocks in blocks."""
    loops = tiled(s, 8, 16, 16)
    pairs = [s.split(loop, [None, 4]) for loop in loops[3:]]
    s.reorder(*(outer for outer, _ in pairs), *(inner for _, inner in pairs))
    s.blockize(pairs[0][1])
    s.blockize(pairs[0][0])


def fused_tiles(s: Schedule) -> None:
    """A loop that decides on the tile and on the step."""
    _, j, k, inner, *_ = tiled(s, 4, 16, 8)
    s.blockize(inner)
    s.fuse(j, k)


@pytest.mark.parametrize("function", (tiles, tiles_that_start, whole_tiles, in_one_another, fused_tiles), ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", [(16, 32, 64), (7, 33, 37)], ids=str)
def test_blocks_in_blocks(function: Any, shape: tuple[int, int, int]) -> None:
    check(compiled(product(*shape), function), shape)


def test_blocks_in_blocks_of_symbolic_rows() -> None:
    kernel = compiled(product(te.size_var("n"), 24, 40), tiles)
    for rows in (0, 3, 8):
        check(kernel, (rows, 24, 40))


# ---- register tiles


def tile_with_epilogue(s: Schedule) -> None:
    """All steps at once, sums on the stack, D behind each tile."""
    i, j = s.get_loops("D")
    io, ii = s.split(i, [None, 4])
    jo, ji = s.split(j, [None, 24])
    s.reorder(jo, io, ii, ji)
    s.compute_at("C", io)
    s.set_scope("C", 0, "local")
    s.tensorize(s.get_loops("C")[-3], "dot_f32_4x24")
    s.unroll(ii)
    s.vectorize(ji)
    s.parallel(jo)


def tile_by_steps(s: Schedule) -> None:
    """Some steps at once, sums in memory."""
    i, _, _, inner, *_ = tiled(s, 4, 24, 5)
    s.tensorize(inner, "dot_f32_4x24")
    s.parallel(i)


@pytest.mark.parametrize("function", (tile_with_epilogue, tile_by_steps), ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", [(4, 5, 24), (12, 40, 96), (7, 13, 43), (3, 4, 10)], ids=str)
def test_register_tiles(function: Any, shape: tuple[int, int, int]) -> None:
    check(compiled(product(*shape), function), shape)


@pytest.mark.parametrize("function", (tile_with_epilogue, tile_by_steps), ids=lambda f: f.__name__)
def test_register_tiles_of_rows_that_a_call_says(function: Any) -> None:
    """Tiles of 4 rows, then of 2 and of 1."""
    kernel = compiled(product(te.size_var("n"), 11, 40), function)
    for rows in (0, 1, 3, 4, 6, 15):
        check(kernel, (rows, 11, 40))


def test_register_tiles_of_another_layout_and_of_symbolic_rows() -> None:
    def packed(s: Schedule) -> None:
        s.transform_layout("C", ("read", 1), lambda k, j: [j // 24, k, j % 24], pad_value=0.0)
        tile_by_steps(s)

    rows, depth, columns = shape = 8, 10, 48
    a, b, bias = arrays((rows, depth), (depth, columns), (columns,))
    kernel = compiled(product(*shape), packed, params={1: b})
    check_product(kernel(a, bias), a, b, bias)

    def one_row(s: Schedule) -> None:
        _, _, _, inner, *_ = tiled(s, 1, 24, 10)
        s.tensorize(inner, "dot_f32_1x24")

    kernel = compiled(product(te.size_var("n"), 10, 48), one_row)
    for n in (0, 1, 5):
        check(kernel, (n, 10, 48))


def test_columns_that_lie_apart() -> None:
    """A transposed is read with strides; a B whose columns lie apart is refused."""

    def all_of_it(s: Schedule) -> None:
        s.tensorize(s.get_loops("C")[0], "dot_f32_4x24")

    a, b = te.placeholder((8, 4), name="A"), te.placeholder((8, 24), name="B")
    k = te.reduce_axis((0, 8), "k")
    c = te.compute((4, 24), lambda i, j: te.sum(a[k, i] * b[k, j], axis=k), name="C")
    kernel = compiled(te.create_prim_func([a, b, c]), all_of_it)
    x, y = arrays((8, 4), (8, 24))
    check_product(kernel(x, y), x.T, y)

    a, b = te.placeholder((4, 8), name="A"), te.placeholder((24, 8), name="B")
    c = te.compute((4, 24), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), name="C")
    with pytest.raises(ScheduleError, match="B: expected that its last dimension is contiguous in B, found steps"):
        compiled(te.create_prim_func([a, b, c]), all_of_it)


def too_many_sums(s: Schedule) -> None:
    s.tensorize(s.get_loops("C")[0], "dot_f32_16x80")


def test_errors_of_register_tiles() -> None:
    for shape, function, message in (
        ((4, 5, 24), lambda s: s.tensorize(s.get_loops("C")[0], "dot_f32_3x24"), "loop i: expected an extent of 3, found 4"),
        ((16, 5, 80), too_many_sums, "expected at most 64 vectors of sums, found (80|160)"),
        ((4, 5, te.size_var("n")), tile_by_steps, "dot_f32_4x24: expected B and C with room for 24 columns, found "),
        ((4, 5, 24), lambda s: s.tensorize(s.get_loops("C")[0], "dot_f64"), r"out of .*dot_f32_\{rows\}x\{columns\}.*, found 'dot_f64'"),
    ):
        with pytest.raises(ScheduleError, match=message):
            compiled(product(*shape), function)


def test_as_many_sums_as_there_may_be() -> None:
    s = Schedule(product(16, 5, 64))
    s.tensorize(s.get_loops("C")[0], "dot_f32_16x64")
    with s.mod.context, ir.Location.unknown(), ir.InsertionPoint((made := ir.Module.create()).body):
        lower_function(s.nest, relayc.Target("cpu", mcpu="x86-64-v4"))
    assert str(made).count("vector.fma") == 64


def pairs(s: Schedule) -> None:
    """Tiles of 4 rows and 32 columns of a product of bf16."""
    s.cache_read("C", 1, "global")
    s.transform_layout("C", ("read", 1), lambda k, j: [j // 32, k // 2, j % 32, k % 2], pad_value=0.0)
    i, j, k = s.get_loops("C")
    (io, ii), (jo, ji), (ko, ki) = s.split(i, [None, 4]), s.split(j, [None, 32]), s.split(k, [None, 2])
    s.reorder(io, jo, ii, ji, ko, ki)
    s.tensorize(ii, "dot_bf16_4x32")


def product_of_pairs(rows: int, depth: int, columns: int) -> Any:
    a, b = te.placeholder((rows, depth), "bfloat16", name="A"), te.placeholder((depth, columns), "bfloat16", name="B")
    k = te.reduce_axis((0, depth), "k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k].astype("float32") * b[k, j].astype("float32"), axis=k), name="C")
    return te.create_prim_func([a, b, c])


@pytest.mark.skipif(not relayc.Target("cpu").has("avx512bf16"), reason="needs AVX512-BF16")
def test_register_tiles_of_pairs() -> None:
    rows, depth, columns = 8, 12, 64
    x, y = (v.astype(ml_dtypes.bfloat16) for v in arrays((rows, depth), (depth, columns)))
    check_product(compiled(product_of_pairs(rows, depth, columns), pairs, params={1: y})(x), x, y)


def pairs_in_order(s: Schedule) -> None:
    """All steps of a column side by side, not those of pairs alone."""
    s.cache_read("C", 1, "global")
    s.transform_layout("C", ("read", 1), lambda k, j: [j, k // 2, k % 2])
    s.split(s.get_loops("C")[2], [None, 2])
    s.tensorize("i", "dot_bf16_4x32")


def test_errors_of_register_tiles_of_pairs() -> None:
    for function, target, message in (
        (pairs, "cpu -mcpu=x86-64-v4", "dot_bf16_4x32: expected a target with avx512bf16, found cpu"),
        (pairs_in_order, "cpu -mcpu=sapphirerapids", "dot_bf16_4x32: B: expected pairs side by side, found them 12 elements apart"),
        (lambda s: s.tensorize("i", "dot_bf16_4x24"), "cpu -mcpu=sapphirerapids", "dot_bf16_4x24: expected columns in vectors of 16"),
        (lambda s: s.tensorize("i", "dot_bf16_17x64"), "cpu -mcpu=sapphirerapids", "dot_bf16_17x64: .* at most 64 of sums, found others"),
    ):
        with pytest.raises(ScheduleError, match=message):
            compiled(product_of_pairs(4, 12, 32), function, target=target)


def test_tiles_that_start_at_zero_read_no_sums() -> None:
    """Sums that begin with the tile are neither written as zeros nor loaded."""
    for module, schedule in ((product(4, 5, 24), tile_with_epilogue), (product_of_pairs(4, 12, 32), pairs)):
        s = Schedule(module)
        schedule(s)
        with s.mod.context, ir.Location.unknown(), ir.InsertionPoint((made := ir.Module.create()).body):
            lower_function(s.nest, relayc.Target("cpu", mcpu="sapphirerapids"))
        assert "dense<0.0" in str(made) and not re.search("(vector|memref).store %cst", str(made)), made


# ---- intrinsics of a person's own


def description(rows: int, columns: int) -> Any:
    depth = te.size_var("K")
    a, b = te.placeholder((rows, depth), name="X"), te.placeholder((depth, columns), name="Y")
    k = te.reduce_axis((0, depth), "k")
    return te.create_prim_func([a, b, te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="Z")])


def steps_of_a_row(call: TensorCall) -> None:
    """Adds the products of each step to a row of 8 in memory."""
    assert call.accumulates
    x, y, z = call["X"], call["Y"], call["Z"]
    var = Var(0, 0, name="k")
    with emit.for_loop(0, call.sizes["K"], 1, var):
        k = Index.of(var)
        left = emit.broadcast(x.load(0, k), 8)
        z.store(emit.multiply_add(left, y.load(k, 0, lanes=8), z.load(0, 0, lanes=8)), 0, 0)


@prim_func(accumulates=True)
def rows_in_registers(X: T.Buffer((2, "K"), "float32"), Y: T.Buffer(("K", 8), "float32"), Z: T.Buffer((2, 8), "float32")):
    sums = T.alloc_buffer((2, 8), "float32", scope="local")
    for i in T.unroll(2):
        for j in T.vectorized(8):
            with T.block("load"):
                vi, vj = T.axis.remap("SS", [i, j])
                sums[vi, vj] = Z[vi, vj]
    for k in range(K):  # noqa: F821 (a symbol)
        for i in T.unroll(2):
            for j in T.vectorized(8):
                with T.block("add"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    sums[vi, vj] = sums[vi, vj] + X[vi, vk] * Y[vk, vj]
    for i in T.unroll(2):
        for j in T.vectorized(8):
            with T.block("store"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = sums[vi, vj]


@prim_func(accumulates=True)
def rows_in_memory(X: T.Buffer((2, "K"), "float32"), Y: T.Buffer(("K", 8), "float32"), Z: T.Buffer((2, 8), "float32")):
    for k in range(K):  # noqa: F821 (a symbol)
        for i in T.unroll(2):
            for j in T.vectorized(8):
                with T.block("add"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    Z[vi, vj] = Z[vi, vj] + X[vi, vk] * Y[vk, vj]


@pytest.mark.parametrize(
    ("name", "rows", "impl"), [("a_row", 1, steps_of_a_row), ("rows", 2, rows_in_registers), ("rows_of_memory", 2, rows_in_memory)]
)
def test_intrinsics_of_ones_own(name: str, rows: int, impl: Any) -> None:
    TensorIntrin.register(name, description(rows, 8), impl, override=True)

    def all_steps(s: Schedule) -> None:
        i, _, _, inner, *_ = tiled(s, rows, 8, 12)
        s.tensorize(inner, name)
        s.parallel(i)

    def some_steps(s: Schedule) -> None:
        _, _, _, inner, *_ = tiled(s, rows, 8, 3)
        s.tensorize(inner, name)

    for function in (all_steps, some_steps):
        check(compiled(product(4, 12, 16), function), (4, 12, 16))

    def no_steps_outside(s: Schedule) -> None:
        i, j, _ = s.get_loops("Z")
        (io, ii), (jo, ji) = s.split(i, [None, rows]), s.split(j, [None, 8])
        s.reorder(io, jo, ii, ji)
        s.tensorize(ii, name)

    x, y = arrays((4, 12), (12, 16))
    check_product(compiled(description(4, 16), no_steps_outside)(x, y, out=np.full((4, 16), np.nan, np.float32)), x, y)


_HEAD = 'def main(X: T.Buffer((2, "K"), "float32"), Y: T.Buffer(("K", 8), "float32"), Z: T.Buffer((2, 8), "float32")):\n'
_BODY = """
    for i, j in T.grid(2, 8):
        with T.block("Z"):
            vi, vj = T.axis.remap("SS", [i, j])
            Z[vi, vj] = X[vi, 0] + Y[0, vj]
"""
_MEMORY = """
    sums = T.alloc_buffer((2, 8))
    for i, j in T.grid(2, 8):
        with T.block("sums"):
            vi, vj = T.axis.remap("SS", [i, j])
            sums[vi, vj] = X[vi, 0] + Y[0, vj]
    for i, j in T.grid(2, 8):
        with T.block("Z"):
            vi, vj = T.axis.remap("SS", [i, j])
            Z[vi, vj] = sums[vi, vj]
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (_HEAD.replace("Z:", "W:") + _BODY.replace("Z[", "W["), "expected a function of X, Y, Z, found one of X, Y, W"),
        (
            _HEAD.replace("(2, 8)", "(16,)") + _BODY.replace("[vi, vj] =", "[vi * 8 + vj] ="),
            "Z: expected a buffer of 2 dimensions, found memref<16xf32>",
        ),
        (_HEAD.replace('("K", 8)', '("N", 8)') + _BODY, "expected symbols of the description, found N"),
        (_HEAD + _MEMORY, "buffer sums: expected scope local and elements at numbers .*, found others"),
        (
            _HEAD + _MEMORY.replace("(2, 8))", '(2, 8), scope="local")'),
            "buffer sums: expected scope local and elements at numbers .*, found others",
        ),
    ],
)
def test_implementations_that_do_not_fit(text: str, words: str) -> None:
    TensorIntrin.register("probe", description(2, 8), from_source(text), override=True)

    def some_steps(s: Schedule) -> None:
        s.tensorize(tiled(s, 2, 8, 3)[3], "probe")

    with pytest.raises(ScheduleError, match=f"block C_o: tensor intrinsic probe: {words}"):
        compiled(product(4, 12, 16), some_steps)


def test_a_description_is_one_function_and_has_no_lanes_around_it() -> None:
    text = _HEAD + _BODY
    two = str(from_source(text + "\n" + text.replace("main", "other")))
    with pytest.raises(ScheduleError, match="tensor intrinsic probe: description: expected one function, found 2"):
        TensorIntrin.register("probe", two, steps_of_a_row, override=True)

    def lanes(s: Schedule) -> None:
        loops = tiled(s, 4, 24, 5)
        s.tensorize(loops[3], "dot_f32_4x24")
        s.vectorize(loops[0])

    with pytest.raises(ScheduleError, match="block C_o: tensor intrinsic dot_f32_4x24: expected no vectorized loop around it, found one"):
        compiled(product(8, 10, 48), lanes)


def test_an_intrinsic_of_no_reduction() -> None:
    x = te.placeholder((8,), name="x")
    desc = te.create_prim_func([x, te.compute((8,), lambda i: x[i] * te.const(2, "float32"), name="y")])

    def twice(call: TensorCall) -> None:
        value = call["x"].load(0, lanes=8)
        assert not call.accumulates and call["y"].is_output and call["y"].strides == (1,) and isinstance(call["x"].element, ir.F32Type)
        call["y"].store(emit.arith("addf", value, value), 0)

    with pytest.raises(ScheduleError, match=r"twice_8: desc: expected a module \(te.create_prim_func, prim_func\) or its text, found \["):
        TensorIntrin.register("twice_8", [x], twice)  # type: ignore[arg-type] # what is refused
    TensorIntrin.register("twice_8", desc, twice, override=True)
    a = te.placeholder((3, 20), name="A")
    y = te.compute((3, 20), lambda i, j: a[i, j] * te.const(2, "float32"), name="Y")

    def beyond(s: Schedule) -> None:
        s.tensorize(s.split(s.get_loops("Y")[1], [None, 8])[1], "twice_8")

    with pytest.raises(ScheduleError, match="expected a tile that is always full, found one that ends at 20"):
        compiled(te.create_prim_func([a, y]), beyond)

    b = te.placeholder((3, 24), name="A")
    y = te.compute((3, 24), lambda i, j: b[i, j] * te.const(2, "float32"), name="Y")

    def guarded(s: Schedule) -> None:
        """Tiles that there are not: a branch around them."""
        i, j = s.get_loops("Y")
        tile, inner = s.split(j, [None, 8])
        s.tensorize(inner, "twice_8")
        s.split(s.fuse(i, tile), [None, 4])

    kernel = compiled(te.create_prim_func([b, y]), guarded)
    given = arrays((3, 24))[0]
    np.testing.assert_array_equal(first(kernel(given)), given * 2)


@pytest.mark.parametrize("options", [{}, {"uses_tiles": True}])
def test_a_kernel_has_tiles_where_one_of_its_intrinsics_does(options: dict[str, bool]) -> None:
    text = """
def main(A: T.Buffer(({0},), "float32"), B: T.Buffer(({0},), "float32")):
    for i in range({0}):
        with T.block("B"):
            v = T.axis.spatial({0}, i)
            B[v] = A[v] + 1.0
"""
    TensorIntrin.register("one_more", from_source(text.format(4)), from_source(text.format(4)), override=True, **options)
    s = Schedule(from_source(text.format(8)))
    s.cache_read("B", 0, "local")  # a block without an intrinsic
    s.tensorize(s.split(s.get_loops("B")[-1], [None, 4])[1], "one_more")
    with s.mod.context, ir.Location.unknown(), ir.InsertionPoint(ir.Module.create().body):
        assert lower_function(s.nest, relayc.Target("cpu")).uses_tiles == bool(options)
