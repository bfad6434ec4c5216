"""How GPUs go about sorts, windows and transposes: what the numbers of their launches are, by their sizes. Nothing is compiled."""

from contextlib import nullcontext
from dataclasses import replace
from itertools import permutations
from types import SimpleNamespace

import pytest

from relayc import te
from relayc.dialects.mlir import ir, make_context
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cuda.strategies import general, transpose, windows
from relayc.pipelines.targets.cuda.strategies import sorting as sorts
from relayc.pipelines.targets.cuda.strategies.attention import blocks, flash
from relayc.pipelines.targets.cuda.strategies.attention.tensor_blocks import TensorBlocks
from relayc.pipelines.targets.cuda.strategies.product import strategy
from relayc.pipelines.targets.cuda.strategies.product.instructions import Instruction
from relayc.pipelines.targets.cuda.strategies.product.tile import BlockTile
from relayc.pipelines.targets.gpu.sorting.keys import Key
from relayc.pipelines.targets.gpu.sorting.lines import Shape
from relayc.pipelines.targets.gpu.sorting.merging import exchanges
from relayc.pipelines.targets.gpu.sorting.orders import MOST_ITEMS, item_widths, items_bytes
from relayc.pipelines.targets.gpu.sorting.selection import Selection, most_count
from relayc.pipelines.targets.gpu.sorting.tiles import LineTiles
from relayc.pipelines.te.read.access import MergedLoop
from relayc.pipelines.te.read.graph import NotStructured, read_kernel
from relayc.pipelines.te.read.sorting import INDICES, VALUES, Sorting
from relayc.pipelines.te.read.window import WindowAxis
from relayc.pipelines.te.read.window_channels import ChannelWindow
from relayc.pipelines.tir.strategy.tuning import Tuning
from relayc.symbolic import symbol
from relayc.tir import Schedule

TARGET = Target("cuda", arch="sm_80", num_multiprocessors=10)
N = symbol("n")


# ---- sorts


def sort_of(size=1000, lines=1, count=None, dtype="float32", width=32, results=(INDICES,), columns=None, descending=False):
    source = SimpleNamespace(element=SimpleNamespace(width=width))
    return Sorting(source, dtype, lines, size, 1, size if count is None else count, columns, descending, results)


def test_words_of_items():
    """The key alone, key and place in 32 bits where lines are so short, in 64, or in a word each."""
    for given, widths in (
        ({"dtype": "int8", "width": 8, "results": (VALUES,)}, (32,)),
        ({"dtype": "int64", "width": 64, "results": (VALUES,)}, (64,)),
        ({"dtype": "int64", "width": 64, "results": (VALUES, INDICES)}, (64, 32)),
        ({"dtype": "float32", "results": (VALUES,)}, (64,)),  # NaN and zeros do not come back from their keys
        ({"dtype": "int16", "width": 16, "size": 0xFFFF}, (32,)),
        ({"dtype": "int16", "width": 16, "size": 0x10000}, (64,)),
        ({"dtype": "uint8", "width": 8, "size": (1 << 24) - 1}, (32,)),
        ({"dtype": "uint8", "width": 8, "size": 1 << 24}, (64,)),
        ({"dtype": "uint8", "width": 8, "size": N}, (64,)),
        ({"dtype": "float32"}, (64,)),
        ({"dtype": "float32", "size": 0}, (64,)),
        ({"dtype": "float64", "width": 64}, (64, 32)),
        ({"columns": 3}, (32,)),
    ):
        assert item_widths(sort_of(**given)) == widths, given
    assert items_bytes(10, (64, 32)) == 120 and MOST_ITEMS == 0xFFFFFFFF
    for dtype, width, known, reversible in (
        ("int8", 8, True, True),
        ("uint64", 64, True, True),
        ("float16", 16, True, False),
        ("bfloat16", 16, True, False),
    ):
        assert (Key(dtype, width, False).is_known, Key(dtype, width, False).is_reversible) == (known, reversible)
    assert not Key("bool", 1, False).is_known and not Key("int4", 4, False).is_known and not Key("float8_e5m2", 8, False).is_known


