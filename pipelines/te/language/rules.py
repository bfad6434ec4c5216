"""Compute rules of operators written in te."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from relayc.dialects.relay.base import Op
from relayc.dialects.relay.errors import check
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te.language.graph import emit_operations, in_order, unique_names
from relayc.pipelines.te.language.tensors import ComputeOp, PlaceholderOp, Tensor
from relayc.pipelines.te.rules import core
from relayc.pipelines.te.rules.core import Value

Rule = TypeVar("Rule", bound=Callable[..., Any])


def register_compute(*names: str) -> Callable[[Rule], Rule]:
    """Registers a te function as the compute rule of operators, beside the rules of `relayc.pipelines.te.rules.core`:

        @relayc.te.register_compute("my_snake")
        def snake(attrs, data):
            return te.compute(data.shape, lambda *i: data(*i) + te.sin(data(*i)), name="snake")

    Args:
      names: of the operators ("nn.relu" or "nn_relu").

    The rule receives the operator, with its attributes by name (`attrs.alpha`), and its operands as tensors; it returns a tensor for each
    result, of the result's shape and dtype. The computation is fused into the kernel of the operator.
    """

    def register(rule: Rule) -> Rule:
        @wraps(rule)
        def emit(op: Op, *operands: Value) -> list[Value]:
            return _emit(rule, op, operands)

        core.compute(*(name.replace(".", "_") for name in names))(emit)
        return rule

    return register


def _emit(rule: Callable[..., Any], op: Op, operands: tuple[Value, ...]) -> list[Value]:
    what = f"{op.operation.name} at {op.source()}: its compute rule"
    types = [TensorType.of(v) for v in op.operation.operands]
    tensors = [PlaceholderOp(f"arg{i}", [t]).tensors[0] for i, t in enumerate(types)]
    values = {id(t): value for t, value in zip(tensors, operands, strict=True)}
    given = rule(op, *tensors)
    found = list(given) if isinstance(given, (tuple, list)) else [given]
    check(all(isinstance(t, Tensor) for t in found), what, "to give tensors of te", found)
    wanted = [TensorType.of(r) for r in op.operation.results]
    check([t.type for t in found] == wanted, what, f"to give {', '.join(map(str, wanted))}", ", ".join(str(t.type) for t in found))
    operations = [made for made in in_order(found) if id(made.tensors[0]) not in values]
    other = next((made for made in operations if not isinstance(made, ComputeOp)), None)
    check(other is None, what, "computations of its operands (te.compute)", other and other.name)
    emit_operations(operations, values, unique_names(operations))
    return [values[id(t)] for t in found]
