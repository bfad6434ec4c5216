"""Builds composed operators: in a function of a program, or by themselves to find their types."""

from collections.abc import Mapping, Sequence
from typing import Any

from relayc.dialects.mlir import ir
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.types import TensorType
from relayc.frontend.converter import ModelBuilder, Tensor
from relayc.frontend.errors import ModelError
from relayc.frontend.relay.ast.expr import Constant, Expr
from relayc.frontend.relay.op.composed.registry import Composed


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


def build(found: Composed, tensors: Sequence[Tensor], attrs: Mapping[str, Any], exprs: Sequence[Expr]) -> Tensor | tuple[Tensor, ...]:
    """Composes an operator where the ambient builder builds. What the operands' expressions say is known. Raises RelayError."""
    if not found.is_variadic:
        tensors = [_known(tensor, expr) for tensor, expr in zip(tensors, exprs, strict=True)]
    try:
        made = found.function(*tensors, **attrs)
    except ModelError as error:
        raise RelayError(f"{found.name}: {error}") from None
    return made if isinstance(made, Tensor) else tuple(made)


def _known(tensor: Tensor, expr: Expr) -> Tensor:
    if not isinstance(expr, Constant) or tensor.is_known:
        return tensor
    array = expr.data.numpy()
    return Tensor(tensor.type, value=tensor.value, read=lambda: array)


def types_of(found: Composed, types: Sequence[TensorType], attrs: Mapping[str, Any], exprs: Sequence[Expr]) -> Any:
    """The type of an operator on operands of these types, or a tuple of types. Raises RelayError."""
    names = [f"operand_{i}" for i in range(len(types))]
    with ModelBuilder(dict(zip(names, types, strict=True))) as builder:
        made = build(found, [builder.inputs[name] for name in names], attrs, exprs)
    return made.type if isinstance(made, Tensor) else tuple(tensor.type for tensor in made)
