"""The search for the numbers of one kernel: which candidate to measure next."""

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from relayc.packages import optional_package
from relayc.pipelines.driver.tuning_space import TuningSpace
from relayc.tune import SAMPLERS
from relayc.tune.cost_model import CostModel, Features
from relayc.tune.worker import Candidate

_FAILED = 3.0
"""The value of a failed candidate for samplers: log2 of its time relative to the default."""
_MOST_REPEATS = 8
"""Number of known candidates that a sampler may propose before the grid is used."""
_MOST_KNOWN = 400
"""How many combinations of the grid may be known, one after the other, before there are no more: to ask for each takes 20 ms."""

_STEPS = (1, -1, 2, -2, 4, -4)
"""Distance of values from the values of the fastest candidate, which the sampler "tpe" tries in every second candidate."""

_POPULATION, _BATCH, _RANDOM, _KEPT, _PARENTS = 32, 6, 2, 0.7, 4
"""Parameters of the sampler "model": number of ranked candidates, number of the best that are measured before new ones are drawn, number of
random ones in addition, probability that a number of one of the fastest candidates is kept, and number of these fastest candidates."""

SampleKnobs = Callable[[str, int, Mapping[str, Any]], Mapping[str, Any] | None]
"""Random values, by a seed, of the numbers that are not given, for a strategy that samples its numbers itself; None if the given values are
impossible, or for any other strategy."""

AskSpace = Callable[[str, Mapping[str, Any]], TuningSpace | None]
"""The tuning space of a kernel by a strategy with some numbers set: the chosen values and the possible values of the others. None if the
strategy does not accept the kernel with these numbers."""


