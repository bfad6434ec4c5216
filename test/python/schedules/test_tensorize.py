"""Tensor intrinsics: what they fit, and where they differ."""

from collections.abc import Callable, Iterator, Sequence

import pytest
from schedules.te_kernels import dense

from relayc import te
from relayc.dialects.relay import IRModule
from relayc.pipelines.tir.editing.intrinsics import TensorIntrin
from relayc.pipelines.tir.primitives.matching import Match, match_block
from relayc.tir import Schedule, ScheduleError, T, from_source, prim_func, replay


def product(m: int, n: int, k: "int | te.Var", transposed: bool = False, swapped: bool = False) -> IRModule:
    """A tile of a product, as te."""
    a = te.placeholder((m, k), name="a")
    b = te.placeholder((n, k) if transposed else (k, n), name="b")
    over = te.reduce_axis((0, k), name="k")

    def element(i: te.Tensor, j: te.Tensor) -> te.Tensor:
        right = b[j, over] if transposed else b[over, j]
        return te.sum(right * a[i, over] if swapped else a[i, over] * right, axis=over)

    return te.create_prim_func([a, b, te.compute((m, n), element, name="c")])


@pytest.fixture(scope="module", autouse=True)
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


def window(dilation: int) -> IRModule:
    """Sums of 3 products along a line, between neighbours or further apart."""
    x, w, tap = te.placeholder((8 + 2 * dilation,), name="x"), te.placeholder((3,), name="w"), te.reduce_axis((0, 3), "tap")
    return te.create_prim_func([x, w, te.compute((8,), lambda i: te.sum(x[i + tap * dilation] * w[tap], axis=tap), name="y")])


def test_a_window_whose_elements_are_further_apart() -> None:
    TensorIntrin.register("window", window(1), lambda call: None)
    Schedule(window(1)).tensorize("i", "window")
    with pytest.raises(ScheduleError, match=r"x: expected indices \[.*\b1\*tap.*\], found x\[.*\b2\*tap.*\]"):
        Schedule(window(2)).tensorize("i", "window")


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


def test_a_guard_around_a_tile_and_a_tile_of_fewer_rows() -> None:
    s = tiled()
    s.split("j_0", [None, 3])  # of 2
    s.tensorize("i_1", "tile")
    dense().check(s)
    TensorIntrin.register("fewer", product(8, 5, 3), lambda call: None, partial={"rows": {"i": 1}})
    s = tiled()
    s.tensorize("i_1", "fewer")
    found = matched(s, "C_o", "fewer")
    assert (found.counts, found.partial, found.extents) == ({"rows": 7}, {}, {"i": 8, "j": 5, "k": 3})
    for shape, words in (({"rows": 7, "columns": 4}, "j_1: expected an extent of 5, found 4"), ({"depth": 2}, "k_1: .* of 3, found 2")):
        with pytest.raises(ScheduleError, match=words):
            tiled(**shape).tensorize("i_1", "fewer")


def test_one_of_two_reductions_is_in_the_tile() -> None:
    """The tile adds to what steps of the other one gave."""
    source = from_source("""
def main(x: T.Buffer((8, 12), "float32"), z: T.Buffer((8,), "float32"), y: T.Buffer((4,), "float32")):
    for k in range(2):
        with T.block("y"):
            vk = T.axis.reduce(2, k)
            for i, j in T.grid(4, 6):
                with T.block("inner"):
                    wk = T.axis.reduce(2, vk)
                    vi, vj = T.axis.remap("SR", [i, j])
                    with T.init():
                        y[vi] = 0.0
                    y[vi] = y[vi] + x[wk * 4 + vi, vj] * z[wk * 4 + vi]
""")
    TensorIntrin.register("totals", _total(), lambda call: None, override=True)
    assert matched(Schedule(source), "y", "totals").accumulates


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