def test_exchanges_sort_every_order():
    for count in range(8):
        for order in permutations(range(count)):
            found = list(order)
            for a, b in exchanges(count):
                assert 0 <= a < b < count
                if found[a] > found[b]:
                    found[a], found[b] = found[b], found[a]
            assert found == sorted(order)


def test_lines_of_more_items_than_places_have_bits_for_are_left_to_others(monkeypatch):
    monkeypatch.setattr(sorts, "_numbers", lambda *_: pytest.fail("this one is sorted"))
    for given, is_taken in (({"size": MOST_ITEMS}, True), ({"size": MOST_ITEMS + 1}, False), ({"dtype": "bool", "width": 1}, False)):
        monkeypatch.setattr(sorts, "match", lambda kernel, given=given: sort_of(**given))
        with pytest.raises(pytest.fail.Exception, match="this one is sorted") if is_taken else nullcontext():
            assert sorts.schedule_sort(None, TARGET, None) is None


def test_numbers_of_sorts():
    """Blocks of two warps to 1024 threads, as many items as 48 KiB have room for, and as few parts as one block sorts in the end."""
    wide, narrow = sort_of(dtype="float64", width=64), sort_of(dtype="int16", width=16)
    for sort, wanted, found in (
        (narrow, (256, 11, 1), (256, 11, 1)),
        (narrow, (1, 11, 1), (64, 11, 1)),
        (narrow, (9999, 15, 1), (1024, 11, 1)),  # 48 KiB / 4 - 32 are 12256 items
        (wide, (256, 15, 1), (256, 15, 1)),
        (wide, (256, 16, 1), (256, 15, 1)),  # 48 KiB / 12 - 32 are 4064
        (wide, (511, 99, 1), (256, 15, 1)),
        (sort_of(count=10), (64, 3, 99), (64, 3, 19)),  # 192 items
        (sort_of(count=128), (64, 3, 2), (64, 3, 1)),
        (sort_of(count=129), (64, 3, 2), (64, 3, 1)),
        (sort_of(count=10, columns=3), (64, 3, 5), (64, 3, 1)),
        (sort_of(count=N), (64, 3, 5), (64, 3, 1)),
    ):
        assert sorts._possible(sort, sorts.Numbers(*wanted)) == sorts.Numbers(*found), (wanted, found)
    assert [most_count(Shape(64, items)) for items in (1, 2, 3, 4, 5)] == [0, 64, 128, 128, 192]
    numbers = sorts.Numbers(64, 3)
    assert [sorts._selected(sort_of(count=n), numbers) for n in (1, 128, 129)] == [1, 128, None]


def test_parts_of_lines_that_blocks_share():
    """Two blocks for each of ten multiprocessors, four tiles of 192 items for each part at least."""
    numbers = sorts.Numbers(64, 3)
    for lines, size, count, parts in (
        (1, 1 << 20, 5, 20),
        (3, 1 << 20, 5, 7),
        (20, 1 << 20, 5, 1),
        (19, 1 << 20, 5, 2),
        (0, 1 << 20, 5, 20),
        (1, 2 * 768 - 1, 5, 1),
        (1, 2 * 768, 5, 2),
        (1, 1 << 20, 64, 3),
        (1, 1 << 20, 200, 1),
    ):
        assert sorts._parts(sort_of(size, lines, count), TARGET, numbers) == parts, (lines, size, count)


