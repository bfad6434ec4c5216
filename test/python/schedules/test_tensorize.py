"""Tensor intrinsics: what they fit, and where they differ."""

from collections.abc import Callable, Iterator

import pytest
from schedules.te_kernels import dense

from relayc import te
from relayc.dialects.relay import IRModule
from relayc.pipelines.tir.editing.intrinsics import TensorIntrin
from relayc.pipelines.tir.primitives.matching import Match, match_block
from relayc.tir import Schedule, ScheduleError, replay


def product(m: int, n: int, k: "int | te.Var", transposed: bool = False, swapped: bool = False) -> IRModule:
    """A tile of a product, as te."""
    a = te.placeholder((m, k), name="a")
    b = te.placeholder((n, k) if transposed else (k, n), name="b")
    over = te.reduce_axis((0, k), name="k")

    def element(i: te.Tensor, j: te.Tensor) -> te.Tensor:
        right = b[j, over] if transposed else b[over, j]
        return te.sum(right * a[i, over] if swapped else a[i, over] * right, axis=over)

    return te.create_prim_func([a, b, te.compute((m, n), element, name="c")])


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    before = dict(TensorIntrin._REGISTRY)
    TensorIntrin.register("tile", product(7, 5, 3, swapped=True), lambda call: None)
    TensorIntrin.register("columns", product(7, 5, te.size_var("depth")), lambda call: None, starts=True)
    TensorIntrin.register("transposed", product(7, 5, 3, transposed=True), lambda call: None)
    x = te.placeholder((7, 5), name="x")
    TensorIntrin.register("halves", te.create_prim_func([x, te.compute((7, 5), lambda i, j: x[i, j] * 0.5)]), lambda call: None)
    yield
    TensorIntrin._REGISTRY.clear()
    TensorIntrin._REGISTRY.update(before)


def tiled(rows: int = 7, columns: int = 5, depth: int | None = 3) -> Schedule:
    """The product of 7 by 10, over 6, in tiles whose loops are i_1, j_1 and k_1 (k where it is not split)."""
    s = Schedule(dense().mod)
    s.split("i", [None, rows])
    s.split("j", [None, columns])
    if depth is not None:
        s.split("k", [None, depth])
    s.reorder("i_0", "j_0", *(["k_0"] if depth is not None else []), "i_1", "j_1")
    return s


def matched(s: Schedule, block: str, name: str) -> Match:
    with s.mod.context:
        nest = s.nest
        return match_block(nest, nest.blocks()[block], TensorIntrin.get(name))


def test_a_tile_of_a_reduction_that_goes_on() -> None:
    s = tiled()
    block = s.tensorize("i_1", "tile")
    assert str(block) == "C_o" and 'tensor_intrin = "tile"' in str(s.mod)
    dense().check(s)
    assert str(replay(s.trace, dense().mod)) == str(s.mod)
    found = matched(s, "C_o", "tile")
    assert found.accumulates
    with s.mod.context:
        a, b, c = found.operands
        names = {o.name: s.nest.buffer_name(o.buffer) for o in found.operands}
    assert names == {"a": "A", "b": "B", "c": "C"}
    assert (a.shape, b.shape, c.shape) == ((7, 3), (3, 5), (7, 5))
    assert (a.steps, c.is_output, b.strides((10, 1))) == (((1, 0), (0, 1)), True, (10, 1))
    assert [str(i) for i in b.low] == ["3*v2 + 0", "5*v1 + 0"]


def test_a_symbol_fits_any_extent() -> None:
    s = tiled(depth=None)
    s.tensorize("i_1", "columns")
    dense().check(s)
    found = matched(s, "C_o", "columns")
    assert (dict(found.sizes), found.accumulates) == ({"depth": 6}, False)


def test_a_block_that_is_one_already() -> None:
    s = tiled()
    assert s.tensorize(s.blockize("i_1"), "tile").name == "C_o"
    dense().check(s)
    with pytest.raises(ScheduleError, match="block C_o: expected a block whose body may change, found one of the tensor intrinsic tile"):
        s.transform_layout("C_o", "C", lambda i, j: [j, i])


def test_a_packed_operand() -> None:
    s = tiled()
    packed = s.cache_read("C", "B", "global")
    s.transform_layout("C", ("read", str(packed)), lambda k, j: [j // 5, k, j % 5])
    with pytest.raises(ScheduleError, match=r"b: expected .*indices"):
        s.tensorize("i_1", "transposed")
    s.tensorize("i_1", "tile")
    dense().check(s)
    with s.mod.context:
        found = matched(s, "C_o", "tile").operands[1]
    assert found.steps == ((0, 1, 0), (0, 0, 1)) and found.strides((30, 5, 1)) == (5, 1)


DIFFERENT: dict[str, tuple[Callable[[], Schedule], str, str, str]] = {
    "unknown": (tiled, "i_1", "nothing", "expected a tensor intrinsic that is registered, out of .*columns.*, found 'nothing'"),
    "loops": (tiled, "j_1", "tile", r"expected 3 loops \(i of 7, j of 5, k of 3\), found j_1 of 5, k_1 of 3"),
    "extents": (lambda: tiled(columns=2), "i_1", "tile", "loop j_1: expected an extent of 5, found 2"),
    "guards": (lambda: tiled(depth=4), "i_1", "columns", "expected a tile that is always full, found one that ends at 6"),
    "contiguity": (tiled, "i_1", "transposed", "b: expected that its last dimension is contiguous"),
    "operations": (lambda: _pointwise(), "x_1", "halves", "expected .*, found .*"),
}


def _pointwise() -> Schedule:
    s = Schedule(dense().mod)
    s.split("x", [1, 7])
    s.split("y", [2, 5])
    s.reorder("x_0", "y_0", "x_1", "y_1")
    return s


@pytest.mark.parametrize("case", DIFFERENT)
def test_what_differs_is_told(case: str) -> None:
    make, loop, name, words = DIFFERENT[case]
    s = make()
    before = str(s.mod)
    with pytest.raises(ScheduleError, match=words):
        s.tensorize(loop, name)
    assert str(s.mod) == before


def test_descriptions_are_checked() -> None:
    with pytest.raises(ScheduleError, match="tensor intrinsic tile: expected a name that is free"):
        TensorIntrin.register("tile", product(2, 2, 2), lambda call: None)
    with pytest.raises(ScheduleError, match="tensor intrinsic many: description: expected one block, found C, D, R"):
        TensorIntrin.register("many", dense().mod, lambda call: None)
    with pytest.raises(ScheduleError, match="tensor intrinsic text: description: expected a module of the te stage"):
        TensorIntrin.register("text", "no module", lambda call: None)
