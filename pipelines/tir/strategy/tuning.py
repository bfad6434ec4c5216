"""The tunable numbers of one kernel's schedule: defaults, those that were set from outside, what was used, and what else is sensible."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from relayc.symbolic import Size

Parameters = TypeVar("Parameters")

Values = Callable[[], Iterable[int]]
"""The sensible values of a parameter for the kernel that is being scheduled, while the others are as they are; the one that is used is
among them, said or not."""


class Tuning:
    """What a strategy asks for its numbers.

    Attributes:
      strategy: the one that is asked now.
      given: values by "strategy.parameter" that take the place of defaults; under "strategy" the only strategy to ask, if any.
      used: numbers by parameter that the strategy has asked for; a knob of a schedule may be several numbers together.
      values: the sensible values of each of these, where they were asked for.
    """

    def __init__(self, given: Mapping[str, Any] | None = None, asks_values: bool = False) -> None:
        self.given = dict(given or {})
        self.strategy = ""
        self.used: dict[str, Any] = {}
        self.values: dict[str, tuple[Any, ...]] = {}
        self._asks_values = asks_values

    def begin(self, strategy: str) -> None:
        """A strategy is asked from now on."""
        self.strategy, self.used, self.values = strategy, {}, {}

    def number(self, parameter: str, default: int, values: Values | None = None) -> int:
        """The value of a parameter of the strategy.

        Args:
          values: the sensible ones, for who searches; it is called only where someone does.
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
        """A dataclass of defaults with values that were set.

        Args:
          names: the tunable fields, with the parameters that they are where these have other names.
          fit: brings values that were set to the nearest that are possible.
          values: functions that give the sensible ones, by parameter, of the numbers that are used (see `number`).
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
        """What was set for the strategy, by parameter: of a schedule, whose knobs are known only when it has run."""
        prefix = f"{self.strategy}."
        return {name.removeprefix(prefix): value for name, value in self.given.items() if name.startswith(prefix)}

    def knob(self, name: str, value: Any, options: Sequence[Any]) -> None:
        """A schedule has chosen the value of one of its knobs out of several."""
        self.used[name] = value
        if self._asks_values:
            self.values[name] = tuple(options)

    def __str__(self) -> str:
        return " ".join([self.strategy, *(f"{name}={_text(value)}" for name, value in self.used.items())])


def _text(value: Any) -> str:
    """A value without spaces: a schedule is told in words that these part."""
    return f"[{','.join(map(str, value))}]" if isinstance(value, (tuple, list)) else str(value)


def powers_of_two(least: int, most: int) -> list[int]:
    """The powers of two from `least` to `most`."""
    first = power_of_two_from(least)
    return [first << i for i in range(max(0, (most // first).bit_length()))] if most >= first else []


def power_of_two_from(number: int) -> int:
    """The smallest power of two that is not smaller than a number."""
    return 1 << max(0, number - 1).bit_length()


def power_of_two(number: int, least: int, most: int) -> int:
    """The largest power of two up to a number, between two others."""
    return max(least, min(most, 1 << max(0, number.bit_length() - 1)))


def distinct(candidates: Iterable[int], default: int, effect: Callable[[int], object]) -> list[int]:
    """Of the values that have the same effect one, the default where it is among them."""
    found = {effect(default): default}
    for candidate in candidates:
        found.setdefault(effect(candidate), candidate)
    return list(found.values())


def grains(default: int, *work: Size) -> list[int]:
    """Values of a grain, the work from which a loop nest is parallel, for the work of each nest of a kernel: where these are numbers, one
    value for each choice of nests; where only a call knows them, some around the default."""
    numbers = [w for w in work if isinstance(w, int)]
    if len(numbers) == len(work):
        return distinct((1, *(w + 1 for w in numbers)), default, lambda grain: tuple(grain <= w for w in numbers))
    return [max(1, default >> 6), max(1, default >> 3), default, default << 3, default << 6]


def part_sizes(count: int) -> list[int]:
    """Sizes that cut a number of things in 1, 2, 3, 4, 6, 8, 12, 16, ... parts of about the same size."""
    parts = [n for power in powers_of_two(1, max(1, count)) for n in (power, power * 3 // 2) if n <= count]
    return sorted({-(-count // n) for n in parts})
