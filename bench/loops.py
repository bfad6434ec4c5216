"""`bench loops`: what a round of an ONNX Loop costs whose kernels do next to nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from onnx import parser
from rich.table import Table

from relayc.bench.engines import ENGINES
from relayc.bench.latency import ratio, ratio_text, threads_text
from relayc.bench.measure import Progress, Result, Settings, measure_case
from relayc.bench.models import Case
from relayc.tools.tables import NUMBER, make_table

ROUNDS = (1000, 10_000)
"""Rounds of the loops that are measured."""
_ELEMENTS = 4

_HEADER = '<ir_version: 9, opset_import: ["" : 18]> main (int64 steps, float[{size}] x) => ({output})'
_ROW = "float[1, 4] row = {1, 2, 3, 4}"
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


@dataclass(frozen=True)
class LoopPoint:
    """The results of the engines for a loop of so many rounds."""

    name: str
    rounds: int
    results: list[Result]

    def as_data(self) -> list[dict[str, Any]]:
        """One record an engine, as plain data."""
        return [{"loop": self.name, "rounds_of_loop": self.rounds, **result.as_data()} for result in self.results]


def loop_names() -> tuple[str, ...]:
    """Names of the loops that can be measured."""
    return tuple(_MODELS)


def loop_model(name: str) -> onnx.ModelProto:
    """A model of one loop: `steps`, an int64, says how many rounds, and `x` is four f32."""
    size, output, nodes = _MODELS[name]
    return parser.parse_model(f"{_HEADER.format(size=size, output=output)} {nodes}")


def measure_loops(names: Sequence[str], settings: Settings, progress: Progress) -> list[LoopPoint]:
    """Measures loops at each number of rounds on every engine."""
    points = []
    with TemporaryDirectory(prefix="relayc-bench-") as folder:
        path = Path(folder) / "loop.onnx"
        for name in names:
            onnx.save(loop_model(name), path)
            for rounds in ROUNDS:
                inputs: dict[str, np.ndarray] = {"steps": np.array(rounds), "x": np.arange(_ELEMENTS, dtype=np.float32)}
                case = Case(f"{name}, {rounds} rounds", path, inputs)
                points.append(LoopPoint(name, rounds, measure_case(case, settings, progress)))
    return points


def loops_table(points: Sequence[LoopPoint], threads: int) -> Table:
    """One line per loop, number of rounds and engine."""
    title = f"loops over {_ELEMENTS} elements, {threads_text(threads)}; microseconds of a call over the rounds"
    table = make_table(title, loop={}, rounds=NUMBER, engine={}, **{"us a round": NUMBER, "ratio": NUMBER, "difference": NUMBER})
    for point in points:
        for i, result in enumerate(point.results):
            head = [point.name, str(point.rounds)] if i == 0 else ["", ""]
            last = i == len(point.results) - 1
            if result.seconds is None:
                table.add_row(*head, ENGINES[result.engine].title, "failed", end_section=last)
                continue
            table.add_row(
                *head,
                ENGINES[result.engine].title,
                f"{result.seconds / point.rounds * 1e6:.3f}",
                ratio_text(ratio(point.results, result.engine)),
                "" if result.difference is None else f"{result.difference:.1e}",
                end_section=last,
            )
    return table