class Search:
    """Proposes candidates and receives their times.

    Args:
      spaces: tuning spaces of the kernel, by strategy: the default strategy is first.
      ask: see AskSpace.
      sampler: "tpe" (Optuna's Tree-structured Parzen Estimator, in turns with values near the values of the fastest candidate); "random";
        "grid": combinations in which one number differs from the default, then two, and so on; "model": the candidates that `model` ranks
        best among many random candidates and variants of the fastest; or "near": values near the fastest candidate, one number at a time.
      seed: of the sampler.
      model: the cost model, for "model".
      sample: see SampleKnobs.

    Raises:
      ModuleNotFoundError: Optuna is not installed, for "tpe". ValueError: another sampler.
    """

    def __init__(
        self,
        spaces: Sequence[TuningSpace],
        ask: AskSpace,
        sampler: str = "tpe",
        seed: int = 0,
        model: CostModel | None = None,
        sample: SampleKnobs = lambda strategy, seed, numbers: None,
    ) -> None:
        if sampler not in SAMPLERS:
            raise ValueError(f"sampler: expected one of {', '.join(SAMPLERS)}, found {sampler!r}")
        self.spaces = {space.strategy: space for space in spaces if space.chosen}
        self._ask = ask
        self.seen: dict[str, float | None] = {}
        """Times of candidates relative to the default, by name; None for candidates that fail."""
        self._by_loops: dict[str, Candidate] = {}
        self._proposed: dict[str, Candidate] = {}
        self._default: dict[str, Candidate] = {}
        default = spaces[0] if spaces else None
        if default is not None and default.chosen:
            found = Candidate(default.strategy, default.chosen)
            self.seen[found.name], self._by_loops[default.loops or found.name] = 1.0, found
            self._default[found.name] = found
        self._grid = self._unseen()
        self._random = random.Random(seed)
        self._sampler = sampler
        self._study: Any = _study(seed) if sampler == "tpe" else None
        self._open: dict[str, Any] = {}
        self._model, self._sample = model, sample
        self._features: dict[str, Features] = {}
        self._is_near = False
        self._batch: list[Candidate] = []

    @property
    def size(self) -> int:
        """Combinations of values in all."""
        return sum(space.size for space in self.spaces.values())

    def next(self) -> Candidate | None:
        """A candidate that has not been measured; None if there are no more."""
        self._is_near = self._sampler == "near" or (self._sampler == "tpe" and not self._is_near)
        near = self._near() if self._is_near else None
        if near is not None or self._sampler == "near":
            return near
        for _ in range(_MOST_REPEATS if self._sampler != "grid" and len(self.seen) < self.size else 0):
            trial = self._study.ask() if self._study is not None else None
            found = self._fitted(self._drawn(trial)) if self._sampler != "model" else self._promising()
            if found is not None and found.name not in self.seen:
                self._open[found.name] = trial
                return found
            if trial is not None:
                self._study.tell(trial, _value(None if found is None else self.seen[found.name]))
        for one in itertools.islice(self._grid, _MOST_KNOWN):
            found = self._fitted(one) if one.name not in self.seen else None
            if found is not None and found.name not in self.seen:
                return found
        return None

    def tell(self, candidate: Candidate, relative: float | None) -> None:
        """The time of a candidate relative to the default; None if it fails."""
        self.seen[candidate.name] = relative
        self._proposed.setdefault(candidate.name, candidate)
        trial = self._open.pop(candidate.name, None)
        if trial is not None:
            self._study.tell(trial, _value(relative))
        elif self._study is not None and candidate.strategy in self.spaces:
            self._remember(candidate, relative)

    def features(self, candidate: Candidate) -> Features:
        """The features of a candidate that was proposed."""
        return self._features.get(candidate.name, ())

    def _near(self) -> Candidate | None:
        """A variant of the fastest candidate with a nearby value of one number; None if all are known."""
        known = self._default | self._proposed
        times = {name: relative for name, relative in self.seen.items() if relative is not None and name in known}
        best = next((known[name] for name in sorted(times, key=times.__getitem__)), None)
        space = self._ask(best.strategy, best.numbers) if best is not None and best.strategy in self.spaces else None
        if space is None or best is None:
            return None
        self._by_loops.setdefault(space.loops or best.name, best)
        for step in _STEPS:
            for name, values in space.values.items():
                at = values.index(space.chosen[name]) + step
                found = self._fitted(Candidate(space.strategy, {**space.chosen, name: values[at]})) if 0 <= at < len(values) else None
                if found is not None and found.name not in self.seen:
                    return found
        return None

    def _promising(self) -> Candidate | None:
        """The next candidate of a batch: the best of the drawn candidates by the model, and some random ones."""
        if not self._batch:
            drawn = {one.name: one for one in map(self._fitted, self._population()) if one is not None and one.name not in self.seen}
            found = list(drawn.values())
            if found and self._model is not None and self._model.is_ready:
                costs = self._model.predict([self.features(one) for one in found])
                ranked = [found[i] for i in sorted(range(len(found)), key=costs.__getitem__)]
                others = self._random.sample(ranked[_BATCH:], min(_RANDOM, len(ranked[_BATCH:])))
                found = [*ranked[:_BATCH], *others]
            self._batch = found[: _BATCH + _RANDOM][::-1]
        return self._batch.pop() if self._batch else None

    def _population(self) -> Iterator[Candidate]:
        """Random candidates, and variants of the fastest."""
        is_ready = self._model is not None and self._model.is_ready
        times = {name: relative for name, relative in self.seen.items() if relative is not None}
        fastest = [self._proposed[name] for name in sorted(times, key=times.__getitem__)[:_PARENTS] if name in self._proposed]
        for number in range(_POPULATION if is_ready else _BATCH + _RANDOM):
            parent = self._random.choice(fastest) if fastest and number % 2 else None
            strategy = self._random.choice(list(self.spaces)) if parent is None else parent.strategy
            kept = {} if parent is None else {name: v for name, v in parent.numbers.items() if self._random.random() < _KEPT}
            numbers = self._sample(strategy, self._random.getrandbits(31), kept)
            if numbers is None:
                values = self.spaces[strategy].values
                numbers = {name: kept[name] if name in kept else self._random.choice(values[name]) for name in values}
            yield Candidate(strategy, numbers)

    def _fitted(self, candidate: Candidate | None) -> Candidate | None:
        """A candidate with the numbers that the strategy would use: the strategy replaces impossible values. Candidates with the same loops
        become one candidate."""
        space = None if candidate is None else self._ask(candidate.strategy, candidate.numbers)
        if space is None:
            return None
        found = self._by_loops.setdefault(
            space.loops or Candidate(space.strategy, space.chosen).name, Candidate(space.strategy, dict(space.chosen))
        )
        self._features[found.name], self._proposed[found.name] = space.features, found
        return found

    def _drawn(self, trial: Any) -> Candidate | None:
        """Chooses numbers one after the other, each from its possible values given the numbers before it."""
        names = list(self.spaces)
        strategy = names[0] if len(names) == 1 else trial.suggest_categorical("strategy", names) if trial else self._random.choice(names)
        space: TuningSpace | None = self.spaces[strategy]
        numbers: dict[str, Any] = {}
        while space is not None:
            name = next((name for name in space.values if name not in numbers), None)
            if name is None:
                return Candidate(strategy, numbers)
            values = space.values[name]
            numbers[name] = self._random.choice(values) if trial is None else _suggested(trial, f"{strategy}.{name}", values)
            if numbers[name] != space.chosen[name]:
                space = self._ask(strategy, numbers)
        return None

    def _unseen(self) -> Iterator[Candidate]:
        """All combinations, in the order of the number of differences from the defaults."""
        widest = max((len(space.values) for space in self.spaces.values()), default=-1)
        for count in range(widest + 1):
            for strategy, space in self.spaces.items():
                for names in itertools.combinations(space.values, count):
                    others = [[value for value in space.values[name] if value != space.chosen[name]] for name in names]
                    for values in itertools.product(*others):
                        yield Candidate(strategy, {**space.chosen, **dict(zip(names, values, strict=True))})

    def _remember(self, candidate: Candidate, relative: float | None) -> None:
        """Tells the sampler of a candidate that it did not propose."""
        from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
        from optuna.trial import create_trial

        params: dict[str, Any] = {}
        distributions: dict[str, BaseDistribution] = {}
        if len(self.spaces) > 1:
            params["strategy"], distributions["strategy"] = candidate.strategy, CategoricalDistribution(list(self.spaces))
        for name, values in self.spaces[candidate.strategy].values.items():
            key, value = f"{candidate.strategy}.{name}", candidate.numbers.get(name)
            if len(values) < 2:
                continue
            if isinstance(value, int) and value >= 0 and _are_numbers(values):
                low, high = _log(values[0]), _log(values[-1])
                params[key], distributions[key] = min(high, max(low, _log(value))), FloatDistribution(low, high)
            elif value in values:
                params[key], distributions[key] = values.index(value), IntDistribution(0, len(values) - 1)
        self._study.add_trial(create_trial(params=params, distributions=distributions, value=_value(relative)))


def _suggested(trial: Any, key: str, values: Sequence[Any]) -> Any:
    """A value by a sampler: numbers by their logarithm, whose range may be another one each time; others by their position."""
    if len(values) < 2:
        return values[0]
    if _are_numbers(values):
        wanted = trial.suggest_float(key, _log(values[0]), _log(values[-1]))
        return min(values, key=lambda value: abs(_log(value) - wanted))
    return values[trial.suggest_int(key, 0, len(values) - 1)]


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int) and value >= 0 for value in values) and list(values) == sorted(values)


def _log(value: int) -> float:
    return math.log2(value + 1)


def _value(relative: float | None) -> float:
    return _FAILED if relative is None else min(_FAILED, math.log2(max(relative, 1e-9)))


def _study(seed: int) -> Any:
    optuna = optional_package("optuna", "the sampler tpe needs Optuna: pip install 'relayc[tune]' (or sampler='random')")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=8))
