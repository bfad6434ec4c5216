"""Programs with data types, references and functions as values: native functions on Python values.

Values are represented as in runtime.values. A result of a program stays on the native heap (runtime.heap) and is read on demand; an
argument is copied to the heap, unless it is a result of a program.
"""

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm_ffi

from relayc.runtime.artifact import TensorSpec, numpy_dtype
from relayc.runtime.control import NO_CLAUSE, NoClause
from relayc.runtime.deep import PYTHON_BYTES, STACK_BYTES, on_deep_stack
from relayc.runtime.exceptions import keeping_exceptions, reraise_original
from relayc.runtime.heap import CLOSURE, DELETER, DROP, ENTRIES, REFERENCE, TUPLE, Cell, Heap, constructors, keep, shared_heap, type_index
from relayc.runtime.native_info import APPLY, FOREIGN, HEAP, LINKS, DataType, Link, NativeFunctionInfo, NativeInfo, ValueType
from relayc.runtime.tensor import as_array, to_tensor
from relayc.runtime.threads import Team, Within
from relayc.runtime.values import ConstructorValue, RefValue, with_results
from relayc.symbolic import symbol

# ---- values -------------------------------------------------------------------------------------------------------------------------

_SCALARS: dict[Any, Callable[[Any], Any]] = {np.dtype("int32"): int, np.dtype("float32"): float, np.dtype("bool"): bool}
_NUMBERS = {bool: "bool", int: "int32", float: "float32"}
_HALF = 1 << 31
_EMPTY_WORD = 4 << 1 | 1
"""As a word of pipelines.llvm.heap, the kind of a constructor without fields."""


@dataclass(slots=True)
class _Making:
    """A value whose parts are being created; `source` is the reference, if it is one."""

    fields: Sequence[Any]
    types: Sequence[ValueType]
    finish: Callable[..., Any]
    made: list[Any]
    source: RefValue | None = None


def _taken_array(value: Any, type_: ValueType) -> np.ndarray:
    """A number that the element type has, rounded where it is one of floats, or an array of the element type."""
    if isinstance(value, (bool, int, float)):
        if (isinstance(value, float) and "float" not in type_.name) or (type_.name == "bool" and not isinstance(value, bool)):
            raise TypeError(f"expected {type_}, found {value!r}")
        try:
            return np.array(value, numpy_dtype(type_.name))
        except OverflowError:
            raise ValueError(f"expected {type_}, found {value}") from None
    try:
        array = as_array(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"expected {type_}, {error}") from None
    if array.dtype != numpy_dtype(type_.name):
        raise TypeError(f"expected {type_}, found {array.dtype.name}{list(array.shape)}")
    return array


def word_of(array: np.ndarray) -> Any:
    """The argument for an array: a number for a scalar of a kind that fits a word, otherwise a tensor."""
    kind = _SCALARS.get(array.dtype) if array.ndim == 0 else None
    return to_tensor(array) if kind is None else kind(array)


