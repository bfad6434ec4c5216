"""The steps of a block at its points: the loop-variant and the constant part of each access."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from relayc.dialects.mlir import ir
from relayc.dialects.tir.names import Kind
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, weighted
from relayc.pipelines.tir.lower.storage import Use
from relayc.pipelines.tir.tree.indices import folded, substitute
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.tree.steps import Access, Computed, Constant
from relayc.symbolic import Size


@dataclass(eq=False)
class LoweredStep:
    """A step of a block.

    Attributes:
      operands: as in Step (see tir.tree.steps), with indices over the loops around the block.
      access: the load or store that the step performs.
      attributes: of the operation to create; `key` identifies them.
      var: the result as a variable of indices, if it is of type index.
    """

    name: str
    operands: tuple[Any, ...]
    type: ir.Type | None = None
    access: "AccessOffset | None" = None
    attributes: dict[str, ir.Attribute] = field(default_factory=dict)
    key: Hashable = ()
    var: Computed | None = None


@dataclass(eq=False)
class AccessOffset:
    """The place of an access.

    Attributes:
      access: the load or store.
      indices: over the loops around the block.
      moving: the part of the flat offset in the stored region that depends on serial and parallel loops; None if the offset is not linear.
      fixed: the contributions of unrolled and vectorized loops: (variable, elements) each.
      flat: the flat offset in the stored region, if it is not linear but simpler than the indices.
    """

    access: Access
    indices: tuple[Index, ...]
    moving: Index | None = None
    fixed: tuple[tuple[Var, int], ...] = ()
    flat: Index | None = None


Kept = Callable[[ir.Value], tuple[Sequence[Size], Sequence[Index]]]
"""Returns the stored region of a buffer: its strides in elements, and the indices of its first element over the enclosing loops."""


def placed_steps(use: Use, is_init: bool, kept: Kept, clips: bool) -> list[LoweredStep]:
    """The steps of the init or the body of a block at its points.

    Args:
      clips: whether loads at points that guards exclude are of the nearest point that they include.

    Raises ScheduleError for steps that are not operations on elements.
    """
    contract = use.block.is_reduction and not is_init
    made: list[LoweredStep] = []
    for step in use.block.steps(is_init) or ():
        name, attributes, place = step.name, step.attributes, None
        if step.access is not None:
            place = _place(use, step.access, *kept(step.access.buffer), clips)
        elif step.type is None:
            raise ScheduleError(f"block {use.block.name}: expected operations on elements, found {name}")
        if contract and name in ("arith.mulf", "arith.addf"):
            attributes = {**attributes, "fastmath": emit.parsed("#arith.fastmath<contract>")}
        operands = tuple(substitute(v, use.point) if isinstance(v, Index) else v for v in step.operands)
        if any(not isinstance(v, (int, Index, Constant)) for v in operands):
            raise ScheduleError(f"block {use.block.name}: expected a body that uses its iterators, buffers and constants, found others")
        made.append(LoweredStep(name, operands, step.type, place, attributes, tuple(attributes.items()), step.var))
    return made


def _place(use: Use, access: Access, strides: Sequence[Size], lows: Sequence[Index], clips: bool) -> AccessOffset:
    indices = tuple(use.indices(access))
    if clips and not access.is_store:
        assert use.clipped is not None
        indices = tuple(substitute(i, use.clipped) for i in access.indices)
    local = [i - low if low.terms or low.const != 0 else i for i, low in zip(indices, lows, strict=True)]
    apart = weighted(local, strides)
    offset = folded(apart)
    flat = offset if clips or offset is not apart else None
    kinds = use.loop_of
    if any(v not in kinds for v in offset.terms):
        return AccessOffset(access, indices, flat=flat)
    moving: dict[Var, Size] = {}
    fixed: list[tuple[Var, int]] = []
    for var, factor in offset.terms.items():
        if kinds[var].kind in (Kind.UNROLLED, Kind.VECTORIZED) and kinds[var].extent != 1:
            if not isinstance(factor, int):
                return AccessOffset(access, indices, flat=flat)
            fixed.append((var, factor))
        else:
            moving[var] = factor
    return AccessOffset(access, indices, Index(offset.const, moving), tuple(fixed))
