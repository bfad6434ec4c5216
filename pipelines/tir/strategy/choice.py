"""The choice of a strategy from the table for a kernel, and the reasons of the others for declining."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from relayc.dialects.discardable import OPERATORS
from relayc.dialects.mlir import ir
from relayc.dialects.relay.facts import Pattern
from relayc.dialects.relay.registration import OPS
from relayc.pipelines.context.target import Target
from relayc.pipelines.te.read.graph import Kernel, NotStructured, read_kernel
from relayc.pipelines.tir.strategy.scheduled import Scheduled
from relayc.pipelines.tir.strategy.table import FALLBACK, Entry, strategies_of
from relayc.pipelines.tir.strategy.tuning import Tuning
from relayc.symbolic import Undecided


@dataclass
class Choice:
    """The outcome of offering a kernel to the strategies.

    Attributes:
      scheduled: the kernel in tir; None where only the fallback takes it.
      tuning: the strategy and its numbers.
      declined: the strategies that were tried before, each with the reason why it declined the kernel; all strategies if none could be
        tried.
      is_fallback: whether `scheduled` is the result of the fallback.
      kernel: the kernel as the strategies read it; None if it cannot be read, or if the fallback was requested.
    """

    scheduled: Scheduled | None
    tuning: Tuning
    declined: list[tuple[str, str]] = field(default_factory=list)
    is_fallback: bool = False
    kernel: Kernel | None = None

    def __str__(self) -> str:
        return FALLBACK if self.is_fallback else str(self.tuning)


def schedule_kernel(source: ir.OpView, target: Target, tuning: Tuning) -> Choice:
    """Schedules a te function into the module at the ambient insertion point, by the first strategy of the table that accepts it.

    Args:
      tuning: the numbers set for the kernel (see `tuning_for`); records the numbers used.
    """
    try:
        kernel = read_kernel(source)
    except NotStructured as error:
        return Choice(None, tuning, [(entry.name, f"it cannot be read: {error}") for entry in strategies_of(target.kind)])
    found = Choice(None, tuning, kernel=kernel)
    for entry, answer in offers(kernel, target, tuning):
        if isinstance(answer, Scheduled):
            found.scheduled = answer
            return found
        found.declined.append((entry.name, answer))
    return found


def offers(kernel: Kernel, target: Target, tuning: Tuning) -> Iterator[tuple[Entry, Scheduled | str]]:
    """For each strategy the kernel as it schedules it, at the ambient insertion point, or the reason why it declines."""
    for entry in strategies_of(target.kind):
        why = _why_not(entry, kernel, target, tuning)
        yield entry, _schedule(entry, kernel, target, tuning) if why is None else why


def _why_not(entry: Entry, kernel: Kernel, target: Target, tuning: Tuning) -> str | None:
    """Why a strategy is not tried; None if it is."""
    only = tuning.given.get("strategy")
    if only not in (None, entry.name):
        return f"only {only} is asked"
    missing = [feature for feature in entry.features if not target.has(feature)]
    if missing:
        return f"the target has no {', '.join(missing)}"
    if entry.anchors:
        anchor = anchor_of(kernel.function)
        if anchor not in entry.anchors:
            return f"it is for kernels around {', '.join(entry.anchors)}, this one is around {anchor or 'no operator'}"
    if entry.condition is not None and not entry.condition(kernel, target):
        return "its condition does not hold"
    return None


def _schedule(entry: Entry, kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | str:
    block = ir.InsertionPoint.current.block
    before = len(block.operations)
    tuning.begin(entry.name)
    try:
        scheduled = entry.schedule(kernel, target, tuning)
    except (NotStructured, Undecided) as error:
        for op in list(block.operations)[before:]:  # remove the operations emitted before the failure
            op.operation.erase()
        return str(error) or "it cannot express the kernel"
    if scheduled is not None:
        return scheduled
    takes = ", ".join(words for words in (entry.operators, entry.shapes, entry.dtypes) if words not in ("", "any"))
    return f"not for it (it takes: {takes})" if takes else "not for it"


_ANCHORS = (Pattern.COMM_REDUCE, Pattern.OUT_ELEMWISE_FUSABLE)


def anchor_of(function: ir.OpView) -> str | None:
    """Relay's name of the anchor operator of a kernel: its first reduction, product, convolution, pooling or row operator; without these
    the first operator with the most restrictive fusion pattern. None for a kernel that was not made of operators."""
    names = operators_of(function)
    patterns = {cls.relay_name or name: cls.pattern for name, cls in OPS.items()}
    anchor = next((name for name in names if patterns.get(name) in _ANCHORS), None)
    return anchor if anchor is not None else max(names, key=lambda name: patterns.get(name, Pattern.OPAQUE), default=None)


def operators_of(function: ir.OpView) -> list[str]:
    """Relay's names of the operators of a kernel, in order."""
    return list(OPERATORS.get(function, ()))
