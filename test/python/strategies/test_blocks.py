"""The sizes of the blocks around the tiles of a contraction, for caches of known sizes, at the limits of each rule."""

from types import SimpleNamespace
from typing import Any

import pytest

from relayc.dialects.mlir import func, ir, make_context
from relayc.pipelines.context.target import Target
from relayc.pipelines.context.upstream import run_upstream
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index
from relayc.pipelines.targets.cpu.strategies.contraction.blocked import BlockedNest
from relayc.pipelines.targets.cpu.strategies.contraction.blocks import Blocking, _balanced, _part_sizes, default_blocks, row_blocks
from relayc.pipelines.targets.cpu.strategies.contraction.plan import OperandSource
from relayc.pipelines.targets.cpu.strategies.contraction.tile import RegisterTile
from relayc.symbolic import symbol

CORE = Target("cpu", mcpu="x86-64-v4", num_threads=1, l1_bytes=48 << 10, l2_bytes=2 << 20)
TILE = RegisterTile(8, 2, 16)
"""Of 32 columns: a step of a panel is 128 bytes, and the sums are 1 KiB."""


def contraction(rows: Any, columns: Any, outer: Any, inner: int = 1, step: int = 1, batches: int = 1) -> Any:
    """What the choice of blocks reads of a product of f32, whose reduction is a loop around others of `inner` steps."""
    a = SimpleNamespace(checks=[], offset=SimpleNamespace(coefficient=lambda _: step))
    f32 = SimpleNamespace(element=SimpleNamespace(width=32))
    extents = {"row_extent": rows, "column_extent": columns, "depth": outer * inner, "batches": batches}
    loops = {"rows": [SimpleNamespace(extent=rows)], "reduction": [SimpleNamespace(extent=outer)]}
    return SimpleNamespace(**extents, **loops, a=a, b=SimpleNamespace(node=f32), node=f32)


def blocks(*sizes: Any, b: str = "PARAMETER", target: Target = CORE, **more: Any) -> tuple[int, int, int]:
    found = default_blocks(contraction(*sizes, **more), TILE, target, OperandSource.MEMORY, OperandSource[b], None)
    return found.tiles, found.panels, found.chunk


def test_a_panel_that_fits_goes_by_as_a_whole() -> None:
    """288 steps are three quarters of the first-level cache; a quarter of the second has 512 KiB / (288 x 4 x 8) = 56 tiles of rows."""
    assert blocks(24, 320, 288) == (3, 10, 288)
    assert blocks(57 * 8, 320, 288) == (29, 10, 288)
    assert blocks(24, 320, 16384) == (*blocks(24, 320, 16385)[:2], 16384) == (1, 10, 16384)
    assert blocks(24, 320, 16385) == (1, 10, 16385)


def test_a_panel_that_does_not_fit_is_cut_for_four_tiles() -> None:
    """Into two chunks of 288 steps at most, while the sums of all rows are 64 KiB."""
    assert blocks(3 * 8, 320, 289) == (3, 10, 289)
    assert blocks(4 * 8, 320, 289) == (4, 1, 145)
    assert blocks(64 * 8, 320, 289) == (64, 1, 145)


def test_chunks_of_many_sums_take_half_of_the_second_level_cache() -> None:
    """8,192 steps; the sums, on the stack, are 1 MiB at most. Channels in blocks keep small chunks, for as many rows as have few sums."""
    assert blocks(65 * 8, 320, 8192) == (65, 1, 8192)
    assert blocks(65 * 8, 320, 8193) == (65, 1, 4097)
    assert blocks(1025 * 8, 320, 8193) == (513, 1, 4097)
    assert blocks(65 * 8, 320, 8193, step=2) == (33, 1, 283)
    assert blocks(4 * 8, 320, 10, inner=1000, step=1) == (4, 1, 1)


def test_the_kernel_packs_panels_for_all_rows() -> None:
    """As many as are an eighth of the second-level cache: 256 KiB / (2,048 x 128)."""
    assert blocks(16, 320, 1024, b="COPY") == (2, 2, 1024)
    assert blocks(16, 320, 2048, b="COPY") == (*blocks(16, 320, 2049, b="COPY")[:2], 2048)
    assert blocks(16, 320, 2049, b="COPY") == (2, 1, 2049)


