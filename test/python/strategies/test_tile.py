"""The numbers that the model of a core chooses for products, for caches of known sizes."""

import itertools
import operator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from oracle import values
from support import Const, program

from relayc.dialects.mlir import ir, make_context
from relayc.dialects.relay import build
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cpu.strategies.attention import kernel, parameters
from relayc.pipelines.targets.cpu.strategies.attention.columns import ColumnAttention
from relayc.pipelines.targets.cpu.strategies.attention.rows import _row_loops
from relayc.pipelines.targets.cpu.strategies.attention.strips import EvenStrips, OverlappingStrips, SingleStrips
from relayc.pipelines.targets.cpu.strategies.contraction import inner_products, strategy
from relayc.pipelines.targets.cpu.strategies.contraction.cover import Heights
from relayc.pipelines.targets.cpu.strategies.contraction.inner_products import InnerParameters, _fitted
from relayc.pipelines.targets.cpu.strategies.contraction.padded import PaddedNest, fewest_tasks
from relayc.pipelines.targets.cpu.strategies.contraction.plan import (
    FEWEST_PANELS,
    OperandSource,
    is_far,
    is_read_by_rows,
    source_of_a,
    source_of_b,
    waits_for_panel,
)
from relayc.pipelines.targets.cpu.strategies.contraction.strategy import _long_rows
from relayc.pipelines.targets.cpu.strategies.contraction.strips import RowCover, _touched
from relayc.pipelines.targets.cpu.strategies.contraction.tasks import TaskNest
from relayc.pipelines.targets.cpu.strategies.contraction.tile import (
    NO_WAITS,
    RegisterTile,
    column_vectors,
    cycles,
    default_tile,
    lanes_of,
    panel_fits,
    sets_of_sums,
    stream_waits,
    typical_rows,
)
from relayc.pipelines.te.read.attention import QUERY, QUERY_HEAD
from relayc.pipelines.te.read.graph import NotStructured
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Range, Ranges, evaluate, minimum, symbol

CORE = Target("cpu", mcpu="x86-64-v4", num_threads=1, l1_bytes=48 << 10, l2_bytes=2 << 20)


def numbers_of(module: IRModule) -> dict[str, int]:
    """What the schedule of a contraction is made of."""
    (kernel,) = compile(module, target=CORE, stop_after="tir").kernels
    strategy, *words = kernel.schedule.split()
    assert strategy == "contraction"
    return {name: int(value) for name, value in (word.split("=") for word in words)}


def numbers(rows: int, depth: int, columns: int) -> dict[str, int]:
    """As `numbers_of`, of a product with constant weights."""
    arrays = [values((rows, depth)), Const(values((columns, depth), seed=1))]
    return numbers_of(program(lambda x, w: [build("nn.dense", x, w)], arrays))


@pytest.mark.parametrize("rows", [1, 2, 3, 8, 14])
def test_few_rows_read_large_weights_once(rows):
    """One tile holds all rows: a second one would wait for the weights again."""
    found = numbers(rows, 3072, 768)
    assert (found["rows"], found["block_tiles"]) == (rows, 1)


def test_small_weights_may_be_read_again():
    """A panel that stays in the first-level cache is read as often as the tile with the fewest cycles has it."""
    assert numbers(8, 64, 96)["block_tiles"] == 2


@pytest.mark.parametrize("rows", [128, 197, 1500])
def test_many_rows_have_the_tile_with_the_fewest_cycles(rows):
    found = numbers(rows, 768, 768)
    assert found["rows"] * found["vectors"] == 24


