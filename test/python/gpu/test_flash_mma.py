"""Attention on tensor cores: emulated against numpy in double precision, and what ptxas makes of it."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from attention_reference import Case, attentions, growing_cache
from device_kernels import lower_device
from gpu_kernels import only_function

import relayc
from relayc.dialects.mlir import ir
from relayc.dialects.relay import IRModule
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile
from relayc.pipelines.targets.cuda.device.figures import KernelFigures, kernel_figures
from relayc.pipelines.targets.cuda.strategies.attention.copies import AsynchronousTiles, GatheredTiles, copy_of, tile_of
from relayc.pipelines.targets.cuda.strategies.attention.tensor_blocks import _factor, queries_of
from relayc.pipelines.targets.cuda.strategies.attention.tensor_choice import TensorTiles
from relayc.pipelines.targets.cuda.strategies.attention.versions import FEW_ROWS
from relayc.pipelines.targets.cuda.target import CudaTarget
from relayc.pipelines.targets.gpu.outline import outline_launches
from relayc.pipelines.targets.gpu.passes import CHECK_RACES
from relayc.pipelines.te.read.graph import read_kernel

# Inputs are exact; weights and the result are rounded to 11 bits, or to 8. Of f32 all operands are rounded to 11 bits.
TOLERANCE = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 2e-3}
SMALL = {"schedule.flash_mma.warps": 1, "schedule.flash_mma.rows": 16, "schedule.flash_mma.keys": 16}
"""Tiles of one instruction: several of them, and short code."""
TF32 = {"schedule.flash_mma.tf32": 1}
SHORT_SPLITS = {f"schedule.flash_mma.{name}": 1 for name in ("splits", "split_warps", "split_rows", "split_keys")}


def emulated(mod: IRModule, config: dict[str, Any]) -> Any:
    with PassContext(config=config):
        return relayc.compile(mod, target=Target("cuda", arch="sm_80", emulate=True, num_threads=1))


def close(found: np.ndarray, case: Case) -> None:
    expected = case.expected()
    assert found.shape == expected.shape
    # Rows that see no key are NaN on both sides.
    tolerance = TOLERANCE[case.dtype] * np.nanmax(np.abs(expected), initial=0)
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    ("case", "config"),
    [
        # Queries of two heads in a block, lines that are padded, three stages.
        (
            Case((1, 4, 2, 17, 65, 24, 24), dtype="float16", attributes={"is_causal": True, "causal_offset": 50}),
            {"schedule.flash_mma.warps": 2, "schedule.flash_mma.stages": 3},
        ),
        # Keys and values that do not lie in chunks.
        (Case((1, 2, 1, 17, 33, 16, 8), mask=(17, 33), layout="BHDS", dtype="bfloat16"), {}),
        # Scores that become others; 32 rows of a warp, whose queries registers do not keep.
        (
            Case((1, 1, 1, 20, 20, 16, 8), mask=(1, 1, 1, 20), mask_dtype="bool", dtype="float16", attributes={"softcap": 3.0}),
            {"schedule.flash_mma.rows": 32},
        ),
        # f32, of which a head is no whole steps; a tile of elements is left over.
        (Case((1, 4, 2, 17, 65, 20, 24), attributes={"is_causal": True, "causal_offset": 50}), {**TF32, "schedule.flash_mma.stages": 3}),
        (Case((1, 1, 1, 20, 33, 16, 8), mask=(20, 33), layout="BHDS"), {**TF32, "schedule.flash_mma.rows": 32}),
        (Case((1, 20, 1, 1, 70, 16, 8), dtype="float16", attributes={"is_causal": True, "causal_offset": 40}), {}),
    ],
    ids=["causal", "gathered", "flags", "tf32", "tf32 gathered", "one query of many heads"],
)
def test_agrees_with_numpy_without_races(case: Case, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    if "schedule.flash_mma.rows" in config:
        monkeypatch.setattr(TensorTiles, "keeps_queries", lambda self, p: False)
    mod, arrays = attentions([case])
    module = emulated(mod, {**SMALL, **config, CHECK_RACES: True})
    (kernel,) = module.kernels
    assert kernel.schedule.startswith("flash_mma")
    close(module["main"](*arrays), case)


def test_scores_of_zero() -> None:
    """Keys that are there all have the same weight, others none."""
    case = Case((1, 1, 1, 9, 20, 16, 8), dtype="float16", attributes={"scale": 0.0})
    mod, arrays = attentions([case])
    close(emulated(mod, SMALL)["main"](*arrays), case)


def test_tf32_agrees_with_numpy() -> None:
    """Two queries of a key, several tiles of keys of which the last one is not full, lines of values of which some are padding."""
    case = Case((1, 2, 1, 9, 17, 12, 8))
    mod, arrays = attentions([case])
    module = emulated(mod, {**SMALL, **TF32, CHECK_RACES: True})
    close(module["main"](*arrays), case)


def test_one_program_for_all_numbers_of_queries_and_keys() -> None:
    """A cache that grows; few queries take another way."""
    main = emulated(growing_cache(2, 1, "f16"), {**SMALL, **SHORT_SPLITS})["main"]
    for rows, keys in ((1, 1), (1, 129), (5, 5), (17, 63), (64, 64), (65, 100), (0, 3)):
        case = Case((1, 2, 1, rows, keys, 16, 16), dtype="float16", attributes={"is_causal": True, "causal_offset": keys - rows})
        close(main(*case.arrays()), case)
    nothing = [np.zeros((1, h, n, 16), np.float16) for h, n in ((2, 9), (1, 0), (1, 0))]
    np.testing.assert_array_equal(main(*nothing), np.zeros((1, 2, 9, 16), np.float16))


def code_of(case: Case, precision: str = "f32") -> tuple[str, KernelFigures]:
    """The PTX of an attention for sm_80, and its figures."""
    target = Target("cuda", arch="sm_80")
    assert isinstance(target, CudaTarget)
    mod, _ = attentions([case])
    module = compile(mod, target=target, stop_after="tir", precision=precision)
    with module.context:
        outline_launches(module.module)
        (kernel,) = lower_device(module.module, target).images.kernels.values()
    return kernel.of("sm_80").ptx, kernel_figures(kernel, "sm_80", False)


def test_registers_hold_what_a_warp_needs() -> None:
    """With the numbers of the model nothing is spilled, and matrix loads feed two products or more each. Queries of large heads come from
    shared memory: a load of 16 bytes for 16 rows and 16 elements."""
    ptx, figures = code_of(Case((1, 8, 8, 2048, 2048, 128, 128), dtype="bfloat16"))
    assert ptx.count("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32") >= 2 * ptx.count("ldmatrix.sync.aligned.m8n8.x4") > 0
    assert "ldmatrix.sync.aligned.m8n8.x4.trans" in ptx and "cp.async.cg.shared.global" in ptx and "cvt.rn.bf16x2.f32" in ptx
    assert ptx.count("ld.shared.v4") == 2 * 128 // 16
    if figures.report is not None:
        assert figures.report.spill_stores == figures.report.stack_bytes == 0 and figures.blocks


def test_values_of_f32_are_read_word_by_word() -> None:
    """Two for each product with them, beside which there are as many products with keys; nothing is spilled."""
    ptx, figures = code_of(Case((1, 8, 8, 256, 256, 32, 32)), "tf32")
    products = ptx.count("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")
    assert products == ptx.count("ld.shared.b32") > 0
    if figures.report is not None:
        assert figures.report.spill_stores == figures.report.stack_bytes == 0 and figures.blocks


@pytest.mark.parametrize(("rows", "strategy"), [(FEW_ROWS, "flash"), (FEW_ROWS + 1, "flash_mma")])
def test_few_queries_are_left_to_the_strategy_without_tensor_cores(rows: int, strategy: str) -> None:
    mod, _ = attentions([Case((1, 1, 1, rows, 64, 16, 16), dtype="float16")])
    (kernel,) = relayc.compile(mod, target=Target("cuda", arch="sm_80"), stop_after="tir").kernels
    assert kernel.schedule.split()[0] == strategy


def test_queries_are_scaled_by_numbers_only() -> None:
    text = """
