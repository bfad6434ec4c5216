"""`relayc.advise` and `relayc advise`: where the time of a model goes, and which changes make it faster on this machine, as measured."""

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from relayc.pipelines import DEFAULT_OPT_LEVEL, MAX_OPT_LEVEL
from relayc.pipelines.context.target import Target
from relayc.runtime import Module, Profile
from relayc.runtime.profile import BOUNDS, ProfileRow
from relayc.runtime.threads import usable_cpus
from relayc.tools.build import Build
from relayc.tools.inputs import inputs_of, sizes_of_call, sizes_text, tensors_of
from relayc.tools.reference import Difference, difference
from relayc.tools.timing import FASTER, WORTH, Comparison, compare_times, is_decided

SECONDS = 60.0
"""How long to look for changes that help, by default."""
_OPTIONAL = ("alter-op-layout", "winograd", "winograd-by-size")
"""Passes that make most models faster, and some slower: layouts, and convolutions with fewer products."""
_BATCHES = (8, 32)
_LEAST_SECONDS = 0.5
"""A change that was compiled is timed for as long at least."""


@dataclass(frozen=True)
class Candidate:
    """A change that may help.

    Attributes:
      kind: the best change of a kind is combined with changes of other kinds; "batch" with none.
      name: for display.
      change: applies it.
      cost: its disadvantage besides time; "" for none.
      factor: growth of the batch.
    """

    kind: str
    name: str
    change: Callable[[Build], Build]
    cost: str = ""
    symbol: str = ""
    factor: float = 1.0


@dataclass(frozen=True)
class Trial:
    """A change that was tried.

    Attributes:
      comparison: with the unchanged model; for batches, per item. None if there is none; `why` gives the reason.
      difference: the largest difference of an output from the unchanged model's.
    """

    candidate: Candidate
    build: Build
    comparison: Comparison | None = None
    difference: Difference | None = None
    why: str = ""

    @property
    def helps(self) -> bool:
        return self.comparison is not None and self.comparison.verdict == FASTER

    def as_data(self) -> dict[str, Any]:
        """The trial as plain data."""
        return {
            "kind": self.candidate.kind,
            "change": self.candidate.name,
            "cost": self.candidate.cost,
            **self.build.as_data(),
            "helps": self.helps,
            "why": self.why,
            "times": None if self.comparison is None else self.comparison.as_data(),
            "difference": None if self.difference is None else asdict(self.difference),
        }


@dataclass
class Advice:
    """Where the time of a model goes, and what helps.

    Attributes:
      build: the model as it is.
      sizes: of the symbols, in the calls that were timed.
      profile: of the model as it is.
      alone: seconds of the rows of the profile on one thread; None if the calls use one.
      trials: the changes that were tried, in order.
      together: the best changes of each kind at once; None if fewer than two help.
      untried: names of changes for which there was no time.
      interrupted: whether it was ended before everything was tried.
    """

    build: Build
    precision: str
    sizes: Mapping[str, int]
    profile: Profile
    alone: Sequence[float] | None = None
    trials: list[Trial] = field(default_factory=list)
    together: Trial | None = None
    untried: list[str] = field(default_factory=list)
    interrupted: bool = False

    @property
    def helpful(self) -> list[Trial]:
        """The changes that help, those that gain most first; all of them together among them, and batches last."""
        found = [trial for trial in (*self.trials, self.together) if trial is not None and trial.helps]
        return sorted(found, key=lambda trial: (trial.candidate.kind == "batch", -_ratio(trial)))

    @property
    def best(self) -> Trial | None:
        """The change with the fastest call; None if no change helps."""
        return next((trial for trial in self.helpful if trial.candidate.kind != "batch"), None)

    def bounds(self) -> list[tuple[ProfileRow, str]]:
        """The rows of the profile with their bounds; empty if the peak is unknown."""
        peak, rows = self.profile.peak, self.profile.rows
        alone = [None] * len(rows) if self.alone is None else self.alone
        return [] if peak is None else [(row, row.bound(peak, one)) for row, one in zip(rows, alone, strict=True)]

    def as_data(self) -> dict[str, Any]:
        """The advice as plain data, for JSON."""
        bounds = self.bounds()
        data = self.profile.as_data()
        rows = [{**row, "bound": bound} for row, (_, bound) in zip(data["kernels"], bounds, strict=True)] if bounds else data["kernels"]
        total = sum(row.seconds for row, _ in bounds) or 1.0
        return {
            **self.build.as_data(),
            "precision": self.precision,
            "sizes": dict(self.sizes),
            **{name: data[name] for name in ("latency_seconds", "kernel_seconds", "threads", "peak")},
            "bounds": {bound: sum(row.seconds for row, found in bounds if found == bound) / total for bound in BOUNDS},
            "kernels": rows,
            "trials": [trial.as_data() for trial in self.trials],
            "together": None if self.together is None else self.together.as_data(),
            "best": None if self.best is None else self.best.as_data(),
            "untried": self.untried,
            "interrupted": self.interrupted,
        }

    def __str__(self) -> str:
        from relayc.tools.advice_tables import advice_parts
        from relayc.tools.tables import parts_text

        return parts_text(advice_parts(self))


