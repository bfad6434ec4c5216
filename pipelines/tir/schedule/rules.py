"""Relay's op strategy: schedules for all kernels anchored by an operator, with priorities and conditions, in the strategy table."""

from collections.abc import Callable
from typing import TypeVar

from relayc.dialects.relay.registration import OPS
from relayc.pipelines.context.backend import find_backend
from relayc.pipelines.context.target import Target
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.tir.schedule.written_strategy import ScheduleFunction, name_of, schedule_entry
from relayc.pipelines.tir.strategy.table import DEFAULT_PLEVEL, STRATEGIES, register_strategies

Function = TypeVar("Function", bound=ScheduleFunction)


def schedule_rule(
    *operators: str,
    target: str = "cpu",
    plevel: int = DEFAULT_PLEVEL,
    condition: Callable[[Kernel, Target], bool] | None = None,
    name: str | None = None,
) -> Callable[[Function], Function]:
    """Decorator: makes a function of a `relayc.tir.Schedule` the schedule of all kernels with one of the given operators as anchor.

    It is a strategy like the package's: tried before them, unless a strategy of higher `plevel` accepts the kernel. Programs compiled while
    a rule is registered bypass the cache on disk. A later rule of the same name replaces it.

    The anchor of a kernel is its first reduction, product, convolution, pooling or row operator; without these the first operator with the
    most restrictive fusion pattern. A schedule that is not legal for a kernel is an error: use `condition` to decline kernels.

    Args:
      operators: Relay's names ("nn.dense").
      target: kind of target.
      plevel: rules and strategies of higher level are tried first, of equal ones the rule registered last; the package's strategies have
        10.
      condition: a predicate (kernel, target) -> bool: whether the rule is for a kernel (`kernel.results[0].shape`, `kernel.args`, ...).
      name: for display, tuning and removal (default: the name of the function).

    Raises:
      ValueError: no operators, or an unknown one; the name of a strategy that is not a rule.
    """
    known = {cls.relay_name or key for key, cls in OPS.items()}
    unknown = [operator for operator in operators if operator not in known]
    if unknown or not operators:
        raise ValueError(f"schedule_rule: expected Relay's names of operators, such as nn.dense, found {', '.join(unknown) or 'none'}")
    kind = find_backend(target).kind

    def register(function: Function) -> Function:
        found = name_of(function) if name is None else name
        if found in rules(kind):
            remove_schedule_rule(found, kind)
        register_strategies(kind, schedule_entry(found, function, operators, condition, plevel))
        return function

    return register


def remove_schedule_rule(name: str, target: str = "cpu") -> None:
    """Removes a rule that `schedule_rule` added. Raises ValueError if there is none of this name."""
    kind = find_backend(target).kind
    if name not in rules(kind):
        raise ValueError(f"remove_schedule_rule: expected one of {', '.join(rules(kind)) or 'none'}, found {name!r}")
    STRATEGIES[kind] = [entry for entry in STRATEGIES[kind] if entry.name != name]


def rules(kind: str = "cpu") -> list[str]:
    """Names of the rules for a kind of target, in the order in which they are tried."""
    found = sorted(STRATEGIES.get(kind, ()), key=lambda entry: -entry.plevel)
    return [entry.name for entry in found if entry.has_knobs]
