"""The body of a block, read once: its operations in order, and of each access what changes from point to point and what does not."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from relayc.dialects.mlir import ir
from relayc.dialects.tir.names import Kind
from relayc.pipelines.blocks.indices import folded
from relayc.pipelines.blocks.lower.storage import Use
from relayc.pipelines.blocks.views import Access, Loop, ScheduleError
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


def read_steps(
    use: Use, body: ir.Block, is_init: bool, strides: Mapping[ir.Value, Sequence[Size]], lows: Mapping[ir.Value, Sequence[Index]]
) -> list[Step]:
    """Reads a body of a block.

    Args:
      strides, lows: of each buffer what of it is kept: how it lies in memory, in elements, and the indices of its first element over the
        loops around.

    Raises ScheduleError for what is no operation on elements.
    """
    own = iter([a for a in use.accesses if a.is_init == is_init])
    contract = use.block.is_reduction and not is_init
    numbers: dict[ir.Value, int] = {}
    steps: list[Step] = []
    for view in body.operations:
        op = view.operation
        if len(op.results) == 1 and isinstance(op.results[0].type, ir.IndexType):
            continue  # computed where it is used
        if len(op.regions) or (len(op.results) != 1 and op.name != "memref.store"):
            raise ScheduleError(f"block {use.block.name}: expected operations on elements, found {op.name}")
        operands = tuple(numbers.get(v, v) for v in op.operands)
        if op.name == "memref.store":
            steps.append(Step(op, op.name, operands, access=_place(use, next(own), strides, lows)))
            continue
        access = _place(use, next(own), strides, lows) if op.name == "memref.load" else None
        attributes = dict(op.attributes.items())
        if contract and op.name in ("arith.mulf", "arith.addf"):
            attributes["fastmath"] = emit.parsed("#arith.fastmath<contract>")
        key = tuple(attributes.items())
        numbers[op.results[0]] = len(steps)
        steps.append(Step(op, op.name, operands, op.results[0].type, access, attributes, key))
    return steps


def _place(use: Use, access: Access, strides: Mapping[ir.Value, Sequence[Size]], lows: Mapping[ir.Value, Sequence[Index]]) -> Place:
    indices = tuple(use.indices(access))
    local = [i - low for i, low in zip(indices, lows[access.buffer], strict=True)]
    offset = folded(weighted(local, strides[access.buffer]))
    kinds: dict[Var, Loop] = {loop.var: loop for loop in use.loops}
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