def advise(
    model: Any,
    inputs: Mapping[str, Any] | None = None,
    *,
    seconds: float = SECONDS,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
    report: Callable[[str], None] = lambda text: None,
    **options: Any,
) -> Advice:
    """Says where the time of a model goes, and which changes of how it is compiled and called make it faster on this machine.

    Each change is compiled and timed in turns with the model as it is, until the difference is beyond the noise or not worth it.

    Args:
      model: what `relayc.compile` takes.
      inputs: by name; by default random ones.
      seconds: how long to try changes. An interrupt (^C) ends it earlier, with what is known by then.
      sizes: of symbolic dimensions in random inputs; by default typical ones.
      seed: of random inputs.
      report: called with a line of text for each step.
      options: of `relayc.compile`; the ambient PassContext holds, too.

    Raises:
      ValueError, TypeError: as `relayc.compile` and the call of the module do; this machine cannot run the program.
    """

    words = [word for name, size in (sizes or {}).items() for word in ("--size", f"{name}={size}")]
    words += ["--seed", str(seed)] if seed else []
    build = Build.of(model, options, None if inputs is not None else words)
    return search(build, lambda module: inputs_of(module, inputs, sizes, seed), seconds, report)


def search(
    build: Build, make_inputs: Callable[[Module], Mapping[str, Any]], seconds: float, report: Callable[[str], None] = lambda text: None
) -> Advice:
    """Implements `advise`.

    Args:
      make_inputs: returns the inputs of the module.
    """
    if build.target.emulate:
        raise ValueError("advise: expected a target whose instructions this machine has, found one that is emulated: its times say nothing")
    report("the model as it is")
    module = build.compile()
    if module.lacking:
        raise ValueError(f"advise: expected a target that this machine has, found one with {', '.join(module.lacking)}, which it lacks")
    if not module.device.exists:
        raise ValueError(f"advise: expected a device {module.device}, found none")
    inputs = make_inputs(module)
    outputs = tensors_of(module.run(inputs))
    deadline = time.perf_counter() + seconds
    report("a profile of the model as it is")
    profile, alone = _profiles(build, module, inputs)
    advice = Advice(build, module.precision, sizes_of_call(module, inputs), profile, alone)
    open_trials = list(candidates(build, module, advice.sizes))
    try:
        if profile.peak is None:
            report("no peak is known")
        while open_trials:
            left = deadline - time.perf_counter()
            if left <= 0:
                break
            candidate = open_trials[0]
            report(candidate.name)
            advice.trials.append(_try(candidate, build, module, inputs, outputs, left / (len(open_trials) + 1)))
            open_trials.pop(0)
        best = _best_by_kind(advice.trials)
        if len(best) > 1:
            report("the changes that help, together")
            left = deadline - time.perf_counter()
            advice.together = _try(_combined(best), build, module, inputs, outputs, max(left, seconds / 10))
    except KeyboardInterrupt:
        advice.interrupted = True
    advice.untried = [candidate.name for candidate in open_trials]
    return advice


def _profiles(build: Build, module: Module, inputs: Mapping[str, Any]) -> tuple[Profile, Sequence[float] | None]:
    """The profile, and the seconds of its rows on one thread, where the calls use more."""
    profile = module.profile(inputs)
    if profile.threads == 1:
        return profile, None
    module.num_threads = 1
    try:
        return profile, [row.seconds for row in module.profile(inputs).rows]
    finally:
        module.num_threads = build.threads


