"""Which tiles GPUs get: the limits of a block, the models of time, and the numbers that are made to fit. Nothing is compiled.

Times are worked out by hand from the formulas of the models, for sizes of which the terms are round.
"""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cuda.architectures import (
    ARCHITECTURES,
    MOST_REGISTERS,
    MOST_THREADS,
    REGISTERS,
    STATIC_SHARED_BYTES,
    WARP,
    native_architecture,
)
from relayc.pipelines.targets.cuda.peak import compute_gflops
from relayc.pipelines.targets.cuda.strategies.attention import versions
from relayc.pipelines.targets.cuda.strategies.attention.tensor_blocks import TensorParameters
from relayc.pipelines.targets.cuda.strategies.attention.tensor_choice import TensorTiles
from relayc.pipelines.targets.cuda.strategies.hopper.choice import Product, staged
from relayc.pipelines.targets.cuda.strategies.hopper.convolution import Axis
from relayc.pipelines.targets.cuda.strategies.hopper.tile import GroupTile
from relayc.pipelines.targets.cuda.strategies.product.choice import (
    Model,
    Sizes,
    _fills,
    _nearer,
    _split,
    best,
    blocks_at_once,
    cycles,
    fits,
    fitted,
)
from relayc.pipelines.targets.cuda.strategies.product.strategy import _is_sensible
from relayc.pipelines.targets.cuda.strategies.product.tile import BlockTile
from relayc.pipelines.targets.cuda.target import CudaTarget
from relayc.pipelines.targets.gpu.scans import parts_of
from relayc.pipelines.te.read.attention import KEY
from relayc.pipelines.te.read.graph import NotStructured
from relayc.runtime.cuda.driver import DeviceAttributes
from relayc.symbolic import minimum, symbol


def cuda(arch="sm_80", **options):
    found = Target("cuda", arch=arch, **options)
    assert isinstance(found, CudaTarget)
    return found


SM_80 = cuda()


# ---- products by warps and by threads


def model(registers=lambda tile: 32, **changes):
    """Units of one thread and elements of four bytes."""
    return replace(Model(64, 4, 1, registers, 4, (1, 1)), **changes)


@pytest.mark.parametrize(
    ("tile", "changes", "target", "expected"),
    [
        # Threads: a warp to 1024.
        (BlockTile(4, 8, 4, 1, 1, 2), {}, SM_80, True),
        (BlockTile(4, 7, 4, 1, 1, 2), {}, SM_80, False),
        (BlockTile(1, 1, 4, 1, 1, 2), {"unit_threads": 32}, SM_80, True),
        (BlockTile(32, 32, 4, 1, 1, 2), {}, SM_80, True),
        (BlockTile(32, 33, 4, 1, 1, 2), {}, SM_80, False),
        # Shared memory: 256 lines of 32 steps of 4 bytes, twice, are 64 KiB.
        (BlockTile(128, 128, 32, 8, 8, 2), {}, cuda(shared_bytes=1 << 16), True),
        (BlockTile(128, 128, 32, 8, 8, 2), {}, cuda(shared_bytes=(1 << 16) - 1), False),
        (BlockTile(128, 128, 32, 8, 8, 3), {}, cuda(shared_bytes=3 << 15), True),
        (BlockTile(128, 128, 32, 8, 8, 3), {}, cuda(shared_bytes=(3 << 15) - 1), False),
        # Registers: 255 of a thread, 65536 of a block.
        (BlockTile(8, 8, 4, 1, 1, 2), {"registers": lambda tile: 255}, SM_80, True),
        (BlockTile(8, 8, 4, 1, 1, 2), {"registers": lambda tile: 256}, SM_80, False),
        (BlockTile(32, 32, 4, 1, 1, 2), {"registers": lambda tile: 64}, SM_80, True),
        (BlockTile(32, 32, 4, 1, 1, 2), {"registers": lambda tile: 65}, SM_80, False),
        # Whole steps.
        (BlockTile(8, 8, 8, 1, 1, 2), {}, SM_80, True),
        (BlockTile(8, 8, 6, 1, 1, 2), {}, SM_80, False),
    ],
)
def test_a_block_has_room_for_a_tile(tile, changes, target, expected):
    assert fits(tile, model(**changes), target) is expected


@pytest.mark.parametrize(
    ("tile", "nearest"),
    [
        (BlockTile(1, 1000, 1, 1, 1000, 1, 0), BlockTile(16, 256, 4, 2, 64, 2, 1)),
        (BlockTile(300, 3, 63, 7, 9, 20, 100), BlockTile(256, 16, 32, 4, 8, 8, 64)),
        (BlockTile(32, 17, 4096, 4, 4, 3, 64), BlockTile(32, 16, 128, 4, 4, 3, 64)),
        (BlockTile(31, 255, 7, 3, 33, 8, 65), BlockTile(16, 128, 4, 2, 32, 8, 64)),
        (BlockTile(256, 256, 8, 128, 1, 9, 63), BlockTile(256, 256, 8, 64, 1, 8, 63)),
        (BlockTile(64, 256, 8, 2, 128, 2, 1), BlockTile(64, 256, 8, 2, 64, 2, 1)),
        (BlockTile(32, 32, 8, 64, 1, 2, 1), BlockTile(32, 32, 8, 32, 1, 2, 1)),
    ],
)
def test_wanted_numbers_are_clipped_to_powers_of_two(tile, nearest):
    """Rows and columns 16 to 256, units up to 64, a line up to 128 bytes, 2 to 8 stages, 1 to 64 splits."""
    assert fitted(tile, model(element_bytes=1, least=(2, 1)), SM_80) == nearest


