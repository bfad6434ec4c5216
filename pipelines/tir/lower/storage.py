"""Placement of the buffers of a function: arguments in memory of the caller, others in a workspace, on the stack, or in registers.

A buffer stores only the region that is live at once: the elements accessed by the loops inside the innermost loop around all of its uses.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from math import prod
from operator import ge, le
from typing import TYPE_CHECKING

from relayc.dialects.mlir import ir
from relayc.dialects.tir.names import Kind
from relayc.pipelines.emission.index import Index, Var, strides_of, weighted
from relayc.pipelines.tir.analysis.elements import tell
from relayc.pipelines.tir.tree.guards import Guard
from relayc.pipelines.tir.tree.indices import Divided, Extremal, equal, folded, smallest, substitute, variables
from relayc.pipelines.tir.tree.members import Block, Loop
from relayc.pipelines.tir.tree.steps import Access
from relayc.symbolic import Size, exact, proves

if TYPE_CHECKING:
    from relayc.pipelines.tir.lower.intrinsics import Tensorized

MOST_REGISTERS = 1 << 10
"""Limit of the elements of a buffer in registers, in vectors of 16, whatever its scope."""


@dataclass(frozen=True)
class Use:
    """A block to emit.

    Attributes:
      loops: the enclosing loops, including loops around enclosing blocks.
      points: values of its iterators, over these loops.
      accesses: its loads and stores.
      guards: predicates, over the loops.
      is_start: whether only its init is emitted.
      tensor: the tensor intrinsic that is emitted instead of its body, if any.
    """

    block: Block
    loops: tuple[Loop, ...]
    points: tuple[Index, ...]
    accesses: tuple[Access, ...]
    guards: tuple[Guard, ...] = ()
    is_start: bool = False
    tensor: "Tensorized | None" = None

    @cached_property
    def has_init(self) -> bool:
        """Whether its init is emitted with it."""
        return self.block.has_init and self.tensor is None

    @cached_property
    def loop_of(self) -> dict[Var, Loop]:
        """The loop of each variable."""
        return {loop.var: loop for loop in self.loops}

    @cached_property
    def is_mixed(self) -> bool:
        """Whether a loop determines both the element and the step of the reduction (a fused loop)."""
        return not self._variables(self.block.reduction).isdisjoint(self._variables(self.block.parallel))

    @cached_property
    def reduction_loops(self) -> tuple[str, ...]:
        """Names of the loops that the reduction runs along, and nothing else of it, outermost first."""
        found = set() if self.is_mixed else self._variables(self.block.reduction)
        return tuple(loop.name for loop in self.loops if loop.var in found)

    @cached_property
    def carried_along(self) -> set[Var]:
        """Variables of loops that carry a dependence: loops of its reduction and of sequential iterators."""
        return self._variables([i for i in range(len(self.points)) if i not in self.block.parallel])

    def _variables(self, iterators: Sequence[int]) -> set[Var]:
        return set[Var]().union(*(variables(self.points[i]) for i in iterators))

    @cached_property
    def point(self) -> dict[Var, Index]:
        """The values of the iterators over the loops."""
        return dict(zip(self.block.vars, self.points, strict=True))

    @cached_property
    def clipped(self) -> dict[Var, Index] | None:
        """The values of the iterators at the nearest point that the guards include; None if a guard is not the one limit of an iterator."""
        found: dict[Var, Index] = {}
        known = set[Guard]()
        for var, point in self.point.items():
            for guard in self.guards:
                tile, inner = self._tile(point, guard.limit)
                left = point - guard.index  # loops of a tile of which the guard includes all or none
                if left.const != 0 or any(inner.terms.get(v) != factor for v, factor in left.terms.items()):
                    continue
                if var in found or any(loop.kind == Kind.VECTORIZED and loop.var in (point - inner).terms for loop in self.loops):
                    return None
                found[var] = smallest(point - inner, Index(guard.limit - tile)) + inner
                known.add(guard)
        return self.point | found if known == set(self.guards) else None

    def _tile(self, index: Index, limit: Size) -> tuple[int, Index]:
        """The part of an index over innermost unrolled and vectorized loops, and its number of values, of which a limit includes all or
        none."""
        tile, inner = 1, Index()
        loops = {f: self.loop_of[v] for v, f in index.terms.items() if v in self.loop_of}
        while (loop := loops.get(tile)) is not None and loop.kind in (Kind.UNROLLED, Kind.VECTORIZED) and isinstance(loop.extent, int):
            more, outer = tile * loop.extent, index - inner - Index(0, {loop.var: tile})
            if any(exact(part, more) is None for part in (limit, outer.const, *outer.terms.values())):
                break
            tile, inner = more, inner + Index(0, {loop.var: tile})
        return tile, inner

    @cached_property
    def _indices(self) -> dict[int, tuple[Access, list[Index]]]:
        return {}

    def indices(self, access: Access) -> list[Index]:
        """The indices of one of its accesses over the loops."""
        found = self._indices.get(id(access))
        if found is None:
            found = self._indices[id(access)] = access, [substitute(i, self.point) for i in access.indices]
        return found[1]


@dataclass(frozen=True)
class KeptRegion:
    """The stored region of a buffer.

    Attributes:
      around: names of the loops around all uses, outermost first.
      lows: index of the first stored element in each dimension, over these loops.
      extents: of the region.
      in_registers: whether every index is constant once unrolled and vectorized loops have their values.
    """

    around: tuple[str, ...]
    lows: tuple[Index, ...]
    extents: tuple[Size, ...]
    in_registers: bool

    @property
    def size(self) -> Size:
        return prod(self.extents)


def region_of(buffer: ir.Value, shape: Sequence[Size], uses: Sequence[Use], together: Collection[str] = ()) -> KeptRegion:
    """The stored region of a buffer that is not an argument.

    Args:
      together: loops whose iterations share one buffer, because threads share it.
    """
    own = [(use, [a for a in use.accesses if a.buffer == buffer]) for use in uses]
    own = [(use, accesses) for use, accesses in own if accesses]
    # Vectorized iterations run simultaneously, and a loop-carried value comes from the previous iteration.
    going_on = [use.carried_along if _goes_on(accesses) else set[Var]() for use, accesses in own]
    paths = [
        [loop.name for loop in takewhile(lambda loop: loop.kind != Kind.VECTORIZED and loop.var not in along, use.loops)]  # noqa: B023
        for (use, _), along in zip(own, going_on, strict=True)
    ]
    around = _common([[name for name in path if name not in together] for path in paths])
    lows: list[Index] = []
    extents: list[Size] = []
    indices = [(use, use.indices(access)) for use, accesses in own for access in accesses]
    outside: dict[int, set[Var]] = {id(use): {loop.var for loop in use.loops if loop.name in around} for use, _ in own}
    for dimension, extent in enumerate(shape):
        found = [outer_and_bounds(at[dimension], outside[id(use)]) for use, at in indices]
        outers = [outer for outer, _ in found]
        first, last = _extreme([low for _, (low, _) in found], le), _extreme([high for _, (_, high) in found], ge)
        kept = extent if first is None or last is None else last - first + 1
        whole = proves(lambda: kept >= extent) and not proves(lambda: kept <= 1)  # noqa: B023
        if first is None or any(not equal(outers[0], o) for o in outers) or whole:
            lows.append(Index())
            extents.append(extent)
        else:
            lows.append(outers[0] + first)
            extents.append(kept)
    local = [(use, [i - low for i, low in zip(at, lows, strict=True)]) for use, at in indices]
    most = 16 * MOST_REGISTERS
    in_registers = all(_is_fixed(use, i) for use, at in local for i in at) and proves(lambda: prod(extents) <= most)
    if in_registers:
        strides = strides_of(extents)
        in_registers = all(_is_along_lanes(use, folded(weighted(at, strides))) for use, at in local)
    return KeptRegion(tuple(around), tuple(lows), tuple(extents), in_registers)


def _goes_on(accesses: Sequence[Access]) -> bool:
    """Whether a block reads values that it stored to a buffer before."""
    return any(a.is_store for a in accesses) and any(not a.is_store for a in accesses)


def result_in_place(buffer: ir.Value, uses: Sequence[Use], results: Sequence[ir.Value]) -> ir.Value | None:
    """A result whose memory a buffer may use: of the same type and shape, written only by the last block that uses the buffer, which stores
    each element at the indices at which it loads the buffer."""
    own = [use for use in uses if any(a.buffer == buffer for a in use.accesses)]
    last = own[-1]
    if last.has_init or last.tensor is not None:
        return None
    stores = [a for a in last.accesses if a.is_store]
    if len(stores) != 1 or stores[0].buffer not in results or stores[0].buffer.type != buffer.type:
        return None
    result, at = stores[0].buffer, last.indices(stores[0])
    if any(a.buffer == result and a is not stores[0] for use in uses for a in use.accesses):
        return None
    loads = [last.indices(a) for a in last.accesses if a.buffer == buffer]
    if any(not equal(i, j) for indices in loads for i, j in zip(indices, at, strict=True)):
        return None
    # An element that an iteration of the loops around all uses writes becomes the result in the same iteration. Where guards skip the last
    # block, no element may be written: another iteration may have stored the result there.
    writes = [(use, use.indices(a)) for use in own for a in use.accesses if a.buffer == buffer and a.is_store]
    guarded = [{g.key for g in use.guards} for use, _ in writes]
    if any(not _is_of_elements(g, at) and any(g.key not in keys for keys in guarded) for g in last.guards):
        return None
    around = set(_common([[loop.name for loop in use.loops] for use in own]))
    kept = {_part(use, indices, around) for use, indices in writes}
    return result if kept == {_part(last, at, around)} and None not in kept else None


def _is_of_elements(guard: Guard, indices: Sequence[Index]) -> bool:
    """Whether a guard is the same in all iterations that access an element at the given indices."""
    return any(equal(guard.index, index) for index in indices) or tell(indices, variables(guard.index))


def _part(use: Use, indices: Sequence[Index], around: set[str]) -> tuple | None:
    """The elements that a block accesses in one iteration of the enclosing loops; None if they are not a box."""
    outside: set[Var] = {loop.var for loop in use.loops if loop.name in around}
    found = []
    for index in indices:
        outer, bounds = outer_and_bounds(index, outside)
        if any(isinstance(v, (Divided, Extremal)) and not variables(Index.of(v)) <= outside for v in index.terms):
            return None
        found.append((outer.key, bounds))
    return tuple(found)


def _common(paths: Sequence[Sequence[str]]) -> list[str]:
    """The common prefix of several lists."""
    found: list[str] = []
    for names in zip(*paths, strict=False):
        if len(set(names)) > 1:
            break
        found.append(names[0])
    return found


def outer_and_bounds(index: Index, outside: set[Var]) -> tuple[Index, tuple[Size, Size]]:
    """Splits an index into the part over variables outside and the bounds of the rest."""
    inner: dict[Var, Size] = {}
    outer: dict[Var, Size] = {}
    for var, factor in index.terms.items():
        is_outside = variables(Index.of(var)) <= outside if isinstance(var, (Divided, Extremal)) else var in outside
        (outer if is_outside else inner)[var] = factor
    return Index(0, outer), Index(index.const, inner).bounds()


def _extreme(sizes: Sequence[Size], compare: Callable[[Size, Size], bool]) -> Size | None:
    """The size that provably compares so with all sizes; None if there is none."""
    for one in sizes:
        if all(proves(lambda: compare(one, other)) for other in sizes):  # noqa: B023
            return one
    return None


def _is_along_lanes(use: Use, offset: Index) -> bool:
    """Whether the elements at a flat offset have a constant stride in a vector."""
    inside = set[Var]().union(*(variables(Index.of(v)) for v in offset.terms if v not in use.loop_of))
    return not any(use.loop_of[v].kind == Kind.VECTORIZED for v in inside)


def _is_fixed(use: Use, index: Index) -> bool:
    """Whether an index is constant once unrolled and vectorized loops have their values."""
    if not index.terms:
        return True
    loops = [use.loop_of.get(v) for v in variables(index)]
    return all(loop is not None and loop.kind in (Kind.UNROLLED, Kind.VECTORIZED) for loop in loops)
