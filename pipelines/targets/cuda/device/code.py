"""The kernels of a program to PTX and cubins, for several architectures, on all cores."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version

from relayc.dialects.discardable import BLOCK_THREADS, DYNAMIC_SHARED, STATIC_SHARED
from relayc.dialects.mlir import ir
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.targets.cuda.architectures import ARCHITECTURES
from relayc.pipelines.targets.cuda.device.errors import DeviceCodeError
from relayc.pipelines.targets.cuda.device.figures import KernelFigures, kernel_figures
from relayc.pipelines.targets.cuda.device.llvm_text import KernelText, kernel_texts
from relayc.pipelines.targets.cuda.device.ptx import make_ptx, require_llvm
from relayc.pipelines.targets.cuda.device.ptxas import assemble, tool, tool_version
from relayc.pipelines.targets.cuda.passes import ARCHITECTURES_OPTION
from relayc.pipelines.targets.cuda.target import CudaTarget
from relayc.runtime.cache import Cache
from relayc.runtime.cuda.images import Image, Images, KernelImages
from relayc.runtime.threads import usable_cpus


@dataclass(frozen=True)
class DeviceCode:
    """The kernels of a program as code of devices.

    Attributes:
      arch: the architecture of the target.
      images: the kernels for this architecture, and for other requested ones.
    """

    arch: str
    images: Images

    def figures(self, arch: str | None = None) -> list[KernelFigures]:
        """The resources of a multiprocessor that each kernel needs, on an architecture (default: the architecture of the target)."""
        with ThreadPoolExecutor(usable_cpus(), "relayc-sass") as pool:
            return list(pool.map(lambda kernel: kernel_figures(kernel, arch or self.arch), self.images.kernels.values()))


def kept_code(images: bytes, arch: str) -> DeviceCode:
    """Device code as modules keep it (`Module.device_code`). Raises ValueError for anything else."""
    return DeviceCode(arch, Images.from_bytes(images))


def compile_kernels(module: ir.Module, target: CudaTarget, architectures: Sequence[str] | None = None) -> DeviceCode:
    """The device code of a module; arguments and errors as of `compiling_kernels`."""
    with compiling_kernels(module, target, architectures) as code:
        return code()


@contextmanager
def compiling_kernels(
    module: ir.Module, target: CudaTarget, architectures: Sequence[str] | None = None
) -> Iterator[Callable[[], DeviceCode]]:
    """Context in which the kernels of a module, which are in the LLVM dialect (lowering.lower_kernels), are compiled. It gives a function
    that waits for the code; the module may be changed before.

    Code comes from the cache on disk if it was compiled before. Without ptxas the result is PTX only, which the driver compiles.

    Args:
      architectures: names of further architectures to compile for; they must have all features of the target's architecture, because
        kernels may use them. By default the architectures of the ambient PassContext ("cuda.architectures").

    Raises:
      DeviceCodeError: a kernel cannot be compiled for an architecture; an architecture is unknown, or lacks a feature of the target.
      ModuleNotFoundError: llvmlite is not installed.
    """
    more = PassContext.current().get(ARCHITECTURES_OPTION) if architectures is None else architectures
    archs = list(dict.fromkeys([target.arch, *more]))
    for arch in archs:
        _check(arch, target)
    require_llvm()
    with ThreadPoolExecutor(usable_cpus(), "relayc-ptx") as pool:
        # The first kernels are compiled while the texts of the others are made.
        begun = [(kernel, [pool.submit(make_image, kernel.name, kernel.text, arch) for arch in archs]) for kernel in kernel_texts(module)]

        def code() -> DeviceCode:
            return DeviceCode(target.arch, Images.of([_images(kernel, [image.result() for image in images]) for kernel, images in begun]))

        yield code


def make_image(name: str, text: str, arch: str) -> Image:
    """The image of a kernel, from the cache if it was compiled before; several threads may call this at once.

    Raises what `make_ptx` and `assemble` raise.
    """
    cache = Cache.default()
    ptx_key = _key("ptx", text, arch, str(ARCHITECTURES[arch].ptx), version("llvmlite"))
    kept = None if cache is None else cache.read_part(ptx_key)
    ptx = make_ptx(name, text, arch) if kept is None else kept.decode()
    if cache is not None and kept is None:
        cache.write_part(ptx_key, ptx.encode())
    if tool("ptxas") is None:
        return Image(arch, ptx)
    cubin_key, report_key = (_key(what, ptx, arch, tool_version("ptxas")) for what in ("cubin", "report"))
    cubin, said = (None, None) if cache is None else (cache.read_part(cubin_key), cache.read_part(report_key))
    if cubin is not None and said is not None:
        return Image(arch, ptx, cubin, said.decode())
    cubin, report = assemble(name, ptx, arch)
    if cache is not None:
        cache.write_part(cubin_key, cubin)
        cache.write_part(report_key, report.encode())
    return Image(arch, ptx, cubin, report)


def _key(*facts: str) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _check(arch: str, target: CudaTarget) -> None:
    if arch not in ARCHITECTURES:
        raise DeviceCodeError(f"architectures: expected names out of {', '.join(ARCHITECTURES)}, found {arch}")
    lacking = target.architecture.features - ARCHITECTURES[arch].features
    if lacking:
        what = ", ".join(sorted(lacking))
        raise DeviceCodeError(
            f"architectures: expected what has all of {target.arch}, which kernels may use, found {arch}: it lacks {what}"
        )


def _images(kernel: KernelText, images: list[Image]) -> KernelImages:
    facts = kernel.facts
    return KernelImages(kernel.name, facts[BLOCK_THREADS.name], facts[STATIC_SHARED.name], facts[DYNAMIC_SHARED.name], tuple(images))
