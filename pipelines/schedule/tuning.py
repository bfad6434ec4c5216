"""The tunable numbers of one kernel's schedule: defaults, those that were set from outside, and what was used."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

Parameters = TypeVar("Parameters")


class Tuning:
    """What a strategy asks for its numbers.

    Attributes:
      strategy: the one that is asked now.
      given: values by "strategy.parameter" that take the place of defaults; under "strategy" the only strategy to ask, if any.
      used: numbers by parameter that the strategy has asked for.
    """

    def __init__(self, given: Mapping[str, Any] | None = None) -> None:
        self.given = dict(given or {})
        self.strategy = ""
        self.used: dict[str, int] = {}

    def begin(self, strategy: str) -> None:
        """A strategy is asked from now on."""
        self.strategy, self.used = strategy, {}

    def number(self, parameter: str, default: int) -> int:
        """The value of a parameter of the strategy."""
        self.used[parameter] = self.given.get(f"{self.strategy}.{parameter}", default)
        return self.used[parameter]

    def replace(
        self,
        defaults: Parameters,
        names: Sequence[str] | Mapping[str, str],
        fit: Callable[[Parameters], Parameters] | None = None,
    ) -> Parameters:
        """A dataclass of defaults with values that were set.

        Args:
          names: the tunable fields, with the parameters that they are where these have other names.
          fit: brings values that were set to the nearest that are possible.
        """
        names = names if isinstance(names, Mapping) else dict(zip(names, names, strict=True))
        values = {field: self.number(name, getattr(defaults, field)) for field, name in names.items()}
        found = dataclasses.replace(defaults, **values)  # type: ignore[type-var]
        if fit is not None and found != defaults:
            found = fit(found)
            self.used |= {name: getattr(found, field) for field, name in names.items()}
        return found

    def __str__(self) -> str:
        return " ".join([self.strategy, *(f"{name}={value}" for name, value in self.used.items())])
