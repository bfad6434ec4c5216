"""Functions of the program: what stands in a function of the relay stage, as calls, branches and loops over tensors."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from relayc.dialects.functions import is_public, signature_of, symbol_name, value_attributes
from relayc.dialects.mlir import arith, func, ir, scf, tensor
from relayc.dialects.relay.base import Op, RelayError
from relayc.dialects.relay.elements import dense_array
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.structure import Constant, If, TupleGetItem, While
from relayc.dialects.relay.types import TensorType, TupleType, flat_types, relay_type, type_of
from relayc.pipelines.sizes import function_sizes, size_value, tensor_count
from relayc.pipelines.te import core
from relayc.pipelines.te.signature import flat_tensors, needed_symbols, te_array, te_dtype, te_function
from relayc.symbolic import Size, is_name, symbol

Values: TypeAlias = list[ir.Value]


def lower_program(function: ir.Operation, out: IRModule, callees: Mapping[str, str], functions: Mapping[str, ir.Operation]) -> None:
    """Lowers a function to the end of a te module.

    Args:
      callees: the names that some functions have there.
      functions: those of the relay stage that have bodies, by name.

    Raises RelayError for an operation that is none of those that an outlined program has, and for a shape that is not known.
    """
    _Program(function, out, callees, functions).lower()


class _Program:
    """One function of the program on its way to the te stage."""

    def __init__(self, function: ir.Operation, out: IRModule, callees: Mapping[str, str], functions: Mapping[str, ir.Operation]) -> None:
        self.source, self.out, self.callees, self.functions = function, out, callees, functions
        self.values: dict[ir.Value, Values] = {}
        """The tensors of a value of the relay stage: one, or those in a tuple."""

    def lower(self) -> None:
        block = self.source.regions[0].blocks[0]
        is_private = not is_public(self.source)
        with ir.InsertionPoint(self.out.module.body):
            function = te_function(symbol_name(self.source), self.source, ("argument", "result"), "private" if is_private else None)
        if is_private:
            function.attributes["relay.program"] = ir.UnitAttr.get()
        for attribute in ("relay.inputs", "relay.outputs"):
            if attribute in self.source.attributes:
                function.attributes[attribute] = self.source.attributes[attribute]
        self._name_tensors(function)
        body = function.add_entry_block()
        self._enter(block.arguments, list(body.arguments)[: tensor_count(function)])
        with function_sizes(function):
            self._operations(block, body)

    def _name_tensors(self, function: func.FuncOp) -> None:
        """Carries the names of arguments and results over; the tensors of a tuple get a number each."""
        type_ = signature_of(self.source)
        for key, types in (("arg_attrs", type_.inputs), ("res_attrs", type_.results)):
            if key not in self.source.attributes:
                continue
            named = []
            for attributes, value in zip(ir.ArrayAttr(self.source.attributes[key]), types, strict=True):
                flat = flat_types(relay_type(value))
                named += [attributes] if isinstance(relay_type(value), TensorType) else _numbered(ir.DictAttr(attributes), len(flat))
            symbols = value_attributes(function)[len(named) :] if key == "arg_attrs" else []
            function.attributes[key] = ir.ArrayAttr.get([*named, *symbols])

    def _enter(self, values: Sequence[ir.Value], tensors: Values) -> None:
        """Notes which tensors stand for which values, in order."""
        at = 0
        for value in values:
            count = len(flat_types(type_of(value)))
            self.values[value] = tensors[at : at + count]
            at += count

    def _tensors(self, values: Sequence[ir.Value]) -> Values:
        return [tensor for value in values for tensor in self.values[value]]

    def _operations(self, block: ir.Block, into: ir.Block) -> None:
        for op in block.operations:
            with ir.InsertionPoint(into), op.operation.location:
                self._lower(op)

    def _lower(self, op: ir.OpView) -> None:
        operation = op.operation
        if isinstance(op, Constant):
            self._constant(op)
        elif isinstance(op, If):
            self._branch(op)
        elif isinstance(op, While):
            self._loop(op)
        elif isinstance(op, TupleGetItem):
            self._enter_field(op)
        elif operation.name == "builtin.unrealized_conversion_cast":
            self.values[operation.results[0]] = self._tensors(operation.operands)
        elif isinstance(op, Op) and op.is_view:
            self._view(operation)
        elif isinstance(op, func.CallOp):
            self._call(op)
        elif operation.name == "relay.yield":
            pass  # the branch or loop around it ends its own regions
        elif operation.name == "func.return":
            func.ReturnOp(self._tensors(operation.operands))
        else:
            where = f"{operation.name} at {operation.location}"
            raise RelayError(f"{where}: expected constants, reshapes, calls, branches and loops (run fuse-ops and outline-groups first)")

    def _constant(self, op: Constant) -> None:
        key = op.key if op.key is not None else self.out.add_param(te_array(dense_array(op.attributes["value"])))
        type_ = TensorType.of(op.result)
        made = Constant(value=ir.StringAttr.get(key), shape=type_.static_shape, dtype=te_dtype(type_.dtype))
        self.values[op.result] = [made.result]

    def _view(self, operation: ir.Operation) -> None:
        data, result = operation.operands[0], operation.results[0]
        self.values[result] = [core.reshape(self.values[data][0], TensorType.of(result).sizes)]

    def _enter_field(self, op: TupleGetItem) -> None:
        type_ = relay_type(op.data.type)
        assert isinstance(type_, TupleType)  # by the type relation
        fields = type_.fields
        at = sum(len(flat_types(field)) for field in fields[: op.index])
        self.values[op.result] = self.values[op.data][at : at + len(flat_types(fields[op.index]))]

    def _call(self, op: func.CallOp) -> None:
        name = op.callee.value
        types = [core.te_type(t) for t in flat_tensors([r.type for r in op.operation.results])]
        target = ir.FlatSymbolRefAttr.get(self.callees.get(name, name))
        sizes = [size_value(size) for size in self._sizes_for(op)]
        made = func.CallOp(types, target, [*self._tensors(op.operation.operands), *sizes])
        self._enter(op.operation.results, list(made.results))

    def _sizes_for(self, op: func.CallOp) -> list[Size]:
        """What the symbols of a function that is called are here, in the order in which it takes them."""
        callee = self.functions.get(op.callee.value)
        if callee is None:
            return []
        bound: dict[str, Size] = {}
        inputs = signature_of(callee).inputs
        for pattern, value in zip(flat_tensors(inputs), flat_tensors([v.type for v in op.operation.operands]), strict=True):
            for mine, theirs in zip(pattern.sizes, value.sizes, strict=True):
                if is_name(str(mine)):
                    bound.setdefault(str(mine), theirs)
        return [bound.get(name, symbol(name)) for name in needed_symbols(callee)]

    # ---- control flow

    def _branch(self, op: If) -> None:
        types = [core.te_type(t) for t in flat_types(type_of(op.operation.results[0]))]
        made = scf.IfOp(self._truth(op.operation.operands[0]), types, has_else=True)
        for i, block in enumerate((made.then_block, made.else_block)):
            self._operations(op.body(i), block)
            with ir.InsertionPoint(block):
                scf.YieldOp(self.values[op.yielded(i)])
        self.values[op.operation.results[0]] = list(made.results)

    def _loop(self, op: While) -> None:
        carried = self.values[op.operation.operands[0]]
        types = [v.type for v in carried]
        made = scf.WhileOp(types, carried)
        for i, region in enumerate((made.before, made.after)):
            block = region.blocks.append(*types)
            self.values[op.body(i).arguments[0]] = list(block.arguments)
            self._operations(op.body(i), block)
            with ir.InsertionPoint(block):
                if i == 0:
                    scf.ConditionOp(self._truth(op.yielded(0)), list(block.arguments))
                else:
                    scf.YieldOp(self.values[op.yielded(1)])
        self.values[op.operation.results[0]] = list(made.results)

    def _truth(self, value: ir.Value) -> ir.Value:
        """A scalar bool of the relay stage as an i1."""
        element = tensor.ExtractOp(self.values[value][0], []).result
        return arith.TruncIOp(ir.IntegerType.get_signless(1), element).result


def _numbered(attributes: ir.DictAttr, count: int) -> list[ir.DictAttr]:
    """The attributes of each tensor of a tuple: its name is the tuple's with a number."""
    if "relay.name" not in attributes:
        return [ir.DictAttr.get({})] * count
    name = ir.StringAttr(attributes["relay.name"]).value
    return [ir.DictAttr.get({"relay.name": ir.StringAttr.get(f"{name}.{i}")}) for i in range(count)]
