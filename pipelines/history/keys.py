"""The key of a kernel: its computation, target and schedules."""

import json
import re
from collections.abc import Iterable

from relayc.dialects.mlir import ir
from relayc.pipelines.context.passes import config_option
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission.sizes import symbol_names
from relayc.pipelines.history.records import DATABASE, RECORDS, Records
from relayc.pipelines.tir.strategy.table import strategies_of
from relayc.runtime.cache import digest
from relayc.symbolic import Ranges

SCHEDULES = 1
"""Version of the schedules of all targets. It is incremented by a change that invalidates earlier measurements; adding, removing or
renaming a strategy or a parameter changes keys by itself."""

_STRING = r'"(?:[^"\\]|\\.)*"'
_FROM = rf"(?:relay\.sources = \[(?:{_STRING}(?:, )?)*\]|relay\.name = {_STRING})"
_LEFT_OUT = re.compile(rf" \{{{_FROM}\}}|{_FROM}, |, {_FROM}|{_FROM}")
"""Text that only describes the origin of a kernel."""
_NAME = re.compile(r'@(?:"[^"]*"|[\w.$-]+)')

config_option(
    DATABASE, str, None, "the tuning database whose records apply; an empty text for none (default: RELAYC_TUNING_DB, docs/tuning.md)"
)
config_option(RECORDS, Records, None, "the records of that database for the target; relayc.compile reads them")


def kernel_key(function: ir.OpView, target: Target, schedule: str = "") -> str:
    """The key of a te function. Equal kernels of different models, or with symbols of other names, have equal keys.

    Args:
      schedule: the name of a schedule that a person wrote; "" for the strategy table.

    What is known of the function's symbols is that of the ambient Ranges.
    """
    names = symbol_names(function)
    ranges = [(r.low, r.high) for r in map(Ranges.current().of, names)]
    facts = [computation(function, names), ranges, str(target), target.fingerprint, schedule, SCHEDULES, _table(target.kind)]
    return digest([json.dumps(facts).encode()])


def without_names(operation: ir.Operation) -> str:
    """An operation as text, without the description of its origin."""
    # Without the surroundings of a function: while a kernel of the module is incomplete, all others would be printed in another form.
    return _LEFT_OUT.sub("", operation.get_asm(use_local_scope=True, assume_verified=True))


def computation(function: ir.OpView, symbols: Iterable[str]) -> str:
    """What a te function computes, as text without its name, its visibility, the names of its symbols, and the model's nodes."""
    text = without_names(function.operation)
    numbers = {name: f"s{i}" for i, name in enumerate(symbols)}
    if numbers:
        words = re.compile(rf"(?<![\w.$-])(?:{'|'.join(map(re.escape, sorted(numbers, key=len, reverse=True)))})(?![\w.$-])")
        text = re.sub(_STRING, lambda found: words.sub(lambda word: numbers[word[0]], found[0]), text)
    return _NAME.sub("@kernel", text, count=1).replace("func.func @", "func.func private @", 1)


def _table(kind: str) -> list[tuple[str, list[str]]]:
    return [(entry.name, [parameter.name for parameter in entry.parameters]) for entry in strategies_of(kind)]
