"""Control programs as text of the LLVM dialect: functions on words of the native heap, and their metadata."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.module import IRModule
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.dims import bind_dims
from relayc.frontend.relay.inference import infer_module
from relayc.frontend.relay.lowering import is_first_order, lower
from relayc.frontend.relay.op.lowered_calls import direct_calls
from relayc.pipelines.control.emitter import FunctionText
from relayc.pipelines.control.kernels import SUPPORT, KernelText, foreign_text, is_on_tensors
from relayc.pipelines.control.steps import ControlProgram, Kernel, KernelKey
from relayc.pipelines.llvm.heap import FIRST_LINK, heap_text
from relayc.runtime import control as c
from relayc.runtime.artifact import ProgramInfo
from relayc.runtime.heap import DELETER, DROP, ENTRIES
from relayc.runtime.native import spec_of, specs_of_result
from relayc.runtime.native_info import APPLY, FOREIGN, HEAP, LINKS, Constructor, DataType, Link, NativeFunctionInfo, NativeInfo, ValueType

_SHALLOW_BYTES = 256 << 10
"""Stack bytes for calls on a thread whose stack size is unknown."""


@dataclass
class ControlCode:
    """The control code of a program, to be compiled.

    Attributes:
      text: in the LLVM dialect, without a table of addresses.
      symbols: entries in `text`, by the names that the runtime uses.
      info: the runtime's metadata.
      kernels: by their names in the links of `info`. A constant is a kernel without arguments.
    """

    text: str
    symbols: Mapping[str, str]
    info: NativeInfo
    kernels: Mapping[str, Kernel]

    def programs(self, others: Sequence[ProgramInfo]) -> tuple[ProgramInfo, ...]:
        """The public functions, main first, then programs on tensors; programs of kernels are not public."""
        own = [
            ProgramInfo(f.name, tuple(spec_of(name, type_) for name, type_ in f.params), specs_of_result(f.result), (), True)
            for f in self.info.functions
        ]
        return (*own, *(replace(program, public=program.public and program.name not in self.kernels) for program in others))


def is_native(function: e.Function) -> bool:
    """Whether a function can be public: the types of its parameters are known."""
    return all(_is_known(param.type_annotation) for param in function.params)


def _is_known(type_: t.Type | None) -> bool:
    if isinstance(type_, (t.TupleType, t.TypeCall)):
        return all(map(_is_known, type_.fields if isinstance(type_, t.TupleType) else type_.args))
    if isinstance(type_, t.FuncType):
        return not type_.type_params and all(map(_is_known, (*type_.arg_types, type_.ret_type)))
    return _is_known(type_.value) if isinstance(type_, t.RefType) else isinstance(type_, t.TensorType)


@dataclass
class _Types:
    """Types in the runtime's form, and the data types among them.

    Attributes:
      data: data types found so far, by name.
    """

    module: RelayModule
    data: dict[str, DataType] = field(default_factory=dict)

    def of(self, type_: t.Type | None) -> ValueType:
        if isinstance(type_, t.TensorType):
            return ValueType("tensor", type_.dtype, tuple(int(d) if isinstance(d, int) else None for d in type_.shape))
        if isinstance(type_, t.TupleType):
            return ValueType("tuple", parts=tuple(map(self.of, type_.fields)))
        if isinstance(type_, t.RefType):
            return ValueType("ref", parts=(self.of(type_.value),))
        if isinstance(type_, t.FuncType) and not type_.type_params:
            return ValueType("function", parts=tuple(map(self.of, (*type_.arg_types, type_.ret_type))))
        if isinstance(type_, t.TypeCall):
            self.define(type_.func)
            return ValueType("data", type_.func.name_hint, parts=tuple(map(self.of, type_.args)))
        return ValueType("var" if isinstance(type_, t.TypeVar) else "unknown", getattr(type_, "name_hint", "?"))

    def define(self, var: t.GlobalTypeVar) -> None:
        """Adds a data type."""
        if var.name_hint in self.data:
            return
        definition: e.TypeData = self.module[var]
        params = tuple(param.name_hint for param in definition.type_vars)
        self.data[var.name_hint] = DataType(var.name_hint, params, ())  # registered first, because its fields may refer to it
        made = [Constructor(each.name_hint, each.tag, tuple(map(self.of, each.inputs))) for each in definition.constructors]
        self.data[var.name_hint] = DataType(var.name_hint, params, tuple(made))


@dataclass(frozen=True)
class Compiled:
    """Compiled kernels of a program: their programs by name, and the bytes of all parameters."""

    programs: Mapping[str, ProgramInfo] = field(default_factory=dict)
    params_bytes: int = 0


class Links:
    """The links of a program, each once."""

    def __init__(self, types: _Types, kernel_name: Callable[[int], str], compiled: Compiled) -> None:
        self._types, self._kernel_name, self._compiled = types, kernel_name, compiled
        self.texts: dict[str, str] = {}  # texts of the functions that call kernels
        self._places: dict[Link, int] = {}
        self._names: dict[KernelKey, str] = {}
        self.kernels: dict[str, Kernel] = {}

    def constructor(self, constructor: e.Constructor) -> int:
        """The position in `@__relayc_links` of a constructor's number, or of the value of a constructor without fields."""
        of = constructor.belong_to
        assert isinstance(of, t.GlobalTypeVar)
        self._types.define(of)
        return self._place(Link("constructor" if constructor.inputs else "empty", of.name_hint, constructor.tag))

    def kernel(self, kernel: Kernel) -> int:
        """The position of a kernel."""
        return self._place(Link("kernel", self._name(kernel), types=self._kernel_types(kernel)))

    def direct(self, kernel: Kernel) -> str | None:
        """The function on words that calls a kernel; None if it is called through Python."""
        name = self._name(kernel)
        program = self._compiled.programs.get(name)
        if program is None or not is_on_tensors(program):
            return None
        found = f"{name}_call"
        if found not in self.texts:
            entry, params = self._place(Link("entry", name)), self._place(Link("params", ""))
            types = self._kernel_types(kernel)
            self.texts[found] = KernelText(found, program, types, entry, params, self._compiled.params_bytes).text()
        return found

    def _kernel_types(self, kernel: Kernel) -> tuple[ValueType, ...]:
        typed = kernel.typed
        return tuple(map(self._types.of, (*(param.type_annotation for param in typed.params), typed.body.checked_type)))

    def constant(self, value: np.ndarray) -> int:
        """The position of a tensor."""
        module = RelayModule()
        module["main"] = e.Function([], e.Constant(value))
        kernel = Kernel(module)
        return self._place(Link("constant", self._name(kernel), types=self._kernel_types(kernel)))

    def _name(self, kernel: Kernel) -> str:
        name = self._names.setdefault(kernel.key, self._kernel_name(len(self._names)))
        self.kernels.setdefault(name, kernel)
        return name

    def _place(self, link: Link) -> int:
        return FIRST_LINK + self._places.setdefault(link, len(self._places))

    @property
    def all(self) -> tuple[Link, ...]:
        """The links in the order of their positions."""
        return tuple(self._places)


