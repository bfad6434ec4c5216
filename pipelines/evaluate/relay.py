"""An interpreter of the relay stage on numpy arrays: branches, loops, calls and groups as they are built, operators by their compute rules.

What an operator means is its compute rule (pipelines.te), which the interpreter of te runs for it alone; but numpy sorts. Arrays have the
dtypes of the te stage, in which integers are signed and a bool is a byte.
"""

from collections.abc import Mapping, MutableMapping, Sequence

import numpy as np

from relayc.dialects.discardable import BINDINGS, PRIMITIVE, TE
from relayc.dialects.functions import signature_of, symbol_name, symbols_of
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.calls import stated_bindings
from relayc.dialects.relay.elements import dense_array
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.indexing import CheckIndex
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.scopes import conditions_of, defined_by, is_cast, symbols_in
from relayc.dialects.relay.sizes import CheckSizes, DefineSizes, MatchShape
from relayc.dialects.relay.sort import ArgSort, Sort, TopK
from relayc.dialects.relay.structure import Constant, Fused, If, TupleGetItem, While
from relayc.dialects.relay.types import RelayType, TensorType, TupleType, flat_types, numpy_dtype, relay_type, type_of
from relayc.dialects.relay.unify import match, substitute_type
from relayc.pipelines.emission.sizes import function_sizes, symbol_attributes
from relayc.pipelines.evaluate import te
from relayc.pipelines.evaluate.errors import Refused, Unknown
from relayc.pipelines.te.rules import core
from relayc.pipelines.te.rules.literal import literal
from relayc.pipelines.te.signature import flat_tensors, te_array
from relayc.symbolic import Size, evaluate

Array = np.ndarray
Values = dict[ir.Value, list[Array]]
"""The tensors of each value: one, or those in a tuple."""
Sizes = dict[str, int]

Operators = MutableMapping[tuple, te.TeInterpreter]
"""Interpreters of operators, by the text of the operator."""

_HOLDS = {"eq": int.__eq__, "ge": int.__ge__, "le": int.__le__}


