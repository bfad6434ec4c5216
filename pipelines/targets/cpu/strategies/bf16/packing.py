"""B in groups: the order in which it is packed, and where a block of columns begins."""

from collections.abc import Mapping

from relayc.pipelines.emission.index import Index, Var, linearize
from relayc.pipelines.targets.cpu.strategies.bf16.layout import COLUMNS, PairsLayout
from relayc.pipelines.te.read.contraction import Contraction
from relayc.pipelines.tir.strategy.packing import Packing
from relayc.symbolic import Size


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
