"""The `relay` dialect as MLIR knows it: every operator is registered with its operands, results, regions, purity and verifier.

Operators are declared to MLIR through IRDL, in each context anew (4 ms). IRDL demands that all operands of one variadic field have one and
the same type, which decides how a few things are written down:

- `concatenate` is upstream's `tensor.concat`, whose operands differ in type;
- a call is upstream's `func.call`;
- several values that are one result, or that leave a region, are one value of type `tuple<...>` (Relay's TupleType), which
  `builtin.unrealized_conversion_cast` makes of its fields and `relay.tuple_get_item` takes apart;
- regions use the values around them instead of taking them as operands.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from relayc.dialects.declaration import load_operations
from relayc.dialects.mlir import ext, ir, on_new_context, register_operation
from relayc.dialects.relay.scopes import defined_by, scope_before

if TYPE_CHECKING:
    from relayc.dialects.relay.base import Op

OPS: dict[str, type["Op"]] = {}
"""Every operator class by its name in the IR (`nn_conv2d`)."""


class RelayDialect(ext.Dialect, name="relay"):  # type: ignore[call-arg] # mypy knows nothing of ext
    """The namespace of the operators."""


class RecursiveEffects:
    """Effects of an operation with regions, or of one that may define symbols: none if it is pure, otherwise a write to memory."""

    class _Effects(ir.MemoryEffectsOpInterface):
        @staticmethod
        def get_effects(op: ir.OpView, effects: ir.MemoryEffectInstancesList) -> None:
            if not is_pure(op.operation):
                effects.append(ir.MemoryEffect.Write)

    @staticmethod
    def attach(name: str) -> None:
        """Declares it of the operation `name` in the ambient context."""
        RecursiveEffects._Effects.attach(name)


_PURE_DIALECTS = ("arith.", "tensor.", "builtin.")
"""Dialects of operations between relay operators in the relay stage, besides calls."""


def is_pure(operation: ir.Operation) -> bool:
    """Whether an operation of the relay stage, with all inside it, has no effect but its results; a symbol that it defines is one."""
    view = operation.opview
    if getattr(view, "may_define_symbols", False) and defined_by(operation) and defined_by(operation, scope_before(operation)):
        return False
    pure = getattr(view, "pure", None)
    if pure is None:
        pure = operation.name.startswith(_PURE_DIALECTS)
    return bool(pure) and all(
        is_pure(inner.operation) for region in operation.regions for block in region.blocks for inner in block.operations
    )


def register(cls: type["Op"]) -> None:
    """Makes `cls` the class of the operations of its name, in every context made from now on."""
    OPS[cls._op_name] = cls
    register_operation(RelayDialect, cls)


def load(context: ir.Context) -> None:
    """Registers the operators in a context that has none of them yet."""
    operators = [cls for cls in OPS.values() if cls.OPERATION_NAME.startswith("relay.")]
    load_operations(context, RelayDialect.DIALECT_NAMESPACE, operators)


on_new_context(load)


def annotations(operands: Sequence[str], variadic: bool, results: Sequence[str], required: int, regions: Sequence[str]) -> dict[str, Any]:
    """The fields of an operation as `ext` declares them: the last operand may be variadic, results from `required` on optional."""
    single, several = ext.Operand[Any], Sequence[ext.Operand[Any]]
    fixed = operands[:-1] if variadic else operands
    found: dict[str, Any] = {f"operand_{name}": single for name in fixed}
    if variadic:
        found[f"operand_{operands[-1]}"] = several
    found |= {f"result_{name}": ext.Result[Any] if i < required else ext.Result[Any] | None for i, name in enumerate(results)}
    return found | {region: ext.Region for region in regions}
