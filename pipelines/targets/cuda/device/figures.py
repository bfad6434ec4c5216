"""Figures of a kernel: the resources of a multiprocessor that it needs, and its instructions."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from relayc.pipelines.targets.cuda.architectures import ARCHITECTURES, REGISTERS, WARP, Architecture
from relayc.pipelines.targets.cuda.device.ptxas import Report, disassemble, read_report, tool
from relayc.runtime.cuda.images import KernelImages

TENSOR_CORE = ("HMMA", "IMMA", "DMMA", "HGMMA", "IGMMA", "QGMMA", "QMMA", "UTCHMMA", "UTCQMMA", "UTCIMMA")
"""Instructions of tensor cores (CUDA Binary Utilities, "Instruction Set Reference")."""
_TENSOR_CORE_PTX = ("mma", "wmma", "wgmma", "tcgen05")

_REGISTERS_UNIT, _WARPS_UNIT = 256, 4
"""Registers are given to a warp in such units, and warps to the four schedulers of a multiprocessor."""
_SHARED_UNIT, _SHARED_OF_SYSTEM = 128, 1 << 10
"""Granularity in bytes of the shared memory of a block, and the bytes of each block that the system reserves."""


@dataclass(frozen=True)
class KernelFigures:
    """Figures of a kernel on an architecture.

    Attributes:
      threads: the most threads of a block.
      report: registers, spills, shared memory and warnings by ptxas; None without ptxas.
      static_shared_bytes, dynamic_shared_bytes: shared memory of a block.
      blocks: resident blocks of a multiprocessor; None without ptxas.
      instructions: count of each instruction in the code, by its first word: of SASS, or of PTX if nvdisasm is not installed.
      is_sass: whether instructions are SASS.
    """

    name: str
    arch: str
    threads: int
    report: Report | None
    static_shared_bytes: int
    dynamic_shared_bytes: int
    blocks: int | None
    instructions: Mapping[str, int]
    is_sass: bool

    @property
    def occupancy(self) -> float | None:
        """Share of the threads of a multiprocessor that are resident."""
        if self.blocks is None:
            return None
        warps = -(-self.threads // WARP)
        return self.blocks * warps * WARP / ARCHITECTURES[self.arch].multiprocessor_threads

    @property
    def tensor_core_instructions(self) -> int:
        names = TENSOR_CORE if self.is_sass else _TENSOR_CORE_PTX
        return sum(count for name, count in self.instructions.items() if name in names)


def kernel_figures(kernel: KernelImages, arch: str, disassembled: bool = True) -> KernelFigures:
    """The figures of a kernel as it was compiled for an architecture.

    Args:
      disassembled: whether to count SASS instructions if nvdisasm is installed, which takes most of a second; otherwise PTX is counted.

    Raises:
      ValueError: the kernel was not compiled for the architecture.
    """
    image = kernel.of(arch)
    report = read_report(image.report) if image.cubin else None
    shared = kernel.static_shared_bytes + kernel.dynamic_shared_bytes
    blocks = None if report is None else resident_blocks(ARCHITECTURES[arch], kernel.threads, report.registers, shared)
    is_sass = disassembled and bool(image.cubin) and tool("nvdisasm") is not None
    counted = count_sass(disassemble(image.cubin)) if is_sass else count_ptx(image.ptx)
    sizes = kernel.static_shared_bytes, kernel.dynamic_shared_bytes
    return KernelFigures(kernel.name, arch, kernel.threads, report, *sizes, blocks, counted, is_sass)


def uses_tensor_cores(ptx: str) -> bool:
    """Whether a kernel in PTX has instructions of tensor cores."""
    return any(name in _TENSOR_CORE_PTX for name in count_ptx(ptx))


def resident_blocks(architecture: Architecture, threads: int, registers: int, shared_bytes: int) -> int:
    """Blocks of a kernel that a multiprocessor holds at once (CUDA Occupancy Calculator).

    Args:
      threads: of a block.
      registers: of a thread.
      shared_bytes: of a block.
    """
    warps = -(-threads // WARP)
    limits = [architecture.multiprocessor_blocks, architecture.multiprocessor_threads // (warps * WARP)]
    if registers:
        of_warp = -(-registers * WARP // _REGISTERS_UNIT) * _REGISTERS_UNIT
        limits.append(REGISTERS // of_warp // _WARPS_UNIT * _WARPS_UNIT // warps)
    kept = _SHARED_OF_SYSTEM if architecture.capability >= (8, 0) else 0
    of_block = -(-(shared_bytes + kept) // _SHARED_UNIT) * _SHARED_UNIT
    if of_block:
        limits.append(architecture.multiprocessor_shared_bytes // of_block)
    return min(limits)


def count_sass(text: str) -> dict[str, int]:
    """Counts each instruction in the text of nvdisasm, by its name without modifiers."""
    return dict(Counter(re.findall(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)", text, re.M)))


def count_ptx(text: str) -> dict[str, int]:
    """Counts each instruction in PTX, by its name without modifiers."""
    return dict(Counter(re.findall(r"^\s*(?:@!?%p\d+\s+)?([a-z][a-z0-9_]*)\b[^;]*;", text, re.M)))