def control_code(program: ControlProgram, compiled: Compiled | None = None) -> ControlCode:
    """The code of a program, whose roots are public functions.

    Args:
      compiled: by default kernels are called through Python.
    """
    types = _Types(program.module)
    taken = {var.name_hint for var in program.module.functions}
    links = Links(types, lambda number: _free(f"kernel_{number}", taken), compiled or Compiled())
    steps = [step for function in program.functions for step in function.steps]
    texts = [FunctionText(program.functions, i, links).text() for i in range(len(program.functions))]
    is_deep = _nests(program.functions)
    infos, entries = [], {}
    for number, (name, function) in enumerate(program.roots.items()):
        params = tuple((param.name_hint, types.of(param.type_annotation)) for param in function.params)
        infos.append(NativeFunctionInfo(name, params, types.of(function.ret_type), is_deep))
        entries[name] = f"__relayc_entry_{number}"
        texts.append(_entry(entries[name], f"@f{program.number_of(function, name)}", len(params)))  # a function may have two names
    data = list(types.data.values())
    given = [type_ for info in infos for _, type_ in info.params]
    given += [type_ for each in data for constructor in each.constructors for type_ in constructor.inputs]
    functions = (*_taken_functions(given), *_taken_functions((info.result for info in infos), taken=False))
    foreign = {len(type_.parts) - 1 for type_ in functions}
    for count in sorted(foreign):
        entries[f"{FOREIGN}{count}"] = f"__relayc_foreign_{count}"
        texts.append(foreign_text(f"__relayc_foreign_{count}", count))
    closed = {program.functions[step.function].params for step in steps if isinstance(step, c.Bind)}
    for count in sorted(closed | foreign):
        entries[f"{APPLY}{count}"] = f"__relayc_apply_{count}"
        texts.append(_entry(f"__relayc_apply_{count}", None, count))
    entries |= {LINKS: "__relayc_links"} | {HEAP + name: f"__relayc_heap_{name}" for name in (*ENTRIES, DROP, DELETER)}
    is_pure = not foreign and not any(isinstance(step, c.Write) for step in steps)
    info = NativeInfo(tuple(infos), tuple(data), links.all, bool(closed | foreign), is_pure)
    text = "\n".join([heap_text(len(info.links)), *texts, *([SUPPORT, *links.texts.values()] if links.texts else [])])
    return ControlCode(text, entries, info, links.kernels)


def _nests(functions: Sequence[c.Function]) -> bool:
    """Whether the depth of calls may depend on data: by function values, or by recursion other than tail recursion."""
    if any(isinstance(step, c.Apply) for function in functions for step in function.steps):
        return True
    calls = [
        {step.function for step in function.steps if isinstance(step, c.Call) and (step.to is not None or step.function != number)}
        for number, function in enumerate(functions)
    ]
    left = set(range(len(functions)))
    while done := {number for number in left if not calls[number] & left}:
        left -= done
    return bool(left)


