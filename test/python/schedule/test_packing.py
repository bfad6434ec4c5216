"""Packing of parameters in blocks of columns."""

import numpy as np
import pytest

from relayc.pipelines.schedule.packing import fill_blocks

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


def test_negative_strides_are_read_backwards():
    source = np.arange(40 * 200, dtype=np.uint32).reshape(40, 200)[:, ::-1]
    wanted = expected(source, 0, 16)
    found = np.empty_like(wanted)
    fill_blocks(source, 0, found)
    np.testing.assert_array_equal(found, wanted)
