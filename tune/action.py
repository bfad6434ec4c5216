"""`relayc tune`: the search as a command, and the contents of the database."""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from relayc.pipelines.history.database import Database
from relayc.pipelines.history.record import export_records, import_records
from relayc.tools.build import Build
from relayc.tools.commands import CommandError, inputs_of, say
from relayc.tools.inputs import written
from relayc.tune.model import Options, Tuning, local_or_cluster, open_database, search
from relayc.tune.session import Status
from relayc.tune.texts import records_tables, summary, tuning_page, tuning_table


def run(arguments: argparse.Namespace, console: Console) -> int:
    """`relayc tune`."""
    if arguments.show or arguments.export or arguments.imported or arguments.merge:
        if arguments.model is not None:
            raise CommandError(f"expected no model with --show, --export, --import and --merge, found {arguments.model}")
        _records(arguments, open_database(arguments.database), console)
        return 0
    if arguments.model is None:
        raise CommandError("expected a model")
    if arguments.model.suffix == ".so":
        raise CommandError(f"expected a model, found the library {arguments.model}: its kernels are compiled already")
    build = Build.of_command(arguments)
    with _shown(arguments) as report, local_or_cluster(arguments.scheduler, build.target) as measurer:
        names = ("minutes", "trials", "kernels", "database", "all_strategies", "sampler", "seed")
        options = Options(**{name: getattr(arguments, name) for name in names}, report=report)
        found = search(build, lambda module: inputs_of(module, arguments, console), measurer, options)
    _finish(found, arguments, console)
    return 130 if found.interrupted else 0


def _finish(found: Tuning, arguments: argparse.Namespace, console: Console) -> None:
    if not arguments.quiet:
        console.print(tuning_table(found))
    say(summary(found), arguments, console)
    if arguments.report is not None:
        with written(arguments.report) as file:
            file.write(tuning_page(found))


def _records(arguments: argparse.Namespace, database: Database, console: Console) -> None:
    if arguments.show:
        records = database.best()
        say(f"{database.path}: {len(records)} records", arguments, console)
        for table in records_tables(records):
            console.print(table)
        return
    if arguments.export is not None:
        records = database.best()
        with written(arguments.export) as file:
            file.write(export_records(records).encode())
        say(f"{len(records)} records", arguments, console)
        return
    other = arguments.imported or arguments.merge
    if not other.is_file():
        raise CommandError(f"expected a file, found none at {other}")
    try:
        given = import_records(other.read_text()) if arguments.imported else Database(other).best()
    except ValueError as error:
        raise CommandError(f"{other}: {error}" if arguments.imported else str(error)) from None
    say(f"{database.merge(given)} of {len(given)} records are added", arguments, console)


@contextmanager
def _shown(arguments: argparse.Namespace) -> Iterator[Callable[[Status], None]]:
    """Shows a line on a terminal: the progress of the search, the gain, and the current measurement."""
    console = Console(stderr=True)
    columns = [TextColumn("{task.description}"), BarColumn(bar_width=20), TextColumn("{task.fields[what]}", markup=False)]
    is_quiet = arguments.quiet or not console.is_terminal
    with Progress(*columns, console=console, disable=is_quiet, transient=True, redirect_stdout=sys.stdout.isatty()) as progress:
        task = progress.add_task("compiling", total=None, what="")
        begin = time.perf_counter()

        def show(status: Status) -> None:
            (done, trials), (seconds, most) = status.trials, status.seconds
            shares = [(part, whole) for part, whole in ((done, trials), (seconds, most)) if whole]
            part, whole = max(shares, key=lambda share: share[0] / share[1], default=(0, None))
            each = (time.perf_counter() - begin) / max(done, 1)
            left = [] if trials is None else [(trials - done) * each]
            left += [] if most is None else [most - seconds]
            words = f"{done} trials, {_time_text(min(left, default=0.0))} left, gain {status.gain:.3f}"
            progress.update(task, description=words, completed=part, total=whole, what=f"{status.kernel}: {status.candidate}")

        yield show


def _time_text(seconds: float) -> str:
    whole = max(0, round(seconds))
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}" if whole >= 3600 else f"{whole // 60}:{whole % 60:02}"
