"""The strategy `loops` on rows of known and unknown length: elementwise computations and reductions, with numpy as the reference."""

from collections.abc import Callable

import numpy as np
import pytest

import relayc
from relayc import te
from relayc.dialects.mlir import ir
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.target import Target
from relayc.pipelines.tir.strategy.choice import schedule_kernel
from relayc.pipelines.tir.strategy.table import tuning_for

Shape = tuple[int, ...]


def softmax(axis: int, shape: tuple[te.Var | int, ...]) -> IRModule:
    x = te.placeholder(shape, name="X")
    outer = tuple(e for d, e in enumerate(shape) if d != axis)
    k, r = te.reduce_axis((0, shape[axis]), "k"), te.reduce_axis((0, shape[axis]), "r")

    def whole(step: te.Expr) -> Callable[..., tuple[te.Expr, ...]]:
        return lambda *i: (*i[:axis], step, *i[axis:])

    def rest(i: tuple[te.Expr, ...]) -> tuple[te.Expr, ...]:
        return (*i[:axis], *i[axis + 1 :])

    most = te.compute(outer, lambda *i: te.max(x(*whole(k)(*i)), axis=k), name="most")
    power = te.compute(shape, lambda *i: te.exp(x(*i) - most(*rest(i))), name="power")
    total = te.compute(outer, lambda *i: te.sum(power(*whole(r)(*i)), axis=r), name="total")
    return te.create_prim_func([x, te.compute(shape, lambda *i: power(*i) / total(*rest(i)), name="Y")])


def softmax_of(axis: int) -> Callable[[np.ndarray], np.ndarray]:
    def reference(x: np.ndarray) -> np.ndarray:
        powers = np.exp(x.astype(float) - x.max(axis, keepdims=True, initial=-np.inf))
        return powers / powers.sum(axis, keepdims=True)

    return reference


def deviation(_: int, shape: tuple[te.Var | int, ...]) -> IRModule:
    """Of each row from its sum, and the sum of the squares of all, as two results."""
    x = te.placeholder(shape, name="X")
    k, r, q = (te.reduce_axis((0, e), n) for e, n in ((shape[-1], "k"), (shape[0], "r"), (shape[1], "q")))
    total = te.compute((shape[0],), lambda i: te.sum(x[i, k], axis=k), name="total")
    y = te.compute(shape, lambda i, j: x[i, j] - total[i], name="Y")
    return te.create_prim_func([x, y, te.compute((), lambda: te.sum(x[r, q] * x[r, q], axis=[r, q]), name="Z")])


def deviation_of(_: int) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    return lambda x: (x - x.astype(float).sum(1, keepdims=True), (x.astype(float) ** 2).sum())


def largest(_: int, shape: tuple[te.Var | int, ...]) -> IRModule:
    """Of each row of bytes."""
    x = te.placeholder(shape, dtype="int8", name="X")
    k = te.reduce_axis((0, shape[1]), "k")
    return te.create_prim_func([x, te.compute((shape[0],), lambda i: te.max(x[i, k], axis=k), name="Y")])