func.func @f(%x: f32, %y: f32) {
  %half = arith.constant 0.5 : f32
  %sum = arith.addf %y, %y : f32
  %0 = arith.mulf %half, %x : f32
  %1 = arith.mulf %x, %sum : f32
  %2 = arith.mulf %x, %y : f32
  %3 = arith.mulf %x, %x : f32
  return
}"""
    with only_function(text) as function:
        (block,) = function.regions[0].blocks
        products = [op.operation for op in block.operations if op.operation.name == "arith.mulf"]
        assert [_factor(op, block.arguments[0]) for op in products] == [0.5, None, None, None]


SCALED = """
func.func @f(%x: tensor<4x8xf16>) -> tensor<4x8xf32> {
  %half = arith.constant 0.5 : f32
  %empty = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
        iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf16>) outs(%empty : tensor<4x8xf32>) {
  ^bb0(%e: f16, %_: f32):
    %w = arith.extf %e : f16 to f32
    %r = arith.mulf %w, %half : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}"""
TURNED = ("affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>]", "affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>]")


@pytest.mark.parametrize(
    ("changes", "key", "is_tf32", "scale"),
    [
        ([], "f16", False, 0.5),
        ([], "f32", False, None),
        ([], "bf16", False, None),
        ([("f16", "bf16")], "bf16", False, 0.5),
        ([("arith.extf", "math.absf"), ("f16", "f32"), (" : f32 to f32", " : f32")], "f32", True, 1.0),
        ([("%w = arith.extf %e : f16 to f32", ""), ("%w, %half", "%e, %half"), ("f16", "f32")], "f32", True, 0.5),
        ([("%w = arith.extf %e : f16 to f32", ""), ("%w, %half", "%e, %half"), ("f16", "f32")], "f32", False, None),
        ([("%w, %half", "%w, %w")], "f16", False, None),
        ([("arith.mulf", "arith.addf")], "f16", False, None),
        ([("%r = arith.mulf %w, %half : f32", ""), ("yield %r", "yield %w")], "f16", False, 1.0),
        ([("4x8x", "8x8x"), TURNED], "f16", False, None),
        ([("f16", "f8E5M2")], "f8E5M2", False, None),
    ],
)
def test_queries_that_tensor_cores_multiply(changes: list[tuple[str, str]], key: str, is_tf32: bool, scale: float | None) -> None:
    """16-bit floats that keys and values are too, or f32 as tf32; a scale that is a number goes to the scores."""
    text = SCALED
    for old, new in changes:
        text = text.replace(old, new)
    with only_function(text) as function:
        (scaled,) = read_kernel(function).results
        f32, other = SimpleNamespace(element=ir.F32Type.get()), SimpleNamespace(element=ir.Type.parse(key))
        product, context = (
            SimpleNamespace(element=f32.element, structured=SimpleNamespace(inputs=[node, other])) for node in (scaled, f32)
        )
        found = queries_of(SimpleNamespace(product=product, context=context), is_tf32)
        assert (found and found.scale) == scale
        if found is not None:
            assert found.node is (scaled if is_tf32 and scale == 1 else scaled.structured.inputs[0])


KEYS = """
func.func @f(%q: tensor<1x1x1x8x16xf16>, %wide: tensor<1x1x8x{width}xf16>) -> tensor<1x1x1x8x8xf32> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x1x1x8x8xf32>
  %sums = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x1x1x8x8xf32>) -> tensor<1x1x1x8x8xf32>
  %k = tensor.extract_slice %wide[0, 0, 0, {first}][1, 1, 8, 16][1, 1, 1, 1] : tensor<1x1x8x{width}xf16> to tensor<1x1x8x16xf16>
  %0 = linalg.generic {{indexing_maps = [affine_map<(b, h, g, q, k, d) -> (b, h, g, q, d)>, affine_map<(b, h, g, q, k, d) -> (b, h, k, d)>,
         affine_map<(b, h, g, q, k, d) -> (b, h, g, q, k)>],
        iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}}
      ins(%q, %k : tensor<1x1x1x8x16xf16>, tensor<1x1x8x16xf16>) outs(%sums : tensor<1x1x1x8x8xf32>) {{
  ^bb0(%x: f16, %y: f16, %s: f32):
    %product = arith.mulf %x, %y : f16
    %wide_product = arith.extf %product : f16 to f32
    %r = arith.addf %s, %wide_product : f32
    linalg.yield %r : f32
  }} -> tensor<1x1x1x8x8xf32>
  return %0 : tensor<1x1x1x8x8xf32>
}}"""


@pytest.mark.parametrize(
    ("width", "first", "has_copies", "kind"),
    [
        (24, 8, True, AsynchronousTiles),
        (24, 8, False, GatheredTiles),
        (24, 4, True, GatheredTiles),
        (20, 0, True, GatheredTiles),
    ],
)
def test_the_target_copies_keys_that_begin_and_follow_at_whole_chunks(width: int, first: int, has_copies: bool, kind: type) -> None:
    with only_function(KEYS.format(width=width, first=first)) as function:
        (product,) = read_kernel(function).results
        assert type(copy_of(product, has_copies, False, 16, 32, 0, (2, 512))) is kind


def test_keys_at_places_that_are_not_linear_are_read_chunk_by_chunk() -> None:
    """A padding with another value than zero is computed, not copied."""
    padding = """%k = tensor.pad %wide low[0, 0, 0, 0] high[0, 0, 0, 8] {
  ^bb0(%p: index, %q0: index, %r0: index, %s0: index):
    tensor.yield %one : f16
  } : tensor<1x1x8x8xf16> to tensor<1x1x8x16xf16>"""
    lines = KEYS.format(width=8, first=0).replace("%zero =", "%one = arith.constant 1.0 : f16\n  %zero =", 1).splitlines()
    with only_function("\n".join(padding if "extract_slice" in line else line for line in lines)) as function:
        (product,) = read_kernel(function).results
        found = copy_of(product, True, False, 16, 32, 0, (2, 512))
        assert isinstance(found, GatheredTiles) and not found.by_key


@pytest.mark.parametrize(
    ("elements", "size", "is_padded", "chunks", "unpermuted", "pitch"),
    [
        (8, 2, False, 2, False, 32),
        (24, 2, False, 4, False, 64),
        (40, 2, False, 6, True, 112),
        (20, 4, True, 6, True, 112),
        (16, 4, True, 4, True, 80),
    ],
)
def test_lines_of_a_tile_have_whole_steps(elements: int, size: int, is_padded: bool, chunks: int, unpermuted: bool, pitch: int) -> None:
    """Steps of 32 bytes; only lines of a power of two of chunks have chunks that are permuted, others one chunk more: an odd number."""
    tile = tile_of(16, elements, size, is_padded)
    assert (tile.chunks, tile.is_padded, tile.pitch, tile.size) == (chunks, unpermuted, pitch, 16 * pitch)
