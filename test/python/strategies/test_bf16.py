"""Numerics of bf16 contractions on AMX tiles and AVX512-BF16 dot products, emulated where the machine lacks them, against exact sums with
rigorous bounds; and the machine code for CPUs that have them."""

import itertools
import re
from functools import partial

import ml_dtypes
import numpy as np
import pytest
from contractions import Case, batch_product, check, convolution, matrix_product
from oracle import values
from support import Const, program
from symbolic_ops import symbolic_program, tensor

from relayc.dialects.operations import find_operations
from relayc.dialects.relay import build
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile
from relayc.pipelines.driver.compile_kernel import compile_kernel
from relayc.pipelines.targets.cpu.strategies.bf16 import amx
from relayc.pipelines.targets.cpu.strategies.bf16.layout import _whole_groups
from relayc.pipelines.targets.cpu.strategies.bf16.nest import PairsNest
from relayc.pipelines.targets.cpu.strategies.bf16.plan import MANY_COLUMNS, Plan, best_plan
from relayc.runtime import Module
from relayc.symbolic import Range

BF16 = {"dtype": "bfloat16", "out_dtype": "float32"}
FORMS = list(itertools.product([False, True], repeat=2))


LACKING = {"tiles": "", "dots": "-amx-tile"}
"""What a CPU of 2023 lacks for its bf16 contractions to run on these."""


@pytest.fixture(params=LACKING)
def target(request, monkeypatch) -> Target:
    """A target whose bf16 instructions are used wherever they can be, however small the kernel."""
    monkeypatch.setattr(Plan, "vector_cycles", property(lambda self: float("inf")))
    return _server(request.param, emulate=True)


def _server(kind: str, emulate: bool = False) -> Target:
    return Target("cpu", mcpu="sapphirerapids", features=LACKING[kind] or None, emulate=emulate, num_threads=2)


PRODUCTS = {
    "less than a tile": [(3, 31, 2), (1, 64, 48), (15, 30, 17)],
    "primes": [(7, 13, 11), (37, 257, 53)],
    "whole tiles": [(16, 32, 16), (64, 128, 96)],
    "around a tile": [(17, 33, 33), (31, 63, 47), (48, 48, 48)],
    "steps that are not 32 deep": [(33, 40, 34), (49, 80, 20)],
    "one row, one column": [(1, 67, 129), (1, 512, 100), (100, 70, 1)],
    "weights beyond the cache": [(5, 1030, 1100)],
    "worth threads": [(197, 96, 130), (300, 160, 200)],
}


@pytest.mark.parametrize("shapes", PRODUCTS)
def test_products(shapes, target):
    constants = itertools.cycle(["b", "", "b", "a", ""])
    forms = [(s, *FORMS[(i + j) % 4], next(constants)) for i, s in enumerate(PRODUCTS[shapes]) for j in (0, 1)]
    check([matrix_product(*s, transpose_a=a, transpose_b=b, constant=c, **BF16) for s, a, b, c in forms], target=target)


@pytest.mark.parametrize(("left", "right"), [(3, 3), (1, 5), (5, 1)])
def test_batches_in_every_transposition(left, right, target):
    shape = (33, 66, 40)
    cases = [batch_product(left, right, *shape, transpose_a=a, transpose_b=b, **BF16) for a, b in FORMS]
    check([*cases, batch_product(left, right, 7, 13, 11, constant=True, **BF16)], target=target)


@pytest.fixture
def small(monkeypatch) -> Target:
    """A target of tiles whose second-level cache has 16 KiB."""
    monkeypatch.setattr(Plan, "vector_cycles", property(lambda self: float("inf")))
    return Target(_server("tiles", emulate=True), l1_bytes=1 << 12, l2_bytes=1 << 14)


