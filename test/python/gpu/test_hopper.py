"""Products by warp groups of Hopper, emulated, against numpy; what goes wrong without a wait; and what ptxas says of them."""

from typing import Any

import numpy as np
import pytest
from support import Const, program

import relayc
from relayc.dialects.mlir import ir
from relayc.dialects.relay import IRModule, build
from relayc.dialects.relay.types import numpy_dtype
from relayc.pipelines.cuda.device.ptxas import tool
from relayc.pipelines.cuda.schedule.hopper import instructions
from relayc.pipelines.passes import PassContext
from relayc.pipelines.target import Target

# Products of 16-bit floats are exact in f32; sums of some hundred of them err by some units of 1e-7 of the largest.
TOLERANCE = 1e-6
SMALL = {"schedule.wgmma.rows": 64, "schedule.wgmma.columns": 64, "schedule.wgmma.stages": 2}


def target(multiprocessors: int, **options: Any) -> Target:
    return Target("cuda", arch="sm_90a", num_threads=1, num_multiprocessors=multiprocessors, **options)


def compiled(mod: IRModule, config: dict[str, int], multiprocessors: int = 2) -> Any:
    """The program, emulated, whose one kernel must have been taken by the strategy."""
    with PassContext(config=config):
        module = relayc.compile(mod, target=target(multiprocessors, emulate=True))
    assert [k.schedule.split()[0] for k in module.kernels] == ["wgmma"]
    return module["main"]


def operands(rows: int, columns: int, depth: int, dtype: str = "bfloat16") -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([rows, columns, depth])
    return tuple(rng.standard_normal((n, depth), np.float32).astype(numpy_dtype(dtype)) for n in (rows, columns))  # type: ignore[return-value]


def dense(a: Any, b: Any) -> IRModule:
    return program(lambda x, w: [build("nn.dense", x, w, out_dtype="float32")], [a, b])


def close(found: np.ndarray, expected: np.ndarray, tolerance: float = TOLERANCE) -> None:
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=0, atol=tolerance * np.abs(expected).max(initial=0))


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64).T


@pytest.mark.parametrize(
    ("rows", "columns", "depth", "config"),
    [
        (129, 200, 72, SMALL),
        (65, 65, 17, SMALL),
        (200, 260, 264, {"schedule.wgmma.rows": 128, "schedule.wgmma.columns": 256, "schedule.wgmma.stages": 3}),
    ],
)
def test_tiles_beside_the_result_and_blocks_of_several_tiles(rows: int, columns: int, depth: int, config: dict[str, int]) -> None:
    a, b = operands(rows, columns, depth)
    # Lines of 17 elements begin at no multiple of 16 bytes: a parameter is packed.
    if depth % 8:
        a = np.ascontiguousarray(np.pad(a, ((0, 0), (0, 8 - depth % 8))))
        b = np.pad(b, ((0, 0), (0, 8 - depth % 8)))
    close(compiled(dense(a, Const(b)), config)(a), product(a, b))


def test_what_follows_is_computed_with_the_sums() -> None:
    a, b = operands(70, 136, 200, "float16")
    bias = operands(1, 136, 1, "float16")[1][:, 0]
    mod = program(lambda x, w, c: [build("nn.relu", build("add", build("nn.dense", x, w), c))], [a, b, bias])
    # The product and the sum are rounded to f16, each by 2**-11 of itself.
    close(compiled(mod, SMALL)(a, b, bias), np.maximum(product(a, b) + bias.astype(np.float64), 0), 2**-10)


def test_batches() -> None:
    a, b = (np.stack([operands(*shape, "float16")[i] for shape in ((70, 72, 40), (70, 72, 40), (70, 72, 40))]) for i in range(2))
    a[1] *= 2
    b[2] += 1
    mod = program(lambda x, y: [build("nn.batch_matmul", x, y, transpose_b=True, out_dtype="float32")], [a, b])
    close(compiled(mod, SMALL)(a, b), a.astype(np.float64) @ b.astype(np.float64).swapaxes(1, 2))


