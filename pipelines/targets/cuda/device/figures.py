"""What a kernel needs of a multiprocessor, and what its instructions are."""

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
"""Bytes in which shared memory is given to a block, and those of each block that the system keeps."""


@dataclass(frozen=True)
class KernelFigures:
    """Figures of a kernel on an architecture.

    Attributes:
      threads: the most of a block.
      report: registers, spills, shared memory and warnings by ptxas; None without ptxas.
      static_shared_bytes, dynamic_shared_bytes: shared memory of a block.
      blocks: that are resident on a multiprocessor at once; None without ptxas.
      instructions: how often each instruction stands in the code, by its first word: of SASS, or where nvdisasm is not installed of PTX.
      is_sass: which of the two.
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
      disassembled: whether instructions are those of SASS where nvdisasm is installed, which takes it most of a second; else of PTX.

    Raises:
      ValueError: it was not compiled for it.
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
    """How often each instruction stands in the text of nvdisasm, by its name without modifiers."""
    return dict(Counter(re.findall(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)", text, re.M)))


def count_ptx(text: str) -> dict[str, int]:
    """How often each instruction stands in PTX, by its name without modifiers."""
    return dict(Counter(re.findall(r"^\s*(?:@!?%p\d+\s+)?([a-z][a-z0-9_]*)\b[^;]*;", text, re.M)))
