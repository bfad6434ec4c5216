"""Measured choices of the graph: which program they belong to, and the PassContext that it is compiled in with them."""

import json
import re
from collections.abc import Mapping
from typing import Any

from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.graph.choices import CHOICES, with_choices
from relayc.pipelines.history.keys import without_names
from relayc.pipelines.history.records import Records, level_of
from relayc.runtime.cache import digest

GRAPH = "graph"
"""What a record of choices has in the place of a strategy."""

_WEIGHTS = re.compile(r'value = (?:"(?:[^"\\]|\\.)*"|dense<(?:\[[^>]*|"[^>]*)> : tensor<[^>]*x(?:f|bf)\d+>)')
"""In constants: the name of a parameter, and float elements in the text."""


def program_key(mod: IRModule, target: Target, context: PassContext) -> str:
    """The key of a program as a frontend gives it. Programs of one computation have equal keys, whatever their weights, the names of
    parameters, inputs and nodes are.

    Args:
      context: what it is compiled in, but for the choices.
    """
    text = _WEIGHTS.sub("weights", without_names(mod.module.operation))
    config = {name: value for name, value in context.config.items() if name.startswith("relay.")}
    passes = context.opt_level, sorted(context.required_pass), sorted(context.disabled_pass), config
    ways = {name: {way: what.facts for way, what in ways.items()} for name, ways in CHOICES.items()}
    return digest([json.dumps([text, str(target), target.fingerprint, passes, ways], default=str, sort_keys=True).encode()])


def recorded_context(mod: IRModule, target: Target, context: PassContext, records: Records) -> PassContext:
    """The PassContext for the compilation of a program: extended by the records for its graph, if there are any."""
    for settings, at in ((records.settings, lambda: target), (records.shipped, lambda: level_of(target))):
        if any(one.get("strategy") == GRAPH for one in settings.values()):
            found = settings.get(program_key(mod, at(), context))
            if found is not None:
                return with_choices(context, choices_of(found))
    return context


def choices_of(settings: Mapping[str, Any]) -> dict[str, str]:
    """The choices in the settings of a record."""
    prefix = f"{GRAPH}."
    return {name.removeprefix(prefix): way for name, way in settings.items() if name.startswith(prefix)}
