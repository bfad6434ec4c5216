"""The rules that generate sketches, with the names of TVM's MetaSchedule.

The last rule gives every block tiles of rows and vectors; the rules before decide where a block is computed, whether a reduction has
partial results, and whether the sums of a tile stay in registers.
"""

from contextlib import suppress

from relayc.pipelines.tir.analysis.reducers import find_reducer
from relayc.pipelines.tir.schedule.references import BlockRV, LoopRV
from relayc.pipelines.tir.tree.arguments import Chosen
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.tune.sketch import SketchState, sketch_rule

_MOST_LOADS = 32
"""Loads of a block up to which another one may be computed in it."""
_OWN, _OUTER, _INNER = 0, 1, 2
"""Where a block is computed: in separate loops, for each block of rows of its consumer, or for each tile of its consumer."""
_ROWS, _BLOCKS, _VECTORS, _DEPTHS = (1, 2, 4, 6, 8), (1, 4, 16), (1, 2, 4), (16, 64, 256)
_FEW_STEPS = 8
"""Steps of a reduction that may be written out."""


def _value(number: int | Chosen) -> int:
    return number.value if isinstance(number, Chosen) else number


@sketch_rule(plevel=9)
def auto_inline(state: SketchState, block: BlockRV) -> bool:
    """Inlines an elementwise block: always if it is read once and only moves or converts elements, otherwise as a choice."""
    view, schedule = state.view(block), state.schedule
    consumers = schedule.get_consumers(block)
    if view.is_reduction or state.is_output(block) or state.is_computed_at(block) or len(view.outputs()) != 1:
        return False
    loads = [sum(access.buffer in view.outputs() for access in state.view(c).loads()) for c in consumers]
    others = [len(state.view(c).loads()) for c in consumers]
    own = len(view.loads())
    if any(other + count * (own - 1) > _MOST_LOADS for other, count in zip(others, loads, strict=True)):
        return False
    if (own > 1 or sum(loads) > 1) and not _value(state.choose(block, "inline", (0, 1))):
        return False
    with suppress(ScheduleError):
        schedule.compute_inline(block)
        return True
    return False


@sketch_rule(plevel=8)
def cache_write(state: SketchState, block: BlockRV) -> bool:
    """A reduction that gives a result of the kernel is summed in a buffer, which is copied: so the sums of a tile can stay in registers."""
    if not state.is_reduction(block) or not state.is_output(block) or len(state.view(block).outputs()) != 1:
        return False
    if not state.loops(block)[0] or not _value(state.choose(block, "cache_write", (0, 1))):
        return False
    with suppress(ScheduleError):
        state.schedule.cache_write(block, 0, "global")
        return True
    return False


@sketch_rule(plevel=7)
def random_compute_location(state: SketchState, block: BlockRV) -> bool:
    """Computes a block in separate loops, for each block of rows of its consumers, or for each tile of its consumers, in registers."""
    schedule = state.schedule
    consumers = schedule.get_consumers(block)
    if state.is_output(block) or not consumers or state.is_computed_at(block):
        return False
    first, *others = [state.attach_points.get(c.name, []) for c in consumers]
    points = first if all(other == first for other in others) else []
    where = _value(state.choose(block, "at", (_OWN, _OUTER, _INNER)[: len(points) + 1]))
    if where == _OWN:
        return False
    try:
        state.compute_at(block, points[where - 1])
    except ScheduleError:  # unchanged, in separate loops
        return False
    state.attach_points[block.name] = points[:where]
    if where == _INNER and len(state.view(block).outputs()) == 1:
        with suppress(ScheduleError):
            schedule.set_scope(block, 0, "local")
    return True


@sketch_rule(plevel=6, optional=True)
def add_rfactor(state: SketchState, block: BlockRV) -> bool:
    """A long reduction has partial results, one for each lane of some vectors, which are combined in the end."""
    _, steps = state.loops(block)
    lanes = state.lanes(block)
    extent = state.extent(steps[-1]) if steps else None
    if extent is None or extent < 4 * lanes or block.name.endswith("_rf") or state.is_computed_at(block):
        return False
    try:
        find_reducer(state.view(block))
    except ScheduleError:
        return False
    widths = [width for width in (lanes, 2 * lanes, 4 * lanes, 8 * lanes) if 2 * width <= extent]
    step = state.schedule.split(steps[-1], [None, state.choose(block, "lanes", widths)])[1]
    try:
        parts = state.schedule.rfactor(step, 0)
    except ScheduleError:  # the other rules get the split loops
        return True
    elements, (*_, step) = state.loops(parts)
    state.schedule.reorder(step, elements[-1])
    state.schedule.vectorize(elements[-1])
    _parallel(state, elements[:-1])
    state.scheduled |= {block.name, parts.name}
    return True