@pytest.mark.parametrize(
    ("tile", "nearest"),
    [
        (BlockTile(128, 128, 16, 4, 32, 2, 1), {"unit_columns": 16}),  # 2 registers for a sum, 32 others: 288, of which a thread has 255
        (BlockTile(128, 128, 16, 32, 4, 2, 1), {"unit_rows": 16}),
        (BlockTile(16, 16, 16, 8, 8, 2, 1), {"unit_rows": 2, "unit_columns": 4}),  # 4 threads, where a warp has 32
        (BlockTile(128, 128, 32, 8, 8, 8, 1), {"stages": 5}),
        (BlockTile(256, 128, 16, 4, 8, 2, 1), {"rows": 128}),  # 1024 threads of 96 registers
        (BlockTile(128, 128, 16, 4, 16, 2, 1), {}),
        (BlockTile(128, 128, 16, 16, 16, 2, 1), {"unit_rows": 8, "unit_columns": 8}),  # 544 registers, 288 of 8 x 16
        (BlockTile(256, 64, 16, 1, 4, 2, 1), {"rows": 64, "unit_rows": 1}),
        (BlockTile(64, 256, 16, 4, 1, 2, 1), {"columns": 64}),
        (BlockTile(256, 256, 128, 8, 8, 2, 1), {"rows": 128, "columns": 128, "depth": 32}),
    ],
)
def test_tiles_that_no_block_has_become_smaller_where_they_are_too_large(tile, nearest):
    way = model(lambda t: 2 * t.unit_rows * t.unit_columns + 32, step=8)
    found = fitted(tile, way, SM_80)
    assert fits(found, way, SM_80)
    assert found == replace(tile, **nearest)


def test_a_tile_whose_copies_take_the_registers_becomes_shorter():
    """More columns would not help."""
    way = model(lambda t: 16 * t.depth + t.unit_rows * t.unit_columns, step=8, least=(4, 4))
    assert fitted(BlockTile(64, 16, 32, 8, 4, 2, 1), way, SM_80) == BlockTile(64, 16, 8, 4, 4, 2, 1)


@pytest.mark.parametrize(
    ("tile", "changes", "nearer"),
    [
        # Too few threads, or too many registers: smaller units, first along the longer side of a unit, or else more columns.
        (BlockTile(4, 4, 8, 2, 1, 3), {}, {"unit_rows": 1}),
        (BlockTile(4, 4, 8, 2, 2, 3), {}, {"unit_rows": 1}),
        (BlockTile(4, 4, 8, 1, 2, 3), {}, {"unit_columns": 1}),
        (BlockTile(4, 8, 8, 2, 4, 3), {"least": (1, 4)}, {"unit_rows": 1}),
        (BlockTile(8, 4, 8, 4, 2, 3), {"least": (4, 1)}, {"unit_columns": 1}),
        (BlockTile(4, 4, 8, 1, 1, 3), {}, {"columns": 8}),
        (BlockTile(4, 7, 8, 1, 1, 3), {}, {"columns": 14}),
        (BlockTile(8, 8, 8, 2, 1, 3), {"registers": lambda tile: 256}, {"unit_rows": 1}),
        # Too much shared memory: fewer stages, fewer steps.
        (BlockTile(4, 8, 8, 1, 1, 4), {}, {"stages": 3}),
        (BlockTile(4, 8, 8, 1, 1, 3), {}, {"stages": 2}),
        (BlockTile(4, 8, 8, 1, 1, 2), {}, {"depth": 4}),
        (BlockTile(1, 1, 8, 1, 1, 3), {"unit_threads": 32}, {"stages": 2}),
        (BlockTile(8, 8, 8, 1, 1, 3), {"registers": lambda tile: 255}, {"stages": 2}),
        (BlockTile(32, 32, 8, 1, 1, 3), {"registers": lambda tile: 64}, {"stages": 2}),
        # Then, and where there are too many threads or registers of a block, fewer rows or columns, of which units are a part.
        (BlockTile(8, 8, 4, 1, 1, 2), {}, {"rows": 4}),
        (BlockTile(4, 8, 4, 1, 1, 2), {}, {"columns": 4}),
        (BlockTile(64, 16, 4, 64, 1, 2), {"unit_threads": 2}, {"rows": 32, "unit_rows": 32}),
        (BlockTile(16, 64, 4, 1, 64, 2), {"unit_threads": 2}, {"columns": 32, "unit_columns": 32}),
        (BlockTile(32, 32, 8, 1, 1, 3), {"registers": lambda tile: 65}, {"rows": 16}),
        (BlockTile(32, 64, 8, 1, 1, 3), {"registers": lambda tile: 32}, {"columns": 32}),
    ],
)
def test_the_next_smaller_tile(tile, changes, nearer):
    assert _nearer(tile, model(**changes)) == replace(tile, **nearer)


