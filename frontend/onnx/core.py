"""What a converter works with: tensors of the graph, emitters of Relay operators, and the registry.

A converter is one plain function for one ONNX operator, named as in the specification; its positional parameters are the inputs (a
default of None marks an optional one) and its keyword-only parameters are the attributes:

    @converter(since=6)
    def LeakyRelu(x, *, alpha=0.01):
        return emit("nn.leaky_relu", x, alpha=alpha)

`since` is the first operator set with these semantics; where they changed, several functions are registered under one name. A converter
gives a Tensor, or a tuple of them for several outputs, or NotImplemented to leave the node to the function body of its schema, and raises
OnnxError where the node cannot be imported.
"""

import contextvars
import inspect
import types as pytypes
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from relayc.dialects import relay
from relayc.dialects.mlir import ir
from relayc.dialects.relay import IRModule, TensorType
from relayc.frontend.onnx.errors import OnnxError


class Tensor:
    """A value of the ONNX graph: an SSA value, an array known at import, or both.

    A known array becomes a relay.constant only when an operator that stays in the program uses it.

    Attributes:
      type: shape and dtype.
      name: name in the ONNX graph; empty for a value made inside a converter.
      foldable: whether operators on it may be evaluated at import (not for weights that are to stay arguments).
    """

    __slots__ = ("_array", "_materialise", "_read", "_value", "foldable", "name", "type")

    def __init__(
        self,
        type_: TensorType,
        *,
        value: ir.Value | None = None,
        read: Callable[[], np.ndarray] | None = None,
        materialise: Callable[["Tensor"], ir.Value] | None = None,
        name: str = "",
        foldable: bool = True,
    ) -> None:
        self.type = type_
        self.name = name
        self.foldable = foldable
        self._value = value
        self._read = read
        self._array: np.ndarray | None = None
        self._materialise = materialise

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape  # type: ignore[return-value]

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
        """The elements. Raises OnnxError for a tensor that is only known when the program runs."""
        if self._read is None:
            raise OnnxError(f"expected a value known at import, found {self.label}, which depends on an input of the model")
        if self._array is None:
            self._array = self._read()
        return self._array

    @property
    def label(self) -> str:
        return repr(self.name) if self.name else "a computed value"

    @property
    def value(self) -> ir.Value:
        """The SSA value; a known array is entered in the module on first use."""
        if self._value is None:
            self._value = self._materialise(self) if self._materialise else _enter(self)
            self._array = None  # the parameter table has it now; read again in the rare case that it is asked for
        return self._value


def _enter(tensor: Tensor) -> ir.Value:
    # A constant made inside a converter belongs to the node, another one is known by its own name.
    with ir.Location.name(tensor.name) if tensor.name else ir.Location.current, _outside_regions():
        return _MODULE.get().constant(np.asarray(tensor.array, order="C"), tensor.name or "const")


def _outside_regions() -> ir.InsertionPoint:
    """Where the whole function sees what is built: before the branch or loop that the ambient insertion point is in."""
    at = ir.InsertionPoint.current
    owner = at.block.owner
    while owner.operation.name != "func.func":
        at, owner = ir.InsertionPoint(owner.operation), owner.operation.parent
    return at


def constant(array: Any, dtype: str | None = None) -> Tensor:
    """A tensor known at import. Raises OnnxError for a number that the element type does not have."""
    try:
        array = np.asarray(array, relay.types.DTYPES[dtype] if dtype else None)
    except (OverflowError, ValueError):
        raise OnnxError(f"expected a number of type {dtype}, found {array}") from None
    return Tensor(TensorType.of_array(array), read=lambda: array)


