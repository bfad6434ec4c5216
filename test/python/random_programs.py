"""Compiles random programs in several ways and compares the results: `python test/python/random_programs.py --programs 10000 --seed 1`.

A program of random_drawing is compiled for two to four configurations, drawn with it: levels, passes left out, processors, an emulated GPU,
exported libraries, numbers of threads. A symbolic program is compiled once for each and called at several sizes. Its results are compared
with those that the interpreter of relay gives with numpy, at each size by itself. What comes of a program has a class:

  same        results that agree
  unstable    results that differ where rounding alone makes the reference differ as much, or that differ with these data only
  refused     a program that no configuration takes, or a ValueError of the call in all of them
  FAILED ...  everything else; with --reduce the program is cut down while it stays

All of it follows from the seed and the number of the program: `--seed 1 --first 17 --programs 1` repeats one.
"""

import argparse
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import prod
from pathlib import Path
from typing import Any

os.environ.setdefault("KMP_BLOCKTIME", "0")

import numpy as np
import onnxruntime
import random_special  # noqa: F401 (its rules draw)
from fuzz import Outcome, outcomes, table
from quantised_reference import composed
from random_drawing import MOST_ELEMENTS, SIZES, draw
from random_graphs import Graph, Sizes, at, build, is_float, off_by_a_unit, smaller
from random_onnx import Unwritable, model_of
from random_rules import undrawn

import relayc
import relayc.pipelines.graph  # enters the passes
from relayc.dialects.functions import signature_of, symbols_of
from relayc.dialects.relay.types import numpy_dtype
from relayc.pipelines.context.passes import PASSES
from relayc.pipelines.evaluate.relay import RelayInterpreter
from relayc.pipelines.te.signature import flat_tensors, te_array
from relayc.tools.progress import tracked

NOISE = 8.0
"""How many times what rounding makes of the reference a difference may be, beyond UNITS of the last place of the narrowest type."""
UNITS = 16
DRAWS = 2
"""Times that the noise is measured with inputs and constants off by a unit in the last place; once more in float64."""
PRECISION = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
PRECISION |= {"f32": 0.0, "f16": PRECISION["float16"], "bf16": PRECISION["bfloat16"]}
LEVELS = ("", " -mcpu=x86-64-v2", " -mcpu=x86-64-v3", " -mcpu=x86-64-v4", " -mcpu=sapphirerapids")
"""What this machine lacks is emulated."""
ARCHITECTURES = ("", " -arch=sm_80", " -arch=sm_90a")
CACHES = ("", "", " -l1-bytes=4096 -l2-bytes=16384")
"""With small caches small programs have several blocks."""


@dataclass(frozen=True)
class Config:
    """A way to compile and to call.

    Attributes:
      way: "call"; "library" where the module is exported and loaded; "onnx" where the program comes as an ONNX model, at known sizes.
    """

    target: str = "cpu"
    level: int = 3
    disabled: tuple[str, ...] = ()
    threads: int = 1
    way: str = "call"
    precision: str = "f32"


def configurations(seed: int, number: int) -> list[Config]:
    rng = np.random.default_rng([seed, number, 1])
    passes = [name for name, p in PASSES.items() if p.info.opt_level >= 1 or name in ("fold-constant", "dead-code-elimination")]

    def config() -> Config:
        levels, caches = (str(rng.choice(some)) for some in (LEVELS, CACHES))
        target = f"cuda{rng.choice(ARCHITECTURES)} -emulate=true" if rng.random() < 0.15 else f"cpu{levels}{caches}"
        target = target if relayc.Target(target).is_host else f"{target} -emulate=true"
        disabled = rng.choice(passes, int(rng.integers(1, 4)), replace=False) if rng.random() < 0.4 else ()
        way = str(rng.choice(("call", "call", "call", "onnx", "library") if target.startswith("cpu") else ("call", "onnx")))
        level, threads = int(rng.choice((0, 1, 2, 3, 3, 3, 4))), int(rng.integers(1, 3))
        return Config(target, level, tuple(map(str, disabled)), threads, way, str(rng.choice(("f32",) * 8 + ("f16", "bf16"))))

    # The one that is used most is always there.
    return [Config(threads=1 + number % 2), *(config() for _ in range(int(rng.integers(1, 4))))]