class RelayInterpreter:
    """The functions of a module of the relay stage.

    Args:
      mod: the module; it must not change while it is interpreted.
      operators: the interpreters of operators that other programs have created; this one adds its own.
    """

    def __init__(self, mod: IRModule, operators: Operators | None = None) -> None:
        self.mod, self._operators = mod, operators if operators is not None else {}
        self._functions = symbols_of(mod.module)
        self._params = {key: te_array(array) for key, array in mod.params.items()}
        self._staged = te.TeInterpreter(mod.module)
        self._conditions: dict[ir.Operation, list[tuple[Size, str]]] = {}

    def __call__(self, name: str, arrays: Sequence[Array], sizes: Mapping[str, int] | None = None) -> list[Array]:
        """The results of a function, with tuples flattened. Arguments and errors are the same as for te.TeInterpreter."""
        with self.mod.context, self.mod.ranges, ir.Location.unknown(), np.errstate(all="ignore"):
            return self._function(self._functions[name], list(arrays), dict(sizes or {}))

    def _function(self, function: ir.OpView, arrays: list[Array], sizes: Sizes) -> list[Array]:
        signature = signature_of(function)
        if not len(function.regions[0].blocks):
            if not TE.on(function):
                raise Unknown(f"@{symbol_name(function)}: a packed function, or one of the tir stage")
            return self._staged(TE.of(function), arrays)
        if not PRIMITIVE.on(function):
            sizes = sizes | bound_sizes([relay_type(t) for t in signature.inputs], arrays, "arguments", {})
        block, values = function.regions[0].blocks[0], Values()
        _enter(values, block.arguments, arrays)
        return self._block(block, values, sizes)

    def _block(self, block: ir.Block, values: Values, sizes: Sizes) -> list[Array]:
        """Runs the operations of a block, and returns the operands of its terminator."""
        *operations, last = block.operations
        for op in operations:
            operands = [array for v in op.operation.operands for array in values[v]]
            for size, text in self._demands(op):
                if evaluate(size, sizes) < 0:
                    raise Refused(text)
            results = list(op.operation.results)
            _enter(values, results, self._operation(op, operands, values, sizes))
            if defined_by(op, sizes):
                own = [r for r in results if not (isinstance(op, func.CallOp) and is_cast(r))]
                sizes |= bound_sizes([type_of(r) for r in own], [a for r in own for a in values[r]], op.operation.name, sizes)
        return [array for v in last.operation.operands for array in values[v]]

    def _demands(self, op: ir.OpView) -> list[tuple[Size, str]]:
        """The conditions under which an operator is defined at given sizes."""
        if not isinstance(op, Op) or len(op.operation.regions) or op.is_structure:
            return []
        found = self._conditions.get(op.operation)
        if found is None:
            found = self._conditions[op.operation] = [(c.size, c.text) for c in conditions_of(op)]
        return found

    def _operation(self, op: ir.OpView, operands: list[Array], values: Values, sizes: Sizes) -> list[Array]:
        if isinstance(op, Constant):
            return [self._params[op.key] if op.key is not None else te_array(dense_array(op.attributes["value"]))]
        if isinstance(op, Fused):
            return self._block(op.body(), values, sizes)
        if isinstance(op, If):
            return self._block(op.body(0 if operands[0] else 1), values, dict(sizes))
        if isinstance(op, While):
            return self._loop(op, operands, values, sizes)
        if isinstance(op, TupleGetItem):
            type_ = relay_type(op.data.type)
            assert isinstance(type_, TupleType)
            counts = [len(flat_types(field)) for field in type_.fields]
            first = sum(counts[: op.index])
            return operands[first : first + counts[op.index]]
        if isinstance(op, func.CallOp):
            return self._call(op, operands, sizes)
        if isinstance(op, DefineSizes):
            sizes |= dict(zip(op.names, operands[0].reshape(-1).tolist(), strict=True))
            for name in op.names:
                known = self.mod.ranges.of(name)
                if not known.low <= sizes[name] <= known.high:
                    raise Refused(f"{op.source()}: {name}: expected {known.low} to {known.high}, found {sizes[name]}")
            return []
        if isinstance(op, CheckSizes):
            if not _HOLDS[op.predicate](evaluate(op.found, sizes), evaluate(op.expected, sizes)):
                raise Refused(f"{op.source()}: {op.message}")
            return []
        if isinstance(op, CheckIndex):
            size = evaluate(op.size, sizes)
            if not -size <= int(operands[0]) <= max(size - 1, 0):
                raise Refused(f"{op.source()}: index {int(operands[0])} into {op.what}: expected -{size} to {size - 1}")
            return []
        if isinstance(op, MatchShape):
            bound_sizes([type_of(op.result)], operands, op.source(), sizes)
            return operands
        if not isinstance(op, Op):  # tuples are created by a cast
            return operands
        if op.is_view:
            cast = op.operation.name == "relay.cast_shape"
            return operands if cast else [operands[0].reshape([evaluate(d, sizes) for d in TensorType.of(op.operation.results[0]).sizes])]
        return self._operator(op, operands, sizes)

    def _loop(self, op: While, carried: list[Array], values: Values, sizes: Sizes) -> list[Array]:
        def run(region: int) -> list[Array]:
            argument = op.body(region).arguments[0]
            values[argument] = carried
            return self._block(op.body(region), values, sizes | bound_sizes([type_of(argument)], carried, op.source(), sizes))

        while run(0)[0]:
            carried = run(1)
        return carried

    def _call(self, op: func.CallOp, operands: list[Array], sizes: Sizes) -> list[Array]:
        callee = self._functions[op.callee.value]
        given: Sizes = dict(sizes) if PRIMITIVE.on(callee) else {}
        if BINDINGS.on(op):
            given |= {name: evaluate(size, sizes) for name, size in (stated_bindings(op) or {}).items()}
        return self._function(callee, operands, given)

    def _operator(self, op: Op, operands: list[Array], sizes: Sizes) -> list[Array]:
        operation = op.operation
        if isinstance(op, Sort | ArgSort | TopK):
            return _sorted(op, operands[0], sizes)
        _check_indices(op, operands)
        types = [str(v.type) for v in (*operation.operands, *operation.results)]
        attributes = [f"{name} = {value}" for name, value in operation.attributes.items()]
        # A compute rule may know the number that an operand repeats.
        numbers = [str(literal(op, i)) for i in range(len(operation.operands))]
        key = (operation.name, *attributes, *types, *numbers)
        program = self._operators.get(key)
        if program is None:
            program = self._operators[key] = _rule(op)
        return program("operator", operands, sizes)


