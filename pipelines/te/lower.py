"""relay -> te: functions of fusion groups become kernels (see te.kernel), and the functions of the program sequences of calls.

What such a function holds in the te stage: `relay.constant` with the key of a parameter (in its te type), calls of kernels and of other
functions, `tensor.expand_shape` and `tensor.collapse_shape` for reshapes, `scf.if` and `scf.while` for branches and loops, and the return.
Tuples are gone: their fields are values of their own. A private function of the program has the unit attribute `relay.program`, which
tells it from kernels. Declarations of packed functions (`relay.packed`) and of functions of the tir stage (`relay.tir`), and functions
written in the te and tir stages themselves (`relay.stage`), are taken over.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from relayc.dialects.functions import is_public, signature_of, symbol_name
from relayc.dialects.mlir import arith, func, ir, scf, tensor
from relayc.dialects.relay.base import Op, RelayError
from relayc.dialects.relay.elements import dense_array
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.structure import Constant, If, TupleGetItem, While
from relayc.dialects.relay.types import TensorType, TupleType, flat_types, relay_type, type_of
from relayc.pipelines.passes import functions
from relayc.pipelines.te import core
from relayc.pipelines.te.kernel import lower_kernel, record_types, te_type

Values: TypeAlias = list[ir.Value]


def te_dtype(dtype: str) -> str:
    """Name of the signless dtype that stands for `dtype` in the te stage and in memory: uint8 and bool are int8."""
    return "int8" if dtype == "bool" else dtype.replace("uint", "int")


def te_array(array: np.ndarray) -> np.ndarray:
    """`array` under its te dtype, the same bytes."""
    name = te_dtype(array.dtype.name)
    return array if name == array.dtype.name else array.view(name)


def lower_module(mod: IRModule) -> IRModule:
    """Lowers a fused relay module to a new te module, with its own parameter table.

    Raises:
      RelayError: an operation of a function is none of those that a fused program has; a shape is not known; an operator has no rule.
    """
    params = {key: te_array(array) for key, array in mod.params.items()}
    out = IRModule(ir.Module.create(ir.Location.unknown(mod.context)), params)
    callees = {}
    with mod.context, ir.Location.unknown():
        for op in mod.module.body.operations:
            if not _has_relay_body(op.operation):
                callee = _take_over(op.operation, out)
                if callee is not None:
                    callees[symbol_name(op)] = callee
        for function in functions(mod):
            if "relay.primitive" in function.attributes:
                lower_kernel(function, out.module)
            else:
                _Program(function, out, callees).lower()
    return out


def _has_relay_body(function: ir.Operation) -> bool:
    return len(function.regions[0].blocks) > 0 and "relay.stage" not in function.attributes


def _flat(types: Sequence[ir.Type]) -> list[TensorType]:
    return [leaf for type_ in types for leaf in flat_types(relay_type(type_))]


def _signature(function: ir.Operation) -> tuple[list[TensorType], list[TensorType]]:
    """The tensors that a function takes and gives."""
    type_ = signature_of(function)
    return _flat(type_.inputs), _flat(type_.results)


def _take_over(function: ir.Operation, out: IRModule) -> str | None:
    """Copies a function of a later stage, or a declaration, into the te module; gives the name that calls of it use there."""
    if "relay.stage" in function.attributes:
        with ir.InsertionPoint(out.module.body):
            function.clone()
        return None
    name = symbol_name(function)
    if "relay.te" in function.attributes:
        return ir.FlatSymbolRefAttr(function.attributes["relay.te"]).value
    inputs, outputs = _signature(function)
    types = tuple([te_type(t, f"@{name}") for t in part] for part in (inputs, outputs))
    with ir.InsertionPoint(out.module.body), function.location:
        declared = func.FuncOp(name, types, visibility="private")
    for key in ("relay.packed", "relay.tir"):
        if key in function.attributes:
            declared.attributes[key] = function.attributes[key]
            break
    else:
        raise RelayError(f"@{name}: expected a function with a body, or one that is packed, found a declaration of neither")
    record_types(declared, inputs, outputs)
    return name


class _Program:
    """One function of the program on its way to the te stage."""

    def __init__(self, function: ir.Operation, out: IRModule, callees: dict[str, str]) -> None:
        self.source, self.out, self.callees = function, out, callees
        self.values: dict[ir.Value, Values] = {}
        """The tensors of a value of the relay stage: one, or those in a tuple."""

    def lower(self) -> None:
        block = self.source.regions[0].blocks[0]
        name = symbol_name(self.source)
        inputs, outputs = _signature(self.source)
        types = [te_type(t, "argument") for t in inputs], [te_type(t, "result") for t in outputs]
        is_private = not is_public(self.source)
        with ir.InsertionPoint(self.out.module.body), self.source.location:
            function = func.FuncOp(name, types, visibility="private" if is_private else None)
        if is_private:
            function.attributes["relay.program"] = ir.UnitAttr.get()
        for attribute in ("relay.inputs", "relay.outputs"):
            if attribute in self.source.attributes:
                function.attributes[attribute] = self.source.attributes[attribute]
        self._name_tensors(function)
        record_types(function, inputs, outputs)
        body = function.add_entry_block()
        self._enter(block.arguments, list(body.arguments))
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
            function.attributes[key] = ir.ArrayAttr.get(named)

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
        made = Constant(value=ir.StringAttr.get(key), shape=type_.shape, dtype=te_dtype(type_.dtype))
        self.values[op.result] = [made.result]

    def _view(self, operation: ir.Operation) -> None:
        data, result = operation.operands[0], operation.results[0]
        self.values[result] = [core.reshape(self.values[data][0], core.te_type(TensorType.of(result)).shape)]

    def _enter_field(self, op: TupleGetItem) -> None:
        type_ = relay_type(op.data.type)
        assert isinstance(type_, TupleType)  # by the type relation
        fields = type_.fields
        at = sum(len(flat_types(field)) for field in fields[: op.index])
        self.values[op.result] = self.values[op.data][at : at + len(flat_types(fields[op.index]))]

    def _call(self, op: func.CallOp) -> None:
        name = op.callee.value
        types = [core.te_type(t) for t in _flat([r.type for r in op.operation.results])]
        target = ir.FlatSymbolRefAttr.get(self.callees.get(name, name))
        made = func.CallOp(types, target, self._tensors(op.operation.operands))
        self._enter(op.operation.results, list(made.results))

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
