"""Products of which one operand has few rows, against exact sums with rigorous bounds: sizes around the limits of their plans."""

import numpy as np
import pytest
from accuracy import bound_of
from contractions import batch_product, check, matrix_product
from oracle import needs_avx512, values
from support import Const
from symbolic_kernels import SymbolicKernel

import relayc
from relayc.dialects.functions import symbol_name
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay import IRModule
from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cpu.strategies.contraction.inner_products import MOST_ROWS, InnerProducts, inner_product_nests
from relayc.pipelines.te.read.graph import read_kernel
from relayc.pipelines.tir.strategy.tuning import Tuning
from relayc.symbolic import evaluate

TARGET = Target("cpu", num_threads=2)


def product(x: str, y: str, out: str, transpose_b: bool) -> str:
    """Relay text of a batched product with a residual; a shape is written as in "b,m,k"."""

    def type_(shape: str) -> str:
        names = shape.split(",")
        symbols = [n for n in names if not n.isdigit()]
        return f"tensor<{'x'.join('?' if n in symbols else n for n in names)}xf32" + (
            f", {list(symbols)}>".replace("'", '"') if symbols else ">"
        )

    a, b, c = map(type_, (x, y, out))
    return f"""func.func @main(%x: {a} {{relay.name = "x"}}, %y: {b} {{relay.name = "y"}}, %z: {c} {{relay.name = "z"}}) -> {c} {{
      %0 = "relay.nn_batch_matmul"(%x, %y) {{transpose_b = {str(transpose_b).lower()}}} : ({a}, {b}) -> {c}
      %1 = "relay.add"(%0, %z) : ({c}, {c}) -> {c}
      return %1 : {c}
    }}"""


def nests_of(text: str, target: Target) -> list[InnerProducts]:
    """The nests of the only kernel of a program."""
    te = relayc.compile(IRModule.parse(text), target, stop_after="te", cache=False)
    with te.context, te.ranges, ir.Location.unknown():
        kernels = [f for f in te.module.body.operations if isinstance(f, func.FuncOp) and symbol_name(f) != "main"]
        return inner_product_nests(read_kernel(kernels[0]), target, Tuning())


def around(*limits: int) -> list[int]:
    return sorted({n + d for n in limits for d in (-1, 0, 1) if n + d >= 0})


FORMS = {
    "few columns, by rows": ("b,m,k", "b,k,n", "b,m,n", False),
    "few columns, along the depth": ("b,m,k", "b,n,k", "b,m,n", True),
    "few rows": ("b,m,k", "b,640,k", "b,m,640", True),
    "a matrix for all": ("b,96,k", "1,k,n", "b,96,n", False),
    "a depth that is known": ("b,70,75", "b,75,n", "b,70,n", False),
}