class Values:
    """Converts Python values to values of a program, and back.

    Args:
      data: the data types of the program, and their constructors as used by callers.
      array: creates the arrays returned to callers.
      tensor: converts a caller's value for a tensor of a type to an array.
    """

    def __init__(
        self,
        heap: Heap,
        data: Mapping[str, DataType],
        constructors_: Mapping[str, Sequence[Any]],
        array: Callable[..., Any] = np.asarray,
        tensor: Callable[[Any, ValueType], np.ndarray] = _taken_array,
    ) -> None:
        self.heap, self.data, self.constructors = heap, data, constructors_
        self._array, self._tensor = array, tensor
        self.apply: Callable[..., Any] | None = None
        self.foreign: Mapping[int, int] = {}  # addresses of the code of closures that are packed functions
        self._types: dict[ValueType, ValueType] = {}  # each once, so that it is known by its identity
        self._field_types: dict[tuple[int, int], Sequence[ValueType]] = {}

    def given(self, value: Any, type_: ValueType | None) -> Any:
        """What a value of a program (a number, a tensor or a cell) is to a caller."""
        if isinstance(value, Cell):
            tag = self.heap.tag(value)
            if tag >= 0:
                return HeapValue(self, value, tag, type_)
            if tag == CLOSURE:
                return HeapClosure(self, value, type_)
            if tag == REFERENCE:
                return RefValue(None, _SharedRef(self, value, type_))
            types = type_.parts if type_ is not None and type_.kind == "tuple" else [None] * self.heap.count(value)
            return [self.given(self.heap.field(value, i), part) for i, part in enumerate(types)]
        kind = _NUMBERS.get(type(value))
        if kind is not None:
            return self._array(value, kind)
        try:
            return self._array(np.from_dlpack(value))  # in a fortieth of the time
        except (BufferError, RuntimeError, TypeError):  # a dtype that numpy does not have
            return self._array(as_array(value))

    def field_types(self, type_: ValueType | None, tag: int) -> Sequence[ValueType | None]:
        """The types of the fields of a value of a data type."""
        if type_ is None or type_.kind != "data":
            return ()
        found = self._field_types.get((id(type_), tag))  # hashing a type would take as long as all the rest
        if found is None:
            data = self.data[type_.name]
            types = dict(zip(data.params, type_.parts, strict=True))
            parts = [part.with_arguments(types) for part in data.constructors[tag].inputs]
            type_ = self._types.setdefault(type_, type_)
            found = self._field_types[id(type_), tag] = [self._types.setdefault(part, part) for part in parts]
        return found

    def taken(self, value: Any, type_: ValueType) -> Any:
        """What a program takes for a value of a type. Raises TypeError, ValueError."""
        waiting: list[_Making] = []  # not calls in calls: lists are as deep as they are long
        found = self._begin(value, type_, waiting)
        while True:
            if isinstance(found, _Making):
                waiting.append(found)
            elif waiting:
                waiting[-1].made.append(found)
            else:
                return found
            top = waiting[-1]
            at = len(top.made)
            if at < len(top.types):
                found = self._begin(top.fields[at], top.types[at], waiting)
            else:
                waiting.pop()
                found = top.finish(*top.made)

    def _begin(self, value: Any, type_: ValueType, waiting: Sequence[_Making]) -> Any:
        """The representation of a value, or the plan to create it from parts."""
        kind = type_.kind
        if kind == "tensor":
            return self._number_or_tensor(value, type_)
        if kind == "tuple" and isinstance(value, (list, tuple)):
            return self._parts(value, type_.parts, type_, functools.partial(self.heap.make, 0, TUPLE))
        if kind == "data" and isinstance(value, ConstructorValue):
            if isinstance(value, HeapValue) and value.is_of(self, type_):
                return value.cell
            constructor = self._constructor(value, type_)
            make = functools.partial(self.heap.make, constructors.number(constructor), value.tag)
            return self._parts(value.fields, self.field_types(type_, value.tag), type_, make)
        if kind == "ref" and isinstance(value, RefValue):
            return self._reference(value, type_, waiting)
        if kind == "function" and isinstance(value, HeapClosure):
            if value.type_ != type_:
                raise TypeError(f"expected {type_}, found a function of type {value.type_}")
            return value.cell
        if kind == "function" and callable(value):
            return self._foreign(value, type_)
        raise TypeError(f"expected {type_}, found a value of type {type(value).__name__}")

    def _foreign(self, function: Callable[..., Any], type_: ValueType) -> Any:
        """A function of Python as one of the program; a packed function takes numbers, tensors and cells as they are."""
        *params, result = type_.parts
        checked = with_results(function, lambda found: self.taken(found, result), type_)
        call = checked if isinstance(function, tvm_ffi.Function) else lambda *args: checked(*map(self.given, args, params))
        return self.heap.make(self.foreign[len(params)], CLOSURE, tvm_ffi.convert(keeping_exceptions(call)))

    def _number_or_tensor(self, value: Any, type_: ValueType) -> Any:
        if type_.name == _NUMBERS.get(type(value)) and not type_.shape and (type(value) is not int or -_HALF <= value < _HALF):
            return value
        array = self._tensor(value, type_)
        # Code looks at nothing of this: of an array in the place of a scalar it would take the address for a number.
        if len(array.shape) != len(type_.shape) or any(d not in (None, n) for d, n in zip(type_.shape, array.shape, strict=True)):
            raise ValueError(f"expected {type_}, found {array.dtype.name}{list(array.shape)}")
        return word_of(array)

    @staticmethod
    def _parts(fields: Sequence[Any], types: Sequence[Any], type_: ValueType, finish: Callable[..., Any]) -> _Making:
        if len(fields) != len(types):
            raise TypeError(f"expected {type_}, found {len(fields)} field(s) where it has {len(types)}")
        return _Making(fields, types, finish, [])

    def _constructor(self, value: ConstructorValue, type_: ValueType) -> Any:
        """The constructor of a value."""
        known = self.data[type_.name].constructors
        name = getattr(value.constructor, "name_hint", None)
        if not 0 <= value.tag < len(known) or name not in (None, known[value.tag].name_hint):
            names = ", ".join(constructor.name_hint for constructor in known)
            raise TypeError(f"expected {type_} ({names}), found a value of the constructor {name or value.tag}")
        return self.constructors[type_.name][value.tag]

    def _reference(self, value: RefValue, type_: ValueType, waiting: Sequence[_Making]) -> Any:
        shared = value.shared
        if shared is not None:
            if shared.type_ != type_:
                raise TypeError(f"expected {type_}, found a reference of type {shared.type_}")
            return shared.cell
        if any(making.source is value for making in waiting):
            raise ValueError(f"expected {type_}, found a reference to a value that has the reference itself")

        def finish(word: Any) -> Any:
            cell = self.heap.make(0, REFERENCE, word)
            value.shared = _SharedRef(self, cell, type_)
            return cell

        return _Making([value.value], type_.parts, finish, [], value)