def measure(
    module: Module, inputs: Mapping[str, Any], other: Module, others: Mapping[str, Any], seconds: float, factor: float
) -> Comparison:
    """Times two modules in turns, as often as it takes to know whether the second one is faster, by item of a batch `factor` times as
    large."""

    def enough(found: Comparison) -> bool:
        found = found.by_item(factor)
        return is_decided(found) or found.high < 1 + WORTH

    return compare_times(lambda: module.run(inputs), lambda: other.run(others), seconds, enough).by_item(factor)


def _try(
    candidate: Candidate, build: Build, module: Module, inputs: Mapping[str, Any], outputs: Mapping[str, np.ndarray], seconds: float
) -> Trial:
    start = time.perf_counter()
    made = candidate.change(build)
    try:
        other = made.compile()
        if candidate.kind.startswith("pass") and other.kernels == module.kernels:
            return Trial(candidate, made, why="the program stays the same")
        others = _tiled(inputs, module, candidate)
        found = other.run(others)
        far = _farthest(tensors_of(found), outputs, candidate.factor)
        left = max(seconds - (time.perf_counter() - start), _LEAST_SECONDS)
        return Trial(candidate, made, measure(module, inputs, other, others, left, candidate.factor), far)
    except (ValueError, TypeError, MemoryError) as error:
        return Trial(candidate, made, why=" ".join(str(error).split()))


def _tiled(inputs: Mapping[str, Any], module: Module, candidate: Candidate) -> dict[str, Any]:
    """The inputs, repeated along the batch until it has the size of the candidate."""
    found = dict(inputs)
    for spec in module.inputs if candidate.factor != 1 else ():
        array = np.asarray(found[spec.name])
        if spec.shape and str(spec.shape[0]) == candidate.symbol:
            rows = round(len(array) * candidate.factor)
            found[spec.name] = np.resize(array, (rows, *array.shape[1:]))  # repeats what is there
    return found


def _farthest(found: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray], factor: float) -> Difference | None:
    """Of outputs of the same shape that of the largest relative difference; of batches, the rows that both have."""
    differences = []
    for name, wanted in outputs.items():
        if name not in found or found[name].ndim != wanted.ndim:
            continue
        given = found[name]
        if factor != 1 and wanted.ndim:
            rows = min(len(given), len(wanted))
            given, wanted = given[:rows], wanted[:rows]
        if given.shape == wanted.shape:
            differences.append(difference(given, wanted))
    return max(differences, key=lambda one: (not one.kinds, one.relative), default=None)


# ---- what may help ------------------------------------------------------------------------------------------------------------------


def _with_pass(build: Build, name: str, runs: bool) -> Build:
    names = build.context["disabled_pass"] - {name} | (set() if runs else {name})
    return replace(build, context={**build.context, "disabled_pass": names})


def _native(build: Build) -> Build:
    return build.changed(target=f"cpu -num-threads={build.target.num_threads}")


def _with_dims(build: Build, dims: Mapping[str, Any], fixed: Collection[str] = ()) -> Build:
    inputs = _without_sizes(build.inputs, fixed)
    return replace(build.changed(dims={**build.options.get("dims", {}), **dims}), inputs=inputs)


def candidates(build: Build, module: Module, sizes: Mapping[str, int]) -> Iterator[Candidate]:
    """The changes that apply to a model, those that gain most as a rule first.

    Args:
      sizes: of the symbols, in the calls that are timed.
    """
    target = build.target
    for precision in target.precisions:
        if precision != module.precision:
            cost = "results are rounded" if precision != "f32" else ""
            yield Candidate("precision", f"precision {precision}", partial(Build.changed, precision=precision), cost)
    yield from _of_shapes(module, sizes)
    if target.kind == "cpu":
        yield from _of_cpus(build)
    for name in sorted(build.context["disabled_pass"]):
        yield Candidate(f"pass {name}", f"without --disable {name}", partial(_with_pass, name=name, runs=True))
    level = build.options.get("opt_level", DEFAULT_OPT_LEVEL)
    for other in range(DEFAULT_OPT_LEVEL, MAX_OPT_LEVEL + 1):
        if other != level:
            yield Candidate("pass level", f"opt level {other}", partial(Build.changed, opt_level=other))
    for name in _OPTIONAL:
        if name not in build.context["disabled_pass"] and level >= DEFAULT_OPT_LEVEL:
            yield Candidate(f"pass {name}", f"without {name}", partial(_with_pass, name=name, runs=False))
    yield from _of_batches(build, module, sizes)


