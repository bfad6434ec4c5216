"""Loops that are one copy of a box of a tensor from global to shared memory, by the tensor memory accelerator (TMA) of a GPU.

The annotation "tensor_copy" requests it. The loop contains one block, a copy, and the shared buffer has permuted lines (intrinsics.Lines),
which only some tensor intrinsics read. The host creates the map of the tensor. Elements excluded by predicates, as pad_einsum creates them,
are filled with zeros.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.editing.intrinsics import Lines
from relayc.pipelines.tir.gpu import bulk_copies as bulk
from relayc.pipelines.tir.gpu.copies import SHARED, pointer
from relayc.pipelines.tir.gpu.tensor_maps import MOST_RANK, TensorMap
from relayc.pipelines.tir.lower.bodies import Bodies, Memory, State
from relayc.pipelines.tir.lower.copied import Copied, read_copy
from relayc.pipelines.tir.lower.storage import KeptRegion, Use
from relayc.pipelines.tir.lower.tree import LoopNode
from relayc.pipelines.tir.tree.arguments import decode
from relayc.pipelines.tir.tree.indices import equal, substitute, variables
from relayc.pipelines.tir.tree.members import Loop, ScheduleError
from relayc.symbolic import Size, proves

TENSOR_COPY = "tensor_copy"
"""Annotation of the loop."""
_BOX = "box"
"""Kind of such a loop."""
_EIGHT = bulk.EIGHT_BYTES // bulk.LINE_BYTES
"""Lines per permutation group."""
_MOST_EXTENT = 256
"""Limit of each extent of a box."""
_CHUNK = 16
"""Alignment of the lines of a tensor, in bytes."""


class BoxCopy(LoopNode):
    """A loop that is one copy.

    Attributes:
      use: the block that copies.
    """

    def __init__(self, loop: Loop, use: Use) -> None:
        super().__init__(loop, (use,))
        self.kind, self.use = _BOX, use

    @property
    def loops(self) -> tuple[Loop, ...]:
        """This loop and the loops inside it."""
        return self.use.loops[[loop.name for loop in self.use.loops].index(self.loop.name) :]

    @property
    def target(self) -> ir.Value:
        """The buffer that the copy writes."""
        return next(a.buffer for a in self.use.accesses if a.is_store)


def is_box(loop: Loop) -> bool:
    """Whether a loop is annotated as one copy. Raises ScheduleError."""
    if TENSOR_COPY not in loop.annotations:
        return False
    found = decode(loop.annotations[TENSOR_COPY], lambda name: name)
    if not isinstance(found, bool | int):
        raise ScheduleError(f"loop {loop.name}: annotation {TENSOR_COPY}: expected a truth value, found {found!r}")
    return bool(found)


# ---- layout of buffers


def lines_of(label: str, extents: Sequence[Size], element: ir.Type) -> Lines:
    """The permuted lines of a buffer of these extents. Raises ScheduleError."""
    elements = bulk.LINE_BYTES * 8 // element.width
    found = [e for e in extents if isinstance(e, int)]
    if len(found) != len(extents) or len(found) < 2 or found[-1] % elements or prod(found[:-1]) % _EIGHT:
        raise ScheduleError(
            f"buffer {label}: expected whole lines of {bulk.LINE_BYTES} bytes, {elements} elements, and a multiple of {_EIGHT} of them, as "
            f"copies of boxes write them, found extents {list(extents)}"
        )
    return Lines(elements, prod(found[:-1]), found[-1] // elements)


def buffers_in_lines(uses: Sequence[Use], boxes: Sequence[BoxCopy], labels: Mapping[ir.Value, str]) -> set[ir.Value]:
    """The buffers that have permuted lines: only copies of boxes write them, and only tensor intrinsics that support the layout read them.

    Raises ScheduleError, which names the buffer and a conflicting block.
    """
    written = {node.target for node in boxes}
    copying = {id(node.use) for node in boxes}
    for use in uses:
        wanted = set() if use.tensor is None else {b.buffer for b in use.tensor.match.operands if b.name in use.tensor.intrin.lines}
        for access in use.accesses:
            where = f"buffer {labels[access.buffer]}"
            if access.buffer in wanted and access.buffer not in written:
                raise ScheduleError(
                    f"{where}: expected it in shared memory by a loop with the annotation {TENSOR_COPY}, as the tensor intrinsic of "
                    f"{use.block} reads it, found others"
                )
            if access.buffer in written and (id(use) not in copying if access.is_store else access.buffer not in wanted):
                who = f"loops with the annotation {TENSOR_COPY}" if access.is_store else "tensor intrinsics of permuted lines"
                raise ScheduleError(f"{where}: expected {who} alone to use what copies of boxes write, found {use.block}")
    return written


# ---- contents of a copy


@dataclass(frozen=True)
class Box:
    """A copy of a box.

    Attributes:
      use: the block that copies; `copied` describes the copy.
      extents: of the box, equal to the extents of the target buffer.
      lines: of the target buffer.
    """

    use: Use
    copied: Copied
    extents: tuple[int, ...]
    lines: Lines

    @property
    def num_bytes(self) -> int:
        return self.lines.size * self.copied.target.type.element_type.width // 8

    def tensor_map(self, bodies: Bodies) -> ir.Value:
        """The tensor map, created by the host."""
        source = bodies.storage[self.copied.source]
        assert isinstance(source, Memory)  # see box_of
        sizes, strides = ([emit.index_constant(n) for n in numbers][::-1] for numbers in (source.shape, source.strides[:-1]))
        box = [self.lines.elements, *self.extents[-2::-1]]
        return TensorMap(source.buffer.type.element_type, source.buffer, emit.materialize(source.offset), sizes, strides, box).emit()

    def emit(self, tensor_map: ir.Value, barrier: ir.Value, bodies: Bodies, state: State) -> None:
        """Starts the copy at the point of `state`; its bytes are announced to a barrier.

        Args:
          tensor_map: address of the map; barrier: address in shared memory.
        """
        first = [bodies.at(substitute(index, self.use.point), state.point) for index in self.copied.indices]
        target = bodies.storage[self.copied.target]
        assert isinstance(target, Memory)
        for block in range(self.lines.blocks):
            at = [*first[:-1], first[-1] + block * self.lines.elements]
            to = pointer(target.buffer, target.offset + block * self.lines.block, SHARED)
            bulk.copy_box(to, tensor_map, [bulk.as_coordinate(index) for index in at[::-1]], barrier)


def _with_single(copied: Copied, source: Sequence[Size]) -> Copied:
    """Replaces the constant index 0 of a dimension of one element by the index of the predicate that restricts it to 0."""
    found = list(copied.indices)
    for d, (extent, at) in enumerate(zip(source, copied.at, strict=False)):
        if extent == 1 and equal(found[d], Index()) and any(equal(c.index, at) and c.limit == 1 for c in copied.conditions):
            found[d] = at
    return replace(copied, indices=tuple(found))


def box_of(node: BoxCopy, region: KeptRegion, lines: Lines, source: Sequence[Size]) -> Box:
    """The copy that a loop makes.

    Args:
      region: the stored region of the shared buffer.
      source: the shape of the tensor in global memory.

    Raises ScheduleError if the loop is not a copy of a box that a tensor map can describe.
    """
    use = node.use
    wanted = f"expected the copy of a box from global to shared memory in loop {node.loop.name}, which has the annotation {TENSOR_COPY}"
    copied = _with_single(read_copy(use, wanted), source)
    extents = tuple(int(extent) for extent in region.extents)
    element_bytes = copied.target.type.element_type.width // 8
    if len(source) != len(extents) or len(source) > MOST_RANK or max(extents[:-1]) > _MOST_EXTENT:
        raise ScheduleError(
            f"{use.block}: {wanted}, of the dimensions of a tensor of up to {MOST_RANK}, up to {_MOST_EXTENT} lines of each, found "
            f"{list(extents)} of {list(source)}"
        )
    pitch: Size = element_bytes
    for extent in source[:0:-1]:
        pitch *= extent
        if not proves(lambda: pitch % _CHUNK == 0):  # noqa: B023
            raise ScheduleError(f"{use.block}: {wanted}, of lines at multiples of {_CHUNK} bytes, found them {pitch} bytes apart")
    inner: set[Var] = {loop.var for loop in node.loops}
    for index, at, low in zip(copied.indices, copied.at, region.lows, strict=True):
        to = substitute(at, use.point) - low
        if not variables(to) <= inner or to.const != 0 or not variables(substitute(index - at, use.point)).isdisjoint(inner):
            raise ScheduleError(f"{use.block}: {wanted}, of a whole buffer, to the dimensions that it has, found {index} to {at}")
    for condition in copied.conditions:
        if not any(equal(condition.index, i) and condition.limit == extent for i, extent in zip(copied.indices, source, strict=True)):
            raise ScheduleError(f"{use.block}: {wanted}, of what the tensor has, found one of what is below {condition.limit}")
    return Box(use, copied, extents, lines)
