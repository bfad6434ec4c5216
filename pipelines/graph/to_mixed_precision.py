"""ToMixedPrecision: products and convolutions of bf16 operands, summed in f32 (Relay's ToMixedPrecision, with bf16 for f16, or with f16).

It runs on fusion groups, because what matters is how tensors are stored between kernels: within a kernel everything but the operands of
ALWAYS operators stays f32 in registers, so that a chain of operators rounds once. What an operator does stands in its class
(dialects.relay.facts.Precision):

- ALWAYS: their operands are bf16, their sums f32. Parameters are converted here, once.
- FOLLOW, EXACT: they read a tensor as it is stored. What they give is stored as bf16 where their largest operands are.
- NEVER (softmax, normalisations, exponentials, logarithms, sorting, ...): they read and give f32. AVERAGE operators give f32 as well, but
  errors of what they read cancel out.

A tensor between kernels is stored as bf16 where an ALWAYS operator reads it, or where it was made of bf16 and no NEVER operator reads it.
Views and groups that only move elements are seen through. Inputs and outputs of the function stay f32; what an ALWAYS operator reads of
them is converted by a kernel of its own.
"""

import enum
from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.dialects.operation_set import OperationSet
from relayc.dialects.operations import last_operation
from relayc.dialects.relay.base import Op, Precision
from relayc.dialects.relay.dense_blocks import DenseBlocks
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.names import build
from relayc.dialects.relay.structure import Constant, Fused, Yield
from relayc.dialects.relay.types import TensorType, numpy_dtype
from relayc.dialects.relay.unary import Cast
from relayc.pipelines.context.passes import PassContext, config_option, functions, module_pass
from relayc.pipelines.graph.blocks import graph_blocks
from relayc.pipelines.graph.dead_code_elimination import drop_unused_params, erase_dead
from relayc.pipelines.graph.fusion.groups import is_view
from relayc.symbolic import guess

config_option("relay.ToMixedPrecision.precision", str, "f32", "bf16 or f16: what products multiply; others leave the program")
config_option("relay.ToMixedPrecision.force", bool, False, "compile(precision='bf16') also for targets without instructions for it: slow")

FOLLOWING = frozenset([Precision.FOLLOW, Precision.EXACT])
"""Of operators that return bf16 for bf16 operands."""
EXACT = frozenset([Precision.EXACT])

NARROW = {"bf16": "bfloat16", "f16": "float16"}
"""The dtype of factors by precision."""
WIDE = "float32"
LEVELS = {"bf16": 3, "f16": 2}
"""The accuracy_level of nn.dense_blocks by precision: those of MatMulNBits."""


class Reader(enum.Enum):
    """Kinds of readers of a tensor: a product, an operator for which the dtype does not matter, one that requires f32, or the function's
    caller."""

    PRODUCT = enum.auto()
    TOLERANT = enum.auto()
    STRICT = enum.auto()
    RESULT = enum.auto()


def _dtype(value: ir.Value) -> str:
    return TensorType.of(value).dtype


def _precisions(group: Fused) -> set[Precision]:
    """The roles of the operations of a group with respect to bf16."""
    return {op.precision if isinstance(op, Op) else Precision.NEVER for op in group.members()}


def _factors(op: Op) -> list[ir.Value]:
    """The operands that a product multiplies."""
    return list(op.operation.operands)[: op.factors]


