"""The names of TVMScript: `from relayc.tir import T`.

They have a meaning only in a function that `T.prim_func` reads, except `T.Buffer`. Math functions compute 16-bit floats in float32, and
round once.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relayc.dialects.mlir import ir
from relayc.dialects.relay.errors import RelayError, check
from relayc.dialects.relay.types import MLIR_NAMES
from relayc.dialects.tir.block import OPAQUE, PARALLEL, REDUCTION
from relayc.dialects.tir.names import Kind
from relayc.pipelines.emission.emit import PREDICATES, predicate_of
from relayc.pipelines.te.language import reductions
from relayc.pipelines.te.language.dtypes import check_dtype, is_integer
from relayc.pipelines.te.language.naming import FLOAT_FUNCTIONS as _FLOAT_FUNCTIONS
from relayc.pipelines.te.language.naming import called as _called
from relayc.pipelines.te.language.scalars import operation
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.tir.script import values
from relayc.pipelines.tir.script.buffers import Buffer as _Buffer
from relayc.pipelines.tir.script.buffers import BufferRegion, BufferType, Handle, read_shape
from relayc.pipelines.tir.script.building import current
from relayc.pipelines.tir.script.reader import from_source, prim_func
from relayc.pipelines.tir.script.specs import GUARDED, REGIONS, Allocation, Axis, BlockSpec, Init, Loops, MatchedBuffer, Symbol, takes
from relayc.pipelines.tir.script.values import Expr, ExprLike, IndexExpr, Scalar, as_index, cast, reinterpret, size_of
from relayc.pipelines.tir.tree.indices import opaque
from relayc.symbolic import is_name

__all__ = ["cast", "from_source", "prim_func", "reinterpret"]

Buffer = BufferType
"""Annotation of an argument: `A: T.Buffer((128, "n"), "float32")`. Texts are sizes: symbols, and expressions over them."""

handle = Handle
"""Annotation of an argument that `T.match_buffer` describes."""


# ---- the function


def match_buffer(param: object, shape: Any, dtype: str = "float32") -> MatchedBuffer:
    """`A = T.match_buffer(a, (n, 64), "float32")`: describes the buffer of an argument."""
    return MatchedBuffer(param, read_shape(shape, "T.match_buffer"), check_dtype(dtype, "T.match_buffer"))


def alloc_buffer(shape: Any, dtype: str = "float32", scope: str = "global", name: str | None = None) -> Allocation:
    """`C = T.alloc_buffer((128, n), "float32")`: memory that the function allocates while it runs.

    Args:
      scope: memory scope: "global", "local" (to a thread), or a scope of the target.
      name: of the buffer, if it differs from the variable's.
    """
    return Allocation(read_shape(shape, "T.alloc_buffer"), check_dtype(dtype, "T.alloc_buffer"), scope, name)


def var(dtype: str = "int64", name: str | None = None) -> Symbol:
    """`n = T.var("int64")`: a size that follows from the shapes of the arguments; `T.int64()` is equivalent."""
    check(dtype in ("int32", "int64"), "T.var", "int32 or int64", dtype)
    check(name is None or is_name(name), "T.var", "a name of a size", repr(name))
    return Symbol(name)


# ---- loops


def _of_kind(kind: str, name: str, doc: str) -> Callable[..., Loops]:
    def function(start: ExprLike, stop: ExprLike = None, *, annotations: Mapping[str, Any] | None = None, name: str | None = None) -> Loops:
        return _loop(start, stop, kind, annotations, name)

    return _called(function, name, doc)


serial = _of_kind(Kind.SERIAL, "serial", "A serial loop, over 0 to `start`, or from `start` to `stop`.")
parallel = _of_kind(Kind.PARALLEL, "parallel", "A loop whose iterations are distributed over threads.")
vectorized = _of_kind(Kind.VECTORIZED, "vectorized", "A loop whose iterations are vector lanes.")
unroll = _of_kind(Kind.UNROLLED, "unroll", "A loop that is unrolled.")


def thread_binding(
    start: ExprLike,
    stop: ExprLike = None,
    thread: str = "",
    *,
    annotations: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Loops:
    """A loop whose iterations are threads of a GPU: `thread` is "blockIdx.x", "threadIdx.x", "vthread.x", ..."""
    if isinstance(stop, str):
        stop, thread = None, stop
    check(thread in Kind.THREADS, "T.thread_binding: thread", f"one of {', '.join(Kind.THREADS)}", repr(thread))
    return _loop(start, stop, thread, annotations, name)


def grid(*extents: ExprLike) -> Loops:
    """Nested loops: `for i, j in T.grid(128, n):`."""
    check(len(extents) > 0, "T.grid", "extents", "none")
    return Loops(tuple((0, size_of(e, "T.grid")) for e in extents), Kind.SERIAL, {})


def _loop(start: ExprLike, stop: ExprLike, kind: str, annotations: Mapping[str, Any] | None, name: str | None) -> Loops:
    what = "a loop"
    first, end = (0, size_of(start, what)) if stop is None else (size_of(start, what), size_of(stop, what))
    return Loops(((first, size_of(end - first, f"{what} from {first} to {end}")),), kind, annotations or {}, name)


# ---- blocks


def block(name: str) -> BlockSpec:
    """`with T.block("C"):`: the computation at one point of the loops around it; the name is unique in the function."""
    check(isinstance(name, str) and name != "", "T.block", "a name", repr(name))
    return BlockSpec(name)


def init() -> Init:
    """`with T.init():`: runs before the first step of a block's reduction."""
    return Init()