@sketch_rule(plevel=5, optional=True)
def multi_level_tiling_with_intrin(state: SketchState, block: BlockRV) -> bool:
    """Replaces a tile of a product by a tensor intrinsic, if one matches the block."""
    elements, steps = state.loops(block)
    if len(elements) < 2 or len(steps) != 1 or not _is_product(state, block):
        return False
    schedule, lanes, most = state.schedule, state.lanes(block), state.target.num_vector_registers
    tiles = [(rows, vectors * lanes) for rows in (4, 6, 8) for vectors in (1, 2, 3, 4) if rows * vectors + vectors < most]
    rows, columns = tiles[_value(state.choose(block, "tile", range(len(tiles))))]
    *outer, i, j = elements
    i0, i1 = schedule.split(i, [None, rows])
    j0, j1 = schedule.split(j, [None, columns])
    schedule.reorder(*outer, i0, j0, i1, j1, steps[0])
    try:
        tile = schedule.tensorize(i1, f"dot_f32_{rows}x{columns}")
    except ScheduleError:  # the other rules get the split loops
        return True
    state.scheduled |= {block.name, tile.name}
    if not state.is_computed_at(block):
        _parallel(state, [*outer, i0])
        state.attach_points[tile.name] = [i0]
    return True


def _is_product(state: SketchState, block: BlockRV) -> bool:
    """Whether a block may be a sum of products of f32: it multiplies elements of two buffers."""
    view = state.view(block)
    names = [step.name for step in view.steps(False) or ()]
    types = {str(buffer.type.element_type) for buffer in (*view.inputs(), *view.outputs())}
    return types == {"f32"} and len(view.inputs()) == 2 and names.count("arith.mulf") == names.count("arith.addf") == 1


@sketch_rule(plevel=4)
def multi_level_tiling(state: SketchState, block: BlockRV) -> bool:
    """A reduction in tiles of rows and vectors: rows in blocks for the caches, steps in parts, a tile of sums innermost."""
    if not state.is_reduction(block):
        return False
    elements, steps = state.loops(block)
    if not elements:
        return False
    schedule = state.schedule
    outer, rows, lanes = _tiles(state, block, elements)
    (first, *rest), depths = steps, [64]
    extent = state.extent(first)
    if extent is None or extent > 2 * _DEPTHS[0]:
        depths = [0, *(depth for depth in _DEPTHS if extent is None or depth < extent)]
        depth = state.choose(block, "depth", depths)
        parts = [first] if not _value(depth) else schedule.split(first, [None, depth])
    else:
        parts = [first]
    *blocks, part = parts
    *before, tile = outer
    schedule.reorder(*before, *blocks, tile, part, *rest, *rows, lanes)
    short = [step for step in rest or [part] if (state.extent(step) or _FEW_STEPS + 1) <= _FEW_STEPS]
    if short and _value(state.choose(block, "unroll_steps", (0, 1))):
        for step in short:
            schedule.unroll(step)
    _finish(state, block, [*before, *([] if blocks else [tile])], rows, lanes)
    return True


@sketch_rule(plevel=3)
def parallelize_vectorize_unroll(state: SketchState, block: BlockRV) -> bool:
    """The elements of a block in tiles of rows and vectors, rows on several threads."""
    elements, steps = state.loops(block)
    if steps or not elements:
        return False
    outer, rows, lanes = _tiles(state, block, elements)
    state.schedule.reorder(*outer, *rows, lanes)
    _finish(state, block, outer, rows, lanes)
    return True


def _tiles(state: SketchState, block: BlockRV, elements: list[LoopRV]) -> tuple[list[LoopRV], list[LoopRV], LoopRV]:
    """Splits loops of elements into the loops outside a tile, the rows of a tile, and its lanes."""
    schedule, lanes = state.schedule, state.lanes(block)
    *others, last = elements
    extent = state.extent(last)
    widths = [lanes * count for count in _VECTORS]
    if extent is not None:
        widths = sorted({min(width, extent) for width in widths})
    width = state.choose(block, "width", _divisors(widths, extent))
    columns, inner = schedule.split(last, [None, width])
    if not others:
        return [columns], [], inner
    *outermost, row = others
    count = state.extent(row)
    most = max(1, state.target.num_vector_registers * lanes // _value(width))
    heights = _divisors([height for height in _ROWS if height <= min(most, count or most)], count)
    factors = _divisors([height for height in _BLOCKS if count is None or height * 2 <= count] or [1], count)
    if state.is_computed_at(block):
        first, rows = schedule.split(row, [None, state.choose(block, "rows", heights)])
        return [*outermost, first, columns], [rows], inner
    first, second, rows = schedule.split(row, [None, state.choose(block, "block", factors), state.choose(block, "rows", heights)])
    schedule.reorder(*outermost, first, columns, second, rows)
    return [*outermost, first, columns, second], [rows], inner


def _divisors(numbers: list[int], extent: int | None) -> list[int]:
    """The numbers that divide an extent, if several do; for other numbers the remainder is guarded."""
    found = [number for number in numbers if extent is not None and extent % number == 0]
    return found if len(found) > 1 else numbers


def _finish(state: SketchState, block: BlockRV, outer: list[LoopRV], rows: list[LoopRV], lanes: LoopRV) -> None:
    """Says how the loops of a tile run, and where producers may be computed."""
    for loop in rows:
        state.schedule.unroll(loop)
    state.schedule.vectorize(lanes)
    state.scheduled.add(block.name)
    if state.is_computed_at(block) or not outer:
        return
    _parallel(state, outer[:1])
    state.attach_points[block.name] = [outer[0]] if len(outer) == 1 else [outer[0], outer[-1]]


def _parallel(state: SketchState, loops: list[LoopRV]) -> None:
    """The outermost of some loops that has iterations to share runs on several threads."""
    for loop in loops:
        if state.extent(loop) != 1:
            with suppress(ScheduleError):
                state.schedule.parallel(loop)
            return