def test_blocks_that_a_multiprocessor_has_room_for():
    """By shared memory, of which each block takes a KiB more, by threads, and by registers."""
    cases = {
        "sm_80": (
            ((0, 32, 16), 64),
            ((0, 1024, 16), 2),
            ((0, 1024, 33), 1),
            ((0, 1024, 64), 1),
            ((0, 1024, 65), 0),
            ((1024, 128, 32), 16),
            ((40 << 10, 128, 64), 4),
            ((81 << 10, 32, 32), 2),
            ((81 << 10) + 1, 32, 32, 1),
        ),
        "sm_86": (((0, 32, 16), 48), ((99 << 10, 128, 64), 1), ((49 << 10, 128, 64), 2)),
    }
    for arch, rows in cases.items():
        for row in rows:
            given, expected = row if len(row) == 2 else (row[:3], row[3])
            assert blocks_at_once(cuda(arch=arch), *given) == expected, (arch, given)


def test_stages_are_filled_and_splits_have_four_turns():
    tile = BlockTile(16, 16, 16, 16, 16, 2)
    filled = {0: 2, 1: 2, 16: 2, 17: 3, 32: 3, 33: 4, 48: 4, 49: 5}
    for depth, most in filled.items():
        sizes = Sizes(1, 1, depth, 1, 4.0)
        assert [n for n in (2, 3, 4, 5) if _fills(replace(tile, stages=n), sizes)] == list(range(2, most + 1))
    for turns, splits in {1: [1], 7: [1], 8: [1, 2], 15: [1, 2], 16: [1, 2, 4], 255: [1, 2, 4, 8, 16, 32], 1 << 16: 7}.items():
        found = [t.splits for t in _split(tile, Sizes(1, 1, 16 * turns, 1, 4.0))]
        assert found == (splits if isinstance(splits, list) else [1 << i for i in range(splits)])
        # The last turn need not be whole.
        assert [t.splits for t in _split(tile, Sizes(1, 1, 16 * turns - 15, 1, 4.0))] == found


WARPS = Model(1024, 2, 32, lambda tile: 128, 16, (16, 8))
THREADS = Model(64, 4, 1, lambda tile: 64, 4, (4, 4))


@pytest.mark.parametrize(
    ("way", "tile", "sizes", "expected"),
    [
        # A block of 4 warps: 64 cycles of products, 6144 bytes to copy (128 cycles) and 12288 to read (96); half of the warps that hide
        # everything; two turns that wait 400 cycles for copies; 16384 bytes in and out at the end.
        (WARPS, BlockTile(64, 32, 32, 32, 16, 3), Sizes(64, 32, 64, 1, 4.0), 2 * (400 + 60) + 16384 / 48 + 1200),
        # Enough blocks that five are on each multiprocessor: 2 of 1024 / 8; nobody waits.
        (
            WARPS,
            BlockTile(64, 32, 32, 32, 16, 3),
            Sizes(64 * 108, 32 * 5, 64, 1, 4.0),
            5 * (2 * (152 + 60 / 4 + 0.15 * 100) + 16384 / 48) + 2 * 1200,
        ),
        # Of tiles that registers let be there twice, five take three rounds; of those that shared memory lets be there eight times, 12 two.
        (
            replace(WARPS, registers=lambda tile: 255),
            BlockTile(64, 32, 32, 32, 16, 3),
            Sizes(64 * 108, 32 * 5, 64, 1, 4.0),
            5 * (2 * (200 + 0.15 * 200) + 16384 / 48) + 3 * 1200,
        ),
        (
            replace(WARPS, registers=lambda tile: 32),
            BlockTile(64, 32, 32, 32, 16, 3),
            Sizes(64 * 108, 32 * 12, 64, 1, 4.0),
            12 * (2 * (152 + 60 / 8 + 0.15 * 50) + 16384 / 48) + 2 * 1200,
        ),
        # A multiprocessor has room for none by this count, and one is there.
        (
            WARPS,
            BlockTile(256, 128, 32, 32, 32, 2),
            Sizes(256 * 108, 256, 64, 1, 4.0),
            2 * (2 * (1024 + 0.15 * (1024 + 512) + 60 + 0.15 * 800) + 262144 / 48) + 2 * 1200,
        ),
        # Two splits: sums of four bytes, and a second launch, which reads them.
        (
            WARPS,
            BlockTile(64, 32, 32, 32, 16, 3, 2),
            Sizes(64, 32, 512, 3, 4.0),
            8 * (400 + 60) + 8192 / 48 + 1200 + 4000 + 64 * 32 * 3 * 4 * 3 / (12 * 108),
        ),
        (
            WARPS,
            BlockTile(64, 32, 32, 32, 16, 3, 2),
            Sizes(64, 32, 512, 1, 2.0),
            8 * (400 + 60) + 8192 / 48 + 1200 + 4000 + 64 * 32 * 4 * 3 / (12 * 108),
        ),
        # 64 threads that read 4 x 4 each and share lines: 16 KiB of reads are 4. A quarter of the warps that hide everything.
        (
            THREADS,
            BlockTile(32, 32, 8, 4, 4, 3),
            Sizes(32, 32, 8, 3, 4.0),
            (128 + 0.15 * (2048 / 48 + 32)) * 4 + 60 + 60 + 8192 / 48 + 1200,
        ),
    ],
)
def test_the_time_of_a_product(way, tile, sizes, expected):
    assert cycles(tile, sizes, way, SM_80) == pytest.approx(expected, rel=1e-12)