@takes(REGIONS)
def reads(*regions: Any) -> None:
    """The buffers, or regions of buffers, that a block reads. Buffers are checked; the regions follow from the accesses themselves."""
    _regions("T.reads", regions)


@takes(REGIONS)
def writes(*regions: Any) -> None:
    """The buffers, or regions of buffers, that a block writes; see `reads`."""
    _regions("T.writes", regions)


def _regions(what: str, regions: Sequence[Any]) -> None:
    given = [r for entry in regions for r in (entry if isinstance(entry, (list, tuple)) else [entry])]
    frame = current(what).header(what)
    for region in given:
        check(isinstance(region, (_Buffer, BufferRegion)), what, "buffers and regions of them", repr(region))
    buffers = [r.buffer if isinstance(r, BufferRegion) else r for r in given]
    frame.said[what] = [(b.name, b.value) for b in buffers]


def where(predicate: ExprLike) -> None:
    """The predicate of the block: comparisons of indices, joined by `and`."""
    state = current("T.where")
    flag = values.condition(predicate, "T.where")
    if flag.less is None:
        raise RelayError("T.where: expected comparisons of indices (<, <=, >, >=, ==), joined by and, found another condition")
    state.add_guards(flag.less)


def func_attr(attrs: Mapping[str, Any]) -> None:
    """Accepted for compatibility with TVM: its attributes (global_symbol, tir.noalias) hold for every function here."""


def block_attr(attrs: Mapping[str, Any]) -> None:
    """Annotations of a block, by name."""
    current("T.block_attr").header("T.block_attr").annotations.update(attrs)


class _Axes:
    """`T.axis`: the iterators of a block."""

    def spatial(self, dom: ExprLike, value: ExprLike) -> Axis:
        """A parallel iterator: `vi = T.axis.spatial(128, i0 * 32 + i1)`."""
        return self._axis(PARALLEL, dom, value, "spatial")

    def reduce(self, dom: ExprLike, value: ExprLike) -> Axis:
        """A reduction iterator."""
        return self._axis(REDUCTION, dom, value, "reduce")

    def opaque(self, dom: ExprLike, value: ExprLike) -> Axis:
        """An iterator whose values must be taken in the order of the loops."""
        return self._axis(OPAQUE, dom, value, "opaque")

    S, R = spatial, reduce

    def remap(self, kinds: str, bindings: Sequence[ExprLike]) -> tuple[Axis, ...]:
        """An iterator for each of several loops, over their extents: `vi, vk = T.axis.remap("SR", [i, k])`."""
        given = list(bindings)
        what = "T.axis.remap"
        names = {"S": PARALLEL, "R": REDUCTION, "O": OPAQUE}
        check(len(kinds) == len(given) and set(kinds) <= set(names), what, f"{len(given)} letters of S, R and O", repr(kinds))
        found = []
        for kind, value in zip(kinds, given, strict=True):
            index = as_index(value, what)
            (loop,) = index.terms if len(index.terms) == 1 else (None,)
            check(loop is not None and index.coefficient(loop) == 1 and index.const == 0, what, "loops that start at 0", repr(value))
            assert loop is not None
            found.append(Axis(names[kind], loop.extent, index))
        return tuple(found)

    def _axis(self, kind: str, dom: ExprLike, value: ExprLike, name: str) -> Axis:
        what = f"T.axis.{name}"
        if isinstance(dom, (tuple, list)):
            check(len(dom) == 2 and dom[0] == 0, what, "an extent, or a range that starts at 0", dom)
            dom = dom[1]
        return Axis(kind, size_of(dom, what), as_index(value, what))


axis = _Axes()


# ---- values


def _converter(dtype: str) -> Callable[..., Any]:
    def convert(value: ExprLike = None) -> Any:
        if value is None:
            check(dtype in ("int32", "int64"), f"T.{dtype}", "a value", "none")
            return Symbol(None)
        return cast(float(value) if isinstance(value, str) else value, dtype)

    convert.__name__ = convert.__qualname__ = dtype
    convert.__doc__ = f"A number, or a value, as {dtype}."
    return convert


