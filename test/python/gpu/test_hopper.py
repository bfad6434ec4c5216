"""Products by warp groups of Hopper, emulated, against numpy; what goes wrong without a wait; and what ptxas says of them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from accuracy import UNIT, bound_of
from contractions import Case, batch_product, check, convolution, matrix_product
from device_kernels import lower_device
from oracle import values
from support import program
from symbolic_ops import symbolic_program, tensor

import relayc
from relayc import te
from relayc.dialects.mlir import ir
from relayc.dialects.relay import IRModule, build
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.targets.cuda.device.ptxas import tool
from relayc.pipelines.targets.cuda.strategies.hopper import instructions
from relayc.pipelines.targets.cuda.strategies.hopper.choice import Product
from relayc.pipelines.targets.cuda.strategies.hopper.convolution import Axis, Convolution, convolution_of
from relayc.pipelines.targets.cuda.strategies.hopper.tile import GroupTile
from relayc.pipelines.targets.cuda.strategies.product.choice import Sizes
from relayc.pipelines.targets.cuda.strategies.product.operands import way_of
from relayc.pipelines.targets.cuda.strategies.product.problem import find, problem_of
from relayc.pipelines.targets.cuda.target import CudaTarget
from relayc.pipelines.te.read.graph import read_kernel
from relayc.pipelines.tir.gpu import bulk_copies
from relayc.symbolic import Range

SMALL = {"rows": 64, "columns": 64, "stages": 2, "splits": 1}


def target(multiprocessors: int, **options: Any) -> Target:
    return Target("cuda", arch="sm_90a", num_threads=2, num_multiprocessors=multiprocessors, **options)


def numbers(found: Mapping[str, int]) -> dict[str, int]:
    """The numbers of the strategy as a configuration has them."""
    return {f"schedule.wgmma.{name}": number for name, number in found.items()}


def run(cases: Sequence[Case], found: Mapping[str, int], multiprocessors: int = 3) -> None:
    """Compiles cases for the emulation, each of them by the strategy, and compares them."""
    with PassContext(config={**numbers(found), "gpu.check_races": True}, disabled_pass=["AlterOpLayout"]):
        module = check(cases, target=target(multiprocessors, emulate=True))
    assert [kernel.schedule.split()[0] for kernel in module.kernels] == ["wgmma"] * len(cases)


def test_tiles_beside_the_result_and_blocks_of_several_tiles() -> None:
    """Operands along the depth and across it, and packed; a depth of no whole stages."""
    cases = [
        matrix_product(65, 72, 136, transpose_b=True, dtype="bfloat16", out_dtype="float32"),
        matrix_product(72, 17, 65, transpose_a=True, constant="b", dtype="bfloat16"),
        matrix_product(136, 72, 72, transpose_a=True, dtype="float16"),
        batch_product(2, 2, 65, 72, 72, transpose_b=False, dtype="float16"),
    ]
    run(cases, SMALL)


def test_several_groups_and_wide_tiles() -> None:
    case = matrix_product(136, 72, 264, transpose_a=True, dtype="bfloat16")
    run([case], {"rows": 128, "columns": 256, "stages": 3, "splits": 1})


def test_parts_of_the_depth() -> None:
    """They are tiles of their own, which a second launch adds; the last one is shorter. Results are the same every time."""
    cases = [matrix_product(70, 328, 72, dtype="bfloat16"), matrix_product(66, 272, 65, transpose_b=True, dtype="float16", constant="b")]
    run(cases, {**SMALL, "splits": 3})


def channels_last(case: Case, **attributes: Any) -> Case:
    """A convolution of images and a result with their channels last."""
    images, weights = case.arrays
    attributes = {"data_layout": "NHWC", **attributes}
    return replace(
        case,
        arrays=[np.ascontiguousarray(np.asarray(images).transpose(0, 2, 3, 1)), weights],
        body=lambda x, w: build("nn.conv2d", x, w, **attributes),
        expected=case.expected.transpose(0, 2, 3, 1),
        bound=case.bound.transpose(0, 2, 3, 1),
    )


def test_convolutions() -> None:
    """Pixels beside the images; strides, dilation, one image, a window of one row; channels that do not fill a line, or several."""
    strange = {"strides": (1, 2), "dilation": (2, 1)}
    cases = [
        channels_last(convolution((2, 64, 9, 7), (72, 64, 3, 3), pads=(1, 1, 1, 1), dtype="bfloat16"), padding=(1, 1, 1, 1)),
        channels_last(
            convolution((1, 72, 12, 15), (64, 72, 3, 2), pads=(2, 0, 1, 1), dtype="float16", **strange), padding=(2, 0, 1, 1), **strange
        ),
        channels_last(convolution((3, 64, 11, 9), (66, 64, 1, 1), strides=(2, 2), dtype="float16"), strides=(2, 2)),
    ]
    run(cases, {**SMALL, "splits": 2})
    case = convolution((2, 96, 5, 9), (66, 96, 1, 3), dtype="int8", out_dtype="int32")
    run([channels_last(case, out_dtype="int32")], SMALL)


def test_convolutions_by_weights_that_lie_across_the_depth() -> None:
    """Filters are innermost in the weights, which are no parameter that could be packed."""
    x, w = values((1, 96, 15, 17), "float16"), values((72, 96, 1, 1), "float16", seed=1)
    case = channels_last(convolution((1, 96, 15, 17), (72, 96, 1, 1), strides=(2, 2), dtype="float16"), strides=(2, 2))
    attributes = {"data_layout": "NHWC", "kernel_layout": "HWIO", "strides": (2, 2)}
    body = lambda x, w: build("nn.conv2d", x, w, **attributes)  # noqa: E731 (an argument, not a definition)
    arrays = [np.ascontiguousarray(a) for a in (x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0))]
    run([replace(case, body=body, arrays=arrays)], SMALL)


@pytest.mark.parametrize(
    ("case", "is_taken"),
    [
        (convolution((1, 32, 11, 11), (64, 32, 3, 3), dtype="float16"), True),
        (convolution((1, 24, 11, 11), (64, 24, 3, 3), dtype="float16"), False),  # more than half of a line of 64 channels is empty
        (convolution((1, 100, 11, 11), (64, 100, 3, 3), dtype="float16"), False),  # no whole chunks of 8 channels
    ],
    ids=["half of a line", "less than half of a line", "no whole chunks"],
)
def test_channels_fill_half_of_a_line_by_whole_chunks(case: Case, is_taken: bool) -> None:
    assert ("wgmma" in strategies_of(channels_last(case))) is is_taken


@pytest.mark.parametrize(("channels", "is_taken"), [(40, True), (36, False)])
def test_pixels_are_whole_chunks_where_only_those_of_windows_are(channels: int, is_taken: bool) -> None:
    """Windows that do not overlap begin at chunks of 8 channels, and so do their rows; a pixel of 36 channels may begin within one."""
    case = convolution((1, channels, 22, 22), (64, channels, 2, 2), strides=(2, 2), dtype="float16")
    assert ("wgmma" in strategies_of(channels_last(case, strides=(2, 2)))) is is_taken


SIZE = te.var("h")
STRIDED = Convolution(2, Axis(30, 9, 3, 2, 1, 0), Axis(20, 7, 2, 1, 3, 1), 64)
PLACES = {
    "strides and dilation": ((2, 30, 20, 64), lambda i, y, x, u, v, c: (i, 2 * y + u, x + 3 * v + 1, c), STRIDED),
    "one image": ((1, 30, 20, 64), lambda i, y, x, u, v, c: (0, 2 * y + u, x + 3 * v + 1, c), replace(STRIDED, images=1)),
    "images before": ((3, 30, 20, 64), lambda i, y, x, u, v, c: (i + 1, 2 * y + u, x + v, c), None),
    "images behind": ((3, 30, 20, 64), lambda i, y, x, u, v, c: (i, 2 * y + u, x + v, c), None),
    "images from the last on": ((2, 30, 20, 64), lambda i, y, x, u, v, c: (1 - i, 2 * y + u, x + v, c), None),
    "channels from the last on": ((2, 30, 20, 64), lambda i, y, x, u, v, c: (i, 2 * y + u, x + v, 63 - c), None),
    "one image of two": ((2, 30, 20, 64), lambda i, y, x, u, v, c: (0, 2 * y + u, x + v, c), None),
    "channels behind": ((2, 30, 20, 72), lambda i, y, x, u, v, c: (i, 2 * y + u, x + v, c), None),
    "every second channel": ((2, 30, 20, 128), lambda i, y, x, u, v, c: (i, 2 * y + u, x + v, 2 * c), None),
    "rows and columns swapped": ((2, 20, 30, 64), lambda i, y, x, u, v, c: (i, x + v, 2 * y + u, c), None),
    "taps of both axes in one": ((2, 30, 20, 64), lambda i, y, x, u, v, c: (i, 2 * y + u + v, x, c), None),
    "results of both axes in one": ((2, 30, 20, 64), lambda i, y, x, u, v, c: (i, y + x + u, v, c), None),
    "taps from the last on": ((2, 30, 20, 64), lambda i, y, x, u, v, c: (i, 2 * y + u, x - v + 1, c), None),
    "a size that only a call knows": ((2, SIZE, 20, 64), lambda i, y, x, u, v, c: (i, 2 * y + u, x + v, c), None),
    "channels that are not contiguous": ((2, 30, 64, 20), lambda i, y, x, u, v, c: (i, 2 * y + u, c, x + v), None),
    "no images": ((30, 20, 64), lambda i, y, x, u, v, c: (2 * y + u + i, x + v, c), None),
}


@pytest.mark.parametrize("case", PLACES)
def test_convolutions_that_tensor_maps_express(case: str) -> None:
    """By the place of an element of the images: two images, 9 x 7 results, 3 x 2 taps."""
    shape, place, expected = PLACES[case]
    images, weights = te.placeholder(shape, "float16", name="I"), te.placeholder((3, 2, 64, 64), "float16", name="W")
    u, v, c = (te.reduce_axis((0, n), name) for n, name in ((3, "u"), (2, "v"), (64, "c")))
    made = te.compute(
        (1 if case.startswith("one image") else 2, 9, 7, 64),
        lambda i, y, x, o: te.sum(
            images[place(i, y, x, u, v, c)].astype("float32") * weights[u, v, c, o].astype("float32"), axis=[u, v, c]
        ),
    )
    mod = te.create_prim_func([images, weights, made])
    with mod.context, ir.Location.unknown():
        kernel = read_kernel(mod.module.body.operations[0])
        problem = next(problem_of(kernel, c) for c in find(kernel) if c.a.node.shape == kernel.args[0].shape)
        way = way_of(problem, problem.contraction.a, problem.contraction.a.node.element, True, True)
        assert convolution_of(problem, [way, SimpleNamespace(packing="lines of channels")]) == expected


@pytest.mark.parametrize(("taps", "is_taken"), [((1, 1), True), ((1, 3), False), ((3, 3), False)])
def test_weights_of_several_taps_are_packed(taps: tuple[int, int], is_taken: bool) -> None:
    """Those that are no parameter cannot be."""
    case = convolution((2, 96, 17, 17), (72, 96, *taps), dtype="float16", constant=False)
    case = channels_last(case, kernel_layout="HWIO", strides=(1, 2))
    images, weights = map(np.asarray, case.arrays)
    case = replace(case, arrays=[images, np.ascontiguousarray(weights.transpose(2, 3, 1, 0))])
    assert ("wgmma" in strategies_of(case)) is is_taken


@pytest.mark.parametrize(("value", "is_taken"), [(0, True), (3, False)])
def test_paddings_are_zeros(value: int, is_taken: bool) -> None:
    """Which is what tensor maps give beside an image."""
    case = convolution((2, 96, 9, 9), (66, 96, 3, 3), pads=(1, 1, 1, 1), dtype="int8", out_dtype="int32")
    attributes = {"padding": (1, 1, 1, 1), "pad_value": value, "out_dtype": "int32"}
    found = strategies_of(channels_last(case, **attributes))
    assert ("wgmma" in found, "mma" in found) == (is_taken, not is_taken)


@pytest.mark.parametrize(("strides", "is_taken"), [((8, 1), True), ((9, 1), False), ((1, 9), False)])
def test_windows_have_steps_that_the_driver_takes(strides: tuple[int, int], is_taken: bool) -> None:
    case = channels_last(convolution((1, 64, 44, 44), (64, 64, 3, 3), strides=strides, dtype="float16"), strides=strides)
    assert ("wgmma" in strategies_of(case)) is is_taken


def test_products_of_f32_are_no_products_of_tf32() -> None:
    assert "wgmma" not in strategies_of(matrix_product(128, 128, 128, transpose_b=True))


@pytest.mark.parametrize(("rows", "columns", "is_taken"), [(64, 64, True), (63, 64, False), (64, 63, False)])
def test_products_have_a_tile_of_rows_and_columns_at_least(rows: int, columns: int, is_taken: bool) -> None:
    assert ("wgmma" in strategies_of(matrix_product(rows, 72, columns, transpose_b=True, dtype="float16"))) is is_taken


@pytest.mark.parametrize(("least", "is_asked"), [(0, True), (1, False)])
def test_maps_are_made_where_there_are_tiles(least: int, is_asked: bool) -> None:
    """A tensor without elements has no map."""
    types, ranges = [tensor("float16[n, 64]"), tensor("float16[128, 64]")], {"n": Range(least, 1 << 20, 4096)}
    mod = symbolic_program(lambda x, w: [build("nn.dense", x, w)], types, ranges)
    module = relayc.compile(mod, target=target(132), stop_after="tir")
    assert [kernel.schedule.split()[0] for kernel in module.kernels] == ["wgmma"]
    assert ("arith.cmpi ne" in str(module.module).partition("relay.tensor_map")[0]) is is_asked


def strategies_of(case: Case) -> set[str]:
    """Of the kernels of a case."""
    with PassContext(disabled_pass=["AlterOpLayout"]):
        module = relayc.compile(program(lambda *v: [case.body(*v)], case.arrays), target=target(132), stop_after="tir", cache=False)
    return {kernel.schedule.split()[0] for kernel in module.kernels}


def test_bytes() -> None:
    """Exact."""
    cases = [
        matrix_product(70, 400, 72, transpose_b=True, dtype="int8", out_dtype="int32"),
        matrix_product(65, 144, 80, constant="b", dtype="uint8", out_dtype="int32"),
    ]
    run(cases, {**SMALL, "splits": 2})


def test_what_follows_is_computed_with_the_sums() -> None:
    case = matrix_product(70, 200, 136, transpose_b=True, dtype="float16")
    bias = values((136,), "float16", seed=2)
    expected = np.maximum(case.expected + bias, 0)
    # The product and the sum are rounded to f16.
    bound = case.bound + UNIT["float16"] * (np.abs(case.expected) + np.abs(bias) + case.bound)
    body = lambda x, w, c: build("nn.relu", build("add", case.body(x, w), c))  # noqa: E731 (an argument, not a definition)
    run([replace(case, body=body, arrays=[*case.arrays, bias], expected=expected, bound=bound)], SMALL)


def test_one_program_for_all_numbers_of_rows() -> None:
    b = values((72, 40), "bfloat16")
    text = """module {
  func.func @main(%x: tensor<?x40xbf16, ["m"]>, %w: tensor<72x40xbf16>) -> tensor<?x72xf32, ["m"]> {
    %0 = "relay.nn_dense"(%x, %w) {out_dtype = "float32"} : (tensor<?x40xbf16, ["m"]>, tensor<72x40xbf16>) -> tensor<?x72xf32, ["m"]>
    return %0 : tensor<?x72xf32, ["m"]>
  }
}"""
    main = compiled(IRModule.parse(text))
    for rows in (0, 1, 7, 64, 129):
        a = values((rows, 40), "bfloat16", seed=1)
        x, y = (v.astype(np.float64) for v in (a, b))
        error = np.abs(main(a, b) - x @ y.T)
        assert error.shape == (rows, 72)
        assert (error <= bound_of(40, x @ y.T, np.abs(x) @ np.abs(y).T, "float32")).all()


def compiled(mod: IRModule) -> Any:
    """The program, emulated, whose one kernel must have been taken by the strategy."""
    with PassContext(config=numbers(SMALL)):
        module = relayc.compile(mod, target=target(2, emulate=True))
    assert [k.schedule.split()[0] for k in module.kernels] == ["wgmma"]
    return module["main"]


# ---- the model of tiles


def best(rows: int, columns: int, depth: int) -> GroupTile:
    """The tile of a product of bf16 on 132 multiprocessors."""
    wanted = target(132)
    assert isinstance(wanted, CudaTarget)
    return Product(Sizes(rows, columns, depth, 1, 2), 2).best(wanted)


def test_large_products_have_large_tiles_and_few_tiles_split_a_long_depth() -> None:
    assert best(4096, 4096, 4096) == GroupTile(128, 256, 4)
    assert best(100352, 64, 576).columns == 64
    short, long = best(64, 512, 512), best(64, 512, 1 << 14)
    assert short.splits == 1
    # Eight tiles of 64 x 64 would leave most multiprocessors without work.
    assert 64 <= 8 * long.splits <= 132


def test_wanted_numbers_become_those_of_a_tile() -> None:
    """One or two groups of 64 rows, and a multiple of the unit of columns, up to 256."""
    wanted, sizes = target(132), Sizes(4096, 4096, 4096, 1, 2)
    assert isinstance(wanted, CudaTarget)
    cases = ((32, 64, 96, (64, 96)), (32, 127, 100, (64, 96)), (64, 128, 100, (128, 64)), (32, 300, 999, (128, 256)))
    for unit, rows, columns, found in cases:
        tile = Product(sizes, 2, unit).fitted(GroupTile(rows, columns, 2), wanted)
        assert (tile.rows, tile.columns) == found


def test_no_part_of_the_depth_is_empty() -> None:
    for turns in range(1, 40):
        product = Product(Sizes(64, 64, 64 * turns, 1, 2), 2)
        for wanted in range(1, 70):
            splits = product.whole(wanted)
            each = -(-turns // splits)
            assert 1 <= splits <= min(wanted, turns)
            assert (splits - 1) * each < turns <= splits * each


# ---- what is missing is seen


def _two_tiles() -> tuple[IRModule, np.ndarray, np.ndarray]:
    a, b = values((64, 512), "bfloat16"), values((64, 512), "bfloat16", seed=1)
    return program(lambda x, w: [build("nn.dense", x, w, out_dtype="float32")], [a, b]), a, b


def test_operands_that_nobody_waits_for_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    mod, a, b = _two_tiles()
    original, calls = bulk_copies.wait, []

    def wait(barrier: ir.Value, parity: ir.Value) -> None:
        calls.append(parity)
        if len(calls) == 1:  # that of the warp that brings tiles
            original(barrier, parity)

    monkeypatch.setattr(bulk_copies, "wait", wait)
    # They come while the products read them.
    with pytest.raises(RuntimeError, match=r"waiting for ever at .*nvvm.wgmma.wait.group"):
        compiled(mod)(a, b)
    assert len(calls) == 2


def test_operands_that_are_given_back_too_early_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    mod, a, b = _two_tiles()
    original = instructions.wait_products
    # Up to as many groups of products as there are may be on their way when their operands are given back.
    monkeypatch.setattr(instructions, "wait_products", lambda keep: original(63 if keep else 0))
    with pytest.raises(RuntimeError, match=r"waiting for ever at .*nvvm.wgmma.wait.group"):
        compiled(mod)(a, b)


def test_bytes_that_do_not_come_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    mod, a, b = _two_tiles()
    original = bulk_copies.arrive_expecting
    monkeypatch.setattr(bulk_copies, "arrive_expecting", lambda barrier, count: original(barrier, count + 16))
    with pytest.raises(RuntimeError, match=r"waiting for ever at .*nvvm.mbarrier.try_wait"):
        compiled(mod)(a, b)


@pytest.mark.parametrize(
    ("wrong", "transposed"),
    [(1 << 62, False), (3 << 62, True), (3 << 49, False)],
    ids=["no permutation", "lines of 64 bytes", "a pattern that begins later"],
)
def test_descriptors_of_another_permutation_give_wrong_products(wrong: int, transposed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = values((64, 64), "bfloat16"), values((64, 64), "bfloat16", seed=1)
    original = instructions.descriptor

    def descriptor(address: ir.Value, leading_bytes: int = 0) -> ir.Value:
        made = original(address, leading_bytes)
        return emit.arith("xori", made, emit.number(wrong - (wrong >> 63 << 64), made.type))

    def product(x: Any, w: Any) -> list[Any]:
        return [build("nn.matmul", x, w, transpose_b=True, transpose_a=transposed, out_dtype="float32")]

    expected = (a.T if transposed else a).astype(np.float32) @ b.astype(np.float32).T
    monkeypatch.setattr(instructions, "descriptor", descriptor)
    found = compiled(program(product, [a, b]))(a, b)
    assert np.abs(found - expected).max() > 0.1


# ---- device code


@pytest.mark.parametrize(("transposed", "leading"), [(False, 1), (True, 8192 >> 4)], ids=["along the depth", "across the depth"])
def test_descriptors_in_ptx(transposed: bool, leading: int) -> None:
    """Bits 62-63: 1, a permutation by 128 bytes; 49-51: 0; 32-45: 1024 bytes from eight lines to the next; 16-29: the leading distance.
    Bits 0-13 have the steps of an instruction."""
    case = matrix_product(256, 256, 512, transpose_a=transposed, transpose_b=True, dtype="bfloat16")
    with PassContext(config=numbers({"rows": 128, "columns": 256, "splits": 1})):
        code = code_of(program(lambda *v: [case.body(*v)], case.arrays), target(2))
    (kernel,) = code.images.kernels.values()
    found = {int(n) & ~0x3FFF for n in re.findall(r"\bor\.b64 .*, (\d+);", kernel.of("sm_90a").ptx) if int(n) >= 1 << 62}
    assert found == {1 << 62 | (1024 >> 4) << 32 | n << 16 for n in {leading, 1}}


@pytest.mark.skipif(tool("ptxas") is None, reason="ptxas is not installed")
@pytest.mark.parametrize(
    ("case", "found"),
    [
        (matrix_product(256, 256, 512, transpose_b=True, dtype="bfloat16"), {"rows": 128, "columns": 256, "splits": 1}),
        (matrix_product(256, 256, 512, transpose_a=True, dtype="float16"), {"rows": 128, "columns": 256, "splits": 2}),
        (matrix_product(256, 256, 512, transpose_b=True, dtype="int8", out_dtype="int32"), {"rows": 64, "columns": 128, "splits": 1}),
    ],
    ids=["bf16", "f16 across the depth", "s8"],
)
def test_sums_stay_in_registers(case: Case, found: dict[str, int]) -> None:
    """No spills, and no warning: that products are serialised, or that setmaxnreg is ignored."""
    from relayc.pipelines.targets.cuda.device.figures import KernelFigures

    with PassContext(config=numbers(found)):
        figures: list[KernelFigures] = figures_of(program(lambda *v: [case.body(*v)], case.arrays), target(2))
    for one in figures:
        assert one.report is not None
        assert (one.report.spill_stores, one.report.spill_loads, one.report.stack_bytes, one.report.warnings) == (0, 0, 0, ())
        assert one.report.registers * one.threads <= 65536
    # Four steps in a line of 128 bytes.
    assert figures[0].tensor_core_instructions >= 4
    assert len(figures) == (2 if found["splits"] > 1 else 1)


@pytest.mark.parametrize(("columns", "moves"), [(192, False), (256, True)])
def test_the_warps_that_bring_tiles_give_registers_to_those_that_multiply(columns: int, moves: bool) -> None:
    """All threads of a block together have no more than a multiprocessor; groups with sums of 256 columns need more than their share."""
    case = matrix_product(256, 64, columns, dtype="bfloat16")
    with PassContext(config=numbers({"rows": 128, "columns": columns, "stages": 2, "splits": 1})):
        tir = relayc.compile(program(lambda *v: [case.body(*v)], case.arrays), target=target(2), stop_after="tir")
    found = re.findall(r"nvvm.setmaxregister (\w+) (\d+)", str(tir))
    assert sorted(action for action, _ in found) == ["decrease", "increase"] * moves
    if moves:
        given, taken = sorted(int(count) for _, count in found)
        assert given * 128 + taken * 256 <= 65536 and taken > 65536 // 384 > given and given % 8 == taken % 8 == 0


def figures_of(mod: IRModule, target: Target) -> list[Any]:
    """Of all kernels of a program."""
    figures: list[Any] = code_of(mod, target).figures()
    return figures


def code_of(mod: IRModule, target: Target) -> Any:
    """The device code of a program."""
    from relayc.pipelines.targets.cuda.target import CudaTarget
    from relayc.pipelines.targets.gpu.outline import outline_launches
    from relayc.pipelines.tir.gpu.tensor_maps import mark_tensor_maps

    assert isinstance(target, CudaTarget)
    tir = relayc.compile(mod, target=target, stop_after="tir", cache=False)
    with tir.context, ir.Location.unknown():
        outline_launches(tir.module)
        mark_tensor_maps(tir.module)
        return lower_device(tir.module, target)
