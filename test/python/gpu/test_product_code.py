"""What products on GPUs become: copies, matrix loads, registers, for each architecture."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

import pytest
from device_kernels import lower_device
from oracle import values
from support import Const, program

from relayc.bench.tensor_core_product import on_tensor_cores, on_warp_groups, product_of_f16
from relayc.dialects.relay import build
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.build import build as build_module
from relayc.pipelines.driver.compile import compile
from relayc.pipelines.program.single import kernel_program
from relayc.pipelines.targets.cuda.device.figures import KernelFigures, kernel_figures
from relayc.pipelines.targets.cuda.target import CudaTarget
from relayc.pipelines.targets.gpu.outline import outline_launches
from relayc.pipelines.tir.gpu.tensor_maps import mark_tensor_maps
from relayc.tir import Schedule


def product_of(
    dtype: str, arch: str, strategy: str = "mma", precision: str = "f32", shape: tuple[int, int, int] = (2048, 1024, 1024), **numbers: int
) -> tuple[str, KernelFigures]:
    """The PTX and the figures of a product of some rows, depth and columns, with the numbers of the model where none are given."""
    rows, depth, columns = shape
    arrays = [values((rows, depth), dtype), Const(values((columns, depth), dtype, seed=1))]
    fed = program(lambda a, b: [build("nn.relu", build("nn.dense", a, b))], arrays)
    return code_of(fed, "dense", arch, strategy, precision, numbers)


def code_of(
    fed: IRModule, name: str, arch: str, strategy: str, precision: str = "f32", numbers: Mapping[str, int] = MappingProxyType({})
) -> tuple[str, KernelFigures]:
    """The PTX and the figures of the kernel of a program that has a name."""
    target = Target("cuda", arch=arch)
    assert isinstance(target, CudaTarget)
    with PassContext(config={"schedule.kernels": {"*": {"strategy": strategy} | {f"{strategy}.{name}": n for name, n in numbers.items()}}}):
        module = compile(fed, target=target, stop_after="tir", precision=precision)
    with module.context:
        outline_launches(module.module)
        code = lower_device(module.module, target)
    (kernel,) = [k for found, k in code.images.kernels.items() if name in found]
    return kernel.of(arch).ptx, kernel_figures(kernel, arch)


def check_figures(ptx: str, figures: KernelFigures) -> None:
    """Nothing in local memory, and a block that a multiprocessor has room for."""
    assert not re.search(r"\b(ld|st)\.local\b", ptx)
    if figures.report is not None:
        assert figures.report.spill_stores == figures.report.spill_loads == figures.report.stack_bytes == 0
        assert figures.blocks


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100"])
def test_tensor_cores_are_fed(arch):
    """Copies of 16 bytes, matrix loads, and two products or more for each of them."""
    ptx, figures = product_of("bfloat16", arch)
    check_figures(ptx, figures)
    copies = re.findall(r"cp\.async\.(\w+)\.shared\.global\s+\[[^]]*\], \[[^]]*\], (\d+)", ptx)
    assert set(copies) == {("cg", "16")}
    products = len(re.findall(r"mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.bf16\.bf16\.f32", ptx))
    loads = len(re.findall(r"ldmatrix\.sync\.aligned\.m8n8\.x4", ptx))
    assert products >= 2 * loads > 0


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_convolutions_of_bytes(arch):
    """u8 by s8, 32 steps at a time, also where paddings are the zero point, which stores bring: 16 bytes at a time."""
    weight = values((256, 64, 3, 3), "int8", seed=1)
    attrs = {"padding": (1, 1, 1, 1), "pad_value": 128, "data_layout": "NHWC", "out_dtype": "int32"}
    body = lambda x, w: [build("cast", build("nn.conv2d", x, w, **attrs), dtype="uint8")]  # noqa: E731 (an argument, not a definition)
    ptx, figures = code_of(program(body, [values((8, 28, 28, 64), "uint8"), Const(weight)]), "conv2d", arch, "mma")
    check_figures(ptx, figures)
    assert "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32" in ptx
    assert set(re.findall(r"cp\.async\.(\w+)\.shared\.global\s+\[[^]]*\], \[[^]]*\], (\d+)", ptx)) == {("cg", "16")}
    assert re.search(r"st\.shared\.v(4\.b32|2\.b64)", ptx)


def test_products_of_floats():
    """In f32 by multiply-adds; where tf32 is asked for on tensor cores."""
    ptx, figures = product_of("float32", "sm_80", "fma")
    check_figures(ptx, figures)
    assert len(re.findall(r"fma\.rn\.f32", ptx)) >= 512 and "mma.sync" not in ptx
    ptx, figures = product_of("float32", "sm_80", precision="tf32")
    check_figures(ptx, figures)
    assert "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32" in ptx and "cvt.rna.tf32.f32" in ptx


def test_chunks_are_swizzled_as_warps_read_them(monkeypatch):
    """Matrix loads read chunks of 16 bytes of eight lines; words across the depth are eight of each of four lines."""
    found, swizzle = [], Schedule.storage_swizzle
    monkeypatch.setattr(Schedule, "storage_swizzle", lambda s, *given: (found.append(given[3]), swizzle(s, *given)))
    for dtype, transpose_b in (("float16", False), ("float32", True), ("float32", False)):
        arrays = [values((64, 64), dtype), values((64, 64), dtype, seed=1)]
        fed = program(lambda a, b, turn=transpose_b: [build("nn.matmul", a, b, transpose_b=turn)], arrays)
        code_of(fed, "", "sm_80", "mma", "tf32")
    assert found == [16, 16, 16, 16, 16, 32]


def test_a_product_of_one_turn_of_the_depth_keeps_only_its_sums():
    """Without a loop over the depth LLVM is free to move sums down to where they are stored: their operands must not wait there."""
    tile = {"rows": 32, "columns": 64, "depth": 32, "unit_rows": 8, "unit_columns": 4, "stages": 2, "splits": 1}
    ptx, figures = product_of("float32", "sm_80", "fma", shape=(256, 32, 64), **tile)
    check_figures(ptx, figures)
    assert len(re.findall(r"fma\.rn\.f32", ptx)) == 32 * 8 * 4


def written(arch: str, schedule: Callable[[Schedule], None]) -> tuple[str, KernelFigures]:
    """The PTX and the figures of a product of f16 that a schedule by hand makes."""
    target = Target("cuda", arch=arch)
    assert isinstance(target, CudaTarget)
    fed, found = kernel_program(product_of_f16(2048, 1024, 4096), None, {})
    with PassContext(config={"schedule.functions": {found: schedule}}):
        module = build_module(fed, target, None, None, None, False, "tir", None, "f32", first="tir")
    with module.context:
        outline_launches(module.module)
        mark_tensor_maps(module.module)
        (kernel,) = lower_device(module.module, target).images.kernels.values()
    return kernel.of(arch).ptx, kernel_figures(kernel, arch)


def test_what_is_written_with_primitives_is_the_same_inside():
    """The loop over the steps of a product by tensor intrinsics has the instructions of the strategy: 4 copies, 8 loads, 16 products."""
    ptx, figures = written("sm_80", on_tensor_cores)
    check_figures(ptx, figures)
    counts = {name: len(re.findall(name, ptx)) for name in ("mma.sync", "ldmatrix.sync.*x4", "cp.async.cg", "bar.sync")}
    # Copies stand before the loop as well, twice; barriers behind it, before and behind the sums in shared memory.
    assert counts == {"mma.sync": 16, "ldmatrix.sync.*x4": 8, "cp.async.cg": 12, "bar.sync": 3}


def test_warp_groups_that_are_written_with_primitives_multiply_while_tiles_come():
    """Four products and two copies in the loop, nothing in local memory, and no product that waits for another one."""
    ptx, figures = written("sm_90a", on_warp_groups)
    check_figures(ptx, figures)
    assert figures.report is None or not figures.report.warnings
    counts = {name: len(re.findall(name, ptx)) for name in ("wgmma.mma_async", "cp.async.bulk.tensor", "wgmma.wait_group", "bar.sync")}
    # Copies stand before the loop as well, twice; waits and barriers behind it, before and behind the sums in shared memory.
    assert counts == {"wgmma.mma_async": 4, "cp.async.bulk.tensor": 6, "wgmma.wait_group": 2, "bar.sync": 4}
