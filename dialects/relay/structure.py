"""Structure of a program: constants, fields of tuples, branches, loops and fusion groups.

A tuple is one value of type `tuple<...>`; `make_tuple` makes it of its fields. A call is upstream's `func.call`. The regions of branches,
loops and groups use the values around them, and give one value, a tensor or a tuple.
"""

from collections.abc import Callable, Sequence

from relayc.dialects.mlir import ir
from relayc.dialects.operations import last_operation
from relayc.dialects.relay.base import Ints, Op, Operand, Pattern, RelayError, Statement, View, check
from relayc.dialects.relay.scopes import SymbolNames, scope_before
from relayc.dialects.relay.types import RelayType, TensorType, TupleType, type_of
from relayc.dialects.relay.unify import joined, match, symbols_of_type
from relayc.symbolic import Dim


class Constant(Op, name="constant"):
    """A tensor known at compile time: `value` holds its elements, or the key of its entry in the parameter table of the module.

    `shape` and `dtype` say the type of a parameter; they are absent where `value` holds the elements.
    """

    value: ir.Attribute
    shape: Ints | None = None
    dtype: str | None = None
    pattern = Pattern.ELEMWISE
    is_structure = True

    @staticmethod
    def infer(op: View) -> TensorType:
        if isinstance(op.value, ir.StringAttr):
            check(op.shape is not None and op.dtype is not None, "parameter", "attributes shape and dtype", "none")
            return TensorType(op.shape, op.dtype)
        check(isinstance(op.value, ir.DenseElementsAttr), "value", "dense elements or the key of a parameter", op.value)
        return TensorType.from_mlir(op.value.type)

    @property
    def key(self) -> str | None:
        """Key in the parameter table; None if the elements are in the IR."""
        value = self.attributes["value"]
        return value.value if isinstance(value, ir.StringAttr) else None


def is_literal(value: ir.Value) -> bool:
    """Whether a value is a single number in the IR, which kernels contain as a constant."""
    owner = value.owner
    return isinstance(owner, Constant) and owner.key is None and TensorType.of(value).num_elements == 1


class TupleGetItem(Op, name="tuple_get_item"):
    """Field `index` of a tuple (Relay's TupleGetItem)."""

    data: Operand
    index: int
    pattern = Pattern.TUPLE
    is_structure = True

    @staticmethod
    def infer(op: View) -> RelayType:
        check(isinstance(op.data, TupleType), "data", "a tuple", op.data)
        check(0 <= op.index < len(op.data.fields), "index", f"a value in [0, {len(op.data.fields)})", op.index)
        return op.data.fields[op.index]


class _RegionOp(Op):
    """An operation whose regions return its result."""

    def body(self, region: int = 0) -> ir.Block:
        """The block of a region."""
        return self.operation.regions[region].blocks[0]

    def yielded(self, region: int = 0) -> ir.Value:
        """The value yielded by a region. Raises RelayError if the region is not one block that ends in relay.yield."""
        blocks = list(self.operation.regions[region].blocks)
        name = self.region_names[region]
        check(len(blocks) == 1 and len(blocks[0].operations) > 0, name, "one block that ends in relay.yield", f"{len(blocks)} block(s)")
        last = last_operation(blocks[0]).operation
        check(last.name == "relay.yield", name, "a block that ends in relay.yield", last.name)
        return last.operands[0]

    def check_instances(self, pattern: RelayType, actuals: Sequence[tuple[str, RelayType]]) -> None:
        """Raises RelayError unless each type is an instance of `pattern`, whose symbols that have no value here stand for any sizes."""
        symbols = symbols_of_type(pattern)
        # What has a value here is not looked for where every type is the pattern itself.
        scope = scope_before(self) if symbols and any(actual != pattern for _, actual in actuals) else symbols
        for what, actual in actuals:
            match([pattern], [actual], what, symbols - scope)

    def stated_type(self, inferred: RelayType) -> RelayType:
        """The type of the result, with unspecified sizes inferred."""
        if not self.operation.results:
            return inferred
        found = type_of(self.operation.results[0])
        return _completed(found, inferred) if found != inferred else found

    def check_arguments(self, region: int, expected: Sequence[RelayType]) -> None:
        """Raises RelayError unless the block of a region has arguments of these types."""
        found = [type_of(a) for a in self.body(region).arguments]
        same = len(found) == len(expected) and all(a.accepts(b) for a, b in zip(expected, found, strict=True))
        check(same, f"arguments of {self.region_names[region]}", _listed(expected), _listed(found))


