"""Builds composed operators: in a function of a program, or by themselves to find their types."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from relayc.dialects.mlir import ir
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.types import RelayType, TensorType, TupleType
from relayc.frontend.converter import ModelBuilder, Tensor, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.relay.ast.expr import Constant, Expr, Tuple
from relayc.frontend.relay.op.composed.registry import Composed
from relayc.symbolic import Undecided


class FunctionBuilder(ModelBuilder):
    """Builds into a function that another builder makes: where the insertion point is inside `with`.

    Args:
      module: of the function.
      symbols: names that are taken.
    """

    def __init__(self, module: IRModule, symbols: set[str]) -> None:
        self.module, self._block = module, ir.InsertionPoint.current.block
        self._begin({name for value in self._block.arguments for name in _symbols(value)})
        self._symbols = symbols

    def __enter__(self) -> "FunctionBuilder":
        self._make_current()
        return self


def _symbols(value: ir.Value) -> set[str]:
    return set(TensorType.of(value).symbols) if isinstance(value.type, ir.RankedTensorType) else set()


Operands = Sequence[Any]
"""Operands of a composed operator: each a tensor, or a tuple of tensors."""


def build(found: Composed, tensors: Operands, attrs: Mapping[str, Any], exprs: Sequence[Expr]) -> Tensor | tuple[Tensor, ...]:
    """Composes an operator at the ambient builder's insertion point, with what is known from the operands' expressions. Raises
    RelayError."""
    if not found.is_variadic:
        tensors = [_known(tensor, expr) for tensor, expr in zip(tensors, exprs, strict=True)]
    try:
        made = found.function(*tensors, **attrs)
    except ModelError as error:
        raise RelayError(f"{found.name}: {error}") from None
    except Undecided as error:
        raise RelayError(f"{found.name}: expected sizes of which more is known, found an open question: {error}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError) as error:  # of operands or attributes that the function cannot take
        raise RelayError(f"{found.name}: expected other operands or attributes, found {type(error).__name__}: {error}") from error
    return made if isinstance(made, Tensor) else tuple(made)


class OnTensors:
    """Builds operators of calls on tensors, at the ambient builder's insertion point (an op.rules.Emitter)."""

    def emit(self, name: str, *operands: Tensor, **attributes: Any) -> Any:
        return emit(name, *operands, **attributes)

    def compose(self, found: Composed, args: list[Any], attrs: dict[str, Any], exprs: Sequence[Expr]) -> Any:
        return found.function(*args, **attrs)

    def type_of(self, value: Any) -> RelayType:
        return TupleType(tuple(part.type for part in value)) if isinstance(value, tuple) else value.type

    def fields(self, value: Any) -> Sequence[Tensor]:
        return value if isinstance(value, tuple) else [value]


def _known(tensor: Any, expr: Expr) -> Any:
    if isinstance(tensor, tuple):
        fields = expr.fields if isinstance(expr, Tuple) else [expr] * len(tensor)
        return tuple(map(_known, tensor, fields))
    if not isinstance(expr, Constant) or tensor.is_known:
        return tensor
    array = expr.data.numpy()
    return Tensor(tensor.type, value=tensor.value, read=lambda: array)


@contextmanager
def _composing(
    found: Composed, types: Sequence[RelayType], attrs: Mapping[str, Any], exprs: Sequence[Expr]
) -> Iterator[tuple[ModelBuilder, Tensor | tuple[Tensor, ...]]]:
    """A builder of a function that is a composed operator on operands of these types, tuples field by field; and its results."""
    flat = [part for type_ in types for part in (type_.fields if isinstance(type_, TupleType) else (type_,))]
    with ModelBuilder({f"operand_{i}": type_ for i, type_ in enumerate(flat)}) as builder:  # type: ignore[misc] # tensors
        inputs = iter(builder.inputs.values())
        tensors = [tuple(next(inputs) for _ in t.fields) if isinstance(t, TupleType) else next(inputs) for t in types]
        yield builder, build(found, tensors, attrs, exprs)


def compose(found: Composed, types: Sequence[RelayType], attrs: Mapping[str, Any], exprs: Sequence[Expr]) -> IRModule:
    """A program whose function main is a composed operator on operands of these types, tuples field by field. Raises RelayError."""
    with _composing(found, types, attrs, exprs) as (builder, made):
        results = [made] if isinstance(made, Tensor) else list(made)
        return builder.finish([(f"result_{i}", result) for i, result in enumerate(results)])


def types_of(found: Composed, types: Sequence[RelayType], attrs: Mapping[str, Any], exprs: Sequence[Expr]) -> Any:
    """The type of an operator on operands of these types, or a tuple of types. Raises RelayError."""
    with _composing(found, types, attrs, exprs) as (_, made):
        return made.type if isinstance(made, Tensor) else tuple(tensor.type for tensor in made)
