"""Reductions along the lanes of vectors: each lane adds up what it meets, and the lanes are combined once, behind all loops of the
reduction."""

from collections.abc import Iterable

from relayc.dialects.mlir import ir
from relayc.dialects.tir.names import Kind
from relayc.pipelines.blocks.lower.bodies import Bodies, File, State, neutral
from relayc.pipelines.blocks.lower.registers import Registers, Slot
from relayc.pipelines.blocks.lower.storage import Use
from relayc.pipelines.blocks.lower.tree import LoopNode
from relayc.pipelines.kernel.index import Var
from relayc.pipelines.kernel.reduction import COMBINERS
from relayc.pipelines.tir import emit, vectors


def lanes_of_reduction(node: LoopNode, bodies: Bodies) -> tuple[Use, Var] | None:
    """Where a loop holds nothing but a reduction that adds to one element, along it and along all loops in it, one of which is vectorized:
    the block, and the variable of that loop."""
    found: list[Var] = []
    inside: LoopNode | Use = node
    names = set[str]()
    while isinstance(inside, LoopNode):
        if len(inside.children) != 1:
            return None
        names.add(inside.loop.name)
        if inside.kind == Kind.VECTORIZED and inside.loop.extent != 1:
            found.append(inside.loop.var)
        (inside,) = inside.children
    use = inside
    if len(found) != 1 or not use.block.is_reduction or use.is_start or use.tensor is not None or not names <= set(use.reduction_loops):
        return None
    combination = bodies.combination(use)
    return (use, found[0]) if combination is not None and combination[1].moving is not None else None


class LaneSums:
    """The lanes of a reduction, which have registers of their own in place of the element that they add to, until that gets their sum."""

    def __init__(self, use: Use, var: Var, bodies: Bodies) -> None:
        self.bodies = bodies
        combination = bodies.combination(use)
        assert combination is not None  # it has been looked for
        self.operation, self.place = combination
        self.buffer = self.place.access.buffer
        self.whole = bodies.storage[self.buffer]
        self.file = bodies.storage[self.buffer] = File(Registers(self.buffer.type.element_type), (), (), (), None, var)

    def start(self, slots: Iterable[Slot]) -> None:
        """Gives the lanes what adds nothing."""
        for slot in slots:
            self.file.registers.values[slot] = emit.number(
                neutral(self.operation.name, self.operation.type), self.file.registers.type_of(slot)
            )

    def finish(self, state: State) -> None:
        """Adds the lanes to the element."""
        bodies, by_width = self.bodies, dict[int, list[ir.Value]]()
        bodies.storage[self.buffer] = self.whole
        for (_, width), value in self.file.registers.values.items():
            by_width.setdefault(width, []).append(value)
        parts = [self._across(vectors.pairwise(values, self._combine)) for values in by_width.values()]
        parts.append(bodies.load(self.place, state, False, list))
        bodies.store(vectors.pairwise(parts, self._combine), self.place, state, list)

    def _across(self, value: ir.Value) -> ir.Value:
        if not emit.is_vector(value) or self.operation.name not in COMBINERS:
            return vectors.across_halves(value, self._combine)
        attributes = {"kind": ir.Attribute.parse(f"#vector.kind<{COMBINERS[self.operation.name][0]}>")}
        if self.operation.name in ("arith.addf", "arith.mulf"):
            attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<reassoc>")
        return emit.create("vector.reduction", [value.type.element_type], [value], attributes)

    def _combine(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return emit.create(self.operation.name, [a.type], [a, b], self.operation.attributes)
