"""Winograd convolutions, and blocked ones, against direct convolutions in NCHW of the same program."""

from collections.abc import Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support import Const, program
from tekernels import changed_kernels

import relayc
from relayc.dialects.discardable import OWN_FLOPS
from relayc.dialects.mlir import ir
from relayc.dialects.relay import build
from relayc.dialects.relay.winograd import DATA, RESULT, TILE, transform_weights
from relayc.pipelines import find_pass
from relayc.pipelines.context.target import Target
from relayc.pipelines.graph.winograd import _Choice
from relayc.pipelines.targets.cpu.strategies.tile_transform import _TransformKernel
from relayc.pipelines.te.read.graph import NotStructured
from relayc.pipelines.te.read.tile_transform import _crop, match
from relayc.symbolic import symbol

# F(4x4, 3x3) in f32 errs by some units of 1e-6 of the largest output (Lavin and Gray report the same order).
TOLERANCE = 2e-5


def test_matrices_compute_a_convolution_exactly() -> None:
    rng = np.random.default_rng(0)
    data, kernel = rng.integers(-4, 5, (6, 6)).astype(np.float64), rng.integers(-4, 5, (1, 1, 3, 3)).astype(np.float64)
    points = transform_weights(kernel).reshape(6, 6)
    found = RESULT @ (points * (DATA @ data @ DATA.T)) @ RESULT.T
    expected = [[(data[y : y + 3, x : x + 3] * kernel[0, 0]).sum() for x in range(TILE)] for y in range(TILE)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def chain(padding: int, residual: bool):
    """1x1, 3x3 with an epilogue, 1x1: a region in which layouts and Winograd apply."""

    def body(x: ir.Value, w0: ir.Value, w1: ir.Value, w2: ir.Value, bias: ir.Value) -> Sequence[ir.Value]:
        y = build("nn.conv2d", x, w0)
        z = build("add", build("nn.conv2d", y, w1, padding=(padding,) * 4), bias)
        if residual:
            z = build("add", z, y)
        return [build("nn.conv2d", build("nn.relu", z), w2)]

    return body


def kernels(module: relayc.Module) -> str:
    return " ".join(module.function_names())


@pytest.mark.parametrize(
    ("channels", "filters", "height", "width", "padding", "residual"),
    [
        (32, 32, 16, 16, 1, True),
        (32, 48, 18, 23, 0, False),
        (48, 32, 14, 31, 1, False),
        (32, 32, 17, 14, 1, True),
        (64, 32, 33, 16, 2, False),
    ],
)
def test_agrees_with_direct_convolution(channels: int, filters: int, height: int, width: int, padding: int, residual: bool) -> None:
    rng = np.random.default_rng(1)

    def weight(o: int, i: int, k: int) -> Const:
        return Const((rng.standard_normal((o, i, k, k)) / np.sqrt(i * k * k)).astype(np.float32))

    x = rng.standard_normal((2, 8, height, width)).astype(np.float32)
    bias = Const(rng.standard_normal((filters, 1, 1)).astype(np.float32))
    arrays = [x, weight(channels, 8, 1), weight(filters, channels, 3), weight(8, filters, 1), bias]
    body = chain(padding, residual)
    with relayc.PassContext(3, required_pass=["Winograd", "AlterOpLayout"]):
        fast = relayc.compile(program(body, arrays))
    with relayc.PassContext(3, disabled_pass=["Winograd"]):
        blocked = relayc.compile(program(body, arrays))
    with relayc.PassContext(3, disabled_pass=["Winograd", "AlterOpLayout"]):
        direct = relayc.compile(program(body, arrays))
    assert "winograd" in kernels(fast) and "winograd" not in kernels(blocked) + kernels(direct)
    expected = direct["main"](x)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(blocked["main"](x), expected, rtol=0, atol=1e-6 * scale)
    np.testing.assert_allclose(fast["main"](x), expected, rtol=0, atol=TOLERANCE * scale)


def test_a_call_chooses_where_weights_are_far() -> None:
    """Transformed weights of 5 MB: from 16 tiles on, and where tiles are filled."""
    channels, rng = 192, np.random.default_rng(3)

    def weight(o: int, i: int, k: int) -> np.ndarray:
        return (rng.standard_normal((o, i, k, k)) / np.sqrt(i * k * k)).astype(np.float32)

    weights = [weight(channels, 8, 1), weight(channels, channels, 3), weight(8, channels, 1)]
    program = relayc.Program(dims={"h": (1, 1000), "w": (1, 1000)})
    op = program.op

    @program.function(x=relayc.TensorType((1, 8, "h", "w"), "float32"))
    def main(x):  # type: ignore[no-untyped-def] # of values that are being built
        y = op.nn.conv2d(x, weights[0])
        z = op.nn.relu(op.nn.conv2d(y, weights[1], padding=(1, 1, 1, 1)) + y)
        return op.nn.conv2d(z, weights[2])

    with relayc.PassContext(3, required_pass=["Winograd", "AlterOpLayout"]):
        module = relayc.compile(program)
    with relayc.PassContext(3, disabled_pass=["Winograd"]):
        direct = relayc.compile(program)
    for size, wanted in (((1, 64), False), ((12, 16), False), ((13, 14), True), ((16, 16), True), ((21, 19), True)):
        x = rng.standard_normal((1, 8, *size)).astype(np.float32)
        reached = " ".join(row.kernel.name for row in module.profile([x], repeat=1).rows if row.calls)
        assert ("winograd" in reached) == wanted
        expected = direct["main"](x)
        np.testing.assert_allclose(module["main"](x), expected, rtol=0, atol=TOLERANCE * np.abs(expected).max())


def test_transforms_at_all_scales_are_the_same_kernels() -> None:
    rng = np.random.default_rng(4)

    def weight(o: int, i: int, k: int) -> np.ndarray:
        return (rng.standard_normal((o, i, k, k)) / np.sqrt(i * k * k)).astype(np.float32)

    weights = [weight(32, 8, 1), weight(32, 32, 3), weight(64, 32, 1), weight(64, 64, 3)]
    program = relayc.Program(dims={"h": (1, 1000), "w": (1, 1000)})
    op = program.op

    @program.function(x=relayc.TensorType((1, 8, "h", "w"), "float32"))
    def main(x):  # type: ignore[no-untyped-def] # of values that are being built
        y = op.nn.relu(op.nn.conv2d(op.nn.conv2d(x, weights[0]), weights[1], padding=(1, 1, 1, 1)))
        return op.nn.relu(op.nn.conv2d(op.nn.conv2d(y, weights[2], strides=(2, 2)), weights[3], padding=(1, 1, 1, 1)))

    modules = {}
    for key, disabled in (("merged", []), ("apart", ["MergeSimilarKernels"])):
        with relayc.PassContext(3, required_pass=["Winograd", "AlterOpLayout"], disabled_pass=disabled):
            modules[key] = relayc.compile(program)
    transforms = {key: sum("winograd" in kernel.name for kernel in module.kernels) for key, module in modules.items()}
    assert transforms == {"merged": 2, "apart": 4} and modules["merged"].ranges == modules["apart"].ranges
    for size in ((1, 1), (2, 31), (17, 16), (64, 29)):
        x = rng.standard_normal((1, 8, *size)).astype(np.float32)
        assert np.array_equal(modules["merged"]["main"](x), modules["apart"]["main"](x))
        rows = {key: {row.kernel.bytes for row in module.profile([x], repeat=1).rows} for key, module in modules.items()}
        assert rows["merged"] == rows["apart"]


def test_elements_of_a_symbolic_tile_share_a_costly_epilogue() -> None:
    """Sizes around that of a tile, of which some rows or columns are cropped, and beyond 1,024."""
    rng = np.random.default_rng(5)

    def weight(o: int, i: int, k: int) -> np.ndarray:
        return (rng.standard_normal((o, i, k, k)) / np.sqrt(i * k * k)).astype(np.float32)

    weights, bias = [weight(32, 8, 1), weight(48, 32, 3), weight(8, 48, 1)], rng.standard_normal((48, 1, 1)).astype(np.float32)
    program = relayc.Program(dims={"h": (1, 2000), "w": (1, 2000)})
    op = program.op

    @program.function(x=relayc.TensorType((1, 8, "h", "w"), "float32"))
    def main(x):  # type: ignore[no-untyped-def] # of values that are being built
        y = op.nn.conv2d(op.nn.conv2d(x, weights[0]), weights[1], padding=(1, 1, 1, 1)) + bias
        return op.nn.conv2d(y * op.sigmoid(y), weights[2])

    with relayc.PassContext(3, required_pass=["Winograd", "AlterOpLayout"]):
        module = relayc.compile(program)
        tir = str(relayc.compile(program, stop_after="tir").module)
    with relayc.PassContext(3, disabled_pass=["Winograd", "AlterOpLayout"]):
        direct = relayc.compile(program)
    (transform,) = (text for text in tir.split("func.func") if "@fused_winograd_output_transform" in text and "math." in text)
    # Tiles at the ends of a row, and those between.
    assert transform.count("math.exp") == 2
    for size in ((1, 1), (3, 4), (4, 5), (7, 8), (9, 16), (2, 1031), (1027, 3)):
        x = rng.standard_normal((1, 8, *size)).astype(np.float32)
        expected = direct["main"](x)
        np.testing.assert_allclose(module["main"](x), expected, rtol=0, atol=TOLERANCE * np.abs(expected).max())


def test_operations_are_counted_by_the_definition_of_a_convolution() -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((1, 32, 32, 32)).astype(np.float32)
    weights = [Const(rng.standard_normal((32, 32, k, k)).astype(np.float32)) for k in (1, 3, 1)]
    arrays = [x, *weights, Const(np.zeros((32, 1, 1), np.float32))]
    with relayc.PassContext(3, required_pass=["Winograd", "AlterOpLayout"]):
        fast = relayc.compile(program(chain(1, False), arrays))
    with relayc.PassContext(3, disabled_pass=["Winograd"]):
        direct = relayc.compile(program(chain(1, False), arrays))
    convolution = 2 * 9 * 32 * 32 * 32 * 32
    own = [kernel.own_flops for kernel in fast.step_kernels if kernel.own_flops is not None]
    assert sorted(own) == [0, 0, convolution] and all(kernel.own_flops is None for kernel in direct.step_kernels)
    total, whole = fast.profile([x]).total(), direct.profile([x]).total()
    # What is fused into the transforms (a bias, a rectifier) is not counted.
    assert 0.98 * whole.flops < total.flops <= whole.flops == whole.done_flops and total.done_flops < total.flops
    assert "done (kernels marked *: Winograd)" in str(fast.profile([x])) and "Winograd" not in str(direct.profile([x]))


N = symbol("n")


@pytest.mark.parametrize(
    ("tiles", "direct", "transformed", "weight_bytes", "pays", "is_open"),
    [
        (16, 3, 2, 8 << 20, True, False),
        (15, 3, 2, 8 << 20, False, False),
        (16, 3, 3, 8 << 20, False, False),
        (16, 299, 200, 8 << 20, False, False),
        (N, 3, 2, 4 << 20, True, True),
        (N, 3, 2, (4 << 20) - 1, True, False),
        (N + 16, 3, 2, 4 << 20, True, False),
        (N, 1, 1, 4 << 20, False, False),
        (16, N * 3, 100, 4 << 20, True, True),
    ],
)
def test_where_it_pays(tiles, direct, transformed, weight_bytes, pays, is_open):
    found = _Choice(tiles, direct, transformed, weight_bytes)
    assert (found.pays, found.is_open) == (pays, is_open)
    assert found.growth == weight_bytes // 36 * (36 if is_open else 27)


def test_operations_are_those_of_the_convolution():
    arrays = [np.zeros((1, 4, 16, 20, 8), np.float32), Const(np.ones((40, 32, 3, 3), np.float32))]
    options = {"padding": (1, 1), "data_layout": "NCHW8c", "out_layout": "NCHW8c"}
    mod = find_pass("Winograd")(program(lambda x, w: [build("nn.conv2d", x, w, **options)], arrays))
    own = [OWN_FLOPS.of(op) for op in mod.main.regions[0].blocks[0].operations if OWN_FLOPS.on(op)]
    assert own == [0, 2 * 40 * 16 * 20 * 32 * 9, 0]


def test_the_tiles_of_a_cropped_dimension_stand_beside_what_is_in_them():
    """A dimension of 12 elements, of which 10 are kept, is 3 tiles of 4: axes of one element before them are no tiles."""
    node = SimpleNamespace(shape=(1, 1, 3, 4), position=0, structured=SimpleNamespace(output_dims=lambda _: [5, 6, 7, 8]))
    root = SimpleNamespace(shape=(1, 10))
    assert _crop(node, root, (1, 12)) == {8: (7, 10)}
    assert _crop(node, root, (1, 10)) == {}
    assert _crop(node, SimpleNamespace(shape=(1, 10)), (2, 10)) is None
    assert _crop(node, SimpleNamespace(shape=(1, 10)), (1, 13)) is None


def test_transforms_of_single_tiles_and_of_channels_that_are_no_vectors() -> None:
    rng = np.random.default_rng(6)
    cases = [((1, 36, 1, 1, 8), 4, 4), ((1, 36, 1, 1, 8), 3, 2), ((1, 36, 1, 2, 12), 4, 7), ((2, 72, 3, 1, 8), 9, 1)]
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape, _, _ in cases]

    def body(*given: ir.Value) -> list[ir.Value]:
        sizes = [{"height": h, "width": w, "layout": f"NCHW{shape[-1]}c"} for shape, h, w in cases]
        return [build("nn.winograd_output_transform", x, **a) for x, a in zip(given, sizes, strict=True)]

    module = relayc.compile(program(body, arrays), target="cpu -mcpu=x86-64-v3")
    assert {kernel.schedule.split()[0] for kernel in module.kernels} == {"tile_transform", "bufferize"}
    # All results of a single tile, and those that are kept of another one, are stored once.
    for shape, height, width in cases[:2]:
        attributes = {"height": height, "width": width, "layout": "NCHW8c"}
        one = program(lambda x: [build("nn.winograd_output_transform", x, **attributes)], [np.zeros(shape, np.float32)])  # noqa: B023 (called now)
        text = str(relayc.compile(one, target="cpu -mcpu=x86-64-v3", stop_after="tir").module)
        assert text.count("vector.store") == height * width
    for x, found, (shape, height, width) in zip(arrays, module["main"](*arrays), cases, strict=True):
        batch, channels, rows, columns, inner = shape
        tiles = x.reshape(batch, 6, 6, channels // 36, rows, columns, inner).astype(np.float64)
        whole = np.einsum("pi,qj,nijcrsl->ncrpsql", RESULT, RESULT, tiles).reshape(batch, channels // 36, 4 * rows, 4 * columns, inner)
        np.testing.assert_allclose(found, whole[:, :, :height, :width], rtol=0, atol=TOLERANCE * np.abs(whole).max())


@pytest.mark.parametrize(
    ("dims", "channels", "takes"), [([0, 1, 2], 16, True), ([0, 1, 2], 12, False), ([2, 1, 0], 16, False), ([2, 0, 1], 16, False)]
)
def test_lanes_are_whole_vectors_of_channels(dims: list[int], channels: int, takes: bool) -> None:
    """The innermost dimension is none of a tile's."""
    node = SimpleNamespace(structured=SimpleNamespace(extents=[4, 4, channels]), element=SimpleNamespace(width=32))
    transform: Any = SimpleNamespace(node=node, dims=dims, a=0, b=1)
    evaluator: Any = None
    with nullcontext() if takes else pytest.raises(NotStructured, match="lanes that do not divide the innermost dimension"):
        assert _TransformKernel(transform, evaluator, evaluator, Target("cpu -mcpu=x86-64-v3")).width == 8


def test_other_kernels_transform_no_tiles() -> None:
    """Of other constants, loops and bodies, and of which other elements than the first of a row or a column are kept."""
    table = "arith.constant dense<[[1.000000e+00, 1.000000e+00, 1.000000e+00, 1.000000e+00, 1.000000e+00, 0.000000e+00], "
    empty = "tensor.empty() : tensor<4x6xf32>\n %cst = "
    others = [
        [(0, table, empty + table), (0, "%cst = tensor", "%other = tensor"), (0, "ins(%cst, %cst,", "ins(%other, %other,")],
        [(0, table, empty + table), (0, "%cst = tensor", "%other = tensor"), (0, "ins(%cst, %cst,", "ins(%cst, %other,")],
        [(0, "(d3, d7)", "(d3, d8)"), (0, "(d5, d8)", "(d5, d7)")],
        [(0, "(d3, d7)", "(d3, 0)")],
        [(0, "(d5, d8)", "(d3, d8)")],
        [(0, "%out, %4", "%in_3, %4")],
        [(0, "arith.mulf %3,", "arith.subf %3,")],
        [(0, "%4 = arith.mulf", "%other = math.exp %in_4 : f32\n %4 = arith.mulf"), (0, "%3, %in_4", "%3, %other")],
        [(0, "extract_slice %expanded_2[0, 0, 0", "extract_slice %expanded_2[0, 0, 1")],
        [(0, "9, 11, 8] [1, 1,", "9, 11, 8] [2, 1,")],
    ]
    data = np.zeros((1, 72, 3, 3, 8), np.float32)
    mod = program(lambda x: [build("nn.winograd_output_transform", x, height=9, width=11)], [data])
    first, *found = map(match, changed_kernels(mod, others))
    assert first is not None and first.matrix == RESULT.tolist() and first.crop == {3: (2, 9), 5: (4, 11)}
    assert found == [None] * len(others)


@pytest.mark.parametrize(("width", "codes"), [(2, 0), (6, 2), (7, 2), (11, 3)])
def test_a_line_of_no_tiles_stores_none(width: int, codes: int) -> None:
    """The first tile of a line and the last one are apart from the others; a single column of tiles is a line of two."""
    x = np.zeros((2, 1, 5, width, 16), np.float32)
    mod = program(lambda x: [build("nn.winograd_input_transform", x, padding=(2, 0, 2, 0), layout="NCHW16c")], [x])
    module = relayc.compile(mod, target=Target("cpu -mcpu=x86-64-v3"), stop_after="tir", cache=False)
    assert [kernel.schedule.split()[0] for kernel in module.kernels] == ["tile_transform"]
    assert str(module.module).count("vector.store") == 2 * 36 * codes  # 16 channels are two vectors