def test_the_best_tile_fits_and_is_filled():
    """The one of fewest cycles of those; none where there is none."""
    one = BlockTile(64, 32, 32, 32, 16, 3)
    candidates = [replace(one, depth=34), one, replace(one, stages=4), replace(one, stages=2)]  # 34 steps are no whole instructions
    contraction = SimpleNamespace(root=SimpleNamespace(element=SimpleNamespace(width=32)))
    problem = SimpleNamespace(rows=64, columns=32, depth=64, batches=1, contraction=contraction)
    assert Sizes.of(problem) == Sizes(64, 32, 64, 1, 4.0)
    found = best(candidates, problem, WARPS, SM_80)
    assert found == one and cycles(candidates[0], Sizes.of(problem), WARPS, SM_80) == cycles(one, Sizes.of(problem), WARPS, SM_80)
    assert best(candidates[:1], problem, WARPS, SM_80) is best(candidates[2:3], problem, WARPS, SM_80) is None


def test_tiles_of_one_to_eight_warps_that_are_not_long():
    cases = {
        (16, 16, 16, 16): True,
        (32, 64, 16, 16): True,
        (48, 48, 16, 16): False,
        (64, 64, 64, 16): True,
        (64, 64, 64, 8): False,
        (64, 64, 16, 64): True,
        (32, 8, 32, 8): True,
        (16, 16, 16, 32): False,
    }
    assert {case: _is_sensible(*case) for case in cases} == cases


# ---- products by warp groups


def test_resources_of_a_tile_of_groups():
    """64 rows of a group, 128 bytes of a line; 4 warps of 16 rows and 36 columns of sums; buffers at whole KiB."""
    tile = GroupTile(128, 256, 3)
    assert (tile.groups, tile.threads, tile.stage_bytes, tile.strip_elements) == (2, 384, 384 * 128, 2 * 4 * 16 * 36)
    assert tile.shared_bytes == 3 * 384 * 128 + 18 * 1024 + 1024
    assert GroupTile(64, 64, 2).shared_bytes == 2 * 128 * 128 + 9 * 1024 + 1024
    # 170 registers of 384 threads, of which 70 are not sums: 128 at 256 columns. Of 256 threads there are 256.
    assert [GroupTile(128, columns, 2).moves_registers for columns in (192, 200, 208, 256)] == [False, False, True, True]
    assert not GroupTile(64, 256, 2).moves_registers


def test_stages_of_groups_that_fit():
    for wanted, found in {0: 2, 2: 2, 3: 3, 6: 6, 7: 6}.items():
        assert staged(GroupTile(64, 64, wanted), cuda("sm_90a")).stages == found
    tile = GroupTile(128, 256, 6)
    room = replace(tile, stages=4).shared_bytes
    assert staged(tile, cuda("sm_90a", shared_bytes=room)).stages == 4
    assert staged(tile, cuda("sm_90a", shared_bytes=room - 1)).stages == 3
    assert staged(tile, cuda("sm_90a", shared_bytes=48 << 10)).stages == 2


