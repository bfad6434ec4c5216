"""Which tiles and operands GPUs try for a product. Nothing is compiled."""

from types import SimpleNamespace

import pytest

from relayc.dialects.mlir import ir, make_context
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cuda.strategies.hopper.convolution import Axis, _axis, _Position
from relayc.pipelines.targets.cuda.strategies.hopper.operands import is_for_maps
from relayc.pipelines.targets.cuda.strategies.product import operands, problem, strategy
from relayc.pipelines.targets.cuda.strategies.product.instructions import Instruction
from relayc.pipelines.targets.cuda.strategies.product.problem import _step, can_pack
from relayc.pipelines.te.read.access import MergedLoop
from relayc.pipelines.tir.gpu.swizzle import CHUNK_BYTES
from relayc.symbolic import maximum, symbol

TARGET = Target("cuda", arch="sm_80", num_multiprocessors=10)
N = symbol("n")


@pytest.mark.parametrize(
    ("rows", "columns", "by_warps", "by_threads"),
    [
        (1, 5, ([16], [16]), ([16], [16, 32, 64])),
        (16, 64, ([16], [16, 32, 64]), ([16], [16, 32, 64])),
        (17, 65, ([16, 32], [16, 32, 64, 128]), ([16, 32], [16, 32, 64, 128])),
        (300, 16, ([16, 32, 64, 128, 256], [16]), ([16, 32, 64, 128], [16, 32, 64])),
        (16, 300, ([16], [16, 32, 64, 128, 256]), ([16], [16, 32, 64, 128])),
    ],
)
def test_tiles_that_are_tried(rows, columns, by_warps, by_threads, monkeypatch):
    """Less than twice as long as the product; only 16-bit operands and wider ones may lie across the depth."""
    tried, across = [], []
    monkeypatch.setattr(strategy, "_tuned", lambda candidates, *rest: tried.append(candidates))
    monkeypatch.setattr(strategy, "way_of", lambda *given: across.append(given[-1]))
    operand = SimpleNamespace(node=SimpleNamespace(element=None))
    problem = SimpleNamespace(rows=rows, columns=columns, contraction=SimpleNamespace(a=operand, b=operand))
    with make_context():
        for instruction in (Instruction("f16", "f16", 16, "f32"), Instruction("s8", "s8", 8, "i32")):
            strategy._on_tensor_cores(problem, instruction, TARGET, None)
        strategy._by_threads(problem, TARGET, None)
    sizes = [tuple(sorted({getattr(tile, name) for tile in tiles}) for name in ("rows", "columns")) for tiles in tried]
    assert sizes == [by_warps, by_warps, by_threads] and across == [True, True, False, False, True, True]
    assert all(tile.unit_rows <= min(64, tile.rows) and tile.unit_columns <= min(64, tile.columns) for tiles in tried for tile in tiles)


@pytest.mark.parametrize(
    ("sums", "widths", "is_taken"),
    [("f32", (32, 32), True), ("f32", (16, 8), True), ("f32", (64, 32), False), ("f32", (32, 64), False), ("f64", (32, 32), False)],
)
def test_products_that_are_summed_in_f32(sums, widths, is_taken, monkeypatch):
    with make_context():
        a, b, node = (SimpleNamespace(node=SimpleNamespace(element=ir.Type.parse(kind))) for kind in (*(f"i{n}" for n in widths), sums))
        monkeypatch.setattr(strategy, "find", lambda kernel: [SimpleNamespace(node=node.node, a=a, b=b)])
        monkeypatch.setattr(strategy, "problem_of", lambda kernel, contraction: None)
        monkeypatch.setattr(strategy, "_by_threads", lambda *_: "taken")
        assert strategy.schedule_fma(None, TARGET, None) == ("taken" if is_taken else None)


def test_parameters_of_a_size_that_is_known_are_packed(monkeypatch):
    monkeypatch.setattr(problem, "is_param", lambda kernel, node: node.is_param)
    for shape, is_param, checks, packs in (
        ((3, 4), True, (), True),
        ((3, N), True, (), False),
        ((3, 4), False, (), False),
        ((3, 4), True, (1,), False),
    ):
        operand = SimpleNamespace(node=SimpleNamespace(shape=shape, is_param=is_param), checks=checks)
        assert can_pack(None, operand) is packs


