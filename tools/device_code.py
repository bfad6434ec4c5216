"""The kernels of a program for GPUs as the commands show them: PTX, instructions, and what they need of a multiprocessor."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table

from relayc.runtime import Module
from relayc.tools.tables import NUMBER, make_table

if TYPE_CHECKING:
    from relayc.pipelines.targets.cuda.device.code import DeviceCode
    from relayc.pipelines.targets.cuda.device.figures import KernelFigures

STAGES = ("ptx", "sass")
"""Forms of device code that are texts."""


def _device_target(target: str) -> Any:
    """The target of a text if its programs are code of NVIDIA's GPUs, not of this machine in their place; None for another one.

    Raises ValueError for a target that is none.
    """
    from relayc.pipelines.context.target import Target

    found: Any = Target(target)
    return found if found.kind == "cuda" and not found.emulate else None


def device_code(lower: Callable[..., Any], target: str) -> "DeviceCode":
    """The device code of a program.

    Args:
      lower: returns the program at the stage given as its argument, from the module of `relayc.compile(stop_after=...)`.
      target: of the program.

    Raises:
      ValueError: the target has no device code, or a kernel has none.
      ModuleNotFoundError: the code generator is not installed.
    """
    from relayc.pipelines.targets.cuda.device.code import compile_kernels

    found = _device_target(target)
    if found is None:
        raise ValueError(f"target {target}: expected one with device code, such as 'cuda -arch=sm_90a', found one without")
    return compile_kernels(lower("llvm").module, found)


def _kept_code(module: Module) -> "DeviceCode | None":
    """The device code of a compiled module for its architecture; None for a module that is not for NVIDIA's GPUs."""
    target = _device_target(module.target)
    if target is None or not module.device_code:
        return None
    from relayc.pipelines.targets.cuda.device.code import kept_code

    return kept_code(module.device_code, target.arch)


def figures_of(module: Module) -> "list[KernelFigures]":
    """What the kernels of a compiled module need of a multiprocessor; nothing for a module that is not for NVIDIA's GPUs."""
    code = _kept_code(module)
    return [] if code is None else code.figures()


def device_text(code: "DeviceCode", stage: str) -> str:
    """PTX or SASS of all kernels, for the target's architecture.

    Raises:
      ModuleNotFoundError: the assembler or the disassembler is not installed.
    """
    from relayc.pipelines.targets.cuda.device.ptxas import disassemble

    texts = []
    for kernel in code.images.kernels.values():
        image = kernel.of(code.arch)
        if stage == "ptx":
            texts.append(f"// kernel {kernel.name}\n{image.ptx.strip()}\n")
        elif not image.cubin:
            raise ModuleNotFoundError("SASS: expected ptxas of the package nvidia-cuda-nvcc (pip install 'relayc[cuda]'), found none")
        else:
            texts.append(disassemble(image.cubin))
    return "\n".join(texts)


def figures_table(figures: "Sequence[KernelFigures]", schedules: Mapping[str, str]) -> Table:
    """One line per kernel: what it needs of a multiprocessor of the architecture.

    Args:
      schedules: how the functions are scheduled that launch the kernels, by name.
    """
    columns: dict[str, dict[str, Any]] = {"kernel": {"overflow": "fold"}, "strategy": {"overflow": "fold"}}
    arch = figures[0].arch if figures else ""
    table = make_table(f"kernels on {arch}", **columns, **dict.fromkeys(FIGURES[:-1], NUMBER), warnings={"overflow": "fold"})
    for row in figures:
        strategy = schedules.get(function_of(row.name, schedules), "").partition(" ")[0]
        table.add_row(row.name, strategy, *figure_texts(row))
    return table


def function_of(kernel: str, functions: Collection[str]) -> str:
    """The function that launches a kernel: it has the kernel's name, without the number if it launches several; "" if there is none."""
    return next((name for name in (kernel, kernel.rpartition("_")[0]) if name in functions), "")


def ptx_of(module: Module) -> dict[str, str]:
    """The PTX of the kernels of a compiled module for its architecture, by kernel; nothing for a module not for NVIDIA's GPUs."""
    code = _kept_code(module)
    return {} if code is None else {kernel.name: kernel.of(code.arch).ptx for kernel in code.images.kernels.values()}


FIGURES = ("threads", "registers", "spilled", "shared", "blocks", "occupancy", "instructions", "tensor cores", "warnings")
"""The figures in `figure_texts`."""


def figure_texts(row: "KernelFigures") -> list[str]:
    """What a kernel needs of a multiprocessor, in the order of FIGURES; "" for what is 0 or not known."""
    report, shared = row.report, row.static_shared_bytes + row.dynamic_shared_bytes
    whole = str(sum(row.instructions.values()))
    cores = str(row.tensor_core_instructions or "")
    if report is None:
        return [str(row.threads), "", "", str(shared), "", "", whole, cores, "no ptxas"]
    spilled = str(report.spill_stores + report.spill_loads or "")
    occupancy = "" if row.occupancy is None else f"{row.occupancy:.0%}"
    sizes = [str(row.threads), str(report.registers), spilled, str(shared), str(row.blocks), occupancy]
    return [*sizes, whole, cores, "; ".join(report.warnings)]
