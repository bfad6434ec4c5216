"""Contractions with symbolic extents: one compiled kernel at many sizes, against exact sums with rigorous bounds (see `contractions`)."""

import itertools
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
from accuracy import bound_of, check_sums
from contractions import convolve
from oracle import values
from support import Const
from symbolic_kernels import SymbolicKernel
from symbolic_ops import symbolic_program, tensor

import relayc
from relayc import te
from relayc.dialects.relay import build
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cpu.strategies.bf16.plan import Plan
from relayc.pipelines.targets.cpu.strategies.contraction.blocks import STREAMS
from relayc.runtime.artifact import numpy_dtype
from relayc.symbolic import evaluate

Shape = Sequence[str | int]
Sizes = Mapping[str, int]
Oracle = Callable[..., np.ndarray]
NUMPY = {"f32": "float32", "f64": "float64", "bf16": "bfloat16"}


def type_of(shape: Shape, dtype: str) -> str:
    texts = [f'"{d}"' for d in shape if isinstance(d, str)]
    body = "x".join(["?" if isinstance(d, str) else str(d) for d in shape] + [dtype])
    return f"tensor<{body}, [{', '.join(texts)}]>" if texts else f"tensor<{body}>"


def program(arguments: Mapping[str, str], lines: Sequence[str], result: str) -> str:
    """Relay text of operations on arguments, the last of which is %r."""
    texts = [f'%{name}: {type_} {{relay.name = "{name}"}}' for name, type_ in arguments.items()]
    return f"func.func @main({', '.join(texts)}) -> {result} {{\n" + "\n".join(lines) + f"\nreturn %r : {result}\n}}"


def constant(type_: str) -> str:
    return f'"relay.constant"() {{value = dense<0.0> : {type_}}} : () -> {type_}'


def check(text: str, terms: Callable[[Sizes], int], oracle: Oracle, calls: Sequence[Sizes], target: Target | None, strategy: str) -> str:
    """Compiles a kernel whose layouts stay as they are, and calls it. Gives its schedule.

    Args:
      terms: how many products an element of the result sums.
      oracle: the result in float64, of arrays in the order in which operations take them; of absolute values it is the magnitude of the
        sums, or more.
    """
    with PassContext(disabled_pass=["AlterOpLayout", "Winograd"]):
        kernel = SymbolicKernel(text, target or Target("cpu", num_threads=2))
    # Products that may have few rows have loops for these as well.
    assert kernel.schedule.split()[0] in {strategy, "inner_products" if strategy == "contraction" else strategy}, kernel.schedule
    rng = np.random.default_rng(5)
    for sizes in calls:
        arrays = []
        for node in kernel.kernel.args:
            shape = [evaluate(d, sizes) for d in node.shape]
            arrays.append(rng.standard_normal(shape, dtype=np.float32).astype(numpy_dtype(NUMPY[str(node.element)])))
        found = kernel(sizes, arrays)[0]
        wide = [a.astype(np.float64) for a in arrays]
        expected, magnitude = oracle(*wide).reshape(found.shape), oracle(*map(np.abs, wide)).reshape(found.shape)
        # Two more terms: a bias and a residual.
        error, bound = np.abs(found - expected), bound_of(terms(sizes) + 2, expected, magnitude, str(found.dtype))
        assert np.all(error <= bound), f"{sizes}: off by {np.max(error - bound)} more than allowed"
    return kernel.schedule


# ---- matrix products

ROWS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 13, 16, 17, 23, 29, 31, 33, 47, 64, 97, 131]


