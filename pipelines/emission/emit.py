"""Emission of tir: a thin layer over operation creation that folds index arithmetic and owns insertion points."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, reduce
from math import copysign, gcd
from typing import Any, NamedTuple

from relayc.dialects import mlir
from relayc.dialects.mlir import ir, scf
from relayc.dialects.relay.later import ParallelIf
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.emission.sizes import size_product, size_value
from relayc.symbolic import Dim, Size, divisor, proves

# ---- types


def vector_of(width: int, element: ir.Type) -> ir.Type:
    return ir.VectorType.get([width], element)


def is_vector(value: ir.Value) -> bool:
    return isinstance(value.type, ir.VectorType)


def element_of(type_: ir.Type) -> ir.Type:
    """The element type of a vector type; any other type unchanged."""
    return type_.element_type if isinstance(type_, ir.VectorType) else type_


def like(type_: ir.Type, element: ir.Type) -> ir.Type:
    """`element`, or a vector of it, with the shape of `type_`."""
    return ir.VectorType.get(type_.shape, element) if isinstance(type_, ir.VectorType) else element


# ---- operations


def create(
    name: str, results: Sequence[ir.Type], operands: Sequence[ir.Value], attributes: dict[str, ir.Attribute] | None = None
) -> ir.Value:
    """Builds an operation at the ambient insertion point and returns its first result (None if it has none)."""
    op = ir.Operation.create(name, results=list(results), operands=list(operands), attributes=attributes or {})
    return op.results[0] if results else None


def arith(name: str, a: ir.Value, b: ir.Value) -> ir.Value:
    """An operation of the arith dialect on two values of its result type."""
    return create(f"arith.{name}", [a.type], [a, b])


def compare(predicate: str, a: ir.Value, b: ir.Value) -> ir.Value:
    """i1 (or a vector of it) of a comparison; `predicate` is named as in arith.cmpf or arith.cmpi (ogt, slt, ...)."""
    type_ = a.type
    is_float = isinstance(element_of(type_), ir.FloatType)
    name = "arith.cmpf" if is_float else "arith.cmpi"
    return create(name, [like(type_, ir.IntegerType.get_signless(1))], [a, b], predicate_of(name, predicate))


def predicate_of(operation: str, predicate: str) -> dict[str, ir.Attribute]:
    """The attribute of a comparison, arith.cmpf or arith.cmpi, for the name of its predicate."""
    return {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), PREDICATES[operation].index(predicate))}


PREDICATES = {"arith.cmpi": tuple(map(str, mlir.arith.CmpIPredicate)), "arith.cmpf": tuple(map(str, mlir.arith.CmpFPredicate))}
"""Predicates of the comparisons of the arith dialect by name, in the order of their numbers."""


def all_of(conditions: Sequence[ir.Value]) -> ir.Value:
    """The conjunction of one or more conditions, as an i1."""
    return reduce(partial(arith, "andi"), conditions)


def select(condition: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
    """`a` where the condition holds, otherwise `b`."""
    return create("arith.select", [a.type], [condition, a, b])


def add_floats(a: ir.Value, b: ir.Value) -> ir.Value:
    """a + b of scalars or vectors."""
    return arith("addf", a, b)


def multiply_add(a: ir.Value, b: ir.Value, accumulator: ir.Value) -> ir.Value:
    """a * b + accumulator of scalars or vectors, rounded once for floats."""
    type_ = accumulator.type
    if not isinstance(element_of(type_), ir.FloatType):
        return create("arith.addi", [type_], [create("arith.muli", [type_], [a, b]), accumulator])
    return create("vector.fma" if is_vector(accumulator) else "math.fma", [type_], [a, b, accumulator])


def convert(value: ir.Value, conversions: Sequence[tuple[str, ir.Type]]) -> ir.Value:
    """A scalar or vector after conversions of its elements, (operation, element type) each."""
    for name, element in conversions:
        value = create(name, [like(value.type, element)], [value])
    return value


def broadcast(value: ir.Value, width: int) -> ir.Value:
    """Broadcasts a scalar to a vector of `width` lanes (unchanged for one lane); vectors are unchanged."""
    if width == 1 or is_vector(value):
        return value
    type_, known = vector_of(width, value.type), _CONSTANTS.get()
    attribute = None if known is None else known.attribute_of(value)
    if attribute is None:
        return create("vector.broadcast", [type_], [value])
    return constant(ir.DenseElementsAttr.get_splat(type_, attribute), type_)


# ---- structs of the LLVM dialect


def struct(type_: ir.Type, members: Sequence[ir.Value]) -> ir.Value:
    """A struct of its members."""
    made = create("llvm.mlir.poison", [type_], [])
    for i, value in enumerate(members):
        made = create("llvm.insertvalue", [type_], [made, value], {"position": ir.DenseI64ArrayAttr.get([i])})
    return made


def member(of: ir.Value, position: int, type_: ir.Type) -> ir.Value:
    """A member of a struct."""
    return create("llvm.extractvalue", [type_], [of], {"position": ir.DenseI64ArrayAttr.get([position])})


# ---- constants


class Constants:
    """The constants of a function, each once, at its start.

    Args:
      reuse: whether constants already in the block are reused; none may be erased meanwhile.
    """

    def __init__(self, block: ir.Block, reuse: bool = False) -> None:
        self._block = block
        self._values: dict[tuple[ir.Attribute, ir.Type], ir.Value] = {}
        self._scalars: dict[ir.Value, ir.Attribute] = {}
        self._numbers: dict[tuple[ir.Type, float | int, float], ir.Value] = {}
        self._indices: dict[int, ir.Value] = {}
        self._parsed: dict[str, ir.Attribute] = {}
        for view in block.operations if reuse else ():
            op = view.operation
            if op.name == "arith.constant":
                result, attribute = op.results[0], op.attributes["value"]
                self._values.setdefault((attribute, result.type), result)
                if not isinstance(result.type, ir.VectorType):
                    self._scalars[result] = attribute

    def value(self, attribute: ir.Attribute, type_: ir.Type) -> ir.Value:
        """The constant of an attribute."""
        found = self._values.get((attribute, type_))
        if found is None:
            place = ir.InsertionPoint.at_block_begin(self._block)
            made = ir.Operation.create("arith.constant", results=[type_], attributes={"value": attribute}, ip=place)
            found = self._values[attribute, type_] = made.results[0]
            if not isinstance(type_, ir.VectorType):
                self._scalars[found] = attribute
        return found

    def number(self, value: float | int, type_: ir.Type) -> ir.Value:
        """The constant of a number."""
        key = type_, value, copysign(1.0, value)  # 0 and -0 are equal
        if key not in self._numbers:
            self._numbers[key] = self.value(number_attribute(value, type_), type_)
        return self._numbers[key]

    def index(self, value: int) -> ir.Value:
        """The constant of type index."""
        found = self._indices.get(value)
        if found is None:
            found = self._indices[value] = self.number(value, ir.IndexType.get())
        return found

    def parsed(self, text: str) -> ir.Attribute:
        """Parses an attribute."""
        found = self._parsed.get(text)
        if found is None:
            found = self._parsed[text] = ir.Attribute.parse(text)
        return found

    def attribute_of(self, value: ir.Value) -> ir.Attribute | None:
        """The attribute of a scalar constant; None for any other value."""
        return self._scalars.get(value)


_CONSTANTS: ContextVar[Constants | None] = ContextVar("relayc_constants", default=None)


@contextmanager
def constants_at(block: ir.Block | Constants) -> Iterator[None]:
    """Context in which constants are emitted at the start of a block, each once."""
    token = _CONSTANTS.set(block if isinstance(block, Constants) else Constants(block))
    try:
        yield
    finally:
        _CONSTANTS.reset(token)


def parsed(text: str) -> ir.Attribute:
    """Parses an attribute, once per function."""
    known = _CONSTANTS.get()
    return ir.Attribute.parse(text) if known is None else known.parsed(text)


def constant(attribute: ir.Attribute, type_: ir.Type) -> ir.Value:
    known = _CONSTANTS.get()
    return create("arith.constant", [type_], [], {"value": attribute}) if known is None else known.value(attribute, type_)


def number(value: float | int, type_: ir.Type) -> ir.Value:
    """A constant of a scalar type, or splat over a vector type."""
    known = _CONSTANTS.get()
    return constant(number_attribute(value, type_), type_) if known is None else known.number(value, type_)


def number_attribute(value: float | int, type_: ir.Type) -> ir.Attribute:
    """A number of a scalar type, or splat over a vector type, as an attribute."""
    element = element_of(type_)
    scalar = ir.FloatAttr.get(element, value) if isinstance(element, ir.FloatType) else ir.IntegerAttr.get(element, value)
    return ir.DenseElementsAttr.get_splat(type_, scalar) if element != type_ else scalar


def index_constant(value: Size) -> ir.Value:
    """A size as a value of type index: a constant, or computed from the symbols of the function."""
    if not isinstance(value, int):
        return size_value(value)
    known = _CONSTANTS.get()
    return number(value, ir.IndexType.get()) if known is None else known.index(value)


def zero(type_: ir.Type) -> ir.Value:
    """The zero of a scalar or vector type."""
    return number(0, type_)


# ---- indices


def materialize(index: Index) -> ir.Value:
    """An index expression without lanes as a value of type index, through one affine.apply."""
    if index.is_constant:
        return index_constant(index.const)
    if isinstance(index.const, Dim) or any(isinstance(c, Dim) for c in index.terms.values()):
        index = _with_sizes_as_values(index)
    variables = list(index.terms)
    if index.const == 0 and len(variables) == 1 and index.terms[variables[0]] == 1:
        return variables[0].value
    expr = ir.AffineExpr.get_constant(index.const)
    for position, v in enumerate(variables):
        expr = ir.AffineExpr.get_dim(position) * index.terms[v] + expr
    amap = ir.AffineMapAttr.get(ir.AffineMap.get(len(variables), 0, [expr]))
    return create("affine.apply", [ir.IndexType.get()], [v.value for v in variables], {"map": amap})


def _with_sizes_as_values(index: Index) -> Index:
    """An index expression with symbolic coefficients multiplied out: affine maps contain numbers only."""
    terms: dict[Var, Size] = {}
    for v, c in index.terms.items():
        if isinstance(c, Dim):
            terms[Var(0, 0, size_product(v.value, c))] = 1
        else:
            terms[v] = c
    if isinstance(index.const, Dim):
        return Index(0, {**terms, Var(0, 0, size_value(index.const)): 1})
    return Index(index.const, terms)


def no_overflow() -> dict[str, ir.Attribute]:
    """The attribute of an operation on indices without signed overflow in 64 bits."""
    return {"overflowFlags": parsed("#arith.overflow<nsw>")}


def smaller(value: ir.Value, limit: Size) -> ir.Value:
    """The minimum of a signed index and a number."""
    return arith("minsi", value, index_constant(limit))


def larger(value: ir.Value, limit: Size) -> ir.Value:
    """The maximum of a signed index and a number."""
    return arith("maxsi", value, index_constant(limit))


def at_most(index: Index, limit: Size) -> Index:
    """The minimum of an index and a size."""
    low, high = index.bounds()
    if proves(lambda: high <= limit):
        return index
    least = low if proves(lambda: low <= limit) else limit if proves(lambda: limit <= low) else 0
    step = gcd(index.divisor, divisor(limit))
    return Index.of(Var(least, limit, smaller(materialize(index), limit), step=step, name="bound"))


def steps_inside(first: Index, end: Index, stride: int, count: Size) -> tuple[ir.Value, ir.Value]:
    """First and one-past-last of the `count` steps n for which first <= n * stride < end."""

    def steps(limit: Index) -> ir.Value:  # ceil(limit / stride)
        value = materialize(limit)
        return value if stride == 1 else arith("ceildivsi", value, index_constant(stride))

    return larger(steps(first), 0), smaller(steps(end), count)


def below(index: Index, limit: Size) -> ir.Value:
    """Whether 0 <= index < limit."""
    return compare("ult", materialize(index), index_constant(limit))


# ---- control flow


class Serial(NamedTuple):
    """A loop during the emission of its body: the loop-carried values in the body, and the results."""

    inner_iter_args: Sequence[ir.Value]
    results: Sequence[ir.Value]


@contextmanager
def for_loop(
    low: ir.Value | Size, high: ir.Value | Size, step: ir.Value | Size, var: Var, inits: Sequence[ir.Value] = ()
) -> Iterator[Serial]:
    """An scf.for; sets `var.value` to its induction variable and yields the loop; the insertion point is in its body.

    With `inits` the body must end in `yield_values`. Indices are simplified by the bounds of the variable.
    """
    assert _is_within(low, high, step, var), f"{var.name}: {low} to {high} by {step} in {var.low} to {var.high}"
    bounds = [index_constant(b) if isinstance(b, (int, Dim)) else b for b in (low, high, step)]
    loop = serial_loop(bounds, inits)
    body = loop.regions[0].blocks[0]
    var.value, *carried = body.arguments
    with ir.InsertionPoint(body):
        yield Serial(carried, loop.results)
        if not inits:
            yield_values([])


def _is_within(low: Any, high: Any, step: Any, var: Var) -> bool:
    """Whether the values of a loop are within the bounds of its variable, as far as known; bounds of 0 allow any value."""
    if not all(isinstance(n, int) for n in (low, high, step, var.low, var.high)) or var.low == var.high == 0:
        return True
    numbers = range(low, high, step)
    return not numbers or var.low <= numbers[0] <= numbers[-1] <= var.high


def serial_loop(
    bounds: Sequence[ir.Value], inits: Sequence[ir.Value] = (), attributes: dict[str, ir.Attribute] | None = None
) -> ir.Operation:
    """An scf.for at the ambient insertion point, with bounds low, high and step, and an empty body."""
    types = [v.type for v in inits]
    made = ir.Operation.create("scf.for", results=types, operands=[*bounds, *inits], attributes=attributes or {}, regions=1)
    made.regions[0].blocks.append(bounds[0].type, *types)
    return made


@contextmanager
def if_all(conditions: Sequence[ir.Value]) -> Iterator[None]:
    """Context in which code is emitted in a branch that runs if all conditions hold; no branch without conditions."""
    if not conditions:
        yield
        return
    with ir.InsertionPoint(scf.IfOp(all_of(conditions)).then_block):
        yield
        yield_values([])


def chosen(condition: ir.Value, then: Callable[[], Sequence[ir.Value]], otherwise: Sequence[ir.Value]) -> list[ir.Value]:
    """The values that `then` emits in a branch that runs if the condition holds, otherwise the given ones."""
    branch = scf.IfOp(condition, [v.type for v in otherwise], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        yield_values(then())
    with ir.InsertionPoint(branch.else_block):
        yield_values(otherwise)
    return list(branch.results)


def repeat_while(
    carried: Sequence[ir.Value],
    goes_on: Callable[[Sequence[ir.Value]], ir.Value],
    body: Callable[[Sequence[ir.Value]], Sequence[ir.Value]],
) -> list[ir.Value]:
    """while goes_on(carried): carried = body(carried). Returns the last `carried`."""
    types = [v.type for v in carried]
    made = ir.Operation.create("scf.while", results=types, operands=list(carried), regions=2)
    before, after = (region.blocks.append(*types) for region in made.regions)
    with ir.InsertionPoint(before):
        condition = goes_on(list(before.arguments))
        ir.Operation.create("scf.condition", operands=[condition, *before.arguments])
    with ir.InsertionPoint(after):
        yield_values(body(list(after.arguments)))
    return list(made.results)


def yield_values(values: Sequence[ir.Value], place: ir.InsertionPoint | None = None) -> None:
    """The scf.yield of values at the ambient insertion point, or at another one."""
    ir.Operation.create("scf.yield", operands=list(values), ip=place)


def first_lanes(count: ir.Value, width: int) -> ir.Value:
    """A mask of the first `count` of `width` lanes."""
    return create("vector.create_mask", [vector_of(width, ir.IntegerType.get_signless(1))], [count])


@contextmanager
def parallel_loop(variables: Sequence[Var], work: Size = 0, grain: int = 0, extents: Sequence[ir.Value] = ()) -> Iterator[None]:
    """An scf.parallel in which each variable runs from 0 to its upper bound; sets their values; the insertion point is in its body.

    Args:
      work, grain: if `work` is a symbolic size, the loop runs on one thread unless it is at least `grain`.
      extents: how often each variable iterates, where values say it and the variables do not.
    """
    if isinstance(work, Dim) and not proves(lambda: work >= grain):
        create(ParallelIf.OPERATION_NAME, [], [compare("sge", size_value(work), index_constant(grain))])
    index, count = ir.IndexType.get(), len(variables)
    low, step = index_constant(0), index_constant(1)
    bounds = [low] * count + list(extents or (index_constant(v.extent) for v in variables)) + [step] * count
    segments = ir.DenseI32ArrayAttr.get([count, count, count, 0])
    op = ir.Operation.create("scf.parallel", results=[], operands=bounds, attributes={"operandSegmentSizes": segments}, regions=1)
    block = op.regions[0].blocks.append(*[index] * count)
    for variable, argument in zip(variables, block.arguments, strict=True):
        variable.value = argument
    with ir.InsertionPoint(block):
        yield
        ir.Operation.create("scf.reduce", results=[], operands=[])
