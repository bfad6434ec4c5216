"""Emits the implementation of a tensor intrinsic in place of the body of a block, with its operands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.dialects.size_attribute import size_attribute
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, weighted
from relayc.pipelines.emission.sizes import symbol_positions
from relayc.pipelines.tir.editing.intrinsics import Lines, Operand, TensorCall, TensorIntrin
from relayc.pipelines.tir.lower.bodies import Bodies, File, Memory, State, Storage
from relayc.pipelines.tir.lower.fragments import LANES, FragmentTiles
from relayc.pipelines.tir.lower.registers import Registers, Slot
from relayc.pipelines.tir.lower.storage import Use, region_of
from relayc.pipelines.tir.lower.tree import uses_in
from relayc.pipelines.tir.primitives.matching import Binding, Match, Partial
from relayc.pipelines.tir.tree.guards import Guard
from relayc.pipelines.tir.tree.indices import substitute
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.tree.structure import Nest
from relayc.symbolic import Size, ceil_div, minimum, proves
from relayc.symbolic import substitute as substitute_sizes


@dataclass(frozen=True)
class Tensorized:
    """A tensor intrinsic in place of a body.

    Attributes:
      match: the regions of buffers that are its operands, over the iterators of the block.
      accumulates: see TensorCall.
      partial: limits of partial tiles, over the loops around the block and the loops of the tile.
      is_start: whether only the start of a reduction is emitted, for accumulators in registers of a warp.
    """

    intrin: TensorIntrin
    match: Match
    accumulates: bool
    target: Target
    partial: Mapping[str, Partial]
    is_start: bool = False

    @property
    def threads(self) -> int:
        """The number of threads that compute it together: a warp or a warp group."""
        return max((fragments.threads for fragments in self.intrin.fragments.values()), default=1)

    @property
    def guards(self) -> list[Guard]:
        """The limits of partial tiles, as guards of all elements in the tile."""
        return [Guard(p.outer + p.inner, p.limit) for p in self.partial.values()]

    def run(self, use: Use, bodies: Bodies, state: State) -> None:
        """Emits the intrinsic at a point. Raises ScheduleError."""
        where = f"block {use.block.name}: tensor intrinsic {self.intrin.name}"
        if state.lanes is not None:
            raise ScheduleError(f"{where}: expected no vectorized loop around it, found one")
        tiles = self._tiles(use, bodies, state)
        if self.is_start:
            for tile in tiles.values():
                tile.clear()
            return
        operands = {b.name: self._operand(b, use, bodies, state) for b in self.match.operands if b.name not in tiles}
        fragments = {name: tile.operand() for name, tile in tiles.items()}
        counts = {name: self._count(name, bodies, state) for name in self.intrin.partial}
        lane = bodies.evaluator.index_value(self._lane(use, state)) if self.threads > 1 else None
        call = TensorCall(operands, self.match.sizes, self.accumulates, self.target, counts, fragments, lane)
        if callable(self.intrin.impl):
            self.intrin.impl(call)
        else:
            _emit_function(where, self.intrin, call, use.block.operation.context)

    def written_slots(self, use: Use, bodies: Bodies, state: State) -> list[tuple[ir.Value, Slot]]:
        """The registers of warp threads that it writes, with their buffers."""
        buffers = {b.name: b.buffer for b in self.match.operands if b.is_output}
        return [(buffers[name], slot) for name, tile in self._tiles(use, bodies, state).items() if name in buffers for slot in tile.slots()]

    def _tiles(self, use: Use, bodies: Bodies, state: State) -> dict[str, FragmentTiles]:
        """The operands in registers of warp threads; for a start the operands that it clears."""
        fragments = self.intrin.fragments
        wanted = [b for b in self.match.operands if b.name in fragments and (b.is_output or not self.is_start)]
        return {b.name: FragmentTiles.of(fragments[b.name], b, use, bodies, state) for b in wanted}

    @staticmethod
    def _lane(use: Use, state: State) -> Index:
        found = next(state.point[loop.var] for loop in use.loops if loop.kind == LANES)
        assert isinstance(found, Index)
        return found

    def _count(self, name: str, bodies: Bodies, state: State) -> Index:
        """The extent at a point of a loop that may be partial."""
        ends, most = self.partial.get(name), self.match.counts[name]
        if ends is None:
            return Index(most)
        left = bodies.at(ends.outer, state.point) * -1 + ends.limit
        low, _ = left.bounds()
        if proves(lambda: low >= most):
            return Index(most)
        return Index(minimum(left.const, most)) if left.is_constant else emit.at_most(left, most)

    def _operand(self, binding: Binding, use: Use, bodies: Bodies, state: State) -> Operand:
        storage = bodies.storage[binding.buffer]
        assert isinstance(storage, Memory)  # operands of these intrinsics are not kept in registers
        if storage.swizzle is not None and binding.name not in self.intrin.swizzled:
            raise ScheduleError(f"{use.block}: {binding.name}: expected no storage_swizzle of what a tensor intrinsic reads, found one")
        local = [substitute(i, use.point) - low for i, low in zip(binding.low, storage.lows, strict=True)]
        within = 0
        if storage.lines is None:
            offset = bodies.at(weighted(local, storage.strides), state.point) + storage.offset
        else:
            offset, within = self._line(use, binding, storage, storage.lines, [bodies.at(i, state.point) for i in local])

        def has_room(name: str, count: int) -> bool:
            return self._has_room(name, count, binding, [bodies.over(i, state.point) for i in local], storage.shape)

        def placed(at: Index) -> Index:
            return bodies.placed(storage, at - storage.offset)

        strides, shape = binding.strides(storage.strides), binding.shape
        return Operand(binding.name, storage.buffer, offset, strides, shape, binding.is_output, has_room, storage.lines, within, placed)

    @staticmethod
    def _line(use: Use, binding: Binding, storage: Memory, lines: Lines, local: Sequence[Index]) -> tuple[Index, int]:
        """The first element of the line in which an operand begins, and the operand's position in that line."""
        found = local[-1].split(lines.elements)
        if found is None or not isinstance(found[1].const, int) or found[1].terms:
            raise ScheduleError(
                f"{use.block}: {binding.name}: expected it from a number of whole lines of {lines.elements} elements on, or from a certain "
                f"element of one, found it from {local[-1]} on"
            )
        block, within = found
        return weighted([*local[:-1], Index()], storage.strides) + block * lines.block + storage.offset, int(within.const)

    def _has_room(self, name: str, count: int, binding: Binding, low: Sequence[Index], shape: Sequence[Size]) -> bool:
        """Whether a buffer, whose region begins at `low`, has enough elements for `count` iterations of a partial loop."""
        extents = dict(self.match.extents)
        for loop, factor in sorted(self.intrin.partial[name].items(), key=lambda item: -item[1]):
            extents[loop] = ceil_div(count, factor)
            if extents[loop] != 1:
                break  # inner loops are full
        for t, (start, size) in enumerate(zip(low, shape, strict=True)):
            if any(binding.loops[loop][t] != 0 for loop in self.intrin.partial[name]):
                last = start + sum((steps[t] * (extents[loop] - 1) for loop, steps in binding.loops.items()), start=0)
                _, high = last.bounds()
                if not proves(lambda: high < size):  # noqa: B023
                    return False
        return True