def test_numbers_that_only_a_call_knows() -> None:
    n, few = symbol("n"), symbol("n") - 5000
    assert blocks(n, 320, 289) == (16, 1, 292)
    assert blocks(24, few, 288) == (3, 1, 288) and blocks(24, 320, few)[2] == 1


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((8, 8, 1, 1, 1, 1), (8, 1)),
        ((8, 4, 1, 1, 1, 2), (4, 1)),
        ((8, 8, 1, 1, 1, 3), (3, 1)),
        ((4, 4, 6, 6, 1, 4), (2, 3)),
        ((4, 4, 6, 6, 4, 4), (4, 6)),
        ((100, 100, 1, 1, 1, 3), (34, 1)),
        ((98, 98, 1, 1, 1, 3), (33, 1)),
    ],
)
def test_every_thread_has_about_the_same_to_do(sizes: tuple[int, ...], expected: tuple[int, int]) -> None:
    assert _balanced(*sizes) == expected


def test_a_large_matrix_is_read_by_rows() -> None:
    """Eight of them, over as many columns as have their sums in 12 KiB; no thread has more than its share."""
    assert row_blocks(contraction(8, 3200, 512), TILE, CORE) == Blocking(1, 12, 8)
    assert row_blocks(contraction(8, 320, 7), TILE, CORE) == Blocking(1, 10, 7)
    many, small = (Target("cpu", mcpu="x86-64-v4", num_threads=20, l1_bytes=n) for n in (48 << 10, 1 << 10))
    assert row_blocks(contraction(8, 3200, 512), TILE, many) == Blocking(1, 5, 8)
    assert row_blocks(contraction(8, 3200, 512), TILE, small) == Blocking(1, 1, 8)
    assert row_blocks(contraction(symbol("n"), symbol("m"), symbol("k")), TILE, many) == Blocking(6, 12, 8)


def test_sizes_of_parts() -> None:
    """At most 64 more parts than there have to be."""
    assert _part_sizes(12, 5) == [1, 2, 3, 4] and _part_sizes(200, 200)[:2] == [4, 5] and _part_sizes(200, 200)[-1] == 200


def test_numbers_that_are_set_are_fitted_to_what_there_is() -> None:
    """And to 1 MiB of the panels, and of the sums, on the stack."""
    product, large, huge = contraction(20, 70, 300), contraction(10000, 1 << 20, 1 << 20), contraction(8, 32, 2, inner=1 << 14)
    assert Blocking(9, 9, 999).fitted(product, TILE, False) == Blocking(3, 3, 300)
    assert Blocking(2, 2, 7).fitted(product, TILE, False) == Blocking(2, 2, 7)
    assert Blocking(2, 2, 7).fitted(product, TILE, True) == Blocking(2, 2, 300)
    assert Blocking(9999, 9999, 1 << 12).fitted(large, TILE, False) == Blocking(512, 2, 1 << 12)
    assert Blocking(9999, 9999, 1 << 20).fitted(large, TILE, False) == Blocking(1024, 1, 1 << 13)
    assert Blocking(9999, 9999, 1).fitted(large, TILE, False) == Blocking(1, 8192, 1)
    assert Blocking(1, 1, 9).fitted(huge, TILE, False) == Blocking(1, 1, 1)
    assert Blocking(1, 9, 9).fitted(large, TILE, True) == Blocking(1, 1, 1 << 20)


def test_batches_are_shared_among_threads() -> None:
    """Four threads have half of the rows of one of two batches each; an empty batch is nobody's."""
    four = Target("cpu", mcpu="x86-64-v4", num_threads=4, l1_bytes=48 << 10, l2_bytes=2 << 20)
    assert blocks(64, 32, 288, target=four) == (2, 1, 288)
    assert blocks(64, 32, 288, target=four, batches=2) == (4, 1, 288)
    assert blocks(64, 32, 288, target=four, batches=0) == (2, 1, 288)


@pytest.mark.parametrize(("panel", "low", "following"), [(4, 0, 5000), (7, 0, 4000 + 8 * 32), (7, 8, 8000)])
def test_chunks_follow_panel_by_panel(panel: int, low: int, following: int) -> None:
    """Tasks of four panels of 16 steps, of 1,000 elements: the next panel, the next chunk of 8 steps of the first, the next task."""
    nest: Any = SimpleNamespace(
        blocks=SimpleNamespace(panels=4), tile=TILE, c=SimpleNamespace(depth=16), plan=SimpleNamespace(panel_size=1000)
    )
    nest._panel_start = lambda panel, _: panel * 1000
    task: Any = SimpleNamespace(panels=Index(1), point={})
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("f", ([], [ir.IndexType.get()]))
        with ir.InsertionPoint(function.add_entry_block()):
            found = BlockedNest._next_chunk(nest, task, Index(panel), Index(low), Index(8))
            func.ReturnOp([emit.materialize(found)])
        run_upstream(module.operation, "canonicalize")
        assert f"arith.constant {following} : index" in str(module)
