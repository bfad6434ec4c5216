"""The backend of the kind cpu. What it needs of MLIR is imported when a program is compiled."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relayc.pipelines.context.backend import Backend, MachineCode, register_backend
from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cpu.target import CpuTarget
from relayc.runtime.artifact import ObjectCode
from relayc.runtime.device import device_kind
from relayc.runtime.profile import Peak

if TYPE_CHECKING:
    from concurrent.futures import Future

    from relayc.dialects.mlir import ir
    from relayc.pipelines.program.packed_entry import PackedEntry
    from relayc.pipelines.program.tir import TirModule
    from relayc.pipelines.tir.strategy.table import Entry
    from relayc.runtime.export import ExportedProgram, ExportRequest


class CpuBackend(Backend):
    """CPUs: LLVM's code in memory, on OpenMP's threads."""

    kind = "cpu"
    device = "cpu"
    makes_control = True
    modules = (
        "relayc.pipelines.targets.cpu.passes",
        "relayc.pipelines.targets.cpu.strategies.table",
        "relayc.pipelines.targets.cpu.strategies.intrinsics",
    )

    @property
    def target(self) -> type[Target]:
        return CpuTarget

    def strategies(self) -> "Sequence[Entry]":
        from relayc.pipelines.targets.cpu.strategies.table import TABLE

        return TABLE

    def lower(self, module: "ir.Module", target: Target) -> None:
        from relayc.pipelines.targets.cpu.lowering import lower_to_llvm

        lower_to_llvm(module, _cpu(target))

    def control_part(self, text: str, symbols: Sequence[str], target: Target) -> "Future[Any]":
        from relayc.pipelines.llvm.tables import address_table
        from relayc.pipelines.targets.cpu.jit import compiled_in_thread
        from relayc.runtime.cpu.objects import PART_SYMBOL

        return compiled_in_thread(f"{text}\n{address_table(PART_SYMBOL, symbols)}", symbols, _cpu(target))

    def machine_code(
        self,
        module: "ir.Module",
        target: Target,
        entries: "Mapping[str, PackedEntry]",
        linked: "tuple[Mapping[str, str], Future[Any]] | None" = None,
    ) -> MachineCode:
        """LLVM's execution engine uses much memory, so it is discarded if the code does not need it.

        Raises RuntimeError if the code cannot be linked, CodegenError if LLVM rejects it.
        """
        from relayc.pipelines.llvm.packed import add_packed_entries, entry_addresses
        from relayc.pipelines.targets.cpu.jit import compiled_checks, jit

        checks = compiled_checks(_cpu(target), self.device)
        symbols, parts = (linked[0], [linked[1]]) if linked is not None else ({}, [])
        names = [*entries, *symbols]
        add_packed_entries(module, entries, self.device, checks=False, linked=list(symbols.values()))
        engine = jit(module, _cpu(target), shared=[checks, *parts])
        addresses, device = entry_addresses(engine, names, target.is_host), device_kind(self.device)
        if not device.loads_code:
            return MachineCode(addresses, engine)
        code = engine.object_code()
        if not target.is_host:
            return MachineCode(addresses, None, code)
        loaded, owner = device.load(code, len(names))
        return MachineCode(dict(zip(names, loaded, strict=True)), owner, code)

    def object_code(self, module: "ir.Module", target: Target) -> ObjectCode:
        from relayc.pipelines.llvm.packed import entry_addresses
        from relayc.pipelines.targets.cpu.jit import jit

        engine = jit(module, _cpu(target))
        entry_addresses(engine, ())  # which compiles: the engine puts that off
        return engine.object_code()

    def export_library(self, program: "ExportedProgram", request: "ExportRequest") -> list[Path]:
        from relayc.pipelines.targets.cpu.export.library import export_library

        return export_library(program, request)

    def permissions(self, program: "TirModule", target: Target) -> tuple[str, ...]:
        return ("tiles",) if program.uses_tiles and not _cpu(target).emulate else ()

    def quick_peak(self, threads: int) -> Peak:
        from relayc.pipelines.targets.cpu import peak

        return peak.quick_peak(threads)


def _cpu(target: Target) -> CpuTarget:
    if not isinstance(target, CpuTarget):
        raise TypeError(f"expected a target of a CPU, found {target}")
    return target


register_backend(CpuBackend())