# ---- where the conversion is ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Node:
    """The node being converted, for the few converters that need to know more than its inputs and attributes.

    Attributes:
      opset: version of the operator's domain.
      outputs: names of the outputs, empty for one that is not wanted.
      inline: converts a subgraph of the node in place, given its inputs, and gives its outputs.
    """

    opset: int
    outputs: Sequence[str]
    inline: Callable[..., list[Tensor]]

    def wants(self, output: int) -> bool:
        """Whether anything may use output number `output`."""
        return output < len(self.outputs) and bool(self.outputs[output])


_MODULE: contextvars.ContextVar[IRModule] = contextvars.ContextVar("onnx_module")
_NODE: contextvars.ContextVar[Node] = contextvars.ContextVar("onnx_node")


def current() -> Node:
    """The node being converted."""
    return _NODE.get()


@contextmanager
def building(module: IRModule) -> Iterator[None]:
    """Constants are entered in `module`."""
    token = _MODULE.set(module)
    try:
        yield
    finally:
        _MODULE.reset(token)


@contextmanager
def converting(node: Node) -> Iterator[None]:
    """`node` is the one that `current` gives."""
    token = _NODE.set(node)
    try:
        yield
    finally:
        _NODE.reset(token)


# ---- emitting -------------------------------------------------------------------------------------------------------------------------


def emit(relay_name: str, *inputs: Tensor, **attributes: Any) -> Any:
    """Builds a Relay operator by its name; a Tensor, or a tuple of them where it has several results. Raises RelayError."""
    found = relay.build(relay_name, *(t.value for t in inputs), **attributes)
    if isinstance(found, (tuple, list)):
        return tuple(Tensor(TensorType.of(v), value=v) for v in found)
    return Tensor(TensorType.of(found), value=found)


# ---- the registry ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Converter:
    """A registered function and what its signature says: inputs it must have, how many it takes, attributes with their types (none where
    the parameter is not annotated), and which of them are required."""

    function: Callable[..., Any]
    since: int
    inputs: tuple[str, ...]
    required_inputs: int
    variadic: bool
    attributes: Mapping[str, tuple[type, ...]]
    required_attributes: frozenset[str]

    @staticmethod
    def of(function: Callable[..., Any], since: int) -> "Converter":
        parameters = inspect.signature(function).parameters.values()
        positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        keyword = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
        return Converter(
            function,
            since,
            tuple(p.name for p in positional),
            sum(p.default is p.empty for p in positional),
            any(p.kind is p.VAR_POSITIONAL for p in parameters),
            {p.name: _types(p.annotation) for p in keyword},
            frozenset(p.name for p in keyword if p.default is p.empty),
        )

    def __call__(self, inputs: Sequence[Tensor | None], attributes: dict[str, Any]) -> tuple[Tensor, ...] | None:
        """Converts one node; None where that is left to its function body. Raises OnnxError for inputs or attributes that the operator does
        not have, or misses."""
        unknown = attributes.keys() - self.attributes
        if unknown:
            raise OnnxError(f"expected attributes among {', '.join(sorted(self.attributes)) or 'none'}, found {', '.join(sorted(unknown))}")
        missing = self.required_attributes - attributes.keys()
        if missing:
            raise OnnxError(f"expected attribute {', '.join(sorted(missing))}, found none")
        attributes = {name: _checked(name, value, self.attributes[name]) for name, value in attributes.items()}
        if len(inputs) > len(self.inputs) and not self.variadic:
            raise OnnxError(f"expected at most {len(self.inputs)} input(s) ({', '.join(self.inputs)}), found {len(inputs)}")
        absent = [name for i, name in enumerate(self.inputs[: self.required_inputs]) if i >= len(inputs) or inputs[i] is None]
        if absent:
            raise OnnxError(f"expected input {', '.join(absent)}, found none")
        if any(tensor is None for tensor in inputs[len(self.inputs) :]):
            raise OnnxError("expected inputs without a gap, found one that is not given")
        found = self.function(*inputs, **attributes)
        if found is NotImplemented:
            return None
        return found if isinstance(found, tuple) else (found,)


