"""relay -> te: every fusion group becomes one private function of linalg operations, and `main` a sequence of calls.

What `main` holds in the te stage: `relay.constant` with the key of a parameter (in its te type), calls of kernels, `tensor.expand_shape`
and `tensor.collapse_shape` for reshapes, and the return. Groups with equal bodies share one kernel. A kernel carries what it came from:
`relay.ops` and `relay.sources` (string arrays); an argument that is a parameter at every call has the unit attribute `relay.param`, which
lets a schedule ask for it in another layout.
"""

import hashlib
import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.base import Op, RelayError
from relayc.dialects.relay.module import IRModule, dense_array
from relayc.dialects.relay.structure import Constant, Fused, TupleGetItem, Yield
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te import core, scalar

VIEWS = frozenset({"reshape"})
"""Operators that are views of their first operand in memory and need no kernel."""


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
      RelayError: an operation in main is neither a constant, a fusion group nor a view; a shape is not known; an operator has no rule.
    """
    return _ModuleLowering(mod).run()


class _ModuleLowering:
    def __init__(self, mod: IRModule) -> None:
        self.source = mod
        params = {key: te_array(array) for key, array in mod.params.items()}
        self.out = IRModule(ir.Module.create(ir.Location.unknown(mod.context)), params)
        self.kernels: dict[bytes, str] = {}
        self.names: dict[str, int] = {}
        self.values: dict[ir.Value, ir.Value] = {}
        self.tuples: dict[ir.Value, list[ir.Value]] = {}
        self.params: set[ir.Value] = set()

    def run(self) -> IRModule:
        main = self.source.main
        block = main.regions[0].blocks[0]
        with self.source.context, ir.Location.unknown(), ir.InsertionPoint(self.out.module.body):
            inputs = [_te_type(a, "argument") for a in block.arguments]
            returned = block.operations[len(block.operations) - 1]
            outputs = [_te_type(v, "result") for v in returned.operands]
            entry = func.FuncOp("main", (inputs, outputs))
            for attribute in ("arg_attrs", "res_attrs", "relay.inputs", "relay.outputs"):
                if attribute in main.attributes:
                    entry.attributes[attribute] = main.attributes[attribute]
            _record_types(entry, [TensorType.of(a) for a in block.arguments], [TensorType.of(v) for v in returned.operands])
            body = entry.add_entry_block()
            self.values = dict(zip(block.arguments, body.arguments, strict=True))
            for op in block.operations:
                with ir.InsertionPoint(body), op.operation.location:
                    self.lower(op)
        return self.out

    def lower(self, op: ir.OpView) -> None:
        if isinstance(op, Constant):
            self.constant(op)
        elif isinstance(op, Fused):
            self.fused(op)
        elif isinstance(op, TupleGetItem) and op.operation.operands[0] in self.tuples:
            self.values[op.result] = self.tuples[op.operation.operands[0]][op.index]
        elif isinstance(op, Op) and type(op)._op_name in VIEWS:
            result = op.operation.results[0]
            self.values[result] = core.reshape(self.values[op.operation.operands[0]], core.te_type(TensorType.of(result)).shape)
            if op.operation.operands[0] in self.params:
                self.params.add(result)
        elif op.operation.name == "func.return":
            func.ReturnOp(self.returned(list(op.operation.operands)))
        else:
            where = f"{op.operation.name} at {op.operation.location}"
            raise RelayError(f"{where}: expected constants, fusion groups and reshapes in main (run fuse-ops first)")

    def constant(self, op: Constant) -> None:
        if self.is_literal(op.result) and all(use.owner.operation.block != op.operation.block for use in op.result.uses):
            return
        key = op.key if op.key is not None else self.out.add_param(te_array(dense_array(op.attributes["value"])))
        type_ = TensorType.of(op.result)
        made = Constant(value=ir.StringAttr.get(key), shape=type_.shape, dtype=te_dtype(type_.dtype))
        self.values[op.result] = made.result
        self.params.add(op.result)

    def returned(self, values: Sequence[ir.Value]) -> list[ir.Value]:
        """What main returns: a result is memory of its own, so an input, a parameter or a tensor returned twice is copied to it."""
        taken: set[ir.Value] = set()
        found = []
        for value in values:
            te_value = self.values[value]
            root = _viewed(te_value)
            if isinstance(root.owner, ir.Block) or root.owner.name != "func.call" or root in taken:
                te_value = root = self.copied(value, te_value)
            taken.add(root)
            found.append(te_value)
        return found

    def copied(self, value: ir.Value, te_value: ir.Value) -> ir.Value:
        """Calls a kernel that copies `te_value`, which stands for `value`."""
        type_, flag = TensorType.of(value), value in self.params
        key = f"copy {type_} {flag}".encode()
        if key not in self.kernels:
            function = self.function("fused_copy", [type_], [type_], [flag], ["copy"], ["result"])
            with ir.InsertionPoint(function.add_entry_block()):
                func.ReturnOp([core.parallel(type_, [function.arguments[0]], lambda x: x)])
            self.kernels[key] = ir.StringAttr(function.attributes["sym_name"]).value
        return func.CallOp([te_value.type], ir.FlatSymbolRefAttr.get(self.kernels[key]), [te_value]).results[0]

    def is_literal(self, value: ir.Value) -> bool:
        """Whether a value is a constant of one element, which kernels have as a literal."""
        type_ = TensorType.of(value)
        return type_.is_static and type_.num_elements == 1 and self.source.value_of(value) is not None

    def fused(self, op: Fused) -> None:
        if "compiler" in op.operation.attributes:
            name = ir.StringAttr(op.operation.attributes["compiler"]).value
            raise RelayError(f"relay.fused at {op.source()}: expected a code generator of the name {name!r} for the group, found none")
        body = list(op.operation.regions[0].blocks[0].operations)
        inside = {r for o in body for r in o.operation.results}
        used = dict.fromkeys(v for o in body for v in o.operation.operands if v not in inside)
        literals = {v: self.source.value_of(v) for v in used if self.is_literal(v)}
        operands = [v for v in used if v not in literals]
        results = _results(body)
        flags = tuple(v in self.params for v in operands)
        digest = hashlib.sha256(_text(body, operands, literals, flags).encode()).digest()
        name = self.kernels.get(digest)
        if name is None:
            name = self.kernels[digest] = self.kernel(op, body, operands, literals, results, flags)
        types = [core.te_type(TensorType.of(r)) for r in results]
        call = func.CallOp(types, ir.FlatSymbolRefAttr.get(name), [self.values[v] for v in operands])
        self.values[op.operation.results[0]] = call.results[0]
        if isinstance(op.operation.results[0].type, ir.TupleType):
            self.tuples[op.operation.results[0]] = list(call.results)

    def function(
        self,
        name: str,
        inputs: Sequence[TensorType],
        outputs: Sequence[TensorType],
        params: Sequence[bool],
        ops: Sequence[str],
        sources: Sequence[str],
    ) -> func.FuncOp:
        """Declares a kernel function under a name like `name`; `params` says which arguments are parameters."""
        name = self.unique(name)
        with ir.InsertionPoint.at_block_begin(self.out.module.body):
            function = func.FuncOp(name, ([core.te_type(t) for t in inputs], [core.te_type(t) for t in outputs]), visibility="private")
        function.attributes["relay.ops"] = _strings(ops)
        function.attributes["relay.sources"] = _strings(sources)
        unit = ir.UnitAttr.get()
        function.arg_attrs = [ir.DictAttr.get({"relay.param": unit} if flag else {}) for flag in params]
        _record_types(function, inputs, outputs)
        return function

    def kernel(
        self,
        op: Fused,
        body: Sequence[ir.OpView],
        operands: Sequence[ir.Value],
        literals: Mapping[ir.Value, np.ndarray],
        results: Sequence[ir.Value],
        param_flags: Sequence[bool],
    ) -> str:
        """Emits the kernel function of a fusion group and gives its name."""
        members = [o for o in body if isinstance(o, Op) and not isinstance(o, (Constant, Yield))]
        for v in (*operands, *results):
            _te_type(v, f"kernel of {op.source()}")
        function = self.function(
            "_".join(["fused", *(type(o)._op_name.removeprefix("nn_") for o in members)])[:80],
            [TensorType.of(v) for v in operands],
            [TensorType.of(v) for v in results],
            param_flags,
            [o.relay_name or type(o)._op_name for o in members],
            [o.source().strip('"') for o in members],
        )
        entry = function.add_entry_block()
        values = dict(zip(operands, entry.arguments, strict=True))
        with ir.InsertionPoint(entry):
            for value, array in literals.items():
                with value.owner.location:
                    values[value] = _literal(array)
        for member in body:
            with ir.InsertionPoint(entry), member.operation.location:
                if isinstance(member, Constant):
                    values[member.result] = _literal(dense_array(member.attributes["value"]))
                elif isinstance(member, Yield):
                    func.ReturnOp([values[v] for v in results])
                elif isinstance(member, Op):
                    found = core.lower(member, [values[v] for v in member.operation.operands])
                    values.update(zip(member.operation.results, found, strict=False))
        return ir.StringAttr(function.attributes["sym_name"]).value

    def unique(self, name: str) -> str:
        count = self.names.get(name, 0)
        self.names[name] = count + 1
        return f"{name}_{count}" if count else name


def _te_type(value: ir.Value, what: str) -> ir.RankedTensorType:
    try:
        return core.te_type(TensorType.of(value))
    except RelayError as e:
        raise RelayError(f"{what}: {e}") from None


def _record_types(function: func.FuncOp, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> None:
    # te tensors are signless: the element types that callers see are kept beside the signature.
    function.attributes["relay.input_dtypes"] = _strings(t.dtype for t in inputs)
    function.attributes["relay.output_dtypes"] = _strings(t.dtype for t in outputs)


def _viewed(value: ir.Value) -> ir.Value:
    """The value in whose memory `value` lies: what reshapes lead back to."""
    while not isinstance(value.owner, ir.Block) and value.owner.name in ("tensor.expand_shape", "tensor.collapse_shape"):
        value = value.owner.operands[0]
    return value


def _strings(values) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([ir.StringAttr.get(v) for v in values])


def _results(body: Sequence[ir.OpView]) -> list[ir.Value]:
    """The tensors that a group gives: what it yields, or the fields of the tuple that it yields."""
    value = body[-1].operation.operands[0]
    return list(value.owner.operands) if isinstance(value.type, ir.TupleType) else [value]


def _text(body: Sequence[ir.OpView], operands: Sequence[ir.Value], literals: Mapping[ir.Value, np.ndarray], flags: Sequence[bool]) -> str:
    """What a kernel is made from, as text that equal groups share: values are numbered in the order of first use."""
    number = itertools.count()
    names = {v: str(next(number)) for v in operands}
    names |= {v: f"{TensorType.of(v)} {array.tobytes()!r}" for v, array in literals.items()}
    lines = [f"{names[v]}: {v.type} {flag}" for v, flag in zip(operands, flags, strict=True)]
    for op in body:
        operation = op.operation
        used = ", ".join(names[v] for v in operation.operands)
        names |= {r: str(next(number)) for r in operation.results}
        attributes = sorted((name, str(operation.attributes[name])) for name in operation.attributes)
        lines.append(f"{operation.name}({used}) {attributes} -> {[str(r.type) for r in operation.results]}")
    return "\n".join(lines)


def _literal(array: np.ndarray) -> ir.Value:
    """A constant of one element that a fusion group uses: a splat of which every use broadcasts."""
    type_ = TensorType.of_array(array)
    return core.parallel(type_, [], lambda: scalar.constant(array.flat[0].item(), type_.dtype), [])
