"""Progress bars on stderr, if it is a terminal; otherwise, and with `quiet`, nothing is shown. The Python API shows none."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

Item = TypeVar("Item")


@contextmanager
def progress_bar(what: str, quiet: bool = False) -> Iterator[Callable[..., None]]:
    """A progress bar for the duration of the block, removed afterwards. It is indeterminate while the total is unknown.

    Yields a function (what, done=0, total=None) that updates it.
    """
    console = Console(stderr=True)
    columns = [TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
    # If both are the terminal, lines for standard output are printed above the bar.
    options: dict[str, Any] = {"transient": True, "redirect_stdout": sys.stdout.isatty()}
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal, **options) as progress:
        task = progress.add_task(what, total=None)

        def show(what: str, done: int = 0, total: int | None = None) -> None:
            progress.update(task, description=what, completed=done, total=total)

        yield show


@contextmanager
def status_line(what: str = "", quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """A line that says what is being done for the duration of the block. Yields a function that updates it."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda text: None
        return
    with console.status(what) as status:
        yield status.update


@contextmanager
def import_progress(quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """A bar of a compilation, and the callback (nodes done, nodes in all) of its import."""
    with progress_bar("importing", quiet) as show:
        yield lambda done, total: show("compiling") if done == total else show("importing", done, total)


def tracked(items: Iterable[Item], what: str, total: int | None = None) -> Iterator[Item]:
    """The items, with a bar of how many there have been."""
    with progress_bar(what) as show:
        for number, item in enumerate(items, 1):
            yield item
            show(what, number, total)