# ---- implementations that are functions of blocks and loops


def _emit_function(where: str, intrin: TensorIntrin, call: TensorCall, context: ir.Context) -> None:
    """Emits the blocks and loops of an implementation, whose arguments are the operands."""
    from relayc.pipelines.tir.lower.guards import Guards, open_guards
    from relayc.pipelines.tir.lower.loops import LoopEmitter
    from relayc.pipelines.tir.lower.nested import tree_of

    implementation = intrin.implementation(context)
    nest = _with_sizes(where, implementation.nest, call)
    storage: dict[ir.Value, Storage] = {}
    arguments = {name: b for name, b in nest.buffers().items() if isinstance(b.owner, ir.Block)}
    if set(arguments) != set(call.operands):
        raise ScheduleError(f"{where}: expected a function of {', '.join(call.operands)}, found one of {', '.join(arguments)}")
    for name, buffer in arguments.items():
        found = call.operands[name]
        if len(found.shape) != buffer.type.rank:
            raise ScheduleError(f"{where}: {name}: expected a buffer of {len(found.shape)} dimensions, found {buffer.type}")
        lows = [Index()] * len(found.shape)
        storage[buffer] = Memory(found.buffer, found.shape, lows, found.strides, found.offset)
    tree = tree_of(nest, call.target)
    uses = uses_in(tree)
    for name, buffer in nest.buffers().items():
        if buffer not in storage:
            region = region_of(buffer, nest.shape(buffer), uses)
            if not region.in_registers or nest.scope(buffer) != "local":
                raise ScheduleError(f"{where}: buffer {name}: expected scope local and elements at numbers (registers), found others")
            storage[buffer] = File(Registers(buffer.type.element_type), region.extents, region.lows, region.around)
    bodies = Bodies(storage)
    emission = LoopEmitter(bodies, Guards(bodies, open_guards(uses)), call.target, lambda name, _: None)
    emission.emit(tree, State({}))


def _with_sizes(where: str, nest: Nest, call: TensorCall) -> Nest:
    """A function with its symbols replaced by the sizes of a call."""
    names = symbol_positions(nest.head)
    if unknown := [name for name in names if name not in call.sizes]:
        raise ScheduleError(f"{where}: expected symbols of the description, found {unknown[0]}")
    for block in nest.blocks().values():
        extents = [e if isinstance(e, int) else substitute_sizes(e, call.sizes) for e in block.extents]
        block.operation.attributes["extents"] = ir.ArrayAttr.get(list(map(size_attribute, extents)))
    return Nest(nest.head, {nest.entry.arguments[i]: call.sizes[name] for name, i in names.items()})
