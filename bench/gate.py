"""`bench gate`: times the kernels of models and of single operators by two strategies of the table, in turns, to decide whether one
strategy can replace the other."""

import functools
import re
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import tvm_ffi
from rich.table import Table

import relayc
from relayc.bench.latency import threads_text
from relayc.bench.measure import Progress
from relayc.bench.models import LENGTH, Source
from relayc.bench.ops import Operation, model_of
from relayc.bench.schedules import Timed, turn
from relayc.dialects.discardable import PARAM, SYMBOL
from relayc.dialects.functions import value_attributes
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.driver.compile_kernel import compile_kernel
from relayc.pipelines.driver.tuning_space import tuning_space
from relayc.pipelines.emission.sizes import symbol_positions
from relayc.pipelines.program.functions import read_functions, specs_of
from relayc.pipelines.tir.strategy.table import strategies_of
from relayc.runtime.kernel import Kernel
from relayc.runtime.shapes import find_sources
from relayc.runtime.threads import Team
from relayc.tools.inputs import random_inputs
from relayc.tools.reference import compare
from relayc.tools.tables import NUMBER, make_table

SLOWER = 1.05
"""Ratio from which a kernel is called slower: less is noise of a shared machine."""


@dataclass
class Candidate:
    """A kernel that both strategies take.

    Attributes:
      kernel: its name; origin: the model that it was first seen in.
      text: of its te module; ops: Relay's names of its operators.
      sizes: of its symbols.
      old, new: by the two strategies.
      agrees: whether both give the same within the tolerances for f32, or bf16.
    """

    kernel: str
    origin: str
    text: str
    ops: tuple[str, ...]
    sizes: Mapping[str, int]
    old: Timed
    new: Timed
    shapes: str = ""
    agrees: bool = True

    @property
    def ratio(self) -> float:
        """Ratio of the time of the new strategy to the time of the old one."""
        return self.new.seconds / self.old.seconds

    def as_data(self) -> dict[str, Any]:
        """One record, as plain data."""
        facts = {"kernel": self.kernel, "model": self.origin, "ops": list(self.ops), "shapes": self.shapes, "sizes": dict(self.sizes)}
        times = {f"{name}_seconds": side.seconds for name, side in (("old", self.old), ("new", self.new))}
        compiled = {f"{name}_compile_seconds": side.compile_seconds for name, side in (("old", self.old), ("new", self.new))}
        return {**facts, **times, **compiled, "agrees": self.agrees}


@dataclass
class Gate:
    """The results for all kernels.

    Attributes:
      measured: kernels that both strategies accept, and that one of them gets by the table.
      declined: kernels that one of them gets and the other declines, with the model.
      inner: kernels that cannot be called alone: their inputs do not determine all sizes.
    """

    old: str
    new: str
    measured: list[Candidate] = field(default_factory=list)
    declined: list[str] = field(default_factory=list)
    inner: list[str] = field(default_factory=list)

    @property
    def mean(self) -> float:
        """Geometric mean of the ratios."""
        return exp(sum(log(one.ratio) for one in self.measured) / len(self.measured))


@dataclass(frozen=True)
class GateSettings:
    """How the kernels are measured.

    Attributes:
      old, new: the two strategies.
      sizes: values of symbols, each a point at which kernels with symbols are measured; a symbol that is not named is LENGTH.
      pattern: a regular expression that names of kernels hold.
    """

    old: str
    new: str
    threads: int = 1
    rounds: int = 10
    seed: int = 0
    sizes: Sequence[Mapping[str, int]] = ({},)
    pattern: str = ""
    precision: str = "f32"


def measure_gate(sources: Sequence[Source | Operation], settings: GateSettings, progress: Progress) -> Gate:
    """Measures all kernels that differ, in the order in which they are met. Raises ValueError for a strategy that there is not."""
    known = [entry.name for entry in strategies_of("cpu")]
    if unknown := [name for name in (settings.old, settings.new) if name not in known]:
        raise ValueError(f"gate: expected strategies out of {', '.join(known)}, found {unknown[0]!r}")
    gate = Gate(settings.old, settings.new)
    seen: set[str] = set()
    for source in sources:
        progress(f"{source.name}: importing")
        for name, text, ops, taken in _kernels(source, settings):
            body = re.sub(rf"@{re.escape(name)}\b", "@kernel", text)
            if body in seen or not re.search(settings.pattern, name):
                continue
            seen.add(body)
            if taken[0] not in (settings.old, settings.new):
                continue
            if {settings.old, settings.new} - set(taken):
                gate.declined.append(f"{source.name}: {name}")
                continue
            if not _says_its_sizes(text):
                gate.inner.append(f"{source.name}: {name}")
                continue
            for sizes in settings.sizes if SYMBOL.name in text else ({},):
                one = Candidate(name, source.name, text, ops, sizes, Timed(settings.old), Timed(settings.new))
                progress(f"{source.name}: {name}")
                _measure(one, settings)
                gate.measured.append(one)
    return gate


def _kernels(source: Source | Operation, settings: GateSettings) -> list[tuple[str, str, tuple[str, ...], list[str]]]:
    """Kernels by name: their text, their operators, and the strategies that accept them, the chosen strategy first."""
    if isinstance(source, Source):
        with source.file() as path:
            mod = _te(path, settings)
    else:
        mod = _te(model_of(source, settings.seed), settings)
    taken: dict[str, list[str]] = {}
    ops: dict[str, tuple[str, ...]] = {}
    for space in tuning_space(mod, all_strategies=True):
        taken.setdefault(space.kernel, []).append(space.strategy)
        ops[space.kernel] = space.ops
    functions = read_functions(mod.module).kernels
    return [(name, str(function), ops[name], taken[name]) for name, function in functions.items() if name in taken]


