"""Pictures of programs: `relayc.visualize` and `relayc visualize`. Graphviz, by way of pygraphviz, lays them out and draws them."""

import html
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text
from rich.tree import Tree

from relayc.dialects.relay.module import IRModule
from relayc.packages import optional_package
from relayc.runtime import Module, Profile
from relayc.tools.tables import plain_console
from relayc.tools.visualize.boxes import Box, Drawing, kernel_boxes, program_boxes
from relayc.tools.visualize.repeats import collapsed

if TYPE_CHECKING:
    from pygraphviz import AGraph

FORMATS = ("svg", "png", "pdf", "dot")
_COLOURS = {"operator": "#e8eefc", "kernel": "#e8eefc", "input": "#e6f4e6", "output": "#fdf0dc"}
_HOT = ((1.0, "#f4b6a8"), (0.5, "#f9d4c4"), (0.1, "#fcebe2"))
"""Colours of kernels, with the minimum time relative to the slowest kernel."""


class Picture:
    """A picture of a program. In a notebook it is shown as it is.

    Attributes:
      drawing: its boxes and arrows.
    """

    def __init__(self, drawing: Drawing) -> None:
        self.drawing = drawing

    def render(self, format: str, **attributes: Mapping[str, str]) -> bytes:
        """The picture in a format: "svg", "png", "pdf", or "dot", which is the text that Graphviz reads.

        Args:
          attributes: Graphviz's, which hold instead of those of the picture: for "graph", "node" and "edge".

        Raises:
          ValueError: another format. ModuleNotFoundError: pygraphviz is not installed.
        """
        if format not in FORMATS:
            raise ValueError(f"visualize: expected one of {', '.join(FORMATS)}, found {format!r}")
        graph = _graph(self.drawing)
        for of, given in attributes.items():
            getattr(graph, f"{of}_attr").update(given)
        return graph.to_string().encode() if format == "dot" else graph.draw(format=format, prog="dot")

    def tree(self) -> str:
        """The results as trees of their operands, as text; a repeated subtree is only named."""
        boxes, inputs = self.drawing.boxes, dict[int, list[int]]()
        for arrow in self.drawing.arrows:
            inputs.setdefault(arrow.target, []).append(arrow.source)
        read = {arrow.source for arrow in self.drawing.arrows}
        whole, shown = Tree("", hide_root=True), set[int]()
        waiting = [(whole, number) for number in reversed(range(len(boxes))) if number not in read]
        while waiting:
            parent, number = waiting.pop()
            node = parent.add(Text(" ".join([boxes[number].name, *boxes[number].lines])))
            if number not in shown:
                shown.add(number)
                waiting += [(node, source) for source in reversed(inputs.get(number, []))]
        out = io.StringIO()
        plain_console(file=out, width=max(120, 8 * len(boxes))).print(whole)
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the picture to a file, in the format that its name ends with. Raises as `render`, and OSError."""
        Path(path).write_bytes(self.render(Path(path).suffix.lstrip(".").lower()))

    def _repr_svg_(self) -> str:
        return self.render("svg").decode()


def visualize(program: Any, *, profile: Profile | None = None, sizes: Mapping[str, int] | None = None, collapse: bool = True) -> Picture:
    """A picture of a program.

    Args:
      program: an IRModule of the relay stage, of which operators are drawn, in their fusion groups where there are some; a compiled
        Module, of which the calls of kernels are drawn; or what `relayc.import_model` takes.
      profile: of a compiled Module (`module.profile(inputs)`): kernels are coloured by their times.
      sizes: of the symbols of a compiled Module.
      collapse: whether layers that are alike are drawn once.

    Raises:
      ValueError: an IRModule of another stage, or a Module that is no graph (see `Module.graph`); TypeError: what is no program.
    """
    if isinstance(program, Module):
        drawing = kernel_boxes(program.graph(sizes=sizes), len(program.inputs), profile)
    else:
        if not isinstance(program, IRModule):
            from relayc.frontend import import_model

            program = import_model(program)
        drawing = program_boxes(program)
    return Picture(collapsed(drawing) if collapse else drawing)


def require_graphviz() -> Any:
    """pygraphviz. Raises ModuleNotFoundError if it is not installed."""
    return optional_package("pygraphviz", "visualize needs Graphviz: pip install pygraphviz")


def _graph(drawing: Drawing) -> "AGraph":
    graph = require_graphviz().AGraph(directed=True, strict=False, fontname="Helvetica", nodesep="0.25", ranksep="0.35")
    graph.node_attr.update(shape="box", style="filled,rounded", fontname="Helvetica", fontsize="11", color="#8090b0", margin="0.12,0.05")
    graph.edge_attr.update(color="#606878", fontname="Helvetica", fontsize="9", arrowsize="0.6")
    slowest = max((box.seconds or 0.0 for box in drawing.boxes), default=0.0)
    for number, box in enumerate(drawing.boxes):
        style = {"fillcolor": _colour(box, slowest), "class": f"box{number}"}  # a page finds a box by its class
        graph.add_node(number, label=_label(box), tooltip=_tooltip(box), **style)
    for arrow in drawing.arrows:
        style = {"style": "dashed", "constraint": "false"} if arrow.is_back else {}
        graph.add_edge(arrow.source, arrow.target, tooltip=arrow.text, **style)
    _add_groups(graph, list(enumerate(drawing.boxes)), 0)
    return graph


def _add_groups(graph: "AGraph", boxes: list[tuple[int, Box]], depth: int) -> None:
    """Draws a frame around the boxes of each group of several, with the frames of nested groups inside."""
    members: dict[tuple[int, str], list[tuple[int, Box]]] = {}
    for number, box in boxes:
        if len(box.groups) > depth:
            members.setdefault(box.groups[depth], []).append((number, box))
    for (identity, label), inside in members.items():
        if len(inside) == 1:
            continue
        frame = {"label": label, "style": "rounded", "color": "#a0a8b8", "fontsize": "10"}
        part = graph.add_subgraph([number for number, _ in inside], name=f"cluster_{identity}", **frame)
        _add_groups(part, inside, depth + 1)


def _label(box: Box) -> str:
    lines = "".join(f'<br/><font point-size="9">{html.escape(line)}</font>' for line in box.lines)
    return f"<<b>{html.escape(box.name)}</b>{lines}>"


def _tooltip(box: Box) -> str:
    more = f" and {len(box.sources) - 4} more" if len(box.sources) > 5 else ""
    return f"{', '.join(box.sources[: 4 if more else 5])}{more}" or box.name


def _colour(box: Box, slowest: float) -> str:
    if box.seconds is not None and slowest > 0:
        for share, colour in _HOT:
            if box.seconds >= share * slowest:
                return colour
    return _COLOURS[box.kind]
