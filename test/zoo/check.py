"""Compiles one exported model once and compares it with ONNX Runtime at several sizes; run.py starts this as a process of its own.

    python check.py MODEL.onnx --json OUT.json [--sizes N] [--seed N] [--times]

Each size has a process of its own too, forked from the one that compiled: one that dies or hangs is a row, and the others go on.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

os.environ.setdefault("KMP_BLOCKTIME", "0")

import numpy as np
import onnx
import onnxruntime
from inputs import Input, Symbol, from_data, make_inputs
from onnx import numpy_helper
from sizes import Chooser

import relayc

TOLERANCE = 1e-4
"""Largest difference of an element, in standard deviations of its output. Two orders of the sums of a network of these widths differ by
some 1e-6 to 1e-5 (f32 has 6e-8, sums have up to thousands of terms, and tens of layers add up). Where a network is more sensitive (a
softmax of large scores, a division by a small number, a choice of the largest of nearly equal scores), ONNX Runtime differs from itself as
much: NOISE."""
NOISE = 4.0
"""How many times the noise of the reference a difference may be, beyond TOLERANCE: its difference from itself without its own rewrites, and
in DRAWS draws of weights that are off by OFF of themselves at most, two units in the last place."""
OFF, DRAWS = 2.0**-22, 8
TIME_LIMIT = 120
"""Seconds after which a size is ended."""
MEASURED = 0.1
"""Seconds for which each engine is called at a size."""


@dataclass
class Point:
    """What happened at one size: `status` is agrees, differs, raises, dies, hangs, or no reference (ONNX Runtime refuses the size)."""

    sizes: dict[str, int]
    status: str
    message: str = ""
    difference: float | None = None
    noise: float | None = None
    relayc_seconds: float | None = None
    reference_seconds: float | None = None


@dataclass
class Report:
    """What was seen of a model; seconds of compiling are of the clock and of the process, and by stage of the clock."""

    model: str
    compile_seconds: float | None = None
    compile_cpu_seconds: float | None = None
    stages: dict[str, float] = field(default_factory=dict)
    kernels: int = 0
    limits: int = 0
    error: str = ""
    points: list[Point] = field(default_factory=list)


class Reference(Protocol):
    """What a model is compared with."""

    def run(self, arrays: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The outputs for inputs by name."""

    def noise(self, arrays: Mapping[str, np.ndarray], wanted: list[np.ndarray], seed: int) -> float:
        """How far the outputs differ where the order of sums or the weights are slightly different."""


Call = Callable[[Mapping[str, np.ndarray]], Callable[[], Any]]
"""Of inputs by name: the call of the compiled module with them."""


class OnnxRuntime:
    """The model of a file in ONNX Runtime."""

    def __init__(self, path: Path) -> None:
        self.path, self.session = path, session_of(path)

    def run(self, arrays: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        return flat(self.session.run(None, arrays))

    def noise(self, arrays: Mapping[str, np.ndarray], wanted: list[np.ndarray], seed: int) -> float:
        rng = np.random.default_rng(seed)
        model = onnx.load(self.path)
        # Matrices and filters: vectors may be what sizes are computed from.
        floats = [w for w in model.graph.initializer if w.data_type == onnx.TensorProto.FLOAT and len(w.dims) > 1]
        weights = [(w, numpy_helper.to_array(w)) for w in floats]
        sessions = [session_of(self.path, optimised=False)]
        for _ in range(DRAWS):
            for weight, array in weights:
                off = array * (1 + rng.uniform(-OFF, OFF, array.shape))
                weight.CopyFrom(numpy_helper.from_array(off.astype(np.float32), weight.name))
            sessions.append(session_of(model.SerializeToString()))
        return max((largest_difference(flat(session.run(None, arrays)), wanted) for session in sessions), default=0.0)


def session_of(model: Path | bytes, optimised: bool = True) -> onnxruntime.InferenceSession:
    """The model in ONNX Runtime, on the thread that calls."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"


def difference_of(found: np.ndarray, wanted: np.ndarray) -> float:
    """Largest difference in standard deviations of the reference, or in its largest element where all are about the same; infinite where
    shapes, types, NaN or infinities are not the same. Of integers, booleans and strings: 0 where all are equal, else infinite."""
    if found.shape != wanted.shape or (found.dtype.kind != wanted.dtype.kind and "O" not in (found.dtype.kind, wanted.dtype.kind)):
        return np.inf
    if wanted.dtype.kind != "f":
        return 0.0 if np.array_equal(found, wanted) else np.inf
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(np.isfinite(a), finite) or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return np.inf
    a, b = a[finite], b[finite]
    if not b.size:
        return 0.0
    largest = float(np.abs(b).max())
    spread = (float(b.std()) if b.std() > 1e-3 * largest else largest) or 1.0
    return float(np.abs(a - b).max()) / spread


def flat(values: Any) -> list[np.ndarray]:
    """The arrays of outputs, in order: a sequence of maps (what classifiers give) is one array of its values."""
    found = []
    for value in values:
        if isinstance(value, list):
            value = [list(item.values()) if isinstance(item, dict) else item for item in value]
        found.append(np.asarray(value))
    return found


def explain(found: list[np.ndarray], wanted: list[np.ndarray]) -> str:
    """Which output differs most, and how."""
    worst = max(range(len(wanted)), key=lambda i: difference_of(found[i], wanted[i]))
    a, b = found[worst], wanted[worst]
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"output {worst}: expected {b.dtype}{list(b.shape)}, found {a.dtype}{list(a.shape)}"
    unequal = ~np.isclose(a, b, 1e-3, 1e-4, equal_nan=True) if a.dtype.kind == "f" else a != b
    if not unequal.any():
        return f"output {worst}"
    at = tuple(int(i) for i in np.argwhere(unequal)[0]) if unequal.ndim else ()
    return f"output {worst}: {int(unequal.sum())} of {unequal.size} elements, first at {list(at)}: expected {b[at]}, found {a[at]}"


def largest_difference(found: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    return max((difference_of(a, b) for a, b in zip(found, wanted, strict=True)), default=0.0)


def check_size(call: Call, reference: Reference, inputs: Mapping[str, Input], point: Point, seed: int, times: bool) -> None:
    """Compares, and measures if asked to, at the point's sizes."""
    arrays = make_inputs(inputs, point.sizes, seed)
    try:
        wanted = reference.run(arrays)
    except Exception as error:
        point.status, point.message = "no reference", one_line(error)
        return
    ours = call(arrays)
    try:
        result = ours()
    except Exception as error:
        point.status, point.message = "raises", one_line(error)
        return
    found = flat(result if isinstance(result, tuple) else (result,))
    point.difference = largest_difference(found, wanted)
    if point.difference > TOLERANCE:
        point.noise = reference.noise(arrays, wanted, seed)
        if not point.difference <= NOISE * point.noise:
            point.status, point.message = "differs", explain(found, wanted)
    if times:
        point.relayc_seconds, point.reference_seconds = alternately([ours, lambda: reference.run(arrays)])


def alternately(engines: list[Callable[[], Any]]) -> list[float]:
    """The least seconds of a call of each, which take turns."""
    best = [np.inf] * len(engines)
    begin, rounds = time.perf_counter(), 0
    while rounds < 3 or time.perf_counter() - begin < MEASURED * len(engines):
        rounds += 1
        for i, engine in enumerate(engines):
            engine()
            start = time.perf_counter()
            engine()
            best[i] = min(best[i], time.perf_counter() - start)
    return [float(b) for b in best]


def in_process(point: Point, work: Callable[[Point], None]) -> Point:
    """Does something in a process that is forked for it, and gives what became of the point."""
    receiver, sender = multiprocessing.get_context("fork").Pipe(duplex=False)
    pid = os.fork()
    if pid == 0:
        Path("/proc/self/oom_score_adj").write_text("1000")  # where memory runs out, this process is to end
        try:
            work(point)
        except BaseException as error:
            traceback.print_exc()
            point.status, point.message = "raises", one_line(error)
        sender.send(point)
        os._exit(0)
    sender.close()
    try:
        if receiver.poll(TIME_LIMIT):
            point = receiver.recv()
        else:
            os.kill(pid, signal.SIGKILL)
            point.status, point.message = "hangs", f"no result after {TIME_LIMIT} s"
    except EOFError:
        pass
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status) and point.status != "hangs":
        point.status, point.message = "dies", signal.Signals(os.WTERMSIG(status)).name
    return point


