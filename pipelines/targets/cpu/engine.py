"""Machine code in memory, compiled on all cores.

The Python class ExecutionEngine holds the interpreter lock while LLVM works, so the C functions under it are called through ctypes,
which does not. A module is split: functions that call no other function of the module (kernels) go in parts into modules and contexts
of their own, one engine each; what is left declares them and is linked to them by address. Functions that many modules share are parts too,
which are compiled once.
"""

import ctypes
import io
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from relayc.dialects.discardable import OPTIMIZE
from relayc.dialects.mlir import bare_context, c_api, c_handle, ir
from relayc.dialects.operations import find_operations
from relayc.pipelines.llvm.tables import address_table
from relayc.pipelines.targets.cpu.parallel import FORKS, TAKE
from relayc.runtime.artifact import ObjectCode
from relayc.runtime.cpu.objects import PART_SYMBOL
from relayc.runtime.threads import usable_cpus

OPT_LEVEL = 3
"""LLVM's; 2 takes as long and unrolls less."""
OPT_LEVEL_AS_IT_IS = 1
"""The same of modules without a function to optimize (see loop_hints.py): as fast when they run, and compiled in 0.85 of the time."""
PARTS_PER_THREAD = 3
"""Parts are compiled as threads become free; more of them balance better, each costs about 5 ms."""
_KEEP_OBJECTS = _POSITION_INDEPENDENT = True
"""Objects are kept, for the cache, and for libraries that are linked of them (see Module.export_library)."""
MIN_PART_OPS = 2000
"""Operations in the LLVM dialect (about 0.15 s of LLVM) below which a part is not worth its engine."""


class CodegenError(ValueError):
    """tir that cannot become machine code, or machine code that cannot be made or linked here."""


# ---- the C API --------------------------------------------------------------------------------------------------------------------


class _Handle(ctypes.Structure):
    _fields_ = [("pointer", ctypes.c_void_p)]


class _StringRef(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("length", ctypes.c_size_t)]


def _string(text: str) -> _StringRef:
    data = text.encode()
    return _StringRef(data, len(data))


_SIGNATURES = {
    "mlirExecutionEngineCreate": (
        _Handle,
        [_Handle, ctypes.c_int, ctypes.c_int, ctypes.POINTER(_StringRef), ctypes.c_bool, ctypes.c_bool],
    ),
    "mlirExecutionEngineDestroy": (None, [_Handle]),
    "mlirExecutionEngineDumpToObjectFile": (None, [_Handle, _StringRef]),
    "mlirExecutionEngineLookupPacked": (ctypes.c_void_p, [_Handle, _StringRef]),
    "mlirExecutionEngineRegisterSymbol": (None, [_Handle, _StringRef, ctypes.c_void_p]),
}


def _call(name: str, *arguments: object) -> Any:
    function = getattr(c_api(), name)
    function.restype, function.argtypes = _SIGNATURES[name]
    return function(*arguments)


class _Compiled:
    """One MLIR execution engine, made without holding the interpreter lock."""

    def __init__(self, module: ir.Module, libraries: Sequence[str]) -> None:
        is_optimized = any(OPTIMIZE.on(op.operation) for op in module.body.operations if _is_defined(op.operation))
        level = OPT_LEVEL if is_optimized else OPT_LEVEL_AS_IT_IS
        paths = (_StringRef * len(libraries))(*[_string(path) for path in libraries])
        with module.context:
            handle = _Handle(c_handle(module))
            self._handle = _call("mlirExecutionEngineCreate", handle, level, len(libraries), paths, _KEEP_OBJECTS, _POSITION_INDEPENDENT)
        if not self._handle.pointer:
            raise CodegenError("LLVM refused the module; the reason is on stderr")

    def register(self, name: str, address: int) -> None:
        _call("mlirExecutionEngineRegisterSymbol", self._handle, _string(name), address)

    def raw_lookup(self, name: str) -> int:
        return _call("mlirExecutionEngineLookupPacked", self._handle, _string(name)) or 0

    def object_file(self, path: Path) -> bytes:
        """The object file from LLVM. It is written to `path`, because the engine has no other interface."""
        _call("mlirExecutionEngineDumpToObjectFile", self._handle, _string(str(path)))
        return path.read_bytes()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None and self._handle.pointer:
            _call("mlirExecutionEngineDestroy", self._handle)
            self._handle.pointer = None


