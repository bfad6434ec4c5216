"""Structure of a program: constants, tuples, calls, branches and fusion groups."""

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Ints, Op, Operand, Pattern, RelayError, TensorType, Variadic, View, check


class Constant(Op, name="constant"):
    """A tensor known at compile time: `value` holds its elements, or the key of its entry in the parameter table of the module.

    `shape` and `dtype` say the type of a parameter; they are absent where `value` holds the elements.
    """

    value: ir.Attribute
    shape: Ints | None = None
    dtype: str | None = None
    pattern = Pattern.ELEMWISE

    @staticmethod
    def infer(op: View) -> TensorType:
        if isinstance(op.value, ir.StringAttr):
            check(op.shape is not None and op.dtype is not None, "parameter", "attributes shape and dtype", "none")
            return TensorType(op.shape, op.dtype)
        check(isinstance(op.value, ir.DenseElementsAttr), "value", "dense elements or the key of a parameter", op.value)
        return TensorType.from_mlir(op.value.type)

    @property
    def key(self) -> str | None:
        """Key in the parameter table; None where the elements stand in the IR."""
        value = self.attributes["value"]
        return value.value if isinstance(value, ir.StringAttr) else None


class Tuple(Op, name="tuple"):
    """Groups values (Relay's Tuple); as MLIR values carry no tuples, its results are its operands, one each."""

    fields: Variadic
    pattern = Pattern.TUPLE

    @staticmethod
    def infer(op: View) -> list[TensorType]:
        return list(op.fields)


class TupleGetItem(Op, name="tuple_get_item"):
    """Field `index` of a builtin tuple, such as a fusion group of several results gives, or of the values given (Relay's TupleGetItem)."""

    fields: Variadic
    index: int
    pattern = Pattern.INJECTIVE

    def inferred_types(self) -> list[TensorType]:
        types = [v.type for v in self.operation.operands]
        if len(types) == 1 and isinstance(types[0], ir.TupleType):
            types = [types[0].get_type(i) for i in range(types[0].num_types)]
        return type(self).result_types([TensorType.from_mlir(t) for t in types], self.attrs())

    @staticmethod
    def infer(op: View) -> TensorType:
        check(0 <= op.index < len(op.fields), "index", f"a value in [0, {len(op.fields)})", op.index)
        return op.fields[op.index]


def _terminator(operation: ir.Operation, region: int) -> ir.Operation:
    blocks = list(operation.regions[region].blocks)
    if len(blocks) != 1 or len(blocks[0].operations) == 0:
        raise RelayError(f"region {region}: expected one block that ends in relay.yield, found {len(blocks)} block(s)")
    last = blocks[0].operations[len(blocks[0].operations) - 1].operation
    check(last.name == "relay.yield", f"region {region}", "a block that ends in relay.yield", last.name)
    return last


class _RegionOp(Op):
    """An operation whose result types are what its regions yield."""

    def inferred_types(self) -> list[TensorType]:
        yields = [[TensorType.of(v) for v in _terminator(self.operation, i).operands] for i in range(len(self.region_names))]
        for other in yields[1:]:
            same = len(other) == len(yields[0]) and all(a.accepts(b) for a, b in zip(yields[0], other, strict=True))
            check(same, "types yielded by the regions", list(map(str, yields[0])), list(map(str, other)))
        return yields[0]


class Fused(_RegionOp, name="fused"):
    """A fusion group (Relay's function with Primitive=1): the region's operations become one kernel.

    The region uses values from around it as they are; it yields one value, which is the group's result. Where the operator in it has
    several results, that is a builtin tuple, made of them by `builtin.unrealized_conversion_cast` and taken apart by
    `relay.tuple_get_item`.
    """

    region_names = ("body",)

    def verify_invariants(self) -> bool:
        try:
            block = self.operation.regions[0].blocks[0]
            check(len(self.operation.operands) == 0, "operands", "none", len(self.operation.operands))
            check(len(block.arguments) == 0, "block arguments", "none", len(block.arguments))
            yielded = [v.type for v in _terminator(self.operation, 0).operands]
            found = [r.type for r in self.operation.results]
            check(len(yielded) == 1, "values yielded", 1, len(yielded))
            if isinstance(yielded[0], ir.TupleType) or len(found) != 1:
                check(found == yielded, "result type", yielded[0], ", ".join(map(str, found)))
                return True
        except (RelayError, IndexError) as e:
            raise RelayError(f"relay.fused at {self.source()}: {e}") from None
        return super().verify_invariants()


class If(_RegionOp, name="if"):
    """Evaluates one of two regions by a scalar bool (Relay's If). The regions see the values around them."""

    cond: Operand
    region_names = ("then_body", "else_body")

    def inferred_types(self) -> list[TensorType]:
        cond = TensorType.of(self.operation.operands[0])
        check(cond.dtype == "bool" and cond.rank == 0, "cond", "tensor<i1>", cond)
        return super().inferred_types()


class Call(Op, name="call"):
    """Calls a function of the module by name (Relay's Call of a GlobalVar); result types are the callee's."""

    args: Variadic
    callee: str
    pure = False

    def inferred_types(self) -> list[TensorType]:
        module = self.operation
        while module.parent is not None:
            module = module.parent
        functions = ir.SymbolTable(module)
        check(self.callee in functions, "callee", "the name of a function of the module", self.callee)
        signature = ir.FunctionType(ir.TypeAttr(functions[self.callee].attributes["function_type"]).value)
        found = [v.type for v in self.operation.operands]
        check(list(signature.inputs) == found, f"operands of @{self.callee}", list(map(str, signature.inputs)), list(map(str, found)))
        return [TensorType.from_mlir(t) for t in signature.results]


class Yield(Op, name="yield"):
    """Ends the region of relay.fused or relay.if with its results."""

    values: Variadic
    pure = False

    def inferred_types(self) -> list[TensorType]:
        return []

    @staticmethod
    def infer(op: View) -> list[TensorType]:
        return []
