"""Kernels for tests of device code, as tir with launches."""

from collections.abc import Sequence

from relayc.dialects.mlir import ir, make_context
from relayc.dialects.relay import IRModule
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile
from relayc.pipelines.targets.cuda.device.code import DeviceCode, compile_kernels
from relayc.pipelines.targets.cuda.device.figures import KernelFigures, kernel_figures
from relayc.pipelines.targets.cuda.device.lowering import lower_kernels
from relayc.pipelines.targets.cuda.target import CudaTarget
from relayc.pipelines.targets.gpu.outline import outline_launches

WG = "#gpu.address_space<workgroup>"


def cuda(arch: str) -> CudaTarget:
    target = Target("cuda", arch=arch)
    assert isinstance(target, CudaTarget)
    return target


def launched(arguments: str, body: str, threads: int = 128, blocks: int = 64, workgroup: str = "") -> str:
    """A function @k that launches `body`: %b is the number of a block, %t that of a thread, %c0 to %c4 are indices."""
    constants = "\n".join(f"  %c{i} = arith.constant {i} : index" for i in range(5))
    shared = f"workgroup({workgroup})" if workgroup else ""
    return f"""
func.func private @k({arguments}) {{
{constants}
  %blocks = arith.constant {blocks} : index
  %threads = arith.constant {threads} : index
  gpu.launch blocks(%b, %by, %bz) in (%gx = %blocks, %gy = %c1, %gz = %c1)
      threads(%t, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {shared} {{
    {body}
    gpu.terminator
  }}
  return
}}
"""


def outlined(text: str) -> ir.Module:
    """A module of tir text, its launches outlined."""
    context = make_context()
    with context:
        context.load_all_available_dialects()
        module = ir.Module.parse(text)
        outline_launches(module)
    return module


def lower_device(module: ir.Module, target: CudaTarget, architectures: Sequence[str] | None = None) -> DeviceCode:
    """The device code of an outlined module (pipelines.targets.gpu.outline), whose kernels are lowered to the LLVM dialect in place.

    Functions of the host and their `gpu.launch_func` do not change. Arguments and errors: see `lower_kernels` and `compile_kernels`.
    """
    lower_kernels(module, target)
    return compile_kernels(module, target, architectures)


def device_code(text: str, arch: str = "sm_80", architectures: tuple[str, ...] = ()) -> DeviceCode:
    """The device code of tir text."""
    return lower_device(outlined(text), cuda(arch), architectures)


def ptx_of(text: str, arch: str = "sm_80") -> str:
    """The PTX of the only kernel of tir text."""
    (kernel,) = device_code(text, arch).images.kernels.values()
    return kernel.of(arch).ptx


def code_of(fed: IRModule, arch: str) -> tuple[str, KernelFigures]:
    """The PTX and the figures of a program of one kernel."""
    target = cuda(arch)
    module = compile(fed, target=target, stop_after="tir")
    with module.context:
        outline_launches(module.module)
        (kernel,) = lower_device(module.module, target).images.kernels.values()
    return kernel.of(arch).ptx, kernel_figures(kernel, arch)