def check_dense(
    leading: Shape, depth: int, columns: int, calls: Sequence[Sizes], dtype: str = "f32", target: Target | None = None, strategy: str = ""
) -> None:
    """x [leading..., depth] by a packed weight, then a bias, a residual and an activation."""
    out = "f64" if dtype == "f64" else "f32"
    x, w, y, b = (
        type_of([*leading, depth], dtype),
        type_of([columns, depth], dtype),
        type_of([*leading, columns], out),
        type_of([columns], out),
    )
    lines = [
        f"%w = {constant(w)}",
        f'%p = "relay.nn_dense"(%x, %w) {{out_dtype = "{NUMPY[out]}"}} : ({x}, {w}) -> {y}',
        f'%q = "relay.nn_bias_add"(%p, %b) {{axis = -1 : i64}} : ({y}, {b}) -> {y}',
        f'%s = "relay.add"(%q, %rest) : ({y}, {y}) -> {y}',
        f'%r = "relay.nn_relu"(%s) : ({y}) -> {y}',
    ]

    def oracle(x: np.ndarray, w: np.ndarray, b: np.ndarray, rest: np.ndarray) -> np.ndarray:
        return np.maximum(x @ w.T + b + rest.reshape(*x.shape[:-1], columns), 0)

    text = program({"x": x, "b": b, "rest": y}, lines, y)
    check(text, lambda _: depth, oracle, calls, target, strategy or "contraction")


@pytest.mark.parametrize(("depth", "columns"), [(64, 24), (37, 100), (768, 96), (1030, 70), (20, 7), (1024, 600)])
def test_rows_by_a_packed_weight(depth, columns):
    check_dense(["n"], depth, columns, [{"n": n} for n in ROWS])


@pytest.mark.parametrize(("depth", "columns"), [(203, 40), (205, 100), (1024, 24)])
def test_a_weight_that_comes_from_far_is_read_in_several_places_at_once(depth, columns):
    target = Target("cpu", num_threads=2, l1_bytes=1 << 12, l2_bytes=1 << 12)
    check_dense(["n"], depth, columns, [{"n": n} for n in ROWS], target=target)
    for rows in (1, 2, 3):
        check_dense([rows], depth, columns, [{}], target=target)


def test_rows_of_several_dimensions():
    calls = [{"b": b, "n": n} for b, n in [(0, 3), (3, 0), (1, 1), (2, 7), (5, 13), (8, 16)]]
    check_dense(["b", "n"], 72, 130, calls)
    check_dense(["n", 3], 72, 130, [{"n": n} for n in (0, 1, 5, 30)])


def test_double_precision():
    check_dense(["n"], 53, 41, [{"n": n} for n in ROWS], "f64")
    # Rows a page apart, which are copied.
    check_dense(["n"], 512, 260, [{"n": 3}, {"n": 20}], "f64")


