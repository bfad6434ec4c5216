"""The registry of converters, and what a converter may ask about its node.

A converter is one plain function for one ONNX operator, named as in the specification; its positional parameters are the inputs (a default
of None marks an optional one) and its keyword-only parameters are the attributes:

    @converter(since=6)
    def LeakyRelu(x, *, alpha=0.01):
        return emit("nn.leaky_relu", x, alpha=alpha)

Attributes that several operators share are a TypedDict: `**window: Unpack[ConvAttributes]`. One that has only a few values is a Literal of
them: `direction: Literal["LEFT", "RIGHT"]`.

`since` is the first operator set with these semantics; where they changed, several functions are registered under one name. A converter
gives a Tensor (or a value of `objects`), or a tuple of them for several outputs, or NotImplemented to leave the node to the function body
of its schema, and raises OnnxError if the node cannot be imported.
"""

import contextvars
import inspect
import types as pytypes
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from onnx import TypeProto
from typing_extensions import get_type_hints

from relayc.frontend.converter import Tensor
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.objects import Value, type_of

# ---- where the conversion is ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Node:
    """The node being converted, for the few converters that need more than its inputs and attributes.

    Attributes:
      opset: version of the operator's domain.
      outputs: names of the outputs, empty for an unused one.
      what: description of the node, for errors of the program.
      declared: the types that the model declares for the outputs, None if it declares none.
      recomputed: returns a value of the graph around the node, by name, recomputed with the given values of other names.
      inline: converts a subgraph of the node in place, from its inputs, and returns its outputs.
    """

    opset: int
    outputs: Sequence[str]
    what: str
    declared: Sequence[TypeProto | None]
    inline: Callable[..., list[Any]]
    recomputed: Callable[[Mapping[str, Value], str], Value]

    def wants(self, output: int) -> bool:
        """Whether anything may use output number `output`."""
        return output < len(self.outputs) and bool(self.outputs[output])


_NODE: contextvars.ContextVar[Node] = contextvars.ContextVar("onnx_node")


def current() -> Node:
    """The node being converted."""
    return _NODE.get()


@contextmanager
def converting(node: Node) -> Iterator[None]:
    """Makes `node` the result of `current` inside the context."""
    token = _NODE.set(node)
    try:
        yield
    finally:
        _NODE.reset(token)


# ---- the registry ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Converter:
    """A registered function and the facts of its signature.

    Attributes:
      since, foldable, objects: the arguments of `converter`.
      inputs: their names.
      required_inputs: inputs that a node must have: without a default, and not None by their annotation.
      given_inputs: number of inputs without a default.
      variadic: whether there may be more inputs.
      attributes: with their types, or their values where these are few; none if the parameter is not annotated.
      required_attributes: attributes without a default.
    """

    function: Callable[..., Any]
    since: int
    foldable: bool
    objects: bool
    inputs: tuple[str, ...]
    required_inputs: frozenset[str]
    given_inputs: int
    variadic: bool
    attributes: Mapping[str, tuple[Any, ...]]
    required_attributes: frozenset[str]

    @staticmethod
    def of(function: Callable[..., Any], since: int, foldable: bool = True, objects: bool = False) -> "Converter":
        parameters = list(_unpacked(inspect.signature(function).parameters.values()))
        positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        keyword = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
        return Converter(
            function,
            since,
            foldable,
            objects,
            tuple(p.name for p in positional),
            frozenset(p.name for p in positional if p.default is p.empty and type(None) not in typing.get_args(p.annotation)),
            sum(p.default is p.empty for p in positional),
            any(p.kind is p.VAR_POSITIONAL for p in parameters),
            {p.name: _types(p.annotation) for p in keyword},
            frozenset(p.name for p in keyword if p.default is p.empty),
        )

    def __call__(self, inputs: Sequence[Value | None], attributes: dict[str, Any]) -> tuple[Value, ...] | None:
        """Converts one node; None if it is left to its function body. Raises OnnxError for unknown or missing inputs or attributes."""
        if current().opset < 6:
            attributes.pop("consumed_inputs", None)  # which inputs may be overwritten: nothing of the result
        unknown = attributes.keys() - self.attributes
        if unknown:
            raise OnnxError(f"expected attributes among {', '.join(sorted(self.attributes)) or 'none'}, found {', '.join(sorted(unknown))}")
        missing = self.required_attributes - attributes.keys()
        if missing:
            raise OnnxError(f"expected attribute {', '.join(sorted(missing))}, found none")
        attributes = {name: _checked(name, value, self.attributes[name]) for name, value in attributes.items()}
        if len(inputs) > len(self.inputs) and not self.variadic:
            raise OnnxError(f"expected at most {len(self.inputs)} input(s) ({', '.join(self.inputs)}), found {len(inputs)}")
        absent = [name for i, name in enumerate(self.inputs) if name in self.required_inputs and (i >= len(inputs) or inputs[i] is None)]
        if absent:
            raise OnnxError(f"expected input {', '.join(absent)}, found none")
        if any(tensor is None for tensor in inputs[len(self.inputs) :]):
            raise OnnxError("expected inputs without a gap, found one that is not given")
        wrong = next((v for v in inputs if v is not None and not isinstance(v, Tensor)), None)
        if wrong is not None and not self.objects:
            raise OnnxError(f"expected inputs that are tensors, found {type_of(wrong)}")
        missing_inputs = [None] * (self.given_inputs - len(inputs))
        found = self.function(*inputs, *missing_inputs, **attributes)
        if found is NotImplemented:
            return None
        return found if isinstance(found, tuple) else (found,)