def _taken_functions(types: Iterable[ValueType], taken: bool = True) -> Iterator[ValueType]:
    """The function types among values that callers pass, or, for results, among values passed to or stored in them."""
    for type_ in types:
        parts = type_.parts
        if type_.kind == "function":
            yield from (type_,) if taken else ()
            yield from _taken_functions(parts[:-1])
            parts = parts[-1:]
        yield from _taken_functions(parts, taken or type_.kind == "ref")


def _free(name: str, taken: set[str]) -> str:
    return name if name not in taken else _free(f"{name}_", taken)


def compiled_program(module: RelayModule, dims: Mapping[str, int | tuple[int, int]] | None) -> tuple[ControlProgram, IRModule]:
    """The control code of a module, and the program of its kernels and of its functions on tensors only.

    Args:
      dims: as in `relayc.compile`.

    Raises RelayError if main, or every function, has parameters of unknown types.
    """
    typed = infer_module(direct_calls(module))
    names = [var.name_hint for var in typed.functions]
    plain = ControlProgram(typed)
    roots = [name for name in names if is_native(typed[name]) and not typed[name].type_params and plain.compiles(name) is None]
    if not roots or ("main" in names and "main" not in roots):
        name = "main" if "main" in names else names[0] if names else "main"
        wrong = next((p for p in typed[name].params if not _is_known(p.type_annotation)), None) if names else None
        found = "a polymorphic function, or none" if wrong is None else f"%{wrong.name_hint}: {wrong.type_annotation}"
        raise RelayError(f"{name}: expected parameters of known types, found {found}")
    program = ControlProgram(typed, sorted(roots, key=lambda name: name != "main"))
    code = control_code(program)
    kernels = RelayModule()
    for name in names:
        needed = program.compiles(name) if is_first_order(typed[name]) else None
        for var, function in needed.functions.items() if needed is not None else ():
            kernels[var.name_hint] = function
    for name, kernel in code.kernels.items():
        for var, function in kernel.module.functions.items():
            kernels[name if var.name_hint == "main" else var.name_hint] = function
    lowered = lower(kernels) if kernels.functions else IRModule.parse("module {}")
    if dims:
        bind_dims(lowered, dims)
    return program, lowered


def _entry(name: str, callee: str | None, params: int) -> str:
    """A packed function: arguments and result are values of tvm-ffi. Without a callee it calls the closure in the first argument.

    The limit of stack bytes may follow the arguments.
    """
    lines = [f"llvm.func internal @{name}(%self: !llvm.ptr, %args: !llvm.ptr, %n: i32, %result: !llvm.ptr) -> i32 {{"]
    first = int(callee is None)
    for i in range(params + first):
        lines += [
            f"%p{i} = llvm.getelementptr %args[{16 * i}] : (!llvm.ptr) -> !llvm.ptr, i8",
            f"%a{i} = llvm.call @heap_from_any(%p{i}) : (!llvm.ptr) -> i64",
        ]
        lines += [f"llvm.call @heap_retain(%a{i}) : (i64) -> ()"] * (i >= first)
    if callee is None:
        lines.append(
            """%cell = llvm.inttoptr %a0 : i64 to !llvm.ptr
%info = llvm.getelementptr %cell[32] : (!llvm.ptr) -> !llvm.ptr, i8
%callee = llvm.load %info : !llvm.ptr -> !llvm.ptr"""
        )
    values = "".join(f", %a{i}" for i in range(first, params + first))
    types = ", ".join(["i64"] * (params + 2))
    call = f"@{callee[1:]}(%none, %limit{values}) :" if callee is not None else f"%callee(%a0, %limit{values}) : !llvm.ptr,"
    lines.append(f"""%none = llvm.mlir.constant(1 : i64) : i64
%one = llvm.mlir.constant(1 : i32) : i32
%shallow = llvm.mlir.constant({_SHALLOW_BYTES} : i64) : i64
%zero = llvm.mlir.constant(0 : i64) : i64
%right = llvm.mlir.constant(0 : i32) : i32
%wrong = llvm.mlir.constant(-1 : i32) : i32
%count = llvm.mlir.constant({params + first} : i32) : i32
%place = llvm.alloca %one x i64 : (i32) -> !llvm.ptr
%here = llvm.ptrtoint %place : !llvm.ptr to i64
%more = llvm.icmp "sgt" %n, %count : i32
llvm.cond_br %more, ^said, ^call(%shallow : i64)
^said:
%last = llvm.getelementptr %args[{16 * (params + first) + 8}] : (!llvm.ptr) -> !llvm.ptr, i8
%bytes = llvm.load %last : !llvm.ptr -> i64
llvm.br ^call(%bytes : i64)
^call(%room: i64):
%limit = llvm.sub %here, %room : i64
%found = llvm.call {call} ({types}) -> i64
%failed = llvm.icmp "eq" %found, %zero : i64
llvm.cond_br %failed, ^failed, ^done
^failed:
llvm.return %wrong : i32
^done:
llvm.call @heap_to_any(%found, %result) : (i64, !llvm.ptr) -> ()
llvm.return %right : i32
}}""")
    return "\n".join(lines)
