"""Emission of tir: a thin layer over operation creation that folds index arithmetic and owns insertion points."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from relayc.dialects.mlir import ir, scf
from relayc.pipelines.schedule.index import Index, Var

Value = ir.Value


def vector_of(width: int, element: ir.Type) -> ir.Type:
    return ir.VectorType.get([width], element)


def is_vector(value: Value) -> bool:
    return isinstance(value.type, ir.VectorType)


def create(name: str, results: Sequence[ir.Type], operands: Sequence[Value], attributes: dict[str, ir.Attribute] | None = None) -> Value:
    """Builds an operation at the ambient insertion point and gives its first result (None where it has none)."""
    op = ir.Operation.create(name, results=list(results), operands=list(operands), attributes=attributes or {})
    return op.results[0] if results else None


def index_constant(value: int) -> Value:
    type_ = ir.IndexType.get()
    return create("arith.constant", [type_], [], {"value": ir.IntegerAttr.get(type_, value)})


def constant(attribute: ir.Attribute, type_: ir.Type) -> Value:
    return create("arith.constant", [type_], [], {"value": attribute})


def zero(type_: ir.Type) -> Value:
    """The zero of a scalar or vector type."""
    element = type_.element_type if isinstance(type_, ir.VectorType) else type_
    scalar = ir.FloatAttr.get(element, 0.0) if isinstance(element, ir.FloatType) else ir.IntegerAttr.get(element, 0)
    return constant(ir.DenseElementsAttr.get_splat(type_, scalar) if isinstance(type_, ir.VectorType) else scalar, type_)


def broadcast(value: Value, width: int) -> Value:
    """A scalar as a vector of `width` equal lanes (as itself for one lane); vectors as they are."""
    return value if width == 1 or is_vector(value) else create("vector.broadcast", [vector_of(width, value.type)], [value])


def local_buffer(size: int, element: ir.Type) -> Value:
    """A flat buffer on the stack, aligned to cache lines: in the body of a parallel loop one for each thread."""
    attributes = {
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
        "alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 64),
    }
    return create("memref.alloca", [ir.MemRefType.get([size], element)], [], attributes)


def materialize(index: Index) -> Value:
    """An index expression without lanes as a value of type index, through one affine.apply."""
    if index.is_constant:
        return index_constant(index.const)
    variables = list(index.terms)
    if index.const == 0 and len(variables) == 1 and index.terms[variables[0]] == 1:
        return variables[0].value
    expr = ir.AffineExpr.get_constant(index.const)
    for position, v in enumerate(variables):
        expr = ir.AffineExpr.get_dim(position) * index.terms[v] + expr
    amap = ir.AffineMapAttr.get(ir.AffineMap.get(len(variables), 0, [expr]))
    return create("affine.apply", [ir.IndexType.get()], [v.value for v in variables], {"map": amap})


def transpose(rows: Sequence[Value]) -> list[Value]:
    """The transpose of n vectors of n lanes (n a power of two), by interleaving blocks of 1, 2, 4, ... lanes."""
    rows, n = list(rows), len(rows)
    type_ = rows[0].type
    block = 1
    while block < n:
        low = [lane if not lane & block else n + lane - block for lane in range(n)]
        high = [lane + block if not lane & block else n + lane for lane in range(n)]
        result = list(rows)
        for i in range(n):
            if not i & block:
                for at, mask in ((i, low), (i + block, high)):
                    result[at] = create("vector.shuffle", [type_], [rows[i], rows[i + block]], {"mask": ir.DenseI64ArrayAttr.get(mask)})
        rows, block = result, block * 2
    return rows


def at_most(index: Index, limit: int) -> Index:
    """The smaller of an index and a number."""
    low, high = index.bounds()
    if high <= limit:
        return index
    value = create("arith.minsi", [ir.IndexType.get()], [materialize(index), index_constant(limit)])
    return Index.of(Var(min(low, limit), limit, value, name="bound"))


def prefetch(buffer: Value, index: Index, level: int = 2) -> None:
    """Asks for the cache line of an element of a flat buffer, which may lie beyond its end, to come to the cache of a level (1 to 3)."""
    attributes = {
        "isWrite": ir.BoolAttr.get(False),
        "localityHint": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 4 - level),
        "isDataCache": ir.BoolAttr.get(True),
    }
    create("memref.prefetch", [], [buffer, materialize(at_most(index, buffer.type.shape[0] - 1))], attributes)


def multiply_add(a: Value, b: Value, accumulator: Value) -> Value:
    """a * b + accumulator of scalars or vectors, rounded once where they are floats."""
    type_ = accumulator.type
    element = type_.element_type if is_vector(accumulator) else type_
    if not isinstance(element, ir.FloatType):
        return create("arith.addi", [type_], [create("arith.muli", [type_], [a, b]), accumulator])
    return create("vector.fma" if is_vector(accumulator) else "math.fma", [type_], [a, b, accumulator])


def below(index: Index, limit: int) -> Value:
    """Whether 0 <= index < limit."""
    predicate = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 6)}  # ult
    return create("arith.cmpi", [ir.IntegerType.get_signless(1)], [materialize(index), index_constant(limit)], predicate)


def when(condition: Value, then: Callable[[], None], otherwise: Callable[[], None] | None = None) -> None:
    """Emits a branch."""
    branch = scf.IfOp(condition, has_else=otherwise is not None)
    for region, code in ((branch.then_block, then), (branch.else_block if otherwise is not None else None, otherwise)):
        if region is not None and code is not None:
            with ir.InsertionPoint(region):
                code()
                scf.YieldOp([])


@contextmanager
def for_loop(low: Value | int, high: Value | int, step: int, var: Var, inits: Sequence[Value] = ()) -> Iterator[Any]:
    """An scf.for; sets `var.value` to its induction variable and gives the loop, whose body is the insertion point.

    With `inits` the body must end in `yield_values`.
    """
    bounds = [index_constant(b) if isinstance(b, int) else b for b in (low, high)]
    loop = scf.ForOp(bounds[0], bounds[1], index_constant(step), list(inits))
    var.value = loop.induction_variable
    with ir.InsertionPoint(loop.body):
        yield loop
        if not inits:
            scf.YieldOp([])


def yield_values(values: Sequence[Value]) -> None:
    scf.YieldOp(list(values))


def parallel_loop(extents: Sequence[int], variables: Sequence[Var], body: Callable[[], None]) -> None:
    """An scf.parallel over the box of `extents`; sets the values of `variables` and emits `body` inside."""
    index, count = ir.IndexType.get(), len(extents)
    low, step = index_constant(0), index_constant(1)
    bounds = [low] * count + [index_constant(e) for e in extents] + [step] * count
    segments = ir.DenseI32ArrayAttr.get([count, count, count, 0])
    op = ir.Operation.create("scf.parallel", results=[], operands=bounds, attributes={"operandSegmentSizes": segments}, regions=1)
    block = op.regions[0].blocks.append(*[index] * count)
    for variable, argument in zip(variables, block.arguments, strict=True):
        variable.value = argument
    with ir.InsertionPoint(block):
        body()
        ir.Operation.create("scf.reduce", results=[], operands=[])
