"""Memory accesses of a kernel as functions of its loops, found without emitting code.

They determine the loop order, the vector dimension and the loops to collapse.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from relayc.pipelines.emission.index import Index, Var, linearize, reshape
from relayc.pipelines.te.read.graph import Node, NotStructured, indices_at
from relayc.symbolic import Size
from relayc.trampoline import Call, trampoline


@dataclass
class Accesses:
    """The accesses of evaluating a node at a symbolic point.

    Attributes:
      offsets: flat offset of each load of a buffer, with the buffer's node.
      irregular: variables that also affect memory, a value or a bounds check nonlinearly.
      bounds: (index, extent) of each bounds check of a padding.
      inside: variables of indices of a padding that need no check. An index of merged loops would: it runs on where another row begins.
      reductions: points at which reduction nodes are evaluated, in order (inner ones first).
      operations: arithmetic operations per element, each reduction body counted once.
    """

    offsets: list[tuple[Node, Index]] = field(default_factory=list)
    irregular: set[Var] = field(default_factory=set)
    bounds: list[tuple[Index, Size]] = field(default_factory=list)
    inside: set[Var] = field(default_factory=set)
    reductions: list[tuple[Node, list[Index]]] = field(default_factory=list)
    operations: int = 0

    def strides(self, var: Var) -> list[Size]:
        """Coefficient of `var` in each load."""
        return [offset.coefficient(var) for _, offset in self.offsets]


class Analysis:
    """Collects the accesses of nodes; nodes in `bound` count as memory."""

    def __init__(self, bound: Sequence[Node] = ()) -> None:
        self.bound = set(map(id, bound))
        self.found = Accesses()
        self.seen: set[tuple[object, ...]] = set()
        self.reduction_vars: dict[int, list[Var]] = {}

    def visit(self, node: Node, indices: Sequence[Index]) -> None:
        """Adds the accesses of evaluating `node` at `indices`."""
        trampoline(self._visit(node, indices))

    def _visit(self, node: Node, indices: Sequence[Index]) -> Call[None]:
        key = (id(node), *(i.key for i in indices))
        if key in self.seen:
            return
        self.seen.add(key)
        if node.kind == "arg" or id(node) in self.bound:
            self.found.offsets.append((node, linearize(indices, node.shape)))
        elif node.kind == "view":
            yield self._view(node, indices)
        elif node.kind == "slice":
            yield self._visit(node.inputs[0], [i * s + o for i, s, o in zip(indices, node.strides, node.offsets, strict=True)])
        elif node.kind == "pad":
            point = [i - low for i, low in zip(indices, node.low, strict=True)]
            for index, extent, padded in zip(point, node.inputs[0].shape, node.shape, strict=True):
                if extent == padded:
                    continue
                if index.is_within(0, extent - 1):
                    self.found.inside.update(index.terms)
                else:
                    self.found.bounds.append((index, extent))
            yield self._visit(node.inputs[0], point)
        elif node.kind == "concat":
            self._irregular(indices[node.axis])
            for piece in node.inputs:
                yield self._visit(piece, indices)
        elif node.kind == "generic":
            yield self._generic(node, indices)

    def _irregular(self, index: Index) -> None:
        self.found.irregular.update(index.terms)

    def _view(self, node: Node, indices: Sequence[Index]) -> Call[None]:
        source = node.inputs[0]
        if source.kind == "arg" or id(source) in self.bound:
            self.found.offsets.append((source, linearize(indices, node.shape)))
            return
        yield self._visit(source, reshape(indices, node.shape, source.shape, self._split))

    def _split(self, index: Index, divisor: Size) -> tuple[Index, Index]:
        split = index.split(divisor)
        if split is None:
            self._irregular(index)
        return split or (Index(), Index())

    def _generic(self, node: Node, indices: Sequence[Index]) -> Call[None]:
        structured = node.structured
        point = structured.loop_point(node.position, indices)
        if node.is_reduction:
            variables = self.reduction_vars.setdefault(
                id(structured), [Var.below(structured.extents[d], name=f"r{d}") for d in structured.reduction_dims]
            )
            for d, var in zip(structured.reduction_dims, variables, strict=True):
                point[d] = Index.of(var)
        for source, results in zip(structured.inputs, structured.results, strict=False):
            yield self._visit(source, indices_at(results, point, self._split) if source.shape else [])
        self.found.operations += structured.body.size
        for dim in structured.body.indices:
            self._irregular(point[dim])
        for captured in structured.captured.values():
            for index in point:
                self._irregular(index)
            # The value of a computed index is unknown; the load still counts.
            yield self._visit(captured, [Index() for _ in captured.shape])
        if node.is_reduction:
            self.found.reductions.append((node, list(indices)))


class MergedLoop(NamedTuple):
    """Nested loops merged into one, outermost first, and their total number of iterations."""

    members: list[Var]
    extent: Size

    @property
    def var(self) -> Var:
        """The innermost loop, which represents all: the others stay at 0."""
        return self.members[-1]

    def at(self, index: Index) -> dict[Var, Index]:
        """Indices of the members at an iteration."""
        return {**{v: Index() for v in self.members[:-1]}, self.var: index}


def collapse(variables: Sequence[Var], accesses: Accesses, more: Sequence[Index] = ()) -> list[MergedLoop]:
    """Merges adjacent loops along which every access is contiguous; `more` are further offsets (of stores) to respect."""
    offsets = [offset for _, offset in accesses.offsets] + list(more)
    checked = accesses.irregular | accesses.inside | {v for index, _ in accesses.bounds for v in index.terms}
    merged: list[MergedLoop] = []
    for var in variables:
        if merged:
            outer = merged[-1]
            regular = var not in checked and outer.var not in checked
            if regular and all(o.coefficient(outer.var) == o.coefficient(var) * var.extent for o in offsets):
                merged[-1] = MergedLoop([*outer.members, var], outer.extent * var.extent)
                continue
        merged.append(MergedLoop([var], var.extent))
    return merged


def split_exactly(index: Index, divisor: Size) -> tuple[Index, Index]:
    """Quotient and remainder. Raises NotStructured if they are not linear."""
    split = index.split(divisor)
    if split is None:
        raise NotStructured("a reshape that is not linear in the loops")
    return split
