"""B in pairs: the order in which it is packed, and where a block of columns begins."""

from collections.abc import Mapping
from math import prod

from relayc.pipelines.cpu.schedule.bf16.layout import COLUMNS, PairsLayout
from relayc.pipelines.kernel.contraction import Contraction
from relayc.pipelines.kernel.index import Index, Var, linearize
from relayc.pipelines.schedule.packing import Packing
from relayc.symbolic import Size


def packed_shape(contraction: Contraction, layout: PairsLayout, blocks: Size) -> tuple[Size, ...]:
    """Shape of B: [batch..., block, outer reduction..., pairs, COLUMNS, 2]."""
    outer = (v.extent for v in layout.outer)
    return (*(v.extent for v in contraction.batch), blocks, *outer, layout.run // 2, COLUMNS, 2)


def pairs_packing(contraction: Contraction, layout: PairsLayout, blocks: Size) -> Packing:
    """How B of a parameter is packed (see `packed_shape`): zeros follow the last column and each round of the inner loops."""
    c = contraction
    loops = [(v, v.extent) for v in (*c.batch, c.column, *layout.outer, *layout.merged, *layout.inner)]
    loops[len(c.batch)] = (c.column, c.column_extent)
    numbers = {"batch": len(c.batch), "outer": len(layout.outer), "inner": len(layout.inner), "pitch": int(layout.pitch)}
    return Packing.reading("pairs", c.b.node.shape, c.b.indices, loops, packed_shape(c, layout, blocks), **numbers)


def packed_offset(contraction: Contraction, layout: PairsLayout, blocks: Size, point: Mapping[Var, Index], block: Index) -> Index:
    """Where the pairs of a block of columns begin at a point of the batch and of the outer reduction loops."""
    rounds = [v.extent for v in layout.outer]
    number = linearize([point.get(v, Index()) for v in layout.outer], rounds)
    return ((contraction.batch_at(point) * blocks + block) * prod(rounds) + number) * (layout.run * COLUMNS)
