"""The body of a block, read once: its operations in order, and of each access what changes from point to point and what does not."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from relayc.dialects.mlir import ir
from relayc.dialects.tir.names import Kind
from relayc.pipelines.blocks.indices import folded
from relayc.pipelines.blocks.lower.storage import Use
from relayc.pipelines.blocks.views import Access, ScheduleError
from relayc.pipelines.kernel.index import Index, Var, weighted
from relayc.pipelines.tir import emit
from relayc.symbolic import Size


@dataclass(eq=False)
class Step:
    """An operation of a body.

    Attributes:
      operation: of the source.
      operands: where each comes from: the number of the step that computes it, or the value of the source where none does.
      access: the load or store that it is.
      attributes: of the operation to make; `key` tells them from others.
    """

    operation: ir.Operation
    name: str
    operands: tuple[Any, ...]
    type: ir.Type | None = None
    access: "Place | None" = None
    attributes: dict[str, ir.Attribute] = field(default_factory=dict)
    key: Hashable = ()


@dataclass(eq=False)
class Place:
    """Where an access goes.

    Attributes:
      access: the load or store.
      indices: over the loops around the block.
      moving: the part of its flat offset, within what of the buffer is kept, that loops decide which run: over their variables; None where
        the offset is not linear in them.
      fixed: what the loops that are unrolled or vectorized add: (variable, elements) each.
    """

    access: Access
    indices: tuple[Index, ...]
    moving: Index | None = None
    fixed: tuple[tuple[Var, int], ...] = ()


Kept = Callable[[ir.Value], tuple[Sequence[Size], Sequence[Index]]]
"""What of a buffer is kept: how that lies in memory, in elements, and the indices of its first element over the loops around."""


def read_steps(use: Use, body: ir.Block, is_init: bool, kept: Kept) -> list[Step]:
    """Reads a body of a block.

    Raises ScheduleError for what is no operation on elements.
    """
    own = iter([a for a in use.accesses if a.is_init == is_init])
    contract = use.block.is_reduction and not is_init
    numbers: dict[ir.Value, int] = {}
    steps: list[Step] = []
    for view in body.operations:
        op = view.operation
        name, results = op.name, op.results
        result = results[0] if len(results) == 1 else None
        if result is not None and isinstance(result.type, ir.IndexType):
            continue  # computed where it is used
        if len(op.regions) or (result is None and name != "memref.store"):
            raise ScheduleError(f"block {use.block.name}: expected operations on elements, found {name}")
        operands = tuple(numbers.get(v, v) for v in op.operands)
        if result is None:
            steps.append(Step(op, name, operands, access=_place(use, next(own), *kept(op.operands[1]))))
            continue
        access = _place(use, next(own), *kept(op.operands[0])) if name == "memref.load" else None
        attributes = dict(op.attributes.items())
        if contract and name in ("arith.mulf", "arith.addf"):
            attributes["fastmath"] = emit.parsed("#arith.fastmath<contract>")
        key = tuple(attributes.items())
        numbers[result] = len(steps)
        steps.append(Step(op, name, operands, result.type, access, attributes, key))
    return steps


def _place(use: Use, access: Access, strides: Sequence[Size], lows: Sequence[Index]) -> Place:
    indices = tuple(use.indices(access))
    local = [i - low if low.terms or low.const != 0 else i for i, low in zip(indices, lows, strict=True)]
    offset = folded(weighted(local, strides))
    kinds = use.loop_of
    if any(v not in kinds for v in offset.terms):
        return Place(access, indices)
    moving: dict[Var, Size] = {}
    fixed: list[tuple[Var, int]] = []
    for var, factor in offset.terms.items():
        if kinds[var].kind in (Kind.UNROLLED, Kind.VECTORIZED) and kinds[var].extent != 1:
            if not isinstance(factor, int):
                return Place(access, indices)
            fixed.append((var, factor))
        else:
            moving[var] = factor
    return Place(access, indices, Index(offset.const, moving), tuple(fixed))
