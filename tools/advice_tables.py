"""The output of `relayc advise`: the bound of a model, its slowest kernels, and recommendations."""

import math
import os
from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table

from relayc.runtime.profile import COMPUTE, LATENCY, MEMORY, OVERHEAD, THREADS, marked, peak_text, share_texts
from relayc.runtime.threads import usable_cpus
from relayc.tools.advise import Advice, Trial
from relayc.tools.inputs import sizes_text
from relayc.tools.tables import NUMBER, OneLine, make_table, shortened
from relayc.tools.timing import SAME, SLOWER

_PAGE = "docs/why-slow.md"
_MEANING = {
    COMPUTE: "at half of the f32 peak or more: only fewer or narrower operations, or more cores, make it faster",
    MEMORY: "at half of the memory's bandwidth or more: fewer or narrower bytes make it faster",
    OVERHEAD: "calls of less than 10 us: fewer and larger kernels, or larger batches, make it faster",
    THREADS: "more threads bring little: the kernel has too little work to share, or other processes hold the cores",
    LATENCY: "near no limit of the machine: another schedule may make it faster",
}
"""Descriptions of the bounds for the user."""
_SHOWN = 8
"""Kernels in the table, of more the slowest ones."""


def advice_parts(advice: Advice) -> Iterator[RenderableType]:
    """The output, in order: lines and tables."""
    profile = advice.profile
    sizes = f" ({sizes_text(advice.sizes)})" if advice.sizes else ""
    threads = f"{profile.threads} thread{'s' * (profile.threads != 1)}"
    yield f"{profile.latency * 1e3:.3f} ms a call on {threads}, {len(profile.rows)} kernel calls, precision {advice.precision}{sizes}"
    if profile.peak is not None:
        compute, memory = share_texts(profile.total(), profile.peak)
        yield f"{peak_text(profile.peak)}: the kernels together reach {compute} and {memory} of them"
        yield ""
        yield bounds_table(advice)
    if os.getloadavg()[0] > usable_cpus() + 1:
        yield f"other processes use this machine (load {os.getloadavg()[0]:.1f} on {usable_cpus()} CPUs): shares of the peak are uncertain"
    yield ""
    yield slowest_table(advice)
    yield ""
    yield from _changes(advice)


def bounds_table(advice: Advice) -> Table:
    """What bounds the kernels: one line for each bound that some have."""
    table = make_table("what bounds the kernels", bound={}, **{"of total": NUMBER}, meaning={}, page={})
    bounds = advice.bounds()
    seconds: dict[str, float] = {}
    for row, bound in bounds:
        seconds[bound] = seconds.get(bound, 0.0) + row.seconds
    for bound, taken in sorted(seconds.items(), key=lambda item: -item[1]):
        table.add_row(bound, f"{taken / sum(seconds.values()):.0%}", _MEANING[bound], f"{_PAGE}#{bound}")
    return table


def slowest_table(advice: Advice) -> Table:
    """The kernel calls that take longest."""
    rows, peak = advice.profile.rows, advice.profile.peak
    columns = {name: NUMBER for name in ("us", "of total", "of f32", "of memory")}
    order = sorted(range(len(rows)), key=lambda i: -rows[i].seconds)[:_SHOWN]
    title = f"the {len(order)} slowest of {len(rows)} kernel calls" if len(order) < len(rows) else "the kernel calls, slowest first"
    table = make_table(title, kernel={}, nodes={}, **columns, bound={})
    nodes = shortened([row.sources for row in rows])
    bounds = advice.bounds()
    for i in order:
        row = rows[i]
        shares = share_texts(row, peak)
        names = OneLine(marked(row.kernel), 0.7), OneLine(nodes[i], 0)
        table.add_row(*names, f"{row.seconds * 1e6:.1f}", f"{row.share:.1%}", *shares, bounds[i][1] if bounds else "")
    return table


def _changes(advice: Advice) -> Iterator[RenderableType]:
    helpful = advice.helpful
    if helpful:
        yield helpful_table(helpful)
        if any(trial.build.command for trial in helpful):
            yield "to see it again, compare the medians of these commands, run in turns:"
        else:
            yield "how to compile it:"
        width = max(len(name) for name in ("as it is", *(trial.candidate.name for trial in helpful)))
        for name, build in (("as it is", advice.build), *((trial.candidate.name, trial.build) for trial in helpful)):
            yield f"  {name:<{width}}  {build.command or build.call}"
    elif advice.trials:
        yield "nothing that was tried makes it faster beyond the noise"
    groups: dict[str, list[str]] = {}
    for trial in (*advice.trials, advice.together):
        if trial is not None and not trial.helps:
            groups.setdefault(_outcome(trial), []).append(_named(trial))
    for outcome, names in groups.items():
        yield f"{outcome}: {'; '.join(names)}"
    if advice.untried:
        why = "interrupted before" if advice.interrupted else "no time for (--seconds)"
        yield f"{why}: {'; '.join(advice.untried)}"


def helpful_table(helpful: list[Trial]) -> Table:
    """The changes that help."""
    columns = {name: NUMBER for name in ("as it is", "ms", "gain", "99 % sure")}
    table = make_table("what makes it faster, measured in turns", change={"overflow": "fold"}, **columns, difference=NUMBER, cost={})
    for trial in helpful:
        found = trial.comparison
        assert found is not None
        times = [f"{seconds * 1e3:.3f}" for seconds in (found.base_seconds, found.seconds)]
        sure = f"{found.low:.2f}x to {found.high:.2f}x" if math.isfinite(found.high) else "-"
        by_item = " by item" if trial.candidate.kind == "batch" else ""
        table.add_row(trial.candidate.name, *times, f"{found.ratio:.2f}x{by_item}", sure, _difference(trial), trial.candidate.cost)
    return table


def _difference(trial: Trial) -> str:
    found = trial.difference
    if found is None:
        return ""
    if not found.kinds:
        return "NaN or inf"
    return "none" if found.largest == 0 else f"{found.relative:.1e}"


def _outcome(trial: Trial) -> str:
    if trial.comparison is None:
        return "no difference" if trial.why == "the program stays the same" else "not possible"
    verdict = trial.comparison.verdict
    return "slower" if verdict == SLOWER else "no difference" if verdict == SAME else "no gain beyond the noise"


def _named(trial: Trial) -> str:
    name = trial.candidate.name
    if trial.comparison is None:
        return name if trial.why == "the program stays the same" else f"{name} ({trial.why})"
    return f"{name} ({trial.comparison.ratio:.2f}x)"