def test_plans_of_sorts():
    """In a block, by selection where a few are wanted, by tiles; the memory of what blocks leave to others."""
    numbers = sorts.Numbers(64, 3, 4)
    plan = lambda **given: sorts._Plan(sort_of(**given), TARGET, numbers)  # noqa: E731 (for several uses)
    short = plan(size=192)
    assert short.selection is short.tiles is None and short.workspace_bytes == 0
    few = plan(size=193, count=10, lines=3)
    assert few.tiles is None and few.selection == Selection(3, 193, 10, Shape(64, 3), 4) and few.workspace_bytes == 3 * 4 * 10 * 8
    assert sorts._Plan(sort_of(193, count=10), TARGET, replace(numbers, parts=1)).workspace_bytes == 0
    long = plan(size=193, lines=3)
    assert long.selection is None and long.tiles == LineTiles(3, 193, Shape(64, 3)) and long.workspace_bytes == 2 * 3 * 2 * 192 * 8
    assert LineTiles(3, 384, Shape(64, 3)).count == 2 and LineTiles(3, 385, Shape(64, 3)).count == 3
    assert few.selection.met == 1 and replace(few.selection, shape=Shape(64, 8)).met == 4
    assert [(size, short._fitting(size)) for size in (0, 1, 3, 6, 7, 12, 13, 96, 97, 192)] == [
        *((0, Shape(2, 1)), (1, Shape(2, 1)), (3, Shape(2, 3)), (6, Shape(2, 3)), (7, Shape(4, 3)), (12, Shape(4, 3))),
        *((13, Shape(8, 3)), (96, Shape(32, 3)), (97, Shape(64, 3)), (192, Shape(64, 3))),
    ]
    assert short._fitting(5) == Shape(2, 3) and sorts._Plan(sort_of(9), TARGET, sorts.Numbers(64, 9))._fitting(9) == Shape(2, 5)
    # Lines of a block: those that its threads have room for, fewer where lines are too few for 20 blocks, but a warp at least.
    for lines, threads, together in (
        (640, 2, 32),
        (639, 2, 16),
        (320, 2, 16),
        (1, 2, 16),
        (1, 16, 2),
        (1, 32, 1),
        (80, 16, 4),
        (79, 16, 2),
        (9999, 64, 1),
    ):
        assert plan(size=9, lines=lines)._together(Shape(threads, 3)) == Shape(threads, 3, together), (lines, threads)


# ---- windows


def axis(outputs, taps, stride=1, dilation=1, low=0, size=None):
    output, tap = (Var(0, n - 1) if n != 1 else None for n in (outputs, taps))
    return WindowAxis(output, tap, stride, dilation, low, outputs * stride if size is None else size)


def test_windows_that_exceed_their_input_are_padded():
    for low, size, is_padded in ((0, 10, False), (0, 9, True), (1, 9, True), (1, 20, True), (0, 11, False)):
        assert axis(8, 3, low=low, size=size).is_padded == is_padded, (low, size)
    assert axis(8, 3, size=N + 9).is_padded and not axis(8, 3, size=N + 10).is_padded


def test_taps_of_a_window_are_a_number():
    assert axis(8, 3).taps == 3 and axis(8, 1).taps == 1
    with pytest.raises(NotStructured, match="expected a number, found n"):
        axis(8, N).taps  # noqa: B018


def window(rows, columns, bits=(32, 32, 32), channels=None, size=1 << 30):
    node, data, root = (SimpleNamespace(element=SimpleNamespace(width=n), size=size) for n in bits)
    channel = None if channels is None else Var(0, channels - 1)
    known = {"node": node, "data": data, "root": root, "rows": rows, "columns": columns, "channel": channel}
    if channels is None:
        return SimpleNamespace(**known)
    found = object.__new__(ChannelWindow)
    found.__dict__.update(known)
    return found


def test_lanes_of_windows():
    """16 bytes of the wider of input and result, so many that they divide the channels; of columns one."""
    one = axis(8, 3)
    for channels, bits, most, lanes in (
        (64, (32, 32, 32), 16, 4),
        (64, (32, 16, 16), 16, 8),
        (64, (32, 8, 8), 16, 16),
        (64, (32, 8, 16), 16, 8),
        (64, (32, 16, 32), 16, 4),
        (64, (32, 4, 1), 16, 16),
        (24, (32, 8, 8), 16, 8),
        (7, (32, 8, 8), 16, 1),
        (64, (32, 8, 8), 15, 8),
        (64, (32, 8, 8), 8, 8),
        (64, (32, 8, 8), 1, 1),
        (None, (32, 8, 8), 16, 1),
    ):
        found = window(one, one, bits, channels)
        assert windows._lanes(found, most) == lanes, (channels, bits, most)
        rows = 2 if 9 * 2 * 3 * lanes <= 512 else 1  # taps run in a loop over their rows
        assert windows._possible(windows.Numbers(100, most, 2, 3), found) == windows.Numbers(64, lanes, rows, 3)
    assert windows._possible(windows.Numbers(1, 1, 1, 1), window(one, one)).threads == 32
    assert windows._possible(windows.Numbers(5000, 1, 1, 1), window(one, one)).threads == 1024


