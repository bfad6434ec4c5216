"""Buffers of scope "warp" or "warpgroup": in registers of threads that compute together, in tiles that tensor intrinsics specify."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, linearize
from relayc.pipelines.tir.editing.intrinsics import FragmentOperand, Fragments
from relayc.pipelines.tir.lower.bodies import Bodies, File, State
from relayc.pipelines.tir.lower.registers import Slot
from relayc.pipelines.tir.lower.storage import KeptRegion, Use
from relayc.pipelines.tir.primitives.matching import Binding
from relayc.pipelines.tir.tree.indices import substitute
from relayc.pipelines.tir.tree.members import ScheduleError

SCOPES = {32: "warp", 128: "warpgroup"}
"""By the number of threads that share a buffer."""
GROUPS = tuple(SCOPES.values())
LANES = "threadIdx.x"
"""The axis of these threads."""


@dataclass(frozen=True)
class Placement:
    """The placement of a buffer in registers.

    Attributes:
      layout: see Fragments.
      axes: for each dimension of the buffer the axis of a tile and the extent of a tile there; None and 1 if it is not an axis of a tile.
      registers: per thread and tile; register: their type, as MLIR text.
      scope: of the buffer.
    """

    layout: str
    axes: tuple[tuple[str | None, int], ...]
    registers: int
    register: str
    scope: str

    @staticmethod
    def of(fragments: Fragments, binding: Binding) -> "Placement":
        """The placement of an operand's buffer. Raises ScheduleError."""
        axes: list[tuple[str | None, int]] = [(None, 1)] * len(binding.low)
        for tile, steps in zip(fragments.tile, binding.steps, strict=True):
            moving = [d for d, step in enumerate(steps) if step != 0]
            if len(moving) != 1 or steps[moving[0]] != 1 or axes[moving[0]][0] is not None:
                raise ScheduleError(f"{binding.name}: expected a dimension of the buffer for {tile[0]}, found steps {list(steps)}")
            axes[moving[0]] = tile
        return Placement(fragments.layout, tuple(axes), fragments.registers, fragments.register, SCOPES[fragments.threads])

    def __str__(self) -> str:
        return f"{self.layout} in tiles of {' x '.join(str(extent) for _, extent in self.axes)}"


def placements(uses: Sequence[Use], scope: Callable[[ir.Value], str], labels: Mapping[ir.Value, str]) -> dict[ir.Value, Placement]:
    """The placements of the buffers of these scopes. Raises ScheduleError, which names the block and the buffer."""
    found: dict[ir.Value, Placement] = {}
    for use in uses:
        bindings = {} if use.tensor is None else {b.buffer: b for b in use.tensor.match.operands}
        fragments = {} if use.tensor is None else use.tensor.intrin.fragments
        for buffer in dict.fromkeys(a.buffer for a in use.accesses):
            binding, where = bindings.get(buffer), f"buffer {labels[buffer]}"
            in_registers = binding is not None and binding.name in fragments
            if scope(buffer) in GROUPS and (binding is None or not in_registers):
                raise ScheduleError(
                    f"{where}: expected tensor intrinsics with fragments alone to use a buffer of scope {scope(buffer)}, found {use.block}"
                )
            if binding is None or not in_registers:
                continue
            placement = Placement.of(fragments[binding.name], binding)
            if scope(buffer) != placement.scope:
                raise ScheduleError(
                    f"{where}: expected scope {placement.scope}, as {binding.name} of the tensor intrinsic of {use.block} lies in "
                    f"registers, found {scope(buffer)}"
                )
            if found.setdefault(buffer, placement) != placement:
                raise ScheduleError(
                    f"{where}: expected fragments {found[buffer]} as of the blocks before, found {placement} of {use.block}"
                )
    return found


def check_region(label: str, region: KeptRegion, placement: Placement) -> None:
    """Checks that a buffer consists of whole tiles. Raises ScheduleError."""
    for extent, (_, tile) in zip(region.extents, placement.axes, strict=True):
        if not isinstance(extent, int) or extent % tile:
            raise ScheduleError(f"buffer {label}: expected extents of whole fragments, {placement}, found {list(region.extents)}")


@dataclass(frozen=True)
class FragmentTiles:
    """The tiles of an operand in registers.

    Attributes:
      first: the number of the first tile in each dimension of the buffer.
      counts: tiles in each dimension of the operand.
      dimensions: the dimension of the buffer for each dimension of the operand.
    """

    file: File
    placement: Placement
    first: tuple[int, ...]
    counts: tuple[int, ...]
    dimensions: tuple[int, ...]

    @staticmethod
    def of(fragments: Fragments, binding: Binding, use: Use, bodies: Bodies, state: State) -> "FragmentTiles":
        """The tiles of an operand at a point. Raises ScheduleError."""
        placement, file = Placement.of(fragments, binding), bodies.storage[binding.buffer]
        assert isinstance(file, File)
        first = []
        for index, low, (_, tile) in zip(binding.low, file.lows, placement.axes, strict=True):
            at = bodies.over(substitute(index, use.point) - low, state.point)
            if not at.is_constant or not isinstance(at.const, int) or at.const % tile:
                raise ScheduleError(
                    f"{use.block}: {binding.name}: expected whole fragments at numbers, {placement}, found one at {at}: "
                    "loops between them are to be unrolled"
                )
            first.append(at.const // tile)
        counts = tuple(int(size) // tile for size, (_, tile) in zip(binding.shape, fragments.tile, strict=True))
        dimensions = tuple(next(d for d, step in enumerate(steps) if step != 0) for steps in binding.steps)
        return FragmentTiles(file, placement, tuple(first), counts, dimensions)

    def operand(self) -> FragmentOperand:
        """The operand as an intrinsic receives it."""

        def load(*tile: int) -> list[ir.Value]:
            return [self.file.registers.value(slot) for slot in self._slots(tile)]

        def store(values: Sequence[ir.Value], *tile: int) -> None:
            for slot, value in zip(self._slots(tile), values, strict=True):
                self.file.registers.values[slot] = value

        return FragmentOperand(load, store)

    def clear(self) -> None:
        """Sets all registers to zero."""
        for slot in self.slots():
            self.file.registers.values[slot] = emit.zero(self.file.registers.element)

    def slots(self) -> list[Slot]:
        """The registers of all tiles."""
        return [slot for tile in product(*map(range, self.counts)) for slot in self._slots(tile)]

    def _slots(self, tile: Sequence[int]) -> list[Slot]:
        at = list(self.first)
        for dimension, place in zip(self.dimensions, tile, strict=True):
            at[dimension] += place
        extents = [int(extent) // size for extent, (_, size) in zip(self.file.shape, self.placement.axes, strict=True)]
        number = linearize([Index(i) for i in at], extents).const
        assert isinstance(number, int)
        return [(number * self.placement.registers + i, 1) for i in range(self.placement.registers)]
