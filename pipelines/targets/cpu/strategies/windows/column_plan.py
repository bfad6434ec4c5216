"""Sizes of tiles, blocks and buffers of windows along contiguous columns."""

from dataclasses import dataclass
from functools import cached_property

from relayc.dialects.mlir import ir
from relayc.pipelines.te.read.reduction import multiply_add_casts
from relayc.pipelines.te.read.window import Window, number
from relayc.pipelines.tir.strategy.tuning import power_of_two_from
from relayc.symbolic import ceil_div

MAX_TAPS = 256
"""Windows with more taps are left to other schedules."""
MOST_FLOATS = 8
"""Lanes of vectors up to which products of bytes are faster in f32: larger ones lie across lines of the cache at most taps."""
assert MAX_TAPS << 15 < 1 << 24, "sums of products of bytes are exact in f32"


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

    @cached_property
    def to_floats(self) -> list[list[tuple[str, ir.Type]]] | None:
        """The conversions of both inputs of a sum of products of bytes to f32, which has all numbers below 2^24; None for any other one."""
        structured = self.window.structured
        if self.parameters.lanes > MOST_FLOATS or len(structured.block.arguments) != 3:
            return None
        if any(n.element != ir.IntegerType.get_signless(8) for n in structured.inputs):
            return None
        casts = multiply_add_casts(structured)
        if casts is None or structured.inits[0].op.attributes["value"].value != 0:
            return None
        return [[(name.replace("ext", "", 1) + "tofp", ir.F32Type.get()) for name, _ in chain] for chain in casts]

    @property
    def element(self) -> ir.Type:
        """The type of what the buffer holds."""
        return ir.F32Type.get() if self.to_floats else self.window.data.element

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
        width = self.row_pitch * self.element.width // 8
        most = max(1, (self.parameters.buffer_bytes // width - rows.reach - 1) // rows.stride + 1)
        if most >= self.output_rows:
            return self.output_rows
        size = ceil_div(self.output_rows, ceil_div(self.output_rows, most))
        return ceil_div(size, self.tile_rows) * self.tile_rows

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
        return self.buffer_size * self.element.width // 8

    @property
    def sums_size(self) -> int:
        """Elements of the buffer of sums, likewise."""
        return self.block_rows * self.outputs + self.parameters.lanes