class HeapValue(ConstructorValue):
    """A value of a data type in a cell. Fields are read when they are asked for.

    Attributes:
      cell: the cell, which packed functions take.
      type_: the type of the value, where that is known.
    """

    __slots__ = ("_values", "cell", "type_")

    def __init__(self, values: Values, cell: Cell, tag: int, type_: ValueType | None) -> None:
        self._values, self.cell, self.type_ = values, cell, type_
        super().__init__(tag, (), constructors.known[values.heap.info(cell)])

    def is_of(self, values: Values, type_: ValueType) -> bool:
        """Whether a program accepts it unchanged: type and definition of the type's name are equal."""
        return self.type_ == type_ and (self._values is values or self._values.data == values.data)

    def __len__(self) -> int:
        return int(self._values.heap.count(self.cell))

    @property
    def fields(self) -> Sequence[Any]:
        """Its values."""
        return [self[i] for i in range(len(self))]

    @fields.setter
    def fields(self, value: Any) -> None:
        """Nothing: the cell has them."""

    def __getitem__(self, index: int) -> Any:
        values, at = self._values, range(len(self))[index]
        types = values.field_types(self.type_, self.tag)
        return values.given(values.heap.field(self.cell, at), types[at] if types else None)


class HeapClosure:
    """A function that a program gave. It is called as any other, and programs take it.

    Attributes:
      cell, type_: as of a HeapValue.
    """

    def __init__(self, values: Values, cell: Cell, type_: ValueType | None) -> None:
        self._values, self.cell, self.type_ = values, cell, type_

    def __call__(self, *args: Any) -> Any:
        assert self._values.apply is not None
        return self._values.apply(self, args)

    def __repr__(self) -> str:
        return f"<function of type {self.type_}>"


class _SharedRef:
    """The value of a reference in a cell."""

    def __init__(self, values: Values, cell: Cell, type_: ValueType | None) -> None:
        self._values, self.cell, self.type_ = values, cell, type_
        self._part = type_.parts[0] if type_ is not None and type_.kind == "ref" else None

    def read(self) -> Any:
        return self._values.given(self._values.heap.field(self.cell, 0), self._part)

    def write(self, value: Any) -> None:
        if self._part is None:
            raise TypeError("expected a reference whose type is known, found one of an unknown type")
        self._values.heap.set(self.cell, self._values.taken(value, self._part))


# ---- functions ----------------------------------------------------------------------------------------------------------------------