def reference_error(path: Path, inputs: Mapping[str, Input], sizes: Mapping[str, int], seed: int) -> str:
    """Why ONNX Runtime does not take a model at some sizes; nothing where it does."""
    try:
        session_of(path).run(None, make_inputs(inputs, sizes, seed))
    except Exception as error:
        return one_line(error)
    return ""


def check(path: Path, count: int, seed: int, times: bool, write: Callable[[Report], None]) -> Report:
    """Everything about one model; `write` is called with what is known so far, before what may not come back."""
    report = Report(path.stem, error="the process died while compiling")
    write(report)
    data = json.loads(path.with_suffix(".json").read_text())
    inputs, symbols = from_data(data["inputs"]), {name: Symbol(**symbol) for name, symbol in data["symbols"].items()}
    try:
        module = compiled(lambda: relayc.compile(path, cache=False), report)
    except Exception as error:
        refused = reference_error(path, inputs, {name: symbol.example for name, symbol in symbols.items()}, seed)
        report.error = f"no reference: {refused}" if refused else one_line(error)
        return report
    try:
        reference = OnnxRuntime(path)
    except Exception as error:
        report.error = f"no reference: {one_line(error)}"
        return report

    def call(arrays: Mapping[str, np.ndarray]) -> Callable[[], Any]:
        ours = [arrays[spec.name] for spec in module.inputs]
        return lambda: module["main"](*ours)

    sizes = Chooser(module, symbols, np.random.default_rng(seed))
    report.limits = len(sizes.limits)
    compare(report, sizes.choose(count), lambda point: check_size(call, reference, inputs, point, seed, times), write)
    return report


def compiled(compile: Callable[[], Any], report: Report) -> Any:
    """A module on one thread, with what the report has about its compilation. Raises what compiling raises, and prints it."""
    begin, cpu = time.perf_counter(), time.process_time()
    try:
        module, report.error = compile(), ""
    except Exception:
        traceback.print_exc()
        raise
    finally:
        report.compile_seconds, report.compile_cpu_seconds = time.perf_counter() - begin, time.process_time() - cpu
    report.stages, report.kernels = dict(module.stats), len(module.kernels)
    module.num_threads = 1
    return module


def compare(report: Report, sizes: Iterable[dict[str, int]], work: Callable[[Point], None], write: Callable[[Report], None]) -> None:
    """Checks sizes, each in a process of its own."""
    write(report)
    for chosen in sizes:
        report.points.append(in_process(Point(chosen, "agrees"), work))
        write(report)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--sizes", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--times", action="store_true")
    options = parser.parse_args()

    def write(report: Report) -> None:
        options.json.write_text(json.dumps(asdict(report), indent=1))

    write(check(options.model, options.sizes, options.seed, options.times, write))
    return 0


if __name__ == "__main__":
    sys.exit(main())
