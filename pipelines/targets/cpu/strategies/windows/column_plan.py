"""Sizes of tiles, blocks and buffers of windows along contiguous columns."""

from dataclasses import dataclass

from relayc.pipelines.te.read.window import Window, number
from relayc.pipelines.tir.strategy.tuning import power_of_two_from
from relayc.symbolic import ceil_div


@dataclass(frozen=True)
class ColumnParameters:
    """Tunable numbers.

    Attributes:
      lanes: elements of a vector.
      accumulators: vectors of a tile.
      buffer_bytes: input rows that a task copies, at most (more where one window needs more).
      unrolled: operations up to which the taps of a tile are unrolled in both directions; beyond, rows of taps are a loop.
      grain: window elements in all below which the kernel stays on one thread.
    """

    lanes: int
    accumulators: int = 8
    buffer_bytes: int = 16 << 10
    unrolled: int = 256
    grain: int = 1 << 16


@dataclass(frozen=True)
class ColumnPlan:
    """The copies and computations of a task.

    Its buffer holds rows of the input, columns apart by phases (their positions modulo the stride).
    """

    window: Window
    parameters: ColumnParameters

    @property
    def outputs(self) -> int:
        """Columns of the output."""
        return number(self.window.columns.outputs)

    @property
    def output_rows(self) -> int:
        """Rows of the output."""
        return number(self.window.rows.outputs)

    @property
    def phases(self) -> int:
        """Phases that the taps reach."""
        return min(self.window.columns.stride, self.window.columns.reach + 1)

    @property
    def pitch(self) -> int:
        """Columns of a phase that the taps reach."""
        return self.outputs + self.window.columns.reach // self.window.columns.stride

    @property
    def row_pitch(self) -> int:
        """Elements of a row in the buffer."""
        return self.phases * self.pitch

    @property
    def is_narrow(self) -> bool:
        """Whether a row of the output is shorter than a vector: then whole rows are vectors, which overlap in a buffer of sums."""
        return self.outputs < self.parameters.lanes

    @property
    def lanes(self) -> int:
        """Lanes of a vector of columns."""
        return power_of_two_from(self.outputs) if self.is_narrow else self.parameters.lanes

    @property
    def tile_vectors(self) -> int:
        """Vectors of a row of a tile: the full row if it is short."""
        count = ceil_div(self.outputs, self.lanes)
        return min(range(1, min(count, self.parameters.accumulators) + 1), key=lambda v: (ceil_div(count, v) * v, -v))

    @property
    def tile_rows(self) -> int:
        """Rows of a tile."""
        return min(self.parameters.accumulators // self.tile_vectors, self.output_rows)

    @property
    def block_rows(self) -> int:
        """Output rows of a task: as many as its buffer takes, in tasks of about the same size."""
        rows = self.window.rows
        width = self.row_pitch * self.window.data.element.width // 8
        most = max(1, (self.parameters.buffer_bytes // width - rows.reach - 1) // rows.stride + 1)
        if most >= self.output_rows:
            return self.output_rows
        size = ceil_div(self.output_rows, ceil_div(self.output_rows, most))
        return min(self.output_rows, ceil_div(size, self.tile_rows) * self.tile_rows)

    @property
    def blocks(self) -> int:
        """Tasks of a plane."""
        return ceil_div(self.output_rows, self.block_rows)

    @property
    def input_rows(self) -> int:
        """Rows of the input that a task reads."""
        return (self.block_rows - 1) * self.window.rows.stride + self.window.rows.reach + 1

    @property
    def buffer_size(self) -> int:
        """Elements of the buffer: whole vectors are read and written, so it goes on for one after its last element."""
        return self.input_rows * self.row_pitch + self.parameters.lanes

    @property
    def buffer_bytes(self) -> int:
        return self.buffer_size * self.window.data.element.width // 8

    @property
    def sums_size(self) -> int:
        """Elements of the buffer of sums, likewise."""
        return self.block_rows * self.outputs + self.parameters.lanes
