"""`create_prim_func`: tensors as a function of the te stage, or, with packed functions in between, as a program of kernels."""

import re
from collections.abc import Iterable, Sequence

from relayc.dialects.discardable import INPUT_DTYPES, NAME, OUTPUT_DTYPES, PACKED, STAGE, SYMBOL
from relayc.dialects.functions import Names, signature_of
from relayc.dialects.mlir import func, ir, make_context
from relayc.dialects.relay.errors import check
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.emission.sizes import function_sizes, size_value, symbol_attributes
from relayc.pipelines.te.language.expressions import Var
from relayc.pipelines.te.language.graph import emit_operations, in_order, symbols_in, tensor_name, unique_names
from relayc.pipelines.te.language.tensors import ComputeOp, ExternOp, Operation, PlaceholderOp, Tensor
from relayc.pipelines.te.rules.core import Value, te_type
from relayc.symbolic import symbol


def create_prim_func(ops: "Sequence[Tensor | Var] | Tensor", name: str = "main", context: ir.Context | None = None) -> IRModule:
    """A module of the te stage with a function that computes tensors, for `relayc.compile_kernel` and `relayc.compile`.

    If the computations include a packed function (`extern`), the function is a program that calls private kernels and declarations of
    packed functions, for `relayc.compile`.

    Args:
      ops: the function's arguments, which are placeholders, and its results, which are not; each in the order given. The values of `var`
        follow from the shapes of the arguments: one may be listed, but is not an argument.
      name: of the function.
      context: of the module; by default a new one.

    Raises:
      RelayError: a placeholder that a result needs is missing in `ops`; a duplicate tensor; no result.
    """
    given = [ops] if isinstance(ops, Tensor) else list(ops)
    what = f"te.create_prim_func {name}"
    for i, t in enumerate(given):
        check(isinstance(t, (Tensor, Var)), what, "tensors", repr(t))
        check(not any(t is other for other in given[:i]), what, "each tensor once", f"{getattr(t, 'name', t)} twice")
    tensors = [t for t in given if isinstance(t, Tensor)]
    arguments = [t for t in tensors if isinstance(t.op, PlaceholderOp)]
    results = [t for t in tensors if not isinstance(t.op, PlaceholderOp)]
    check(len(results) > 0, what, "a tensor that is computed among its arguments", ", ".join(t.name for t in tensors) or "none")
    operations = in_order(results)
    for op in operations:
        missing = isinstance(op, PlaceholderOp) and not any(op is t.op for t in arguments)
        check(not missing, what, f"the placeholder {op.name} among its arguments", ", ".join(t.name for t in tensors))
    names = unique_names([*(t.op for t in arguments), *(op for op in operations if not isinstance(op, PlaceholderOp))])
    mod = IRModule(ir.Module.create(ir.Location.unknown(context or make_context())))
    with mod.context, ir.Location.unknown(), mod.ranges:
        STAGE.put(mod.module.operation, "te")
        builder = _Builder(mod.module, names)
        if any(isinstance(op, ExternOp) for op in operations):
            builder.program(name, operations, arguments, results)
        else:
            builder.function(name, operations, arguments, results, visibility=None)
    return mod


