"""Elementwise kernels, movements, reductions, scans and sorts at sizes around the limits of their kernels, against numpy."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from accuracy import UNIT, bound_of
from limits import Case, cases_of, check, rounded

from relayc.dialects.mlir import ir, make_context
from relayc.dialects.relay import build
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cpu.strategies.loops.nest import Nest
from relayc.pipelines.targets.cpu.strategies.loops.transpose import Turned, find_turned, smaller_tiles
from relayc.pipelines.te.read.access import MergedLoop
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Range, Ranges, evaluate, symbol

NM = ("n, m",)
F32 = UNIT["float32"]


def case(
    name: str,
    shapes: Sequence[str],
    expected: Callable[..., Any],
    dtype: str | Sequence[str] = "float32",
    bound: "Callable[..., np.ndarray | float] | None" = None,
    strategy: str = "loops",
    lows: "dict[str, int] | None" = None,
    make: "Callable[..., np.ndarray] | None" = None,
    attrs: "dict[str, Any] | None" = None,
    **more: Any,
) -> Case:
    """One operator; `bound` of the arrays and the result, 0 where none is given. References of floats are computed in float64."""
    dtypes = [dtype] * len(shapes) if isinstance(dtype, str) else dtype

    def reference(*arrays: np.ndarray) -> tuple[np.ndarray, np.ndarray | float]:
        wide = [a if a.dtype.kind in "iub" else a.astype(np.float64) for a in arrays]
        with np.errstate(all="ignore"):
            found = np.asarray(expected(*wide))
            return found, 0.0 if bound is None else bound(*wide, found)

    return Case(
        [f"{d}[{s}]" for d, s in zip(dtypes, shapes, strict=True)],
        lambda *v: build(name, *v, **(attrs or {}), **more),
        reference,
        strategy,
        lows or {},
        make=make,
    )


def indices(rng: np.random.Generator, shape: Sequence[int], dtype: str) -> np.ndarray:
    """Operands of a gather: data, and indices into its rows of 7 elements."""
    return rng.integers(-7, 7, shape).astype(dtype) if dtype == "int64" else rng.standard_normal(shape).astype(dtype)


# ---- elementwise and movements


def ulps(count: float, dtype: str = "float32") -> Callable[..., np.ndarray]:
    return lambda *arrays: count * 2 * UNIT[dtype] * np.abs(arrays[-1])


LOOPS = {
    "add": case("add", [*NM, "m"], np.add, bound=ulps(0.5)),
    "subtract a column": case("subtract", ["b, n, m", "n, 1"], np.subtract, bound=ulps(0.5)),
    "outer": case("multiply", ["n, 1", "1, m"], np.multiply, bound=ulps(0.5)),
    "tanh": case("tanh", ["n"], np.tanh, bound=ulps(4)),
    "add halves": case("add", NM * 2, np.add, "float16", bound=ulps(0.5, "float16")),
    "multiply bf16": case("multiply", NM * 2, np.multiply, "bfloat16", bound=ulps(0.5, "bfloat16")),
    "bytes": case("add", NM * 2, np.add, "int8"),
    "compare": case("less", [*NM, "n, 1"], np.less),
    "cast": case("cast", NM, lambda x: x.astype(np.float32), "int8", attrs={"dtype": "float32"}),
    "transpose": case("transpose", NM, np.transpose),
    "transpose bytes": case("transpose", NM, np.transpose, "uint8"),
    "transpose halves": case("transpose", ["b, n, m"], lambda x: x.transpose(0, 2, 1), "float16", axes=(0, 2, 1)),
    "heads": case("transpose", ["b, n, 3, 20"], lambda x: x.transpose(0, 2, 1, 3), axes=(0, 2, 1, 3)),
    "keys": case("transpose", ["b, n, 3, 20"], lambda x: x.transpose(0, 2, 3, 1), axes=(0, 2, 3, 1)),
    "reverse": case("reverse", NM, lambda x: x[:, ::-1], axis=1),
    "concatenate": case("concatenate", ["n, p", "n, 3", "n, m"], lambda *x: np.concatenate(x, 1), axis=1),
    "concatenate bytes": case("concatenate", ["n, 5", "m, 5"], lambda *x: np.concatenate(x, 0), "int8", axis=0),
    "slice": case("strided_slice", NM, lambda x: x[:, 1::2], begin=(1,), end=(1 << 62,), strides=(2,), axes=(1,), lows={"m": 2}),
    "take": case("take", ["7, m", "n"], lambda x, i: x[i], ("float32", "int64"), make=indices, axis=0, mode="fast"),
    "gather": case(
        "gather", ["7, m", "n, m"], lambda x, i: np.take_along_axis(x, i, 0), ("float32", "int64"), make=indices, axis=0, in_bounds=True
    ),
}


# ---- reductions


def of_sum(axis: int, dtype: str = "float32") -> Callable[..., np.ndarray]:
    return lambda x, found: bound_of(x.shape[axis], found, np.abs(x).sum(axis).reshape(found.shape), dtype)


def of_mean(x: np.ndarray, found: np.ndarray) -> np.ndarray:
    return bound_of(x.shape[0] + 2, found, np.abs(x).mean(0), "float32")


def softmax(axis: int) -> Callable[[np.ndarray], np.ndarray]:
    def of(x: np.ndarray) -> np.ndarray:
        powers = np.exp(x - x.max(axis, keepdims=True))
        return powers / powers.sum(axis, keepdims=True)

    return of


def of_softmax(axis: int, dtype: str = "float32") -> Callable[..., np.ndarray]:
    """An exponential of 2 ulp of what a subtraction has rounded; the sum, whose terms are positive, and the quotient."""

    def bound(x: np.ndarray, found: np.ndarray) -> np.ndarray:
        rounding = F32 * (2 * np.abs(x - x.max(axis, keepdims=True)) + x.shape[axis] + 12)
        return found * rounding if dtype == "float32" else rounded(found, found * rounding, dtype) + 2.0**-24

    return bound


def layer_norm(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * gamma + beta


def of_layer_norm(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, found: np.ndarray) -> np.ndarray:
    """The mean is off by n roundings of the mean magnitude, the variance by n of the mean square, and with it the deviation by half of that
    relative to it."""
    rounding = F32 * (x.shape[-1] + 8)
    variance, square = x.var(-1, keepdims=True) + 1e-5, (x * x).mean(-1, keepdims=True)
    mean = rounding * np.abs(x).mean(-1, keepdims=True) / np.sqrt(variance)
    normal = np.abs(x - x.mean(-1, keepdims=True)) / np.sqrt(variance)
    return np.abs(gamma) * (mean + normal * rounding * (square / variance + 1)) + F32 * np.abs(found)


REDUCTIONS = {
    "sum": case("sum", NM, lambda x: x.sum(1), axis=(1,), bound=of_sum(1)),
    "sum of columns": case("sum", NM, lambda x: x.sum(0), axis=(0,), bound=of_sum(0)),
    "sum of all": case("sum", NM, np.sum, bound=lambda x, found: bound_of(x.size, found, np.abs(x).sum(), "float32")),
    "sum outside": case(
        "sum",
        ["b, n, m"],
        lambda x: x.sum((0, 2)),
        axis=(0, 2),
        bound=lambda x, found: bound_of(x.size, found, np.abs(x).sum((0, 2)), "float32"),
    ),
    "sum of halves": case("sum", NM, lambda x: x.sum(1), "float16", axis=(1,), bound=of_sum(1, "float16")),
    "sum of bf16": case("sum", NM, lambda x: x.sum(0), "bfloat16", axis=(0,), bound=of_sum(0, "bfloat16")),
    "mean": case("mean", NM, lambda x: x.mean(0), axis=(0,), bound=of_mean),
    "max": case("max", NM, lambda x: x.max(1), axis=(1,)),
    "max of columns": case("max", ["b, n, m"], lambda x: x.max(1), axis=(1,)),
    "max of bytes": case("max", NM, lambda x: x.max(1), "int8", axis=(1,)),
    "min of halves": case("min", NM, lambda x: x.min(1), "float16", axis=(1,)),
    "argmax": case("argmax", NM, lambda x: x.argmax(1), "int8", axis=(1,)),
    "argmax of columns": case("argmax", NM, lambda x: x.argmax(0), axis=(0,)),
    "softmax": case("nn.softmax", ["b, n, m"], softmax(-1), bound=of_softmax(-1)),
    "softmax of columns": case("nn.softmax", ["n, m"], softmax(0), bound=of_softmax(0), axis=0),
    "softmax of halves": case("nn.softmax", NM, softmax(-1), "float16", bound=of_softmax(-1, "float16")),
    "layer norm": case("nn.layer_norm", ["n, m", "m", "m"], layer_norm, bound=of_layer_norm),
}


# ---- scans and sorts: sequential along a line, in passes of powers of two


def few_values(rng: np.random.Generator, shape: Sequence[int], dtype: str) -> np.ndarray:
    """Numbers of which many are equal, and some are infinite or none."""
    found = rng.integers(-9, 9, shape).astype(dtype)
    if np.dtype(dtype).kind == "f":
        found = np.where(rng.random(shape) < 0.02, rng.choice(np.array([np.nan, np.inf, -np.inf, -0.0], dtype), shape), found)
    return found


def order(x: np.ndarray, descending: bool = False) -> np.ndarray:
    """Indices that sort the last axis, equal ones as they come; NaN is the largest."""
    if not descending:
        return np.argsort(x, -1, kind="stable")
    return x.shape[-1] - 1 - np.argsort(x[..., ::-1], -1, kind="stable")[..., ::-1]


def scan(axis: int, dtype: str = "float32", **attrs: bool) -> Case:
    def bound(x: np.ndarray, found: np.ndarray) -> np.ndarray:
        return bound_of(x.shape[axis], found, np.abs(x).cumsum(axis), dtype)

    def expected(x: np.ndarray) -> np.ndarray:
        return x.cumsum(axis, dtype=x.dtype) - (x if attrs else 0)

    return case("cumsum", NM, expected, dtype, bound, "", axis=axis, **attrs)


def largest(k: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: order(x, descending=True)[..., :k]


SEQUENCES = {
    "cumsum": scan(1),
    "cumsum of columns": scan(0, exclusive=True),
    "cumsum of bf16": scan(1, "bfloat16"),
    "cumsum of integers": scan(1, "int32"),
    "sort": case("sort", NM, lambda x: np.sort(x, 1), axis=1, strategy="", make=few_values),
    "sort columns, descending": case(
        "sort",
        NM,
        lambda x: np.take_along_axis(x.T, order(x.T, True), 1).T,
        "float16",
        axis=0,
        is_ascend=False,
        strategy="",
        make=few_values,
    ),
    "argsort": case("argsort", NM, order, strategy="", make=few_values, attrs={"axis": 1, "dtype": "int64"}),
    "argsort of rows": case("argsort_rows", NM, lambda x: np.lexsort(x.T[::-1]), "int8", strategy="", make=few_values),
    "top of many": case("topk", NM, largest(3), axis=1, k=3, ret_type="indices", strategy="", lows={"m": 3}, make=few_values),
    "top of bytes": case("topk", NM, largest(40), "int8", axis=1, k=40, ret_type="indices", strategy="", lows={"m": 40}, make=few_values),
}


@pytest.mark.parametrize(("name", "mcpu"), cases_of(LOOPS))
def test_loops(name: str, mcpu: str) -> None:
    check(LOOPS[name], mcpu)


@pytest.mark.parametrize(("name", "mcpu"), cases_of(REDUCTIONS))
def test_reductions(name: str, mcpu: str) -> None:
    check(REDUCTIONS[name], mcpu)


@pytest.mark.parametrize(("name", "mcpu"), cases_of(SEQUENCES))
def test_scans_and_sorts(name: str, mcpu: str) -> None:
    check(SEQUENCES[name], mcpu)


# ---- plans


def turned(extents: Sequence[int], width: int, element_bytes: int, read_along: Sequence[int] = (0,)) -> Turned | None:
    """The plan of an elementwise nest that stores along its last loop, and reads an operand along each of the given loops."""
    loops = [Var.below(extent) for extent in extents]
    offsets: list[Any] = [(f"x{i}", Index(0, {v: 1 if i == j else 1000 for j, v in enumerate(loops)})) for i in read_along]
    accesses: Any = SimpleNamespace(irregular=set(), bounds=[], offsets=offsets)
    return find_turned([MergedLoop([v], v.extent) for v in loops], accesses, Index(0, {loops[-1]: 1}), width, element_bytes)


@pytest.mark.parametrize(
    ("extents", "width", "element_bytes", "expected"),
    [
        # Of lines of 64 bytes, as many tiles along the lanes as read 128 KiB along the other loop.
        ((64, 64), 8, 4, (8, 2, 2, 32)),
        ((64, 64), 4, 4, (4, 4, 4, 32)),
        ((64, 64), 32, 1, (16, 4, 4, 32)),
        ((16, 8), 16, 4, (8, 2, 1, 256)),
        ((1 << 20, 64), 8, 4, (8, 2, 2, 1)),
        ((4, 64), 8, 4, (4, 1, 4, 512)),
        ((3, 64), 8, 4, None),
        ((64, 3), 8, 4, None),
        ((64, 64), 3, 8, None),
    ],
)
def test_tiles_that_are_turned(extents: Sequence[int], width: int, element_bytes: int, expected: tuple[int, ...] | None) -> None:
    found = turned(extents, width, element_bytes)
    assert (found and (found.lanes, found.across, found.along, found.chunk)) == expected
    if found is not None:
        small = [(t.lanes, t.across, t.along, t.chunk) for t in smaller_tiles(found)]
        assert small == ([] if found.lanes == 4 else [(4, 1, 1, found.chunk * found.lanes * found.along // 4)])


def test_the_first_loop_along_which_most_is_read_is_turned() -> None:
    assert turned((64,), 8, 4) is None
    for along, position in (((0, 1), 0), ((1,), 1), ((0, 1, 1), 1)):
        found = turned((64, 64, 64), 8, 4, along)
        assert found is not None and found.position == position


def nest_of(unroll: int = 4, grain: int = 100, **plan: Any) -> Any:
    made = object.__new__(Nest)
    made.unroll, made.evaluator, made.plan = unroll, Evaluator({}), SimpleNamespace(**plan)  # type: ignore[assignment]
    made.parameters = SimpleNamespace(parallel_grain=grain)  # type: ignore[assignment]
    return made


@pytest.mark.parametrize(
    ("begin", "end", "width", "unroll", "expected"),
    [
        (0, 16, 16, 4, "0:16"),
        (0, 15, 16, 4, "0:8 8:4 12:2 14:1"),
        (5, 5, 16, 4, ""),
        (3, 6, 1, 4, "3-5:1"),
        (0, 77, 16, 4, "0:64 64:8 72:4 76:1"),
        (0, 80, 16, 4, "0:64 64:16"),
        (2, 131, 16, 4, "2-66:64 130:1"),
        (0, 48, 16, 1, "0-32:16"),
    ],
)
def test_vectors_of_a_known_number_of_elements(begin: int, end: int, width: int, unroll: int, expected: str) -> None:
    """Where vectors side by side begin, or the first and the last ones of a loop, and how many elements they have."""
    found = []

    def block(first: Index, lanes: int, vectors: int) -> None:
        low, high = first.bounds()
        found.append(f"{low if first.is_constant else f'{low}-{high}'}:{lanes * vectors}")

    with make_context(), ir.Location.unknown(), ir.InsertionPoint(ir.Module.create().body):
        nest_of(unroll)._segment(begin, end, width, block)
    assert " ".join(found) == expected


def test_iterations_without_padding() -> None:
    v, m = Var.below(14), symbol("m")
    for extent, bounds, expected in (
        (14, [(Index(-2, {v: 1}), 10)], (2, 12)),
        (14, [(Index(-3, {v: 2}), 10)], (2, 7)),
        (1, [(Index(-2, {v: 1}), 10)], (1, 1)),
        (14, [(Index(-5, {v: 1}), 10), (Index(0, {v: 1}), 3)], (5, 5)),
        (14, [(Index(-1, {v: 1}), 10), (Index(-3, {v: 1}), 20)], (3, 11)),
        (14, [(Index(5), 10)], (0, 14)),
        (14, [(Index(13, {v: -1}), 20)], (0, 0)),
        (14, [(Index(0, {v: m}), 20)], (0, 0)),
    ):
        with Ranges({"m": Range(0)}):
            assert nest_of(accesses=SimpleNamespace(bounds=bounds))._unchecked_range(v, extent) == expected


def test_work_of_as_much_as_the_grain_is_parallel() -> None:
    assert [nest_of(work=work).is_parallel for work in (99, 100)] == [False, True]


def test_rows_of_one_symbolic_length() -> None:
    n, m = symbol("n"), symbol("m")

    def row(inner: Sequence[Any], *reduced: Any) -> Any:
        reductions = [SimpleNamespace(structured=SimpleNamespace(extents=(2, e), reduction_dims=(1,))) for e in reduced]
        loops = [MergedLoop([Var.below(e)], e) for e in inner]
        return nest_of(lanes_along_reduction=True, inner=loops, reductions=reductions)._symbolic_row()

    assert row([n], n) == row([], n, n) == n
    assert row([n], m) is row([n, n], n) is row([8], 8) is None


@pytest.mark.parametrize(
    ("rows", "elements", "parallel", "parts"),
    [(4, 1000, [4], 1), (3, 64, [2], 1), (3, 63, None, 1), (3, 70, [2], 2), (3, 5000, [31], 2)],
)
def test_few_rows_are_cut_into_blocks(rows: int, elements: int, parallel: Any, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 4 vectors of 8 elements, or more where there would be more than 32; what is left over runs after them."""
    found: list[Any] = []
    made = nest_of(work=100, width=8, checked=set(), lane_loop_is_outer=True)
    made.parameters.parallel_chunks, made.parameters.unroll = 32, 4
    made._serial = lambda *_: found.append(None)

    @contextmanager
    def run(variables: Sequence[Var], *_: Any) -> Iterator[None]:
        found.append([v.extent for v in variables])
        yield

    monkeypatch.setattr("relayc.pipelines.tir.values.nest.parallel", run)
    made._parallel([MergedLoop([Var.below(n)], n) for n in (rows, elements)])
    assert found == ([parallel] if parallel else []) + [None] * parts