def test_outputs_of_a_thread():
    """So many that threads read the fewest elements, where there are 512 of them for each multiprocessor: 5120."""
    wide = 1 << 30
    for outputs, taps, stride, size, count in (
        (64, 3, 1, wide, 4),  # 6 elements for 4 outputs, where one output takes 3
        (64, 1, 1, wide, 1),
        (64, 3, 2, wide, 4),
        (64, 3, 3, wide, 1),
        (64, 2, 3, wide, 1),
        (2, 3, 1, wide, 2),
        (3, 3, 1, wide, 3),
        (5, 3, 1, wide, 3),  # two threads of 5 elements, and not of 6
        (6, 3, 1, wide, 3),
        (1, 3, 1, wide, 1),
        (64, 3, 1, 64 * 319, 3),
        (64, 3, 1, 64 * 160, 2),
        (64, 3, 1, 64 * 160 - 64, 1),
        (64, 3, 1, 64 * 320, 4),
        (64, 3, 1, 64 * 233, 3),  # 22 threads of three outputs make 5126 of 233 lines
        (64, 3, 1, 64 * 232, 2),
    ):
        several, one = axis(outputs, taps, stride), axis(64, 3)
        by_rows = windows._numbers(window(several, one, size=size), TARGET)
        by_columns = windows._numbers(window(one, several, channels=4, size=4 * size), TARGET)
        assert (by_rows.threads, by_rows.lanes, by_rows.columns) == (256, 1, 1) and by_rows.rows == count, (outputs, taps, stride, size)
        assert (by_columns.lanes, by_columns.rows) == (4, 1) and by_columns.columns == count


def test_taps_are_in_a_loop_where_they_are_many():
    """More than 512 elements of products of a thread, of several rows of taps: then it has one row of outputs."""
    for rows, columns, outputs, is_loop, kept in ((8, 8, (4, 1, 2), False, 4), (8, 8, (4, 3, 1), True, 1), (1, 64, (4, 4, 1), True, 1)):
        several = window(axis(8, rows), axis(8, columns), channels=outputs[2])
        numbers = windows.Numbers(32, outputs[2], *outputs[:2])
        assert windows._loops_over_taps(numbers, several) == is_loop
        assert windows._possible(numbers, several) == replace(numbers, rows=kept)


# ---- transposes


@pytest.fixture
def context():
    with make_context(), ir.Location.unknown():
        yield


def move(across, along, element, staged=None, factors=(1,), constant=0):
    """A result whose operand is contiguous along another loop, of which the loop of the result is `factors` apart."""
    first, last = (Var(0, n - 1) for n in (across, along))
    loops = [MergedLoop([v], n) for v, n in ((first, across), (last, along))]
    reads = [(None, Index.of(first) + Index.of(last) * across * factor + constant) for factor in factors]
    offset = Index.of(first) * along + Index.of(last)
    return SimpleNamespace(
        across=loops[0],
        along=loops[1],
        reads=reads,
        offset=offset,
        staged=[element] if staged is None else staged,
        node=SimpleNamespace(element=element),
    )