def compiled(program: Any, config: Config) -> Any:
    with relayc.PassContext(opt_level=config.level, disabled_pass=config.disabled):
        module = relayc.compile(program, target=config.target, precision=config.precision, cache=False)
    if config.way == "library":
        with tempfile.TemporaryDirectory() as folder:
            module.export_library(Path(folder) / "program.so")
            module = relayc.load_module(Path(folder) / "program.so")
    module.num_threads = config.threads
    return module


def called(module: Any, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    found = module["main"](*[np.array(a, copy=True) for a in arrays])
    return list(found) if isinstance(found, list | tuple) else [found]


# ---- references -----------------------------------------------------------------------------------------------------------------------


def reference(graph: Graph, sizes: Sizes, wide: bool = False) -> list[np.ndarray]:
    """Results of the interpreter on numpy arrays, at sizes that are known. Raises RelayError, or ValueError of the call."""
    graph = composed(graph)
    mod = build(graph, sizes, wide)
    signature = signature_of(symbols_of(mod.module)["main"])
    given = zip(graph.arrays(sizes), flat_tensors(signature.inputs), strict=True)
    interpreter = Wobbling(mod, graph.wobble, graph.unit) if graph.wobble else RelayInterpreter(mod)
    found = interpreter("main", [te_array(np.asarray(a).astype(numpy_dtype(t.dtype))) for a, t in given])
    return [a.view(numpy_dtype(t.dtype)) for a, t in zip(found, flat_tensors(signature.results), strict=True)]


class Wobbling(RelayInterpreter):
    """What operators give is a unit in the last place off, at most, as if it were rounded otherwise; whole numbers stay."""

    def __init__(self, mod: relayc.IRModule, seed: int, unit: float) -> None:
        super().__init__(mod)
        self._rng, self._unit = np.random.default_rng(seed), unit

    def _operation(self, *of_interpreter: Any) -> list[np.ndarray]:
        return [self._off(array) if is_float(array) else array for array in super()._operation(*of_interpreter)]

    def _off(self, array: np.ndarray) -> np.ndarray:
        return np.where(array == np.trunc(array), array, off_by_a_unit(array, self._rng, self._unit))


def of_onnx_runtime(graph: Graph, sizes: Sizes) -> dict[int, np.ndarray]:
    """Results by their positions, of those that ONNX has operators for, and of none where ONNX Runtime has not."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        model, written = model_of(graph, sizes)
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        arrays = dict(zip((f"v{v}" for v in graph.inputs), graph.arrays(sizes), strict=True))
        return dict(zip(written, session.run(None, {value.name: arrays[value.name] for value in session.get_inputs()}), strict=True))
    except Exception:  # its own kinds of them, for what it has not
        return {}


def distance(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> float:
    """Largest difference of floats, relative to an element and the median of its array; infinite where others are not the same.

    Two of the least normal numbers are no difference: vectors of exp are 0 from -87 down, where it is 1.4 of them."""
    if len(found) != len(wanted):
        return np.inf
    worst = 0.0
    for a, b in zip(found, wanted, strict=True):
        if a.shape != b.shape:
            return np.inf
        if a.dtype.kind in "biu":
            worst = worst if np.array_equal(a, b) else np.inf
            continue
        with np.errstate(all="ignore"):
            a, b = a.astype(np.float64), b.astype(np.float64)
            finite = np.isfinite(b)
            if not np.array_equal(np.isfinite(a), finite) or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
                return np.inf
            a, b = a[finite], b[finite]
            scale = np.abs(b) + (np.median(np.abs(b)) if b.size else 0.0) + np.finfo(np.float32).tiny
            worst = max(worst, float(np.max(np.maximum(np.abs(a - b) - 2 * np.finfo(np.float32).tiny, 0) / scale, initial=0.0)))
    return worst


def noise(graph: Graph, sizes: Sizes, wanted: Sequence[np.ndarray], unit: float = 0.0) -> float:
    """How far rounding moves the reference from `wanted`: in float64, and with inputs and constants a unit in the last place off, at least
    `unit`."""
    worst = 0.0
    for variant, wide in [(graph, True), *((replace(graph, wobble=i + 1, unit=unit), False) for i in range(DRAWS))]:
        try:
            found = reference(variant, sizes, wide)
        except ValueError:
            continue  # of bits that are read as another type
        worst = max(worst, distance(found, wanted))
    return worst


def least(graph: Graph, sizes: Sizes, onnx: bool = False, unit: float = 0.0) -> float:
    """The distance that types and sums explain by themselves.

    Types explain UNITS of the narrowest type; positions of samples and attributes of ONNX are float32. Sums explain sqrt(K) half units of
    float32 or float64: the rounding errors of K terms, added one after another, are a random walk. K is the number of elements of the
    largest tensor, which a sum does not exceed."""
    of_float32 = onnx or any(node.op.startswith(("image_", "nn_upsampling")) for node in graph.all_nodes())
    types = {"float32", *(t.dtype for t in graph.types.values())} if of_float32 else {t.dtype for t in graph.types.values()}
    narrowest = max(unit, *(PRECISION.get(dtype, 0.0) for dtype in types))
    terms = max(prod(at(t.sizes, sizes)) for t in graph.types.values())
    return UNITS * narrowest + min(narrowest, PRECISION["float32"]) / 2 * terms**0.5


# ---- one program ----------------------------------------------------------------------------------------------------------------------


def samples(graph: Graph) -> list[dict[str, int]]:
    """Sizes to call a program at."""
    if all(t.is_static for t in graph.types.values()):
        return [{}]
    rng = np.random.default_rng([graph.seed, 2])

    def within(name: str, most: int) -> int:
        low, high = graph.ranges.get(name, (1, most))
        return int(rng.choice([n for n in (0, *SIZES, low, high) if low <= n <= min(high, max(most, low))]))

    def fits(sizes: Sizes) -> bool:
        return all(prod(at(t.sizes, sizes)) <= 2 * MOST_ELEMENTS for t in graph.types.values())

    def is_possible(sizes: Sizes) -> bool:
        return all(min(at(leaf.type.sizes, sizes), default=0) >= 0 for leaf in graph.leaves.values())

    drawn = [{name: within(name, most) for name in ("n", "m")} for most in (140, 70, 33, 9, 3) for _ in range(3)]
    drawn = [sizes for sizes in drawn if is_possible(sizes)]
    return [sizes for sizes in drawn if fits(sizes)][:3] or drawn[-1:]


def judged(program: tuple[Graph, Sequence[Config]], number: int) -> tuple[str, str]:
    """The class of what comes of a program, and its detail."""
    graph, configs = program
    kind, detail = _judged(graph, configs)
    if kind in ("FAILED other results", "FAILED reference"):
        again, _ = _judged(replace(graph, seed=graph.seed + 1), configs)
        if again != kind:
            return "unstable", f"with these data only: {detail}"
    return kind, detail


def _judged(graph: Graph, configs: Sequence[Config]) -> tuple[str, str]:
    kind = "same"
    expected: list[tuple[Sizes, list[np.ndarray] | Exception]] = []

    @cache
    def noise_of(number: int, unit: float) -> float:
        sizes, wanted = expected[number]
        assert not isinstance(wanted, Exception)
        return noise(graph, sizes, wanted, unit)

    def differs(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray], number: int, onnx: bool, unit: float = 0.0) -> bool:
        nonlocal kind
        far, lowest = distance(found, wanted), least(graph, expected[number][0], onnx, unit)
        if far <= lowest:
            return False
        if far > lowest + NOISE * noise_of(number, unit):
            return True
        kind = "unstable" if far > 0.01 else kind
        return False

    for number, sizes in enumerate(samples(graph)):
        try:
            expected.append((sizes, reference(graph, sizes)))
        except ValueError as error:  # sizes that do not fit
            expected.append((sizes, error))
            continue
        other = of_onnx_runtime(graph, sizes)
        ours = [expected[-1][1][i] for i in other]
        if differs(ours, list(other.values()), number, onnx=True):
            return "FAILED reference", f"{sizes}: {explained(ours, list(other.values()))}"
    for config in configs:
        written: Sequence[int] = range(len(graph.main.results))
        try:
            if config.way == "onnx":
                if isinstance(expected[0][1], Exception):
                    continue
                model, written = model_of(graph, expected[0][0])
                module = compiled(model, config)
            else:
                module = compiled(build(graph), config)
        except Unwritable:
            continue
        except Exception as error:
            if isinstance(error, ValueError) and all(isinstance(wanted, Exception) for _, wanted in expected):
                return "refused", str(error)
            return f"FAILED {type(error).__name__}", f"{config}\n{traceback.format_exc()}"
        for number, (sizes, wanted) in enumerate(expected[:1] if config.way == "onnx" else expected):
            arrays = dict(zip((f"v{v}" for v in graph.inputs), graph.arrays(sizes), strict=True))
            try:
                found = called(module, [arrays[spec.name] for spec in module.inputs])
            except ValueError as error:
                if isinstance(wanted, Exception):
                    continue
                return "FAILED call", f"{config}, {sizes}: {error}"
            if isinstance(wanted, Exception):
                if graph.functions:
                    continue  # what does not fit may be an argument that a function does not use
                return "FAILED accepts", f"{config}, {sizes}, the reference: {wanted}"
            if differs(found, [wanted[i] for i in written], number, config.way == "onnx", PRECISION[config.precision]):
                return "FAILED other results", f"{config}, {sizes}: {explained(found, [wanted[i] for i in written])}"
    return kind, ""


def explained(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> str:
    """Which result differs most, where first, and what was found there."""
    if len(found) != len(wanted):
        return f"{len(found)} results, expected {len(wanted)}"
    worst = max(range(len(wanted)), key=lambda i: distance([found[i]], [wanted[i]]))
    a, b = found[worst], wanted[worst]
    if a.shape != b.shape:
        return f"result {worst}: expected {list(b.shape)}, found {list(a.shape)}"
    wide = [v.astype(np.float64) for v in (a, b)]
    unequal = ~np.isclose(*wide, 1e-3, 1e-4, equal_nan=True) | ((a != b) if a.dtype.kind in "biu" else False)
    at = tuple(map(int, np.unravel_index(np.argmax(unequal), a.shape)))
    return f"result {worst}: {int(unequal.sum())} of {unequal.size} elements, first at {list(at)}: expected {b[at]}, found {a[at]}"


# ---- many ---------------------------------------------------------------------------------------------------------------------------


def make(number: int, seed: int) -> tuple[str, tuple[Graph, list[Config]], str]:
    """Program `number` of a seed and its configurations, with its operators as a text."""
    graph = draw(seed, number)
    return "program", (graph, configurations(seed, number)), " ".join(node.op for node in graph.all_nodes())


def command(seed: int, number: int) -> str:
    return f"python test/python/random_programs.py --seed {seed} --first {number} --programs 1 --reduce"


def reduced(graph: Graph, configs: Sequence[Config], kind: str) -> tuple[Graph, Sequence[Config]]:
    """The least program found, and one configuration if that is enough, of which the same comes."""

    def fails(graph: Graph, configs: Sequence[Config]) -> bool:
        return next(outcomes([0], lambda _: ("", (graph, configs), ""), None, judged)).kind == kind

    configs = next(([config] for config in configs if fails(graph, [config])), configs)
    for config in configs:
        for simple in (replace(config, way="call"), replace(config, disabled=()), replace(config, threads=1)):
            if simple != config and fails(graph, [simple]):
                configs = [config := simple]
    while True:
        found = next((g for g in smaller(graph) if g.main.results and fails(g, configs)), None)
        if found is None:
            return graph, configs
        graph = found


def run(numbers: Sequence[int], seed: int, deadline: float | None = None) -> Iterator[Outcome]:
    """What comes of programs by their numbers."""
    return outcomes(numbers, partial(make, seed=seed), deadline, judged)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compile random programs in several ways; the exit code is 1 where one fails.")
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, help="stop after so long")
    parser.add_argument("--reduce", action="store_true", help="cut down the programs that fail")
    parser.add_argument("--text", action="store_true", help="print the programs that fail")
    arguments = parser.parse_args(argv)
    deadline = None if arguments.minutes is None else time.monotonic() + 60 * arguments.minutes
    found, drawn = [], Counter[str]()
    tried = run(range(arguments.first, arguments.first + arguments.programs), arguments.seed, deadline)
    for outcome in tracked(tried, "programs", arguments.programs):
        found.append(outcome)
        drawn.update(outcome.change.split())
        if outcome.failed:
            print(f"{outcome.number}: {outcome.kind}: {outcome.detail}\n  {command(arguments.seed, outcome.number)}", flush=True)
            graph, configs = make(outcome.number, arguments.seed)[1]
            if arguments.reduce:
                graph, configs = reduced(graph, configs, outcome.kind)
            if arguments.reduce or arguments.text:
                print(f"{graph.text()}\n{configs}", flush=True)
    print(f"{len(found)} programs, seed {arguments.seed}\n{table(found)}")
    print(f"{len(drawn)} operators drawn; without a rule: {', '.join(undrawn())}")
    return int(any(outcome.failed for outcome in found))


if __name__ == "__main__":
    sys.exit(main())
