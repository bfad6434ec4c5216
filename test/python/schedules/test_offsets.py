"""Reads at an offset: stencils, convolutions by offsets and a blur in two steps are blocks without copies, whose schedules give what numpy
gives."""

import numpy as np
import pytest

import relayc
from relayc import te
from relayc.dialects.relay import IRModule
from relayc.pipelines.evaluate.tir import run
from relayc.tir import Schedule


def _numbers(*shape: int) -> np.ndarray:
    """Small integers, so that sums are exact in any order."""
    return np.random.default_rng(sum(shape)).integers(-3, 4, shape).astype(np.float32)


def _compiled(s: Schedule, mod: IRModule, inputs: list[np.ndarray], wanted: np.ndarray, sizes: dict[str, int]) -> None:
    (found,) = run(s.mod, inputs, sizes)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(relayc.compile_kernel(mod, schedule=s.trace)(*inputs), wanted)


def _names(s: Schedule) -> list[str]:
    return [block.name for block in s.get_blocks()]


@pytest.mark.parametrize("is_symbolic", [False, True])
def test_stencil_of_five_points(is_symbolic: bool) -> None:
    n = te.var("n") if is_symbolic else 21
    a = te.placeholder((n, 34), name="A")

    def around(i: te.Var, j: te.Var) -> te.Expr:
        return a[i, j + 1] + a[i + 1, j] + a[i + 2, j + 1] + a[i + 1, j + 2] - 4.0 * a[i + 1, j + 1]

    mod = te.create_prim_func([a, te.compute((n - 2, 32), around, name="B")])
    s = Schedule(mod)
    assert _names(s) == ["B"]
    i, j = s.get_loops("B")
    rows, _ = s.split(i, [None, 4])
    _, lanes = s.split(j, [None, 8])
    s.parallel(rows)
    s.vectorize(lanes)
    x = _numbers(21, 34)
    wanted = x[:-2, 1:-1] + x[1:-1, :-2] + x[2:, 1:-1] + x[1:-1, 2:] - 4 * x[1:-1, 1:-1]
    _compiled(s, mod, [x], wanted, {"n": 21} if is_symbolic else {})


@pytest.mark.parametrize("stride", [1, 2])
def test_convolution_by_offsets(stride: int) -> None:
    a, w = te.placeholder((64 * stride + 2,), name="A"), te.placeholder((3,), name="W")
    b = te.compute((64,), lambda i: sum((a[stride * i + k] * w[k] for k in range(1, 3)), a[stride * i] * w[0]), name="B")
    mod = te.create_prim_func([a, w, b])
    s = Schedule(mod)
    assert _names(s) == ["B"]
    s.cache_read("B", 0, "local")
    outer, lanes = s.split("i", [None, 16])
    s.compute_at("A_local", outer)
    s.vectorize(lanes)
    x, weights = _numbers(64 * stride + 2), _numbers(3)
    wanted = np.convolve(x, weights[::-1], "valid")[::stride][:64]
    _compiled(s, mod, [x, weights], wanted, {})


@pytest.mark.parametrize("is_symbolic", [False, True])
def test_blur_in_two_steps(is_symbolic: bool) -> None:
    h, w = (te.var("h"), te.var("w")) if is_symbolic else (18, 34)
    a = te.placeholder((h, w), name="A")
    across = te.compute((h, w - 2), lambda i, j: a[i, j] + a[i, j + 1] + a[i, j + 2], name="H")
    down = te.compute((h - 2, w - 2), lambda y, x: across[y, x] + across[y + 1, x] + across[y + 2, x], name="V")
    mod = te.create_prim_func([a, down])
    s = Schedule(mod)
    assert _names(s) == ["H", "V"]
    strip, _ = s.split("y", [None, 4])
    _, lanes = s.split("x", [None, 8])
    s.vectorize(lanes)
    s.compute_at("H", strip)
    assert s.get_loops("H")[0] == strip
    s.parallel(strip)
    x = _numbers(18, 34)
    rows = x[:, :-2] + x[:, 1:-1] + x[:, 2:]
    _compiled(s, mod, [x], rows[:-2] + rows[1:-1] + rows[2:], {"h": 18, "w": 34} if is_symbolic else {})


def test_offsets_from_a_size() -> None:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    mod = te.create_prim_func([a, te.compute((n // 2,), lambda i: a[2 * i] - a[i + n // 2], name="B")])
    s = Schedule(mod)
    assert _names(s) == ["B"]
    s.split("i", [None, 4])
    x = _numbers(19)
    _compiled(s, mod, [x], x[:18:2] - x[9:18], {"n": 19})