def _listed(types: Sequence[RelayType]) -> str:
    return f"({', '.join(map(str, types))})"


def _completed(found: RelayType, inferred: RelayType) -> RelayType:
    """`found` with unspecified sizes from `inferred`, if the structure is the same; otherwise `found` itself."""
    if isinstance(found, TensorType) and isinstance(inferred, TensorType) and found.rank == inferred.rank:
        return found.with_shape(b if a is None else a for a, b in zip(found.shape, inferred.shape, strict=True))
    if isinstance(found, TupleType) and isinstance(inferred, TupleType) and len(found.fields) == len(inferred.fields):
        return TupleType(tuple(map(_completed, found.fields, inferred.fields)))
    return found


def _build_regions(
    name: str, operand: ir.Value, bodies: Sequence[tuple[list[ir.Type], Callable[..., ir.Value]]], result: RelayType | None = None
) -> ir.Value:
    """Builds an operation with regions at the ambient insertion point, and gives its result.

    `bodies` are the types of a region's arguments, and what builds its operations and gives the value that it yields; `result` is the type
    of the result where it is stated. Raises RelayError if the operation breaks its rules; then it is not there.
    """
    # The result type follows from the regions, so they are built first, in an operation without results.
    draft = ir.Operation.create(name, [], [operand], regions=len(bodies))
    try:
        for region, (types, body) in zip(draft.regions, bodies, strict=True):
            block = region.blocks.append(*types)
            with ir.InsertionPoint(block):
                Yield(body(*block.arguments))
        made = ir.Operation.create(name, [(result or draft.opview.result_type()).to_mlir()], [operand], regions=len(bodies))
        for old, new in zip(draft.regions, made.regions, strict=True):
            old.blocks[0].append_to(new)
    finally:
        draft.erase()
    try:
        made.opview.verify_invariants()
    except RelayError:
        made.erase()
        raise
    return made.results[0]


class Fused(_RegionOp, name="fused"):
    """A fusion group (Relay's function with Primitive=1): the region's operations become one kernel, which reads what they use from around.

    `composite` names the pattern whose match the group is, `compiler` the code generator that it is for; both are absent in other groups.
    """

    composite: str | None = None
    compiler: str | None = None
    region_names = ("group",)

    @staticmethod
    def create(result: ir.Type, loc: ir.Location | None = None) -> "Fused":
        """An empty group at the ambient insertion point: fill its block (`body()`), end it in a Yield of a value of type `result`."""
        operation = ir.Operation.create("relay.fused", [result], regions=1, loc=loc)
        operation.regions[0].blocks.append()
        return operation.opview

    def inferred_types(self) -> list[RelayType]:
        value = self.yielded()
        self.check_arguments(0, [])
        return [type_of(value)]

    def members(self) -> list[ir.OpView]:
        """The operations of the group, in order, without the yield."""
        return list(self.body().operations)[:-1]

    def captured(self) -> list[ir.Value]:
        """The values from around the group that it uses, in order of their first use."""
        block = self.body()
        used = dict.fromkeys(v for op in block.operations for v in op.operation.operands)
        return [v for v in used if isinstance(v.owner, ir.Block) or v.owner.operation.block != block]


