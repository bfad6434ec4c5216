"""`bench compile`: seconds and memory of a first compilation, in a fresh process, against the size of the file."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from relayc.bench.engines import ENGINES
from relayc.bench.latency import MIB
from relayc.bench.measure import Progress, job_of
from relayc.bench.models import Source, make_cases
from relayc.bench.worker import EngineError, EngineProcess
from relayc.tools.tables import NUMBER, make_table


def measure_compilation(
    sources: Sequence[Source], engines: Sequence[str], threads: int, precision: str, shapes: Mapping[str, Sequence[int]], progress: Progress
) -> list[dict[str, Any]]:
    """A record for each model and engine: the facts that the process reports after loading the model, or the error. Raises ValueError for
    shapes that do not fit a model."""
    found = []
    for case in make_cases(sources, shapes, 0, progress):
        for engine in engines:
            progress(f"{case.name}: {ENGINES[engine].title}")
            record: dict[str, Any] = {"case": case.name, "engine": engine, "file_bytes": case.path.stat().st_size, "error": None}
            try:
                with EngineProcess(job_of(case, engine, threads, precision)) as process:
                    record |= process.load()
            except EngineError as error:
                record["error"] = str(error)
            found.append(record)
    return found


def compilation_table(records: Sequence[Mapping[str, Any]]) -> Table:
    """One line per model and engine."""
    numbers = ("file MiB", "import s", "load s", "peak MiB", "added MiB", "added/file")
    table = make_table(
        "first compilation", model={}, engine={}, computes={}, **{name: NUMBER for name in numbers}, **{"stages, s": {"overflow": "fold"}}
    )
    for record in records:
        head = [record["case"], ENGINES[record["engine"]].title, record.get("precision", ""), f"{record['file_bytes'] / MIB:.1f}"]
        if record["error"] is not None:
            table.add_row(*head, "failed")
            continue
        peak, added = record["memory"]["peak"], record["memory"]["peak"] - record["imported_memory"]
        table.add_row(
            *head,
            f"{record['import_seconds']:.2f}",
            f"{record['load_seconds']:.2f}",
            f"{peak / MIB:.0f}",
            f"{added / MIB:.0f}",
            f"{added / record['file_bytes']:.2f}",
            " ".join(f"{stage} {seconds:.2f}" for stage, seconds in record.get("stages", {}).items()),
        )
    return table
