"""The numbers that the model of a core chooses for products, for caches of known sizes."""

import pytest
from oracle import values
from support import Const, program

from relayc.dialects.relay import build
from relayc.pipelines.driver import compile
from relayc.pipelines.target import Target

CORE = Target("cpu", mcpu="x86-64-v4", num_threads=1, l1_bytes=48 << 10, l2_bytes=2 << 20)


def numbers(rows: int, depth: int, columns: int) -> dict[str, int]:
    """What the schedule of a product with constant weights is made of."""
    arrays = [values((rows, depth)), Const(values((columns, depth), seed=1))]
    (kernel,) = compile(program(lambda x, w: [build("nn.dense", x, w)], arrays), target=CORE, stop_after="tir").kernels
    strategy, *words = kernel.schedule.split()
    assert strategy == "contraction"
    return {name: int(value) for name, value in (word.split("=") for word in words)}


@pytest.mark.parametrize("rows", [1, 2, 3, 8, 12, 14])
def test_few_rows_read_large_weights_once(rows):
    """One tile holds all rows: a second one would wait for the weights again."""
    found = numbers(rows, 3072, 768)
    assert (found["rows"], found["block_tiles"]) == (rows, 1)


def test_small_weights_may_be_read_again():
    """A panel that stays in the first-level cache is read as often as the tile with the fewest cycles has it."""
    assert numbers(8, 64, 96)["block_tiles"] == 2


def test_deep_products_have_sums_that_stay_in_the_first_level_cache():
    """Chunks visit their sums often, so tiles are high rather than wide, and a group has as many panels as there is room for sums."""
    found = numbers(128, 1536, 384)
    assert found["vectors"] * 16 < 96 and found["chunk"] > 64
    assert 128 * found["vectors"] * 16 * found["block_panels"] * 4 <= 48 << 10


def test_many_rows_have_wide_tiles():
    """A wide tile reads A less often, which does not stay in the first-level cache."""
    found = numbers(1500, 384, 384)
    assert found["vectors"] > found["rows"] / 2