@pytest.mark.parametrize("rows", [95, 96, 97, 128, 129, 191, 193])
def test_an_operand_beyond_the_second_level_cache_is_walked_in_parts(rows, small):
    """96 rows of 64 numbers, or as many columns, are three quarters of the cache; parts are of 64 at most."""
    shapes = [(rows, 64, 210), (210, 64, rows), (rows, 70, 200)]
    cases = [matrix_product(*shape, constant=c, **BF16) for shape in shapes for c in ("b", "")]
    check([*cases, batch_product(2, 2, *shapes[0], **BF16), batch_product(3, 1, *shapes[1], constant=True, **BF16)], target=small)


def test_parts_are_about_equal(small):
    """Eleven blocks of 32 rows, of which seven are half of the cache: parts of six and of five."""
    check(
        [matrix_product(*shape, constant="b", **BF16) for shape in [(352, 32, 360), (360, 32, 352)]],
        target=Target(small, l2_bytes=29 << 10),
    )


@pytest.mark.parametrize(("size", "filters"), [((11, 9), 160), ((13, 17), 40), ((40, 3), 24)])
def test_parts_of_convolutions(size, filters, small):
    """Lines of the image, images or blocks of filters."""
    attrs = {"pads": (1, 1, 1, 1), **BF16}
    check([convolution((n, 24, *size), (filters, 24, 3, 3), **attrs) for n in (1, 3)], target=small)


@pytest.mark.parametrize(("strides", "kernel", "elements"), [((2, 2), 1, 8 * 8 * 32), ((1, 1), 3, 16 * 16 * 32)])
def test_elements_that_rows_of_a_convolution_reach(strides, kernel, elements, small, monkeypatch):
    """Those of the image are counted once; of strides, only those that are read."""
    found = []
    monkeypatch.setattr(PairsNest, "_part", lambda self, *_: found.append(self.operand_bytes[0]))
    attrs = {"strides": strides, "channels": 64, "kernel_size": (kernel, kernel), "out_dtype": "float32"}
    arrays = [values((1, 32, 16, 16), "bfloat16"), Const(values((64, 32, kernel, kernel), "bfloat16"))]
    compile(program(lambda x, w: [build("nn.conv2d", x, w, **attrs)], arrays), target=small, stop_after="tir")
    assert found and set(found) == {2 * elements}


PLANES = {
    "pointwise": [
        ((1, 13, 7, 11), (17, 13, 1, 1), {}),
        ((2, 64, 14, 14), (32, 64, 1, 1), {}),
        ((1, 19, 13, 9), (23, 19, 1, 1), {"strides": (2, 3)}),
        ((1, 8, 9, 9), (16, 8, 1, 1), {"pads": (1, 0, 2, 1)}),
    ],
    "primes": [((1, 3, 17, 23), (7, 3, 3, 3), {"pads": (1, 1, 1, 1)}), ((2, 11, 13, 7), (13, 11, 5, 3), {"pads": (2, 1, 2, 1)})],
    "whole tiles": [((1, 64, 18, 18), (64, 64, 3, 3), {"pads": (1, 1, 1, 1)}), ((1, 32, 16, 16), (32, 32, 3, 3), {})],
    "first layers": [
        ((1, 3, 33, 35), (32, 3, 7, 7), {"strides": (2, 2), "pads": (3, 3, 3, 3)}),
        ((1, 3, 32, 32), (16, 3, 4, 4), {"strides": (4, 4)}),
    ],
    "lines of an odd number of tiles": [((1, 16, 3, 37), (16, 16, 1, 3), {"pads": (0, 1, 0, 1)})],
    "large strides": [((1, 8, 40, 40), (16, 8, 2, 3), {"strides": (8, 3), "pads": (0, 1, 0, 1)})],
    "dilation": [
        ((1, 7, 19, 21), (8, 7, 3, 3), {"dilation": (2, 3), "pads": (2, 3, 2, 3)}),
        ((1, 16, 15, 15), (16, 16, 3, 3), {"dilation": (4, 4), "pads": (4, 4, 4, 4), "strides": (2, 2)}),
    ],
    "asymmetric padding": [((1, 6, 9, 10), (11, 6, 3, 3), {"pads": (0, 2, 1, 0)}), ((1, 16, 8, 8), (16, 16, 2, 2), {"pads": (0, 0, 1, 1)})],
    "grouped": [
        ((1, 12, 9, 10), (20, 3, 3, 3), {"groups": 4, "pads": (1, 1, 1, 1)}),
        ((1, 64, 7, 7), (64, 32, 3, 3), {"groups": 2, "strides": (2, 2), "pads": (1, 1, 1, 1)}),
        ((2, 64, 5, 5), (32, 32, 1, 1), {"groups": 2}),
    ],
    "depthwise": [((1, 13, 9, 11), (13, 1, 3, 3), {"groups": 13, "pads": (1, 1, 1, 1)})],
}