def _says_its_sizes(text: str) -> bool:
    """Whether the inputs of a kernel determine the values of all its symbols."""
    mod = IRModule.parse(text)
    with mod.context:
        (function,) = mod.module.body.operations
        try:
            find_sources(specs_of(function, "input"), list(symbol_positions(function)))
        except ValueError:
            return False
    return True


def _te(model: Any, settings: GateSettings) -> IRModule:
    model = str(model) if isinstance(model, Path) else model
    mod = relayc.compile(model, precision=settings.precision, stop_after="te", cache=False)
    assert isinstance(mod, IRModule)
    return mod


def _measure(one: Candidate, settings: GateSettings) -> None:
    """Compiles a kernel by both strategies, compares the results, and measures both in turns."""
    results, turns = list[dict[str, np.ndarray]](), list[Callable[[], list[float]]]()
    memory: dict[Hashable, tvm_ffi.Tensor] = {}
    for side in (one.old, one.new):
        start = time.perf_counter()
        kernel = _compiled(one, side.name, settings)
        side.compile_seconds = time.perf_counter() - start
        one.sizes = sizes = {symbol: one.sizes.get(symbol, LENGTH) for symbol in kernel.info.symbols}
        given = random_inputs(kernel.inputs, settings.seed, sizes)
        found = kernel(*given.values())
        found = found if isinstance(found, (tuple, list)) else (found,)
        results.append({str(i): np.asarray(array) for i, array in enumerate(found)})
        turns.append(functools.partial(turn, _call(kernel, sizes, settings.seed, memory)))
        inputs = [spec.at(sizes) for spec in kernel.inputs]
        one.shapes = " ".join(["x".join(map(str, shape)) or "1" for shape in inputs if shape is not None])
    old, new = results
    one.agrees = compare(new, old, settings.precision).agrees
    with Team(settings.threads):
        for i in range(settings.rounds):
            for side, measured in (list(zip((one.old, one.new), turns, strict=True)))[:: 1 if i % 2 == 0 else -1]:
                side.rounds.append(measured())


def _compiled(one: Candidate, strategy: str, settings: GateSettings) -> Kernel:
    mod = IRModule.parse(one.text)
    with mod.context:
        (function,) = mod.module.body.operations
        attributes = zip(specs_of(function, "input"), value_attributes(function), strict=False)
        specs = {i: spec for i, (spec, given) in enumerate(attributes) if PARAM.on(given)}
    arrays = random_inputs(list(specs.values()), settings.seed)
    params = {i: arrays[spec.name] for i, spec in specs.items()}
    return compile_kernel(mod, tuning={"strategy": strategy}, params=params, num_threads=settings.threads)


def _call(kernel: Kernel, sizes: Mapping[str, int], seed: int, memory: dict[Hashable, tvm_ffi.Tensor]) -> Callable[[], Any]:
    """A call of the function of the kernel only: packed parameters and scratch memory are prepared before.

    Args:
      memory: tensors that both sides share, by name, dtype and shape: addresses can change the speed of a kernel by half.
    """
    tensors = []
    for spec in (*kernel.info.inputs, *kernel.info.outputs):
        key = spec.name, spec.dtype, spec.at(sizes)
        if key not in memory:
            memory[key] = tvm_ffi.from_dlpack(random_inputs([spec], seed, sizes)[spec.name])
        tensors.append(memory[key])
    return functools.partial(kernel.packed, *tensors, *sizes.values())


def gate_table(gate: Gate, threads: int) -> Table:
    """One line per kernel, sorted by the ratio, the largest slowdown last; then the summary."""
    columns = ("old us", "new us", "ratio", "old compile s", "new compile s")
    title = f"kernels by {gate.old} (old) and {gate.new} (new), {threads_text(threads)}"
    table = make_table(title, kernel={}, model={}, inputs={}, **dict.fromkeys(columns, NUMBER))
    for one in sorted(gate.measured, key=lambda one: one.ratio):
        sizes = "".join(f" {name}={value}" for name, value in one.sizes.items())
        table.add_row(
            one.kernel + ("" if one.agrees else " (other results)"),
            one.origin,
            one.shapes + sizes,
            f"{one.old.seconds * 1e6:.1f}",
            f"{one.new.seconds * 1e6:.1f}",
            f"{one.ratio:.2f}",
            f"{one.old.compile_seconds:.3f}",
            f"{one.new.compile_seconds:.3f}",
        )
    return table


def summary_of(gate: Gate) -> str:
    """The summary, as text."""
    lines = []
    if gate.measured:
        old, new = (sum(side.compile_seconds for side in sides) for sides in zip(*((m.old, m.new) for m in gate.measured), strict=True))
        slower = sum(one.ratio > SLOWER for one in gate.measured)
        wrong = sum(not one.agrees for one in gate.measured)
        worst = max(one.ratio for one in gate.measured)
        lines.append(
            f"{len(gate.measured)} kernels: geometric mean {gate.mean:.3f}, largest {worst:.2f}, {slower} above {SLOWER}; "
            f"compilation {old:.2f} s, then {new:.2f} s; {wrong} with other results"
        )
    if gate.declined:
        lines.append(f"{len(gate.declined)} that only one of the two takes: {', '.join(gate.declined)}")
    if gate.inner:
        lines.append(f"{len(gate.inner)} whose inputs do not say all sizes: {', '.join(gate.inner)}")
    return "\n".join(lines) or f"no kernel that both {gate.old} and {gate.new} take"
