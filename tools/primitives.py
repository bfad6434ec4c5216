"""The table of primitives in docs/schedules.md (see relayc.tools.generated)."""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

from relayc.pipelines.tir.schedule.methods import BlockMethods, LoopMethods
from relayc.tir import Schedule

SAMPLING = (Schedule.sample_perfect_tile, Schedule.sample_categorical)


def methods() -> Iterator[Callable[..., Any]]:
    """The primitives of Schedule, in the order of the text."""
    for group in (LoopMethods, BlockMethods):
        yield from (m for name, m in vars(group).items() if inspect.isfunction(m) and not name.startswith("_"))
    yield from SAMPLING


def primitive_table() -> str:
    """The primitives as Markdown: arguments, effect, and conditions (the text of the docstring)."""
    lines = ["| primitive | effect | conditions and details |", "|---|---|---|"]
    for method in methods():
        arguments = [
            f"*{p.name}" if p.kind is p.VAR_POSITIONAL else p.name if p.default is p.empty else f"{p.name}={p.default!r}"
            for p in list(inspect.signature(method).parameters.values())[1:]
        ]
        words = re.split(r"\n\n(?=Args:|Raises:|Returns:)", inspect.getdoc(method) or "")
        what, _, rest = " ".join(w for w in [words[0], *_later(words[1:])]).partition("\n\n")
        if not rest:
            what, _, rest = _flat(what).partition(". ")
        lines.append(f"| `{method.__name__}({', '.join(arguments)})` | {_flat(what)} | {_flat(rest)} |")
    return "\n".join(lines) + "\n"


def _later(sections: list[str]) -> Iterator[str]:
    """Paragraphs after the arguments that are not a section."""
    for section in sections:
        yield from (f"\n\n{p}" for p in section.split("\n\n")[1:])


def _flat(text: str) -> str:
    flat = " ".join(text.split()).replace("|", "\\|")
    return flat if flat.endswith("...") else flat.removesuffix(".")
