"""Axes that windows slide along, read off index expressions."""

from dataclasses import dataclass

from relayc.pipelines.schedule.index import Index, Var


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
