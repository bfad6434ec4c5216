"""Weights of windows over channels: parameters packed so that the channels of a vector are contiguous."""

from collections.abc import Mapping
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.emission.index import Index, Var, affine_index, linearize, reshape
from relayc.pipelines.te.read.access import split_exactly
from relayc.pipelines.te.read.graph import Kernel, Node, NotStructured
from relayc.pipelines.te.read.window import number
from relayc.pipelines.te.read.window_channels import ChannelWindow
from relayc.pipelines.tir.strategy.packing import Packing
from relayc.pipelines.tir.strategy.scheduled import is_param
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import ceil_div


@dataclass(frozen=True)
class Weights:
    """A parameter packed as [planes..., vector of channels, taps..., lanes].

    Attributes:
      node: the argument.
      indices: its indices as functions of the loops.
      planes, channel, taps: the loops that it depends on.
      lanes: channels of a vector.
    """

    node: Node
    indices: list[Index]
    planes: list[Var]
    channel: Var
    taps: list[Var]
    lanes: int

    @property
    def vectors(self) -> int:
        """Vectors of channels; the last one may overlap the one before."""
        return ceil_div(number(self.channel.extent), self.lanes)

    def packing(self) -> Packing:
        loops = [(v, number(v.extent)) for v in (*self.planes, self.channel, *self.taps)]
        shape = (*(number(v.extent) for v in self.planes), self.vectors, *(number(v.extent) for v in self.taps), self.lanes)
        return Packing.reading("channels", self.node.static_shape, self.indices, loops, shape, batch=len(self.planes))

    def load(self, evaluator: Evaluator, at: Mapping[Var, Index], vector: Index) -> ir.Value:
        """The weights of a vector of channels at one tap, in the evaluator's lanes."""
        loops = [(at.get(v, Index()), v.extent) for v in self.planes] + [(vector, self.vectors)] + [(at[v], v.extent) for v in self.taps]
        offset = linearize([index for index, _ in loops], [extent for _, extent in loops])
        return evaluator.load(self.node, offset * self.lanes + evaluator.lane_index)


def find_weights(kernel: Kernel, window: ChannelWindow, position: int, lanes: int) -> Weights | None:
    """The weights of an input that is a parameter and varies with the channel; None if it is read as it is."""
    w = window
    source, amap = w.structured.inputs[position], w.structured.maps[position]
    if position == w.position or source.kind not in ("arg", "view"):
        return None
    try:
        indices = [affine_index(e, [Index() if v.extent == 1 else Index.of(v) for v in w.variables], split_exactly) for e in amap.results]
        while source.kind == "view":
            indices, source = reshape(indices, source.shape, source.inputs[0].shape, split_exactly), source.inputs[0]
    except NotStructured:
        return None
    variables = {v for index in indices for v in index.terms}
    if not is_param(kernel, source) or w.channel not in variables:
        return None
    if not all(isinstance(v.extent, int) for v in variables):
        return None
    planes = [v for v in w.planes if v in variables]
    taps = [v for v in (w.rows.tap, w.columns.tap) if v is not None and v in variables]
    return Weights(source, indices, planes, w.channel, taps, lanes) if variables == {*planes, *taps, w.channel} else None
