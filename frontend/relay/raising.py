"""Programs of the relay dialect as programs of the Relay language: what `lowering` does, the other way.

A pass on the dialect is one on programs of the language by `lower`, the pass, and `raised`.
"""

from typing import Any

from relayc.dialects.discardable import NAME, PACKED, STAGE
from relayc.dialects.functions import symbol_name, value_attributes
from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.create import SizesOf
from relayc.dialects.relay.errors import RelayError, check
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.sizes import CheckSizes, DefineSizes, MatchShape
from relayc.dialects.relay.structure import Constant, Fused, If, TupleGetItem, While
from relayc.dialects.relay.types import TensorType, type_of
from relayc.dialects.relay.unify import symbols_of_type
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.build import const
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.computed_sizes import ComputedSizes
from relayc.frontend.relay.inference.operators import from_dialect
from relayc.frontend.relay.op.functions import call
from relayc.frontend.relay.op.table import signature
from relayc.symbolic import Dim

PROMISES = {"in_bounds", "distinct"}
"""Attributes that only promise something of the operands: without them the operator computes the same."""
_Values = dict[Any, e.Expr]


def raised(mod: IRModule, like: RelayModule | None = None) -> RelayModule:
    """A program of the dialect as one of the language, without types.

    Args:
      like: a program whose functions have the types that the functions of the same names get. Without it, several results of a function
        are a tuple, and sizes that are symbols stay so.

    Raises:
      RelayError: an operation that the language has not.
    """
    found = RelayModule({}, None if like is None else like.type_definitions, None if like is None else like.attrs)
    with mod.context, mod.ranges:
        for operation in mod.module.body.operations:
            if operation.operation.name != "func.func" or STAGE.on(operation):
                raise RelayError(f"expected functions of the relay stage, found {operation.operation.name}")
            name = symbol_name(operation)
            if PACKED.on(operation):
                continue  # the declaration of a function that is not of the program
            model = like[name] if like is not None and name in like else None
            found[name if like is None or model is None else like.get_global_var(name)] = _Raising(mod).function(operation, model)
    return found