@pytest.mark.parametrize(("rows", "columns"), [(100, 768), (170, 768), (171, 768), (255, 64), (256, 64), (1500, 768)])
def test_chunks_stay_in_the_first_level_cache_if_the_sums_are_few(rows, columns):
    """The panel, of 192 KiB or more, does not stay there as a whole; with many sums it stays in the second-level cache."""
    found = numbers(rows, 768, columns)
    step = found["vectors"] * 64
    if -(-rows // found["rows"]) * found["rows"] * step <= 64 << 10:
        assert 24 << 10 < found["chunk"] * step <= 36 << 10 and 768 % found["chunk"] == 0
    else:
        assert found["chunk"] == 768
    assert found["block_panels"] == 1 and found["block_tiles"] == -(-rows // found["rows"])


def convolution_numbers(channels: int, filters: int, size: int, block: int = 16) -> dict[str, int]:
    """As `numbers_of`, of a strided convolution whose padding bounds the rows, with channels in blocks."""
    data = values((1, channels // block, size, size, block))
    weight = Const(values((filters, channels, 3, 3), seed=1))
    attributes = {"strides": (2, 2), "padding": (1, 1, 1, 1), "data_layout": f"NCHW{block}c"}
    return numbers_of(program(lambda x, w: [build("nn.conv2d", x, w, **attributes)], [data, weight]))


def test_the_lines_of_a_padded_image_share_chunks():
    """All taps of a block of channels are a chunk for all 49 pixels of the result; blocks of rows of larger images have few sums."""
    small, large = convolution_numbers(512, 512, 14), convolution_numbers(256, 256, 112)
    assert (small["chunk"], small["block_panels"], small["block_tiles"]) == (1, 1, -(-49 // small["rows"]))
    assert large["chunk"] == 1 and large["block_tiles"] * large["rows"] * large["vectors"] * 64 <= 64 << 10


def test_a_padded_image_is_not_copied_for_few_filters():
    """Writing the copy would take a large part of the time."""
    assert "chunk" not in convolution_numbers(512, 64, 14)


def test_chunks_of_deep_panels_stay_in_the_second_level_cache():
    """Half of it holds 4,096 steps of 64 columns; the rows of a task are all that there are, as long as their sums have room."""
    found = numbers(1500, 10000, 768)
    assert (found["vectors"], found["chunk"], found["block_panels"]) == (4, 3334, 1)
    assert found["block_tiles"] == -(-1500 // found["rows"])


def contraction(rows, depth, columns):
    """What the choice of a tile reads of a product of f32, whose rows are two loops that can be one."""
    a, f32 = SimpleNamespace(checks=[], node=SimpleNamespace(kind="arg")), SimpleNamespace(element=SimpleNamespace(width=32))
    extents = {"row_extent": rows, "column_extent": columns, "depth": depth}
    return SimpleNamespace(**extents, a=a, b=SimpleNamespace(node=f32), node=f32, rows=["i", "j"], with_one_row_loop=lambda: "one loop")


@pytest.mark.parametrize(("depth", "height"), [(8191, 16), (8192, 16), (8193, 8)])
def test_panels_have_a_quarter_of_the_second_level_cache(depth, height):
    """Two high tiles read a panel of 16 columns from there; a deeper one would come from further, and goes by in chunks for four."""
    assert default_tile(contraction(32, depth, 16), CORE) == RegisterTile(height, 1, 16)


def test_rows_of_several_loops_are_one_where_eight_panels_read_them():
    kernel = SimpleNamespace(function=SimpleNamespace(attributes={}))
    for columns, is_joined in ((304, False), (336, False), (368, True), (384, True)):
        given = contraction(7, 4096, columns)
        panels = -(-columns // default_tile(given, CORE).width)
        assert (panels >= FEWEST_PANELS) is is_joined and panels in (FEWEST_PANELS - 1, FEWEST_PANELS)
        assert (_long_rows(given, kernel, CORE) == "one loop") is is_joined


@pytest.mark.parametrize(("wait", "tiles"), [(0.0, {2: 2}), (4.0, {4: 1})])
def test_a_tile_of_just_the_rows_waits_less_than_two(wait, tiles):
    """One of four rows and two vectors has a sum for each element, two of two rows have three and are faster, but for what both wait."""
    heights = Heights((5, 4, 2), 2, False, (wait,) * len(NO_WAITS))
    assert {height: count for height, count in heights.counts()[4].items() if count} == tiles
    one, *two = cycles(4, 2, wait=wait), cycles(2, 2, 3, wait), cycles(2, 2, 3)
    assert heights.cost(4) == min(one, sum(two))


@pytest.mark.parametrize("masks", [False, True])
def test_vectors_cover_columns(masks: bool) -> None:
    """All but the last ones are whole vectors; a mask makes those one, the narrowest that has room."""
    for columns in range(1, 40):
        found = column_vectors(columns, 8, masks)
        starts, lanes = zip(*found, strict=True)
        assert list(starts) == [sum(lanes[:i]) for i in range(len(lanes))] and lanes[: columns // 8] == (8,) * (columns // 8)
        rest = lanes[columns // 8 :]
        wanted = {1: (1,), 2: (2,), 3: (4,), 4: (4,), 5: (8,), 6: (8,), 7: (8,), 0: ()} if masks else {}
        assert rest == wanted.get(columns % 8, tuple(n for n in (4, 2, 1) if columns & n))


def test_rows_of_a_call_are_taken_to_be_many() -> None:
    """64 at least, but no more than there can be."""
    n = symbol("n")
    rows = [5, n, minimum(n, 5), minimum(n, 65), n // 100, minimum(n // 100, 63)]
    assert [typical_rows(contraction(extent, 1, 1)) for extent in rows] == [5, 128, 5, 65, 64, 63]


def test_numbers_of_a_core() -> None:
    """Twelve vectors of sums are in flight, of which an element has four at most; a line or less comes as fast as a line."""
    assert [sets_of_sums(sums) for sums in (1, 3, 4, 5, 6, 7, 12, 13, 24)] == [4, 4, 3, 2, 2, 1, 1, 1, 1]
    assert stream_waits(32) == stream_waits(64) == tuple(wait / 2 for wait in stream_waits(128)) == (12.5, 11.5, 10.5, 9.5)
    given, tile = contraction(8, 288, 32), RegisterTile(8, 2, 16)
    assert lanes_of(given, CORE) == 16 and panel_fits(given, tile, CORE) and not panel_fits(contraction(8, 289, 32), tile, CORE)


@pytest.mark.parametrize("sizes", [(6, 4, 3, 1), (8, 5, 2), (9, 4, 2, 1), (5,)])
def test_tiles_of_the_rows_of_a_call_take_the_fewest_cycles(sizes: tuple[int, ...]) -> None:
    """Of all that cover them: three of each height at most, and whole tiles only where there are as many rows, or where they follow others;
    or one tile, whatever is beyond them."""
    for vectors, repeats, rows, alone in itertools.product((1, 2, 4), (False, True), range(sizes[0]), (True, False)):
        usable = [n for n in sizes if n <= rows or (repeats and n != sizes[0]) or not alone]
        cost = [cycles(n, vectors, sets_of_sums(n * vectors)) for n in usable]
        counts = itertools.product(range(4), repeat=len(usable))
        covering = [some for some in counts if sum(n * count for n, count in zip(usable, some, strict=True)) >= rows]
        expected = min((sum(map(operator.mul, some, cost)) for some in covering), default=float("inf"))
        if alone and rows:
            expected = min([expected, *(c for n, c in zip(usable, cost, strict=True) if n >= rows)])
        assert Heights(sizes, vectors, repeats)._best(rows, alone)[0] == pytest.approx(expected), (vectors, repeats, rows, alone)


def test_tiles_after_whole_ones_may_take_rows_again() -> None:
    """One row alone fits no tile of two. Of several tiles the highest waits, which has the most to do meanwhile."""
    heights = Heights((8, 5, 2), 2, False, (4.0,) * len(NO_WAITS))
    counts = heights.counts()
    assert not any(counts[1].values()) and counts[8 + 1] == {8: 0, 5: 0, 2: 1} and heights.most_left == 7
    assert counts[7] == {5: 1, 2: 1} and heights.cost(7) == cycles(5, 2) + cycles(2, 2, 3)


def test_strips_share_rows_between_both_ends() -> None:
    """Tiles as even as they can be: so many of one height before the whole ones, the others, which hold the rows behind, after them."""
    for low, high, rows, before, behind in itertools.product((1, 3), (3, 5), range(1, 30), (1, 2), (0, 1, 4)):
        tiles = -(-rows // high)
        heights = [rows // tiles + (i < rows % tiles) for i in range(tiles)]
        first = heights[0] if heights.count(heights[0]) >= before and rows % tiles else heights[-1]
        is_served = tiles > before and heights[-1] >= low and heights.count(first) >= before and rows - before * first >= behind
        ends: Any = SimpleNamespace(low=low, high=high)
        assert RowCover._serves(ends, rows, before, behind) == is_served, (low, high, rows, before, behind)


def padded(rows: int, *checks: tuple[Index, int], row: Var) -> Any:
    return SimpleNamespace(row_extent=rows, rows=[SimpleNamespace(var=row)], a=SimpleNamespace(checks=checks))


def test_rows_that_a_padding_touches() -> None:
    """Where an index of theirs is below 0 at some tap, or beyond the last one; there may be 64 at either end."""
    row, tap = Var.below(9), Var.below(3)
    index = Index(-1, {row: 1, tap: 1})
    assert _touched(padded(9, (index, 9), row=row)) == (1, 1) and _touched(padded(9, (index, 11), row=row)) == (1, 0)
    assert _touched(padded(9, (Index(-3, {row: 2, tap: 1}), 15), row=row)) == (2, 1)
    assert _touched(padded(9, (index, 9), (Index(-3, {row: 1}), 9), (Index(5), 2), row=row)) == (3, 1)
    assert _touched(padded(99, (Index(-64, {row: 1}), 99), row=row)) == (64, 0)
    for first, last in ((-65, 99), (0, 34)):
        with pytest.raises(NotStructured, match="a padding of many rows"):
            _touched(padded(99, (Index(first, {row: 1}), last), row=row))


def operands(columns: int, depth: int, rows: Any = 8, step: int = 1, row: int = 4096, batches: int = 1, element: int = 32) -> Any:
    """What the choice of places reads of a product of f32 by elements of other bits, whose A has so many elements from step to step and
    from row to row; B is contiguous along columns."""
    j, k, i = Var.below(columns), Var.below(depth), Var.below(8)
    a = SimpleNamespace(checks=[], node=SimpleNamespace(kind="arg", element=SimpleNamespace(width=32), inputs=[]))
    a.offset = Index(0, {k: step, i: row})
    b = SimpleNamespace(node=SimpleNamespace(kind="arg", element=SimpleNamespace(width=element)), offset=Index(0, {j: 1, k: columns}))
    extents = {"row_extent": rows, "column_extent": columns, "depth": depth, "batches": batches}
    loops = {"rows": [SimpleNamespace(var=i)], "columns": [j], "column": j, "reduction": [k], "row_loops": ()}
    node = SimpleNamespace(element=SimpleNamespace(width=32))
    return SimpleNamespace(**extents, **loops, a=a, b=b, node=node)


def test_operands_are_read_where_it_takes_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relayc.pipelines.targets.cpu.strategies.contraction.plan.is_repeated", lambda kernel: False)
    kernel: Any = SimpleNamespace(function=SimpleNamespace(attributes={}))
    tile = RegisterTile(8, 2, 16)
    # Beyond 2 MiB, where one tile has all rows.
    found = [is_read_by_rows(kernel, operands(512, depth), tile, rows, CORE) for depth, rows in ((1024, 8), (1025, 8), (1025, 9))]
    assert found == [False, True, False]
    # Steps of 1 KiB at most, for four tiles.
    sources = [source_of_b(kernel, operands(*sizes), tile, CORE) for sizes in ((256, 64, 32), (257, 64, 32), (257, 64, 24), (256, 289, 32))]
    assert sources == [OperandSource.MEMORY, OperandSource.COPY, OperandSource.MEMORY, OperandSource.COPY]
    # Rows of A that are read across, or begin in the same place of a page, for eight panels.
    wanted = [(256, 2, 1000, 32), (224, 2, 1000, 32), (256, 1, 1000, 32), (256, 1, 1024, 32), (256, 2, 1000, 16), (256, 2, 1000, 8)]
    copied = []
    for columns, step, row, width in wanted:
        given = operands(columns, 64, step=step, row=row)
        given.a.node.element.width = width
        copied.append(source_of_a(kernel, given, tile) is OperandSource.COPY)
    assert copied == [True, False, False, True, True, False]
    # Parameters of more than half of the second-level cache come from further.
    monkeypatch.setattr("relayc.pipelines.targets.cpu.strategies.contraction.plan.is_param", lambda kernel, node: True)
    assert [is_far(kernel, operands(256, depth), CORE) for depth in (1024, 1025)] == [False, True]


def test_a_panel_is_waited_for_where_it_comes_from_far() -> None:
    """A step of 64 bytes, a line, from beyond half of the first-level cache, or from further."""
    tile, given = RegisterTile(8, 1, 16), operands(16, 64)
    half = CORE.l1_bytes // 2
    for source, share, far, expected in (
        (OperandSource.PARAMETER, half, False, NO_WAITS),
        (OperandSource.PARAMETER, half + 1, False, (1.3,) * 4),
        (OperandSource.COPY, half + 1, False, NO_WAITS),
        (OperandSource.PARAMETER, 0, True, stream_waits(64)),
    ):
        assert waits_for_panel(given, tile, source, share, CORE, far) == expected


def test_parameters_of_inner_products_are_those_that_fit() -> None:
    """Sums and columns of a tile within what registers have, and blocks of a whole tile."""
    default = InnerParameters(16, 8, 64)
    assert _fitted(InnerParameters(99, 99, 4), default) == InnerParameters(16, 8, 8)
    assert _fitted(InnerParameters(2, 3, 40), default) == InnerParameters(2, 3, 40)
    assert InnerParameters(16, 8, 64).heights(20) == [7, 7, 6] and InnerParameters(4, 8, 64).heights(9) == [3, 3, 3]
    assert InnerParameters(16, 8, 64).heights(0) == [0] and InnerParameters(2, 8, 64).heights(symbol("n")) == [1, 2]
    assert [InnerParameters(16, 8, 64).width(height) for height in (1, 2, 3, 8, 16, 17)] == [8, 8, 5, 2, 1, 1]


@pytest.mark.parametrize(("size", "distance", "expected"), [(9, 8, 8), (8, 8, 0), (9, 9, 0), (9, -1, 0)])
def test_what_comes_from_far_is_asked_for_a_tile_ahead(size: int, distance: int, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """MiB beyond half of the last cache, where a tile reads a quarter of the second-level one at most, in 64 KiB."""
    target = Target("cpu", mcpu="x86-64-v4", l1_bytes=1 << 15, l2_bytes=1 << 21, l3_bytes=1 << 24)
    column = Var.below(99)
    source = SimpleNamespace(size=size << 18, element=SimpleNamespace(width=32))
    offset = Index(0, {column: distance << 13})
    monkeypatch.setattr(inner_products, "reading_of", lambda operand: SimpleNamespace(node=source, offset=offset))
    monkeypatch.setattr(inner_products, "memory_of", lambda node: node)
    given: Any = SimpleNamespace(b=None, column=column)
    assert inner_products._ahead(given, 2, target) == (source, expected << 14)


@pytest.mark.parametrize(
    ("rows", "keys", "depth", "in_cache", "expected"),
    [
        # Sums of three quarters of 32 registers; 48 KiB hold the scores, keys and values of six strips, and a task has 64 KiB.
        (100, 1000, 64, 1000, (16, 2, 12, 6, 4)),
        (17, 1000, 64, 1000, (16, 2, 12, 6, 4)),
        (16, 1000, 64, 1000, (16, 1, 24, 3, 8)),
        (15, 1000, 64, 1000, (8, 2, 12, 7, 8)),
        (100, 1000, 64, 5, (16, 2, 5, 8, 4)),
        (100, 7, 64, 1000, (16, 2, 7, 1, 4)),
        (16, "n", 64, 1000, (16, 1, 16, 5, 8)),
        (100, 1000, 4096, 1000, (16, 2, 12, 1, 2)),
        (100, 1000, 8, 1000, (16, 2, 12, 21, 8)),
    ],
)
def test_tiles_of_queries(rows: int, keys: Any, depth: int, in_cache: int, expected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parameters, "_rows_in_cache", lambda attention, target: in_cache)
    shape = (1, 1, 1, rows, symbol(keys) if isinstance(keys, str) else keys)
    product = SimpleNamespace(element=SimpleNamespace(width=32))
    attention: Any = SimpleNamespace(product=product, shape=shape, depth=depth, width=depth)
    found = parameters.default_parameters(attention, CORE, rows)
    assert (found.lanes, found.vectors, found.height, found.strips, found.tiles) == expected


@pytest.mark.parametrize(("most", "of_block"), [*itertools.product((4, 5, 8), (1, 2, 3))])
def test_strips_of_any_number_of_keys(most: int, of_block: int) -> None:
    """Whole ones, of which the last may take keys again if half of its own are new; the others are in strips of half as many, or of one."""
    overlapping, single, half = OverlappingStrips(symbol("n"), most, of_block), SingleStrips(symbol("n"), most, of_block), -(-most // 2)
    for keys in range(40):
        whole, left = divmod(keys, most)
        more = whole + (left > half) if whole else 0
        blocks = max(-(-more // of_block), 1)
        expected = [more, -(-max(keys - more * most, 0) // half), blocks, -(-more // blocks)]
        sizes = *overlapping.numbers, overlapping.blocks, overlapping.of_block
        assert [evaluate(size, {"n": keys}) for size in sizes] == expected, keys
        found = [evaluate(size, {"n": keys}) for size in (*single.numbers, single.blocks)]
        assert found == [whole, left, max(-(-whole // of_block), 1)], keys
    assert [EvenStrips(keys, 3, count).block_keys for keys, count in ((5, 4), (5, 1), (6, 2), (7, 2))] == [5, 3, 6, 6]


def test_panels_that_are_there_from_one_call_to_the_next_go_to_and_fro(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than an eighth of the second-level cache, and four times that at most."""
    monkeypatch.setattr(strategy, "is_repeated", lambda kernel: True)
    kernel: Any = None
    eighth, most = CORE.l2_bytes // 8, 4 * CORE.l2_bytes
    assert [strategy._turns(kernel, share, CORE) for share in (eighth, eighth + 1, most, most + 1)] == [False, True, True, False]


@pytest.mark.parametrize(("keys", "of_block", "shorter"), [(10, 2, 0), (13, 4, 1)])
def test_blocks_of_even_strips_begin_behind_whole_ones(keys: int, of_block: int, shorter: int) -> None:
    """Only a block behind the one with the first of the shorter strips begins earlier than so many whole ones."""
    with make_context(), ir.Location.unknown(), ir.InsertionPoint(ir.Module.create().body):
        block = EvenStrips(keys, 3, of_block).block(Index.of(Var(0, 1, emit.index_constant(1), name="block")))
        assert [v.name for v in block.base.terms].count("smaller") == shorter


def test_heads_that_share_a_key_are_rows_of_a_task() -> None:
    """Two to eight of them, beside a number of queries that a call says."""
    for group, loops in ((1, [QUERY]), (2, [QUERY_HEAD, QUERY]), (8, [QUERY_HEAD, QUERY]), (9, [QUERY])):
        attention: Any = SimpleNamespace(rows=symbol("n") * group, shape=(1, 1, group, symbol("n"), 64), row_loop=QUERY)
        assert _row_loops(attention) == loops


def test_tiles_that_no_padding_touches() -> None:
    """Of three tiles of four rows, at three taps from the row before on: those whose first and last rows are inside."""
    row, tap = Var.below(12), Var.below(3)
    up, down = Index(-1, {row: 1, tap: 1}), Index(12, {row: -1, tap: 1})

    def inside(*checks: tuple[Index, int]) -> tuple[int, int]:
        nest: Any = SimpleNamespace(c=SimpleNamespace(a=SimpleNamespace(checks=checks)))
        return PaddedNest._inside(nest, row, 0, 4, 3)

    for index in (up, down):
        for extent, others in ((12, []), (13, [(Index(-5, {row: 1}), 99)]), (99, [(Index(0, {row: 1}), 9)])):
            checks = [(index, extent), *others]
            taken = [
                t
                for t in range(3)
                if all(
                    0 <= i.const + i.coefficient(row) * r + i.coefficient(tap) * k < most
                    for i, most in checks
                    for r in range(4 * t, 4 * t + 4)
                    for k in range(3)
                )
            ]
            assert [*range(*inside(*checks))] == taken
    assert inside((up, 3)) == inside((up, 12), (Index(-8, {row: 1}), 99)) == (3, 3) and inside((Index(5), 1)) == (0, 3)


def test_numbers_of_tasks_that_differ_in_their_loops() -> None:
    """Panels alone, or with one or two of the outer rows, of which there are so many that as many tasks are reached."""
    rows = [SimpleNamespace(extent=extent) for extent in (4, 5, 9)]

    def fewest(panels: int, b: str = "PARAMETER") -> list[int]:
        plan: Any = SimpleNamespace(b=OperandSource[b], panels=panels, contraction=SimpleNamespace(batch=[], rows=rows))
        return fewest_tasks(plan)

    assert fewest(1) == [8, 1, 2] and fewest(3) == [8, 1, 13] and fewest(3, "COPY") == [8]


@pytest.mark.parametrize(
    ("tiles", "of_task", "heads", "expected"),
    [(20, 4, 1, (8, 3)), (20, 4, 100, (5, 4)), (40, 4, 1, (10, 4)), (3, 4, 1, (1, 3)), (1, 4, 1, (1, 1)), (9, 2, 1, (4, 3))],
)
def test_tasks_of_queries(tiles: int, of_task: int, heads: int, expected: tuple[int, int]) -> None:
    """Eight or more of all heads, of two tiles at least: how many a head has, and the tiles of one."""
    given: Any = SimpleNamespace(tiles=tiles, p=SimpleNamespace(tiles=of_task), heads=heads)
    given.blocks = ColumnAttention.blocks.fget(given)  # type: ignore[attr-defined] # a property
    assert (given.blocks, ColumnAttention.block_tiles.fget(given)) == expected  # type: ignore[attr-defined]
    given.tiles = symbol("n")
    assert ColumnAttention.block_tiles.fget(given) == max(3, of_task)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("row_tiles", "others", "tasks", "expected"),
    [(20, 1, 4, (4, 5)), (20, 0, 4, (4, 5)), (20, 2, 4, (3, 7)), (2, 1, 8, (2, 1)), (0, 1, 8, (0, 0))],
)
def test_blocks_of_rows_that_a_call_says(row_tiles: int, others: int, tasks: int, expected: tuple[int, int]) -> None:
    """Of eight tiles at most, and as many as there are tasks for beside the other loops: how many there are, and the tiles of each."""
    plan = SimpleNamespace(row_tiles=row_tiles, tasks=tasks)
    given: Any = SimpleNamespace(plan=plan, blocks=SimpleNamespace(tiles=8), is_covered=True, panel_blocks=1)
    given.c = SimpleNamespace(batches=others, rows=[None])
    assert TaskNest._row_blocks.func(given) == expected


def test_edges_of_padded_rows_are_copies_of_taps_alone() -> None:
    """The loop over channels, which no padding bounds, stays one: more of them are no more code."""

    def multiply_adds(channels: int) -> int:
        arrays = [values((1, channels, 9, 13)), Const(values((24, channels, 3, 3), seed=1))]
        made = program(lambda x, w: [build("nn.conv2d", x, w, padding=(1, 1, 1, 1))], arrays)
        return str(compile(made, target="cpu -mcpu=x86-64-v3", stop_after="tir").module).count("vector.fma")

    assert multiply_adds(3) == multiply_adds(5) > 0


def test_tiles_of_many_sums_ask_ahead_for_what_comes_from_far() -> None:
    """Of 21 sums, one an element, and of weights that no cache holds."""
    small = Target("cpu", mcpu="x86-64-v4", num_threads=1, l1_bytes=1 << 12, l2_bytes=1 << 12)
    made = program(lambda x, w: [build("nn.dense", x, w)], [values((24, 205)), Const(values((100, 205), seed=1))])
    text = str(compile(made, target=small, stop_after="tir").module)
    assert "rows=3 vectors=7" in text and text.count("memref.prefetch") == 1


@pytest.mark.parametrize(
    ("least", "most", "limit", "expected"), [(1, 5, 5, "a"), (1, 6, 5, "ab"), (5, 9, 5, "ab"), (6, 9, 5, "b"), (1, 9, None, "a")]
)
def test_versions_that_no_size_selects_are_left_out(
    least: int, most: int, limit: int | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one for sizes up to a limit, and of another one for all others, on tiles."""
    found: list[str] = []
    body = SimpleNamespace(function=None, evaluator=None)
    monkeypatch.setattr(kernel, "kernel_function", lambda kernel: nullcontext(body))
    monkeypatch.setattr(kernel, "emit", SimpleNamespace(compare=lambda *_: None, index_constant=lambda size: size))
    monkeypatch.setattr(kernel, "nest", SimpleNamespace(when=lambda condition, evaluator, then, otherwise: (then(), otherwise())))

    def emission(name: str) -> Any:
        return SimpleNamespace(emit_tasks=lambda body, tuning: found.append(name), uses_tiles=name == "b")

    nothing: Any = None
    with Ranges({"n": Range(least, most)}):
        versions = [kernel.Version(emission("a"), symbol("n"), limit), kernel.Version(emission("b"))]
        assert kernel.emit_versions(nothing, versions, nothing).uses_tiles == ("b" in expected)
    assert "".join(found) == expected


def test_heads_that_are_shorter_than_a_vector_go_element_by_element() -> None:
    found: list[int] = []
    given: Any = SimpleNamespace(evaluator=Evaluator({}))
    with make_context(), ir.Location.unknown(), ir.InsertionPoint(ir.Module.create().body):
        for extent in (7, 8, 9):
            with kernel.AttentionKernel._along(given, extent, 8) as (_, lanes):
                found.append(lanes)
    assert found == [1, 8, 8]