class _Builder:
    """Builds functions over tensors at the end of a module."""

    def __init__(self, module: ir.Module, names: dict[int, str]) -> None:
        self.module, self.names = module, names

    def declare(
        self, name: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], symbols: Sequence[str], visibility: str | None
    ) -> func.FuncOp:
        """A function without a body. Its last arguments are the values of symbols."""
        index = ir.IndexType.get()
        types = [[te_type(t.type) for t in part] for part in (inputs, outputs)]
        with ir.InsertionPoint(self.module.body):
            function = func.FuncOp(name, ([*types[0], *[index] * len(symbols)], types[1]), visibility=visibility)
        for dtypes, part in ((INPUT_DTYPES, inputs), (OUTPUT_DTYPES, outputs)):
            dtypes.put(function, tuple(t.dtype for t in part))
        arguments, results = ([ir.DictAttr.get(self._name(t)) for t in part] for part in (inputs, outputs))
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([*arguments, *symbol_attributes(symbols)])
        function.attributes["res_attrs"] = ir.ArrayAttr.get(results)
        return function

    def _name(self, tensor: Tensor) -> dict[str, ir.Attribute]:
        return NAME.entry(tensor_name(tensor, self.names))

    def function(
        self, name: str, operations: Sequence[Operation], inputs: Sequence[Tensor], outputs: Sequence[Tensor], visibility: str | None
    ) -> func.FuncOp:
        """A function that computes operations."""
        symbols = sorted(symbols_in([*operations, *(t.op for t in inputs)]))
        function = self.declare(name, inputs, outputs, symbols, visibility)
        block = function.add_entry_block()
        values: dict[int, Value] = {id(t): block.arguments[i] for i, t in enumerate(inputs)}
        with ir.InsertionPoint(block), function_sizes(function):
            emit_operations(operations, values, self.names)
            func.ReturnOp([values[id(t)] for t in outputs])
        return function

    def program(self, name: str, operations: Sequence[Operation], inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        """A program of kernels and packed functions. Computations at the same depth, in packed functions, form one kernel."""
        levels = _levels(operations)
        callees = Names(self.module)
        callees.free(name)
        steps: list[tuple[func.FuncOp, list[Tensor], list[Tensor]]] = []
        for level in range(max(levels.values()) + 1):
            members = [op for op in operations if isinstance(op, ComputeOp) and levels[id(op)] == level]
            if members:
                taken, made = _boundary(members, operations, outputs)
                kernel = callees.free(f"{name}_{self.names[id(made[0].op)]}")
                steps.append((self.function(kernel, members, taken, made, "private"), taken, made))
            for op in operations:
                if isinstance(op, ExternOp) and levels[id(op)] == level:
                    steps.append((self._packed(op, callees), op.inputs, list(op.tensors)))
        symbols = sorted(symbols_in([*operations, *(t.op for t in inputs)]))
        function = self.declare(name, inputs, outputs, symbols, None)
        block = function.add_entry_block()
        values: dict[int, Value] = {id(t): block.arguments[i] for i, t in enumerate(inputs)}
        with ir.InsertionPoint(block), function_sizes(function):
            for callee, taken, made in steps:
                with ir.Location.name(self.names[id(made[0].op)]):
                    self._call(callee, taken, made, values)
            func.ReturnOp([values[id(t)] for t in outputs])

    def _packed(self, op: ExternOp, callees: Names) -> func.FuncOp:
        """The declaration of a packed function, created once for each type."""
        symbols = sorted(symbols_in([op]))
        made = self.declare(callees.free(re.sub(r"\W", "_", op.packed)), op.inputs, op.tensors, symbols, "private")
        PACKED.put(made, op.packed)
        return made

    def _call(self, callee: func.FuncOp, taken: Sequence[Tensor], made: Sequence[Tensor], values: dict[int, Value]) -> None:
        signature = signature_of(callee)
        attributes = [ir.DictAttr(a) for a in callee.attributes["arg_attrs"]] if "arg_attrs" in callee.attributes else []
        sizes = [size_value(symbol(SYMBOL.of(a))) for a in attributes if SYMBOL.on(a)]
        operands = [*(values[id(t)] for t in taken), *sizes]
        found = func.CallOp(list(signature.results), ir.FlatSymbolRefAttr.get(callee.name.value), operands).results
        values.update({id(t): value for t, value in zip(made, found, strict=True)})


def _levels(operations: Iterable[Operation]) -> dict[int, int]:
    """The depth of each operation, by its id: the number of packed functions in sequence before it."""
    levels: dict[int, int] = {}
    for op in operations:
        before = [levels[id(t.op)] + (isinstance(t.op, ExternOp) and isinstance(op, ComputeOp)) for t in op.input_tensors]
        levels[id(op)] = max(before, default=0)
    return levels


def _boundary(
    members: Sequence[Operation], operations: Sequence[Operation], outputs: Sequence[Tensor]
) -> tuple[list[Tensor], list[Tensor]]:
    """The inputs of a set of operations from outside, and the outputs used outside."""
    inside = {id(op) for op in members}
    taken = {id(t): t for op in members for t in op.input_tensors if id(t.op) not in inside}
    used = {id(t) for op in operations if id(op) not in inside for t in op.input_tensors} | {id(t) for t in outputs}
    return list(taken.values()), [t for op in members for t in op.tensors if id(t) in used]
