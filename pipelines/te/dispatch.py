"""A function specialized for some sizes: it compares its symbols with these sizes, and calls the matching specialization.

%is = arith.cmpi eq, %batch, %c1
%r = scf.if %is -> (tensor<?x10xf32, ["batch"]>) {
  %one = tensor.cast %x : tensor<?x3xf32, ["batch"]> to tensor<1x3xf32>
  %y = call @main_batch_1(%one)
  ...
} else { call @main_general(%x, %batch) }
"""

from collections.abc import Mapping, Sequence
from functools import reduce

from relayc.dialects.discardable import SYMBOLS
from relayc.dialects.functions import signature_of
from relayc.dialects.mlir import arith, func, ir, scf, tensor
from relayc.dialects.relay.specializations import sizes_of
from relayc.dialects.relay.unify import match, substitute_type
from relayc.pipelines.emission.sizes import SizeValues, function_sizes, size_value, tensor_count
from relayc.pipelines.te.rules import core, scalar
from relayc.pipelines.te.signature import defined_symbols, flat_tensors, needed_symbols
from relayc.symbolic import symbol

Values = list[ir.Value]


def dispatch(function: func.FuncOp, source: ir.Operation, general: str, specialized: Sequence[tuple[str, ir.Operation]]) -> None:
    """Builds the body of a te function that dispatches to others.

    Args:
      source: its function of the relay stage.
      general: name of the function for all other sizes.
      specialized: names and relay functions of the specializations; the first match is called.
    """
    block = function.add_entry_block()
    with function_sizes(function) as sizes, ir.InsertionPoint(block):
        found = _Dispatch(source, general, sizes).choose(list(block.arguments)[: tensor_count(function)], specialized)
        func.ReturnOp(found)


class _Dispatch:
    def __init__(self, source: ir.Operation, general: str, sizes: SizeValues) -> None:
        self.general, self.sizes = general, sizes
        self.wanted = flat_tensors(signature_of(source).results)
        self.names, self.defined = needed_symbols(source), defined_symbols(source)
        self.types = [*map(core.te_type, self.wanted), *[ir.IndexType.get()] * len(self.defined)]

    def choose(self, tensors: Values, cases: Sequence[tuple[str, ir.Operation]]) -> Values:
        """The results of the first case that matches: tensors, and the sizes that the function defines."""
        if not cases:
            return self.call(self.general, tensors, self.types, self.names)
        (name, case), *others = cases
        made = scf.IfOp(self.holds(sizes_of(case)), self.types, has_else=True)
        name_symbols(made, self.defined)
        with ir.InsertionPoint(made.then_block):
            scf.YieldOp(self.special(name, case, tensors))
        with ir.InsertionPoint(made.else_block):
            scf.YieldOp(self.choose(tensors, others))
        return list(made.results)

    def holds(self, sizes: Mapping[str, int]) -> ir.Value:
        """Whether symbols have the given values."""
        equal = [arith.CmpIOp(arith.CmpIPredicate.eq, size_value(symbol(n)), core.index_constant(v)).result for n, v in sizes.items()]
        return reduce(scalar.both, equal)

    def special(self, name: str, case: ir.Operation, tensors: Values) -> Values:
        """Calls a specialization; operands and results are cast from and to general types."""
        takes, gives = (flat_tensors(types) for types in (signature_of(case).inputs, signature_of(case).results))
        names, defined = needed_symbols(case), defined_symbols(case)
        types = [*map(core.te_type, gives), *[ir.IndexType.get()] * len(defined)]
        given = [cast_tensor(v, core.te_type(t)) for v, t in zip(tensors, takes, strict=True)]
        made = self.call(name, given, types, names)
        found = [cast_tensor(v, t) for v, t in zip(made, self.types[: len(gives)], strict=False)]
        # Some sizes that the function defines may be constant in the specialization.
        wanted = [substitute_type(t, sizes_of(case)) for t in self.wanted]
        bound = match(wanted, gives, f"results of @{name}", set(self.defined)) if self.defined else {}
        values = {**{n: self.sizes.value(symbol(n)) for n in names}, **dict(zip(defined, made[len(gives) :], strict=True))}
        return [*found, *(self.sizes.among(values).value(bound[n]) for n in self.defined)]

    def call(self, name: str, tensors: Values, types: Sequence[ir.Type], symbols: Sequence[str]) -> Values:
        made = func.CallOp(types, ir.FlatSymbolRefAttr.get(name), [*tensors, *(size_value(symbol(s)) for s in symbols)])
        return list(made.operation.results)


def name_symbols(op: ir.OpView, names: Sequence[str]) -> None:
    """Records the symbols that are the last results of a branch or loop."""
    if names:
        SYMBOLS.put(op, tuple(names))


def cast_tensor(value: ir.Value, type_: ir.Type) -> ir.Value:
    """Casts a tensor to a type with other names for its sizes, or with numbers for some."""
    return value if value.type == type_ else tensor.CastOp(type_, value).result
