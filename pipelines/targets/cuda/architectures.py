"""What NVIDIA's architectures have: facts of the CUDA C++ Programming Guide, "Compute Capabilities", and of the PTX ISA."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Architecture:
    """An architecture that code is generated for.

    Attributes:
      name: the name for ptxas; with a letter after the number, code runs on this architecture only, and may use all its instructions.
      capability: compute capability, (9, 0) for sm_90a.
      multiprocessors, l2_bytes: of the largest common product of the architecture; schedules use them if no device is queried.
      shared_bytes: the most shared memory of a block; `multiprocessor_shared_bytes`: of all blocks of a multiprocessor.
      multiprocessor_threads, multiprocessor_blocks: the most threads, and blocks, that are resident on a multiprocessor.
      features: instructions beyond sm_75, by relayc's names.
      ptx: version of the PTX ISA of the code: the oldest version with these instructions, so that older drivers accept it.
    """

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    l2_bytes: int
    shared_bytes: int
    multiprocessor_shared_bytes: int
    multiprocessor_threads: int
    multiprocessor_blocks: int
    features: frozenset[str]
    ptx: int

    @property
    def number(self) -> int:
        """Of the name: 90 of sm_90a."""
        major, minor = self.capability
        return 10 * major + minor


_SM_75 = frozenset({"mma-f16"})
_SM_80 = _SM_75 | {"mma-bf16", "mma-tf32", "mma-s8", "cp-async"}
_SM_90 = _SM_80 | {"tma", "mbarrier", "cluster"}

ARCHITECTURES = {
    a.name: a
    for a in (
        Architecture("sm_75", (7, 5), 40, 4 << 20, 64 << 10, 64 << 10, 1024, 16, _SM_75, 70),
        Architecture("sm_80", (8, 0), 108, 40 << 20, 163 << 10, 164 << 10, 2048, 32, _SM_80, 70),
        Architecture("sm_86", (8, 6), 84, 6 << 20, 99 << 10, 100 << 10, 1536, 16, _SM_80, 71),
        Architecture("sm_89", (8, 9), 128, 72 << 20, 99 << 10, 100 << 10, 1536, 24, _SM_80, 78),
        Architecture("sm_90", (9, 0), 132, 50 << 20, 227 << 10, 228 << 10, 2048, 32, _SM_90, 80),
        Architecture("sm_90a", (9, 0), 132, 50 << 20, 227 << 10, 228 << 10, 2048, 32, _SM_90 | {"wgmma"}, 80),
        Architecture("sm_100", (10, 0), 148, 126 << 20, 227 << 10, 228 << 10, 2048, 32, _SM_90, 86),
        Architecture("sm_120", (12, 0), 170, 96 << 20, 99 << 10, 100 << 10, 1536, 24, _SM_90, 87),
    )
}


WARP = 32
"""Threads of a warp."""
MOST_THREADS = 1024
"""Of a block."""
REGISTERS = 65536
"""32-bit registers of a multiprocessor; a thread has at most MOST_REGISTERS."""
MOST_REGISTERS = 255
STATIC_SHARED_BYTES = 48 << 10
"""Shared memory of a block that needs no permission of the driver; more is dynamic."""


def native_architecture(name: str) -> Architecture | None:
    """The architecture to compile for, given the architecture of a device ("sm_103"): with the same number, the one with the most
    instructions; otherwise the nearest older one whose code runs on later devices; None for a device older than all architectures."""
    number = int(name.removeprefix("sm_"))
    fitting = [a for a in ARCHITECTURES.values() if a.number <= number and (a.number == number or a.name[-1].isdigit())]
    return max(fitting, key=lambda a: (a.number, len(a.features)), default=None)