def pointwise(
    element: Callable[..., object], dtype: str = "float32", shape: tuple[int, ...] = (4, 6), given: Sequence[object] = (8, 12)
) -> IRModule:
    """y of what `element` gives of x and z, which are larger, at each index."""
    x, z = te.placeholder(given, dtype, name="x"), te.placeholder((8,), dtype, name="z")
    return te.create_prim_func([x, z, te.compute(shape, lambda *at: element(x, z, *at), name="y")])


def _in_place() -> IRModule:
    return from_source("""
def main(x: T.Buffer((8, 12), "float32"), z: T.Buffer((8,), "float32"), y: T.Buffer((4, 6), "float32")):
    t = T.alloc_buffer((8, 12))
    for i, j in T.grid(4, 6):
        with T.block("y"):
            vi, vj = T.axis.remap("SS", [i, j])
            t[vi, vj] = t[vi, vj] * z[vi]
    for p, q in T.grid(4, 6):
        with T.block("last"):
            vi, vj = T.axis.remap("SS", [p, q])
            y[vi, vj] = t[vi, vj] + x[vi, vj]
""")


def _total() -> IRModule:
    return from_source("""
def main(x: T.Buffer((8, 12), "float32"), z: T.Buffer((8,), "float32"), y: T.Buffer((4,), "float32")):
    for i, j in T.grid(4, 6):
        with T.block("y"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                y[vi] = 0.0
            y[vi] = y[vi] + x[vi, vj] * z[vi]
""")


@prim_func(accumulates=True)
def _added(x: T.Buffer((8, 12), "float32"), z: T.Buffer((8,), "float32"), y: T.Buffer((4,), "float32")):
    for i, j in T.grid(4, 6):
        with T.block("y"):
            vi, vj = T.axis.remap("SR", [i, j])
            y[vi] = y[vi] + x[vi, vj] * z[vi]


