"""How a contraction is laid out for instructions that multiply groups along the reduction: pairs of bf16 or fours of 8-bit integers (AMX
tiles, dot products of AVX512-BF16 and VNNI).

Such an instruction takes rows of A whose elements along the reduction are neighbours, and B with groups along the reduction interleaved
column by column ("VNNI order"). B comes as [batch..., block, outer reduction..., groups, 16 columns, group]: packed at compile time where
it is a parameter, else copied by the kernel. A is read where it lies if reduction loops are contiguous in it; else a copy of the box that
the loops reach is made first, with the reduction innermost and paddings. Zeros complete the last columns and reduction steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd, prod

from relayc.pipelines.emission.index import Index, Var, linearize, strides_of
from relayc.pipelines.te.read.access import MergedLoop, collapse
from relayc.pipelines.te.read.contraction import Contraction, ProductOperand
from relayc.pipelines.te.read.graph import memory_of
from relayc.pipelines.tir.strategy.packing import Packing
from relayc.symbolic import Size, ceil_div, proves

COLUMNS = 16
"""Columns of a block of B: sums in 64 bytes, a row of a tile."""


@dataclass(frozen=True)
class SumBlock:
    """Tunable numbers: rows of a tile, row tiles and blocks of COLUMNS columns of a block of sums."""

    rows: int
    row_tiles: int
    column_tiles: int

    @property
    def width(self) -> int:
        """Columns of a block of sums."""
        return self.column_tiles * COLUMNS

    @property
    def size(self) -> int:
        """Sums of a block."""
        return self.row_tiles * self.rows * self.width


def tile_rows(extent: int, most: int) -> int:
    """Rows of a tile: the fewest tiles of at most `most` rows, as low as they can be."""
    return ceil_div(extent, ceil_div(extent, most))


@dataclass(frozen=True)
class CopiedAxis:
    """A dimension of A as the loops reach it.

    Attributes:
      dimension: of the operand.
      low: index that is reached first (negative within a padding).
      stride: distance of the indices that are reached.
      extent: how many they are.
      size: extent of the operand.
      pitch: elements that the copy has for it: `extent`, or more for the innermost.
    """

    dimension: int
    low: int
    stride: int
    extent: Size
    size: Size
    pitch: Size

    @property
    def is_padded(self) -> bool:
        return not proves(lambda: self.low >= 0 and self.low + (self.extent - 1) * self.stride < self.size)


@dataclass(frozen=True)
class PairsLayout:
    """How the reduction is walked, and where A is read.

    Attributes:
      inner: reduction loops that are contiguous in A, innermost last.
      pitch: elements from one round of `inner` to the next; those after the last are zeros.
      merged: loops that go on at a distance of `pitch`, so that all of them are one run.
      outer: the other reduction loops.
      step: reduction steps of an instruction, whole groups.
      offset: where A is, by the contraction's variables.
      copy: axes of the copy of A, outermost first; None where A is read in place.
      group: elements that an instruction multiplies and adds to one sum: 32 bits.
      shift: what is added to the elements of A as they are read, which are signed where the instruction takes unsigned ones; the sums
        begin at what that makes too much, which is packed with B.
      sorts: whether the groups of a block of B are sorted (see `integers.SortedNest`).
    """

    inner: tuple[Var, ...]
    pitch: Size
    merged: tuple[Var, ...]
    outer: tuple[Var, ...]
    step: int
    offset: Index
    copy: tuple[CopiedAxis, ...] | None
    group: int
    shift: int = 0
    sorts: bool = False

    @property
    def start(self) -> int:
        """Groups of B with what the sums of a block of columns begin at."""
        return 1 if self.shift else 0

    @property
    def head(self) -> int:
        """Groups of B before the first step of each block of columns: what its sums begin at, and the order of its groups."""
        return self.start + (ceil_div(1 + int(self.depth) // self.group, COLUMNS) if self.sorts else 0)

    @property
    def strides(self) -> tuple[Size, ...]:
        """Elements of A from one iteration of each of the outer loops to the next."""
        return tuple(self.offset.coefficient(v) for v in self.outer)

    @property
    def size(self) -> Size:
        """Elements of `inner`."""
        return iterations(self.inner)

    @property
    def run(self) -> Size:
        """Elements that are contiguous in A, zeros included."""
        return self.pitch * iterations(self.merged)

    @property
    def steps(self) -> Size:
        """Instructions in depth."""
        return self.run // self.step * iterations(self.outer)

    @property
    def depth(self) -> Size:
        """Reduction steps, zeros included."""
        return self.run * iterations(self.outer)

    @property
    def copied(self) -> Size:
        """Elements of the copy of A."""
        return prod(axis.pitch for axis in self.copy) if self.copy is not None else 0

    def only_completes(self, contraction: Contraction) -> bool:
        """Whether the copy of A is A, but for the zeros behind reduction steps of which only a call says how many there are."""
        shape = contraction.a.node.shape
        if self.copy is None or isinstance(self.size, int):
            return False
        axes = [(axis.dimension, axis.low, axis.stride, axis.extent) for axis in self.copy]
        return axes == [(d, 0, 1, extent) for d, extent in enumerate(shape)]

    def row_loops(self, contraction: Contraction) -> list[MergedLoop]:
        """The contraction's row loops, merged where they are evenly spaced in A or in its copy."""
        c = contraction
        if self.copy is None:
            return c.rows
        rows = [v for row in c.rows for v in row.members]
        reads = [(c.a.node, self.offset), (c.b.node, c.b.offset), *c.epilogue.offsets]
        return collapse(rows, replace(c.epilogue, offsets=reads), [c.output_offset()])


