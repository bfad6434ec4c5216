"""Operators that are linear in their data and in their weight: convolutions and products with a weight.

A factor for each channel of the data, or of the result, may be multiplied into the weight instead (FoldScaleAxis).
"""

from abc import abstractmethod
from dataclasses import dataclass

from relayc.dialects.relay.base import Op


@dataclass(frozen=True)
class WeightChannels:
    """Where the channels of the data, or of the result, are in a weight.

    Attributes:
      axis: the dimension along which they run.
      groups: how many groups of them there are, of which `axis` counts one.
      group_axis: the dimension along which the groups run, outermost; it says nothing of one group.
    """

    axis: int
    groups: int = 1
    group_axis: int = 0


class Linear(Op):
    """Base of the operators whose first operand is the data and whose second one the weight."""

    @abstractmethod
    def channel_axis(self, of_result: bool) -> int | None:
        """The dimension of the channels in the result (or the data); None if they are not in one dimension."""

    @abstractmethod
    def weight_channels(self, of_result: bool) -> WeightChannels:
        """Where the channels of the result (or of the data) are in the weight."""