@pytest.mark.parametrize(
    ("product", "tile", "multiprocessors", "expected"),
    [
        # One tile: 64 x 64 x 64 products are 128 cycles, and the delay by two stages 400; 16 turns. Copies of
        # 16 KiB a turn and 16 KiB of results at 64 bytes a cycle are 4352 cycles.
        (Product(Sizes(64, 64, 1024, 1, 4.0), 2), GroupTile(64, 64, 3), 80, (6400 + 600 + 256, (128 * 2048 + 16384) / (12 * 80), 0)),
        # Products of 128 x 256 x 64 take 1024 cycles, more than their copies; 64 bytes a cycle bring those at 80 multiprocessors.
        (
            Product(Sizes(128, 256, 1024, 1, 2.0), 2),
            GroupTile(128, 256, 4),
            80,
            (16 * 1024 + 600 + 2048, (384 * 2048 + 65536) / (12 * 80), 0),
        ),
        # 10 x 20 tiles are three turns of 80 multiprocessors.
        (
            Product(Sizes(640, 1280, 64, 1, 4.0), 2),
            GroupTile(64, 64, 9),
            80,
            (3 * (256 + 256 + 600 + 256), ((640 + 1280) * 128 + 640 * 1280 * 4) / (12 * 80), 0),
        ),
        # Sums of splits that copies wait for: 64 KiB beside 8 turns of 32 KiB.
        (
            Product(Sizes(128, 128, 1024, 1, 2.0), 2),
            GroupTile(128, 128, 5, 2),
            80,
            (8 * 512 + 1024 + 600 + 1024, (256 * 2048 + 32768) / (12 * 80), 4000 + 16384 * 4 * 3 / (12 * 80)),
        ),
        # None at all.
        (Product(Sizes(0, 64, 64, 1, 4.0), 2), GroupTile(64, 64, 3), 80, (0, 64 * 128 / (12 * 80), 0)),
        # Each of 160 multiprocessors has 32 bytes a cycle; 320 tiles are two turns of all.
        (
            Product(Sizes(64 * 320, 64, 1024, 1, 4.0), 2),
            GroupTile(64, 64, 3),
            160,
            (2 * ((16 * 16384 + 16384) / 32 + 600 + 256), ((64 * 320 + 64) * 2048 + 64 * 320 * 64 * 4) / (12 * 160), 0),
        ),
        # Two splits: 8 turns each, sums of four bytes, a second launch. Bytes are multiplied at twice the rate, 128 a line.
        (
            Product(Sizes(64, 64, 2048, 1, 1.0), 1),
            GroupTile(64, 64, 2, 2),
            80,
            (8 * 800 + 600 + 256, (128 * 2048 + 4096) / (12 * 80), 4000 + 4096 * 4 * 3 / (12 * 80)),
        ),
        # A convolution of nine taps reads an element of A nine times, from memory once. Products of a turn are 512 cycles, copies too.
        (
            Product(Sizes(576, 64, 576, 2, 2.0), 2, taps=9),
            GroupTile(128, 128, 5),
            5,
            (2 * (10 * 512 + 600 + 1024), ((64 + 64) * 576 * 2 * 2 + 576 * 64 * 2 * 2) / 60, 0),
        ),
    ],
)
def test_the_time_of_a_product_by_warp_groups(product, tile, multiprocessors, expected):
    busy, memory, sums = expected
    found = product.cycles(tile, cuda("sm_90a", num_multiprocessors=multiprocessors))
    assert found == pytest.approx(1200 + max(busy, memory) + 0.15 * min(busy, memory) + sums, rel=1e-12)
    least = product.sizes.rows * product.sizes.columns * product.sizes.batches * product.sizes.depth
    rate = 2048 * 2 // product.element_bytes * multiprocessors
    assert product.share(tile, cuda("sm_90a", num_multiprocessors=multiprocessors)) == pytest.approx(least / rate / found, rel=1e-12)


def test_splits_of_groups():
    """Of four turns at least, none empty, 64 at most; one where the depth is known to calls only."""
    product = lambda turns, **given: Product(Sizes(64, 64, 64 * turns, 1, 2.0), 2, **given)  # noqa: E731 (an argument, not a definition)
    assert [product(1).turns, Product(Sizes(1, 1, 65, 1, 2.0), 2).turns, Product(Sizes(1, 1, 65, 1, 1.0), 1).turns] == [1, 2, 1]
    for turns, splits in {1: [1], 7: [1], 8: [1, 2], 12: [1, 2, 3], 20: [1, 2, 3, 4, 5], 23: [1, 2, 3, 4, 5]}.items():
        assert list(product(turns)._splits()) == splits
    assert max(product(10000)._splits()) == 64
    assert product(10000).whole(65) == product(10000).whole(64) == 64
    assert product(10).whole(0) == 1 and product(10).whole(11) == 10
    assert list(product(20, splits=False)._splits()) == [1] and product(20, splits=False).whole(5) == 1
    values = product(20).values()
    tile = GroupTile(64, 64, 2)
    assert [list(values[name](tile)) for name in ("rows", "stages")] == [[64, 128], [2, 3, 4, 5, 6]]
    assert list(product(20, unit=64).values()["columns"](tile)) == [64, 128, 192, 256]
    assert list(values["columns"](tile)) == list(range(64, 257, 32)) and list(values["splits"](tile)) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        (Axis(10, 10, 3, 1, 1, -1), True),
        (Axis(100, 200, 3, 1, 1, -128), True),
        (Axis(100, 200, 3, 1, 1, -129), False),
        (Axis(300, 100, 3, 1, 1, 127), True),
        (Axis(300, 100, 3, 1, 1, 128), False),
        (Axis(228, 100, 3, 1, 1, 0), True),  # the last pixel is 227, the last corner 99: 128 before it
        (Axis(229, 100, 3, 1, 1, 0), False),
        (Axis(10, 137, 3, 1, 1, 0), True),  # 127 behind it
        (Axis(10, 138, 3, 1, 1, 0), False),
        (Axis(100, 10, 3, 8, 1, 0), True),
        (Axis(100, 10, 3, 9, 1, 0), False),
        (Axis(100, 100, 256, 1, 1, 0), True),
        (Axis(100, 100, 257, 1, 1, 0), False),
        (Axis(100, 100, 52, 1, 5, 0), True),
        (Axis(100, 100, 2, 1, 256, 0), False),
    ],
)
def test_windows_that_tensor_maps_have(axis, expected):
    """Corners of a byte, steps of 1 to 8, and taps within 255 pixels."""
    assert axis.is_for_maps is expected


# ---- attention


class Tiles(TensorTiles):
    """Tiles whose shared memory is 1000 bytes for each key and stage."""

    def blocks(self, p):
        return SimpleNamespace(shared_bytes=1000 * p.keys * p.stages)


