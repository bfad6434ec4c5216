"""Assembles PTX to cubins by ptxas, and disassembles cubins by nvdisasm, if NVIDIA's packages are installed."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory

from relayc.pipelines.targets.cuda.architectures import MOST_REGISTERS, REGISTERS, WARP
from relayc.pipelines.targets.cuda.device.errors import DeviceCodeError

_FOLDERS = ("cu13/bin", "cuda_nvcc/bin")
"""Within the package `nvidia`, of CUDA 13 and before."""
_PACKAGES = {"ptxas": "nvidia-cuda-nvcc", "nvdisasm": "nvidia-cuda-nvdisasm"}


@dataclass(frozen=True)
class Report:
    """The report of ptxas about a kernel (`ptxas -v`).

    Attributes:
      registers: of a thread.
      spill_stores, spill_loads: bytes that a thread spills to memory and reads back, counted in the code.
      stack_bytes: memory of a thread besides registers.
      shared_bytes: static shared memory of a block.
      barriers: barriers that the block uses.
      warnings: warnings of ptxas, for example that wgmma instructions are serialised.
    """

    registers: int
    spill_stores: int
    spill_loads: int
    stack_bytes: int
    shared_bytes: int
    barriers: int
    warnings: tuple[str, ...]


@cache
def tool(name: str) -> Path | None:
    """The path of a program of NVIDIA: from its package, otherwise from the system; None if it is not installed."""
    package = find_spec("nvidia")
    for home in (package.submodule_search_locations or ()) if package is not None else ():
        for folder in _FOLDERS:
            path = Path(home, folder, name)
            if path.is_file():
                return path
    found = shutil.which(name)
    return None if found is None else Path(found)


@cache
def tool_version(name: str) -> str:
    """Identifies the version of a program: the version of its package, otherwise its path."""
    try:
        return version(_PACKAGES[name])
    except PackageNotFoundError:
        return str(tool(name))


def assemble(name: str, ptx: str, arch: str) -> tuple[bytes, str]:
    """The cubin of PTX with one kernel, and the report of ptxas (see `read_report`).

    By default ptxas spills a register or two if another block then fits a multiprocessor. A kernel that spills is assembled again with
    the registers of fewer and fewer blocks; the default result remains only if the kernel spills with all registers of a thread too.

    Raises:
      DeviceCodeError: ptxas rejects the PTX.
      ModuleNotFoundError: ptxas is not installed.
    """
    cubin, said = _assemble(name, ptx, arch)
    report = read_report(said)
    if report.spill_stores:
        for registers in register_limits(ptx, report.registers):
            made, text = _assemble(name, re.sub(_BLOCK_SIZE, rf"\g<0>\n.maxnreg {registers}", ptx, count=1), arch)
            if not read_report(text).spill_stores:
                return made, text
    return cubin, said


_BLOCK_SIZE = re.compile(r"^\.maxntid ([\d, ]+)$", re.M)
_FEWER = 0.85
"""Ratio of the blocks of a multiprocessor that are tried next to the blocks tried before."""


def register_limits(ptx: str, registers: int) -> Iterator[int]:
    """Increasing register limits of a thread with which fewer blocks fit a multiprocessor than with `registers`; none if the PTX does not
    specify the size of a block."""
    block = _BLOCK_SIZE.search(ptx)
    if block is None:
        return
    threads = -(-prod(map(int, block[1].split(","))) // WARP) * WARP
    blocks = REGISTERS // (registers * threads)
    while blocks > 1:
        blocks = int(blocks * _FEWER)
        limit = min(REGISTERS // (threads * blocks) // _REGISTERS_STEP * _REGISTERS_STEP, MOST_REGISTERS)
        if limit > registers:
            registers = limit
            yield limit


_REGISTERS_STEP = 8
"""In which registers are given to threads."""


def _assemble(name: str, ptx: str, arch: str) -> tuple[bytes, str]:
    program = tool("ptxas")
    if program is None:
        message = "target cuda: expected ptxas of the package nvidia-cuda-nvcc (pip install 'relayc[cuda]'), found none"
        raise ModuleNotFoundError(message, name="nvidia-cuda-nvcc")
    with TemporaryDirectory(prefix="relayc-") as folder:
        source, made = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx)
        done = subprocess.run([program, "-v", f"-arch={arch}", "-o", made, source], capture_output=True, text=True, cwd=folder)
        if done.returncode or not made.is_file():
            lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
            reason = next((line for line in lines if "error" in line or "fatal" in line), lines[0] if lines else f"exit {done.returncode}")
            raise DeviceCodeError(f"kernel {name}: expected PTX that ptxas takes for {arch}, found: {' '.join(reason.split())}")
        return made.read_bytes(), done.stderr


def read_report(text: str) -> Report:
    """What ptxas wrote with -v of one kernel, as numbers."""

    def number(pattern: str) -> int:
        found = re.findall(pattern, text)
        return sum(map(int, found))

    warnings = [line.partition(":")[2].strip() for line in text.splitlines() if re.search(r"warning|Performance Loss", line, re.I)]
    return Report(
        registers=number(r"Used (\d+) registers"),
        spill_stores=number(r"(\d+) bytes spill stores"),
        spill_loads=number(r"(\d+) bytes spill loads"),
        stack_bytes=number(r"(\d+) bytes stack frame"),
        shared_bytes=number(r"(\d+) bytes smem"),
        barriers=number(r"used (\d+) barriers"),
        warnings=tuple(dict.fromkeys(warnings)),
    )


def disassemble(cubin: bytes) -> str:
    """The instructions of a cubin (SASS).

    Raises:
      ModuleNotFoundError: there is no nvdisasm.
      ValueError: it does not read the cubin.
    """
    program = tool("nvdisasm")
    if program is None:
        message = "SASS: expected nvdisasm of the package nvidia-cuda-nvdisasm (pip install nvidia-cuda-nvdisasm), found none"
        raise ModuleNotFoundError(message, name="nvidia-cuda-nvdisasm")
    with TemporaryDirectory(prefix="relayc-") as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        done = subprocess.run([program, "-c", path], capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"SASS: expected a cubin that nvdisasm reads, found: {' '.join(done.stderr.split())}")
    return done.stdout
