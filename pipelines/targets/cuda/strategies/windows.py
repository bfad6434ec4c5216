"""Depthwise convolutions and poolings: windows that slide over each channel separately.

Neighbouring threads compute neighbouring elements in memory: vectors of 16 bytes of channels if channels are last, otherwise columns. A
thread computes several outputs along the axis that is not contiguous (neighbouring columns or rows), and reads the elements that their
windows share once. Padding is read as an element inside the input, which is then replaced by the padding, so that no load waits for a
branch. The layout of constant weights is changed so that channels are last.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from relayc.dialects.discardable import PARAM
from relayc.dialects.functions import value_attributes
from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cuda.architectures import WARP
from relayc.pipelines.targets.cuda.strategies.general import inline, split_threads
from relayc.pipelines.targets.cuda.target import CudaTarget
from relayc.pipelines.te.read import window_channels, window_columns
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.te.read.window import Window
from relayc.pipelines.te.read.window_channels import ChannelWindow
from relayc.pipelines.tir.gpu.aligned import VECTOR_BYTES
from relayc.pipelines.tir.schedule.references import LoopRV
from relayc.pipelines.tir.schedule.schedule import Schedule
from relayc.pipelines.tir.schedule.written_strategy import schedule_built_in
from relayc.pipelines.tir.strategy.scheduled import Scheduled
from relayc.pipelines.tir.strategy.tuning import Tuning, power_of_two, powers_of_two
from relayc.pipelines.tir.tree.layouts import map_of
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.symbolic import ceil_div, guess

_MOST_TAPS = 1024
"""Windows with more are left to other schedules."""
_UNROLLED = 512
"""Elements that a thread adds up to which it does so without a loop; beyond, rows of taps are one."""
_MOST_OUTPUTS = 4
"""Outputs of a thread by default."""


@dataclass(frozen=True)
class Numbers:
    """The tunable numbers.

    Attributes:
      threads: of a block.
      lanes: channels of a vector; 1 unless channels are last.
      rows, columns: outputs of a thread.
    """

    threads: int
    lanes: int
    rows: int
    columns: int


def schedule_window(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules a depthwise convolution or a pooling whose channels, or columns, are the innermost dimension."""
    window = window_channels.match(kernel) or window_columns.match(kernel)
    if window is None or window.element_bits is None or window.rows.taps * window.columns.taps > _MOST_TAPS:
        return None
    along = window.channel if isinstance(window, ChannelWindow) else window.columns.output
    if along is None or window.output_offset().coefficient(along) != 1:
        return None
    assert isinstance(target, CudaTarget)
    values: dict[str, Callable[[Numbers], list[int]]] = {
        "threads": lambda n: powers_of_two(WARP, 1024),
        "lanes": lambda n: powers_of_two(1, 16),
        "rows": lambda n: [1, 2, 4],
        "columns": lambda n: [1, 2, 4, 8],
    }
    numbers = tuning.replace(_numbers(window, target), list(values), lambda n: _possible(n, window), values)
    return schedule_built_in(lambda s: _write(s, window, numbers), kernel, target, tuning)


def _numbers(window: Window, target: CudaTarget) -> Numbers:
    """Vectors of 16 bytes of the input; and the number of outputs of a thread with which all threads together read the fewest elements, as
    long as there are threads for all multiprocessors."""
    lanes = _lanes(window, VECTOR_BYTES)
    is_last = isinstance(window, ChannelWindow)
    axis = window.columns if is_last else window.rows
    outputs = max(1, guess(axis.outputs))
    threads = guess(window.node.size) // (lanes * outputs)

    def reads(count: int) -> int:
        return ceil_div(outputs, count) * ((count - 1) * axis.stride + axis.reach + 1)

    most = [n for n in range(1, _MOST_OUTPUTS + 1) if n == 1 or threads * ceil_div(outputs, n) >= _filling_threads(target)]
    count = min(most, key=reads)
    return Numbers(256, lanes, *((1, count) if is_last else (count, 1)))


def _lanes(window: Window, most: int) -> int:
    """Channels of a vector of up to 16 bytes, at most so many: a power of two that divides them."""
    channels = window.channels if isinstance(window, ChannelWindow) else 1
    lanes = VECTOR_BYTES * 8 // max(8, window.data.element.width, window.root.element.width)
    while channels % lanes or lanes > most:
        lanes //= 2
    return lanes