class Largest(Tiles):
    """Of which the largest are best: those of most rows, of these with most of a warp, of most keys, and of most stages."""

    def cycles(self, p):
        return -(((p.warps * p.rows * 100 + p.rows) * 1000 + p.keys) * 10 + p.stages)


def tiles(kind=Tiles, rows=4096, keys=4096, width=64, depth=64, heads=1, causal=None, element_bytes=2, **target):
    attention = SimpleNamespace(width=width, depth=depth, causal=causal, rows_of_key=rows, heads_of_key=heads, shape={KEY: keys})
    return kind(attention, SimpleNamespace(element_bytes=element_bytes), cuda(**{"arch": "sm_90", "shared_bytes": 200_000, **target}))


def test_registers_of_an_attention():
    """Sums of 16 rows by 64 + 64 columns in 32 lanes, words of 16 rows by 64 queries, and 63 others; more where a tile has an end in it."""
    p = TensorParameters(4, 16, 64, 2)
    assert tiles().registers(p, True) == 64 + 16 + 61 + 2 and tiles().registers(p, False) == 64 + 17 + 61 + 2
    assert tiles(keys=4095).registers(p, True) == tiles(causal=0).registers(p, True) == 64 + 16 + 61 + 2 + 32
    assert tiles(element_bytes=4).registers(p, True) == 64 + 32 + 61 + 2
    assert tiles().registers(replace(p, rows=32), True) == 128 + 32 + 61 + 2
    assert tiles(width=32).registers(replace(p, keys=128), True) == 80 + 16 + 61 + 4
    wide = TensorParameters(4, 32, 64, 2)
    assert tiles(depth=128).registers(wide, True) == 255 and tiles(depth=128).keeps_queries(wide)
    assert tiles(depth=130).registers(wide, True) == 256 and not tiles(depth=130).keeps_queries(wide)
    assert tiles(depth=132)._fits(wide) and tiles(width=111, depth=132)._fits(wide) and not tiles(width=112, depth=132)._fits(wide)
    assert tiles(shared_bytes=128_000)._fits(p) and not tiles(shared_bytes=127_999)._fits(p)


def test_tiles_of_an_attention_that_fit():
    for wanted, found in (
        ((0, 1, 1, 0), (1, 16, 16, 2)),
        ((9, 64, 300, 9), (8, 32, 64, 2)),
        ((3, 31, 33, 4), (2, 16, 32, 4)),
        ((8, 16, 128, 4), (8, 16, 64, 2)),
        ((8, 16, 64, 5), (8, 16, 64, 3)),
    ):
        assert tiles()._fitted(TensorParameters(*wanted)) == TensorParameters(*found)
    assert tiles(width=32, keys=4095, shared_bytes=49_152)._fitted(TensorParameters(8, 32, 128, 4)) == TensorParameters(8, 32, 16, 2)
    assert tiles(width=170)._fitted(TensorParameters(8, 32, 16, 2)) == TensorParameters(8, 16, 16, 2)

    class OfWarps(TensorTiles):
        def blocks(self, p):
            return SimpleNamespace(shared_bytes=30_000 * p.warps)

    assert tiles(OfWarps)._fitted(TensorParameters(8, 32, 32, 3)) == TensorParameters(4, 16, 16, 2)
    assert (tiles().most_keys, tiles(element_bytes=4).most_keys) == (128, 64)


class Given:
    """A tuning that keeps what it is asked, and sets nothing."""

    def replace(self, defaults, names, fitted=None, values=None):
        self.names, self.fitted, self.values = names, fitted, values
        return defaults


def test_the_best_tile_of_an_attention():
    """Not of twice as many rows or keys as there are, but for the smallest ones."""
    for rows, keys, found in (
        (4096, 4096, (8, 32, 64, 3)),
        (129, 64, (8, 32, 64, 3)),
        (128, 64, (4, 32, 64, 3)),
        (127, 33, (4, 32, 64, 3)),
        (64, 32, (2, 32, 32, 3)),
        (33, 32, (2, 32, 32, 3)),
        (32, 17, (1, 32, 32, 3)),
        (17, 17, (1, 32, 32, 3)),
        (17, 16, (1, 16, 16, 2)),  # the one tile of 16 keys
        (9, 9, (1, 16, 16, 2)),
        (8, 1, (1, 16, 16, 2)),
    ):
        assert tiles(Largest, rows, keys).chosen(Given()) == TensorParameters(*found), (rows, keys)
    asked = Given()
    p = tiles(Largest).chosen(asked)
    assert asked.names == ["warps", "rows", "keys", "stages"]
    values = {name: asked.values[name](replace(p, keys=16)) for name in asked.names}
    assert values == {"warps": [1, 2, 4, 8], "rows": [16, 32], "keys": [16, 32, 64], "stages": [2, 3, 4]}
    assert asked.fitted(TensorParameters(9, 9, 9, 9)) == TensorParameters(8, 16, 16, 4)
    # Sums of 16 rows by 400 columns are 200 registers: no block fits.
    assert tiles(width=400).chosen(Given()) is None
    # Sizes that calls know are typical ones.
    n = symbol("n")
    assert tiles(Largest, n, n).chosen(Given()).rows * tiles(Largest, n, n).chosen(Given()).warps == 256


