"""Reductions: axes, and functions that combine the values along them."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from relayc.dialects.relay.errors import check
from relayc.pipelines.te.language.dtypes import check_dtype
from relayc.pipelines.te.language.expressions import (
    Argument,
    Const,
    Expr,
    ExprLike,
    IterVar,
    Reduce,
    binary,
    condition,
    const,
    expr,
    if_then_else,
    matched,
    read_size,
    size_of,
)
from relayc.pipelines.te.rules import scalar

Axes: TypeAlias = IterVar | Sequence[IterVar]
_FLOAT_MAX = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38, "float64": 1.7976931348623157e308}


def reduce_axis(dom: Sequence[ExprLike], name: str = "rv") -> IterVar:
    """An axis to reduce over: from `dom[0]` up to but not including `dom[1]`.

    Raises RelayError for bounds that are not sizes, and for a first bound above the second.
    """
    what = f"te.reduce_axis {name}"
    check(isinstance(dom, Sequence) and len(dom) == 2, what, "its first value and the one behind its last", dom)
    ends = [size_of(expr(end, what)) for end in dom]
    check(None not in ends, what, "bounds that are numbers or expressions over te.var", tuple(dom))
    low, extent = ends[0], read_size(expr(dom[1]) - expr(dom[0]), f"{what}: extent")
    assert low is not None
    return IterVar(name, low, extent, True)


class CommReducer:
    """A commutative, associative function with an identity that reduces one value, or several together.

    Called with an expression and axes, `reducer(A[i, k], axis=k)`, it creates a reduction; called with values alone, `reducer(a, b)`, it
    combines them.
    """

    def __init__(self, fcombine: Callable, fidentity: Callable, name: str) -> None:
        self._fcombine, self._fidentity, self.name = fcombine, fidentity, name

    def combine(self, lhs: Sequence[Expr], rhs: Sequence[Expr]) -> list[Expr]:
        """Combines two values, each of as many expressions as are reduced together."""
        single = len(lhs) == 1
        found = self._fcombine(lhs[0], rhs[0]) if single else self._fcombine(tuple(lhs), tuple(rhs))
        made = [expr(x, self.name) for x in (found if isinstance(found, (tuple, list)) else [found])]
        dtypes = [x.dtype for x in lhs]
        check([x.dtype for x in made] == dtypes, f"{self.name}: what combines two values", dtypes, [x.dtype for x in made])
        return made

    def identity(self, dtypes: Sequence[str]) -> list[Const]:
        """The identity of the reducer. Raises RelayError if it is not a number of the dtype."""
        found = self._fidentity(*dtypes)
        values = list(found) if isinstance(found, (tuple, list)) else [found]
        what = f"{self.name}: the identity"
        check(len(values) == len(dtypes), what, f"{len(dtypes)} values", len(values))
        made = [value if isinstance(value, Const) else const(value, dtype) for value, dtype in zip(values, dtypes, strict=True)]
        check([x.dtype for x in made] == list(dtypes), what, f"constants of {list(dtypes)}", [x.dtype for x in made])
        return made

    def __call__(
        self,
        expr: ExprLike,
        axis: "Axes | ExprLike" = None,
        where: ExprLike | None = None,
        init: ExprLike | None = None,
        *args: ExprLike,
    ) -> "Expr | tuple[Expr, ...]":
        """A reduction of an expression, or of a tuple of them, over one or several axes.

        Args:
          where: a predicate; where it is false nothing is loaded and combined.
          init: the initial value instead of the identity: an expression without the axes, or one for each value.

        Raises RelayError for an axis that is not a `reduce_axis`, or is repeated.
        """
        if isinstance(axis, (tuple, list)):
            return self._reduction(expr, list(axis), where, init)
        if isinstance(axis, IterVar) and axis.is_reduction:
            return self._reduction(expr, [axis], where, init)
        return self._directly([x for x in (expr, axis, where, init, *args) if x is not None])

    def _directly(self, values: Sequence[ExprLike]) -> Expr:
        check(len(values) > 1, f"te.{self.name}", "axis=, one or several axes of te.reduce_axis, or several values", "neither")
        total, *others = (expr(value, self.name) for value in values)
        for other in others:
            x, y = matched(total, other, self.name)
            (total,) = self.combine([x], [y])
        return total

    def _reduction(
        self, value: ExprLike, axes: Sequence[IterVar], where: ExprLike | None, init: ExprLike | None
    ) -> "Expr | tuple[Expr, ...]":
        several = isinstance(value, (tuple, list))
        sources = [expr(x, f"te.{self.name}") for x in (value if several else [value])]
        what = f"te.{self.name} of {', '.join(map(str, sources))}"
        check(len(axes) > 0, what, "one or several axes of te.reduce_axis", "none")
        for i, axis in enumerate(axes):
            check(isinstance(axis, IterVar) and axis.is_reduction, f"{what}: axis", "axes of te.reduce_axis", axis)
            check(not any(axis is other for other in axes[:i]), f"{what}: axis", "each axis once", f"{axis.name} twice")
        dtypes = [x.dtype for x in sources]
        identity = self.identity(dtypes)
        self.combine([Argument("x", d) for d in dtypes], [Argument("y", d) for d in dtypes])  # raises for mismatched dtypes
        if where is not None:
            where = condition(where, f"{what}: where")
            sources = [if_then_else(where, x, neutral) for x, neutral in zip(sources, identity, strict=True)]
        begins = None
        if init is not None:
            given = init if isinstance(init, (tuple, list)) else [init]
            check(len(given) == len(sources), f"{what}: init", f"{len(sources)} values", len(given))
            begins = [const(x, d) if not isinstance(x, Expr) else expr(x) for x, d in zip(given, dtypes, strict=True)]
            check([x.dtype for x in begins] == dtypes, f"{what}: init", dtypes, [x.dtype for x in begins])
        together = tuple(sources)  # one shared object: it identifies the values of one reduction
        made = tuple(Reduce(self, together, axes, begins, i) for i in range(len(sources)))
        return made if several else made[0]


def comm_reducer(fcombine: Callable, fidentity: Callable, name: str = "reduce") -> CommReducer:
    """A user-defined reducer.

    Args:
      fcombine: `lambda x, y: ...`; for several values that are reduced together, x, y and the result are tuples.
      fidentity: returns the identity for a dtype; for several values, a tuple for as many dtypes.
    """
    return CommReducer(fcombine, fidentity, name)


def min_value(dtype: str) -> Const:
    """The lowest number of a dtype; the lowest finite one for floats."""
    check_dtype(dtype, "te.min_value")
    return const(-_FLOAT_MAX[dtype] if dtype in scalar.FLOAT_BITS else scalar.limits(dtype)[0], dtype)


def max_value(dtype: str) -> Const:
    """The highest number of a dtype; the highest finite one for floats."""
    check_dtype(dtype, "te.max_value")
    return const(_FLOAT_MAX[dtype] if dtype in scalar.FLOAT_BITS else scalar.limits(dtype)[1], dtype)


def infinity(dtype: str) -> Const:
    """Infinity as a float dtype."""
    check(dtype in scalar.FLOAT_BITS, "te.infinity", "a float dtype", dtype)
    return const(float("inf"), dtype)


def _limit(which: int) -> Callable[[str], Const]:
    """The identity of a minimum or maximum: an infinity, or the limit of an integer type."""
    return lambda dtype: const(scalar.limits(dtype)[which], dtype)


sum = CommReducer(lambda x, y: x + y, lambda dtype: const(0, dtype), "sum")
prod = CommReducer(lambda x, y: x * y, lambda dtype: const(1, dtype), "prod")
max = CommReducer(lambda x, y: binary("maximum", x, y), _limit(0), "max")
min = CommReducer(lambda x, y: binary("minimum", x, y), _limit(1), "min")
