"""Sorts: a block for one line or several lines that fit in it; longer lines by merges of tiles, and the first few of many by selection.

The length of a line decides how it is sorted; the host decides if the length is symbolic. Elements become integers of the same order,
together with their positions, so that the sort is stable (see targets.gpu.sorting.orders). Positions have 32 bits.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cuda.architectures import STATIC_SHARED_BYTES, WARP
from relayc.pipelines.targets.cuda.target import CudaTarget
from relayc.pipelines.targets.gpu.sorting.lines import Shape, sort_lines
from relayc.pipelines.targets.gpu.sorting.orders import MOST_ITEMS, item_widths, key_of, order_of
from relayc.pipelines.targets.gpu.sorting.selection import Selection, most_count, select_first
from relayc.pipelines.targets.gpu.sorting.tiles import LEAST_THREADS, LineTiles, sort_tiles
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.te.read.sorting import Sorting, match
from relayc.pipelines.tir.strategy.scheduled import KernelFunction, Scheduled, kernel_function
from relayc.pipelines.tir.strategy.tuning import Tuning, power_of_two, powers_of_two
from relayc.pipelines.tir.values import nest
from relayc.symbolic import Size, ceil_div, guess, proves

_ITEMS, _ROWS = 11, 1
"""Items of a thread. An odd number avoids bank conflicts in shared memory between neighbouring threads. By SASS of sm_90a a merge of tiles
of f32 takes 112 instructions an element with 7 items, 82 with 11 and 69 with 15; the registers allow 8, 6 and 5 blocks of 256 threads on a
multiprocessor. Rows are compared in a loop, and each exchange of two rows would be such a loop."""
_SHORT_THREADS = 16
"""Elements of a line of symbolic length, at most, in the launch for short lines."""
_PART_TILES = 4
"""Tiles of a part of a line, at least, if several blocks select from the line."""
_BLOCKS_PER_MULTIPROCESSOR = 2
"""That parts, or lines of which a block has several, are to make."""


@dataclass(frozen=True)
class Numbers:
    """The tunable numbers.

    Attributes:
      threads: of a block, at most.
      items: elements of a thread, at most.
      parts: blocks of a line of which a few elements are selected.
    """

    threads: int = 256
    items: int = _ITEMS
    parts: int = 1


def schedule_sort(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules a sort of the elements of lines, or of rows."""
    sorting = match(kernel)
    if sorting is None or not key_of(sorting).is_known or proves(lambda: sorting.size > MOST_ITEMS):
        return None
    assert isinstance(target, CudaTarget)
    plan = _Plan(sorting, target, _numbers(sorting, target, tuning))
    with kernel_function(kernel, workspace_bytes=plan.workspace_bytes) as body:
        plan.emit(body)
    return Scheduled(body.function, workspace_bytes=plan.workspace_bytes)


def _numbers(sorting: Sorting, target: CudaTarget, tuning: Tuning) -> Numbers:
    defaults = Numbers(items=_ITEMS if sorting.columns is None else _ROWS)
    defaults = replace(defaults, parts=_parts(sorting, target, defaults))
    values: dict[str, Callable[[Numbers], list[int]]] = {
        "threads": lambda n: powers_of_two(LEAST_THREADS, 1024),
        "items": lambda n: [1, 3, 5, 7, 9, 11, 15],
        "parts": lambda n: powers_of_two(1, _most_parts(sorting, n)),
    }
    return tuning.replace(defaults, list(values), lambda n: _possible(sorting, n), values)


