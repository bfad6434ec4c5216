"""Reductions over windows, and the axes that windows slide along, read off index expressions."""

from dataclasses import dataclass

from relayc.pipelines.kernel.access import split_exactly
from relayc.pipelines.kernel.graph import Kernel, Node, NotStructured, same_order
from relayc.pipelines.kernel.index import Index, Var, affine_index


@dataclass
class Axis:
    """An axis that the window slides along: input position = output * stride + tap * dilation - low.

    Attributes:
      output, tap: loops over it, None where there is one element only.
      size: extent of the input.
    """

    output: Var | None
    tap: Var | None
    stride: int
    dilation: int
    low: int
    size: int

    @property
    def outputs(self) -> int:
        return self.output.high + 1 if self.output is not None else 1

    @property
    def taps(self) -> int:
        return self.tap.high + 1 if self.tap is not None else 1

    @property
    def reach(self) -> int:
        """Distance of the last tap from the first."""
        return (self.taps - 1) * self.dilation

    @property
    def is_padded(self) -> bool:
        return self.low > 0 or (self.outputs - 1) * self.stride + self.reach - self.low >= self.size


def axis_of(index: Index, low: int, size: int, reduced: set[Var]) -> Axis | None:
    """The axis of an index of at most one output and one tap; None for another form."""
    outputs = [v for v in index.terms if v not in reduced]
    taps = [v for v in index.terms if v in reduced]
    if len(outputs) > 1 or len(taps) > 1 or any(c < 0 for c in index.terms.values()):
        return None
    output, tap = (outputs or [None])[0], (taps or [None])[0]
    stride, dilation = (index.terms[v] if v is not None else 1 for v in (output, tap))
    return Axis(output, tap, stride, dilation, low - index.const, size)


@dataclass
class WindowedReduction:
    """The one reduction of a kernel, whose result is an elementwise function of it.

    Attributes:
      root, node: the kernel's result, and the reduction.
      variables: every loop of the reduction; `reduced` are those it reduces over.
      reads: the indices of each input as functions of the loops; None where they are not linear.
    """

    root: Node
    node: Node
    variables: list[Var]
    reduced: set[Var]
    reads: list[list[Index] | None]


def windowed_reduction(kernel: Kernel) -> WindowedReduction | None:
    """What a schedule of windows may take; None for a kernel without, or with more than, one plain reduction."""
    reductions = [n for n in kernel.nodes() if n.is_reduction]
    if len(kernel.results) != 1 or len(reductions) != 1 or not same_order(kernel.results[0], reductions[0]):
        return None
    node = reductions[0]
    structured = node.structured
    if len(structured.inits) != 1 or structured.inits[0].kind != "splat" or structured.captured or 0 in structured.extents:
        return None
    variables = [Var(0, e - 1, name=f"d{i}") for i, e in enumerate(structured.extents)]
    point = [Index() if v.high == 0 else Index.of(v) for v in variables]
    reduced = {v for v, kind in zip(variables, structured.iterators, strict=True) if kind == "reduction" and v.high > 0}
    reads: list[list[Index] | None] = []
    for amap in structured.maps:
        try:
            reads.append([affine_index(e, point, split_exactly) for e in amap.results])
        except NotStructured:
            reads.append(None)
    return WindowedReduction(kernel.results[0], node, variables, reduced, reads)