def _unpacked(parameters: Iterable[inspect.Parameter]) -> Iterator[inspect.Parameter]:
    """Parameters of a function; `**window: Unpack[Window]` is replaced by the fields of the TypedDict Window."""
    for parameter in parameters:
        if parameter.kind is not parameter.VAR_KEYWORD:
            yield parameter
            continue
        (group,) = typing.get_args(parameter.annotation)
        for name, annotation in get_type_hints(group).items():
            default = parameter.empty if name in group.__required_keys__ else None
            yield inspect.Parameter(name, parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _checked(name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    """An attribute's value, which is one of `allowed`, or of one of the types there (any where there are none): a flag of ONNX, 0 or 1, is
    a bool. Raises OnnxError for another value.
    """
    values = [v for v in allowed if not isinstance(v, type)]
    if values:
        if value not in values:
            raise OnnxError(f"attribute {name}: expected {', '.join(map(str, values[:-1]))} or {values[-1]}, found {value!r}")
        return value
    if allowed == (bool,):
        if type(value) is not int or value not in (0, 1):
            raise OnnxError(f"attribute {name}: expected 0 or 1, found {value!r}")
        return bool(value)
    if allowed and not isinstance(value, allowed):
        raise OnnxError(f"attribute {name}: expected {' or '.join(t.__name__ for t in allowed)}, found {type(value).__name__}")
    return value


def _types(annotation: Any) -> tuple[Any, ...]:
    """The types of attribute values that an annotation allows, or a Literal's values; none for a parameter that has no annotation."""
    if annotation is inspect.Parameter.empty:
        return ()
    if typing.get_origin(annotation) is typing.Literal:
        return typing.get_args(annotation)
    members = typing.get_args(annotation) if typing.get_origin(annotation) in (pytypes.UnionType, typing.Union) else (annotation,)
    plain = [tuple if typing.get_origin(m) is Sequence else m for m in members if m is not type(None)]
    return tuple(plain)


CONVERTERS: dict[tuple[str, str], list[Converter]] = {}
"""Converters by (domain, operator), the newest first; of the domains of ON_DEMAND only once they are loaded."""
ON_DEMAND = {"ai.onnx.ml": "relayc.frontend.onnx.ml", "com.microsoft": "relayc.frontend.onnx.contrib"}
"""Modules of converters that few models use, by their domains."""


@cache
def load_domain(domain: str) -> None:
    """Loads the converters of a domain."""
    if domain in ON_DEMAND:
        import_module(ON_DEMAND[domain])


def converter(
    name: str | None = None, *, since: int = 1, domain: str = "", foldable: bool = True, objects: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function as the converter of the operator it is named after (or `name`) from operator set `since` on.

    `foldable` says whether nodes on known inputs may be evaluated at import: not where that is no function of the inputs alone, or its
    result not worth a copy. `objects` says whether inputs may be sequences and optional values, too.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        load_domain(domain)  # the domain's own converters come first, whenever they are loaded
        entries = CONVERTERS.setdefault((domain, name or function.__name__), [])
        entries.append(Converter.of(function, since, foldable, objects))
        entries.sort(key=lambda c: -c.since)
        return function

    return register


def find_converter(domain: str, name: str, opset: int) -> Converter | None:
    """The converter of an operator in an operator set; None if there is none."""
    load_domain(domain)
    return next((c for c in CONVERTERS.get((domain, name), []) if c.since <= opset), None)
