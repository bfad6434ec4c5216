"""The backend of the kind cuda. What it needs of MLIR is imported when a program is compiled."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from relayc.pipelines.context.backend import Backend, MachineCode, find_backend, register_backend
from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cuda.target import CudaTarget
from relayc.runtime.device import device_kind

if TYPE_CHECKING:
    from relayc.dialects.mlir import ir
    from relayc.pipelines.program.packed_entry import PackedEntry
    from relayc.pipelines.tir.strategy.table import Entry
    from relayc.runtime.export import ExportedProgram, ExportRequest
    from relayc.runtime.profile import Peak
    from relayc.symbolic import Size


class CudaBackend(Backend):
    """NVIDIA GPUs: kernels by PTX, programs by the backend of the host."""

    kind = "cuda"
    device = "cuda"
    modules = (
        "relayc.pipelines.targets.gpu.passes",
        "relayc.pipelines.targets.cuda.passes",
        "relayc.pipelines.targets.cuda.strategies.table",
        "relayc.pipelines.targets.cuda.strategies.intrinsics",
    )

    @property
    def target(self) -> type[Target]:
        return CudaTarget

    def device_of(self, target: Target) -> str:
        return "cpu" if _cuda(target).emulate else self.device

    def kernels_fail(self, target: Target) -> bool:
        """Threads that wait for ever are an error of the emulation."""
        return _cuda(target).emulate

    def strategies(self) -> "Sequence[Entry]":
        from relayc.pipelines.targets.cuda.strategies.table import TABLE

        return TABLE

    def launch_loops(self, module: "ir.Module") -> "Mapping[str, Size] | None":
        from relayc.pipelines.targets.gpu.loops import launch_loops

        return launch_loops(module)

    def lower(self, module: "ir.Module", target: Target) -> None:
        from relayc.pipelines.targets.gpu.outline import outline_launches
        from relayc.pipelines.tir.gpu.tensor_maps import emulate_tensor_maps, mark_tensor_maps

        outline_launches(module)
        mark_tensor_maps(module)
        if not _cuda(target).emulate:
            self.lower_kernels(module, _cuda(target))
            return
        from relayc.pipelines.context.passes import PassContext
        from relayc.pipelines.targets.cuda import emulate  # noqa: F401 (registers the instructions)
        from relayc.pipelines.targets.gpu.emulate import emulate_kernels, mark_functions
        from relayc.pipelines.targets.gpu.passes import CHECK_RACES

        emulate_tensor_maps(module)
        emulate_kernels(module, PassContext.current().get(CHECK_RACES))
        host = self.host(target)
        find_backend(host.kind).lower(module, host)
        mark_functions(module)

    def machine_code(self, module: "ir.Module", target: Target, entries: "Mapping[str, PackedEntry]", linked: object = None) -> MachineCode:
        host = self.host(target)
        if _cuda(target).emulate:
            return find_backend(host.kind).machine_code(module, host, entries)
        from relayc.pipelines.llvm.packed import add_packed_entries
        from relayc.pipelines.targets.cuda.host import add_driver_calls, kernel_names, use_driver
        from relayc.pipelines.targets.gpu.outline import take_kernels

        kernels = kernel_names(module)
        with self.compiling(module, _cuda(target)) if kernels else nullcontext() as images:
            take_kernels(module)
            use_driver(module, kernels)
            find_backend(host.kind).lower(module, host)
            add_driver_calls(module, kernels)
            add_packed_entries(module, {name: entry.on_device() for name, entry in entries.items()}, self.device)
            code = find_backend(host.kind).object_code(module, host)
            code = dataclasses.replace(code, images=b"" if images is None else images(), kernels=kernels)
        addresses, owner = device_kind(self.device).load(code, len(entries))
        return MachineCode(dict(zip(entries, addresses, strict=True)), owner, code)

    def export_library(self, program: "ExportedProgram", request: "ExportRequest") -> list[Path]:
        return find_backend("cpu").export_library(program, request)

    def host(self, target: Target) -> Target:
        """This machine."""
        return Target("cpu", num_threads=target.num_threads)

    def quick_peak(self, threads: int) -> "Peak":
        from relayc.pipelines.targets.cuda.peak import quick_peak

        return quick_peak(threads)

    def lower_kernels(self, module: "ir.Module", target: CudaTarget) -> None:
        """Lowers the kernels of an outlined module to the LLVM dialect, in place."""
        from relayc.pipelines.targets.cuda.device.lowering import lower_kernels

        lower_kernels(module, target)

    @contextmanager
    def compiling(self, module: "ir.Module", target: CudaTarget) -> "Iterator[Callable[[], bytes]]":
        """Context in which the kernels of a module are compiled. It gives a function that waits for them as runtime.cuda.images keeps
        them; the module may be changed before."""
        from relayc.pipelines.targets.cuda.device.code import compiling_kernels

        with compiling_kernels(module, target) as code:
            yield lambda: code().images.to_bytes()


def _cuda(target: Target) -> CudaTarget:
    assert isinstance(target, CudaTarget)  # of this kind
    return target


register_backend(CudaBackend())