def test_tiles_of_transposes(context):
    """Squares of vectors, 16 along each loop at most; without vectors 32 elements, or all of a short loop and more of the other one."""
    f32, f16, i8, i1 = (ir.Type.parse(name) for name in ("f32", "f16", "i8", "i1"))
    for case, lanes, across, along, threads in (
        (move(64, 64, f32), 4, 16, 16, 256),
        (move(64, 64, f16), 8, 8, 8, 64),
        (move(128, 256, f16), 8, 16, 16, 256),
        (move(64, 64, i8), 8, 8, 8, 64),  # as many vectors as a vector has lanes, eight at most
        (move(64, 66, f32), 2, 16, 16, 256),
        (move(66, 64, f32), 2, 16, 16, 256),
        (move(63, 64, f32), 1, 32, 32, 256),
        (move(4, 4, f32), 4, 1, 32, 32),
        (move(3, 3, f32), 1, 3, 32, 32),
        (move(64, 64, f32, constant=2), 2, 16, 16, 256),
        (move(64, 64, f32, constant=1), 1, 32, 32, 256),
        (move(8, 64, f32), 4, 2, 16, 32),
        (move(4, 1024, f32), 4, 1, 32, 32),
        (move(1024, 4, f32), 4, 32, 1, 32),
        (move(12, 1024, f32), 4, 4, 16, 64),
        (move(17, 64, f32), 1, 32, 32, 256),
        (move(16, 65, f32), 1, 16, 128, 256),
        (move(65, 16, f32), 1, 128, 16, 256),
        (move(3, 1001, f32), 1, 3, 256, 256),
        (move(3, 100, f32), 1, 3, 128, 128),
        (move(3, 9, f32), 1, 3, 32, 32),
        (move(1001, 3, f32), 1, 256, 3, 256),
        (move(64, 64, f16, staged=[f16, f32]), 4, 16, 16, 256),
        (move(64, N, f32), 1, 32, 32, 256),
    ):
        found = transpose.tile_of(case, transpose.Numbers())
        assert (found.lanes, found.across, found.along, found.threads) == (lanes, across, along, threads), (case.across, case.along)
        assert found.pitch >= along
    assert transpose.tile_of(move(64, 64, f32), transpose.Numbers(32, 8)).lanes == 2
    assert transpose.tile_of(move(64, 64, f32), transpose.Numbers(32, 1)) == transpose.TransposeTile(1, 32, 32, 32, 33)
    assert transpose.tile_of(move(64, 64, i1), transpose.Numbers(1024, 4)).lanes == 4
    assert transpose._possible(transpose.Numbers(33, 17)) == transpose.Numbers(32, 16)
    assert transpose._possible(transpose.Numbers(1, 0)) == transpose.Numbers(32, 1)
    assert transpose._possible(transpose.Numbers(2000, 3)) == transpose.Numbers(1024, 2)


def test_conflicts_at_banks():
    """Threads that write lines of one word at one bank, and read them side by side; vectors of 16 bytes go eight at a time."""
    for across, along, vector, pitch, total in (
        (32, 32, 4, 32, 32 + 1),
        (32, 32, 4, 33, 2),
        (32, 32, 2, 32, 16 + 1),
        (32, 32, 1, 32, 8 + 1),
        (16, 16, 8, 16, 2 * 16 + 2),
        (16, 16, 8, 17, 2 + 2),
        (8, 8, 16, 8, 4 * 8 + 4),
        (8, 8, 16, 9, 8),
    ):
        assert transpose._conflicts(across, along, vector, pitch) == total, (across, along, vector, pitch)


def test_reads_across_memory():
    i, j, k = (Var(0, 9) for _ in range(3))
    at = lambda **factors: Index(0, {{"i": i, "j": j, "k": k}[name]: factor for name, factor in factors.items()})  # noqa: E731
    for offset, across, stays in (
        (at(i=1, j=10), True, False),
        (at(i=1, j=-10), True, False),
        (at(i=1), False, False),
        (at(i=2, j=10), False, False),
        (at(i=10, j=1), False, True),
        (at(i=10, j=-1), False, True),
        (at(j=1), False, False),
        (at(i=1, j=1), False, True),
        (at(k=1, j=2), False, False),
    ):
        accesses = SimpleNamespace(offsets=[("node", offset)], bounds=set(), irregular=set())
        assert transpose._is_across(offset, i, j) == across
        assert transpose._operands(accesses, ["read"], i, j) == (["read"] if stays else [])
        for guarded in ({"bounds": {1}}, {"irregular": {1}}):
            assert transpose._operands(SimpleNamespace(**{**vars(accesses), **guarded}), ["read"], i, j) == []