@pytest.mark.parametrize(
    ("element", "strides", "constant", "checks", "found"),
    [
        # 16, 8 or 4 bytes that begin at multiples of so many; along the depth, where both directions have as many.
        ("f32", (8, 1), 0, "", (True, 16)),
        ("f32", (6, 1), 0, "", (True, 8)),
        ("f32", (8, 1), 2, "", (True, 8)),
        ("f32", (5, 1), 0, "", (True, 4)),
        ("f32", (1, 8), 0, "", (False, 16)),
        ("f32", (1, 6), 0, "", (False, 8)),
        ("f32", (1, 5), 0, "", (False, 4)),
        ("f32", (1, 1), 0, "", (True, 4)),
        ("f64", (1, 5), 0, "", (False, 8)),
        ("f64", (5, 1), 0, "", (True, 8)),
        ("f16", (1, 3), 0, "", (True, 0)),
        ("f16", (2, 1), 0, "", (True, 4)),
        ("f32", (3, 2), 0, "", (True, 0)),
        # Elements beside the tensor are in no copy of several.
        ("f16", (8, 1), 0, "i", (True, 16)),
        ("f16", (8, 1), 0, "ik", (True, 0)),
        ("f32", (8, 1), 0, "ki", (True, 4)),
        ("f32", (1, 8), 0, "k", (True, 0)),
    ],
)
def test_the_widest_copies_of_an_operand(element, strides, constant, checks, found, monkeypatch):
    i, k = Var(0, 15), Var(0, 31)
    loops = [MergedLoop([i], 16)], [MergedLoop([k], 32)]
    for name, value in (("memory_of", True), ("can_pack", False)):
        monkeypatch.setattr(operands, name, lambda *_, value=value: value)
    with make_context():
        type_ = ir.Type.parse(element)
        offset = Index(constant, dict(zip((i, k), strides, strict=True)))
        operand = SimpleNamespace(
            node=SimpleNamespace(element=type_), offset=offset, checks=[(Index.of({"i": i, "k": k}[c]), 9) for c in checks]
        )
        problem = SimpleNamespace(contraction=SimpleNamespace(a=operand, rows=loops[0]), rows=16, batch=[], reduction=loops[1], kernel=None)
        way = operands.way_of(problem, operand, type_, True, True)
        assert (way.along_depth, way.copied) == found
        assert way.is_read_by_lines(problem) == (way.copied == 0 and strides[0] == 1)
        if not found[0]:  # tiles along the depth alone
            assert operands.way_of(problem, operand, type_, True, False).copied == 0
        assert operands.way_of(problem, operand, type_, False, True).copied == 0


