"""Functions of the program: lowers a function of the relay stage to calls, branches and loops over tensors."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

from relayc.dialects.discardable import BINDINGS, KNOWN_AS, NAME, PACKED, PRIMITIVE, PROGRAM, SIZES, SYMBOL, copy_discardable
from relayc.dialects.functions import is_public, signature_of, symbol_name, value_attributes
from relayc.dialects.locations import source_of
from relayc.dialects.mlir import arith, func, ir, scf, tensor
from relayc.dialects.relay.base import Op, RelayError
from relayc.dialects.relay.calls import stated_bindings
from relayc.dialects.relay.conditions import Condition, message_of
from relayc.dialects.relay.elements import dense_array
from relayc.dialects.relay.indexing import CheckIndex
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.scopes import conditions_of
from relayc.dialects.relay.sizes import CastShape, CheckSizes, DefineSizes, MatchShape
from relayc.dialects.relay.structure import Constant, If, TupleGetItem, While
from relayc.dialects.relay.types import TensorType, TupleType, flat_types, ranked_type, relay_type, signless_dtype, type_of
from relayc.dialects.relay.unify import Bindings, match
from relayc.pipelines.emission.sizes import function_sizes, require, size_value, tensor_count
from relayc.pipelines.te.dispatch import cast_tensor, dispatch, name_symbols
from relayc.pipelines.te.rules import core
from relayc.pipelines.te.signature import defined_symbols, flat_tensors, needed_symbols, te_array, te_function
from relayc.symbolic import FAR, Ranges, Size, bounds, maximum, name_of, substitute, symbol, symbols_of

Values: TypeAlias = list[ir.Value]

_ANY = (-(1 << 63), (1 << 63) - 1)
"""The bounds of an integer about which nothing is known."""


def lower_program(
    function: ir.Operation,
    out: IRModule,
    callees: Mapping[str, str],
    functions: Mapping[str, ir.Operation],
    general: str | None = None,
) -> None:
    """Lowers a function to the end of a te module.

    Args:
      callees: new names of some functions there.
      functions: functions of the relay stage with bodies, and packed ones, by name.
      general: the name of the private function to create; by default name and visibility are kept.

    Raises RelayError for an operation that is not allowed in an outlined program, and for an unknown shape.
    """
    _ProgramLowering(function, out, callees, functions).lower(general)


def lower_dispatch(function: ir.Operation, out: IRModule, general: str, specialized: Sequence[tuple[str, ir.Operation]]) -> None:
    """Lowers a function that calls specializations for some sizes, and `general` at others (see te.dispatch)."""
    dispatch(_program_function(function, out), function, general, specialized)


def _program_function(source: ir.Operation, out: IRModule, name: str | None = None) -> func.FuncOp:
    """A function without a body at the end of a te module; private, and named `name`, if a name is given."""
    is_private = name is not None or not is_public(source)
    with ir.InsertionPoint(out.module.body):
        function = te_function(name or symbol_name(source), source, ("argument", "result"), "private" if is_private else None)
    if is_private:
        PROGRAM.mark(function)
    if name is not None:
        KNOWN_AS.put(function, symbol_name(source))
    copy_discardable((KNOWN_AS, SIZES), source, function)
    _name_tensors(source, function)
    return function


def _name_tensors(source: ir.Operation, function: func.FuncOp) -> None:
    """Copies the names of arguments and results; the tensors of a tuple are numbered."""
    type_ = signature_of(source)
    for key, types in (("arg_attrs", type_.inputs), ("res_attrs", type_.results)):
        if key not in source.attributes:
            continue
        named = []
        for attributes, value in zip(ir.ArrayAttr(source.attributes[key]), types, strict=True):
            flat = flat_types(relay_type(value))
            named += [attributes] if isinstance(relay_type(value), TensorType) else _numbered(ir.DictAttr(attributes), len(flat))
        symbols = value_attributes(function, key)[len(named) :]
        function.attributes[key] = ir.ArrayAttr.get([*named, *symbols])


class _Callee:
    """A function that may be called many times, with cached facts for its calls."""

    def __init__(self, function: ir.Operation) -> None:
        self.function = function

    @cached_property
    def wanted(self) -> list[TensorType]:
        """The tensors that it takes."""
        return flat_tensors(signature_of(self.function).inputs)

    @cached_property
    def operands(self) -> list[ir.Type]:
        """Their types in the te stage."""
        return [core.te_type(t) for t in self.wanted]

    @cached_property
    def needed(self) -> list[str]:
        """Names of the symbols whose values it needs."""
        return needed_symbols(self.function)

    @cached_property
    def defined(self) -> list[str]:
        """Names of the symbols whose values it returns."""
        return defined_symbols(self.function)

    @property
    def is_kernel(self) -> bool:
        return PRIMITIVE.on(self.function)

    @cached_property
    def conditions(self) -> list[Condition]:
        """The conditions of the operators of a kernel, in its own symbols."""
        return [c for op in self.function.regions[0].blocks[0].operations for c in conditions_of(op)]


class _ProgramLowering:
    """Lowers one function of the program to the te stage."""

    def __init__(self, function: ir.Operation, out: IRModule, callees: Mapping[str, str], functions: Mapping[str, ir.Operation]) -> None:
        self.source, self.out, self.callees = function, out, callees
        self.functions = {name: _Callee(callee) for name, callee in functions.items()}
        self.callee_sizes: dict[ir.Value, dict[str, ir.Value]] = {}
        """The values of a callee's symbols, by results of calls, whose types use the callee's symbols."""
        self.values: dict[ir.Value, Values] = {}
        """The tensors of a value of the relay stage: one, or the tensors of a tuple."""
        self.required: frozenset[Size] = frozenset()
        """Sizes checked to be 0 or more where the ambient block is."""

    def lower(self, name: str | None = None) -> None:
        block = self.source.regions[0].blocks[0]
        function = _program_function(self.source, self.out, name)
        body = function.add_entry_block()
        self._enter(block.arguments, list(body.arguments)[: tensor_count(function)])
        with function_sizes(function) as self.sizes:
            self._operations(block, body)

    def _enter(self, values: Sequence[ir.Value], tensors: Values) -> None:
        """Maps values to their tensors, in order."""
        at = 0
        for value in values:
            count = len(flat_types(type_of(value)))
            self.values[value] = tensors[at : at + count]
            at += count

    def _tensors(self, values: Sequence[ir.Value]) -> Values:
        return [tensor for value in values for tensor in self.values[value]]

    def _operations(self, block: ir.Block, into: ir.Block) -> None:
        required = self.required
        left, known = self._conditions(block), -1
        for op in block.operations:
            with ir.InsertionPoint(into), op.operation.location:
                if left and len(self.sizes.symbols) > known:
                    left, known = self._require(left), len(self.sizes.symbols)
                self._lower(op)
        self.required = required

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
        elif isinstance(op, DefineSizes):
            self._define(op)
        elif isinstance(op, MatchShape):
            self._match(op)
        elif isinstance(op, CheckSizes):
            require(size_value(op.found), size_value(op.expected), op.predicate, f"{op.source()}: {op.message}")
        elif isinstance(op, CheckIndex):
            self._check_index(op)
        elif isinstance(op, CastShape):
            self._cast_shape(op)
        elif isinstance(op, Op) and op.is_view:
            self._view(operation)
        elif isinstance(op, func.CallOp):
            self._call(op)
        elif operation.name == "relay.yield":
            pass  # the enclosing branch or loop terminates its own regions
        elif operation.name == "func.return":
            types = flat_tensors(signature_of(self.source).results)
            tensors = [cast_tensor(v, core.te_type(t)) for v, t in zip(self._tensors(operation.operands), types, strict=True)]
            func.ReturnOp([*tensors, *(size_value(symbol(name)) for name in defined_symbols(self.source))])
        else:
            where = f"{operation.name} at {operation.location}"
            raise RelayError(f"{where}: expected constants, reshapes, calls, branches and loops (run fuse-ops and outline-groups first)")

    def _constant(self, op: Constant) -> None:
        key = op.key if op.key is not None else self.out.add_param(te_array(dense_array(op.attributes["value"])))
        type_ = TensorType.of(op.result)
        made = Constant(value=ir.StringAttr.get(key), shape=type_.static_shape, dtype=signless_dtype(type_.dtype))
        self.values[op.result] = [made.result]

    def _view(self, operation: ir.Operation) -> None:
        data, result = operation.operands[0], operation.results[0]
        # Cast to its own type: otherwise an empty tensor may not be known to be empty.
        given = cast_tensor(self.values[data][0], core.te_type(TensorType.of(data)))
        sizes = TensorType.of(result).sizes
        reshape = core.reshape if core.is_flattened(core.shape(given), sizes) else _reshaped_without_elements
        self.values[result] = [reshape(given, sizes)]

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
        tensors, callee = self._tensors(op.operation.operands), self.functions.get(name)
        if callee is None:
            self._enter(op.operation.results, list(func.CallOp(types, target, tensors).results))
            return
        operands = [cast_tensor(v, t) for v, t in zip(tensors, callee.operands, strict=True)]
        names, defined = callee.needed, callee.defined
        bound = self._bindings(op, callee.wanted)
        self._require_sizes(callee.function, op, [n for n in names if n not in bound])
        sizes = [size_value(bound.get(n, symbol(n))) for n in names]
        for n, value in zip(names, sizes, strict=True) if self._has_own_symbols(op) else ():
            if n in bound:
                self._require_range(n, value, bounds(bound[n]), f"call of {name} at {source_of(op.operation.location)}", "")
        made = list(func.CallOp([*types, *[ir.IndexType.get()] * len(defined)], target, [*operands, *sizes]).results)
        self._enter(op.operation.results, made[: len(types)])
        if self._has_own_symbols(op):
            values = dict(zip([*names, *defined], [*sizes, *made[len(types) :]], strict=True))
            self.callee_sizes.update(dict.fromkeys(op.operation.results, values))

    def _require_sizes(self, callee: ir.Operation, op: func.CallOp, names: Sequence[str]) -> None:
        """Raises RelayError for a packed function whose result sizes only it knows: the program allocates their memory before the call."""
        unknown = [name for name in names if name not in self.sizes.symbols]
        if PACKED.on(callee) and unknown:
            what = f"call_packed at {source_of(op.operation.location)}: results of {PACKED.of(callee)!r}"
            raise RelayError(f"{what}: expected sizes that are known before the call, found {', '.join(unknown)}")

    def _bindings(self, op: func.CallOp, wanted: Sequence[TensorType]) -> Bindings:
        """The bindings of a callee's symbols at a call."""
        stated = stated_bindings(op)
        if stated is not None or not any(t.symbols for t in wanted):
            return stated or {}
        given = [v.owner.data if self._is_argument_cast(v) else v for v in op.operation.operands]
        return match(wanted, flat_tensors([v.type for v in given]), f"arguments of @{op.callee.value}")

    def _is_argument_cast(self, value: ir.Value) -> bool:
        """Whether a value is one of this function cast to a callee's symbols, and not a result of a call."""
        if not isinstance(value.owner, CastShape):
            return False
        source = value.owner.data.owner
        return not (isinstance(source, func.CallOp) and self._has_own_symbols(source))

    def _has_own_symbols(self, op: func.CallOp) -> bool:
        """Whether a callee has other symbols than this function: kernels share them unless they were merged."""
        callee = self.functions.get(op.callee.value)
        return callee is not None and (BINDINGS.on(op) or not callee.is_kernel)

    # ---- sizes

    def _conditions(self, block: ir.Block) -> dict[Size, str]:
        """The sizes that must be 0 or more for the shapes of a block's operators and kernels to be valid, outside of branches and loops."""
        found: dict[Size, str] = {}
        for op in block.operations:
            bound: Bindings = {}
            conditions: list[Condition] = []
            if _is_static(op):
                continue
            if isinstance(op, func.CallOp):
                kernel = self.functions.get(op.callee.value)
                if kernel is not None and kernel.is_kernel:
                    conditions = kernel.conditions
                    bound = self._bindings(op, kernel.wanted) if conditions else {}
            elif isinstance(op, Op) and not len(op.operation.regions):
                conditions = conditions_of(op)
            for condition in conditions:
                found.setdefault(substitute(condition.size, bound), condition.text)
        return found

    def _require(self, conditions: Mapping[Size, str]) -> dict[Size, str]:
        """Emits checks of conditions whose symbols have values; returns the other conditions."""
        left: dict[Size, str] = {}
        for size, text in conditions.items():
            if not symbols_of(size).issubset(self.sizes.symbols):
                left[size] = text
            elif size not in self.required:
                self.required |= {size}
                require(size_value(size), size_value(0), "ge", message_of(size, text))
        return left

    def _define(self, op: DefineSizes) -> None:
        """Defines symbols by the elements of a tensor."""
        data = self.values[op.data][0]
        for i, name in enumerate(op.names):
            element = tensor.ExtractOp(data, [core.index_constant(i)] if data.type.rank else []).result
            cast = arith.IndexCastOp(ir.IndexType.get(), element)
            SYMBOL.put(cast, name)
            value = cast.result
            self._require_range(name, value, _ANY, f"define_sizes at {op.source()}", "")
            self.sizes.define(name, value)

    def _check_index(self, op: CheckIndex) -> None:
        """Checks an index; an axis without elements is not accessed."""
        index = arith.IndexCastOp(ir.IndexType.get(), tensor.ExtractOp(self.values[op.index][0], []).result).result
        text = f"{op.source()}: index %lld into {op.what}: expected at"
        require(index, size_value(op.size * -1), "ge", f"{text} least %lld")
        require(index, size_value(maximum(op.size - 1, 0)), "le", f"{text} most %lld")

    def _match(self, op: MatchShape) -> None:
        """Matches the sizes of a tensor with stated ones: new symbols are defined, others are checked."""
        data = TensorType.of(op.data)
        for i, (found, stated) in enumerate(zip(data.sizes, op.shape, strict=True)):
            name = name_of(stated)
            if name is not None and name not in self.sizes.symbols:
                value, where = size_value(found), f" in dimension {i} of {self._label(op.data)}"
                self._name(name, value)
                self._require_range(name, value, bounds(found), f"match_shape at {op.source()}", where)
        for i, (found, stated) in enumerate(zip(data.sizes, op.shape, strict=True)):
            if found != stated:
                wanted = f", expected {stated}" if isinstance(stated, int) else f" and {stated} is %lld, expected the same"
                text = f"match_shape at {op.source()}: dimension {i}: {found} is %lld{wanted}"
                require(size_value(found), size_value(stated), "eq", text)
        self.values[op.result] = self.values[op.data]

    def _cast_shape(self, op: CastShape) -> None:
        """The same tensor with other names of its sizes; a size that a call defined gets its name here."""
        self.values[op.result] = self.values[op.data]
        values = self.callee_sizes.get(op.data)
        for found, stated in zip(TensorType.of(op.data).sizes, op.shape, strict=True):
            name = name_of(stated)
            if values is not None and name is not None and name not in self.sizes.symbols:
                self._name(name, self.sizes.among(values).value(found))

    def _name(self, name: str, value: ir.Value) -> None:
        """Names a size for types from here on."""
        named = arith.AddIOp(value, core.index_constant(0))
        SYMBOL.put(named, name)
        self.sizes.define(name, named.result)

    def _require_range(self, name: str, value: ir.Value, proved: tuple[int, int], what: str, where: str) -> None:
        """Checks the range of a symbol's value, whose proved bounds are given: proofs rely on the range.

        Args:
          what: the definition of the symbol, and `where` the origin of the value, for the message.
        """
        known = Ranges.current().of(name)
        if proved[0] < known.low:
            text = f"{what}: {name}: expected {known.low} or more, found %lld{where}"
            require(value, core.index_constant(known.low), "ge", text)
        if proved[1] > known.high:
            require(core.index_constant(known.high), value, "ge", f"{what}: {name}: expected at most %lld, found %lld{where}")

    def _require_ranges(self, names: Sequence[str], what: str) -> None:
        """`_require_range` for symbols that a branch or loop defines, which are sizes."""
        for name in names:
            self._require_range(name, self.sizes.symbols[name], (0, FAR), what, "")

    def _label(self, value: ir.Value) -> str:
        """A description of a tensor: the name of an argument of this function, otherwise the type."""
        block = self.source.regions[0].blocks[0]
        if isinstance(value.owner, ir.Block) and value.owner == block:
            attributes = value_attributes(self.source)[ir.BlockArgument(value).arg_number]
            if NAME.on(attributes):
                return NAME.of(attributes)
        return str(TensorType.of(value))

    def _new_symbols(self, types: Sequence[TensorType]) -> list[str]:
        """Symbols in types that have no value here."""
        return sorted({s for t in types for s in t.symbols} - self.sizes.symbols.keys())

    # ---- control flow

    def _branch(self, op: If) -> None:
        result = op.operation.results[0]
        wanted = flat_tensors([result.type])
        names, types = self._new_symbols(wanted), [core.te_type(t) for t in wanted]
        all_types = [*types, *[ir.IndexType.get()] * len(names)]
        made = scf.IfOp(self._truth(op.operation.operands[0]), all_types, has_else=True)
        name_symbols(made, names)
        for i, block in enumerate((made.then_block, made.else_block)):
            before = dict(self.sizes.symbols)
            self._operations(op.body(i), block)
            with ir.InsertionPoint(block):
                scf.YieldOp(self._instances(op.yielded(i), wanted, types, names))
            self.sizes.symbols = before
        self._results(result, list(made.results), types, names)
        self._require_ranges(names, f"if at {op.source()}")

    def _loop(self, op: While) -> None:
        init, argument = op.operation.operands[0], op.body(0).arguments[0]
        wanted = flat_tensors([argument.type])
        names, types = self._new_symbols(wanted), [core.te_type(t) for t in wanted]
        all_types = [*types, *[ir.IndexType.get()] * len(names)]
        made = scf.WhileOp(all_types, self._instances(init, wanted, types, names))
        name_symbols(made, names)
        for i, region in enumerate((made.before, made.after)):
            block, before = region.blocks.append(*all_types), dict(self.sizes.symbols)
            self._results(op.body(i).arguments[0], list(block.arguments), types, names)
            if i == 0:
                with ir.InsertionPoint(block):
                    self._require_ranges(names, f"while at {op.source()}")
            self._operations(op.body(i), block)
            with ir.InsertionPoint(block):
                if i == 0:
                    scf.ConditionOp(self._truth(op.yielded(0)), list(block.arguments))
                else:
                    scf.YieldOp(self._instances(op.yielded(1), wanted, types, names))
            self.sizes.symbols = before
        result = op.operation.results[0]
        given = flat_tensors([result.type])
        others = set(self._new_symbols(given)) - set(names)
        self._results(result, list(made.results), types, names)
        # The result may have other names for the final sizes of the loop.
        for name, size in match(given, wanted, "result of a loop", others).items():
            value = size_value(size)
            self._name(name, value)
            self._require_range(name, value, bounds(size), f"while at {op.source()}", "")

    def _instances(self, value: ir.Value, wanted: Sequence[TensorType], types: Sequence[ir.Type], names: Sequence[str]) -> Values:
        """The tensors of a value cast to types, and the values of these types' symbols."""
        bound = match(wanted, flat_tensors([value.type]), "what a branch or loop carries", set(names)) if names else {}
        tensors = [cast_tensor(v, t) for v, t in zip(self.values[value], types, strict=True)]
        return [*tensors, *(size_value(bound[name]) for name in names)]

    def _results(self, value: ir.Value, made: Values, types: Sequence[ir.Type], names: Sequence[str]) -> None:
        """Records the tensors that a branch or loop returns, and the symbols that it defines."""
        self.values[value] = made[: len(types)]
        for name, size in zip(names, made[len(types) :], strict=True):
            self.sizes.define(name, size)

    def _truth(self, value: ir.Value) -> ir.Value:
        """A scalar bool of the relay stage as an i1."""
        element = tensor.ExtractOp(self.values[value][0], []).result
        return arith.TruncIOp(ir.IntegerType.get_signless(1), element).result