@pytest.mark.parametrize("case", PLANES)
def test_convolutions(case, target):
    cases = [convolution(x, w, **attrs, **BF16) for x, w, attrs in PLANES[case]]
    x, w, attrs = PLANES[case][0]
    check([*cases, convolution(x, w, constant=False, **attrs, **BF16)], target=target)


def test_lines_and_volumes(target):
    cases = [
        ((1, 80, 50), (64, 80, 3), {"pads": (1, 1)}),
        ((2, 6, 20), (9, 2, 3), {"groups": 3, "dilation": (4,)}),
        ((1, 1, 400), (16, 1, 10), {"strides": (5,)}),
        ((1, 16, 4, 9, 9), (32, 16, 1, 3, 3), {"pads": (0, 1, 1, 0, 1, 1)}),
    ]
    check([convolution(x, w, **attrs, **BF16) for x, w, attrs in cases], target=target)


@pytest.mark.parametrize("out_dtype", ["float32", "bfloat16"])
def test_what_follows_is_computed_on_the_sums(out_dtype, target):
    cases: list[Case] = []
    for rows, depth, columns in [(1, 64, 100), (33, 34, 17), (97, 131, 89)]:
        base = matrix_product(rows, depth, columns, transpose_b=True, constant="b", dtype="bfloat16", out_dtype=out_dtype)
        cases.append(base)
        if out_dtype == "float32":
            bias, residual = Const(values((columns,), seed=2)), values((rows, columns), seed=4)
            cases += [base.plus(bias).then("nn.relu", lambda v: np.maximum(v, 0)), base.plus(bias).plus(residual)]
    check(cases, target=target)


def _compiled(case: Case, target: Target) -> Module:
    return compile(program(lambda *v: [case.body(*v)], case.arrays), target=target, cache=False, keep_ir=True)


@pytest.mark.parametrize(("kind", "operation"), [("tiles", "x86.amx.tile_mulf"), ("dots", "x86.avx512.dot")])
def test_chosen_where_they_are_fast(kind, operation):
    target = _server(kind)
    fits = [matrix_product(128, 256, 128, constant="b", **BF16), convolution((1, 64, 28, 28), (64, 64, 3, 3), **BF16)]
    others = [matrix_product(128, 256, 128, constant="b"), convolution((1, 32, 28, 28), (32, 1, 3, 3), groups=32, **BF16)]
    for cases, wanted in ((fits, True), (others, False)):
        for case in cases:
            assert (operation in _compiled(case, target).ir["tir"]) == wanted, case.name
    without = Target(target, features="-amx-tile,-avx512bf16")
    assert "x86." not in _compiled(fits[0], without).ir["tir"]


def _body_with(instruction: str, module: Module) -> str:
    """The machine code of the one function that has an instruction."""
    bodies = [body for body in re.split(r"\n(?=[^\s].*:\n)", module.assembly()) if instruction in body]
    assert len(bodies) == 1
    return bodies[0]


@pytest.mark.parametrize("case", [matrix_product(96, 256, 100, constant="b", **BF16), convolution((1, 64, 20, 20), (64, 64, 3, 3), **BF16)])
def test_machine_code_keeps_sums_in_tiles(case):
    """Four loads for four multiplications, no tile in memory but the four results, and configurations of the tiles only where a thread
    begins and where it has taken iterations, as a call leaves none."""
    pytest.importorskip("iced_x86")
    body = _body_with("tdpbf16ps", _compiled(case, _server("tiles")))
    counts = {name: len(re.findall(rf"\b{name}\b", body)) for name in ("ldtilecfg", "tileloadd", "tdpbf16ps", "tilestored", "tilezero")}
    assert counts["ldtilecfg"] == 2 and body.rindex("ldtilecfg") < body.index("tilezero")
    assert counts["tdpbf16ps"] == counts["tileloadd"] > 0
    assert counts["tilestored"] == counts["tilezero"] == 4
    assert not re.search(r"tileloadd .*%rsp", body)