class NativeCode:
    """The code of a program, linked to what it needs.

    Args:
      addresses: of its functions and kernels, by name; those of its own that are not for callers begin with NATIVE.
      owner: of the code.
      kernel: gives the function of a kernel on values of Python.
      constant: gives a tensor.
      constructors_: of the data types, as callers know them.
      team: the threads of calls; by default kernels have teams of their own.
      array, tensor: as of Values.
    """

    def __init__(
        self,
        info: NativeInfo,
        addresses: Mapping[str, int],
        owner: object,
        kernel: Callable[[Link], Callable[..., Any]],
        constant: Callable[[Link], np.ndarray],
        constructors_: Mapping[str, Sequence[Any]] | None = None,
        team: Team | None = None,
        **conversions: Any,
    ) -> None:
        self.info, self._kernel, self._constant = info, kernel, constant
        self.team = team or Within()
        heap = shared_heap({name: addresses[HEAP + name] for name in (*ENTRIES, DROP, DELETER)}, owner)
        data = {each.name: each for each in info.data}
        self.values = Values(heap, data, constructors_ or {name: each.constructors for name, each in data.items()}, **conversions)
        self.values.apply = self._apply
        self.values.foreign = {int(n.removeprefix(FOREIGN)): address for n, address in addresses.items() if n.startswith(FOREIGN)}
        self._packed = {}
        for name, address in addresses.items():
            if name.startswith(APPLY) or any(name == each.name for each in info.functions):
                self._packed[name] = tvm_ffi.Function.__from_extern_c__(address, keep_alive_object=owner)
                self._packed[name].release_gil = True
        self._overflows = False
        self._kept: list[Any] = []  # objects whose addresses the code uses
        words = (ctypes.c_int64 * (3 + len(info.links))).from_address(addresses[LINKS])
        words[:3] = [type_index(), heap.drop, heap.deleter]
        self._words, self._addresses = words, addresses
        for i, link in enumerate(info.links, 3):
            if link.kind != "params":
                words[i] = self._linked(link)
        if info.has_closures:
            keep((owner, self._kept))

    def set_params(self, params: np.ndarray) -> None:
        """Links the parameters of kernels, which the caller keeps."""
        for i, link in enumerate(self.info.links, 3):
            if link.kind == "params":
                self._words[i] = params.ctypes.data

    def _linked(self, link: Link) -> int:
        if link.kind in ("constructor", "empty"):
            number = constructors.number(self.values.constructors[link.name][link.tag])
            return number if link.kind == "constructor" else number << 32 | link.tag << 8 | _EMPTY_WORD
        if link.kind == "entry":
            return self._addresses[link.name]
        found = to_tensor(np.array(self._constant(link))) if link.kind == "constant" else self._callback(link)
        self._kept.append(found)
        return int(ctypes.cast(found.__ctypes_handle__(), ctypes.c_void_p).value or 0)

    def _callback(self, link: Link) -> tvm_ffi.Function:
        values, kernel, types = self.values, self._kernel(link), link.types[:-1]

        def taken(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return values.heap.make(0, TUPLE, *map(taken, value))
            return word_of(value.view(np.ndarray))

        def call(*args: Any) -> Any:
            return taken(kernel(*map(values.given, args, types)))

        found: tvm_ffi.Function = tvm_ffi.convert(keeping_exceptions(call))
        return found

    def function(self, name: str) -> "NativeFunction":
        """A function for callers. Raises KeyError."""
        (info,) = (each for each in self.info.functions if each.name == name)
        return NativeFunction(self, info, self._packed[name])

    def run(self, packed: Any, args: Sequence[Any], is_deep: bool) -> Any:
        """The result of a packed function of the program on what it takes.

        Raises:
          NoClause: no clause of a match takes a value.
          RecursionError: calls nest deeper than the stack has room for.
          What kernels raise.
        """
        if is_deep and self.info.is_pure and not self._overflows:
            # Most calls do not nest deep: the stack of the caller will do, and another thread has to be waited for.
            try:
                return self._call(packed, *args)
            except RecursionError:
                self._overflows = True
        if is_deep:
            return on_deep_stack(self._call, [packed, *args, STACK_BYTES - PYTHON_BYTES])
        return self._call(packed, *args)

    def _call(self, packed: Any, *args: Any) -> Any:
        try:
            with self.team:
                return packed(*args)
        except BaseException as error:
            reraise_original(error)  # in the thread of the call, which has it
            if str(error).endswith(NO_CLAUSE):
                raise NoClause(str(error)) from None
            raise

    def _apply(self, closure: HeapClosure, args: Sequence[Any]) -> Any:
        """The result of a closure."""
        type_ = closure.type_
        if type_ is None or type_.kind != "function":
            raise TypeError("expected a function whose type is known, found one of an unknown type")
        *params, result = type_.parts
        packed = self._packed.get(f"{APPLY}{len(params)}")
        if len(args) != len(params) or packed is None:
            raise TypeError(f"{type_}: expected {len(params)} argument(s), found {len(args)}")
        taken = [closure.cell, *map(self.values.taken, args, params)]
        return self.values.given(self.run(packed, taken, True), result)


class NativeFunction:
    """A function of a program on values of Python: arrays and numbers, lists and tuples, ConstructorValues, RefValues, and functions of
    programs or of Python. A tuple is given as a tuple, one inside of another value as a list.

    Attributes:
      name: of the function in the module.
      inputs, outputs: specs of what it takes and gives; the dtype of what is no tensor is "value(TYPE)".
      packed: the tvm-ffi function underneath, on numbers, tensors and cells. It may take one more argument: how many bytes of stack the
        calling thread has for it.
    """

    def __init__(self, code: NativeCode, info: NativeFunctionInfo, packed: Any) -> None:
        self._code, self._info, self.packed = code, info, packed
        self.name, self.team = info.name, code.team
        self.inputs = tuple(spec_of(name, type_) for name, type_ in info.params)
        self.outputs = specs_of_result(info.result)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Runs the function, on arguments in order or by name.

        Raises:
          TypeError, ValueError: the number of arguments, or an argument, is not that of the function; a kernel raises it.
          NoClause: a ValueError: no clause of a match takes a value.
          RecursionError: calls nest deeper than the stack has room for.
        """
        names = [name for name, _ in self._info.params]
        given = [*args, *(named[name] for name in names[len(args) :] if name in named)]
        if len(given) != len(names) or len(args) + len(named) != len(names):
            raise TypeError(f"{self.name}: expected {len(names)} argument(s) ({', '.join(names)}), found {len(args) + len(named)}")
        taken = [self._taken(i, value) for i, value in enumerate(given)]
        result = self._info.result
        found = self._code.values.given(self._code.run(self.packed, taken, self._info.is_deep), result)
        return tuple(found) if result.kind == "tuple" else found

    def _taken(self, i: int, value: Any) -> Any:
        name, type_ = self._info.params[i]
        try:
            return self._code.values.taken(value, type_)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{self.name}: argument {i} {name!r}: {error}") from None

    def __repr__(self) -> str:
        takes = ", ".join(f"{name}: {type_}" for name, type_ in self._info.params)
        return f"<relayc function {self.name}({takes}) -> {self._info.result}>"


def spec_of(name: str, type_: ValueType) -> TensorSpec:
    """The TensorSpec of a parameter or a result of a type."""
    if type_.kind != "tensor":
        return TensorSpec(name, (), f"value({type_})")
    return TensorSpec(name, tuple(symbol(f"{name}_{i}") if d is None else d for i, d in enumerate(type_.shape)), type_.name)


def specs_of_result(result: ValueType) -> tuple[TensorSpec, ...]:
    """The specs of a result: of each field of a tuple."""
    if result.kind != "tuple":
        return (spec_of("output", result),)
    return tuple(spec_of(f"output_{i}", part) for i, part in enumerate(result.parts))


def on_tensors(function: Callable[..., Any], types: Sequence[ValueType]) -> Callable[..., Any]:
    """A function on arrays as one on tuples of them, too.

    Args:
      types: of its arguments and its result.
    """
    *_, result = types

    def call(*args: Any) -> Any:
        found = function(*_flat(args))
        return _structured(result, list(found) if isinstance(found, tuple) else [found])

    return call


def _flat(values: Sequence[Any]) -> list[Any]:
    return [part for value in values for part in (_flat(value) if isinstance(value, list) else [value])]


def _structured(type_: ValueType, flat: list[Any]) -> Any:
    return [_structured(part, flat) for part in type_.parts] if type_.kind == "tuple" else flat.pop(0)