def _reshaped_without_elements(data: ir.Value, sizes: Sequence[Size]) -> ir.Value:
    """Reshapes an empty tensor where MLIR does not know that 0 times an unknown size is 0: all sizes become `?`."""
    element = data.type.element_type
    data = cast_tensor(data, _open_type(core.shape(data), element))
    if data.type.rank != 1:
        data = tensor.collapse_shape(_open_type([0], element), data, [list(range(data.type.rank))])
    if len(sizes) != 1:
        unknown = [ir.ShapedType.get_dynamic_size()] * len(sizes)
        data = tensor.expand_shape(_open_type(sizes, element), data, [list(range(len(sizes)))], list(map(size_value, sizes)), unknown)
    return cast_tensor(data, ranked_type(sizes, element))


def _open_type(shape: Sequence[Size], element: ir.Type) -> ir.RankedTensorType:
    """The tensor type of a shape with all sizes dynamic."""
    texts = ir.ArrayAttr.get([ir.StringAttr.get(str(size)) for size in shape])
    return ir.RankedTensorType.get([ir.ShapedType.get_dynamic_size()] * len(shape), element, texts)


def _is_static(op: ir.OpView) -> bool:
    """Whether all operands and results of an operation are tensors of static shape."""
    types = [v.type for v in (*op.operation.operands, *op.operation.results)]
    return all(isinstance(t, ir.RankedTensorType) and t.has_static_shape for t in types)


def _numbered(attributes: ir.DictAttr, count: int) -> list[ir.DictAttr]:
    """The attributes of each tensor of a tuple, with the tuple's name and a number."""
    if not NAME.on(attributes):
        return [ir.DictAttr.get({})] * count
    name = NAME.of(attributes)
    return [ir.DictAttr.get(NAME.entry(f"{name}.{i}")) for i in range(count)]