def layouts(contraction: Contraction, max_step: int, group: int) -> list[PairsLayout]:
    """The ways to lay out a contraction for instructions of at most `max_step` reduction steps, whole groups."""
    found = []
    if memory_of(contraction.a.node) is not None and not contraction.a.checks:
        offset = contraction.a.offset
        inner = _run(offset, _reduction(contraction), 1)
        found += _layouts(contraction, offset, inner, None, max_step, group)
    for axis in range(len(contraction.a.indices)):
        found += _copies(contraction, axis, max_step, group)
    return found


def iterations(loops: Sequence[Var]) -> Size:
    """Iterations of loops together."""
    return prod(v.extent for v in loops)


def _reduction(contraction: Contraction) -> list[Var]:
    """Reduction loops of several steps."""
    return [v for v in contraction.reduction if v.high != 0]


def _moving(index: Index) -> Index:
    """An index without loops of one step."""
    return Index(index.const, {v: c for v, c in index.terms.items() if v.high != 0})


def _run(offset: Index, loops: Sequence[Var], length: Size) -> list[Var]:
    """Loops that walk memory without gaps from a distance of `length` on, innermost last."""
    found: list[Var] = []
    distance: Size = length
    while (var := next((v for v in loops if v not in found and offset.coefficient(v) == distance), None)) is not None:
        found.insert(0, var)
        distance = distance * var.extent
    return found


def _layouts(
    contraction: Contraction, offset: Index, inner: list[Var], copy: tuple[CopiedAxis, ...] | None, max_step: int, group: int
) -> list[PairsLayout]:
    size = iterations(inner)
    pitch = copy[-1].pitch if copy is not None and copy[-1].extent == size else size
    rest = [v for v in _reduction(contraction) if v not in inner]
    merged = _run(offset, rest, pitch)
    found = []
    for count in range(len(merged) + 1):
        some = merged[len(merged) - count :]
        step = _whole_groups(pitch * iterations(some), max_step, group)
        if inner and step:
            outer = tuple(v for v in rest if v not in some)
            found.append(PairsLayout(tuple(inner), pitch, tuple(some), outer, step, offset, copy, group))
    return found


def _whole_groups(count: Size, most: int, group: int) -> int:
    """The largest divisor of `count` that is whole groups and at most `most`, 0 where there is none."""
    return max((n for n in range(group, most + 1, group) if count % n == 0), default=0)