@pytest.mark.parametrize(
    ("of", "p", "expected"),
    [
        # 64 rows by 64 keys of 64 + 64, 64 times: products at 1024 a cycle are 512 cycles, exponentials 256, other operations at 64 a cycle
        # 384; 64 KiB are read and 16 KiB copied meanwhile. Four warps alone do one after the other.
        ({"rows": 64}, (4, 16, 64, 2), 64 * (512 + 640 + 60) + 1200),
        ({"rows": 64, "element_bytes": 4}, (4, 16, 64, 2), 64 * (1024 + 640 + 60) + 1200),
        # Two blocks of eight warps on each multiprocessor hide what the others do; 216 blocks are two for each.
        ({"rows": 128 * 216}, (8, 16, 32, 2), 2 * 128 * (704 + 0.15 * (512 + 512 + 8192 / 48) + 30) + 1200),
        # A causal mask leaves half of the keys, and half a tile and half of the rows that there are.
        ({"rows": 32, "keys": 4000, "causal": 0}, (4, 16, 64, 2), 32 * (512 + 640 + 60) + 1200),
        ({"rows": 32, "keys": 4002, "causal": 0}, (4, 16, 64, 2), 33 * (512 + 640 + 60) + 1200),
        ({"rows": 96, "keys": 4000, "causal": 0}, (4, 16, 64, 2), 33 * (512 + 640 + 60) + 1200),
        # Queries in shared memory are read in each turn, 256 of 132 elements. One block of eight warps: two of each scheduler.
        (
            {"rows": 256, "depth": 132},
            (8, 32, 64, 2),
            64 * (3136 + 0.15 * (2560 + (8 * 64 * 196 + 256 * 132) * 2 / 128 + 64 * 196 * 2 / 48) + 60) + 1200,
        ),
        # One warp, which waits for everything four times as long; two stages wait for all of the delay, three for half.
        ({"rows": 16, "keys": 32, "depth": 16, "width": 16}, (1, 16, 16, 2), 2 * (800 + 60) + 1200),
        ({"rows": 16, "keys": 32, "depth": 16, "width": 16}, (1, 16, 16, 3), 2 * (400 + 60) + 1200),
        ({"rows": 16, "keys": 32, "depth": 16, "width": 16}, (1, 16, 16, 9), 2 * (4 * (8 + 16 + 24) + 60) + 1200),
        # 512 products and 64 other operations a cycle of sm_75; a block that has no room by the count is there all the same.
        (
            {"rows": 64, "arch": "sm_75", "shared_bytes": 64 << 10},
            (4, 16, 64, 2),
            64 * (1024 + 640 + 60) + 1200,
        ),
        # 1400 products and 128 other operations a cycle of sm_90; three blocks of 30 for each of ten multiprocessors, two at once.
        (
            {"rows": 128, "heads": 30, "arch": "sm_90", "num_multiprocessors": 10},
            (8, 16, 32, 2),
            3 * 128 * (512 + 0.15 * (524288 / 1400 + 480 + 8192 / 48) + 30) + 2 * 1200,
        ),
    ],
)
def test_the_time_of_an_attention(of, p, expected):
    given = {"arch": "sm_80", "shared_bytes": 163 << 10, **of}
    assert tiles(**given).cycles(TensorParameters(*p)) == pytest.approx(expected, rel=1e-12)


def test_the_keys_of_few_queries_are_split(monkeypatch):
    """Two blocks for each multiprocessor, of 256 keys at least; fewer rows of a block where so many do not stay in registers."""
    most = 9

    def splits(attention, parameters, rows):
        if parameters.rows > most:
            raise NotStructured("too many rows")
        return parameters, rows

    monkeypatch.setattr(versions, "Splits", splits)

    asked = Given()

    def found(rows, keys, heads, multiprocessors=100):
        attention = SimpleNamespace(rows_of_key=rows, heads_of_key=heads, shape={KEY: keys})
        return versions.splits_of(attention, cuda(num_multiprocessors=multiprocessors), asked)

    for (rows, keys, heads), (count, of_block) in {
        (1, 1 << 20, 1): (200, 1),
        (1, 1 << 20, 3): (67, 1),
        (4, 1 << 20, 10): (20, 4),
        (5, 1 << 20, 10): (10, 4),
        (8, 1 << 20, 10): (10, 4),
        (1, 256, 1): (1, 1),
        (1, 257, 1): (2, 1),
        (1, 0, 1): (1, 1),
        (1, 1 << 20, 0): (200, 1),
        (0, 1 << 20, 1): (200, 1),
        (2, 1 << 20, 1000): (1, 2),
    }.items():
        parameters, rows_of_all = found(rows, keys, heads)
        assert (parameters.splits, parameters.rows, rows_of_all) == (count, of_block, rows), (rows, keys, heads)
        assert (parameters.warps, parameters.keys) == (4, 4)
    assert found(9, 1 << 20, 1) is None
    n = symbol("n")
    assert str(found(n, 1 << 20, 1)[1]) == str(minimum(n, 8)) and found(n, 1 << 20, 1)[0].rows <= 4
    for keys, splits in ((0, [1]), (32, [1]), (33, [1, 2]), (96, [1, 2]), (97, [1, 2, 4])):
        found(4, keys, 1)
        assert asked.names == {"splits": "splits", "warps": "split_warps", "rows": "split_rows", "keys": "split_keys"}
        values = {name: list(of(None)) for name, of in asked.values.items()}
        assert values == {"splits": splits, **{name: [1, 2, 4, 8] for name in ("split_warps", "split_rows", "split_keys")}}
    most = 3
    assert found(8, 1 << 20, 10)[0] == versions.SplitParameters(7, 4, 3, 4)
    most = 2
    assert found(8, 1 << 20, 10)[0] == versions.SplitParameters(5, 4, 2, 4)
    most = 0
    assert found(1, 1 << 20, 1) is None
    few = lambda rows: versions.has_few_rows(SimpleNamespace(rows_of_key=rows))  # noqa: E731 (for several uses)
    assert (few(8), few(9), few(n)) == (True, False, False)


