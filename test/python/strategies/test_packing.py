"""Packing of parameters: layouts as data, and copies into them."""

import numpy as np
import pytest

from relayc.dialects.mlir import ir, make_context
from relayc.dialects.relay.errors import RelayError
from relayc.pipelines.tir.strategy import packing
from relayc.pipelines.tir.strategy.packing import Packing, fill_blocks

SHAPES = {
    "a tail": (3, 37, 5, 40),
    "one batch": (1, 64, 200, 1),
    "fewer columns than a block": (2, 7, 3, 130),
    "deep columns": (4, 96, 1, 768),
}
ORDERS = {"rows": (0, 1, 2, 3), "columns innermost": (0, 2, 3, 1), "reversed": (3, 2, 1, 0), "kernel first": (0, 1, 3, 2)}


def expected(source, axis, width):
    columns = source.shape[axis]
    moved = np.moveaxis(source, axis, -1)
    padded = np.zeros((*moved.shape[:-1], -(-columns // width) * width), source.dtype)
    padded[..., :columns] = moved
    return np.moveaxis(padded.reshape(*moved.shape[:-1], -1, width), -2, axis)


@pytest.mark.parametrize("width", [1, 4, 32])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_columns_become_blocks_with_zeros_after_the_last_one(shape, order, axis, width):
    extents, memory = SHAPES[shape], ORDERS[order]
    base = np.random.default_rng(0).integers(1, 1 << 30, [extents[d] for d in memory]).astype(np.uint32)
    source = base.transpose(np.argsort(memory))
    wanted = expected(source, axis, width)
    found = np.full(wanted.shape, 7, np.uint32)
    fill_blocks(source, axis, found)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("columns", [24, 130])
def test_a_few_blocks_of_columns_are_staged_together(columns, monkeypatch):
    staged, staging = [], packing._staging
    monkeypatch.setattr(packing, "_staging", lambda *options: staged.append(options[2]) or staging(*options))
    source = np.arange(columns * 300, dtype=np.uint32).reshape(columns, 300)
    found = np.full((-(-columns // 4), 300, 4), 7, np.uint32)
    fill_blocks(source, 0, found)
    np.testing.assert_array_equal(found, expected(source, 0, 4))
    assert staged == [min(columns, 64)]


@pytest.mark.parametrize("lines", [1, 2])
def test_lines_end_in_zeros(lines):
    source = np.arange(1, 31, dtype=np.uint16).reshape(3, 2, 5)
    wide = source.reshape(*source.shape[:lines], -1)
    found = np.full((*wide.shape[:-1], 16), 7, np.uint16)
    packing.ARRANGEMENTS["lines"](source, found, lines)
    np.testing.assert_array_equal(found, np.pad(wide, [(0, 0)] * lines + [(0, 16 - wide.shape[-1])]))


def test_negative_strides_are_read_backwards():
    source = np.arange(40 * 200, dtype=np.uint32).reshape(40, 200)[:, ::-1]
    wanted = expected(source, 0, 16)
    found = np.empty_like(wanted)
    fill_blocks(source, 0, found)
    np.testing.assert_array_equal(found, wanted)


PACKINGS = {
    "columns": Packing("columns", (10, 6), ((0, 0, 1), (0, 1, 0)), (6, 10), (2, 10, 4), (("batch", 0),)),
    "rows": Packing("rows", (7, 6), ((0, 1, 0), (0, 0, 1)), (7, 6), (8, 6), (("batch", 0), ("rows", 4))),
    "channels": Packing("channels", (9, 1, 3), ((0, 1, 0), (0, 0, 0), (2, 0, -1)), (9, 3), (3, 3, 4), (("batch", 0),)),
    "groups": Packing(
        "groups", (5, 18), ((0, 0, 1), (0, 1, 0)), (18, 5), (2, 3, 16, 2), (("batch", 0), ("inner", 1), ("pitch", 6), ("shift", 0))
    ),
    "sorted_groups": Packing(
        "sorted_groups",
        (5, 2, 8),
        ((0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)),
        (5, 2, 8),
        (1, 5, 16, 4),
        (("batch", 0), ("inner", 1), ("pitch", 8), ("shift", 0), ("stride0", -30)),
    ),
}


@pytest.mark.parametrize("kind", PACKINGS)
def test_a_packing_is_read_back_from_its_attribute(kind):
    packing = PACKINGS[kind]
    with make_context():
        text = str(packing.to_attribute())
        assert Packing.from_attribute(ir.Attribute.parse(text), packing.shape) == packing


@pytest.mark.parametrize(
    "text",
    [
        '"columns"',
        '{kind = "diagonals", source = array<i64: 2>, map = affine_map<(d0) -> (d0)>, extents = array<i64: 2>}',
        '{kind = "columns", source = array<i64: 2>, map = affine_map<(d0) -> (d0 mod 2)>, extents = array<i64: 2>}',
        '{kind = "columns", source = array<i64: 2>, map = affine_map<(d0, d1) -> (d0)>, extents = array<i64: 2>}',
    ],
)
def test_an_attribute_that_is_no_packing_is_an_error(text):
    with make_context(), pytest.raises(RelayError, match=r"relay\.packing: expected \{kind = one of columns.*found"):
        Packing.from_attribute(ir.Attribute.parse(text), (2,))


def test_pairs_are_interleaved_with_zeros_after_each_round():
    source = np.arange(1, 91, dtype=np.uint16).reshape(5, 18)
    found = np.full((2, 3, 16, 2), 7, np.uint16)
    PACKINGS["groups"].pack(source, found)
    padded = np.zeros((6, 32), np.uint16)
    padded[:5, :18] = source
    np.testing.assert_array_equal(found, padded.reshape(3, 2, 2, 16).transpose(2, 0, 3, 1))


@pytest.mark.parametrize("shift", [0, 128])
def test_groups_are_sorted_by_whether_their_pairs_fit(shift):
    """20 columns, two rows of taps 100 elements apart, and 16 steps of which 14 are there: four groups of each row, eight of a block."""
    rng = np.random.default_rng(3)
    source = rng.integers(-20, 21, (20, 2, 14)).astype(np.int8)
    for block, row, step, pair in [(0, 0, 4, (65, 64)), (0, 1, 2, (-100, -29)), (1, 0, 0, (127, 2)), (1, 1, 12, (-128, -1))]:
        source[16 * block + 3, row, step : step + 2] = pair
    for column, row, step, pair in [(1, 0, 0, (64, 64)), (2, 1, 8, (-128, 127)), (17, 0, 6, (-128, 0))]:
        source[column, row, step : step + 2] = pair
    access = ((0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1))
    numbers = (("batch", 0), ("inner", 1), ("pitch", 16), ("shift", shift), ("stride0", 100))
    head = 2 if shift else 1
    found = np.full((2, head + 8, 16, 4), 7, np.uint8)
    Packing("sorted_groups", (20, 2, 14), access, (20, 2, 14), found.shape, numbers).pack(source.view(np.uint8), found)
    padded = np.zeros((32, 2, 16), np.int8)
    padded[:20, :, :14] = source
    for block, wide in enumerate([{4, 100}, {0, 112}]):
        count, *where = found[block, head - 1].view(np.int32).reshape(-1)[:9]
        assert count == 6
        assert sorted(where) == [0, 4, 8, 12, 100, 104, 108, 112]
        assert set(where[6:]) == wide
        for number, at in enumerate(where):
            row, step = divmod(int(at), 100)
            expected = padded[16 * block : 16 * block + 16, row, step : step + 4]
            np.testing.assert_array_equal(found[block, head + number].view(np.int8), expected)
        if shift:
            sums = padded[16 * block : 16 * block + 16].sum((1, 2), dtype=np.int32)
            np.testing.assert_array_equal(found[block, 0].view(np.int32).reshape(-1), -128 * sums)


def test_the_last_tile_of_rows_and_the_last_block_of_channels_hold_the_last_ones():
    rows = np.arange(42, dtype=np.uint32).reshape(7, 6)
    found = np.zeros((8, 6), np.uint32)
    PACKINGS["rows"].pack(rows, found)
    np.testing.assert_array_equal(found.reshape(2, 6, 4), np.stack([rows[:4].T, rows[3:].T]))
    channels = np.arange(27, dtype=np.uint32).reshape(9, 1, 3)
    found = np.zeros((3, 3, 4), np.uint32)
    PACKINGS["channels"].pack(channels, found)
    backwards = channels[:, 0, ::-1]
    np.testing.assert_array_equal(found, np.stack([backwards[:4].T, backwards[4:8].T, backwards[5:].T]))


def test_one_memory_in_two_shapes_has_one_name():
    flat = Packing("columns", (12,), ((0, 4, 1),), (3, 4), (1, 4, 8), (("batch", 0),))
    square = Packing("columns", (3, 4), ((0, 1, 0), (0, 0, 1)), (3, 4), (1, 4, 8), (("batch", 0),))
    assert flat.name == square.name


def test_a_layout_of_parts_that_do_not_divide_a_dimension_ends_in_zeros():
    around = np.arange(1, 9, dtype=np.uint32)  # the two elements after the parameter are not its own
    found = np.empty((2, 4), np.uint32)
    with make_context():
        layout = ir.AffineMapAttr.parse("affine_map<(i) -> (i floordiv 4, i mod 4)>").value
        of_parts = Packing.layout(layout, (6,), found.shape)
    of_parts.pack(around[:6], found)
    np.testing.assert_array_equal(found, [[1, 2, 3, 4], [5, 6, 0, 0]])