@pytest.mark.parametrize(("form", "mcpu"), [*((form, "") for form in FORMS), ("few columns, by rows", "x86-64"), ("few rows", "x86-64-v3")])
def test_symbolic_sizes_around_the_limits_of_the_plan(form, mcpu):
    target = Target("cpu", mcpu=mcpu, num_threads=2) if mcpu else TARGET
    if not target.is_host:
        pytest.skip(f"this machine lacks features of {mcpu}")
    *shapes, transpose_b = FORMS[form]
    text = product(*shapes, transpose_b)
    kernel = SymbolicKernel(text, target)
    assert kernel.schedule.split()[0] == "inner_products", kernel.schedule
    rows, columns, depths = set(), set(), set()
    for nest in nests_of(text, target):
        rows.update(around(*nest.heights, nest.rows))
        columns.update(around(*map(nest.p.width, nest.heights), nest.p.block, 2 * nest.p.block, 1024 + nest.p.block))
        depths.update(around(nest.tile.lanes, 3 * nest.tile.lanes))
    rng = np.random.default_rng(7)

    def drawn() -> dict[str, int]:
        small, large = (int(rng.choice(sorted(some))) for some in (rows, columns))
        sides = (large, small) if rng.integers(4) else (small, large)
        return {"b": int(rng.integers(1, 4)), "m": sides[0], "n": sides[1], "k": int(rng.choice(sorted(depths)))}

    # Each number of rows once at least: those are the heights and the numbers of tiles.
    every = [{**drawn(), "n": n} for n in sorted(rows)] + [{**drawn(), "m": n} for n in sorted(rows)] + [drawn() for _ in range(12)]
    every.append({"b": 1, "m": max(rows) // 2, "n": max(rows) // 2, "k": 1031})
    for sizes in every:
        named = {s: sizes[s] for s in kernel.kernel.symbols}
        arrays = [rng.standard_normal([named[d] if d in named else int(d) for d in s.split(",")], np.float32) for s in shapes]
        (found,) = kernel(named, arrays)
        x, y, z = (a.astype(np.float64) for a in arrays)
        y = y.swapaxes(1, 2) if transpose_b else y
        magnitude = np.abs(x) @ np.abs(y) + np.abs(z)
        error = np.abs(found - (x @ y + z))
        bound = bound_of(x.shape[-1] + 1, x @ y + z, magnitude, "float32")
        assert np.all(error <= bound), f"{named}: off by {np.max(error - bound)} more than allowed"


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
def test_known_sizes_around_the_limits_of_the_plan(dtype):
    (nest,) = nests_of(product("4,500,70", "4,70,3", "4,500,3", False), TARGET)
    lanes, block = nest.tile.lanes, nest.p.block
    rows = [1, 2, 3, 5, 7, 8, 9, 12, 13, MOST_ROWS - 1, MOST_ROWS, MOST_ROWS + 1]
    large = [*around(nest.p.width(1), block, 17 * block)]
    depths = [*around(lanes, 2 * lanes), 1031]
    rng = np.random.default_rng(3)
    cases = []
    for few in rows if dtype == "float32" else rows[::4]:
        many, depth = (int(rng.choice(some)) for some in (large, depths))
        form = {"transpose_b": bool(rng.integers(2)), "dtype": dtype, "constant": str(rng.choice(["", "b"]))}
        base = matrix_product(many, depth, few, **form)
        cases += [base, matrix_product(few, depth, many, transpose_b=True, dtype=dtype)]
        cases.append(batch_product(3, int(rng.choice([1, 3])), many % 90 + 1, depth, few, transpose_b=form["transpose_b"], dtype=dtype))
        if dtype == "float32":
            cases.append(base.plus(Const(values((few,), seed=2))).plus(values((many, few), seed=3)))
    module = check(cases)
    if dtype == "float32":
        needs_avx512()
    assert sum(kernel.schedule.split()[0] == "inner_products" for kernel in module.kernels) >= len(module.kernels) // 3


@pytest.mark.parametrize("op", ["take", "gather_nd"])
@pytest.mark.parametrize("rows", [1, 3])
def test_gathered_weights_are_read_where_they_lie(op, rows):
    """What a gather reads in a kernel of its own, and the product of that, are the same sums of the same elements."""
    w, i = "tensor<5x70x75xf32>", {"take": 'tensor<?xi64, ["t"]>', "gather_nd": 'tensor<1x?xi64, ["t"]>'}[op]
    x, y = f'tensor<?x75x{rows}xf32, ["t"]>', f'tensor<?x70x{rows}xf32, ["t"]>'
    attribute = {"take": 'axis = 0 : i64, mode = "fast"', "gather_nd": "batch_dims = 0 : i64, in_bounds = true"}[op]
    text = f"""func.func @main(%w: {w} {{relay.name = "w"}}, %i: {i} {{relay.name = "i"}}, %x: {x} {{relay.name = "x"}}) -> {y} {{
      %0 = "relay.{op}"(%w, %i) {{{attribute}}} : ({w}, {i}) -> tensor<?x70x75xf32, ["t"]>
      %1 = "relay.nn_batch_matmul"(%0, %x) {{transpose_b = false}} : (tensor<?x70x75xf32, ["t"]>, {x}) -> {y}
      return %1 : {y}
    }}"""
    module = relayc.compile(IRModule.parse(text), TARGET, cache=False)
    (kernel,) = module.kernels
    assert kernel.schedule.split()[0] == "inner_products"
    rng = np.random.default_rng(1)
    weights = rng.standard_normal((5, 70, 75), np.float32)
    for tokens in (1, 2, 37, 1031):
        chosen = rng.integers(-5, 5, tokens)
        vectors = rng.standard_normal((tokens, 75, rows), np.float32)
        found = module["main"](weights, chosen if op == "take" else chosen[None], vectors)
        expected = weights[chosen].astype(np.float64) @ vectors
        magnitude = np.abs(weights[chosen]).astype(np.float64) @ np.abs(vectors)
        assert np.all(np.abs(found - expected) <= bound_of(75, expected, magnitude, "float32")), tokens


@pytest.mark.parametrize(("element", "count"), [("i8", 0), ("i16", 1), ("f32", 1)])
def test_sums_have_16_bits_or_more(element, count):
    assert len(nests_of(product("4,500,70", "4,70,3", "4,500,3", False).replace("xf32", f"x{element}"), TARGET)) == count


LIMITS = [
    # Rows of the depth of a vector at least.
    (("1,500,8", "1,8,1", "1,500,1"), "v3", 1),
    (("1,500,7", "1,7,1", "1,500,1"), "v3", 0),
    # Few columns.
    (("1,4000,4096", "1,4096,16", "1,4000,16"), "v4", 1),
    (("1,4000,4096", "1,4096,17", "1,4000,17"), "v4", 0),
    # What a call may have.
    (("1,500,70", "1,70,n", "1,500,n"), "n = array<i64: 12, 1000, 12>", 1),
    (("1,500,70", "1,70,n", "1,500,n"), "n = array<i64: 13, 1000, 13>", 0),
]


@pytest.mark.parametrize(("shapes", "given", "count"), LIMITS)
def test_products_beyond_a_limit_are_left_to_contractions(shapes: tuple[str, str, str], given: str, count: int) -> None:
    level, ranges = (given, "") if given.startswith("v") else ("v3", given)
    text = f"module attributes {{relay.symbols = {{{ranges}}}}} {{\n{product(*shapes, False)}\n}}"
    assert len(nests_of(text, Target(f"cpu -mcpu=x86-64-{level}"))) == count


def test_few_rows_are_copied() -> None:
    """Twelve of them at most, of 75 elements of 4 bytes for each batch."""
    copied = [nest.copied_bytes for nest in nests_of(product("b,70,75", "b,75,n", "b,70,n", False), TARGET)]
    assert [[evaluate(size, {"b": 2, "n": n}) for n in (0, 5, 12, 13, 999)] for size in copied] == [
        [2 * rows * 75 * 4 for rows in (0, 5, 12, 12, 12)]
    ]


@pytest.mark.parametrize(("total", "is_possible"), [("i8", False), ("i16", True), ("i32", True)])
def test_sums_of_bytes_are_left_to_other_schedules(total: str, is_possible: bool) -> None:
    maps = ", ".join(f"affine_map<(i, j, k) -> ({at})>" for at in ("i, k", "j, k", "i, j"))
    mod = IRModule.parse(f"""
func.func @main(%x: tensor<1x512x{total}>, %w: tensor<2048x512x{total}>) -> tensor<1x2048x{total}> {{
  %zero = arith.constant 0 : {total}
  %none = tensor.empty() : tensor<1x2048x{total}>
  %start = linalg.fill ins(%zero : {total}) outs(%none : tensor<1x2048x{total}>) -> tensor<1x2048x{total}>
  %y = linalg.matmul indexing_maps = [{maps}] ins(%x, %w : tensor<1x512x{total}>, tensor<2048x512x{total}>)
    outs(%start : tensor<1x2048x{total}>) -> tensor<1x2048x{total}>
  return %y : tensor<1x2048x{total}>
}}""")
    with mod.context, ir.Location.unknown():
        assert bool(inner_product_nests(read_kernel(mod.main), Target("cpu", mcpu="x86-64-v4"), Tuning())) == is_possible
