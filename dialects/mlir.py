"""The one file that imports the MLIR bindings; everything else says `from relayc.dialects.mlir import ir, arith, ...`.

The bindings come from the torch-mlir wheel, which carries all of upstream MLIR. When wheels of MLIR itself appear, this is the
file to change.
"""

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from torch_mlir import _mlir_libs, ir, passmanager, rewrite
from torch_mlir._mlir_libs import _mlir
from torch_mlir.dialects import arith, cf, ext, func, irdl, math, memref, scf, tensor, vector
from torch_mlir.execution_engine import ExecutionEngine

# Without this every lookup of a relay operation retries an import (15 us each): iteration is 30 times slower.
_mlir.globals.append_dialect_search_prefix("relayc.dialects")


def _stand_in(name: str, *parts: str) -> ModuleType:
    """A module with the names of some modules of upstream, which the bindings take for the module of a dialect.

    The bindings import the module of a dialect once, when they first see an operation or an attribute of the dialect.
    """
    made, path = ModuleType(name), f"torch_mlir.dialects.{name}"
    for part in parts:
        vars(made).update({key: value for key, value in vars(import_module(f"torch_mlir.{part}")).items() if not key.startswith("__")})
    if path not in sys.modules:
        sys.modules[path] = made
        _mlir.globals._check_dialect_module_loaded(name)
        del sys.modules[path]
    return made


# Upstream's module also loads a language that describes operations, which takes a tenth of the time of all imports.
linalg = _stand_in("linalg", "_mlir_libs._mlirDialectsLinalg", "dialects._linalg_ops_gen")
# The compiler uses no class of the operations of NVVM, and few of LLVM's: modules that use one import the dialect by name.
_stand_in("llvm")
_stand_in("nvvm")


_ON_DEMAND = {name: name for name in ("bufferization", "gpu", "llvm", "transform")} | {"interpreter": "transform.interpreter"}
"""Names that few compilations use, and the modules that they are in upstream's dialects."""


def __getattr__(name: str) -> Any:
    if name not in _ON_DEMAND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"torch_mlir.dialects.{_ON_DEMAND[name]}")


_DIALECTS = (
    *("affine", "arith", "bufferization", "cf", "func", "gpu", "linalg", "llvm", "math", "memref", "nvvm", "omp", "scf", "tensor", "ub"),
    *("vector", "x86"),
)
"""Upstream dialects whose operations the compiler builds. Others are loaded where text or a pass needs them: to load all there are takes
longer than to compile a small program."""

_PREPARATIONS: list[Callable[[ir.Context], None]] = []


def on_new_context(prepare: Callable[[ir.Context], None]) -> Callable[[ir.Context], None]:
    """Has `prepare` called on every context that `make_context` makes: how a dialect defined in Python gets into it."""
    _PREPARATIONS.append(prepare)
    return prepare


def make_context() -> ir.Context:
    """A new MLIR context for programs of every stage. Contexts are single-threaded: one per compilation."""
    context = bare_context()
    for dialect in _DIALECTS:
        context.get_dialect_descriptor(dialect)
    for prepare in _PREPARATIONS:
        prepare(context)
    return context


def bare_context() -> ir.Context:
    """A new MLIR context with the upstream dialects available, which are loaded by the parser on demand."""
    return ir.Context(load_on_create_dialects=[])


@cache
def lasting_context() -> ir.Context:
    """The context of descriptions that are kept as long as the process."""
    return make_context()


def live_contexts() -> int:
    """How many contexts there are in the process, without the lasting one."""
    return ir.Context._get_live_count() - lasting_context.cache_info().currsize


def register_operation(dialect: type, operation: type) -> None:
    """Makes `operation` the Python class of the operations of its name, in every context."""
    _mlir.register_operation(dialect, replace=True)(operation)


@cache
def c_library() -> str:
    """Path of the library of MLIR's C API, which holds all of MLIR and LLVM."""
    found = [path for folder in _mlir_libs.__path__ for path in Path(folder).glob("*AggregateCAPI*")]
    if len(found) != 1:
        raise ImportError(f"expected one library of MLIR's C API in {list(_mlir_libs.__path__)}, found {len(found)}")
    return str(found[0])


@cache
def c_api() -> ctypes.CDLL:
    """MLIR's C functions, which ctypes calls without holding the interpreter lock."""
    return ctypes.CDLL(c_library())


def c_handle(module: ir.Module) -> int:
    """The MlirModule pointer in C; valid during the lifetime of `module`."""
    capsule = module._CAPIPtr
    name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    return pointer(capsule, name(capsule))
