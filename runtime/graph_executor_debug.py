"""A graph executor that keeps the outputs and times of all nodes, and writes them as files for other tools."""

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from relayc.runtime.artifact import is_numpys
from relayc.runtime.graph import NOP, GraphNode
from relayc.runtime.graph_executor import GraphExecutor
from relayc.runtime.module import Module
from relayc.runtime.profile import Profile
from relayc.runtime.timing import BenchmarkResult, timed

GRAPH_FILE, TRACE_FILE, TENSORS_FILE = "graph.json", "trace.json", "tensors.npz"
"""What `GraphExecutorDebug.dump` writes: TVM's graph JSON, Chrome's trace events, and an archive of numpy."""


@dataclass(frozen=True, slots=True)
class NodeTime:
    """A call of a node: its name, when it began (seconds after the first one), and how many seconds it took."""

    node: str
    start: float
    seconds: float


class GraphExecutorDebug(GraphExecutor):
    """A graph executor whose runs keep the outputs and times of every node.

        executor = GraphExecutorDebug(module, dump_root="trace")
        executor.run(image=image)
        executor.debug_get_output("fused_conv2d_add_relu")

    Attributes:
      dump_root: where a run writes its files (see `dump`); None for nowhere.
      times: the calls of the last run, in order.
      tensors: what each node gave in the last run: copies by name of the node, for outputs after the first "NAME:1" and so on; inputs
        and what a kernel has for itself (its workspace) are not among them.
    """

    def __init__(
        self,
        module: Module,
        function: str | None = None,
        sizes: Mapping[str, int] | None = None,
        dump_root: str | os.PathLike[str] | None = None,
    ) -> None:
        """As that of GraphExecutor."""
        super().__init__(module, function, sizes)
        self._program = module, function
        self.dump_root = dump_root
        self.times: tuple[NodeTime, ...] = ()
        self.tensors: dict[str, np.ndarray] = {}

    def run(self, **input_dict: Any) -> None:
        """As `GraphExecutor.run`; copies the outputs of nodes after each call, outside the measured time."""
        self.set_input(None, None, **input_dict)
        self._check_set()
        self.tensors, times = {}, []
        first = time.perf_counter()

        def around(number: int, call: Callable[[], None]) -> None:
            start = time.perf_counter()
            call()
            times.append(NodeTime(self.graph.nodes[number].name, start - first, time.perf_counter() - start))
            self._keep(number)

        for number, node in enumerate(self.graph.nodes):
            if number in self._functions:
                self._run_nodes([number], around)
            elif node.function == NOP:
                self._keep(number)
        self.times = tuple(times)
        if self.dump_root is not None:
            self.dump(self.dump_root)

    def _keep(self, number: int) -> None:
        node = self.graph.nodes[number]
        for i, entry in enumerate(node.outputs):
            if node.attrs.get("workspace") != str(i):
                self.tensors[self.tensor_name((number, i))] = self._array(entry).copy()

    def tensor_name(self, place: tuple[int, int]) -> str:
        """The name in `tensors` of an output of a node: node and which of its outputs."""
        node, index = place
        name = self.graph.nodes[node].name
        return f"{name}:{index}" if index else name

    def run_node(self, node: int | str, values: Mapping[int, np.ndarray]) -> list[np.ndarray]:
        """Calls one node by itself, and gives what it gave: copies, without its workspace.

        Args:
          node: its number or name.
          values: of its inputs, by position; others are what is in the executor's memory.

        Raises:
          KeyError: there is no such node.
          TypeError, ValueError: a value of another dtype or shape.
        """
        number = self.node_number(node)
        found = self.graph.nodes[number]
        for i, value in values.items():
            entry = self.graph.entry(found.inputs[i])
            self._array(entry)[...] = self._fitting(f"node {found.name}: input {i}", entry, value)
        if number in self._functions:
            self._run_nodes([number])
        workspace = found.attrs.get("workspace")
        return [self._array(entry).copy() for i, entry in enumerate(found.outputs) if str(i) != workspace]

    def node_number(self, node: int | str) -> int:
        """The number of a node. Raises KeyError for an unknown name or number."""
        if isinstance(node, str):
            found = next((i for i, n in enumerate(self.graph.nodes) if n.name == node), -1)
        else:
            found = node if 0 <= node < len(self.graph.nodes) else -1
        if found < 0:
            raise KeyError(f"no node {node!r} in the graph; it has {', '.join(n.name for n in self.graph.nodes)}")
        return found

    def debug_get_output(self, node: int | str, out: np.ndarray | None = None) -> np.ndarray:
        """The first output of a node: from the last run, or if there was none, from a run that ends with the node.

        Args:
          node: its number or name.
          out: receives a copy, and is returned.

        Raises:
          KeyError: there is no such node.
          ValueError: an input has not been set.
        """
        number = self.node_number(node)
        name = self.graph.nodes[number].name
        if self.graph.nodes[number].op == "null":
            found = self.get_input(name).numpy()
        elif name in self.tensors:
            found = self.tensors[name]
        else:
            self._check_set()
            self._run_nodes([n for n in self._functions if n <= number])
            found = self._array(self.graph.nodes[number].outputs[0]).copy()
        if out is None:
            return found
        self._fitting("out", self.graph.nodes[number].outputs[0], out)[...] = found
        return out

    def profile(self, repeat: int = 10, **input_dict: Any) -> Profile:
        """Sets inputs by name, and gives the times of all calls (see `Module.profile`).

        Raises:
          KeyError, TypeError, ValueError: as `run` and `Module.profile`.
        """
        self.set_input(None, None, **input_dict)
        self._check_set()
        module, function = self._program
        return module.profile({name: self.get_input(name).numpy() for name in self.get_input_info()[0]}, repeat, function)

    def run_individual(self, number: int, repeat: int = 1, min_repeat_ms: float = 0.0) -> list[list[float]]:
        """Times each node by itself, on what a run has left in its memory.

        Returns:
          For each node of the graph, by its number, the seconds of a call in each repetition; 0 for what has no code.

        Raises ValueError for counts below 1, and where an input has not been set.
        """
        self._check_set()
        self._run_nodes(list(self._functions))
        return [list(self._time_node(n, number, repeat, min_repeat_ms).results) for n in range(len(self.graph.nodes))]

    def run_individual_node(self, index: int | str, number: int = 10, repeat: int = 1, min_repeat_ms: float = 0.0) -> BenchmarkResult:
        """Times one node, by number or name. A node without code takes no time.

        Raises:
          KeyError: there is no such node.
          ValueError: counts below 1; an input has not been set.
        """
        node = self.node_number(index)
        self._check_set()
        self._run_nodes([n for n in self._functions if n < node])
        return self._time_node(node, number, repeat, min_repeat_ms)

    def _time_node(self, node: int, number: int, repeat: int, min_repeat_ms: float) -> BenchmarkResult:
        if node not in self._functions:
            return BenchmarkResult((0.0,) * repeat)
        function, arguments = self._functions[node], self._arguments(node)
        with self._team:
            return timed(lambda: function(*arguments), number, repeat, min_repeat_ms)

    # ---- files

    def dump(self, directory: str | os.PathLike[str]) -> None:
        """Writes what the last run kept into a directory, which is made.

        `graph.json` is the graph, `trace.json` the calls as trace events (chrome://tracing and Perfetto open it), `tensors.npz` what each
        node gave, by name (numpy.load); tensors of types that numpy has not are there as their bits.

        Raises OSError if they cannot be written.
        """
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / GRAPH_FILE).write_text(self.graph.json() + "\n")
        (folder / TRACE_FILE).write_text(json.dumps(self.trace_events(), indent=1) + "\n")
        with (folder / TENSORS_FILE).open("wb") as file:
            arrays = {name: a if is_numpys(a.dtype) else a.view(f"u{a.dtype.itemsize}") for name, a in self.tensors.items()}
            np.savez(file, **arrays)  # type: ignore[arg-type] # its stubs take a name for the option allow_pickle

    def trace_events(self) -> dict[str, Any]:
        """The calls of the last run in Chrome's trace format: complete events, times in microseconds."""
        known = {node.name: node for node in self.graph.nodes}
        process = {"name": "process_name", "ph": "M", "pid": 0, "tid": 0, "args": {"name": "relayc"}}
        events = [
            {
                "name": call.node,
                "cat": known[call.node].function,
                "ph": "X",
                "ts": call.start * 1e6,
                "dur": call.seconds * 1e6,
                "pid": 0,
                "tid": 0,
                "args": self._known_of(known[call.node]),
            }
            for call in self.times
        ]
        return {"traceEvents": [process, *events], "displayTimeUnit": "ms"}

    def _known_of(self, node: GraphNode) -> dict[str, Any]:
        entries = {"inputs": [self.graph.entry(place) for place in node.inputs], "outputs": node.outputs}
        tensors = {name: [str(entry.spec) for entry in found] for name, found in entries.items()}
        about = {name: node.attrs[name] for name in ("ops", "schedule") if name in node.attrs}
        return {"function": node.function, **about, "sources": list(node.sources), **tensors}