def _filling_threads(target: CudaTarget) -> int:
    """Threads with which each multiprocessor has a block or two."""
    return target.num_multiprocessors * 512


def _possible(numbers: Numbers, window: Window) -> Numbers:
    """Numbers as a kernel can have them: whole warps, vectors that divide the channels, and one row where taps run in a loop."""
    found = replace(numbers, threads=power_of_two(numbers.threads, WARP, 1024), lanes=_lanes(window, numbers.lanes))
    return replace(found, rows=1) if _loops_over_taps(found, window) else found


def _loops_over_taps(numbers: Numbers, window: Window) -> bool:
    """Whether a thread adds up too many elements to do so without a loop."""
    return window.rows.taps * window.columns.taps * numbers.rows * numbers.columns * numbers.lanes > _UNROLLED


def _write(s: Schedule, window: Window, numbers: Numbers) -> None:
    """Schedules the reduction in the threads that store its result."""
    inline(s)
    blocks = list(s.nest.blocks().values())
    taps = next(block.name for block in blocks if block.is_reduction)
    if len(blocks) > 2:
        raise ScheduleError(f"expected the reduction {taps} and a result, found {', '.join(block.name for block in blocks)}")
    if len(blocks) == 1:
        stored = s.cache_write(taps, 0, "local").name
    else:
        s.set_scope(taps, 0, "local")
        stored = blocks[-1].name
    channel = window.channel if isinstance(window, ChannelWindow) else None
    if channel is not None:
        _pack_weights(s, taps, window.variables.index(channel))
    outputs = [(window.rows.output, numbers.rows), (window.columns.output, numbers.columns), (channel, numbers.lanes)]
    thread = _in_threads(s, stored, window, outputs, numbers.threads)
    loops = s.compute_at(taps, thread, preserve_unit_loops=True)
    block = s.nest.blocks()[taps]
    # The outputs of a thread follow each other in each tap: they share elements of the input.
    s.reorder(*(loops[i] for i in block.reduction), *(loops[i] for i in block.parallel))
    for var, loop in zip(window.variables, loops, strict=True):
        if var is channel:
            s.vectorize(loop)
        elif var is not window.rows.tap or not _loops_over_taps(numbers, window):
            s.unroll(loop)


def _pack_weights(s: Schedule, taps: str, channel: int) -> None:
    """Makes the channels the last dimension of the parameters that a block reads along them."""
    block, attributes = s.nest.blocks()[taps], value_attributes(s.nest.head)
    for access in block.loads():
        if not isinstance(access.buffer.owner, ir.Block) or not PARAM.on(attributes[ir.BlockArgument(access.buffer).arg_number]):
            continue
        along = [d for d, index in enumerate(access.indices) if index.coefficient(block.vars[channel]) != 0]
        if len(along) == 1:
            count = len(access.indices)
            order = [*(d for d in range(count) if d not in along), *along]
            s.transform_layout(taps, s.nest.buffer_name(access.buffer), map_of(count, lambda *i: [i[d] for d in order]))  # noqa: B023


def _in_threads(s: Schedule, stored: str, window: Window, outputs: Sequence[tuple[Var | None, int]], threads: int) -> LoopRV:
    """Distributes what a block stores over threads, each with some outputs along some loops of the window; returns the loop of threads."""
    every = [(loop, s.nest.loops()[loop.name].extent) for loop in s.get_loops(stored)]
    loops, single = ([loop for loop, extent in every if (extent == 1) == is_single] for is_single in (False, True))
    along = window.output_at({v: Index.of(v) for v in window.variables if v.extent != 1})
    dimensions = [(index, extent) for index, extent in zip(along, window.node.shape, strict=True) if extent != 1]
    if [extent for _, extent in every if extent != 1] != [extent for _, extent in dimensions]:
        inner: list[Any] = [extent for _, extent in dimensions[1:]]  # a split refuses sizes that are not numbers
        loops = s.split(s.fuse(*loops), [None, *inner])
    parts = []
    for var, count in outputs:
        for d, (index, _) in enumerate(dimensions):
            if var is not None and var in index.terms:
                loops[d], part = s.split(loops[d], [None, count])
                parts.append(part)
    s.reorder(*single, *loops, *parts)
    block, thread = split_threads(s, [*single, *loops], threads)
    s.bind(block, "blockIdx.x")
    for part in parts:
        s.unroll(part)
    if isinstance(window, ChannelWindow):
        s.vectorize(parts[-1])
    return thread