@pytest.mark.parametrize(("reads", "position"), [("ij", 0), ("ji", 0), ("ijj", 1), ("jji", 1), ("iij", 0), ("kk", None)])
def test_the_loop_that_most_operands_lie_along(reads, position):
    """Each operand of a result [i, j, k] lies along one of its loops; the first loop of those with as many."""
    operands = [te.placeholder({"i": (6, 7, 5), "j": (5, 7, 6), "k": (5, 6, 7)}[loop], name=f"X{n}") for n, loop in enumerate(reads)]
    places = {"i": lambda i, j, k: (j, k, i), "j": lambda i, j, k: (i, k, j), "k": lambda i, j, k: (i, j, k)}
    read = list(zip(operands, reads, strict=True))
    total = te.compute((5, 6, 7), lambda *at: sum(x[places[loop](*at)] for x, loop in read), name="Y")
    mod = te.create_prim_func([*operands, total])
    with mod.context, ir.Location.unknown():
        kernel = read_kernel(mod.module.body.operations[0])
        found = transpose.move_of(kernel.results[0], kernel.args)
        assert (found and found.position) == position
        assert found is None or len(found.reads) == reads.count("ij"[found.position])


# ---- reductions


def test_threads_of_a_row(monkeypatch):
    """As the longest reduction of a launch asks for: one for fewer steps than a warp has, or where the steps do not lie together."""
    monkeypatch.setattr(general, "_is_simple", lambda block: block.is_simple)
    monkeypatch.setattr(general._Writer, "_is_along_memory", lambda writer, block: block.is_along)

    def block(steps, is_reduction=True, is_along=True, is_simple=True):
        return SimpleNamespace(extents=[99, steps, 2], reduction=[1, 2], is_reduction=is_reduction, is_along=is_along, is_simple=is_simple)

    for own, other, threads in (
        (block(16), block(4), 32),
        (block(4), block(16), 32),
        (block(15), block(15), 1),
        (block(512), block(512), 32),
        (block(16), block(513), 256),
        (block(16), block(16, is_along=False), 1),
        (block(16, is_simple=False), block(16), 1),
        (block(15), block(600, is_reduction=False), 1),
        (block(16, False), block(16, False, False, False), 1),
    ):
        schedule = SimpleNamespace(nest=SimpleNamespace(blocks=lambda other=other: {"other": other}))
        assert general._Writer(schedule, general.Numbers())._shared_by(own, ["other"]) == threads


def row_sums(rows, steps, dtype="float32"):
    x, k = te.placeholder((rows, steps), dtype, name="X"), te.reduce_axis((0, steps), "k")
    return [x, te.compute((rows,), lambda i: te.sum(x[i, k], axis=k), name="S")]


def squares(*shape, dtype="float32", to=None):
    x = te.placeholder(shape, dtype, name="X")
    return [x, te.compute(shape, lambda *at: (x[at] * x[at]).astype(to or dtype), name="Y")]


def weighted_sums(rows, columns, steps, turned):
    """Of rows by weights that lie along the steps or across them."""
    x, k = te.placeholder((rows, steps), name="X"), te.reduce_axis((0, steps), "k")
    w = te.placeholder((steps, columns) if turned else (columns, 2 * steps), name="W")
    weight = (lambda j: w[k, j]) if turned else (lambda j: w[j, 2 * k])
    return [x, w, te.compute((rows, columns), lambda i, j: te.sum(x[i, k] * weight(j), axis=k), name="S")]


