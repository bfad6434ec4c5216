"""Flattens nested blocks: the contents of an outer block are emitted in place of the block."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.editing.intrinsics import ANNOTATION, TensorIntrin
from relayc.pipelines.tir.lower.intrinsics import Tensorized
from relayc.pipelines.tir.lower.prefetch import prefetch_of
from relayc.pipelines.tir.lower.storage import Use
from relayc.pipelines.tir.lower.tree import LoopNode, Node
from relayc.pipelines.tir.primitives.blockize import nest_in
from relayc.pipelines.tir.primitives.matching import match_block
from relayc.pipelines.tir.tree.guards import Guard
from relayc.pipelines.tir.tree.indices import substitute, variables
from relayc.pipelines.tir.tree.members import Block, Loop, Member, ScheduleError, blocks_of
from relayc.pipelines.tir.tree.steps import Constant
from relayc.pipelines.tir.tree.structure import Nest


def tree_of(nest: Nest, target: Target) -> tuple[Node, ...]:
    """The loops and blocks of a function, with nested blocks flattened.

    The points of an inner block are expressed over the outer loops, and it inherits the guards of the outer block. The init of an outer
    block is placed before the loops of its reduction; if these loops also determine the element, the init is guarded by the first step.
    """
    return tuple(_Trees(nest, target).build(nest.inside, _Around()))


@dataclass(frozen=True)
class _Around:
    """The context of loops and blocks.

    Attributes:
      loops: enclosing loops, outermost first.
      point: the iterators of enclosing blocks, over the loops.
      guards: of enclosing blocks.
      first: names of loops that are at their start.
    """

    loops: tuple[Loop, ...] = ()
    point: Mapping[Var, Index] = field(default_factory=dict)
    guards: tuple[Guard, ...] = ()
    first: frozenset[str] = frozenset()

    @cached_property
    def _once(self) -> Mapping[Var, Index]:
        """The values of loops that have only one value."""
        return {loop.var: Index() for loop in self.loops if loop.extent == 1 or loop.name in self.first}

    def at(self, index: Index) -> Index:
        """An index over the loops, with loops of one value replaced."""
        found = substitute(index, self.point) if self.point else index
        return substitute(found, self._once) if self._once else found


class _Trees:
    def __init__(self, nest: Nest, target: Target) -> None:
        self.nest, self.target = nest, target
        self.starts: dict[str, list[Node]] = {}
        """Nodes to place before a loop, by its name: inits of blocks that hold loops."""

    def build(self, members: Sequence[Member], around: _Around) -> list[Node]:
        found: list[Node] = []
        for member in members:
            if isinstance(member, Loop):
                children = tuple(self.build(member.inside, replace(around, loops=(*around.loops, member))))
                found += [*self.starts.pop(member.name, []), LoopNode(member, children, prefetch_of(self.nest, member))]
            elif isinstance(member, Block):
                found += self._block(member, around)
        return found

    def _block(self, block: Block, around: _Around) -> list[Node]:
        use = self._use(block, around)
        if ANNOTATION in block.annotations:
            return self._tensorized(use, around)
        if not block.inside:
            return [use]
        return [*self._init(use, around), *self.build(block.inside, self._inside(use, around, block.body))]

    def _use(self, block: Block, around: _Around) -> Use:
        points = tuple(map(around.at, block.points))
        guards = tuple(Guard(around.at(g.index), g.limit) for g in (*around.guards, *block.guards))
        return Use(block, around.loops, points, tuple(block.accesses()), guards)

    @staticmethod
    def _inside(use: Use, around: _Around, region: ir.Block) -> _Around:
        """The context of the contents of a block."""
        point: dict[Var, Index] = dict(zip(use.block.iterators_in(region), use.points, strict=True))
        return replace(around, point={**around.point, **point}, guards=use.guards)

    def _init(self, use: Use, around: _Around, tensor: Tensorized | None = None) -> list[Node]:
        """The init of a block that holds loops, if it is placed right before the block; otherwise it is recorded for the loop that it
        precedes.

        Args:
          tensor: the intrinsic to emit for it, if its accumulators are in registers of a warp.
        """
        if not use.block.has_init:
            return []
        if use.is_mixed:
            first = tuple(Guard(use.points[i], 1) for i in use.block.reduction)
            use = replace(use, guards=(*use.guards, *first))
        skipped = frozenset(use.reduction_loops)
        inside = self._use(use.block, replace(around, first=around.first | skipped)) if skipped else use
        names = [loop.name for loop in around.loops]
        kept = tuple(loop for loop in around.loops if loop.name not in skipped)
        found = self._start(inside, replace(around, loops=kept), tensor)
        if not skipped:
            return found
        outermost = min(names.index(name) for name in skipped)
        for loop in reversed(around.loops[outermost:]):
            if loop.name not in skipped:
                found = [LoopNode(loop, tuple(found))]
        self.starts.setdefault(names[outermost], []).extend(found)
        return []

    def _start(self, use: Use, around: _Around, tensor: Tensorized | None = None) -> list[Node]:
        if tensor is not None:
            check_zero(use.block)
            accesses = tuple(a for a in use.accesses if a.is_init)
            return [replace(use, loops=around.loops, accesses=accesses, is_start=True, tensor=tensor)]
        if use.block.starts and (region := use.block.init) is not None:
            return self.build(use.block.starts, self._inside(use, around, region))
        accesses = tuple(a for a in use.accesses if a.is_init)
        return [replace(use, loops=around.loops, accesses=accesses, is_start=True)]

    def _tensorized(self, use: Use, around: _Around) -> list[Node]:
        """A block that a tensor intrinsic computes, after the nodes that initialize its result."""
        block = use.block
        intrin = TensorIntrin.get(ir.StringAttr(block.annotations[ANNOTATION]).value)
        match = match_block(self.nest, block, intrin)
        accumulates, start = match.accumulates, list[Node]()
        if block.has_init:
            if intrin.starts and not use.reduction_loops and not use.is_mixed:
                accumulates = False
            else:
                zero = Tensorized(intrin, match, accumulates, self.target, {}, is_start=True) if intrin.fragments else None
                start = self._init(use, around, zero)
        elif not accumulates and not intrin.starts:
            inner, loops = nest_in(block)
            if inner.has_init:
                accumulates, start = True, self._inner_init(use, inner, loops, around)
        point: dict[Var, Index] = dict(zip(block.vars, use.points, strict=True))
        partial = {name: replace(p, outer=substitute(p.outer, point)) for name, p in match.partial.items()}
        return [*start, replace(use, tensor=Tensorized(intrin, match, accumulates, self.target, partial))]

    def _inner_init(self, use: Use, inner: Block, loops: Sequence[Loop], around: _Around) -> list[Node]:
        """The init of the block inside a tensorized one, in the loops of its elements."""
        points = inner.points
        of_elements = set[Var]().union(*(variables(points[i]) for i in inner.parallel))
        kept = tuple(loop for loop in loops if loop.var in of_elements)
        inside = self._inside(use, around, use.block.body)
        first = around.first | {loop.name for loop in loops if loop not in kept}
        known = replace(inside, loops=(*around.loops, *loops), first=frozenset(first))
        found = self._start(self._use(inner, known), replace(inside, loops=(*around.loops, *kept)))
        for loop in reversed(kept):
            found = [LoopNode(loop, tuple(found))]
        return found


def check_zero(block: Block) -> None:
    """Checks that a reduction starts at zero. Raises ScheduleError."""
    starts = blocks_of(block.starts)
    for step in [s for b in starts for s in b.steps(False) or ()] if starts else block.steps(True) or ():
        value = step.operands[0].attribute if step.name == "memref.store" and isinstance(step.operands[0], Constant) else None
        if step.name == "memref.store" and (value is None or value.value != 0):
            raise ScheduleError(f"{block}: expected sums in registers of a warp that start at 0, found {value}")