class _Raising:
    """One function while it is raised."""

    def __init__(self, mod: IRModule) -> None:
        self._mod = mod
        self._values: _Values = {}
        self._sizes = ComputedSizes()

    def function(self, function: Any, like: e.Function | None) -> e.Function:
        check(len(function.regions[0].blocks) > 0, f"@{symbol_name(function)}", "a function with a body", "a packed one")
        block, params = function.regions[0].blocks[0], []
        for i, (argument, attributes) in enumerate(zip(block.arguments, value_attributes(function), strict=True)):
            name = NAME.get(attributes, f"p{i}")
            model = None if like is None else like.params[i]
            type_ = type_of(argument)
            self._sizes.of_parameters.update(symbols_of_type(type_))
            params.append(model or e.Var(name, self._type(argument)))
            self._values[argument] = params[-1]
            if isinstance(type_, TensorType):
                self._sizes.add_parameter(params[-1], type_.shape)
        results = self._block(block)
        if like is None:
            return e.Function(params, results[0] if len(results) == 1 else e.Tuple(results))
        body = t.structured(like.ret_type, iter(results), e.Tuple)
        return e.Function(params, body, like.ret_type, like.type_params, like.attrs, like.span)

    def _type(self, value: ir.Value) -> t.Type:
        return from_dialect(type_of(value), self._sizes.of_parameters)

    def _block(self, block: ir.Block) -> list[e.Expr]:
        """The values at the end of a block."""
        *body, last = block.operations
        for op in body:
            operands = [self._values[v] for v in op.operation.operands]
            if isinstance(op, (DefineSizes, MatchShape)):
                self._sizes.define(op, operands[0])
            if isinstance(op, (DefineSizes, CheckSizes)):  # the checks of sizes are created again when the program is lowered
                continue
            results = list(op.operation.results)
            made = self._operation(op, operands)
            self._values.update({r: e.TupleGetItem(made, i) for i, r in enumerate(results)} if len(results) > 1 else {results[0]: made})
        return [self._values[v] for v in last.operation.operands]

    def _operation(self, op: Any, operands: list[e.Expr]) -> e.Expr:
        name = op.operation.name
        check(len(op.operation.results) > 0, name, "an operator of the Relay language", "one without a result")
        if isinstance(op, Constant):
            return e.Constant(self._mod.value_of(op.result))
        if isinstance(op, MatchShape):
            return operands[0]
        if isinstance(op, SizesOf):
            return self._sizes.tensor(op.values, op.dtype)
        if isinstance(op, TupleGetItem):
            source = operands[0]
            return source.fields[op.index] if isinstance(source, e.Tuple) else e.TupleGetItem(source, op.index)
        if isinstance(op, If):
            then, otherwise = (self._block(op.body(i))[0] for i in range(2))
            return e.If(operands[0], then, otherwise)
        if isinstance(op, While):
            return self._loop(op, operands[0])
        if isinstance(op, Fused):
            return self._group(op)
        if name == "func.call":
            return e.Call(e.GlobalVar(op.callee.value), operands)
        if name == "builtin.unrealized_conversion_cast":
            return e.Tuple(operands)
        return self._call(op, operands)

    def _call(self, op: Any, operands: list[e.Expr]) -> e.Expr:
        if not isinstance(op, Op):
            raise RelayError(f"{op.operation.name}: expected an operator of the relay dialect")
        found, defaults = signature(op.relay_name), op.attr_specs
        values = self._sizes.attributes(op)
        if op.relay_name == "arange":  # its numbers are attributes in the dialect
            operands = [self._number(values.pop(part), values["dtype"]) for part in found.operands]
        if "pad_width" in values:  # a pair for each axis
            values["pad_width"] = tuple(zip(values["pad_width"][::2], values["pad_width"][1::2], strict=True))
        said = {key: value for key, value in values.items() if key not in found.attrs and key not in PROMISES}
        lost = [key for key, value in said.items() if value not in (None, defaults[key].default)]
        check(not lost, op.relay_name, "attributes of the Relay language", ", ".join(lost))
        if found.is_variadic:
            fixed = len(found.operands) - 1
            operands = [*operands[:fixed], e.Tuple(operands[fixed:])]
        return call(op.relay_name, operands, {k: v for k, v in values.items() if k in found.attrs})

    def _number(self, value: Any, dtype: str) -> e.Expr:
        if isinstance(value, Dim):
            value = self._sizes.expression(value)
        return call("cast", [value], {"dtype": dtype}) if isinstance(value, e.Expr) else const(value, dtype)

    def _loop(self, op: While, init: e.Expr) -> e.Expr:
        """A loop as a function that calls itself last."""
        argument = op.body(1).arguments[0]
        loop, carried = e.Var("while_loop"), e.Var("carried", self._type(argument))
        self._values.update({argument: carried, op.body(0).arguments[0]: carried})
        cond, step = self._block(op.body(0))[0], self._block(op.body(1))[0]
        return e.Let(loop, e.Function([carried], e.If(cond, e.Call(loop, [step]), carried)), e.Call(loop, [init]))

    def _group(self, op: Fused) -> e.Expr:
        """A fusion group as a call of a function of its captured values."""
        outside = dict(self._values)
        read = [v for v in op.captured() if not _is_number(outside[v])]
        params = [e.Var(f"p{i}", self._type(v)) for i, v in enumerate(read)]
        self._values.update(zip(read, params, strict=True))
        body = self._block(op.body())[0]
        self._values.update(outside)
        attrs: dict[str, Any] = {"Primitive": 1}
        attrs |= {} if op.composite is None else {"Composite": op.composite}
        attrs |= {} if op.compiler is None else {"Compiler": op.compiler}
        return e.Call(e.Function(params, body, None, None, attrs), [outside[v] for v in read])


def _is_number(expr: e.Expr) -> bool:
    return isinstance(expr, e.Constant) and expr.data.size == 1