def _copies(contraction: Contraction, innermost: int, max_step: int, group: int) -> list[PairsLayout]:
    """Layouts in which A is copied so that a dimension with reduction loops is innermost."""
    a = contraction.a
    axes = [_axis(a, d) for d in range(len(a.indices))]
    index = _moving(a.indices[innermost])
    unit = axes[innermost].stride
    inner = _run(Index(0, {v: c // unit for v, c in index.terms.items()}), _reduction(contraction), 1)
    if not inner:
        return []
    axis = axes[innermost]
    size = iterations(inner)
    alone = set(index.terms) <= set(inner)
    # With other loops in the same dimension nothing can be put between their rounds.
    pitches = _pitches(size, max_step, group) if alone else [size]
    # A dimension that is contiguous in memory goes next to the innermost, so that the copy is a transposition of blocks.
    rest = [axes[d] for d in range(len(axes)) if d != innermost]
    found = []
    for pitch in pitches:
        last = CopiedAxis(axis.dimension, axis.low, axis.stride, axis.extent, axis.size, pitch if alone else axis.extent)
        copy = (*rest, last)
        offset = Index()
        for part, stride in zip(copy, strides_of(tuple(p.pitch for p in copy)), strict=True):
            reach = _moving(a.indices[part.dimension]) - part.low
            offset += Index(reach.const // part.stride, {v: c // part.stride for v, c in reach.terms.items()}) * stride
        found += _layouts(contraction, offset, inner, copy, max_step, group)
    return found


def _pitches(size: Size, max_step: int, group: int) -> list[Size]:
    """How many elements a copy may have for some that are contiguous in it; where a call says how many they are, whole steps."""
    if not isinstance(size, int):
        return [ceil_div(size, max_step) * max_step]
    return [*sorted({ceil_div(size, n) * n for n in (group << i for i in range(5))})]


def _axis(a: ProductOperand, dimension: int) -> CopiedAxis:
    index = _moving(a.indices[dimension])
    low, high = index.bounds()
    stride = gcd(*index.terms.values()) if index.terms else 1
    extent = (high - low) // stride + 1
    return CopiedAxis(dimension, int(low), stride, extent, a.node.shape[dimension], extent)


# ---- B in groups: the order in which it is packed, and where a block of columns begins


def packed_shape(contraction: Contraction, layout: PairsLayout, blocks: Size) -> tuple[Size, ...]:
    """Shape of B: [batch..., block, outer reduction and groups, COLUMNS, group], where the first groups of a block are its head: what the
    sums begin at if they do not begin at 0 (see `PairsLayout.shift`), and the order of its groups if they are sorted."""
    batch = (v.extent for v in contraction.batch)
    return (*batch, blocks, layout.head + layout.depth // layout.group, COLUMNS, layout.group)


def groups_packing(contraction: Contraction, layout: PairsLayout, blocks: Size) -> Packing:
    """How B of a parameter is packed (see `packed_shape`): zeros follow the last column and each round of the inner loops."""
    c = contraction
    loops = [(v, v.extent) for v in (*c.batch, c.column, *layout.outer, *layout.merged, *layout.inner)]
    loops[len(c.batch)] = (c.column, c.column_extent)
    numbers = {"batch": len(c.batch), "inner": len(layout.inner), "pitch": int(layout.pitch), "shift": layout.shift}
    if layout.sorts:
        numbers |= {f"stride{i}": int(stride) for i, stride in enumerate(layout.strides)}
    kind = "sorted_groups" if layout.sorts else "groups"
    return Packing.reading(kind, c.b.node.shape, c.b.indices, loops, packed_shape(c, layout, blocks), **numbers)


def packed_offset(contraction: Contraction, layout: PairsLayout, blocks: Size, point: Mapping[Var, Index], block: Index) -> Index:
    """Where the groups of a block of columns begin at a point of the batch and of the outer reduction loops."""
    number = linearize([point.get(v, Index()) for v in layout.outer], [v.extent for v in layout.outer])
    return head_offset(contraction, layout, blocks, point, block) + (number * layout.run + layout.head * layout.group) * COLUMNS


def head_offset(contraction: Contraction, layout: PairsLayout, blocks: Size, point: Mapping[Var, Index], block: Index) -> Index:
    """Where a block of columns begins."""
    return (contraction.batch_at(point) * blocks + block) * ((layout.depth + layout.head * layout.group) * COLUMNS)
