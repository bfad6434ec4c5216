"""`bench loops`: the cost of an iteration of an ONNX Loop with trivial kernels."""

import itertools
from collections.abc import Sequence

import numpy as np
import onnx
from onnx import parser
from rich.table import Table

from relayc.bench.latency import add_engines, difference_text, ratio, ratio_text, threads_text
from relayc.bench.measure import Point, Progress, Result, Settings, measure_model
from relayc.tools.tables import NUMBER, make_table

ROUNDS = (1000, 10_000)
"""Rounds of the loops that are measured."""
_ELEMENTS = 4

_HEADER = '<ir_version: 9, opset_import: ["" : 18]> main (int64 steps, float[{size}] x) => ({output})'
_ONES = "float[1] one = {1}, int64[1] zero = {0}, int64[1] four = {4}"
_MODELS: dict[str, tuple[str, str, str]] = {
    "trip count": (
        "4",
        "float[4] y",
        "{ y = Loop <body = b (int64 i, bool c, float[4] a) => (bool k, float[4] s) { k = Identity(c) s = Add(a, x) }> (steps, , x) }",
    ),
    "condition": (
        "4",
        "float[4] y",
        """<float high = {1e30}, bool yes = {1}> {
            y = Loop <body = b (int64 i, bool c, float[4] a) => (bool k, float[4] s) {
                s = Add(a, x) m = ReduceMax <keepdims = 0> (s) k = Less(m, high)
            }> (steps, yes, x)
        }""",
    ),
    "branch": (
        "4",
        "float[4] y",
        """<float high = {100}> {
            y = Loop <body = b (int64 i, bool c, float[4] a) => (bool k, float[4] s) {
                k = Identity(c) m = ReduceMax <keepdims = 0> (a) l = Less(m, high)
                s = If <then_branch = t () => (float[4] p) { p = Add(a, x) }, else_branch = e () => (float[4] q) { q = Sub(a, x) }> (l)
            }> (steps, , x)
        }""",
    ),
    "named size": (
        "n",
        "float[n] y",
        "{ y = Loop <body = b (int64 i, bool c, float[n] a) => (bool k, float[n] s) { k = Identity(c) s = Add(a, x) }> (steps, , x) }",
    ),
    "changing size": (
        "n",
        "float[m] y",
        f"""<{_ONES}> {{
            y = Loop <body = b (int64 i, bool c, float[p] a) => (bool k, float[q] s) {{
                k = Identity(c) t = Concat <axis = 0> (one, a) s = Slice(t, zero, four)
            }}> (steps, , x)
        }}""",
    ),
    "scan output": (
        "4",
        "float[4] y, float[m, 4] all",
        """{
            y, all = Loop <body = b (int64 i, bool c, float[4] a) => (bool k, float[4] s, float[4] o) {
                k = Identity(c) s = Add(a, x) o = Identity(s)
            }> (steps, , x)
        }""",
    ),
    "concatenation": (
        "4",
        "float[m, 4] y",
        """<int64[1] zero = {0}> {
            start = Unsqueeze(x, zero)
            y = Loop <body = b (int64 i, bool c, float[p, 4] a) => (bool k, float[q, 4] s) {
                k = Identity(c) s = Concat <axis = 0> (a, start)
            }> (steps, , start)
        }""",
    ),
}
"""Size of the input, outputs and nodes of each model."""


def loop_names() -> tuple[str, ...]:
    """Names of the loops that can be measured."""
    return tuple(_MODELS)


def loop_model(name: str) -> onnx.ModelProto:
    """A model of one loop: `steps`, an int64, is the number of iterations, and `x` is f32[4]."""
    size, output, nodes = _MODELS[name]
    return parser.parse_model(f"{_HEADER.format(size=size, output=output)} {nodes}")


def measure_loops(names: Sequence[str], settings: Settings, progress: Progress) -> list[Point[tuple[str, int]]]:
    """Measures loops at each number of rounds on every engine."""
    points = []
    for name, rounds in itertools.product(names, ROUNDS):
        inputs: dict[str, np.ndarray] = {"steps": np.array(rounds), "x": np.arange(_ELEMENTS, dtype=np.float32)}
        results = measure_model(loop_model(name), f"{name}, {rounds} rounds", inputs, 0, settings, progress)
        points.append(Point((name, rounds), {"loop": name, "rounds_of_loop": rounds}, results))
    return points


def loops_table(points: Sequence[Point[tuple[str, int]]], threads: int) -> Table:
    """One line per loop, number of rounds and engine."""
    title = f"loops over {_ELEMENTS} elements, {threads_text(threads)}; microseconds of a call over the rounds"
    table = make_table(title, loop={}, rounds=NUMBER, engine={}, **{"us a round": NUMBER, "ratio": NUMBER, "difference": NUMBER})
    for point in points:
        name, rounds = point.subject

        def cells(result: Result, seconds: float, rounds: int = rounds, results: Sequence[Result] = point.results) -> list[str]:
            return [f"{seconds / rounds * 1e6:.3f}", ratio_text(ratio(results, result.engine)), difference_text(result)]

        add_engines(table, [name, str(rounds)], point.results, cells)
    return table
