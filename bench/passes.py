"""`bench passes`: milliseconds of each pass on the graph, and how many fusion groups a model becomes."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

import relayc
from relayc.bench.measure import Progress
from relayc.bench.models import Source, make_cases
from relayc.dialects.relay import Fused
from relayc.pipelines.context.instruments import PassTimingInstrument
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.graph.fusion import graph_groups
from relayc.tools.tables import NUMBER, make_table

SHOWN = 0.02
"""Share of the time from which the table names a pass."""


def measure_passes(
    sources: Sequence[Source], precision: str, rounds: int, shapes: Mapping[str, Sequence[int]], progress: Progress
) -> list[dict[str, Any]]:
    """A record for each model: its operators, its fusion groups, and the seconds of each pass, the minimum over all rounds; passes that run
    twice count together. Raises ValueError for shapes that do not fit a model, and errors of the compiler."""
    found = []
    for case in make_cases(sources, shapes, 0, progress):
        seconds: dict[str, float] = {}
        for done in range(rounds):
            progress(f"{case.name}: round {done + 1} of {rounds}")
            timing = PassTimingInstrument()
            with PassContext(instruments=[timing]):
                mod = relayc.compile(case.path, shapes=case.shapes, precision=precision, stop_after="relay")
            taken: dict[str, float] = {}
            for depth, name, took in timing.rows():
                if depth == 1:  # the passes of the pipeline
                    taken[name] = taken.get(name, 0.0) + took
            seconds = {name: min(took, seconds.get(name, took)) for name, took in taken.items()}
        groups = [group for group in graph_groups(mod.main.regions[0].blocks[0]) if isinstance(group.op, Fused)]
        operators = sum(len(group.members) for group in groups)
        found.append({"case": case.name, "operators": operators, "groups": len(groups), "seconds": seconds})
    return found


def passes_table(records: Sequence[Mapping[str, Any]]) -> Table:
    """One line per model."""
    numbers = ("operators", "groups", "all ms", "FuseOps ms")
    table = make_table(
        "passes on the graph", model={}, **{name: NUMBER for name in numbers}, **{"slowest passes, ms": {"overflow": "fold"}}
    )
    for record in records:
        seconds, total = record["seconds"], sum(record["seconds"].values())
        slowest = sorted(seconds.items(), key=lambda item: -item[1])
        table.add_row(
            record["case"],
            str(record["operators"]),
            str(record["groups"]),
            f"{total * 1e3:.1f}",
            f"{seconds.get('FuseOps', 0.0) * 1e3:.1f}",
            " ".join(f"{name} {took * 1e3:.1f}" for name, took in slowest if took >= SHOWN * total),
        )
    return table
