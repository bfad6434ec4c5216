"""What the graph passes make of random graphs: of several operators, and of quantised tensors, whose passes ask for much at a time."""

from collections.abc import Iterator

import random_special  # noqa: F401 (its rules draw)
from random_drawing import draw, draw_one
from random_graphs import Graph, build
from random_quantised import PRODUCTS

import relayc
from relayc.pipelines.context.instruments import ir_text

TOGETHER = 8
"""Graphs of a name."""
MIXED = 40
QUANTISED = {"qnn_quantize": 12, "qnn_dequantize": 12, **dict.fromkeys(PRODUCTS, 2), "qnn_requantize": 2}
"""Names of graphs of several operators, and of those that are drawn of one, by its name."""


def names() -> list[str]:
    return [*(f"mixed {i}" for i in range(MIXED)), *(f"{op} {i}" for op, count in QUANTISED.items() for i in range(count))]


def answers(name: str) -> Iterator[str]:
    """The relay stage of each graph, at opt_level 3 and 4 in turn."""
    op, number = name.split()
    for i in range(TOGETHER * int(number), TOGETHER * (int(number) + 1)):
        # Other graphs than those of which the record has all stages.
        graph: Graph = draw(1, i) if op == "mixed" else draw_one(op, 100 + i)
        mod = relayc.compile(build(graph), target="cpu -mcpu=x86-64-v4", opt_level=3 + i % 2, stop_after="relay", cache=False)
        yield ir_text(mod.module.operation)
