"""The numbers that the model of a core chooses for products, for caches of known sizes."""

from types import SimpleNamespace

import pytest
from oracle import values
from support import Const, program

from relayc.dialects.relay import build
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile
from relayc.pipelines.targets.cpu.strategies.contraction.cover import Heights
from relayc.pipelines.targets.cpu.strategies.contraction.plan import FEWEST_PANELS
from relayc.pipelines.targets.cpu.strategies.contraction.strategy import _long_rows
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
from relayc.symbolic import minimum, symbol

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