@pytest.mark.parametrize(
    ("most", "rows", "elements", "expected"),
    [
        # Rows of 8,192 elements at most are whole ones; others are in blocks of so many, of which a task has as many as have that many.
        (8192, 100, 10, [100]),
        (8193, 100, 10, [1, 1]),
        (8193, 1000, 100, [13, 1]),
        (99999, 100, 20000, [100, 3]),
        # A single row is in blocks of four vectors, or more where there would be more than 32.
        (99999, None, 64, [2]),
        (99999, None, 5000, [32]),
    ],
)
def test_rows_that_a_call_says_are_cut_into_blocks(
    most: int, rows: int | None, elements: int, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Any] = []

    def loops(variables: Sequence[Var], *_: Any) -> None:
        """Ends at the loops: there is no code to emit in them."""
        found.extend(v.extent for v in variables)
        raise InterruptedError

    monkeypatch.setattr("relayc.pipelines.tir.values.nest.parallel", loops)
    a, n = symbol("a"), symbol("n")
    with Ranges({"a": Range(1), "n": Range(1, most)}):
        outer, last = ([MergedLoop([Var.below(size)], size)] for size in (a, n))
        made = nest_of(work=n if rows is None else a * n, width=8, checked=set())
        made.parameters.parallel_chunks, made.parameters.unroll = 32, 4
        with suppress(InterruptedError):
            made._symbolic_tasks([] if rows is None else outer, last)
    assert [evaluate(size, {"a": rows or 0, "n": elements}) for size in found] == expected
