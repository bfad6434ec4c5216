"""What converters of any format work with: tensors of a model, operators that are built of them, and the module that is being built.

A frontend makes a ModelBuilder with the model's inputs, converts nodes inside `with builder`, each inside `with at_node(...)`, and gives
what `builder.finish` gives:

    with ModelBuilder({"x": TensorType((2, 3), "float32")}) as builder:
        with at_node("node 'act' (Relu)", "act"):
            y = emit("nn.relu", builder.inputs["x"])
        return builder.finish([("y", y)])

A Tensor may be known at import, as numbers or as expressions over symbols (see `sizes`). Small steps that many converters share are in
`steps`.
"""

import contextvars
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import reduce
from math import isfinite
from types import TracebackType
from typing import Any

import numpy as np

from relayc.dialects.functions import refresh_signature, value_names
from relayc.dialects.mlir import func, ir, make_context
from relayc.dialects.relay.base import OPS
from relayc.dialects.relay.calls import call_packed
from relayc.dialects.relay.conditions import collected
from relayc.dialects.relay.errors import RelayError, may_equal
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.names import build, ir_name, simpler
from relayc.dialects.relay.narrow import converted
from relayc.dialects.relay.types import DTYPES, TensorType, is_narrow
from relayc.frontend.dimensions import free_name
from relayc.frontend.errors import ModelError
from relayc.interrupts import deferred
from relayc.symbolic import (
    FAR,
    Dim,
    Extreme,
    Range,
    Ranges,
    Size,
    Undecided,
    bound,
    bounds,
    evaluate,
    is_long,
    substitute,
    symbol,
    symbols_of,
)


class Tensor:
    """A value of a model: an SSA value, what is known of it at import, or both.

    A known array becomes a relay.constant only when an operator that stays in the program uses it.

    Attributes:
      type: shape and dtype.
      elements: those of a tensor of sizes (see relayc.frontend.sizes), an array of objects; None for any other tensor.
      name: name in the model; empty for a value made inside a converter.
      foldable: whether operators on it may be evaluated at import (not for weights that are to stay arguments).
    """

    __slots__ = ("_array", "_home", "_materialise", "_read", "_value", "elements", "foldable", "name", "type")

    def __init__(
        self,
        type_: TensorType,
        *,
        value: ir.Value | None = None,
        read: Callable[[], np.ndarray] | None = None,
        materialise: Callable[["Tensor"], ir.Value] | None = None,
        name: str = "",
        foldable: bool = True,
        elements: np.ndarray | None = None,
    ) -> None:
        self.type = type_
        self.name = name
        self.foldable = foldable
        self._value = value
        self._read = read
        self._array: np.ndarray | None = None
        self._materialise = materialise
        self.elements = elements
        # Where the program computes it, if it comes to that: inside of what sees the symbols of its elements.
        self._home = ir.InsertionPoint.current.block if elements is not None else None

    @property
    def shape(self) -> tuple[Size, ...]:
        return self.type.shape  # type: ignore[return-value] # importing gives every dimension a size

    @property
    def key(self) -> object:
        """What tells it from other tensors."""
        return self.value

    @property
    def dtype(self) -> str:
        return self.type.dtype

    @property
    def rank(self) -> int:
        return self.type.rank

    @property
    def is_float(self) -> bool:
        return self.type.is_float

    @property
    def is_known(self) -> bool:
        """Whether the elements are known at import."""
        return self._read is not None

    @property
    def array(self) -> np.ndarray:
        """The elements. Raises ModelError for a tensor that is only known when the program runs."""
        if self._read is None:
            raise ModelError(f"expected a value known at import, found {self.label}, which depends on an input of the model")
        if self._array is None:
            self._array = self._read()
        return self._array

    @property
    def label(self) -> str:
        return repr(self.name) if self.name else "a computed value"

    @property
    def value(self) -> ir.Value:
        """The SSA value; a known array is entered in the module on first use."""
        if self._value is None and self.elements is not None:
            assert self._materialise is not None and self._home is not None
            with inside(self._home):
                self._value = self._materialise(self)
        if self._value is None:
            self._value = self._materialise(self) if self._materialise else _enter(self)
            self._array = None  # the parameter table has it now; read again in the rare case that it is asked for
        return self._value