def test_one_program_for_all_numbers_of_rows() -> None:
    _, b = operands(1, 72, 40)
    text = """module {
  func.func @main(%x: tensor<?x40xbf16, ["m"]>, %w: tensor<72x40xbf16>) -> tensor<?x72xf32, ["m"]> {
    %0 = "relay.nn_dense"(%x, %w) {out_dtype = "float32"} : (tensor<?x40xbf16, ["m"]>, tensor<72x40xbf16>) -> tensor<?x72xf32, ["m"]>
    return %0 : tensor<?x72xf32, ["m"]>
  }
}"""
    main = compiled(IRModule.parse(text), SMALL)
    for rows in (0, 1, 7, 64, 129):
        a, _ = operands(rows, 72, 40)
        close(main(a, b), product(a, b))


# ---- what is missing is seen


def _two_tiles() -> tuple[IRModule, np.ndarray, np.ndarray]:
    a, b = operands(64, 64, 512)
    return dense(a, b), a, b


def test_operands_that_nobody_waits_for_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    mod, a, b = _two_tiles()
    original, calls = instructions.wait, []

    def wait(barrier: ir.Value, parity: ir.Value) -> None:
        calls.append(parity)
        if len(calls) == 1:  # that of the warp that brings tiles
            original(barrier, parity)

    monkeypatch.setattr(instructions, "wait", wait)
    # They come while the products read them.
    with pytest.raises(RuntimeError, match=r"waiting for ever at nvvm.wgmma.wait.group"):
        compiled(mod, SMALL)(a, b)
    assert len(calls) == 2


def test_operands_that_are_given_back_too_early_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    mod, a, b = _two_tiles()
    original = instructions.wait_products
    # Up to as many groups of products as there are may be on their way when their operands are given back.
    monkeypatch.setattr(instructions, "wait_products", lambda keep: original(63 if keep else 0))
    with pytest.raises(RuntimeError, match=r"waiting for ever at nvvm.wgmma.wait.group"):
        compiled(mod, SMALL)(a, b)


def test_bytes_that_do_not_come_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    mod, a, b = _two_tiles()
    original = instructions.arrive_expecting
    monkeypatch.setattr(instructions, "arrive_expecting", lambda barrier, count: original(barrier, count + 16))
    with pytest.raises(RuntimeError, match=r"waiting for ever at .*nvvm.mbarrier.try_wait"):
        compiled(mod, SMALL)(a, b)


# ---- device code


@pytest.mark.skipif(tool("ptxas") is None, reason="ptxas is not installed")
@pytest.mark.parametrize(("rows", "columns"), [(128, 256), (64, 128)])
def test_sums_stay_in_registers(rows: int, columns: int) -> None:
    """No spills, and no warning: that products are serialised, or that setmaxnreg is ignored."""
    from relayc.pipelines.cuda.device.figures import KernelFigures

    a, b = operands(256, 512, 256)
    with PassContext(config={"schedule.wgmma.rows": rows, "schedule.wgmma.columns": columns}):
        figures: list[KernelFigures] = figures_of(dense(a, b), target(2))
    (one,) = figures
    assert one.report is not None
    assert (one.report.spill_stores, one.report.spill_loads, one.report.stack_bytes, one.report.warnings) == (0, 0, 0, ())
    assert one.report.registers * one.threads <= 65536
    # Four steps of 16 in a line of 128 bytes.
    assert one.tensor_core_instructions >= 4


def figures_of(mod: IRModule, target: Target) -> list[Any]:
    """Of all kernels of a program."""
    from relayc.pipelines.cuda.device.code import lower_device
    from relayc.pipelines.cuda.target import CudaTarget
    from relayc.pipelines.cuda.tensor_maps import mark_tensor_maps
    from relayc.pipelines.gpu.outline import outline_launches

    assert isinstance(target, CudaTarget)
    tir = relayc.compile(mod, target=target, stop_after="tir", cache=False)
    with tir.context, ir.Location.unknown():
        outline_launches(tir.module)
        mark_tensor_maps(tir.module)
        return lower_device(tir.module, target).figures()
