"""llvm to machine code for CPUs: LLVM's JIT, configured for a CPU."""

import ctypes
import json
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from ctypes.util import find_library
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from threading import Lock

from relayc.dialects.mlir import bare_context, ir
from relayc.pipelines.llvm.checks import CHECKS, check_functions
from relayc.pipelines.llvm.tables import address_table
from relayc.pipelines.targets.cpu.engine import CodegenError, Engine, Part, compile_module, compile_part
from relayc.pipelines.targets.cpu.target import CpuTarget
from relayc.runtime.cpu.objects import PART_SYMBOL


def set_target(module: ir.Module, target: CpuTarget) -> None:
    """Makes LLVM compile every function for the target instead of this machine."""
    changes = target.changes
    if changes is None:
        return
    with module.context:
        attributes = {
            "target_features": ir.Attribute.parse(f"#llvm.target_features<[{', '.join(map(json.dumps, changes))}]>"),
            "target_cpu": ir.StringAttr.get("x86-64"),
            "tune_cpu": ir.StringAttr.get(target.mcpu),
        }
        for op in module.body.operations:
            if op.operation.name == "llvm.func" and len(op.regions[0].blocks):
                for name, attribute in attributes.items():
                    op.attributes[name] = attribute


def jit(module: ir.Module, target: CpuTarget, libraries: Sequence[str] = (), shared: Sequence[Future[Part]] = ()) -> Engine:
    """Compiles a module in the LLVM dialect for a target. What this machine cannot run is compiled but not linked.

    `libraries` are paths of shared libraries to resolve symbols from, besides the OpenMP runtime, libm and this process; `shared` are parts
    with functions that the module declares. Raises CodegenError if LLVM refuses the module.
    """
    set_target(module, target.machine)
    return compile_module(module, [*_runtime_libraries(), *libraries], target.is_host, shared)


_CHECKS: dict[tuple[str, tuple[str, ...] | None, str], Future[Part]] = {}
_CHECKS_LOCK = Lock()


def compiled_checks(target: CpuTarget, device: str) -> Future[Part]:
    """The functions that check calls (llvm.checks), for tensors on devices of a kind. They are compiled once for a target, in a thread
    from the first call on."""
    machine = target.machine
    key = (device, machine.changes, machine.mcpu)
    with _CHECKS_LOCK:
        if key in _CHECKS:
            return _CHECKS[key]
        text = f"{check_functions(device)}\n{address_table(PART_SYMBOL, tuple(CHECKS))}"
        _CHECKS[key] = compiled_in_thread(text, tuple(CHECKS), target)
        return _CHECKS[key]


def compiled_in_thread(text: str, names: Sequence[str], target: CpuTarget) -> Future[Part]:
    """A part, compiled in a thread of its own.

    Args:
      text: in the LLVM dialect, with the table `PART_SYMBOL` of the functions `names`.
    """

    def compile_() -> Part:
        module = ir.Module.parse(text, context=bare_context())
        set_target(module, target.machine)
        return compile_part(module, names, _runtime_libraries(), target.is_host)

    pool = ThreadPoolExecutor(1, "relayc-part")
    made = pool.submit(compile_)
    pool.shutdown(wait=False)
    return made


@cache
def _runtime_libraries() -> tuple[str, ...]:
    """The OpenMP runtime of the intel-openmp wheel. The C library's mathematical functions are made visible to all on the way."""
    ctypes.CDLL(find_library("m"), ctypes.RTLD_GLOBAL)
    try:
        files = distribution("intel-openmp").files or []
        openmp = next(Path(str(f.locate())).resolve() for f in files if f.name == "libiomp5.so")
    except (PackageNotFoundError, StopIteration):
        raise CodegenError(
            "expected the OpenMP runtime libiomp5.so of the package intel-openmp, found none; install intel-openmp"
        ) from None
    return (str(openmp),)
