"""What a loop nest of the default strategy looks like: which loops are rows, where the lanes run, what is kept in between.

The loops of the output are split in rows and an inner part. Everything a reduction depends on is a row: its value is computed once per
row and the inner loops read it from registers (softmax and the normalisations need no more than this). Without reductions there are no
rows, with nothing but a reduction there is no inner part. Lanes run along the last dimension of the output, or along the reduction where
that is how memory lies.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod

from relayc.dialects.operations import element_bytes
from relayc.pipelines.emission.index import Index, Var, linearize
from relayc.pipelines.targets.cpu.strategies.loops.transpose import Turned, find_turned
from relayc.pipelines.te.read.access import Accesses, Analysis, MergedLoop, collapse
from relayc.pipelines.te.read.graph import Node
from relayc.pipelines.te.read.reduction import combiners
from relayc.symbolic import Size, guess

Point = list[Index]
Offset = Callable[[Point], Index]
"""The position of an element in a flat buffer, by point."""


@dataclass(frozen=True)
class LoopParameters:
    """Tunable numbers of the default strategy.

    Attributes:
      vector_bytes: width of a vector.
      parallel_grain: work (elements times operations) below which a nest stays on one thread.
      parallel_chunks: iterations a parallel loop is cut into where it can be.
      unroll: vectors computed side by side along the last dimension.
      mask_bits: of the smallest elements of which a masked load and store are one instruction each; 0 if there are none.
    """

    vector_bytes: int = 32
    parallel_grain: int = 1 << 15
    parallel_chunks: int = 32
    unroll: int = 4
    mask_bits: int = 0


@dataclass(frozen=True)
class NestPlan:
    """One loop nest that writes one node.

    Attributes:
      node, offset: what is written where.
      variables: loops over the dimensions of the node.
      accesses: what evaluating the node touches.
      reductions: nodes in order of evaluation, one of those that share an operation.
      rows, inner: the loops, merged; without reductions all are inner ones.
      width: lanes of a vector.
      lanes_along_reduction: whether lanes run along the reductions.
      lane_loop_is_outer: whether lanes run along the last of the loops around the reductions, or of all where there are none.
      stash: an elementwise node that the reductions compute on their way, and that is kept in the output; None for none.
      turned: how to read operands that are contiguous along a loop other than the loop of the lanes; None if there are no such operands.
      work: elements times operations.
      maskable: whether vectors of all that is read and written can be masked.
    """

    node: Node
    offset: Offset
    variables: list[Var]
    accesses: Accesses
    reductions: list[Node]
    rows: list[MergedLoop]
    inner: list[MergedLoop]
    width: int
    lanes_along_reduction: bool
    lane_loop_is_outer: bool
    stash: Node | None
    turned: Turned | None
    work: Size
    maskable: bool

    @property
    def checked(self) -> set[Var]:
        """Loops along which a padding is checked."""
        return {v for index, _ in self.accesses.bounds for v in index.terms}

    @property
    def gathers_across(self) -> bool:
        """Whether lanes are points of the output and reductions gather at computed indices. Each lane then costs as much as a scalar
        point, so a mask, which leaves lanes unused, saves nothing."""
        return not self.lanes_along_reduction and any(r.structured.captured for r in self.reductions)

    def siblings(self, reduction: Node) -> list[Node]:
        """The nodes that share the operation of a reduction, itself among them."""
        return [n for n, _ in self.accesses.reductions if n.structured is reduction.structured]

    def reduction_points(self, reduction: Node, point: Sequence[Index]) -> list[Point]:
        """The points at which a reduction is read by the computation at `point`."""
        values = dict(zip(self.variables, point, strict=True))
        reads = [at for read, at in self.accesses.reductions if read.structured is reduction.structured]
        return [[index.at(values) for index in at] for at in reads]


def plan_nest(node: Node, memory: Iterable[Node], parameters: LoopParameters, offset: Offset) -> NestPlan:
    """Plans the nest of a node with elements; `memory` are the nodes that are read from buffers."""
    memory = list(memory)
    variables = [Var.below(e, name=f"d{i}") for i, e in enumerate(node.shape)]
    point = [Index.of(v) for v in variables]
    analysis = Analysis(memory)
    analysis.visit(node, point)
    accesses = analysis.found
    unique: dict[int, Node] = {}
    for reduction, _ in accesses.reductions:
        unique.setdefault(id(reduction.structured), reduction)
    reductions = list(unique.values())
    used = {v for _, at in accesses.reductions for i in at for v in i.terms}
    # If only the reduction remains inside, every dimension is a row.
    only_rows = not any(v.extent != 1 and v not in used for v in variables)
    moving = [v for v in variables if v.extent != 1]
    rows = [v for v in moving if v in used or only_rows]
    inner = [v for v in moving if v not in rows]
    elements = [n.element for n, _ in (*accesses.offsets, *accesses.reductions)]
    elements.append(node.element)
    width = parameters.vector_bytes // max(map(element_bytes, elements))
    store = offset(point)
    merged = collapse(inner, accesses, [store])
    along = bool(reductions) and _lanes_along_reduction(reductions, accesses, variables, rows, inner, width)
    last_is_row = bool(moving) and moving[-1] in rows
    place = linearize(point, node.shape)
    keeps = bool(reductions) and bool(merged) and store.key == place.key
    return NestPlan(
        node,
        offset,
        variables,
        accesses,
        reductions,
        collapse(rows, accesses, [store]),
        merged,
        width,
        along,
        not reductions or (not along and (not merged or last_is_row)),
        _stash(node, reductions, [*memory, *(n for n, _ in accesses.reductions)], place, point) if keeps else None,
        None if reductions else find_turned(merged, accesses, store, width, element_bytes(node.element)),
        node.size * max(1, accesses.operations) + sum(prod(n.structured.extents) for n, _ in accesses.reductions),
        all(8 * element_bytes(e) >= parameters.mask_bits for e in elements),
    )


def _lanes_along_reduction(
    reductions: Sequence[Node], accesses: Accesses, variables: Sequence[Var], rows: Sequence[Var], inner: Sequence[Var], width: int
) -> bool:
    """Whether lanes run along the reductions: memory is contiguous there, and is not along the last row dimension."""
    if any(combiners(node.structured) is None for node in reductions):
        return False
    innermost = [v for node in reductions for v in [_last_loop(node, accesses, variables)] if v is not None]
    last_row = rows[-1] if rows and (not inner or variables.index(rows[-1]) > variables.index(inner[-1])) else None
    along_reduction = all(s in (0, 1) for v in innermost for s in accesses.strides(v)) and bool(innermost)
    if last_row is None:
        return True
    along_row = all(s in (0, 1, 2) for s in accesses.strides(last_row)) and last_row not in accesses.irregular
    if along_row and along_reduction:
        return guess(last_row.extent) < width <= max((guess(v.extent) for v in innermost), default=1)
    return along_reduction and not along_row


def _last_loop(reduction: Node, accesses: Accesses, variables: Sequence[Var]) -> Var | None:
    """The innermost loop of a reduction, if memory is read along it."""
    moving = {v for _, offset in accesses.offsets for v in offset.terms if v not in variables}
    last = reduction.structured.reduction_dims[-1]
    return next((v for v in moving if v.name == f"r{last}" and v.extent == reduction.structured.extents[last]), None)


def _stash(node: Node, reductions: Sequence[Node], memory: Sequence[Node], place: Index, point: Point) -> Node | None:
    """An elementwise node of the output's shape that is costly and read both by a reduction and afterwards: kept in the output.

    Each of its elements must be read, last, where it is kept: at `place`. `memory` are the nodes that are in memory by then.
    """
    for candidate in (source for reduction in reductions for source in reduction.structured.inputs):
        if (
            candidate.kind == "generic"
            and not candidate.is_reduction
            and candidate.shape == node.shape
            and candidate.element == node.element
            and candidate is not node
            and candidate.is_costly
        ):
            # The operations after the reductions.
            analysis = Analysis([*memory, candidate])
            analysis.visit(node, point)
            found = [offset.key for n, offset in analysis.found.offsets if n is candidate]
            if found and all(key == place.key for key in found) and not analysis.found.irregular:
                return candidate
    return None