def _checked(name: str, value: Any, allowed: tuple[type, ...]) -> Any:
    """An attribute's value, which is of one of the types `allowed` (any where there are none): a flag of ONNX, 0 or 1, is a bool.

    Raises OnnxError for another value.
    """
    if allowed == (bool,):
        if type(value) is not int or value not in (0, 1):
            raise OnnxError(f"attribute {name}: expected 0 or 1, found {value!r}")
        return bool(value)
    if allowed and not isinstance(value, allowed):
        raise OnnxError(f"attribute {name}: expected {' or '.join(t.__name__ for t in allowed)}, found {type(value).__name__}")
    return value


def _types(annotation: Any) -> tuple[type, ...]:
    """The types of attribute values that an annotation allows; none for a parameter that has no annotation."""
    if annotation is inspect.Parameter.empty:
        return ()
    members = typing.get_args(annotation) if typing.get_origin(annotation) in (pytypes.UnionType, typing.Union) else (annotation,)
    plain = [tuple if typing.get_origin(m) is Sequence else m for m in members if m is not type(None)]
    return tuple(plain)


CONVERTERS: dict[tuple[str, str], list[Converter]] = {}
"""Converters by (domain, operator), the newest first."""


def converter(name: str | None = None, *, since: int = 1, domain: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function as the converter of the operator it is named after (or `name`) from operator set `since` on."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        entries = CONVERTERS.setdefault((domain, name or function.__name__), [])
        entries.append(Converter.of(function, since))
        entries.sort(key=lambda c: -c.since)
        return function

    return register


def find_converter(domain: str, name: str, opset: int) -> Converter | None:
    """The converter of an operator in an operator set; None where there is none."""
    return next((c for c in CONVERTERS.get((domain, name), []) if c.since <= opset), None)


# ---- values needed at import ----------------------------------------------------------------------------------------------------------


def known(tensor: Tensor, what: str) -> np.ndarray:
    """The elements of an input that decides the shape of a result. Raises OnnxError, naming `what`, where they are not known."""
    if not tensor.is_known:
        raise OnnxError(f"input {what}: expected a value known at import, found {tensor.label}, which depends on an input of the model")
    return tensor.array


def ints(tensor: Tensor, what: str) -> tuple[int, ...]:
    """The elements of a one-dimensional (or scalar) integer input. Raises OnnxError where they are not known or not integers."""
    array = known(tensor, what)
    if array.dtype.kind not in "iu" or array.ndim > 1:
        raise OnnxError(f"input {what}: expected a list of integers, found {array.dtype.name}{list(array.shape)}")
    return tuple(int(v) for v in array.reshape(-1))


def scalar(tensor: Tensor, what: str) -> Any:
    """The single element of an input, as a Python number. Raises OnnxError where it is not known or not a single one."""
    array = known(tensor, what)
    if array.size != 1:
        raise OnnxError(f"input {what}: expected one element, found {list(array.shape)}")
    return array.reshape(()).item()


def integer(tensor: Tensor, what: str) -> int:
    """The single element of an input, a whole number of any element type. Raises OnnxError where it is not known or another number."""
    value = scalar(tensor, what)
    if not isfinite(value) or value != int(value):
        raise OnnxError(f"input {what}: expected a whole number, found {value}")
    return int(value)


def axis_of(axis: int, rank: int, what: str = "axis") -> int:
    """`axis` counted from the front. Raises OnnxError where it is outside [-rank, rank)."""
    if not -rank <= axis < rank:
        raise OnnxError(f"attribute {what}: expected a value in [{-rank}, {rank}), found {axis}")
    return axis % rank


def axes_of(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """`axes` counted from the front. Raises OnnxError where one is outside [-rank, rank) or given twice."""
    found = tuple(axis_of(a, rank, "axes") for a in axes)
    if len(set(found)) != len(found):
        raise OnnxError(f"axes: expected each axis once, found {list(axes)}")
    return found