def _enter(tensor: Tensor) -> ir.Value:
    # A constant made inside a converter belongs to the node, another one is known by its own name.
    with ir.Location.name(tensor.name) if tensor.name else ir.Location.current, _outside_regions():
        return ModelBuilder.current().module.constant(np.asarray(tensor.array, order="C"), tensor.name or "const")


def _outside_regions() -> ir.InsertionPoint:
    """Where the whole function sees what is built: before the branch or loop that the ambient insertion point is in."""
    at = ir.InsertionPoint.current
    owner = at.block.owner
    while owner.operation.name != "func.func":
        at, owner = ir.InsertionPoint(owner.operation), owner.operation.parent
    return at


def inside(block: ir.Block) -> ir.InsertionPoint:
    """Where the whole rest of a block sees what is built: before the branch or loop in it that the ambient insertion point is in."""
    at = ir.InsertionPoint.current
    while at.block != block:
        at = ir.InsertionPoint(at.block.owner.operation)
    return at


def constant(array: Any, dtype: str | None = None) -> Tensor:
    """A tensor known at import, of numbers or of strings; floats beyond the range of their type are infinite.

    Raises ModelError for a number that the element type does not have.
    """
    try:
        if dtype in (None, "string"):
            array = np.asarray(array)
            if array.dtype.kind in "OTU":
                array = ModelBuilder.current().module.numbers_of(array)
        elif dtype is not None and is_narrow(dtype):
            array = converted(np.asarray(array), dtype)
        with np.errstate(over="ignore"):
            array = np.asarray(array, DTYPES[dtype] if dtype else None)
    except (OverflowError, ValueError, TypeError):
        raise ModelError(f"expected a number of type {dtype}, found {array}") from None
    return Tensor(TensorType.of_array(array), read=lambda: array)


def emit(relay_name: str, *inputs: Tensor, **attributes: Any) -> Any:
    """Builds a Relay operator by its name; a Tensor, or a tuple of them where it has several results. Raises RelayError.

    Dimensions of operands that broadcast are checked when the program runs where nothing proves that they fit.
    """
    operator = OPS.get(ir_name(relay_name))
    if operator is not None and operator.broadcasts and not all(t.type.is_static for t in inputs):
        inputs = unified(*inputs)
    values = [t.value for t in inputs]
    with collected() as conditions:
        found = build(relay_name, *values, **attributes)
    if conditions:
        ModelBuilder.current().learn(c.size for c in conditions)
    if isinstance(found, (tuple, list)):
        return tuple(map(_result, found))
    return _result(found)


def _result(value: ir.Value) -> Tensor:
    """A result of an operator. Dimensions that are long expressions become symbols, which are defined here."""
    type_ = TensorType.of(value)
    if not type_.is_known or not any(map(is_long, type_.sizes)):
        return Tensor(type_, value=value)
    builder = ModelBuilder.current()
    return emit("match_shape", Tensor(type_, value=value), shape=[builder.named(d) if is_long(d) else d for d in type_.sizes])


def packed(name: str, inputs: Sequence[Tensor], *types: TensorType) -> tuple[Tensor, ...]:
    """Calls the packed function that is registered as `name` when the program runs: on the inputs, then on the results, which it writes."""
    found = call_packed(name, [t.value for t in inputs], types)
    return tuple(Tensor(TensorType.of(v), value=v) for v in (found if isinstance(found, tuple) else (found,)))


def kept(number: Tensor, type_: TensorType) -> Tensor:
    """The result of a packed function whose sizes are known once it is computed: kept by the runtime until there is memory for it."""
    return packed("relayc.host.kept", [number], type_)[0]


# ---- what a model takes for granted of shapes ----------------------------------------------------------------------------------------


def assume(x: Tensor, shape: Sequence[Size]) -> Tensor:
    """x, of which the model takes for granted that it has this shape: checked when the program runs where that is not proved.

    Raises ModelError where it has another.
    """
    shape = tuple(shape)
    if x.shape == shape:
        return x
    if len(x.shape) != len(shape) or any(a != b and not may_equal(a, b) for a, b in zip(x.shape, shape, strict=True)):
        raise ModelError(f"expected a tensor of shape {list(shape)}, found {list(x.shape)}")
    if ModelBuilder.current().learn_equal(zip(x.shape, shape, strict=True)):
        # What is known now may make them the same.
        shape = tuple(substitute(d, {}) for d in shape)
        now = refreshed(x)
        if now.shape == shape:
            return now
    return emit("match_shape", x, shape=shape)