@pytest.mark.parametrize(
    ("tensors", "numbers", "loops"),
    [
        # A warp for each row, as many of them in a block as there are threads and rows.
        (row_sums(5, 31), {}, "1 x, 256 x, 31"),
        (row_sums(5, 32), {}, "1 x, 8 y, 1, 32 x"),
        (row_sums(5, 127), {}, "1 x, 8 y, 4, 32 x"),
        (row_sums(5, 128), {}, "1 x, 8 y, 1, 32 x, 4 v"),
        (row_sums(5, 124), {}, "1 x, 8 y, 4, 32 x"),  # vectors for less than a warp
        (row_sums(5, 1024), {}, "1 x, 8 y, 8, 32 x, 4 v"),
        (row_sums(5, 1028), {}, "5 x, 1 y, 2, 256 x, 4 v"),
        (row_sums(5, 1025), {"threads": 64}, "5 x, 1 y, 17, 64 x"),
        (row_sums(1, 64), {}, "1 x, 1 y, 2, 32 x"),
        (row_sums(3, 64), {}, "1 x, 4 y, 2, 32 x"),
        (row_sums(4, 64), {}, "1 x, 4 y, 2, 32 x"),
        (row_sums(17, 64), {}, "3 x, 8 y, 2, 32 x"),
        # Neighbouring elements of a row of weights are what neighbouring threads read; of one operand the steps lie together.
        (weighted_sums(3, 7, 32, True), {}, "1 x, 256 x, 32"),
        (weighted_sums(3, 7, 32, False), {}, "3 x, 8 y, 1, 32 x"),
        # Vectors of 16 bytes of the wider element, where they divide the last loop.
        (squares(8, 260), {}, "3 x, 256 x, 4 v"),
        (squares(2, 2), {}, "1 x, 256 x"),
        (squares(7, 3), {}, "1 x, 256 x"),
        (squares(8, 4), {"vector_bytes": 8}, "1 x, 256 x, 2 v"),
        (squares(8, 4), {"vector_bytes": 4}, "1 x, 256 x"),
        (squares(8, 4, dtype="float64"), {}, "1 x, 256 x, 2 v"),
        (squares(8, 16, dtype="float16"), {}, "1 x, 256 x, 8 v"),
        (squares(8, 16, dtype="float16", to="float32"), {}, "1 x, 256 x, 4 v"),
        (squares(8, 16, dtype="float32", to="float16"), {}, "1 x, 256 x, 4 v"),
    ],
)
def test_loops_of_a_kernel(tensors, numbers, loops):
    """Extents, and which are blocks and threads along x and y, and vectors."""
    schedule = Schedule(te.create_prim_func(tensors))
    with schedule.mod.context, ir.Location.unknown():
        general._Writer(schedule, replace(general.Numbers(), **numbers)).write()
    kinds = {"serial": "", "vectorized": " v"}
    assert ", ".join(f"{loop.extent}{kinds.get(loop.kind, f' {loop.kind[-1]}')}" for loop in schedule.nest.loops().values()) == loops


# ---- attention


def test_values_of_a_search_of_attentions(monkeypatch):
    monkeypatch.setattr(flash, "fitted", lambda attention, p, shared_bytes: p)
    monkeypatch.setattr(flash, "BlockAttention", lambda attention, p: p)
    tuning = Tuning({"flash.keys": 64}, asks_values=True)
    tuning.begin("flash")
    assert flash._blocks(None, SimpleNamespace(l1_bytes=0), tuning) == replace(flash.BLOCKS, keys=64)
    assert tuning.values == {"warps": (1, 2, 4, 8), "rows": (1, 2, 4, 8, 16), "keys": (32, 64, 128)}


def test_blocks_have_fewer_keys_and_then_fewer_rows_where_they_do_not_fit(monkeypatch):
    monkeypatch.setattr(blocks, "BlockAttention", lambda attention, p: SimpleNamespace(shared_bytes=1000 * p.rows + p.keys))
    for room, found in {3064: (3, 64), 3063: (3, 32), 3032: (3, 32), 3031: (2, 32), 1032: (1, 32)}.items():
        assert blocks.fitted(None, blocks.BlockParameters(4, 3, 40), room) == blocks.BlockParameters(4, *found), room
    with pytest.raises(NotStructured, match="heads of 99 elements, whose blocks do not fit in 1031 bytes"):
        blocks.fitted(SimpleNamespace(depth=99), blocks.BlockParameters(4, 3, 40), 1031)


def test_shared_memory_of_attentions():
    """Of stages of 1000 bytes; queries that registers do not keep are 16 bytes for each thread, of each tile of rows and each step."""
    for keeps, num_bytes in ((True, 3000), (False, 3000 + 2 * 5 * 128 * 16)):
        blocks = object.__new__(TensorBlocks)
        blocks.__dict__.update(keeps_queries=keeps, stage_bytes=1000, p=SimpleNamespace(stages=3), row_tiles=2, steps=5, threads=128)
        assert blocks.shared_bytes == num_bytes


