"""llvm to machine code for CPUs: LLVM's JIT, told which CPU."""

import ctypes
import json
from collections.abc import Sequence
from ctypes.util import find_library
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from relayc.dialects.mlir import ir
from relayc.pipelines.cpu.engine import CodegenError, Engine, compile_module
from relayc.pipelines.cpu.target import CpuTarget


def set_target(module: ir.Module, target: CpuTarget) -> None:
    """Makes LLVM generate every function for the target; it would for this machine otherwise."""
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


def jit(module: ir.Module, target: CpuTarget, libraries: Sequence[str] = ()) -> Engine:
    """Compiles a module in the LLVM dialect for a target. What this machine cannot run is compiled but not linked.

    `libraries` are paths of shared libraries to resolve symbols from, besides the OpenMP runtime, libm and this process. Raises
    CodegenError where LLVM refuses the module.
    """
    set_target(module, target.machine)
    return compile_module(module, [*_runtime_libraries(), *libraries], runs_here=target.is_host)


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