@pytest.mark.parametrize(("rows", "columns"), [(1, 256), (16, 96), (200, 16)])
def test_tiles_of_blocks_of_other_shapes_stay_in_registers(rows, columns, monkeypatch):
    monkeypatch.setattr(Plan, "vector_cycles", property(lambda self: float("inf")))
    pytest.importorskip("iced_x86")
    body = _body_with("tdpbf16ps", _compiled(matrix_product(rows, 512, columns, constant="b", **BF16), _server("tiles")))
    assert len(re.findall(r"\btilestored\b", body)) == len(re.findall(r"\btilezero\b", body)) > 0


@pytest.mark.parametrize("columns", [3, 16, 40])
def test_tiles_of_other_rows_have_functions_of_their_own(columns, monkeypatch):
    """LLVM has eight tile registers of one shape each for a function, and ends the process where these are too few."""
    monkeypatch.setattr(Plan, "vector_cycles", property(lambda self: float("inf")))
    types = [tensor("bfloat16[n, 96]"), tensor(f"bfloat16[{columns}, 96]")]
    body = lambda a, b: [build("nn.dense", a, b)]  # noqa: E731 (an argument, not a definition)
    kernel = compile(symbolic_program(body, types, {"n": Range(1, 70)}), target=_server("tiles"), stop_after="tir")
    starts = partial(find_operations, wanted=lambda op: op.name == "x86.amx.tile_zero")
    loops = find_operations(kernel.module.operation, lambda op: op.name == "scf.parallel")
    shapes = [[str(op.results[0].type) for op in starts(loop)] for loop in loops]
    assert sum(map(len, shapes)) == len(starts(kernel.module.operation)) > 0
    assert [len(set(types)) for types in shapes if types] == [1] * 5


def test_machine_code_keeps_sums_in_vector_registers():
    """In the loop of the dot products nothing goes to the stack or is converted."""
    pytest.importorskip("iced_x86")
    body = _body_with("vdpbf16ps", _compiled(matrix_product(96, 256, 100, constant="b", **BF16), _server("dots")))
    lines = body.splitlines()
    at = [i for i, line in enumerate(lines) if "vdpbf16ps" in line]
    loop = "\n".join(lines[at[0] : at[-1] + 1])
    assert not re.search(r"%rsp|cvt|vpsll|vpmovzx", loop)


