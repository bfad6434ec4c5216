"""`relay_viz`: the names by which Relay's users draw programs (tvm.contrib.relay_viz), over `relayc.visualize`.

from relayc.relay import relay_viz

viz = relay_viz.RelayVisualizer(mod, params, relay_viz.DotPlotter(), relay_viz.DotVizParser())
viz.render("model")  # model.pdf
relay_viz.RelayVisualizer(mod).render()  # a tree, in the terminal
"""

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relayc.frontend.relay.ast import Expr, RelayModule
from relayc.relay.build import as_module

__all__ = ["DotPlotter", "DotVizParser", "Plotter", "RelayVisualizer", "TermPlotter", "TermVizParser", "VizParser"]


class VizParser:
    """The parser of programs: there is only one, under Relay's three names."""


DotVizParser = TermVizParser = VizParser


class Plotter:
    """The renderer of a picture (relayc.tools.visualize.Picture)."""

    def render(self, picture: Any, filename: str | None) -> None:
        """Draws the picture into a file; without a name, the plotter chooses it."""
        raise NotImplementedError


class DotPlotter(Plotter):
    """Draws with Graphviz into FILENAME.FORMAT.

    Args:
      graph_attr, node_attr, edge_attr: attributes of Graphviz, for all graphs, nodes and edges.
      render_kwargs: "format", by default "pdf", and "filename".
    """

    def __init__(
        self,
        graph_attr: Mapping[str, str] | None = None,
        node_attr: Mapping[str, str] | None = None,
        edge_attr: Mapping[str, str] | None = None,
        render_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self.attributes = {"graph": dict(graph_attr or {}), "node": dict(node_attr or {}), "edge": dict(edge_attr or {})}
        self.options = {"format": "pdf", "filename": "Digraph.gv", **(render_kwargs or {})}

    def render(self, picture: Any, filename: str | None) -> None:
        format = self.options["format"]
        Path(f"{filename or self.options['filename']}.{format}").write_bytes(picture.render(format, **self.attributes))


class TermPlotter(Plotter):
    """Writes each result as a tree of the operations that it needs, to a file or to standard output."""

    def render(self, picture: Any, filename: str | None) -> None:
        text = picture.tree()
        if filename is None:
            print(text)
        else:
            Path(filename).write_text(f"{text}\n")


class RelayVisualizer:
    """A program that is to be drawn.

    Args:
      relay_mod: a program of the Relay language, or what else `relayc.visualize` takes.
      relay_param: values of its parameters, which are drawn as constants then.
      plotter: how it is drawn, by default a TermPlotter.
      parser: accepted for Relay's users.
    """

    def __init__(
        self, relay_mod: Any, relay_param: Mapping[str, Any] | None = None, plotter: Plotter | None = None, parser: VizParser | None = None
    ) -> None:
        program = as_module(relay_mod, relay_param) if isinstance(relay_mod, (RelayModule, Expr)) else relay_mod
        self._plotter = plotter or TermPlotter()
        # The package by its name: what draws imports this one.
        self._picture = importlib.import_module("relayc").visualize(program, collapse=False)

    def render(self, filename: str | None = None) -> None:
        """Draws the program. Raises OSError, and ModuleNotFoundError if Graphviz is needed and not there."""
        self._plotter.render(self._picture, filename)
