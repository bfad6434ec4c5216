"""Selects schedules of the kernels of a module: by their names, or from the strategy table."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from relayc.dialects.discardable import UPDATES
from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.history.keys import kernel_key
from relayc.pipelines.history.records import NOTHING, RECORDS, Records, level_of
from relayc.pipelines.tir.strategy.choice import Choice, operators_of, schedule_kernel
from relayc.pipelines.tir.strategy.table import FUNCTIONS, strategies_of, tuning_for
from relayc.pipelines.tir.strategy.tuning import Tuning


class Schedules:
    """The schedules given for kernels by pattern of names ("schedule.functions" of a PassContext), and the strategy table for the others.

    Args:
      kernels: the te functions of a module by name.
      asks_values: whether strategies should give the sensible values of numbers.

    Raises:
      ValueError: a pattern that matches no kernel.
      TypeError: an invalid schedule.
    """

    def __init__(self, kernels: Mapping[str, ir.OpView], target: Target, config: Mapping[str, Any], asks_values: bool) -> None:
        self.target, self.config, self.asks_values = target, config, asks_values
        self._records: Records = config.get(RECORDS) or NOTHING
        self._own: dict[str, tuple[str, Any]] = {}
        for pattern, source in config.get(FUNCTIONS, {}).items():
            from relayc.pipelines.tir.schedule.written_strategy import name_of

            try:
                label = name_of(source)
            except TypeError as error:
                raise TypeError(f"schedules: {pattern!r}: {error}") from None
            matching = [name for name in kernels if fnmatchcase(name, pattern)]
            if not matching:
                known = ", ".join(f"@{name} ({' '.join(operators_of(f)) or 'no operators'})" for name, f in kernels.items()) or "none"
                raise ValueError(f"schedules: {pattern!r}: expected a pattern of names of kernels out of {known}, found none that matches")
            self._own |= {name: (label, source) for name in matching}

    def has_own(self, name: str) -> bool:
        """Whether a kernel gets a schedule by its name."""
        return name in self._own

    def choose(self, name: str, function: ir.OpView) -> Choice:
        """Schedules the kernel in tir, at the ambient insertion point, unless only the fallback accepts it.

        Raises ScheduleError if its own schedule, or a rule for it, is not legal for it.
        """
        own = self._own.get(name)
        tuning = tuning_for(name, self.config, self.target.kind, None if own is None else own[0], self.asks_values)
        if UPDATES.on(function):
            why = "it writes a part of an argument in place"
            if own is not None:
                from relayc.pipelines.tir.tree.members import ScheduleError

                raise ScheduleError(f"schedule {own[0]} of kernel @{name}: expected a kernel that gives a tensor, found one where {why}")
            return Choice(None, tuning, [(entry.name, why) for entry in strategies_of(self.target.kind)])
        if own is None:
            recorded = self._recorded(name, function)
            choice = schedule_kernel(function, self.target, recorded or tuning)
            # A record must not lead to plain loops.
            return schedule_kernel(function, self.target, tuning) if choice.scheduled is None and recorded else choice
        from relayc.pipelines.tir.schedule.written_strategy import schedule_by

        tuning.begin(own[0])
        return Choice(schedule_by(own[0], own[1], function, self.target, tuning), tuning)

    def _recorded(self, name: str, function: ir.OpView) -> Tuning | None:
        """The best measured numbers for a kernel; None if there are none, or they are unknown to the strategies."""
        records = self._records
        settings = records.settings and records.settings.get(kernel_key(function, self.target))
        if not settings and records.shipped:
            settings = records.shipped.get(kernel_key(function, level_of(self.target)))
        if not settings:
            return None
        try:
            return tuning_for(name, self.config, self.target.kind, None, self.asks_values, settings)
        except ValueError:  # an error of the user's own numbers has been raised before
            return None