class Part:
    """Functions that are compiled separately from the modules that call them.

    Attributes:
      names: of the functions.
      addresses: of the functions.

    Raises CodegenError if they cannot be linked.
    """

    def __init__(self, names: Sequence[str], engine: _Compiled, runs_here: bool) -> None:
        self.names, self._engine = tuple(names), engine
        lookup = engine.raw_lookup(PART_SYMBOL)
        if not lookup:
            raise CodegenError(f"the functions {', '.join(names)} could not be linked: see the missing symbols on stderr")
        self.addresses = _table(lookup, len(names)) if runs_here else [lookup] * len(names)

    @cached_property
    def content(self) -> bytes:
        """Their object file."""
        return _object_file(self._engine)


class Engine:
    """A compiled module. Its functions are valid during its lifetime, so callers must keep a reference to it."""

    def __init__(self, root: _Compiled, parts: Sequence[Part]) -> None:
        self._root, self._parts = root, list(parts)

    def object_code(self) -> ObjectCode:
        """The machine code as object files, for other processes to load."""
        return ObjectCode(_object_file(self._root), tuple((part.names, part.content) for part in self._parts))

    def raw_lookup(self, name: str) -> int:
        """Address of the wrapper `void(void**)` of an external function, as in ExecutionEngine: 0 if there is none, or if a symbol that it
        needs is missing."""
        return self._root.raw_lookup(name)


def _object_file(engine: _Compiled) -> bytes:
    with TemporaryDirectory(prefix="relayc-") as folder:
        return engine.object_file(Path(folder) / "code.o")


# ---- splitting --------------------------------------------------------------------------------------------------------------------


@dataclass
class _Function:
    op: ir.Operation
    name: str
    size: int
    refers: set[str]
    """Symbols that its body uses."""


def _symbol(op: ir.Operation) -> str | None:
    return ir.StringAttr(op.attributes["sym_name"]).value if "sym_name" in op.attributes else None


def _read(op: ir.Operation) -> _Function:
    operations, refers = find_operations(op, lambda inner: True), set()
    for inner in operations:
        name = inner.name
        if name == "llvm.mlir.addressof":
            refers.add(ir.FlatSymbolRefAttr(inner.attributes["global_name"]).value)
        elif name == "llvm.call" and "callee" in inner.attributes:
            refers.add(ir.FlatSymbolRefAttr(inner.attributes["callee"]).value)
        elif name == "omp.parallel" and len(inner.operands):
            refers.update(FORKS)  # LLVM calls them for the condition
    return _Function(op, _symbol(op) or "", len(operations), refers)


def _is_defined(op: ir.Operation) -> bool:
    return op.name == "llvm.func" and len(op.regions[0].blocks) > 0


