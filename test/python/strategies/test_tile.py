"""The numbers that the model of a core chooses for products, for caches of known sizes."""

import pytest
from oracle import values
from support import Const, program

from relayc.dialects.relay import build
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile

CORE = Target("cpu", mcpu="x86-64-v4", num_threads=1, l1_bytes=48 << 10, l2_bytes=2 << 20)


def numbers(rows: int, depth: int, columns: int) -> dict[str, int]:
    """What the schedule of a product with constant weights is made of."""
    arrays = [values((rows, depth)), Const(values((columns, depth), seed=1))]
    (kernel,) = compile(program(lambda x, w: [build("nn.dense", x, w)], arrays), target=CORE, stop_after="tir").kernels
    strategy, *words = kernel.schedule.split()
    assert strategy == "contraction"
    return {name: int(value) for name, value in (word.split("=") for word in words)}


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
    """A panel of 192 KiB stays in the second-level cache while the tiles go by."""
    found = numbers(rows, 768, 768)
    assert found["rows"] * found["vectors"] == 24 and found["chunk"] == 768


def test_chunks_of_deep_panels_stay_in_the_second_level_cache():
    """Half of it holds 4,096 steps of 64 columns; the rows of a task are all that there are, as long as their sums have room."""
    found = numbers(1500, 10000, 768)
    assert (found["vectors"], found["chunk"], found["block_panels"]) == (4, 3334, 1)
    assert found["block_tiles"] == -(-1500 // found["rows"])
