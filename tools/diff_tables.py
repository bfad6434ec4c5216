"""The output of `relayc diff`."""

import math
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table

from relayc.tools.diff import Change, Diff, seconds_of
from relayc.tools.record import Call
from relayc.tools.tables import NUMBER, make_table, scaled

_SHOWN = 30
"""Changes in the table."""


def diff_parts(found: Diff, texts: bool) -> Iterator[RenderableType]:
    """What to print, in order: lines and tables; with `texts` the changed lines of kernels, too."""
    for side, record in (("a", found.a), ("b", found.b)):
        yield f"{side}: {record.made_by['program']}"
    for what in ("target", "precision", "relayc"):
        if found.a.made_by[what] != found.b.made_by[what]:
            yield f"{what}: {found.a.made_by[what]} -> {found.b.made_by[what]}"
    for name, types in found.interface.items():
        yield f"{name}: {' -> '.join('none' if type_ is None else type_ for type_ in types)}"
    if found.changes:
        yield ""
        yield changes_table(found.changes)
        yield ""
    else:
        yield f"kernels: the same {len(found.a.calls)} calls"
    for name, (a, b) in found.memory.items():
        yield f"memory, {name}: {scaled(a)} -> {scaled(b)} bytes"
    yield from _outputs(found)
    if found.times is not None:
        times = found.times
        how = f"{times.verdict} ({times.rounds} rounds in turns)" if found.in_turns else "measured at different times, not in turns"
        sure = f", 99 % sure {times.low:.2f}x to {times.high:.2f}x" if math.isfinite(times.high) else ""
        ms = f"{times.base_seconds * 1e3:.3f} ms -> {times.seconds * 1e3:.3f} ms"
        yield f"time of a call: {ms}: {times.ratio:.2f}x{sure}, {how}"
    for change in found.changes if texts else ():
        if text := change.texts():
            yield f"\n{change.a[0].kernel}:\n{text}"


def _outputs(found: Diff) -> Iterator[str]:
    if found.outputs is None:
        yield "results: not compared, as inputs or shapes are not the same"
        return
    for name, one in found.outputs.items():
        if not one.is_none:
            kinds = "" if one.kinds else ", NaN or infinities in other places"
            yield f"output {name}: largest difference {one.largest:.3g}, {one.relative:.1e} of the largest magnitude{kinds}"
    if all(one.is_none for one in found.outputs.values()):
        yield "results: the same bits"


def changes_table(changes: Sequence[Change]) -> Table:
    """One line for each group of calls that changed, the first ones of many."""
    columns = {name: {"overflow": "fold"} for name in ("nodes", "a", "b")}
    title = f"{len(changes)} change{'s' * (len(changes) > 1)} of kernel calls"
    title += f", the first {_SHOWN} (--json has all)" if len(changes) > _SHOWN else ""
    timed = any(seconds_of(calls) is not None for change in changes for calls in (change.a, change.b))
    table = make_table(title, **{"what": {}, **columns, **({"a us": NUMBER, "b us": NUMBER} if timed else {})})
    for change in changes[:_SHOWN]:
        nodes = list(dict.fromkeys(node for call in (*change.a, *change.b) for node in call.sources))
        more = f" +{len(nodes) - 1}" if len(nodes) > 1 else ""
        times = ["" if (taken := seconds_of(calls)) is None else f"{taken * 1e6:.1f}" for calls in (change.a, change.b)]
        table.add_row(", ".join(change.what), f"{nodes[0] if nodes else '-'}{more}", *_sides(change), *(times if timed else ()))
    return table


def _sides(change: Change) -> tuple[str, str]:
    """What both sides of a change have, as short as tells one from the other."""
    if len(change.what) > 1 or change.what[0] in ("operators", "tensors", "schedule"):
        # The first change causes the others.
        first = next((name for name in ("operators", "tensors", "schedule") if name in change.what), None)
        texts = ("", "") if first is None else _differing(change.a[0], change.b[0], first)
        a, b = (": ".join(filter(None, (call.kernel, text))) for call, text in zip((change.a[0], change.b[0]), texts, strict=True))
        return a, b
    a, b = ("\n".join(call.kernel for call in calls) for calls in (change.a, change.b))
    return a, b


def _differing(a: Call, b: Call, name: str) -> tuple[str, str]:
    """The operators, the tensors that differ, or of schedules of the same strategy the numbers that differ."""
    values = [getattr(call, name) for call in (a, b)]
    if name == "schedule":
        strategies = [value.split(" ")[0] for value in values]
        if strategies[0] != strategies[1]:
            return values[0], values[1]
        values = [value.split(" ")[1:] for value in values]
    ours, theirs = values
    if name == "operators" or (name == "tensors" and len(ours) != len(theirs)):
        return " ".join(ours), " ".join(theirs)
    if name == "schedule":
        return " ".join(w for w in ours if w not in theirs), " ".join(w for w in theirs if w not in ours)
    pairs = [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]]
    more = f" +{len(pairs) - 1}" if len(pairs) > 1 else ""
    return f"{pairs[0][0]}{more}", f"{pairs[0][1]}{more}"
