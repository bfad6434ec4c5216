"""The tunable numbers of one kernel's schedule: defaults, numbers set from outside, numbers used, and other sensible values."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from relayc.symbolic import Size

Parameters = TypeVar("Parameters")

SKETCH, SCRIPT = "sketch", "script"
"""The strategy that applies a trace given as one of its numbers, and the name of that number."""

Values = Callable[[], Iterable[int]]
"""The sensible values of a parameter for the kernel that is being scheduled, with the other parameters fixed; the value in use is always
included."""


class Tuning:
    """Provides the numbers of a strategy.

    Attributes:
      strategy: the one that is being tried.
      given: values by "strategy.parameter" that replace defaults; under "strategy" the only strategy to try, if any.
      used: numbers that the strategy has requested, by parameter; a knob of a schedule may be a tuple.
      values: their sensible values, if requested.
    """

    def __init__(self, given: Mapping[str, Any] | None = None, asks_values: bool = False) -> None:
        self.given = dict(given or {})
        self.strategy = ""
        self.used: dict[str, Any] = {}
        self.values: dict[str, tuple[Any, ...]] = {}
        self._asks_values = asks_values

    def begin(self, strategy: str) -> None:
        """Starts the trial of a strategy."""
        self.strategy, self.used, self.values = strategy, {}, {}

    def number(self, parameter: str, default: int, values: Values | None = None) -> int:
        """The value of a parameter of the strategy.

        Args:
          values: the sensible values, for a search; called only if a search requests them.
        """
        self.used[parameter] = self.given.get(f"{self.strategy}.{parameter}", default)
        self._note(parameter, values)
        return self.used[parameter]

    def _note(self, parameter: str, values: Values | None) -> None:
        if self._asks_values:
            found = values() if values is not None else ()
            self.values[parameter] = tuple(sorted({self.used[parameter], *self.values.get(parameter, ()), *found}))

    def replace(
        self,
        defaults: Parameters,
        names: Sequence[str] | Mapping[str, str],
        fit: Callable[[Parameters], Parameters] | None = None,
        values: Mapping[str, Callable[[Parameters], Iterable[int]]] | None = None,
    ) -> Parameters:
        """A dataclass of defaults with the values that were set.

        Args:
          names: the tunable fields, mapped to parameters if these have other names.
          fit: rounds values that were set to the nearest possible ones.
          values: functions that return the sensible values, by parameter, given the numbers in use (see `number`).
        """
        names = names if isinstance(names, Mapping) else dict(zip(names, names, strict=True))
        chosen = {field: self.number(name, getattr(defaults, field)) for field, name in names.items()}
        found = dataclasses.replace(defaults, **chosen)  # type: ignore[type-var]
        if fit is not None and found != defaults:
            found = fit(found)
            self.used |= {name: getattr(found, field) for field, name in names.items()}
        for name, sensible in (values or {}).items():
            self._note(name, partial(sensible, found))
        return found

    def decisions(self) -> dict[str, Any]:
        """The values set for the strategy, by parameter: for a schedule, whose knobs are known only after it has run."""
        prefix = f"{self.strategy}."
        return {name.removeprefix(prefix): value for name, value in self.given.items() if name.startswith(prefix)}

    def knob(self, name: str, value: Any, options: Sequence[Any]) -> None:
        """Records the value that a schedule chose for a knob, and its options."""
        self.used[name] = value
        if self._asks_values:
            self.values[name] = tuple(options)

    def __str__(self) -> str:
        return " ".join([self.strategy, *(f"{name}={_text(value)}" for name, value in self.used.items())])


def _text(value: Any) -> str:
    """Formats a value without spaces, because schedules are printed as space-separated words."""
    return f"[{','.join(map(str, value))}]" if isinstance(value, (tuple, list)) else str(value)


def powers_of_two(least: int, most: int) -> list[int]:
    """The powers of two from `least` to `most`."""
    first = power_of_two_from(least)
    return [first << i for i in range((most // first).bit_length())]


def power_of_two_from(number: int) -> int:
    """The smallest power of two that is not smaller than a number."""
    return 1 << max(0, number - 1).bit_length()


def power_of_two(number: int, least: int, most: int) -> int:
    """The largest power of two up to a number, clipped to [least, most]."""
    return max(least, min(most, 1 << max(0, number.bit_length() - 1)))


def distinct(candidates: Iterable[int], default: int, effect: Callable[[int], object]) -> list[int]:
    """One value for each distinct effect, preferably the default."""
    found = {effect(default): default}
    for candidate in candidates:
        found.setdefault(effect(candidate), candidate)
    return list(found.values())


def grains(default: int, *work: Size) -> list[int]:
    """Values of a grain, the work from which a loop nest is parallel, given the work of each nest of a kernel: one value for each choice of
    parallel nests if the work is constant; otherwise some values around the default."""
    numbers = [w for w in work if isinstance(w, int)]
    if len(numbers) == len(work):
        return distinct((1, *(w + 1 for w in numbers)), default, lambda grain: tuple(grain <= w for w in numbers))
    return [max(1, default >> 6), max(1, default >> 3), default, default << 3, default << 6]


def part_sizes(count: int) -> list[int]:
    """Sizes that split a number of items into 1, 2, 3, 4, 6, 8, 12, 16, ... parts of about the same size."""
    parts = [n for power in powers_of_two(1, count) for n in (power, power * 3 // 2) if n <= count]
    return sorted({-(-count // n) for n in parts})