def _check_indices(op: Op, operands: Sequence[Array]) -> None:
    """Raises Refused for an index out of range, of which an operator promises nothing (see graph.check_indices)."""
    for position, axis in enumerate(op.checked_axes):
        data, indices = operands[:2]
        size, read = (data.size if axis is None else data.shape[axis]), indices[position] if len(op.checked_axes) > 1 else indices
        if read.size and (read.min() < -size or read.max() >= max(size, 1)):
            raise Refused(f"{op.source()}: expected indices of {-size} to {size - 1}, found {read.min()} to {read.max()}")


def _sorted(op: Sort | ArgSort | TopK, data: Array, sizes: Sizes) -> list[Array]:
    """Sorts lines: the merges of the compute rule would take minutes, element by element."""
    type_, axis = TensorType.of(op.operation.operands[0]), op.axis % data.ndim
    keys = data.view(numpy_dtype(type_.dtype))
    keys = keys.astype(np.float64) if type_.is_float else keys
    if op.is_ascend:
        order = np.argsort(keys, axis, kind="stable")
    else:
        order = data.shape[axis] - 1 - np.flip(np.argsort(np.flip(keys, axis), axis, kind="stable"), axis)
    if isinstance(op, TopK) and (count := evaluate(op.k, sizes)) >= 1:
        order = order.take(range(count), axis)
    values = np.take_along_axis(data, order, axis)
    if isinstance(op, Sort):
        return [values]
    indices = te_array(order.astype(numpy_dtype(op.dtype)))
    wanted = op.ret_type if isinstance(op, TopK) else "indices"
    return [array for name, array in (("values", values), ("indices", indices)) if wanted in ("both", name)]


def _rule(op: Op) -> te.TeInterpreter:
    """The compute rule of an operator as a function of the te stage."""
    tensors = flat_tensors([v.type for v in op.operation.operands])
    symbols = sorted(symbols_in(op).union(*(t.symbols for t in tensors)))
    module = ir.Module.create(op.location)
    inputs = [*map(core.te_type, tensors), *[ir.IndexType.get()] * len(symbols)]
    results = [core.te_type(t) for t in flat_tensors([r.type for r in op.operation.results])]
    with ir.InsertionPoint(module.body):
        function = func.FuncOp("operator", (inputs, results))
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([*[ir.DictAttr.get({})] * len(tensors), *symbol_attributes(symbols)])
    block = function.add_entry_block()
    with ir.InsertionPoint(block), function_sizes(function):
        func.ReturnOp(core.lower(op, list(block.arguments)[: len(tensors)]))
    return te.TeInterpreter(module)


def _enter(values: Values, entered: Sequence[ir.Value], arrays: Sequence[Array]) -> None:
    left = iter(arrays)
    for value in entered:
        values[value] = [next(left) for _ in flat_types(type_of(value))]


def bound_sizes(types: Sequence[RelayType], arrays: Sequence[Array], what: str, sizes: Mapping[str, int]) -> Sizes:
    """The values of symbols in types, determined from arrays; some may be known before. Raises Refused if there is no solution."""
    tensors = [t for type_ in types for t in flat_types(substitute_type(type_, sizes))]
    actual = [TensorType(array.shape, t.dtype) for t, array in zip(tensors, arrays, strict=True)]
    try:
        return {name: int(size) for name, size in match(tensors, actual, what).items()}
    except RelayError as error:
        raise Refused(str(error)) from None
