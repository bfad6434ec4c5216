"""Reductions along vector lanes: each lane accumulates separately, and the lanes are combined once, after all loops of the reduction."""

from collections.abc import Callable

from relayc.dialects.mlir import ir
from relayc.dialects.tir.names import Kind
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.te.read.reduction import COMBINERS
from relayc.pipelines.tir.lower.bodies import Bodies, File, State
from relayc.pipelines.tir.lower.registers import Registers
from relayc.pipelines.tir.lower.storage import Use
from relayc.pipelines.tir.lower.tree import LoopNode
from relayc.pipelines.tir.tree.steps import neutral
from relayc.pipelines.tir.values import vectors
from relayc.pipelines.tir.values.lanes import Block, LaneCover, cover_sums


def lanes_of_reduction(node: LoopNode, bodies: Bodies) -> tuple[Use, Var] | None:
    """For a loop that contains only a reduction to one element, along it and all inner loops, one of which is vectorized: the block and the
    variable of the vectorized loop; otherwise None."""
    found: list[Var] = []
    inside: LoopNode | Use = node
    names = set[str]()
    while isinstance(inside, LoopNode):
        if len(inside.children) != 1:
            return None
        if inside.loop.extent != 1:
            names.add(inside.loop.name)
            found += [inside.loop.var] if inside.kind == Kind.VECTORIZED else []
        (inside,) = inside.children
    use = inside
    if len(found) != 1 or not use.block.is_reduction or use.is_start or use.tensor is not None or not names <= set(use.reduction_loops):
        return None
    combination = bodies.combination(use)
    return (use, found[0]) if combination is not None and combination[1].moving is not None else None


class LaneSums:
    """The partial sums of the lanes of a reduction, in registers that replace the element until the lanes are combined."""

    def __init__(self, use: Use, var: Var, bodies: Bodies, state: State) -> None:
        self.bodies, self.state = bodies, state
        combination = bodies.combination(use)
        assert combination is not None  # checked by the caller
        self.operation, self.place = combination
        self.buffer = self.place.access.buffer
        self.whole = bodies.storage[self.buffer]
        registers = Registers(self.buffer.type.element_type, neutral(self.operation.name, self.operation.type))
        self.file = bodies.storage[self.buffer] = File(registers, (), (), (), None, var)

    def add(self, left: Index, lanes: LaneCover, block: Block) -> None:
        """Accumulates the results of `block` for the elements in [0, left)."""
        registers, slots = self.file.registers, [self.file.slot(0, width) for width in (lanes.width, 1)]
        before = dict(registers.values)
        start = [[emit.number(registers.unwritten, registers.type_of(slot))] for slot in slots]
        several: Callable[[list[list[ir.Value]]], list[ir.Value]] = lambda sums: [vectors.pairwise([v for (v,) in sums], self.combined)]  # noqa: E731
        single = [] if lanes.masked else start[1]
        wide, narrow = cover_sums(left, lanes, self.bodies.evaluator, block, start[0], single, start[0], several)
        registers.values = before
        for slot, value in zip(slots, [*wide, *narrow], strict=False):
            before[slot] = self.combined(before[slot], value) if slot in before else value

    def finish(self) -> None:
        """Combines the lanes with the element."""
        bodies, by_width = self.bodies, dict[int, list[ir.Value]]()
        bodies.storage[self.buffer] = self.whole
        for (_, width), value in self.file.registers.values.items():
            by_width.setdefault(width, []).append(value)
        parts = [self._across(vectors.pairwise(values, self.combined)) for values in by_width.values()]
        parts.append(bodies.load(self.place, self.state, False, self.state.point))
        bodies.store(vectors.pairwise(parts, self.combined), self.place, self.state, self.state.point)

    def _across(self, value: ir.Value) -> ir.Value:
        if not emit.is_vector(value) or self.operation.name not in COMBINERS:
            return vectors.across_halves(value, self.combined)
        attributes = {"kind": ir.Attribute.parse(f"#vector.kind<{COMBINERS[self.operation.name][0]}>")}
        if self.operation.name in ("arith.addf", "arith.mulf"):
            attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<reassoc>")
        return emit.create("vector.reduction", [value.type.element_type], [value], attributes)

    def combined(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Combines two partial sums."""
        return emit.create(self.operation.name, [a.type], [a, b], self.operation.attributes)
