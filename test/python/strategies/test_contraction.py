"""Numerics of the contraction schedule on matrix products of awkward shapes, against exact sums with rigorous bounds."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from contractions import batch_product, check, matrix_product
from oracle import values
from support import Const, program

from relayc.dialects.discardable import REPEATED
from relayc.dialects.mlir import ir
from relayc.dialects.relay import build
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile
from relayc.pipelines.driver.compile_kernel import compile_kernel
from relayc.pipelines.targets.cpu.strategies.contraction.strategy import choose
from relayc.pipelines.te.read.graph import read_kernel
from relayc.pipelines.tir.strategy.tuning import Tuning

FORMS = list(itertools.product([False, True], repeat=2))
SHAPES = {
    "ones": [(1, 1, 1), (1, 1, 2), (2, 1, 1), (1, 2, 1), (2, 1, 3)],
    "primes": [(7, 13, 11), (31, 67, 37), (13, 257, 101)],
    "powers of two": [(8, 8, 8), (16, 64, 32), (64, 256, 128)],
    "around a tile": [(5, 16, 15), (6, 17, 16), (7, 16, 17), (12, 31, 33)],
    "one row": [(1, 64, 48), (1, 67, 129), (1, 513, 1000)],
    "one column": [(48, 64, 1), (129, 67, 1), (1000, 513, 1)],
    "little depth": [(33, 1, 65), (70, 2, 41), (128, 3, 96)],
    "deep and small": [(2, 1031, 3), (3, 2048, 5), (1, 4099, 2)],
    "weights beyond the cache": [(1, 1100, 600), (3, 1100, 600), (24, 1030, 600), (40, 1030, 600)],
    "chunks and a narrower last panel": [(70, 1500, 100), (20, 2000, 52)],
    "worth threads": [(97, 131, 89), (256, 64, 80), (64, 300, 17)],
}


@pytest.mark.parametrize("constant", ["", "a", "b"])
@pytest.mark.parametrize("shapes", SHAPES)
def test_products_in_every_transposition(shapes, constant):
    forms = [(s, a, b) for s in SHAPES[shapes] for a, b in FORMS]
    check([matrix_product(*s, transpose_a=a, transpose_b=b, constant=constant) for s, a, b in forms])


@pytest.mark.parametrize(("left", "right"), [(3, 3), (1, 5), (5, 1)])
@pytest.mark.parametrize("constant", [False, True])
def test_batches_in_every_transposition(left, right, constant):
    shapes = [(7, 13, 11), (1, 33, 64), (64, 33, 1), (37, 64, 16), (49, 32, 50)]
    forms = [(s, a, b) for s in shapes for a, b in FORMS]
    check([batch_product(left, right, *s, transpose_a=a, transpose_b=b, constant=constant) for s, a, b in forms])


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_float_types(dtype):
    shapes = [(1, 64, 50), (7, 33, 17), (31, 128, 48), (64, 67, 1), (97, 131, 89)]
    cases = [matrix_product(*s, transpose_b=t, constant=c, dtype=dtype) for s in shapes for t in (False, True) for c in ("", "b")]
    check([*cases, batch_product(2, 2, 9, 32, 33, dtype=dtype), batch_product(2, 1, 9, 33, 20, transpose_b=False, dtype=dtype)])


@pytest.mark.parametrize(("dtype", "out_dtype"), [("int8", "int32"), ("uint8", "int32"), ("int32", "int32"), ("int64", "int64")])
def test_integers_are_exact(dtype, out_dtype):
    shapes = [(1, 64, 50), (7, 33, 17), (31, 129, 48), (64, 67, 1), (97, 131, 89)]
    forms = [(s, a, b, c) for s in shapes for a, b in FORMS for c in ("", "b")]
    check([matrix_product(*s, transpose_a=a, transpose_b=b, constant=c, dtype=dtype, out_dtype=out_dtype) for s, a, b, c in forms])


@pytest.mark.parametrize("constant", ["", "b"])
def test_what_follows_is_computed_on_the_sums(constant):
    cases = []
    for rows, depth, columns in [(1, 64, 100), (7, 33, 17), (64, 67, 48), (97, 131, 89)]:
        for transpose_b in (False, True):
            base = matrix_product(rows, depth, columns, transpose_b=transpose_b, constant=constant)
            bias, column = Const(values((columns,), seed=2)), values((rows, 1), seed=3)
            residual = values((rows, columns), seed=4)
            cases += [base.plus(bias).then("nn.relu", lambda v: np.maximum(v, 0)), base.plus(bias).plus(residual), base.plus(column)]
    check(cases)


@pytest.mark.parametrize("mcpu", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_every_level_of_the_instruction_set(mcpu):
    target = Target("cpu", mcpu=mcpu)
    if not target.is_host:
        pytest.skip(f"this machine lacks features of {mcpu}")
    shapes = [(1, 67, 129), (7, 13, 11), (33, 64, 40), (97, 131, 89)]
    check([matrix_product(*s, transpose_b=t, constant=c) for s in shapes for t in (False, True) for c in ("", "b")], target=target)


def test_tiles_of_wide_vectors():
    """Tiles for 64-byte vectors and 32 registers; where the machine has none, LLVM splits them."""
    target = Target("cpu", vector_bytes=64, num_vector_registers=32)
    shapes = [(1, 67, 129), (7, 13, 11), (33, 64, 40), (97, 131, 89), (31, 16, 15)]
    cases = [matrix_product(*s, transpose_a=a, transpose_b=b, constant=c) for s in shapes for a, b in FORMS for c in ("", "b")]
    check([*cases, *(matrix_product(*s, constant="b", dtype="bfloat16") for s in shapes)], target=target)


def numbers(rows: int, depth: int, columns: int, target: Target) -> dict[str, int]:
    """What the schedule of a product with constant weights is made of."""
    arrays = [values((rows, depth)), Const(values((columns, depth), seed=1))]
    (kernel,) = compile(program(lambda x, w: [build("nn.dense", x, w)], arrays), target=target, stop_after="tir").kernels
    return {name: int(value) for name, value in (word.split("=") for word in kernel.schedule.split()[1:])}


def test_sizes_around_the_limits_of_the_plan():
    """Tiles, blocks and chunks of caches that are small enough for products with several of each."""
    target = Target("cpu", num_threads=2, l1_bytes=2 << 10, l2_bytes=32 << 10)
    plan = numbers(256, 1024, 512, target)
    lanes = target.vector_bytes // 4
    steps = {plan["chunk"], target.l2_bytes // 2 // (4 * lanes * plan["vectors"])}
    limits = {
        "rows": [plan["rows"], 4 * plan["rows"], plan["rows"] * plan["block_tiles"]],
        "depth": [*steps, *(2 * n for n in steps), 1024 + plan["chunk"]],
        "columns": [plan["vectors"] * lanes, plan["vectors"] * lanes * (plan["block_panels"] + 1)],
    }
    sizes = {name: sorted({n + d for n in found for d in (-1, 0, 1)}) for name, found in limits.items()}
    assert plan["chunk"] < 1024 <= max(sizes["depth"])
    rng = np.random.default_rng(11)
    cases = []
    for depth in sizes["depth"]:
        rows, columns = (int(rng.choice(sizes[name])) for name in ("rows", "columns"))
        base = matrix_product(rows, depth, columns, transpose_b=bool(rng.integers(2)), constant=str(rng.choice(["", "b", "b"])))
        cases.append(base.plus(values((rows, columns), seed=4)) if rng.integers(2) else base)
    check(cases, target=target)


@pytest.mark.parametrize(
    ("units", "is_parameter", "turns"), [(256, True, True), (256, False, False), (24, True, False), (1056, True, False)]
)
def test_weights_of_a_loop_turn_where_some_of_them_stay_in_the_cache(units: int, is_parameter: bool, turns: bool) -> None:
    """From an eighth of the second-level cache to four of them; what each call has anew is in no cache."""
    target = Target("cpu -mcpu=x86-64-v3 -num-threads=1 -l2-bytes=262144")
    x, w = np.zeros((1, 256), np.float32), np.zeros((units, 256), np.float32)
    fed = [x, Const(w) if is_parameter else w]
    te = compile(program(lambda x, w: [build("nn.dense", x, w)], fed), target, stop_after="te")
    with te.context, ir.Location.unknown():
        function = te.module.body.operations[0]
        for is_repeated in (False, True):
            if is_repeated:
                REPEATED.mark(function)
            chosen = choose(read_kernel(function), target, Tuning())
            assert chosen is not None and chosen[0].turns == (is_repeated and turns)


SLICED = """
func.func @product(%x: tensor<9x12xf32>, %w: tensor<12x40xf32>) -> tensor<4x40xf32> {
  %some = tensor.extract_slice %x[1, 0] [4, 12] [2, 1] : tensor<9x12xf32> to tensor<4x12xf32>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x40xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<4x40xf32>) -> tensor<4x40xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%some, %w : tensor<4x12xf32>, tensor<12x40xf32>) outs(%i : tensor<4x40xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x40xf32>
  return %r : tensor<4x40xf32>
}"""


@pytest.mark.parametrize(
    ("before", "after", "strategy", "expected"),
    [
        ("", "", "contraction", lambda x, w: x @ w),
        ("arith.mulf %a, %b", "arith.mulf %b, %b", "loops", lambda x, w: np.ones_like(x) @ w**2),
        ("arith.mulf %a, %b", "arith.subf %a, %b", "loops", lambda x, w: x.sum(1, keepdims=True) - w.sum(0)),
        ("arith.addf %o, %m", "arith.maximumf %o, %m", "loops", lambda x, w: np.maximum((x[:, :, None] * w).max(1), 0)),
        ("arith.addf %o, %m", "arith.addf %m, %m", "loops", lambda x, w: 2 * x[:, -1:] * w[-1:]),
    ],
)
def test_sums_of_some_rows_and_of_other_terms(before: str, after: str, strategy: str, expected: Callable[..., np.ndarray]) -> None:
    kernel = compile_kernel(SLICED.replace(before, after) if before else SLICED)
    assert kernel.info.schedule.startswith(strategy)
    x, w = (np.random.default_rng(seed).integers(-8, 8, shape).astype(np.float32) for seed, shape in enumerate(((9, 12), (12, 40))))
    np.testing.assert_array_equal(kernel(x, w), expected(x[1::2], w))