def _of_shapes(module: Module, sizes: Mapping[str, int]) -> Iterator[Candidate]:
    if not sizes:
        return
    at = {name: int(sizes[name]) for name in sorted(sizes)}
    text = sizes_text(at)
    yield Candidate("shapes", f"fixed sizes: {text}", partial(_with_dims, dims=at, fixed=list(at)), "runs at these sizes only")
    if at not in module.specialized:
        special = [*module.specialized, at]
        cost = "more code and a longer compilation; runs at all sizes"
        yield Candidate("shapes", f"hot sizes: {text}", partial(Build.changed, specialize=special), cost)
    known = {name: module.ranges.get(name, (0, math.inf)) for name in at}
    bounded = {name: (max(1, known[name][0]), size) for name, size in at.items() if 0 < size < known[name][1]}
    if bounded:
        most = ", ".join(f"{name} <= {size}" for name, (_, size) in bounded.items())
        yield Candidate("shapes", f"bounded sizes: {most}", partial(_with_dims, dims=bounded), "runs up to these sizes")


def _of_cpus(build: Build) -> Iterator[Candidate]:
    cpus = usable_cpus()
    for count in sorted({1 << i for i in range(cpus.bit_length())} & set(range(1, cpus + 1)) | {cpus}):
        if count != build.called_on:
            cost = f"uses {count} cores" if count > build.called_on else ""
            yield Candidate("threads", f"{count} thread{'s' * (count > 1)}", partial(replace, threads=count), cost)
    if build.target != Target("cpu", num_threads=build.target.num_threads):
        cost = "runs on CPUs with the instructions of this one only"
        yield Candidate("target", "the instructions of this CPU", _native, cost)


def _of_batches(build: Build, module: Module, sizes: Mapping[str, int]) -> Iterator[Candidate]:
    """Larger batches, of a symbol that is the first dimension of every input."""
    leading = {str(spec.shape[0]) if spec.shape else "" for spec in module.inputs}
    symbol = leading.pop() if len(leading) == 1 else ""
    if symbol not in sizes or not sizes[symbol]:
        return
    low, high = module.ranges.get(symbol, (0, math.inf))
    for size in _BATCHES:
        if size != sizes[symbol] and low <= size <= high:
            words = _without_sizes(build.inputs, [symbol])
            # Inputs of a file are repeated here, which no option says.
            words = None if words is None or "--inputs" in words else [*words, "--size", f"{symbol}={size}"]
            cost = "a call takes longer" if size > sizes[symbol] else ""
            yield Candidate("batch", f"{symbol} = {size}", partial(replace, inputs=words), cost, symbol, size / sizes[symbol])


def _without_sizes(words: Sequence[str] | None, names: Collection[str]) -> list[str] | None:
    """The command-line words that define the inputs, without the sizes of some symbols."""
    if words is None:
        return None
    pairs = zip(words[::2], words[1::2], strict=True)
    return [word for option, value in pairs if option != "--size" or value.partition("=")[0] not in names for word in (option, value)]


# ---- what helps together ------------------------------------------------------------------------------------------------------------


def _best_by_kind(trials: Sequence[Trial]) -> list[Trial]:
    """Of each kind but batches, the change that helps most."""
    helpful = [trial for trial in trials if trial.helps and trial.candidate.kind != "batch"]
    kinds = dict.fromkeys(trial.candidate.kind for trial in helpful)
    return [max((trial for trial in helpful if trial.candidate.kind == kind), key=_ratio) for kind in kinds]


def _ratio(trial: Trial) -> float:
    return 0.0 if trial.comparison is None else trial.comparison.ratio


def _combined(trials: Sequence[Trial]) -> Candidate:
    def change(build: Build) -> Build:
        for trial in trials:
            build = trial.candidate.change(build)
        return build

    costs = dict.fromkeys(trial.candidate.cost for trial in trials if trial.candidate.cost)
    return Candidate("together", " + ".join(trial.candidate.name for trial in trials), change, "; ".join(costs))