@prim_func
def _repeated(x: T.Buffer((8, 12), "float32"), z: T.Buffer((8,), "float32"), y: T.Buffer((4, 6), "float32")):
    for _o, i, j in T.grid(2, 4, 6):
        with T.block("y"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = x[vi, vj] * z[vi]


@prim_func
def _of_rows(x: T.Buffer(("rows", 12), "float32"), z: T.Buffer((8,), "float32"), y: T.Buffer((4, 6), "float32")):
    for i, j in T.grid(4, 6):
        with T.block("y"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = x[vi, vj] * z[vi]


def scaled(x: te.Tensor, z: te.Tensor, i: te.Var, j: te.Var) -> object:
    return x[i, j] * z[i]


BODIES: dict[str, tuple[Callable[[], IRModule], Callable[[], IRModule], str]] = {
    "the same": (lambda: pointwise(scaled), lambda: pointwise(scaled), ""),
    "operands in another order": (lambda: pointwise(scaled), lambda: pointwise(lambda x, z, i, j: z[i] * x[i, j]), ""),
    "another row": (lambda: pointwise(scaled), lambda: pointwise(lambda x, z, i, j: x[i + 2, j + 3] * z[i + 1]), ""),
    "an index as a number": (
        lambda: pointwise(lambda x, z, i, j: scaled(x, z, i, j) * (i + 1).astype("float32")),
        lambda: pointwise(lambda x, z, p, q: scaled(x, z, p, q) * (p + 1).astype("float32")),
        "",
    ),
    "another index as a number": (
        lambda: pointwise(lambda x, z, i, j: scaled(x, z, i, j) * (i + 1).astype("float32")),
        lambda: pointwise(lambda x, z, p, q: scaled(x, z, p, q) * (q + 1).astype("float32")),
        "expected the number .*, found ",
    ),
    "another operation": (
        lambda: pointwise(scaled),
        lambda: pointwise(lambda x, z, i, j: x[i, j] + z[i]),
        "expected arith.mulf, found arith.addf",
    ),
    "another constant": (
        lambda: pointwise(lambda x, z, i, j: x[i, j] * z[i] - 1.0),
        lambda: pointwise(lambda x, z, i, j: x[i, j] * z[i] - 2.0),
        "expected 1.0.*, found 2.0",
    ),
    "operands of - in another order": (
        lambda: pointwise(lambda x, z, i, j: x[i, j] - z[i]),
        lambda: pointwise(lambda x, z, i, j: z[i] - x[i, j]),
        "x: expected that its last dimension is contiguous in z",
    ),
    "another dtype": (lambda: pointwise(scaled, "float64"), lambda: pointwise(scaled), "y: expected f64, found f32 of y"),
    "values of another dtype": (
        lambda: pointwise(lambda x, z, i, j: (x[i, j] * z[i]).astype("float32"), "float16"),
        lambda: pointwise(lambda x, z, i, j: (x[i, j] * z[i]).astype("float32"), "bfloat16"),
        "expected a value of f16, found one of bf16",
    ),
    "two places": (
        lambda: pointwise(lambda x, z, i, j: x[i, j] * x[i, j] + z[i]),
        lambda: pointwise(lambda x, z, i, j: x[i, j] * x[i, j + 1] + z[i]),
        "x: expected one place for all its uses, found x",
    ),
    "two results": (
        lambda: _two_results(),
        lambda: pointwise(scaled),
        "expected 2 stores, found 1",
    ),
    "a tensor that is not used": (
        lambda: pointwise(lambda x, z, i, j: x[i, j] * 2.0),
        lambda: pointwise(lambda x, z, i, j: x[i, j] * 2.0),
        "expected that z is used",
    ),
    "rows that are fused": (
        lambda: pointwise(scaled),
        lambda: pointwise(lambda x, z, i, j: x[i // 2, j] * z[i]),
        "expected linear indices of x, found",
    ),
    "every other row": (
        lambda: pointwise(lambda x, z, i, j: x[i * 2, j] * z[i]),
        lambda: pointwise(lambda x, z, i, j: x[i * 2, j] * z[i]),
        "x: expected a description with an iterator of its own for dimension 0, found ",
    ),
    "rows of a number that no loop has": (
        lambda: _of_rows,
        lambda: pointwise(scaled),
        "expected the extent of a loop that is rows, found none",
    ),
    "a result in the place of an operand": (
        lambda: pointwise(scaled),
        _in_place,
        "expected y and x in different buffers, found one for both",
    ),
    "a reduction": (lambda: pointwise(scaled), lambda: _total(), "loop j: expected a parallel one, found that it is reduction"),
    "a reduction that only adds": (lambda: _added, lambda: _total(), "expected no reduction, found one"),
    "a reduction that starts": (lambda: _total(), lambda: _total(), ""),
    "a reduction that starts otherwise": (
        lambda: _total(),
        lambda: str(_total()).replace("constant 0.0", "constant 1.0"),
        "expected .*0.0.*, found .*1.0",
    ),
    "a loop along which nothing moves": (
        lambda: _repeated,
        lambda: pointwise(scaled),
        "expected a description with an iterator for each loop, found none of _o",
    ),
}


def _two_results() -> IRModule:
    x, z = te.placeholder((8, 12), name="x"), te.placeholder((8,), name="z")
    return te.create_prim_func([x, z, *te.compute((4, 6), lambda i, j: (x[i, j] * z[i], x[i, j] + z[i]), name="y")])


@pytest.mark.parametrize("case", BODIES)
def test_bodies_are_compared(case: str) -> None:
    description, block, words = BODIES[case]
    TensorIntrin.register("probe", description(), lambda call: None, override=True)
    s = Schedule(block())
    loop = s.get_loops("y")[0]
    if not words:
        assert str(s.tensorize(loop, "probe")) == "y_o"
        return
    with pytest.raises(ScheduleError, match=words):
        s.tensorize(loop, "probe")