class If(_RegionOp, name="if"):
    """Evaluates one of two regions by a scalar bool (Relay's If).

    What each region yields is an instance of the type of the result, in which symbols that have no value before the operation stand for
    any sizes: they have a value from it on.
    """

    cond: Operand
    may_define_symbols = True
    region_names = ("then_body", "else_body")
    is_structure = True

    @staticmethod
    def create(
        cond: ir.Value, then: Callable[[], ir.Value], otherwise: Callable[[], ir.Value], result: RelayType | None = None
    ) -> ir.Value:
        """Builds one at the ambient insertion point of functions that build its branches; gives its result. Raises RelayError.

        Args:
          result: type of the result; where None it has a new symbol for each size that differs between the branches.
        """
        return _build_regions("relay.if", cond, [([], then), ([], otherwise)], result)

    def result_type(self) -> RelayType:
        """The type of which both branches are instances; sizes that differ are new symbols."""
        names: list[SymbolNames] = []

        def fresh() -> Dim:
            if not names:
                names.append(SymbolNames(self))
            return names[0].free("branch")

        return joined(type_of(self.yielded(0)), type_of(self.yielded(1)), fresh, "types yielded by the regions")

    def inferred_types(self) -> list[RelayType]:
        _check_condition("cond", type_of(self.operation.operands[0]))
        then, otherwise = (type_of(self.yielded(i)) for i in range(2))
        for i in range(2):
            self.check_arguments(i, [])
        what = "types yielded by the regions"
        result = self.stated_type(joined(then, otherwise, _unknown, what))
        self.check_instances(result, [(what, then), (what, otherwise)])
        return [result]


class While(_RegionOp, name="while"):
    """A loop: while `cond` of the carried value is true, `step` of it is carried on; gives what is carried last.

    Both regions have one argument, the carried value, which begins as `init`: a tensor, or a tuple where several values are carried. `cond`
    yields a scalar bool, `step` a value of the carried type. (Relay writes loops as recursive functions; the form is that of scf.while.)

    Symbols in the carried type that have no value before the loop stand for sizes that may change: `init`, and what `step` yields, are
    instances of it, and the result is of that type, or one of which it is an instance.
    """

    init: Operand
    may_define_symbols = True
    region_names = ("cond", "step")
    is_structure = True

    @staticmethod
    def create(
        init: ir.Value,
        cond: Callable[[ir.Value], ir.Value],
        step: Callable[[ir.Value], ir.Value],
        carried: RelayType | None = None,
    ) -> ir.Value:
        """Builds one at the ambient insertion point of functions that build its regions; gives its result. Raises RelayError.

        Args:
          carried: type of what is carried, with new symbols for sizes that change; the type of `init` where None.
        """
        argument = init.type if carried is None else carried.to_mlir()
        return _build_regions("relay.while", init, [([argument], cond), ([argument], step)])

    def carried_type(self) -> RelayType:
        """The type of the argument of the regions."""
        arguments = list(self.body(1).arguments)
        check(len(arguments) == 1, "arguments of step", "one, the carried value", len(arguments))
        return type_of(arguments[0])

    def result_type(self) -> RelayType:
        return self.carried_type()

    def inferred_types(self) -> list[RelayType]:
        init = type_of(self.operation.operands[0])
        condition, following = (type_of(self.yielded(i)) for i in range(2))
        carried = self.carried_type()
        if not symbols_of_type(carried):
            self.check_arguments(1, [init])
        self.check_arguments(0, [carried])
        _check_condition("value yielded by cond", condition)
        self.check_instances(carried, [("type carried", init), ("type yielded by step", following)])
        result = self.stated_type(carried)
        self.check_instances(result, [("type carried, for the result", carried)])
        return [result]


def _unknown() -> None:
    """An unspecified size."""


def _check_condition(what: str, type_: RelayType) -> None:
    check(isinstance(type_, TensorType) and type_.dtype == "bool" and type_.rank == 0, what, "tensor<i1>", type_)


class Yield(Statement, name="yield"):
    """Ends a region with its result."""

    value: Operand
    pure = True
    terminator = True