# ---- scans, devices


def test_parts_of_a_line():
    """4096 steps each at least, about 256 blocks, and no more parts than a block has threads."""
    for (lines, count, threads), parts in {
        (1, 4095, 256): 1,
        (1, 8191, 256): 1,
        (1, 8192, 256): 2,
        (0, 8192, 256): 2,
        (128, 1 << 30, 256): 2,
        (129, 1 << 30, 256): 1,
        (300, 1 << 30, 256): 1,
        (1, 1 << 30, 256): 256,
        (1, 1 << 30, 128): 128,
    }.items():
        assert parts_of(SimpleNamespace(level=SimpleNamespace(count=count)), lines, threads) == parts


def test_rates_of_devices():
    """Operations of f32 and of products of 16-bit floats, for ten multiprocessors at 1 GHz, by the CUDA C++ Programming Guide."""
    cases = {(7, 5): (64, 1024), (8, 0): (64, 2048), (8, 6): (128, 1024), (8, 9): (128, 1024), (9, 0): (128, 4096), (10, 0): (128, 8192)}
    for capability, (lanes, tensor) in cases.items():
        device = DeviceAttributes("a device", capability, 10, 0, 0, 0, 10**9, 0, 0)
        assert compute_gflops(device) == (2 * lanes * 10, tensor * 10)


def test_what_architectures_have():
    """Compute capability, multiprocessors and MiB of cache of a product (T4, A100, A6000, L40, H100 twice, B200, RTX 5090), KiB of shared
    memory of a block and of a multiprocessor, its threads and blocks ("Compute Capabilities"), the version of PTX that knows it."""
    facts = {
        "sm_75": ((7, 5), 40, 4, 64, 64, 1024, 16, 70),
        "sm_80": ((8, 0), 108, 40, 163, 164, 2048, 32, 70),
        "sm_86": ((8, 6), 84, 6, 99, 100, 1536, 16, 71),
        "sm_89": ((8, 9), 128, 72, 99, 100, 1536, 24, 78),
        "sm_90": ((9, 0), 132, 50, 227, 228, 2048, 32, 80),
        "sm_90a": ((9, 0), 132, 50, 227, 228, 2048, 32, 80),
        "sm_100": ((10, 0), 148, 126, 227, 228, 2048, 32, 86),
        "sm_120": ((12, 0), 170, 96, 99, 100, 1536, 24, 87),
    }
    assert {name: a.name for name, a in ARCHITECTURES.items()} == {name: name for name in facts}
    for name, (capability, multiprocessors, l2, shared, all_shared, threads, blocks, ptx) in facts.items():
        a = ARCHITECTURES[name]
        assert (a.capability, a.multiprocessors, a.l2_bytes, a.shared_bytes) == (capability, multiprocessors, l2 << 20, shared << 10)
        assert (a.multiprocessor_shared_bytes, a.multiprocessor_threads, a.multiprocessor_blocks, a.ptx) == (
            all_shared << 10,
            threads,
            blocks,
            ptx,
        )
        assert a.number == int(name[3:].removesuffix("a"))
        assert "mma-f16" in a.features and ("tma" in a.features) == (a.number >= 90) == ("cluster" in a.features)
        assert ("cp-async" in a.features) == (a.number >= 80) == ("mma-bf16" in a.features) and ("wgmma" in a.features) == name.endswith(
            "a"
        )
    assert (WARP, MOST_THREADS, REGISTERS, MOST_REGISTERS, STATIC_SHARED_BYTES) == (32, 1024, 65536, 255, 49152)


def test_code_for_a_device_is_of_the_nearest_older_architecture():
    """Of its own number the one with most instructions, which no other device runs."""
    cases = {"sm_74": None, "sm_75": "sm_75", "sm_79": "sm_75", "sm_80": "sm_80", "sm_88": "sm_86", "sm_90": "sm_90a", "sm_91": "sm_90"}
    for device, name in {**cases, "sm_99": "sm_90", "sm_101": "sm_100", "sm_119": "sm_100", "sm_120": "sm_120"}.items():
        assert getattr(native_architecture(device), "name", None) == name