def largest_of(_: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: x.max(1, initial=-128)


def shifted(_: int, shape: tuple[te.Var | int, ...]) -> IRModule:
    """Rows with one added to all of them."""
    x, z = te.placeholder(shape, name="X"), te.placeholder(shape[-1:], name="Z")
    return te.create_prim_func([x, z, te.compute(shape, lambda i, j: te.max(x[i, j] + z[j], 0.0), name="Y")])


def shifted_of(_: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return lambda x, z: np.maximum(x + z, 0)


CASES = {
    "softmax": (softmax, softmax_of, -1),
    "softmax of columns": (softmax, softmax_of, 0),
    "deviation": (deviation, deviation_of, 0),
    "largest": (largest, largest_of, 0),
    "shifted": (shifted, shifted_of, 0),
}
SHAPES = [(1, 1), (3, 8), (5, 130), (40, 49), (7, 1000), (130, 301), (70, 3000)]


def check(name: str, symbols: str, shapes: list[Shape]) -> None:
    """One kernel, whose dimensions `symbols` names, at several shapes. Sums of 3000 numbers are off by some of their last bits."""
    make, reference, axis = CASES[name]
    dims = [te.var(s) if s.isalpha() else n for s, n in zip(symbols, shapes[0], strict=True)]
    kernel = relayc.compile_kernel(make(axis % 2, tuple(dims)), tuning={"strategy": "loops"}, num_threads=2)
    for i, shape in enumerate(shapes):
        rng = np.random.default_rng(i)
        x = rng.standard_normal(shape, np.float32) if name != "largest" else rng.integers(-128, 127, shape, np.int8)
        given = (x, rng.standard_normal(shape[-1:], np.float32)) if name == "shifted" else (x,)
        found, expected = kernel(*given), reference(axis)(*given)
        both = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
        for one, wanted in both:
            np.testing.assert_allclose(one, wanted, rtol=3e-5, atol=1e-3 if name == "deviation" else 1e-6, err_msg=f"{shape}")


@pytest.mark.parametrize("name", CASES)
def test_known_shapes(name: str) -> None:
    for shape in SHAPES:
        check(name, "00", [shape])


@pytest.mark.parametrize("name", CASES)
def test_symbolic_shapes(name: str) -> None:
    """Also those without elements, where a sum is what it starts from."""
    check(name, "nm", [*SHAPES, (3, 0) if name != "softmax of columns" else (1, 3), (0, 3)])
    check(name, "n0", [(5, 130), (1, 130), (301, 130)])


def test_what_is_read_elsewhere_too_is_not_kept_in_the_result() -> None:
    """Exponentials as parts of the sum of their row, and the first one of the row added to each."""
    x, k = te.placeholder((5, 130), name="X"), te.reduce_axis((0, 130), "k")
    power = te.compute((5, 130), lambda i, j: te.exp(x[i, j]), name="power")
    total = te.compute((5,), lambda i: te.sum(power[i, k], axis=k), name="total")
    made = te.create_prim_func([x, te.compute((5, 130), lambda i, j: power[i, j] / total[i] + power[i, 0], name="Y")])
    kernel = relayc.compile_kernel(made, tuning={"strategy": "loops"})
    given = np.random.default_rng(0).standard_normal((5, 130), np.float32)
    powers = np.exp(given.astype(float))
    np.testing.assert_allclose(kernel(given), powers / powers.sum(1, keepdims=True) + powers[:, :1], rtol=3e-5)


def test_reductions_of_what_another_one_computes_are_left_to_others() -> None:
    x, r, k = te.placeholder((3, 4, 5), name="X"), te.reduce_axis((0, 5), "r"), te.reduce_axis((0, 4), "k")
    most = te.compute((3, 4), lambda i, j: te.max(x[i, j, r], axis=r), name="most")
    kernel = te.create_prim_func([x, te.compute((3,), lambda i: te.sum(most[i, k], axis=k), name="Y")])
    with pytest.raises(ValueError, match="strategy loops: expected a kernel that it takes, found @main"):
        relayc.compile_kernel(kernel, tuning={"strategy": "loops"})
    given = np.random.default_rng(0).standard_normal((3, 4, 5), np.float32)
    np.testing.assert_allclose(relayc.compile_kernel(kernel)(given), given.max(2).sum(1), rtol=1e-5, atol=1e-6)


def scheduled(kernel: IRModule, target: Target) -> str:
    """A kernel in the tir stage."""
    (function,) = kernel.module.body.operations
    with kernel.context, ir.Location.unknown():
        made = ir.Module.create()
        with ir.InsertionPoint(made.body):
            schedule_kernel(function, target, tuning_for("main", {}))
        return str(made)


@pytest.mark.parametrize(("mcpu", "masked"), [("x86-64", []), ("x86-64-v3", ["float32"]), ("x86-64-v4", ["float32", "int8"])])
def test_vectors_are_masked_where_the_target_masks_such_elements(mcpu: str, masked: list[str]) -> None:
    n, m = te.var("n"), te.var("m")
    for dtype in ("float32", "int8"):
        x, k = te.placeholder((n, m), dtype=dtype, name="X"), te.reduce_axis((0, m), "k")
        squares = te.compute((n, m), lambda i, j: x[i, j] * x[i, j], name="Y")  # noqa: B023
        most = te.compute((n,), lambda i: te.max(x[i, k], axis=k), name="Y")  # noqa: B023
        for y in (squares, most):
            text = scheduled(te.create_prim_func([x, y]), Target("cpu", mcpu=mcpu))
            assert ("vector.maskedload" in text) == (dtype in masked), f"{dtype} {y}"
            assert ("memref.load %arg0" in text) == (dtype not in masked), f"{dtype} {y}"


def test_rows_of_a_vector_or_less_are_no_loops() -> None:
    text = scheduled(softmax(1, (te.var("n"), te.var("m"))), Target("cpu", mcpu="x86-64-v4"))
    short, _, others = text.partition("} else {")
    assert "scf.parallel" in short and "scf.for" not in short and "scf.for" in others


def test_vectors_and_masks_are_those_of_all_elements() -> None:
    """Bytes that become floats have as many lanes as floats, and AVX2 has no masks of bytes."""
    x = te.placeholder((te.var("n"), te.var("m")), dtype="int8", name="X")
    floats = te.compute(x.shape, lambda i, j: x[i, j].astype("float32"), name="Y")
    text = scheduled(te.create_prim_func([x, floats]), Target("cpu", mcpu="x86-64-v3"))
    assert "vector<8xf32>" in text and "vector<32xf32>" not in text and "vector.masked" not in text