@pytest.mark.parametrize(
    ("element", "depth", "rows", "takes_lines", "found"),
    [
        ("f16", 32, 16, True, (True, True, 16)),
        ("f16", 33, 16, True, (True, False, 16)),
        ("f16", 33, 16, False, (False, True, 0)),
        ("f16", 33, 15, True, (False, True, 0)),
        ("f32", 33, 15, True, (False, True, 4)),  # as wide without it
        ("f32", 34, 15, True, (True, True, 8)),
        ("f16", 36, 16, True, (True, False, 16)),
        ("f16", 36, 16, False, (True, True, 8)),
        ("f16", 36, 20, True, (True, True, 8)),
        ("i8", 36, 20, False, (True, True, 4)),
    ],
)
def test_a_parameter_is_packed_where_its_copies_become_wider(element, depth, rows, takes_lines, found, monkeypatch):
    """Along the depth, unless only the lines across it divide into wider copies. One that is padded has whole chunks along the depth."""
    i, k = Var(0, rows - 1), Var(0, depth - 1)
    loops = [MergedLoop([i], rows)], [MergedLoop([k], depth)]
    for name in ("memory_of", "can_pack"):
        monkeypatch.setattr(operands, name, lambda *_: True)
    monkeypatch.setattr(operands.Packing, "reading", lambda *_, **__: "lines")
    with make_context():
        type_ = ir.Type.parse(element)
        node, strides = SimpleNamespace(element=type_, shape=(rows, depth)), {i: 3 * depth, k: 3 if element != "f32" else 1}
        operand = SimpleNamespace(
            node=node, offset=Index(1 if element == "f32" else 0, strides), checks=[], indices=[Index.of(i), Index.of(k)]
        )
        contraction = SimpleNamespace(a=operand, rows=loops[0], batch=[])
        problem = SimpleNamespace(contraction=contraction, rows=rows, batch=[], reduction=loops[1], kernel=None, depth=depth)
        way = operands.way_of(problem, operand, type_, True, takes_lines)
        assert (way.is_packed, way.along_depth, way.copied) == found
        assert way.packing is None
        padded = operands.way_of(problem, operand, type_, True, takes_lines, pads=True)
        chunk = CHUNK_BYTES * 8 // type_.width
        assert (padded.is_packed, padded.along_depth, padded.copied, padded.packing) == (True, True, CHUNK_BYTES, "lines")
        assert padded.pitch % chunk == 0 and depth <= padded.pitch < depth + chunk


def test_the_step_of_an_index():
    """The largest power of two up to 16 that divides all of it."""
    v, fours = Var(0, 9), Var(0, 36, step=4)
    for const, factor, var, step in (
        (0, 16, v, 16),
        (0, 32, v, 16),
        (4, 16, v, 4),
        (16, 4, v, 4),
        (8, 12, v, 4),
        (1, 16, v, 1),
        (0, 2, fours, 8),
    ):
        assert _step(Index(const, {var: factor})) == step
    assert _step(Index(16, {v: N})) == 1


def test_axes_of_convolutions_are_of_numbers():
    pixel, tap, others = Var(0, 6), Var(0, 2), Var.below(N)
    axis_of = lambda const, pixel, stride: _axis(_Position(const, {pixel: stride, tap: 2}), 20, [pixel], [tap])  # noqa: E731
    assert axis_of(-1, pixel, 3) == Axis(20, 7, 3, 3, 2, -1)
    assert axis_of(-1, others, 3) is axis_of(N, pixel, 3) is axis_of(-1, pixel, N) is None


def test_operands_that_boxes_are_copied_of():
    """A batch, a line and the depth, or fewer of them, each with steps forward in memory, in whole chunks; or a packed operand."""

    def is_taken(batch=1, lines=1, steps=1, depth=8, strides=(512, 64, 1), copied=CHUNK_BYTES, checks=(), packing=None):
        loops = [[SimpleNamespace(var=Var(0, 7)) for _ in range(count)] for count in (batch, lines, steps)]
        factors = [(loop.var, stride) for some, stride in zip(loops, strides, strict=True) for loop in some]
        operand = SimpleNamespace(offset=Index(0, dict(factors)), checks=checks)
        problem = SimpleNamespace(batch=loops[0], reduction=loops[2], depth=depth)
        return is_for_maps(problem, SimpleNamespace(loops=loops[1], copied=copied, operand=operand, packing=packing))

    for case, expected in (
        ({}, True),
        ({"batch": 0, "lines": 0}, True),
        ({"batch": 2}, False),
        ({"lines": 2}, False),
        ({"steps": 2}, False),
        ({"depth": 1}, True),
        ({"depth": maximum(N, 1)}, True),
        ({"depth": maximum(N, 0)}, False),
        ({"strides": (512, -64, 1)}, False),
        ({"strides": (0, 64, 1)}, False),
        ({"strides": (1, 1, 1)}, True),
        ({"copied": CHUNK_BYTES // 2}, False),
        ({"checks": (1,)}, False),
        ({"packing": "any", "strides": (0, 0, 0)}, True),
        ({"packing": "any", "batch": 2}, False),
        ({"packing": "any", "depth": 0}, False),
    ):
        assert is_taken(**case) is expected, case