class _Precision:
    """The decision for one block of groups, and its rewriting, group by group in program order."""

    def __init__(self, block: ir.Block, mod: IRModule, precision: str) -> None:
        """
        Args:
          precision: to which factors are rounded.
        """
        self.block, self.mod, self.precision, self.dtype = block, mod, precision, NARROW[precision]
        self.readers: dict[ir.Value, set[Reader]] = {}
        self.stored_narrow: set[ir.Value] = set()
        """Values stored as bf16 that were f32 before: groups not converted yet take them for f32."""
        self.narrow: dict[ir.Value, ir.Value] = {}
        """In bf16, values that are stored as f32: constants converted here, and the results of kernels that convert."""

    def run(self) -> None:
        program = list(self.block.operations)
        for op in reversed(program):
            self.readers |= {result: self._read_by(result) for result in op.operation.results}
        for op in program:
            if isinstance(op, Fused):
                self._convert(op)
            elif is_view(op):
                source, result = op.operation.operands[0], op.operation.results[0]
                if source in self.stored_narrow:
                    result.set_type(TensorType.of(result).with_dtype(self.dtype).to_mlir())
                    self.stored_narrow.add(result)

    # ---- how a tensor is stored

    def _products(self, group: Fused) -> list[Op]:
        """The ALWAYS operators on f32 of a group that is not converted yet."""
        found = [op for op in group.members() if isinstance(op, Op) and op.precision is Precision.ALWAYS]
        return [op for op in found if all(self._is_wide(v) for v in (*_factors(op), *op.operation.results))]

    def _is_wide(self, value: ir.Value) -> bool:
        """Whether a group that is not converted yet takes a value for f32."""
        return _dtype(value) == WIDE or value in self.stored_narrow

    def _read_by(self, value: ir.Value) -> set[Reader]:
        """The readers of a value, also through views and groups of EXACT operators; later groups are not converted yet."""
        found = set()
        for use in value.uses:
            owner = use.owner.operation
            group = owner.parent.opview
            if isinstance(group, Fused) and group.operation.block == self.block:
                found |= self._group_reads(group, value)
            elif is_view(owner.opview) and owner.block == self.block:
                found |= self.readers[owner.results[0]]
            else:
                found.add(Reader.RESULT)
        return found

    def _group_reads(self, group: Fused, value: ir.Value) -> set[Reader]:
        precisions, products = _precisions(group), self._products(group)
        if any(value in _factors(product) for product in products):
            return {Reader.PRODUCT}
        if precisions.issubset(EXACT):
            behind = self.readers[group.operation.results[0]]
            return {Reader.STRICT if reader == Reader.RESULT else reader for reader in behind}
        is_beside_factors = any(value in list(product.operation.operands) for product in products)  # the mask of attention
        is_tolerant = Precision.NEVER not in precisions and not is_beside_factors
        return {Reader.TOLERANT if is_tolerant else Reader.STRICT}

    def _is_stored_narrow(self, value: ir.Value, made_of_narrow: bool, is_exact: bool) -> bool:
        readers = self.readers[value]
        if Reader.RESULT in readers:
            return False
        return Reader.PRODUCT in readers or (made_of_narrow and (is_exact or Reader.STRICT not in readers))

    def _is_made_of_narrow(self, operands: Sequence[ir.Value], precisions: set[Precision]) -> bool:
        if Precision.ALWAYS in precisions:
            return precisions.issubset(FOLLOWING | {Precision.ALWAYS})
        tensors = [v for v in operands if not isinstance(v.owner, Constant)]
        sizes = [guess(TensorType.of(v).num_elements) for v in tensors]
        sources = [v for v, size in zip(tensors, sizes, strict=True) if size == max(sizes)]
        return precisions.issubset(FOLLOWING) and bool(sources) and all(_dtype(v) == self.dtype for v in sources)

    # ---- rewriting

    def _convert(self, group: Fused) -> None:
        result = group.operation.results[0]
        if isinstance(result.type, ir.TupleType):  # of an operator that wants f32
            _widen_body(group.body(), self.stored_narrow, OperationSet(), self.dtype)
            return
        precisions, block = _precisions(group), group.body()
        found = self._products(group)
        products = OperationSet([product.operation for product in found])
        factors = {v for product in found for v in _factors(product)}
        with group.location:
            for value in group.captured():
                if value in factors and _dtype(value) == WIDE:
                    self._replace_inside(block, value, self._narrowed(value, group.operation))
            operands = group.captured()
            made_of_narrow = self._is_made_of_narrow(operands, precisions)
            is_exact = precisions.issubset(EXACT)
            stored = _dtype(result) == WIDE and self._is_stored_narrow(result, made_of_narrow, is_exact)
            if is_exact and stored:
                self._narrow_body(block)
            else:
                _widen_body(block, self.stored_narrow.intersection(operands), products, self.dtype)
            if stored:
                self._store_narrow(group)

    @staticmethod
    def _replace_inside(block: ir.Block, old: ir.Value, new: ir.Value) -> None:
        """Lets the operations of a group use another value."""
        for op in block.operations:
            for position, value in enumerate(op.operation.operands):
                if value == old:
                    op.operation.operands[position] = new

    def _narrowed(self, value: ir.Value, before: ir.Operation) -> ir.Value:
        """A value in bf16; if unknown, it is created before an operation."""
        if value not in self.narrow:
            array = self.mod.value_of(value)
            if array is not None:
                key = value.owner.key or "const"
                with ir.InsertionPoint(value.owner.operation):
                    self.narrow[value] = self.mod.constant(array.astype(numpy_dtype(self.dtype)), f"{key}.{self.precision}")
            else:
                with ir.InsertionPoint(before):
                    group = Fused.create(TensorType.of(value).with_dtype(self.dtype).to_mlir())
                with ir.InsertionPoint(group.body()):
                    Yield(build("cast", value, dtype=self.dtype))
                self.narrow[value] = group.operation.results[0]
            self.stored_narrow.add(self.narrow[value])
        return self.narrow[value]

    def _narrow_body(self, block: ir.Block) -> None:
        """Makes a group of EXACT operators work on bf16."""
        casts = _Casts()
        for op in list(block.operations)[:-1]:
            self._narrow_member(op, casts)

    def _narrow_member(self, op: ir.OpView, casts: "_Casts") -> None:
        """Makes an EXACT operator work on bf16."""
        operation = op.operation
        for position, value in enumerate(operation.operands):
            if _dtype(value) == WIDE:
                operation.operands[position] = self._as_narrow(value, operation, casts)
        for result, type_ in zip(operation.results, op.inferred_types(), strict=True):
            result.set_type(type_.to_mlir())

    def _as_narrow(self, value: ir.Value, before: ir.Operation, casts: "_Casts") -> ir.Value:
        """A value inside a group in bf16: what it was widened from, a constant converted here, or a cast."""
        if isinstance(value.owner, Cast) and _dtype(value.owner.data) == self.dtype:
            return value.owner.data
        return self._narrowed(value, before) if isinstance(value.owner, Constant) else casts.get(value, self.dtype, before)

    def _store_narrow(self, group: Fused) -> None:
        """Changes a group to return bf16.

        An EXACT operator that writes its result in pieces must stay last in its group, because its schedule writes each piece to its final
        place: it moves bf16, and its operands are cast before.
        """
        block, result = group.body(), group.operation.results[0]
        terminator = last_operation(block).operation
        value, casts = terminator.operands[0], _Casts()
        root = value.owner
        moves = isinstance(root, Op) and root.root_only and root.precision is Precision.EXACT
        if _dtype(value) == WIDE and moves and len(list(value.uses)) == 1:
            self._narrow_member(root, casts)
        elif _dtype(value) == WIDE:
            terminator.operands[0] = self._as_narrow(value, terminator, casts)
        result.set_type(terminator.operands[0].type)
        self.stored_narrow.add(result)