def refreshed(x: Tensor) -> Tensor:
    """x with its shape as what is known now of the symbols makes it."""
    known = x.type.with_shape(substitute(d, {}) for d in x.shape)
    if known.shape == x.shape or x.value is None:
        return x
    x.value.set_type(known.to_mlir())
    return Tensor(known, value=x.value, name=x.name)


def unified(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Tensors that broadcast to each other. Dimensions of different expressions, none of which is 1, are taken for equal; beside others,
    dimensions that are at most 1 are taken for 1.

    Raises ModelError where they cannot be.
    """
    if all(t.type.is_static for t in tensors):
        return tensors
    rank = max(t.rank for t in tensors)
    shapes = [(1,) * (rank - t.rank) + tuple(t.shape) for t in tensors]
    wanted = [_common(dims) for dims in zip(*shapes, strict=True)]

    def assumed(d: Size, common: Size) -> Size:
        return 1 if d == 1 or (bound(d, True) == 1 != bound(common, True)) else common

    return tuple(
        assume(t, tuple(map(assumed, shape, wanted))[rank - t.rank :]) if t.rank else t for t, shape in zip(tensors, shapes, strict=True)
    )


def _common(dims: Iterable[Size]) -> Size:
    """The size that dimensions of operands broadcast to: that of those which are not at most 1, where there are any."""
    others = [d for d in dims if d != 1]
    others = [d for d in others if bound(d, True) != 1] or others
    return reduce(simpler, others) if others else 1


# ---- the module that is being built ---------------------------------------------------------------------------------------------------

_BUILDER: contextvars.ContextVar["ModelBuilder"] = contextvars.ContextVar("model_builder")


def _constants(size: Size) -> set[int]:
    """The numbers in a size that it may be cut off at."""
    atoms = [atom for m in size.terms for atom in m] if isinstance(size, Dim) else []
    return {arg for atom in atoms if isinstance(atom, Extreme) for arg in atom.args if isinstance(arg, int)}


_SEARCHED = 64
"""Sizes that are tried for the least one with which an operator works: windows are small."""
_PLACES = 16
"""Places of a window along an axis that are typical, where the axis is too short for one place at the size that was taken for typical."""


class ModelBuilder:
    """A module under construction, whose function `main` is a model. Inside `with`, operators are built into it, and constants enter it.

    Args:
      inputs: types of the model's inputs by name, in order.
      name: of the model, for the locations of what no node makes.
      ranges: what is known of the symbols in these types.

    Attributes:
      module: the module.
      inputs: the inputs as tensors.
    """

    def __init__(self, inputs: Mapping[str, TensorType], name: str = "main", ranges: Mapping[str, Range] | None = None) -> None:
        self._names = list(inputs)
        self._begin({name for type_ in inputs.values() for name in type_.symbols})
        self._context, self._location = make_context(), name or "main"
        with self._context, ir.Location.name(self._location):
            self.module = IRModule(ir.Module.create())
            if ranges:
                self.module.set_ranges(ranges)
            with ir.InsertionPoint(self.module.module.body):
                self._function = func.FuncOp("main", ([t.to_mlir() for t in inputs.values()], []))
            self._block = self._function.add_entry_block()
        arguments = zip(inputs.items(), self._block.arguments, strict=True)
        self.inputs = {name: Tensor(type_, value=value, name=name) for (name, type_), value in arguments}
        self.host_inputs: dict[str, str] = {}
        """The dtypes by name of inputs that are values of the host, of which the program has the numbers (see relayc.runtime.host)."""

    def _begin(self, symbols: set[str]) -> None:
        """Nothing is built yet. `symbols` are those of the arguments."""
        self._symbols = symbols
        self.arguments = frozenset(symbols)
        """Symbols that have values everywhere."""
        self.pending: dict[str, tuple[Tensor, int, bool]] = {}
        """Symbols that stand for elements of tensors that only the program knows: tensor, position, whether it is known to be 0 or more."""
        self.pending_names: dict[object, list[str]] = {}
        self.defined: set[tuple[ir.Block, str]] = set()
        """Those that have been defined, and in which block."""
        self._named: dict[tuple[ir.Block, Size], Size] = {}
        self.counters: dict[str, Size] = {}
        """Those that stand for the number of a loop's iteration, which is less than this."""
        self._entered = ExitStack()

    def __enter__(self) -> "ModelBuilder":
        for scope in (self._context, ir.Location.name(self._location, context=self._context), ir.InsertionPoint(self._block)):
            self._entered.enter_context(scope)
        self._entered.enter_context(self.module.ranges)
        self._make_current()
        return self

    def _make_current(self) -> None:
        token = _BUILDER.set(self)
        self._entered.callback(lambda: _BUILDER.reset(token))

    @staticmethod
    def current() -> "ModelBuilder":
        """The one that builds."""
        return _BUILDER.get()

    def fresh(self, text: str) -> str:
        """A name of a symbol that says what `text` says, and is taken from now on."""
        # What branches define is called that (relay.If).
        name = free_name(f"dim_{text}" if text.startswith("branch") else text, self._symbols)
        self._symbols.add(name)
        return name

    def named(self, size: Size) -> Size:
        """A symbol for a size in the ambient block, which what has that size is to define: the same for the same size."""
        key = ir.InsertionPoint.current.block, size
        if key not in self._named:
            name = self.fresh("size")
            low, high = bounds(size)
            self._set_range(name, Range(max(low, 0), max(min(high, FAR), 0)))
            self._named[key] = symbol(name)
        return self._named[key]

    @contextmanager
    def trial(self) -> Iterator[None]:
        """What is built inside is thrown away where an exception leaves the block: what was noted of it is forgotten."""
        before = set(self.defined), dict(self.pending_names), dict(self.pending), dict(self._named)
        try:
            yield
        except BaseException:
            self.defined, self.pending_names, self.pending, self._named = before
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._entered.close()

    def learn(self, sizes: Iterable[Dim]) -> None:
        """What an operator that is always computed demands, sizes of 0 or more, is known of the inputs from then on.

        Where it is a least size of an input's dimension it is the program's: a window of 3 that slides over n elements says that n is 3 or
        more, and what the model computes of n is simpler then.
        """
        for size in sizes:
            name = self._only_input(size)
            if name is None:
                continue
            self._lengthen(name, size)
            known = Ranges.current().of(name)
            # What is demanded grows with the symbol, in all that is of use here: the first size with which it holds is searched.
            for low in range(known.low + 1, min(known.low + _SEARCHED, known.high) + 1):
                if evaluate(size, {name: low - 1}) >= 0:
                    break
                found = Range(low, known.high, known.hint)
                with Ranges({**Ranges.current(), name: found}):
                    holds = bounds(size)[0] >= 0
                if holds:
                    self._set_range(name, found)  # and the search ends: at `low` the size is 0 or more

    def _lengthen(self, name: str, size: Size) -> None:
        """Makes a larger size of a symbol typical, where a size that the model computes is not positive at the typical one.

        Choices are made at typical sizes, which must be sizes that the model can have.
        """
        known = Ranges.current().of(name)
        if evaluate(size, {name: known.typical}) > 0:
            return
        hint = known.typical
        while evaluate(size, {name: hint}) < _PLACES and hint < known.high:
            hint = min(2 * hint + 1, known.high)
        if evaluate(size, {name: hint}) > 0:
            self._set_range(name, replace(known, hint=hint))

    def learn_equal(self, pairs: Iterable[tuple[Size, Size]]) -> bool:
        """As `learn`, of sizes that have to be equal: min(n, 512) is n where n is at most 512. Whether anything new is known."""
        learnt = False
        for a, b in pairs:
            name = self._only_input(a - b)
            if name is None:
                continue
            known = Ranges.current().of(name)
            for high in sorted(_constants(a) | _constants(b)):
                if not known.low <= high < known.high:
                    continue
                found = Range(known.low, high, known.hint)
                with Ranges({**Ranges.current(), name: found}):
                    same = substitute(a, {}) == substitute(b, {})
                with Ranges({**Ranges.current(), name: Range(high + 1, known.high)}):
                    low, most = bounds(a - b)
                if same and (low > 0 or most < 0):
                    self._set_range(name, found)
                    learnt = True
                    break
        return learnt

    def _only_input(self, size: Size) -> str | None:
        """The symbol of an input that a size is an expression of, where that is always computed; None for any other size."""
        names = symbols_of(size)
        if len(names) != 1 or not names <= self.arguments or ir.InsertionPoint.current.block != self._block:
            return None
        return min(names)

    def bound(self, name: str, low: int) -> None:
        """States the least value of a symbol that is not defined yet, 0 where nothing is stated: checked where it is."""
        self._set_range(name, Range(low))

    def _set_range(self, name: str, found: Range) -> None:
        self.module.set_ranges({**Ranges.current(), name: found})
        self._entered.enter_context(self.module.ranges)

    def add_argument(self, tensor: Tensor) -> ir.Value:
        """An argument of `main` behind those there are, for a tensor whose elements the caller of the program gives: a weight, say. The
        elements that are known enter the parameter table under its name."""
        self._names.append(tensor.name)
        if tensor.is_known:
            self.module.params[tensor.name] = np.asarray(tensor.array, order="C")
        return self._block.add_argument(tensor.type.to_mlir(), ir.Location.name(tensor.name))

    def finish(self, outputs: Sequence[tuple[str, Tensor]], host_outputs: Mapping[str, str] | None = None) -> IRModule:
        """Ends `main` with its outputs, of which each has a name, and gives the module. `host_outputs` are as `host_inputs`."""
        values = [tensor.value for _, tensor in outputs]
        func.ReturnOp(values)
        refresh_signature(self._function)
        self._function.attributes["arg_attrs"] = value_names(self._names, self.host_inputs)
        self._function.attributes["res_attrs"] = value_names([name for name, _ in outputs], host_outputs)
        return self.module


@contextmanager
def at_node(what: str, name: str, error: type[ModelError] = ModelError) -> Iterator[None]:
    """What is built inside belongs to a node of the model: its location is the node's name.

    Args:
      what: the node in words, for errors: the model, its name and its operator.
      name: of the node.
      error: what to raise.

    Raises:
      ModelError (`error`): where a ModelError or RelayError leaves the block, with `what` before its message; for any other exception, too,
        with that as its cause: a fault of the converter, of which the model's author needs to know the node all the same.
      MemoryError: likewise.
    """

    def about(message: str) -> ModelError:
        found = error(f"{what}: {message}", located=True)
        found.node = name
        return found

    with deferred(), ir.Location.name(name):
        try:
            yield
        except (ModelError, RelayError) as e:
            if isinstance(e, ModelError) and e.located:
                e.node = name
                raise
            raise about(str(e)) from None
        except Undecided as e:
            raise about(f"expected sizes of which more is known, found an open question: {e}") from None
        except MemoryError as e:
            raise MemoryError(f"{what}: {e}") from None
        except Exception as e:
            raise about(f"the converter failed with {type(e).__name__}: {e}") from e


# ---- values needed at import ----------------------------------------------------------------------------------------------------------


def known(tensor: Tensor, what: str) -> np.ndarray:
    """The elements of an input that importing needs. Raises ModelError, naming `what`, where they are not known."""
    if not tensor.is_known:
        raise ModelError(f"input {what}: expected a value known at import, found {tensor.label}, which depends on an input of the model")
    return tensor.array


def ints(tensor: Tensor, what: str) -> tuple[int, ...]:
    """The elements of a one-dimensional (or scalar) integer input. Raises ModelError where they are not known or not integers."""
    array = known(tensor, what)
    if array.dtype.kind not in "iu" or array.ndim > 1:
        raise ModelError(f"input {what}: expected a list of integers, found {array.dtype.name}{list(array.shape)}")
    return tuple(int(v) for v in array.reshape(-1))


def scalar(tensor: Tensor, what: str) -> Any:
    """The single element of an input, as a Python number. Raises ModelError where it is not known or not a single one."""
    array = known(tensor, what)
    if array.size != 1:
        raise ModelError(f"input {what}: expected one element, found {list(array.shape)}")
    return array.reshape(()).item()


def integer(tensor: Tensor, what: str) -> int:
    """The single element of an input, a whole number of any element type. Raises ModelError where it is not known or another number."""
    value = scalar(tensor, what)
    if not isfinite(value) or value != int(value):
        raise ModelError(f"input {what}: expected a whole number, found {value}")
    return int(value)


def axis_of(axis: int, rank: int, what: str = "axis") -> int:
    """`axis` counted from the front. Raises ModelError where it is outside [-rank, rank)."""
    if not -rank <= axis < rank:
        raise ModelError(f"attribute {what}: expected a value in [{-rank}, {rank}), found {axis}")
    return axis % rank


def axes_of(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """`axes` counted from the front. Raises ModelError where one is outside [-rank, rank) or given twice."""
    found = tuple(axis_of(a, rank, "axes") for a in axes)
    if len(set(found)) != len(found):
        raise ModelError(f"axes: expected each axis once, found {list(axes)}")
    return found