@pytest.mark.parametrize("most", [16, 40, 4000])
def test_a_block_has_many_columns_where_a_call_says_how_many_there_are(most, monkeypatch):
    """As many as 64 at least: a tile has 16."""
    found = []
    monkeypatch.setattr(amx, "best_plan", lambda *given: found.append(best_plan(*given)) or found[-1])
    types = [tensor("bfloat16[1, 128]"), tensor("bfloat16[128, n]")]
    body = lambda a, b: [build("nn.matmul", a, b, out_dtype="float32")]  # noqa: E731 (an argument, not a definition)
    compile(symbolic_program(body, types, {"n": Range(1, most)}), target=_server("tiles"), stop_after="tir")
    assert [plan.block.column_tiles for plan in found] == [MANY_COLUMNS // 16]


def test_a_matrix_for_all_batches_of_another_one_is_read_for_each(monkeypatch):
    """Blocks of sums have rows and columns of one batch: of all of them they would have only rows, or only columns."""
    found = []
    monkeypatch.setattr(amx, "best_plan", lambda *given: found.append(best_plan(*given)) or found[-1])
    types = [tensor("bfloat16[1, 48, 64]"), tensor("bfloat16[3, 64, 96]")]
    body = lambda a, b: [build("nn.batch_matmul", a, b, transpose_b=False, out_dtype="float32")]  # noqa: E731 (an argument)
    compile(symbolic_program(body, types), target=_server("tiles"), stop_after="tir")
    assert [[v.extent for v in plan.contraction.batch] for plan in found] == [[3]]


@pytest.mark.parametrize(("least", "is_few"), [(8, True), (9, False)])
def test_up_to_eight_rows_of_a_call_are_not_copied_in_pairs(least, is_few):
    body = lambda a, b: [build("nn.matmul", a, b, out_dtype="float32")]  # noqa: E731 (an argument, not a definition)
    module = symbolic_program(body, [tensor("bfloat16[n, 64]"), tensor("bfloat16[64, 256]")], {"n": Range(least, 40)})
    text = str(compile(module, target=_server("tiles"), keep_ir=True, cache=False).ir["tir"])
    assert "x86.amx.tile_mulf" in text and ("vector.fma" in text) == is_few


@pytest.mark.parametrize(
    ("count", "most", "group", "step"),
    [(96, 32, 2, 32), (40, 32, 2, 20), (34, 32, 2, 2), (64, 64, 4, 64), (12, 64, 4, 12), (7, 32, 2, 0), (6, 64, 4, 0)],
)
def test_steps_of_the_depth_are_whole_groups(count, most, group, step):
    """The largest such divisor of the depth; there is none of an odd one."""
    assert _whole_groups(count, most, group) == step


@pytest.mark.parametrize(("rows", "asks"), [(4, True), (40, False)])
def test_weights_that_are_read_once_are_asked_for_ahead(rows, asks):
    pytest.importorskip("iced_x86")
    target = Target(_server("tiles"), l2_bytes=1 << 20)
    body = _body_with("tdpbf16ps", _compiled(matrix_product(rows, 1024, 1024, constant="b", **BF16), target))
    assert ("prefetcht0" in body) == asks


def test_results_are_rounded_by_an_instruction():
    pytest.importorskip("iced_x86")
    text = _compiled(matrix_product(96, 256, 96, constant="b", dtype="bfloat16"), _server("tiles")).assembly()
    assert "vcvtneps2bf16" in text
    assert not re.search(r"vpsrld|vpternlog", text)


PRODUCT = """
func.func @product(%x: tensor<5x70xbf16>, %w: tensor<70x40xbf16>ARGUMENT) -> tensor<5x40xf32> {
  FILL
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<5x70xbf16>, tensor<70x40xbf16>) outs(%first : tensor<5x40xf32>) {
  ^bb0(%a: bf16, %b: bf16, %o: f32):
    %c = arith.extf %a : bf16 to f32
    %d = arith.extf %b : bf16 to f32
    %m = arith.mulf %c, %d : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<5x40xf32>
  return %r : tensor<5x40xf32>
}"""
FILL = """
  %start = arith.constant 2.5 : f32
  %e = tensor.empty() : tensor<5x40xf32>
  %first = linalg.fill ins(%start : f32) outs(%e : tensor<5x40xf32>) -> tensor<5x40xf32>"""


@pytest.mark.parametrize("is_argument", [False, True])
def test_sums_that_begin_with_another_number_than_0(is_argument: bool) -> None:
    text = PRODUCT.replace("ARGUMENT", ", %first: tensor<5x40xf32>" if is_argument else "").replace("FILL", "" if is_argument else FILL)
    kernel = compile_kernel(text, target=Target("cpu", mcpu="sapphirerapids", emulate=True))
    assert kernel.info.schedule.startswith("amx")
    x, w, first = (values(shape, seed=i) for i, shape in enumerate(((5, 70), (70, 40), (5, 40))))
    x, w = x.astype(ml_dtypes.bfloat16), w.astype(ml_dtypes.bfloat16)
    found = kernel(x, w, first) if is_argument else kernel(x, w)
    exact = x.astype(np.float64) @ w.astype(np.float64)
    np.testing.assert_allclose(found, exact + (first if is_argument else 2.5), rtol=0, atol=1e-6 * np.abs(exact).max() * 70)