def _possible(sorting: Sorting, numbers: Numbers) -> Numbers:
    """Numbers as launches can have them: as many items as shared memory has room for."""
    threads = power_of_two(numbers.threads, LEAST_THREADS, 1024)
    room = STATIC_SHARED_BYTES // (sum(item_widths(sorting)) // 8) - WARP
    found = Numbers(threads, min(numbers.items, room // threads), numbers.parts)
    return replace(found, parts=min(found.parts, _most_parts(sorting, found)))


def _shape(numbers: Numbers) -> Shape:
    return Shape(numbers.threads, numbers.items)


def _selected(sorting: Sorting, numbers: Numbers) -> int | None:
    """How many elements are selected from a line that does not fit in a block; None if the line is sorted."""
    count = sorting.count
    if not isinstance(count, int) or sorting.columns is not None or count > most_count(_shape(numbers)):
        return None
    return count


def _most_parts(sorting: Sorting, numbers: Numbers) -> int:
    """Of a line, of which the selected elements of all are sorted by a block in the end."""
    count = _selected(sorting, numbers)
    return 1 if count is None else _shape(numbers).capacity // count


def _parts(sorting: Sorting, target: CudaTarget, numbers: Numbers) -> int:
    wanted = ceil_div(_BLOCKS_PER_MULTIPROCESSOR * target.num_multiprocessors, max(1, guess(sorting.lines)))
    long = guess(sorting.size) // (_PART_TILES * _shape(numbers).capacity)
    return max(1, min(wanted, long, _most_parts(sorting, numbers)))


class _Plan:
    """How one kernel is sorted.

    Attributes:
      selection: for lines that do not fit in a block, of which a few elements are selected.
      tiles: for lines that do not fit in a block, which are sorted.
      workspace_bytes: bytes of workspace for the selection or the tiles.
    """

    def __init__(self, sorting: Sorting, target: CudaTarget, numbers: Numbers) -> None:
        self.s, self.target, self.shape = sorting, target, _shape(numbers)
        self.selection: Selection | None = None
        self.tiles: LineTiles | None = None
        self.workspace_bytes: Size = 0
        lines, size, widths = sorting.lines, sorting.size, item_widths(sorting)
        if proves(lambda: size <= self.shape.capacity):
            return
        count = _selected(sorting, numbers)
        if count is not None:
            self.selection = Selection(lines, size, count, self.shape, numbers.parts)
            self.workspace_bytes = self.selection.workspace_bytes(widths)
        else:
            self.tiles = LineTiles(lines, size, self.shape)
            self.workspace_bytes = self.tiles.workspace_bytes(widths)

    def emit(self, body: KernelFunction) -> None:
        """The launches, at the ambient insertion point: which of them run the host decides."""
        order = order_of(self.s, body.evaluator.buffers[self.s.source], body.outputs)

        def sort_long() -> None:
            if self.selection is not None:
                select_first(order, self.selection, body.workspace)
            elif self.tiles is not None and body.workspace is not None:
                sort_tiles(order, self.tiles, body.workspace)

        def sort_in_blocks(shape: Shape) -> None:
            sort_lines(order, self.s.lines, self.s.size, self._together(shape))

        def sort_short() -> None:
            size = self.s.size
            if isinstance(size, int):
                sort_in_blocks(self._fitting(size))
                return
            short = Shape(_SHORT_THREADS, self.shape.items)
            nest.at_least([(size, short.capacity + 1)], body.evaluator, lambda: sort_in_blocks(self.shape), lambda: sort_in_blocks(short))

        nest.at_least([(self.s.size, self.shape.capacity + 1)], body.evaluator, sort_long, sort_short)

    def _fitting(self, size: int) -> Shape:
        """The fewest threads that have room for a line, with as few items each."""
        threads = 2
        while threads * self.shape.items < size:
            threads *= 2
        return Shape(threads, ceil_div(size, threads) | 1)

    def _together(self, shape: Shape) -> Shape:
        """With several lines in a block, as long as there are blocks for all multiprocessors."""
        lines, wanted = max(1, self.shape.threads // shape.threads), _BLOCKS_PER_MULTIPROCESSOR * self.target.num_multiprocessors
        while lines * shape.threads > WARP and lines > 1 and guess(self.s.lines) < lines * wanted:
            lines //= 2
        return replace(shape, lines=lines)
