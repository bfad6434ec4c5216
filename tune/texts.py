"""A search in words, and as a page."""

import itertools
import re
from collections.abc import Iterator, Sequence

from rich.table import Table

from relayc.pipelines.history.record import Record
from relayc.pipelines.tir.strategy.tuning import SCRIPT
from relayc.tools.tables import NUMBER, make_table
from relayc.tune.model import Tuning
from relayc.tune.session import State


def kernel_rows(tuning: Tuning) -> list[list[str]]:
    """Of each kernel that was measured: name, share of the model's time, trials, seconds of a call before and after, gain, numbers."""
    rows = []
    for state in tuning.states:
        if state.search is None and not state.skipped:
            continue
        share = f"{state.task.seconds / tuning.total:.1%}" if tuning.total and state.task.seconds else ""
        after = state.seconds * state.relative
        times = [f"{state.seconds * 1e6:.1f}", f"{after * 1e6:.1f}", f"{1 / state.relative:.2f}"] if state.seconds else ["", "", ""]
        what = _words(state.record) if state.record is not None else state.skipped or "as they are"
        rows.append([state.task.name, share, str(state.known + len(state.trials)), *times, what])
    return rows


def _words(record: Record) -> str:
    """What a record sets, on a line: of a generated schedule the numbers in its trace."""
    script = record.numbers.get(SCRIPT)
    numbers = record.numbers.items() if script is None else re.findall(r'transform\.tune\.knob<"([^"]+)"> = (\S+)', script)
    return " ".join([record.strategy, *(f"{name}={value}" for name, value in numbers)])


FOLDED = {"overflow": "fold"}
"""Options of a column of long texts."""
HEADS = ("kernel", "share", "trials", "us before", "us after", "gain", "numbers")


def tuning_table(tuning: Tuning) -> Table:
    """One line per kernel that was measured."""
    columns = {name: NUMBER for name in HEADS[1:-1]}
    table = make_table(f"{tuning.name}: kernels", kernel=FOLDED, **columns, numbers=FOLDED)
    for row in kernel_rows(tuning):
        table.add_row(*row)
    return table


def summary(tuning: Tuning) -> str:
    """What came of the search, in one line."""
    found = (
        f"{tuning.trials} trials of {sum(1 for s in tuning.states if s.trials and s is not tuning.graph)} kernels in {tuning.seconds:.0f} s"
    )
    if tuning.interrupted:
        return f"{found}, interrupted: what was found is in {tuning.database}, and the same search goes on from there"
    if not tuning.total or tuning.check is None:
        return f"{found}: {tuning.gain:.2f} times as fast" if tuning.gain > 1 else f"{found}: nothing faster than the defaults"
    comparison = tuning.check.comparison
    if comparison is None:
        return f"{found}: none of {len(tuning.check.refused)} records makes the model faster; they are not kept"
    refused = f", {len(tuning.check.refused)} records are not kept" if tuning.check.refused else ""
    times = f"{comparison.base_seconds * 1e3:.3f} ms a call before, {comparison.seconds * 1e3:.3f} ms after"
    of_graph = f", after {1 / tuning.graph.relative:.2f} by its graph" if tuning.graph is not None and tuning.graph.relative < 1 else ""
    return f"{found}: the model is {tuning.gain:.2f} times as fast ({times}; {comparison.verdict}{of_graph}){refused}"


def tuning_text(tuning: Tuning) -> str:
    """The search as text."""
    rows = [list(HEADS), *kernel_rows(tuning)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADS))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([*lines, summary(tuning)])


def records_tables(records: Sequence[Record]) -> Iterator[Table]:
    """The records of a database, one line each: a table for each target and machine, whose names are long."""
    columns = {"kernel": FOLDED, "operators": FOLDED, "gain": NUMBER, "us": NUMBER, "trials": NUMBER, "numbers": FOLDED}
    groups: dict[str, list[Record]] = {}
    for one in records:
        groups.setdefault(f"{one.target}\n{one.machine}".strip(), []).append(one)
    for title, group in groups.items():
        table = make_table(title, **columns)
        for one in group:
            times = [f"{one.ratio:.2f}" + ("" if one.is_checked else " ?"), f"{one.seconds * 1e6:.1f}", str(one.trials)]
            table.add_row(one.kernel, " ".join(one.ops), *times, _words(one))
        table.caption = "?: the whole model was not measured with it" if any(not one.is_checked for one in group) else None
        yield table


# ---- the page ---------------------------------------------------------------------------------------------------------------------

_WIDTH, _HEIGHT = 560, 120


def tuning_page(tuning: Tuning) -> bytes:
    """The page, which needs no other file. Raises ModuleNotFoundError where jinja2 is not installed."""
    from relayc.tools.report import environment, style

    charts = [("the model, as its kernels say", chart(tuning.gains), f"{tuning.gains[-1]:.3f}")] if tuning.gains and tuning.total else []
    for state in tuning.states:
        if state.trials:
            charts.append((state.task.name, kernel_chart(state), f"{1 / state.relative:.3f}"))
    rows = kernel_rows(tuning)
    facts = [("summary", summary(tuning)), ("database", tuning.database)]
    page = environment().get_template("tuning.html")
    return page.render(title=tuning.name, style=style(), facts=facts, heads=HEADS, rows=rows, charts=charts).encode()


def kernel_chart(state: State) -> str:
    """The gain of each trial, and of the best so far."""
    gains = [0.0 if trial.relative is None else 1 / trial.relative for trial in state.trials]
    best = state.previous.ratio if state.previous is not None else 1.0
    return chart(list(itertools.accumulate(gains, max, initial=best))[1:], gains)


def chart(line: Sequence[float], points: Sequence[float] = ()) -> str:
    """Values over trials as an SVG picture: a line of steps, and points; a line at 1."""
    top = max([1.05, *line, *points]) * 1.05
    step = _WIDTH / max(len(line), 1)

    def y(value: float) -> str:
        return f"{_HEIGHT * (1 - value / top):.1f}"

    ends = [(i * step, (i + 1) * step, y(value)) for i, value in enumerate(line)]
    path = " ".join(f"{'L' if i else 'M'}{first:.1f} {at} L{last:.1f} {at}" for i, (first, last, at) in enumerate(ends))
    kinds = [("good" if value else "bad", (i + 0.5) * step, y(value)) for i, value in enumerate(points)]
    dots = "".join(f'<circle cx="{x:.1f}" cy="{at}" r="2.5" class="{kind}"/>' for kind, x, at in kinds)
    axis = f'<line x1="0" x2="{_WIDTH}" y1="{y(1)}" y2="{y(1)}" class="axis"/>'
    return f'<svg viewBox="0 -4 {_WIDTH} {_HEIGHT + 8}" role="img">{axis}{dots}<path d="{path}" class="line"/></svg>'