def _parts(functions: Sequence[_Function], count: int) -> list[list[_Function]]:
    """Functions in at most `count` parts of about the same size: the largest functions first."""
    count = max(1, min(count, sum(f.size for f in functions) // MIN_PART_OPS))
    parts: list[list[_Function]] = [[] for _ in range(count)]
    sizes = [0] * count
    for function in sorted(functions, key=lambda f: -f.size):
        smallest = sizes.index(min(sizes))
        parts[smallest].append(function)
        sizes[smallest] += function.size
    return [part for part in parts if part]


def _linkage(kind: str) -> ir.Attribute:
    return ir.Attribute.parse(f"#llvm.linkage<{kind}>")


def _declare(op: ir.Operation, point: ir.InsertionPoint) -> ir.Operation:
    """A declaration of the function `op`, for modules that have its body elsewhere."""
    attributes = {name: op.attributes[name] for name in op.attributes} | {"linkage": _linkage("external")}
    return ir.Operation.create("llvm.func", attributes=attributes, regions=1, ip=point)


def _write(module: ir.Module) -> bytes:
    """Bytecode, through which a module gets into another context."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def _part_bytecode(part: Sequence[_Function], symbols: dict[str, ir.Operation]) -> bytes:
    """Some functions with all that they refer to, and `PART_SYMBOL`, which gives the array of their addresses.

    The functions become internal: an engine makes a wrapper for every external one, which costs more than a small kernel.
    """
    scratch = ir.Module.create()
    stubs = [str(_declare(f.op, ir.InsertionPoint(scratch.body))) for f in part]
    module = ir.Module.parse("\n".join([*stubs, address_table(PART_SYMBOL, [f.name for f in part])]))
    for stub in list(module.body.operations)[: len(part)]:
        stub.operation.erase()
    for name in sorted(set().union(*[f.refers for f in part])):
        symbols[name].clone(ir.InsertionPoint(module.body))
    for function in part:
        function.op.clone(ir.InsertionPoint(module.body)).operation.attributes["linkage"] = _linkage("internal")
    return _write(module)


def _split(symbols: dict[str, ir.Operation], threads: int) -> list[list[_Function]]:
    """The kernels of a module in parts; empty if splitting is not worthwhile."""
    if threads < 2:
        return []
    functions = [_read(op) for op in symbols.values() if _is_defined(op)]
    # The callees of a kernel are in the same part.
    defined = {f.name for f in functions} - {TAKE, *FORKS}
    leaves = [f for f in functions if f.name in defined and not f.refers & defined and not f.refers & _variables(symbols)]
    groups = [[f for f in leaves if OPTIMIZE.on(f.op) == is_optimized] for is_optimized in (True, False)]
    parts = [part for group in groups for part in _parts(group, PARTS_PER_THREAD * threads)]
    return parts if len(parts) > 1 else []


def _root_bytecode(symbols: dict[str, ir.Operation], parts: Sequence[Sequence[_Function]]) -> bytes:
    """A module without its kernels, which it declares."""
    moved = {f.name for part in parts for f in part}
    root = ir.Module.create()
    point = ir.InsertionPoint(root.body)
    for name, op in symbols.items():
        if name in moved:
            _declare(op, point)
        else:
            op.clone(point)
    return _write(root)


def _variables(symbols: dict[str, ir.Operation]) -> set[str]:
    """Names of globals that stay with the root: those not constant, of which there must be one copy only, and tables of functions."""
    found = {name: op for name, op in symbols.items() if op.name == "llvm.mlir.global"}
    return {name for name, op in found.items() if "constant" not in op.attributes or len(op.regions[0].blocks)}


def compile_part(module: ir.Module, names: Sequence[str], libraries: Sequence[str], runs_here: bool) -> Part:
    """Compiles functions for modules that declare them; `module` has the table `PART_SYMBOL` of their addresses."""
    return Part(names, _Compiled(module, libraries), runs_here)


def compile_module(module: ir.Module, libraries: Sequence[str], runs_here: bool, shared: Sequence[Future[Part]]) -> Engine:
    """Compiles a module in the LLVM and OpenMP dialects, for this machine unless its functions have attributes of another target, and links
    it to shared libraries given by their paths.

    Args:
      runs_here: whether this machine can run the code; else the parts are not linked, and nothing of it is called.
      shared: parts with functions that the module declares.

    Raises CodegenError if LLVM refuses it. A symbol that nothing defines shows up in `Engine.raw_lookup`.
    """
    threads = usable_cpus()
    with module.context, ir.Location.unknown():
        symbols = {_symbol(op.operation) or "": op.operation for op in module.body.operations}
        split = _split(symbols, threads)
        main, parts = _compile_split(symbols, split, libraries, runs_here, threads) if split else (_Compiled(module, libraries), [])
    parts = [*parts, *(future.result() for future in shared)]
    for part in parts:
        for name, address in zip(part.names, part.addresses, strict=True):
            main.register(name, address)
    return Engine(main, parts)


def _compile_split(
    symbols: dict[str, ir.Operation], split: Sequence[Sequence[_Function]], libraries: Sequence[str], runs_here: bool, threads: int
) -> tuple[_Compiled, list[Part]]:
    """The engine of a module without its kernels, and those of the kernels, each in a context of its own. The first ones are compiled
    while the next ones are written."""

    def compiled(bytecode: bytes) -> _Compiled:
        return _Compiled(ir.Module.parse(bytecode, context=bare_context()), libraries)

    def part(names: Sequence[str], bytecode: bytes) -> Part:
        return Part(names, compiled(bytecode), runs_here)

    with ThreadPoolExecutor(threads) as pool:
        made = [pool.submit(part, [f.name for f in functions], _part_bytecode(functions, symbols)) for functions in split]
        main = pool.submit(compiled, _root_bytecode(symbols, split))
        return main.result(), [future.result() for future in made]


def compile_object(module: ir.Module, function: str, wanted: Sequence[str]) -> bytes:
    """The object file of a module in the LLVM dialect, for a linker.

    Args:
      function: an external function of it.
      wanted: symbols that the module declares and other objects define.

    Raises CodegenError if LLVM refuses it.
    """
    engine = _Compiled(module, ())
    for name in wanted:
        engine.register(name, 1)  # a placeholder, never called: the engine requires an address before it compiles
    if not engine.raw_lookup(function):  # which compiles: the engine puts that off
        raise CodegenError(f"{function} could not be linked: see the missing symbols on stderr")
    return _object_file(engine)


def _table(lookup: int, count: int) -> list[int]:
    """The result of `PART_SYMBOL`: the engine wraps the function as void(void**), where the last pointer is the result's."""
    table = ctypes.POINTER(ctypes.c_size_t)()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lookup)((ctypes.c_void_p * 1)(ctypes.addressof(table)))
    return list(table[:count])