# ---- products


@pytest.mark.parametrize(
    ("types", "casts", "sums", "found"),
    [
        (("f32", "f32"), ((), ()), "f32", ("tf32", "tf32", 32)),
        (("f16", "f16"), ("extf f32", "extf f32"), "f32", ("f16", "f16", 16)),
        (("bf16", "bf16"), ("extf f32", "extf f32"), "f32", ("bf16", "bf16", 16)),
        (("f16", "bf16"), ("extf f32", "extf f32"), "f32", None),
        (("f8E5M2", "f8E5M2"), ("extf f32", "extf f32"), "f32", None),
        (("f16", "f16"), ("extf f64", "extf f32"), "f32", None),
        (("f16", "f16"), ("extf f32", ()), "f32", None),
        (("f16", "f16"), ((), ()), "f16", None),
        (("i8", "i8"), ("extsi i32", "extui i32"), "i32", ("s8", "u8", 8)),
        (("i8", "i8"), ("extui i32", "extsi i32"), "i32", ("u8", "s8", 8)),
        (("i8", "i8"), ("extsi i64", "extsi i64"), "i64", None),
        (("i16", "i16"), ("extsi i32", "extsi i32"), "i32", None),
        (("i8", "i16"), ("extsi i32", "extsi i32"), "i32", None),
    ],
)
def test_instructions_of_products(types, casts, sums, found):
    """Of f32 only where it may be rounded to tf32."""
    a, b = (
        SimpleNamespace(node=SimpleNamespace(element=type_), casts=[(f"arith.{chain.split()[0]}", chain.split()[1])] if chain else [])
        for type_, chain in zip(types, casts, strict=True)
    )
    product = SimpleNamespace(a=a, b=b, node=SimpleNamespace(element=sums))
    assert strategy.instruction_of(product, True) == (found and Instruction(*found, sums))
    assert strategy.instruction_of(product, False) == (None if types[0] == "f32" else found and Instruction(*found, sums))


def test_registers_that_copies_of_operands_take():
    """Of 64 rows and 32 columns by 16 elements, eight and four elements for each thread of four warps."""

    def way(copied=0, in_runs=True, **more):
        return SimpleNamespace(copied=copied, lies_in_runs=lambda problem: in_runs, **more)

    tile = BlockTile(64, 32, 16, 32, 16, 2)
    checked = SimpleNamespace(checks=[0, 1], indices=[0, 1, 2])
    for case, rows, columns in (
        (way(16, run=8, operand=checked), 0, 0),
        (way(8, run=4, operand=checked), 2 * 3, 1 * 3),
        (way(4, run=2, operand=checked), 4 * 3, 2 * 3),
        (way(element_bytes=2), 4, 2),
        (way(element_bytes=1), 2, 1),
        (way(in_runs=False, element_bytes=2, operand=checked), 2 * 8 + 8 * 3, 2 * 4 + 8 * 3),
        (way(in_runs=False, element_bytes=4, operand=checked), 2 * 8 + 4 * 3, 2 * 4 + 4 * 3),
    ):
        none = way(16)
        assert strategy._of_copies(None, [case, none], tile, 32) == rows
        assert strategy._of_copies(None, [none, case], tile, 32) == columns
        assert strategy._of_copies(None, [case, case], tile, 32) == rows + columns


def test_tiles_of_few_warps_that_are_not_long_and_thin():
    for sizes, is_sensible in (
        ((64, 64, 64, 64), True),
        ((128, 64, 32, 32), True),
        ((128, 128, 32, 32), False),
        ((64, 64, 64, 16), True),
        ((64, 64, 64, 8), False),
        ((64, 64, 16, 64), True),
        ((64, 64, 8, 64), False),
        ((16, 64, 32, 32), False),
    ):
        assert strategy._is_sensible(*sizes) is is_sensible, sizes
