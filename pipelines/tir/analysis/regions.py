"""Regions of buffers that blocks access while the loops around them are fixed: boxes, by lowest indices and extents."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from relayc.dialects.mlir import ir
from relayc.pipelines.emission.index import FAR, Index, Var, of_terms
from relayc.pipelines.tir.tree.guards import Guard
from relayc.pipelines.tir.tree.indices import QUOTIENT, Divided, Extremal, divide, equal, largest, smallest, substitute, variables
from relayc.pipelines.tir.tree.members import Block, Loop, LoopVar
from relayc.pipelines.tir.tree.steps import Access
from relayc.pipelines.tir.tree.structure import Nest
from relayc.symbolic import Size, bounds, maximum, proves


@dataclass(frozen=True)
class Span:
    """The values of an index: at most `extent` values from `low` on.

    Attributes:
      low: over the fixed variables.
      exact: whether every value in the range occurs (apart from values that a guard excludes).
    """

    low: Index
    extent: Size
    exact: bool = True


Region: TypeAlias = list[Span]
"""A span for each dimension of a buffer."""


def still_in(loop: Loop) -> set[Var]:
    """The variables that are fixed in an iteration of a loop: its variable, variables of outer loops, and iterators of the enclosing
    block."""
    return {*(found.var for found in (*loop.around, loop)), *iterators_of(loop.scope)}


def region_of_blocks(
    nest: Nest,
    buffer: ir.Value,
    blocks: Iterable[Block],
    still: Container[Var],
    accesses: Callable[[Block], Iterable[Access]] = Block.accesses,
) -> Region | None:
    """The region of a buffer that blocks access while the variables in `still` are fixed; None if they do not access the buffer.

    The region is conservative: it may be too large if an index is not linear, and is a whole dimension if nothing is known. It is within
    the shape, except that `low + extent` may exceed it if guards restrict the blocks to the shape.

    Args:
      accesses: those of a block that count.
    """
    shape = nest.shape(buffer)
    found: list[Region] = []
    for block in blocks:
        point: dict[Var, Index] = dict(zip(block.vars, block.points, strict=True))
        for access in accesses(block):
            if access.buffer == buffer:
                found.append(
                    [span(substitute(i, point), still, block.guards) or _whole(d) for i, d in zip(access.indices, shape, strict=True)]
                )
    if not found:
        return None
    return [clip(reduce(lambda a, b: union(a, b, d), spans), d) for spans, d in zip(zip(*found, strict=True), shape, strict=True)]


def iterators_of(scope: Block | None) -> list[Var]:
    """The variables that are fixed in a block: its iterators, as arguments of its init and body; none in a function."""
    return [] if scope is None else [v for region, *_ in scope.parts() for v in scope.iterators_in(region)]


def _whole(extent: Size) -> Span:
    return Span(Index(), extent, False)


def span(index: Index, still: Container[Var], guards: Sequence[Guard] = ()) -> Span | None:
    """The values of an index while the variables in `still` are fixed; None if unknown.

    Args:
      guards: hold where the index is used.
    """
    moving = {v: c for v, c in index.terms.items() if _moves(v, still)}
    if not moving:
        return Span(index, 1)
    first, exact = Index(), _is_dense(moving)
    width: Size = 0
    for var, factor in moving.items():
        found = _values(var, still)
        least, most = bounds(factor)
        if found is None or least < 0 < most:
            return None
        exact = exact and found.exact
        reach = (found.extent - 1) * factor
        first += (found.low if least >= 0 else found.low + (found.extent - 1)) * factor
        width += reach if least >= 0 else -reach
    if first.is_constant:
        for guard in guards:
            if guard.index.terms == moving:
                width = _smaller(width, guard.limit - 1 - guard.index.const - first.const)
    return Span(of_terms(index.const, {v: c for v, c in index.terms.items() if v not in moving}) + first, width + 1, exact)


def _moves(var: Var, still: Container[Var]) -> bool:
    return any(v not in still for v in variables(Index.of(var))) if isinstance(var, (Divided, Extremal)) else var not in still


def _is_dense(terms: Mapping[Var, Size]) -> bool:
    """Whether a linear form of loop variables takes every value between its bounds."""
    left = {v: c if bounds(c)[0] >= 0 else -c for v, c in terms.items()}
    covered: Size = 1
    while left:
        var = next((v for v, c in left.items() if proves(lambda c=c, covered=covered: c <= covered)), None)  # type: ignore[misc]
        if var is None:
            return False
        covered += left.pop(var) * (var.high - var.low)
    return True


def _values(var: Var, still: Container[Var]) -> Span | None:
    """The values of one variable."""
    if isinstance(var, LoopVar):
        return Span(Index(), var.extent)
    if isinstance(var, Extremal):
        a, b = span(var.a, still), span(var.b, still)
        if a is None or b is None:
            return None
        # The minimum of two indices ranges no further than one of them.
        pick = smallest if var.kind == "min" else largest
        return Span(pick(a.low, b.low), maximum(a.extent, b.extent), False)
    inner = span(var.index, still) if isinstance(var, Divided) else None
    if inner is None:
        return None
    assert isinstance(var, Divided)
    return (quotient_of if var.kind == QUOTIENT else remainder_of)(inner, var.divisor)


def quotient_of(found: Span, divisor: Size) -> Span:
    """The quotients of the values of a span by a positive size."""
    low, rest = divide(found.low, divisor)
    _, most = rest.bounds()
    width = found.extent - 1
    fits = proves(lambda: most + width < divisor)
    reach = 0 if fits else (rest.const + width) // divisor if rest.is_constant else (width + divisor - 1) // divisor
    return Span(low, reach + 1, found.exact and (fits or rest.is_constant))


def remainder_of(found: Span, divisor: Size) -> Span:
    """The remainders of the values of a span by a positive size."""
    _, rest = divide(found.low, divisor)
    _, most = rest.bounds()
    if proves(lambda: most + found.extent <= divisor):
        return Span(rest, found.extent, found.exact)
    return Span(Index(), divisor, found.exact and proves(lambda: found.extent >= divisor))


def union(a: Span, b: Span, extent: Size) -> Span:
    """A span that contains both spans, in a dimension of the given extent."""
    distance = b.low - a.low
    if distance.is_constant:
        for first, second, gap in ((a, b, distance.const), (b, a, -distance.const)):
            if proves(lambda: gap >= 0):  # noqa: B023
                touching = proves(lambda: gap <= first.extent)  # noqa: B023
                return Span(first.low, maximum(first.extent, gap + second.extent), a.exact and b.exact and touching)
        return _whole(extent)
    least, most = distance.bounds()
    if not proves(lambda: least > -FAR and most < FAR):
        return _whole(extent)
    return Span(smallest(a.low, b.low), maximum(a.extent, b.extent) + maximum(-least, most, 0), False)


def is_whole(found: Span, extent: Size) -> bool:
    """Whether a span covers a dimension."""
    return equal(found.low, Index()) and proves(lambda: found.extent >= extent)


def is_within(found: Span, other: Span, extent: Size) -> bool:
    """Whether the values of a span are among the values of another, exact one, in a dimension of the given extent."""
    distance = found.low - other.low
    if is_whole(other, extent):
        return True
    return distance.is_constant and proves(lambda: distance.const >= 0 and distance.const + found.extent <= other.extent)


def clip(found: Span, extent: Size) -> Span:
    """A span clipped to a dimension of the given extent; the whole dimension if it has at least as many values."""
    if proves(lambda: found.extent >= extent):
        return Span(Index(), extent, found.exact)
    low = found.low
    least, _ = low.bounds()
    return found if proves(lambda: least >= 0) else Span(largest(low, Index()), found.extent, False)


def _smaller(a: Size, b: Size) -> Size:
    """`b` if it is proved to be the smaller size, otherwise `a`."""
    return b if proves(lambda: b <= a) else a