class _Casts:
    """Casts inside a group, one for each value and dtype."""

    def __init__(self) -> None:
        self.found: dict[tuple[ir.Value, str], ir.Value] = {}

    def get(self, value: ir.Value, dtype: str, before: ir.Operation) -> ir.Value:
        if (value, dtype) not in self.found:
            with ir.InsertionPoint(before):
                self.found[value, dtype] = build("cast", value, dtype=dtype)
        return self.found[value, dtype]


def _widen_body(block: ir.Block, narrow: set[ir.Value], products: OperationSet, dtype: str) -> None:
    """Makes a group work on f32 but for the operands of its products; `narrow` are the values around it that have become
    narrow, and `dtype` is what operands of products are rounded to."""
    casts = _Casts()
    for op in list(block.operations):
        operation = op.operation
        factors = len(_factors(op)) if operation in products else 0
        for position, value in enumerate(operation.operands):
            if position < factors:
                if _dtype(value) == WIDE:
                    operation.operands[position] = casts.get(value, dtype, operation)
            elif value in narrow:
                operation.operands[position] = casts.get(value, WIDE, operation)
        if factors and "out_dtype" in op.attr_specs:
            operation.attributes["out_dtype"] = ir.StringAttr.get(WIDE)
        elif factors:
            result = operation.results[0]
            uses = list(result.uses)
            result.set_type(TensorType.of(result).with_dtype(dtype).to_mlir())
            with ir.InsertionPoint.after(operation):
                wide = build("cast", result, dtype=WIDE)
            for use in uses:
                use.owner.operation.operands[use.operand_number] = wide


def _relax(block: ir.Block, level: int) -> None:
    """Products with weights in blocks, whose operands stay f32, may be as inexact as a precision."""
    for op in block.operations:
        for member in op.members() if isinstance(op, Fused) else ():
            if isinstance(member, DenseBlocks) and member.accuracy_level < level:
                member.operation.attributes["accuracy_level"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), level)


@module_pass(opt_level=0, name="ToMixedPrecision")
def to_mixed_precision(mod: IRModule, ctx: PassContext) -> IRModule:
    """Computes products and convolutions with bf16 operands, accumulated in f32, or with f16 operands, if the configuration requests it."""
    precision = ctx.get("relay.ToMixedPrecision.precision")
    if precision in NARROW:
        for func in functions(mod):
            for block in list(graph_blocks(func)):
                _Precision(block, mod, precision).run()
                _relax(block, LEVELS[precision])
            erase_dead(func)
        drop_unused_params(mod)
    return mod