float16, bfloat16, float32, float64 = map(_converter, ("float16", "bfloat16", "float32", "float64"))
int8, int16, int32, int64 = map(_converter, ("int8", "int16", "int32", "int64"))
uint8, uint16, uint32, uint64 = map(_converter, ("uint8", "uint16", "uint32", "uint64"))
bool = _converter("bool")
index = _converter("index")


def Cast(dtype: str, value: ExprLike) -> Expr:
    """`cast` with its arguments reversed."""
    return cast(value, dtype)


@takes(GUARDED)
def if_then_else(cond: ExprLike, t: ExprLike, f: ExprLike) -> Expr:
    """`t` if the condition holds, otherwise `f`. The value not selected is not loaded where it is out of bounds."""
    return values.select(cond, t, f, "T.if_then_else")


def Select(condition: ExprLike, true_value: ExprLike, false_value: ExprLike) -> Expr:
    """One of two values by a condition; both are computed, so that their loads must be in bounds."""
    return values.select(condition, true_value, false_value, "T.Select")


@takes(GUARDED)
def And(*conditions: ExprLike) -> Expr:
    """Whether all conditions hold; equivalent to `and`."""
    return _joined(values.both, "T.And", conditions)


@takes(GUARDED)
def Or(*conditions: ExprLike) -> Expr:
    """Whether any condition holds; equivalent to `or`."""
    return _joined(values.either, "T.Or", conditions)


def Not(condition: ExprLike) -> Expr:
    """Whether a condition does not hold; equivalent to `not`."""
    return values.negated(condition)


all, any = And, Or


def _joined(combine: Callable[[ExprLike, ExprLike], Expr], what: str, conditions: Sequence[ExprLike]) -> Expr:
    check(len(conditions) > 0, what, "one condition or more", "none")
    found: Expr = values.condition(conditions[0], what)
    for other in conditions[1:]:
        found = combine(found, other)
    return found


def _of_numbers(name: str, operation_: str, doc: str) -> Callable[[ExprLike, ExprLike], Any]:
    def function(a: ExprLike, b: ExprLike) -> Any:
        if values.is_number(a) and values.is_number(b):
            a = IndexExpr(as_index(a, f"T.{name}")) if isinstance(a, int) else values.expr(a, f"T.{name}")
        return values.binary(operation_, a, b)

    return _called(function, name, doc)


max = _of_numbers("max", "maximum", "The larger of two values; NaN where one is.")
min = _of_numbers("min", "minimum", "The smaller of two values; NaN where one is.")
pow = power = _of_numbers("pow", "power", "a to the power of b.")
floordiv = _of_numbers("floordiv", "floor_divide", "a / b rounded down, as `//`.")
floormod = _of_numbers("floormod", "floor_mod", "What remains of `floordiv`, with the sign of b, as `%`.")
truncdiv = _of_numbers("truncdiv", "truncdiv", "a / b rounded towards 0, of integers.")
truncmod = _of_numbers("truncmod", "truncmod", "What remains of `truncdiv`, with the sign of a.")
fmod = _of_numbers("fmod", "fmod", "What remains of a / b rounded towards 0, of floats.")


def _of_bits(name: str, operation_: str, doc: str) -> Callable[[ExprLike, ExprLike], Expr]:
    def function(a: ExprLike, b: ExprLike) -> Expr:
        return values.bitwise(operation_, a, b)

    return _called(function, name, doc)


bitwise_and = _of_bits("bitwise_and", "bitwise_and", "a & b.")
bitwise_or = _of_bits("bitwise_or", "bitwise_or", "a | b.")
bitwise_xor = _of_bits("bitwise_xor", "bitwise_xor", "a ^ b.")
shift_left = _of_bits("shift_left", "left_shift", "a << b.")
shift_right = _of_bits("shift_right", "right_shift", "a >> b; of signed integers the sign stays.")


def _of_floats(name: str, doc: str) -> Callable[[ExprLike], Expr]:
    def function(x: ExprLike) -> Expr:
        found = values.expr(float(x) if isinstance(x, int) else x, f"T.{name}")
        check(isinstance(found, Scalar) and scalar.is_float(found.dtype), f"T.{name}", "a float (T.cast)", found.dtype)
        return values.unary(name, found)

    return _called(function, name, doc)


# fmt: off
(
    exp, log, log2, log10, sqrt, rsqrt, sigmoid, erf, sin, cos,
    tan, asin, acos, atan, sinh, cosh, tanh, asinh, acosh, atanh,
) = (_of_floats(name, doc) for name, doc in _FLOAT_FUNCTIONS.items())
# fmt: on
ceil = _of_floats("ceil", "Rounded up.")
floor = _of_floats("floor", "Rounded down.")
trunc = _of_floats("trunc", "Rounded towards 0.")
round = nearbyint = _of_floats("round", "Rounded to the nearest whole number, halves to the even one.")