@pytest.mark.parametrize("mcpu", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_every_level_of_the_instruction_set(mcpu):
    target = Target("cpu", mcpu=mcpu, num_threads=2)
    if not target.is_host:
        pytest.skip(f"this machine lacks features of {mcpu}")
    check_dense(["n"], 67, 129, [{"n": n} for n in ROWS], target=target)
    check_dense(["n"], 700, 40, [{"n": n} for n in ROWS], target=target)
    batch_products(["b", "n", "k", "m"], False, True, target)
    check_convolution("NCHW", ["n", 8, "h", "w"], 16, 3, 1, 1, target)


CALLS = [
    *[(0, 3, 5, 7), (2, 0, 5, 7), (2, 3, 5, 0), (2, 3, 0, 7), (1, 1, 1, 1), (3, 1, 64, 97), (3, 17, 33, 1), (1, 7, 13, 31)],
    *[(5, 33, 64, 16), (2, 29, 131, 64), (1, 128, 300, 48), (2, 65, 17, 200), (2, 19, 0, 33), (1, 9, 1, 1)],
]
"""Batches, rows, depths, columns."""


def batch_products(
    symbolic: Sequence[str],
    transpose_a: bool,
    transpose_b: bool,
    target: Target | None = None,
    dtype: str = "f32",
    strategy: str = "contraction",
) -> None:
    """Products of which some of the dimensions b, n, k, m are symbolic, and the others numbers."""
    numbers = {"b": 3, "n": 19, "k": 40, "m": 24}
    b, n, k, m = (d if d in symbolic else numbers[d] for d in "bnkm")
    x = type_of([b, k, n] if transpose_a else [b, n, k], dtype)
    y = type_of([b, m, k] if transpose_b else [b, k, m], dtype)
    r = type_of([b, n, m], "f32")
    attributes = f'transpose_a = {str(transpose_a).lower()}, transpose_b = {str(transpose_b).lower()}, out_dtype = "float32"'
    text = program({"x": x, "y": y}, [f'%r = "relay.nn_batch_matmul"(%x, %y) {{{attributes}}} : ({x}, {y}) -> {r}'], r)

    def oracle(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (x.swapaxes(1, 2) if transpose_a else x) @ (y.swapaxes(1, 2) if transpose_b else y)

    calls = [{d: size for d, size in zip("bnkm", call, strict=True) if d in symbolic} for call in CALLS]
    check(text, lambda sizes: sizes.get("k", numbers["k"]), oracle, calls, target, strategy)


@pytest.mark.parametrize("symbolic", [s for count in (1, 2, 3, 4) for s in itertools.combinations("bnkm", count)], ids="".join)
def test_subsets_of_the_dimensions(symbolic):
    for i, (a, b) in enumerate(itertools.product([False, True], repeat=2)):
        if i % 2 == len(symbolic) % 2:
            batch_products(symbolic, a, b)


@pytest.mark.parametrize("dtype", ["bf16", "f64"])
def test_operands_of_other_types(dtype):
    if dtype == "bf16":
        batch_products("bnkm", False, True, Target("cpu", features="-avx512bf16,-amx-tile", num_threads=2), dtype)
    else:
        check_dense(["b", "n"], 31, 18, [{"b": 3, "n": 5}, {"b": 1, "n": 1}], dtype)


# ---- limits of the plan


SMALL = Target("cpu", num_threads=2, l1_bytes=1 << 12, l2_bytes=1 << 14)
"""Caches so small that a few steps, rows and columns reach every limit of the blocks."""


def check_product(x: Shape, y: Shape, calls: Sequence[Sizes], has_epilogue: bool, target: Target = SMALL) -> str:
    """x [rows, depth] by y [depth, columns], both given, by itself or with a residual and a rectifier. Gives the schedule."""
    rows, columns, depth = x[0], y[1], x[1]
    types = {"x": type_of(x, "f32"), "y": type_of(y, "f32"), "rest": type_of([rows, columns], "f32")}
    result = types["rest"]
    lines = [f'%r = "relay.nn_matmul"(%x, %y) : ({types["x"]}, {types["y"]}) -> {result}']
    if has_epilogue:
        lines = [
            lines[0].replace("%r", "%p", 1),
            f'%q = "relay.add"(%p, %rest) : ({result}, {result}) -> {result}',
            f'%r = "relay.nn_relu"(%q) : ({result}) -> {result}',
        ]
    else:
        del types["rest"]

    def oracle(x: np.ndarray, y: np.ndarray, rest: np.ndarray | None = None) -> np.ndarray:
        return x @ y if rest is None else np.maximum(x @ y + rest, 0)

    terms = lambda sizes: sizes.get(depth, depth)  # noqa: E731 (an argument, not a definition)
    return check(program(types, lines, result), terms, oracle, calls, target, "contraction")


def numbers_of(x: Shape, y: Shape) -> dict[str, int]:
    """The numbers of the schedule of the product of x and y."""
    schedule = check_product(x, y, [], False)
    assert schedule.split()[0] == "contraction"
    return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", schedule)}


@pytest.mark.parametrize("has_epilogue", [False, True])
@pytest.mark.parametrize("symbolic", ["k", "nk", "nkm", "n", "m"])
def test_depths_around_the_chunks_of_a_copied_operand(symbolic, has_epilogue):
    numbers = {"n": 90, "k": 300, "m": 70}
    n, k, m = (d if d in symbolic else numbers[d] for d in "nkm")
    found = numbers_of([n, k], [k, numbers["m"]])
    chunk, rows, columns = found["chunk"], found["rows"], found["vectors"] * SMALL.vector_bytes // 4
    assert chunk < numbers["k"]
    depths = [0, 1, 2, chunk - 1, chunk, chunk + 1, 2 * chunk, 3 * chunk + 1, 1025]
    heights = [4 * rows, 4 * rows - 1, found["block_tiles"] * rows + 1, 1, rows, 5 * rows + 1, 90, 63, 47]
    widths = [columns, columns + 1, 2 * columns - 1, 17, 70, 3 * columns, 1, 33, 31]
    calls = [dict(zip("nkm", call, strict=True)) for call in zip(heights, depths, widths, strict=True)]
    check_product([n, k], [k, m], [{d: size for d, size in call.items() if d in symbolic} for call in calls], has_epilogue)


@pytest.mark.parametrize("columns", [19, 23, 31, 33, 47, 67, 71])
def test_columns_that_are_no_vectors(columns):
    for rows, depth in ((90, 300), (37, 9), (3, 70)):
        check_product([rows, depth], [depth, columns], [{}], rows == 37)
    check_dense(["n"], 70, columns, [{"n": n} for n in (1, 5, 33)])
    check_dense([37], 70, columns, [{}], target=SMALL)


@pytest.mark.parametrize("has_epilogue", [False, True])
@pytest.mark.parametrize("symbolic", ["", "n", "m", "nm"])
def test_few_rows_of_a_large_operand_are_read_in_the_order_of_memory(symbolic, has_epilogue):
    for depth in (STREAMS - 1, STREAMS, STREAMS + 1, 5 * STREAMS, 1025):
        x, y = ["n" if "n" in symbolic else 1, depth], [depth, "m" if "m" in symbolic else 600]
        if not symbolic and depth > STREAMS:
            assert numbers_of(x, y)["chunk"] == STREAMS
        width = SMALL.l1_bytes // 16
        calls = [{"n": n, "m": m} for n, m in zip((1, 2, 3, 4, 9, 25, 130), (600, width, width - 1, width + 1, 1, 15, 1030), strict=True)]
        check_product(x, y, [{d: size for d, size in call.items() if d in symbolic} for call in calls], has_epilogue)


# ---- convolutions


def check_convolution(
    layout: str,
    shape: Shape,
    filters: int,
    taps: int,
    stride: int,
    pad: int,
    target: Target | None = None,
    dtype: str = "f32",
    strategy: str = "contraction",
) -> str:
    """x [n, c, h, w], given in another layout, by packed filters, then a rectifier. Gives the schedule."""
    c = shape[1]
    named = dict(zip("NCHW", shape, strict=True))

    def out(d: str | int) -> str | int:
        return f"({d} + {2 * pad - taps})//{stride} + 1" if isinstance(d, str) else (d + 2 * pad - taps) // stride + 1

    x = type_of([named[axis] for axis in layout], dtype)
    y = type_of([{**named, "C": filters, "H": out(shape[2]), "W": out(shape[3])}[axis] for axis in layout], "f32")
    f = type_of([filters, c, taps, taps], dtype)
    attributes = f"padding = array<i64: {pad}, {pad}, {pad}, {pad}>, strides = array<i64: {stride}, {stride}>"
    attributes += f', data_layout = "{layout}", out_layout = "{layout}", kernel_layout = "OIHW", out_dtype = "float32"'
    lines = [
        f"%w = {constant(f)}",
        f'%p = "relay.nn_conv2d"(%x, %w) {{{attributes}}} : ({x}, {f}) -> {y}',
        f'%r = "relay.nn_relu"(%p) : ({y}) -> {y}',
    ]

    def oracle(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        order = [layout.index(axis) for axis in "NCHW"]
        if 0 in x.shape:
            return np.zeros(0)
        found = np.maximum(convolve(x.transpose(order), w, (stride,) * 2, (1, 1), (pad,) * 4, 1), 0)
        return found.transpose(["NCHW".index(axis) for axis in layout])

    calls = []
    for size in [(0, 9, 9), (1, taps, taps), (2, 7, 11), (1, 13, 8), (3, 9, 17), (1, 16, 33), (1, 24, 24)]:
        sizes = dict(zip("nhw", size, strict=True))
        calls.append({d: sizes[d] for d in shape if isinstance(d, str)})
    return check(program({"x": x}, lines, y), lambda _: int(c) * taps * taps, oracle, calls, target, strategy)


WINDOWS = [(3, 1, 1), (3, 2, 1), (1, 1, 0), (1, 2, 0), (5, 1, 2), (2, 2, 0)]
"""Taps, stride, padding."""


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("shape", [["n", 12, 9, 13], [1, 12, "h", 13], [2, 12, 9, "w"], ["n", 12, "h", "w"]], ids=str)
def test_convolutions(layout, shape):
    first = (layout == "NHWC") ^ (shape[0] == "n")
    for taps, stride, pad in WINDOWS[first::2]:
        check_convolution(layout, shape, 20, taps, stride, pad)


@pytest.mark.parametrize(
    ("layout", "shape", "filters", "taps", "stride"),
    [("NHWC", ["n", 6, "h", "w"], 64, 3, 1), ("NCHW", ["n", 5, "h", "w"], 72, 3, 1), ("NHWC", [1, 3, "h", "w"], 96, 5, 2)],
    ids=str,
)
def test_tiles_go_over_the_ends_of_lines_where_padding_costs_little(layout, shape, filters, taps, stride):
    schedule = check_convolution(layout, shape, filters, taps, stride, taps // 2)
    # In rows of one line there are no blocks of tiles.
    assert "block_tiles" in schedule


def test_first_layers():
    check_convolution("NCHW", ["n", 3, "h", "w"], 32, 7, 2, 3)
    check_convolution("NHWC", [1, 3, "h", "w"], 16, 4, 4, 0)


# ---- bf16

LACKING = {"tiles": "", "dots": "-amx-tile"}
"""What a CPU of 2023 lacks for its bf16 contractions to run on these."""


@pytest.fixture(params=LACKING)
def server(request, monkeypatch) -> tuple[Target, str]:
    """A target whose bf16 instructions are used wherever they can be, emulated, and the strategy that uses them."""
    monkeypatch.setattr(Plan, "vector_cycles", property(lambda self: float("inf")))
    target = Target("cpu", mcpu="sapphirerapids", features=LACKING[request.param] or None, emulate=True, num_threads=2)
    return target, "amx" if request.param == "tiles" else "dot"


@pytest.mark.parametrize(("depth", "columns"), [(64, 48), (40, 100), (31, 20), (1030, 70), (96, 3)])
def test_bf16_rows(depth, columns, server):
    check_dense(["n"], depth, columns, [{"n": n} for n in ROWS], "bf16", *server)


def test_bf16_rows_of_a_call_are_walked_in_parts(server):
    """Parts of 8 KiB have 64 rows; all columns of 70 are more."""
    target, strategy = server
    small = Target(target, l1_bytes=1 << 12, l2_bytes=1 << 14)
    for columns in (70, 600):
        check_dense(["n"], 64, columns, [{"n": n} for n in (1, 33, 63, 64, 65, 96, 97, 128, 130, 300)], "bf16", small, strategy)
    check_dense(["b", "n"], 64, 300, [{"b": b, "n": n} for b, n in [(1, 130), (5, 3), (40, 2)]], "bf16", small, strategy)
    # A vector of a row and a piece, which few rows in tiles copy first.
    check_dense(["n"], 40, 20, [{"n": 3}], "bf16", *server)


def test_bf16_rows_of_several_dimensions(server):
    calls = [{"b": b, "n": n} for b, n in [(0, 3), (3, 0), (1, 1), (2, 7), (5, 13), (8, 16)]]
    check_dense(["b", "n"], 64, 40, calls, "bf16", *server)


@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("symbolic", ["m", "nm", "k", "bnk", "bnkm"])
def test_bf16_columns_and_reductions(symbolic, transpose_b, server):
    target, strategy = server
    # Steps of the reduction that only a call knows have to be rows of B.
    batch_products(symbolic, False, transpose_b, target, "bf16", "contraction" if transpose_b and "k" in symbolic else strategy)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("shape", [["n", 12, 9, 13], [1, 12, "h", 13], ["n", 16, "h", "w"]], ids=str)
def test_bf16_convolutions(layout, shape, server):
    for taps, stride, pad in WINDOWS[:3] if shape[0] == "n" else WINDOWS[:1]:
        check_convolution(layout, shape, 20, taps, stride, pad, server[0], "bf16", server[1])


@pytest.mark.parametrize("mcpu", ["x86-64-v3", "x86-64-v4"])
def test_strips_whose_rows_are_the_last_step_of_the_reduction(mcpu: str) -> None:
    w = values((65, 15, 3, 2))
    attrs = {"strides": (2, 1), "dilation": (1, 2), "padding": (1, 0, 1, 0)}
    program = symbolic_program(lambda x, w: [build("nn.conv2d", x, w, **attrs)], [tensor("float32[n, 15, 15, m]"), Const(w)])
    module = relayc.compile(program, target=f"cpu -mcpu={mcpu}", cache=False)
    for n, m in ((2, 4), (1, 3), (3, 33)):
        data = values((n, 15, 15, m), seed=n)
        wide, filters = data.astype(np.float64), w.astype(np.float64)
        expected, magnitude = (convolve(f(wide), f(filters), (2, 1), (1, 2), (1, 0, 1, 0), 1) for f in (np.array, np.abs))
        check_sums(module["main"](data), expected, magnitude, 15 * 3 * 2)


@pytest.mark.parametrize("stride", [1, 2])
def test_strips_whose_rows_go_over_several_dimensions(stride: int) -> None:
    """Padding is along the depth alone: rows and columns are one loop, whose end no single dimension has."""
    w = values((3, 2, 2, 1, 1))
    attrs = {"strides": (1, 1, stride), "padding": (1, 0, 0, 0, 0, 0)}
    program = symbolic_program(lambda x, w: [build("nn.conv3d", x, w, **attrs)], [tensor(f"float32[1, 2, 2, 4, {stride}*m]"), Const(w)])
    module = relayc.compile(program, target="cpu -mcpu=x86-64-v3", cache=False)
    for m in (1, 2, 13, 40):
        data = values((1, 2, 2, 4, stride * m), seed=m)
        wide, filters = (
            np.pad(data.astype(np.float64), [(0, 0), (0, 0), (1, 0), (0, 0), (0, 0)])[..., ::stride],
            w[..., 0, 0].astype(np.float64),
        )
        found = np.lib.stride_tricks.sliding_window_view(wide, 2, axis=2)
        expected, magnitude = (np.einsum("ncdhwk,ock->nodhw", f(found), f(filters)) for f in (np.array, np.abs))
        check_sums(module["main"](data), expected, magnitude, 2 * 2)


@pytest.mark.parametrize(("channels", "pad", "takes"), [(1, 64, True), (6, 64, True), (6, 65, False)])
def test_strips_for_as_many_rows_as_a_padding_may_touch(channels: int, pad: int, takes: bool) -> None:
    w = values((20, channels, 1, 3))
    padding = (0, pad, 0, pad)
    program = symbolic_program(
        lambda x, w: [build("nn.conv2d", x, w, padding=padding)], [tensor(f"float32[1, {channels}, 2, m]"), Const(w)]
    )
    module = relayc.compile(program, target="cpu -mcpu=x86-64-v3", cache=False)
    assert any(kernel.schedule.startswith("contraction") for kernel in module.kernels) is takes
    for m in (1, 7, 70, 200):
        data = values((1, channels, 2, m), seed=m)
        wide, filters = data.astype(np.float64), w.astype(np.float64)
        expected, magnitude = (convolve(f(wide), f(filters), (1, 1), (1, 1), padding, 1) for f in (np.array, np.abs))
        check_sums(module["main"](data), expected, magnitude, channels * 3)


def test_taps_that_go_backwards() -> None:
    m, k, c = te.var("m"), te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 24), "c")
    a, b = te.placeholder((24, m), name="A"), te.placeholder((24, 3, 20), name="B")
    padded = lambda at: te.if_then_else(te.all(at >= 0, at < m), a[c, at], 0.0)  # noqa: E731
    made = te.compute((m, 20), lambda i, o: te.sum(padded(i - k + 1) * b[c, k, o], axis=[c, k]))
    kernel = relayc.compile_kernel(te.create_prim_func([a, b, made]), target="cpu -mcpu=x86-64-v3")
    w = values((24, 3, 20))
    for size in (1, 9, 40):
        x = values((24, size), seed=size)
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(x.astype(np.float64), [(0, 0), (1, 1)]), 3, 1)[..., ::-1]
        expected, magnitude = (np.einsum("cik,cko->io", f(windows), f(w.astype(np.float64))) for f in (np.array, np.abs))
        check_sums(kernel(x, w), expected, magnitude, 24 * 3)