def abs(x: ExprLike) -> Expr:
    """The absolute value."""
    return values.unary("abs", x)


def _test(name: str, doc: str) -> Callable[[ExprLike], Expr]:
    def function(x: ExprLike) -> Expr:
        found = values.expr(x, f"T.{name}")
        check(isinstance(found, Scalar) and scalar.is_float(found.dtype), f"T.{name}", "a float (T.cast)", found.dtype)
        assert isinstance(found, Scalar)
        return values.Flag(lambda: operation(name, [found.value], found.dtype))

    return _called(function, name, doc)


isnan = _test("isnan", "Whether x is NaN.")
isinf = _test("isinf", "Whether x is an infinity.")
isfinite = _test("isfinite", "Whether x is neither an infinity nor NaN.")


def _bits(name: str, doc: str) -> Callable[[ExprLike], Expr]:
    def function(x: ExprLike) -> Expr:
        found = values.expr(x, f"T.{name}")
        check(is_integer(found.dtype), f"T.{name}", "an integer (T.cast)", found.dtype)
        return values.unary(name, found)

    return _called(function, name, doc)


popcount = _bits("popcount", "How many bits are set.")
clz = _bits("clz", "How many of the highest bits are not set.")


def min_value(dtype: str) -> Expr:
    """The lowest number of a dtype; the lowest finite one for floats."""
    return cast(reductions.min_value(dtype).value, dtype)


def max_value(dtype: str) -> Expr:
    """The highest number of a dtype; the highest finite one for floats."""
    return cast(reductions.max_value(dtype).value, dtype)


def infinity(dtype: str) -> Expr:
    """Infinity as a float dtype."""
    return cast(reductions.infinity(dtype).value, dtype)


def op(
    name: str, *operands: Any, result: str | None = "", predicate: str | None = None, attributes: Mapping[str, str] | None = None
) -> Any:
    """An MLIR operation by its name: `T.op("math.fma", a, b, c)`, `T.op("vector.load", A, i, j, result="vector<8xf32>")`.

    Args:
      operands: buffers, and values of explicit type.
      result: the type of its result as a dtype or as MLIR text; by default the type of the first operand, None for no result.
      predicate: of arith.cmpi and arith.cmpf, by name: "ult", "une", ...
      attributes: as MLIR text by name.

    Raises RelayError if there is no such operation, or it does not verify.
    """
    what = f"T.op({name!r})"
    current(what).in_block(what)
    given = [x.value if isinstance(x, _Buffer) else values.value_of(x, what) for x in operands]
    if predicate is not None:
        return _comparison(name, given, predicate, what)
    check(result != "" or len(given) > 0, what, "result=, the type of its result", "neither that nor an operand")
    try:
        types = [] if result is None else [given[0].type if result == "" else _type(result)]
        made = ir.Operation.create(name, types, given, {key: ir.Attribute.parse(text) for key, text in (attributes or {}).items()})
        made.verify()
    except (ir.MLIRError, ValueError) as error:
        raise RelayError(f"{what}: expected an operation of MLIR, found {error}") from None
    if result is None:
        return None
    value = made.results[0]
    first = operands[0].dtype if result == "" and isinstance(operands[0], Expr) else result
    return computed(value, first)


def computed(value: ir.Value, dtype: str | None) -> Expr:
    """The result of an operation as an expression; `dtype` interprets it if its type is ambiguous."""
    if isinstance(value.type, ir.IndexType):
        return IndexExpr(opaque(value))
    if str(value.type) == "i1":
        return values.Flag(lambda: value)
    if dtype in MLIR_NAMES:
        return Scalar(value, str(dtype))
    return Scalar(value, next((name for name, text in MLIR_NAMES.items() if text == str(value.type)), str(value.type)))


def _type(text: str) -> ir.Type:
    if text == "index":
        return ir.IndexType.get()
    if text == "bool":
        return ir.IntegerType.get_signless(1)
    return scalar.te_element(text) if text in MLIR_NAMES else ir.Type.parse(text)


def _comparison(name: str, operands: Sequence[ir.Value], predicate: str, what: str) -> Expr:
    known = PREDICATES.get(name, ())
    check(predicate in known and len(operands) == 2, what, f"two operands and a predicate of {', '.join(known)}", repr(predicate))
    made = ir.Operation.create(name, [ir.IntegerType.get_signless(1)], list(operands), predicate_of(name, predicate)).results[0]
    return values.Flag(lambda: made)
