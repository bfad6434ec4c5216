"""A program as a graph in TVM's form: nodes that call functions, in order, on tensors that share storage.

The graph is read off a compiled program (see runtime.artifact), at sizes that are known: calls of other programs are inlined, branches on
sizes decided. A program whose calls depend on data is no graph: one that branches or loops on what it computes, calls itself, or needs
sizes that it takes from data. A graph leaves out the checks that a program makes of data: an index that is out of range is clamped.

`Graph.json` gives TVM's `graph_json`. An argument (an input or a parameter) is a node `null`; a call is a node `tvm_op`, whose attributes
say the function and, beyond TVM's, the Relay operators, the schedule and the model's nodes that it stands for, and the values of its
symbols. What has no code is a node of the function `__nop`, as in TVM: a tensor under another shape, or several that were written one
after the other as one. Tensors of the same `storage_id` share memory; a tensor begins at its `storage_offset` there.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from relayc.runtime.artifact import (
    Branch,
    BufferRef,
    Define,
    EqualSizes,
    KernelInfo,
    Loop,
    Node,
    PackedCall,
    ParameterInfo,
    ProgramCall,
    ProgramInfo,
    Step,
    TensorSpec,
    is_host_dtype,
    walk,
)
from relayc.symbolic import evaluate

NOP = "__nop"
"""TVM's name for the function of a node that has no code."""
_DEVICE_TYPE = 1
"""DLDeviceType of the host's memory."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A tensor of a graph.

    Attributes:
      shape, dtype: its dimensions, numbers, and the name of its dtype.
      storage: number of the memory that it is in.
      offset: its first byte there.
    """

    shape: tuple[int, ...]
    dtype: str
    storage: int
    offset: int = 0

    @property
    def spec(self) -> TensorSpec:
        """Its shape and dtype, without a name."""
        return TensorSpec("", self.shape, self.dtype)

    @property
    def num_bytes(self) -> int:
        return int(self.spec.num_bytes)


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node.

    Attributes:
      op: "null" for an argument, "tvm_op" for a call.
      name: unique in the graph.
      inputs: the tensors it takes: node, and which of its outputs.
      outputs: the tensors it gives; an argument is one itself.
      function: what a call calls: a kernel, a packed function, or NOP.
      sizes: the values of the kernel's symbols, which its function takes after the tensors.
      attrs: what else is known of it, in texts.
    """

    op: str
    name: str
    inputs: tuple[tuple[int, int], ...]
    outputs: tuple[Entry, ...]
    function: str = ""
    sizes: tuple[int, ...] = ()
    attrs: Mapping[str, str] = field(default_factory=dict)

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the model's nodes that it implements."""
        return tuple(json.loads(self.attrs.get("sources", "[]")))


@dataclass(frozen=True, slots=True)
class Graph:
    """A program as a graph.

    Attributes:
      nodes: arguments first, then calls in the order in which they run.
      arguments: the nodes that are arguments: inputs of the program in their order, then parameters.
      heads: the outputs of the program, in their order.
      output_names: their names.
    """

    nodes: tuple[GraphNode, ...]
    arguments: tuple[int, ...]
    heads: tuple[tuple[int, int], ...]
    output_names: tuple[str, ...] = ()

    def entry(self, place: tuple[int, int]) -> Entry:
        """The tensor that is this output of this node."""
        node, index = place
        return self.nodes[node].outputs[index]

    @property
    def storage_bytes(self) -> dict[int, int]:
        """Bytes of each storage."""
        found: dict[int, int] = {}
        for node in self.nodes:
            for entry in node.outputs:
                found[entry.storage] = max(found.get(entry.storage, 0), entry.offset + entry.num_bytes)
        return found

    def json(self) -> str:
        """The graph in TVM's JSON."""
        entries = [entry for node in self.nodes for entry in node.outputs]
        pointers = list(accumulate((len(node.outputs) for node in self.nodes), initial=0))
        graph = {
            "nodes": [_node_data(node) for node in self.nodes],
            "arg_nodes": list(self.arguments),
            "heads": [[*head, 0] for head in self.heads],
            "attrs": {
                "dltype": ["list_str", [entry.dtype for entry in entries]],
                "device_index": ["list_int", [_DEVICE_TYPE] * len(entries)],
                "storage_id": ["list_int", [entry.storage for entry in entries]],
                "storage_offset": ["list_int", [entry.offset for entry in entries]],
                "shape": ["list_shape", [list(entry.shape) for entry in entries]],
            },
            "node_row_ptr": pointers,
            "metadata": {"outputs": list(self.output_names)},
        }
        return json.dumps(graph, indent=1)


def _node_data(node: GraphNode) -> dict[str, Any]:
    data: dict[str, Any] = {"op": node.op, "name": node.name}
    if node.op != "null":
        counts = {"num_outputs": len(node.outputs), "num_inputs": len(node.inputs), "func_name": node.function, "flatten_data": 0}
        sizes = {"sizes": json.dumps(node.sizes)} if node.sizes else {}
        data["attrs"] = {name: str(value) for name, value in counts.items()} | sizes | dict(node.attrs)
    return {**data, "inputs": [[*place, 0] for place in node.inputs]}


_COMPUTED = ("num_outputs", "num_inputs", "func_name", "flatten_data", "sizes")


def parse_graph(text: str) -> Graph:
    """The graph of a JSON text, as created by `Graph.json` or by TVM.

    Raises:
      ValueError: the text is not a graph in this form.
    """
    try:
        data = json.loads(text)
        pointers, attrs = data["node_row_ptr"], {name: values for name, (_, values) in data["attrs"].items()}
        offsets = attrs.get("storage_offset", [0] * pointers[-1])
        rows = zip(attrs["shape"], attrs["dltype"], attrs["storage_id"], offsets, strict=True)
        entries = [Entry(tuple(shape), dtype, storage, offset) for shape, dtype, storage, offset in rows]
        nodes = []
        for row, first, last in zip(data["nodes"], pointers[:-1], pointers[1:], strict=True):
            given = row.get("attrs", {})
            inputs = tuple((place[0], place[1]) for place in row["inputs"])
            others = {name: text for name, text in given.items() if name not in _COMPUTED}
            sizes = tuple(json.loads(given.get("sizes", "[]")))
            nodes.append(GraphNode(row["op"], row["name"], inputs, tuple(entries[first:last]), given.get("func_name", ""), sizes, others))
        heads = tuple((place[0], place[1]) for place in data["heads"])
        graph = Graph(tuple(nodes), tuple(data["arg_nodes"]), heads, tuple(data.get("metadata", {}).get("outputs", ())))
        _check(graph)
        return graph
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError(f"graph: expected TVM's graph JSON, found a text that is not ({type(error).__name__}: {error})") from None


def _check(graph: Graph) -> None:
    """Raises ValueError, IndexError or TypeError for a graph that cannot be run in the order of its nodes on memory of its own."""

    def check(is_right: bool, what: str) -> None:
        if not is_right:
            raise ValueError(what)

    for number, node in enumerate(graph.nodes):
        for before, index in node.inputs:
            is_earlier = 0 <= before < number and 0 <= index < len(graph.nodes[before].outputs)
            check(is_earlier, f"node {node.name!r} reads output {index} of node {before}, which is none of an earlier node")
        for entry in node.outputs:
            is_tensor = entry.storage >= 0 and entry.offset >= 0 and all(extent >= 0 for extent in entry.shape)
            check(is_tensor, f"node {node.name!r} gives {entry}")
    for number, index in graph.heads:
        check(number >= 0 and 0 <= index < len(graph.nodes[number].outputs), f"head {index} of node {number}, which has no such output")
    given = [graph.nodes[number] for number in graph.arguments]
    check(min(graph.arguments, default=0) >= 0 and all(node.op == "null" for node in given), "arguments that are other nodes")
    sizes = {entry.storage: entry.num_bytes for node in given for entry in node.outputs[:1]}
    check(len(sizes) == len(given), "arguments without tensors, or two in the same storage")
    for node in graph.nodes:
        for entry in node.outputs:
            end = entry.offset + entry.num_bytes
            check(end <= sizes.get(entry.storage, end), f"node {node.name!r} with more bytes than the argument in its storage")


# ---- read off a program -------------------------------------------------------------------------------------------------------------


def program_graph(
    function: str,
    programs: Mapping[str, ProgramInfo],
    kernels: Mapping[str, KernelInfo],
    parameters: Sequence[ParameterInfo],
    sizes: Mapping[str, int] | None,
) -> Graph:
    """The graph of a program.

    Args:
      sizes: the values of the program's symbols.

    Raises:
      ValueError: the program is no graph, or has symbols other than those of `sizes`. The message says why.
    """
    program = programs[function]
    given = dict(sizes or {})
    if set(given) != set(program.symbols):
        wanted = ", ".join(program.symbols) or "none"
        raise ValueError(f"{function}: expected sizes for the graph of {wanted}, found {', '.join(given) or 'none'}")
    reader = _Reader(function, programs, kernels, parameters)
    reader.arguments(program, given)
    outputs = [_Byte("output", i, 0) for i in range(len(program.outputs))]
    inputs = [_Byte("input", i, 0) for i in range(len(program.inputs))]
    try:
        reader.run(program.steps, _Frame(_Sizes(given), inputs, outputs, 0))
    except _UndefinedSize:
        raise reader.no_graph("sizes that only the program finds out") from None
    return reader.graph(program, given)


class _UndefinedSize(Exception):
    """A graph needs a size that the program defines from data."""


class _Sizes(dict[str, int]):
    """Values of symbols by name. A symbol that the program defines from data has no value."""

    def __missing__(self, name: str) -> int:
        raise _UndefinedSize(name)


@dataclass(frozen=True, slots=True)
class _Byte:
    """A byte of a memory."""

    space: str
    index: int
    offset: int


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where the tensors of a call of a program are: its inputs and outputs, and its part of the arena."""

    sizes: Mapping[str, int]
    inputs: Sequence[_Byte]
    outputs: Sequence[_Byte]
    arena: int


@dataclass(slots=True)
class _Written:
    """A tensor that is in a memory."""

    begin: int
    end: int
    shape: tuple[int, ...]
    dtype: str
    producer: tuple[int, int]


@dataclass
class _Reader:
    """Follows the calls of a program, and which tensor each byte of memory holds.

    Attributes:
      nodes: without their outputs, which get storages in `graph`; `outputs` are the locations and types of these.
    """

    function: str
    programs: Mapping[str, ProgramInfo]
    kernels: Mapping[str, KernelInfo]
    parameters: Sequence[ParameterInfo]
    nodes: list[GraphNode] = field(default_factory=list)
    outputs: list[Sequence[tuple[_Byte, TensorSpec]]] = field(default_factory=list)
    args: list[int] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    held: dict[tuple[str, int], list[_Written]] = field(default_factory=dict)
    storages: dict[tuple[str, int, int], int] = field(default_factory=dict)

    def arguments(self, program: ProgramInfo, sizes: Mapping[str, int]) -> None:
        """Creates the nodes of the inputs, and of the parameters that the program and its callees read."""
        given = [(_Byte("input", i, 0), spec) for i, spec in enumerate(program.inputs)]
        used = self._parameters_of(program.steps, {program.name})
        known = {p.offset: p.spec for p in self.parameters}
        given += [
            (_Byte("param", 0, at), known.get(at, TensorSpec(f"p{i}", s.shape, s.dtype))) for i, (at, s) in enumerate(sorted(used.items()))
        ]
        for place, spec in given:
            self._check(spec)
            argument = GraphNode("null", self._unique(spec.name), (), ())
            self.args.append(self._add(argument, [(place, TensorSpec("", spec.at(sizes), spec.dtype))]))

    def _parameters_of(self, nodes: Sequence[Node], seen: set[str]) -> dict[int, TensorSpec]:
        """The parameters that are read, by offset."""
        found: dict[int, TensorSpec] = {}
        for node in walk(nodes):
            if isinstance(node, (Step, PackedCall, ProgramCall)):
                found |= {int(ref.offset): ref.spec for ref in node.inputs if ref.space == "param"}
            if isinstance(node, ProgramCall) and node.function not in seen:
                found |= self._parameters_of(self.programs[node.function].steps, seen | {node.function})
        return found

    def _unique(self, name: str) -> str:
        count = self.names.get(name, 0)
        self.names[name] = count + 1
        return self._unique(f"{name}_{count}") if count else name

    def _check(self, spec: TensorSpec) -> None:
        if is_host_dtype(spec.dtype):
            raise self.no_graph(f"a tensor of {spec.dtype}, which the host holds")

    def no_graph(self, found: str) -> ValueError:
        return ValueError(
            f"{self.function}: expected a graph: calls of kernels in an order that is known, on tensors of known sizes; found {found}"
        )

    # ---- the calls

    def run(self, nodes: Sequence[Node], frame: _Frame) -> None:
        for node in nodes:
            where = (
                f" at {', '.join(node.sources)}" if isinstance(node, (Step, PackedCall, ProgramCall, Branch, Loop)) and node.sources else ""
            )
            if isinstance(node, (Step, PackedCall)):
                self._call(node, frame)
            elif isinstance(node, Branch) and isinstance(node.condition, EqualSizes):
                self.run(node.then if node.condition.holds(frame.sizes) else node.otherwise, frame)
            elif isinstance(node, ProgramCall):
                self._inline(node, frame, where)
            elif not isinstance(node, Define):
                what = {"Branch": "a branch on data", "Loop": "a loop"}.get(type(node).__name__, "sizes that only the program finds out")
                raise self.no_graph(f"{what}{where}")

    def _inline(self, node: ProgramCall, frame: _Frame, where: str) -> None:
        callee = self.programs[node.function]
        if callee.max_depth or node.heap >= 0 or node.slots or node.names:
            raise self.no_graph(f"a call of {node.function}, which calls itself or finds out sizes{where}")
        sizes = _Sizes(zip(callee.symbols, (evaluate(size, frame.sizes) for size in node.sizes), strict=True))
        inputs, outputs = ([self._place(ref, frame) for ref in refs] for refs in (node.inputs, node.outputs))
        self.run(callee.steps, _Frame(sizes, inputs, outputs, frame.arena + evaluate(node.arena, frame.sizes)))

    def _call(self, node: Step | PackedCall, frame: _Frame) -> None:
        inputs = tuple(self._read(self._place(ref, frame), self._spec(ref, frame)) for ref in node.inputs)
        outputs = [(self._place(ref, frame), self._spec(ref, frame)) for ref in node.outputs]
        attrs = {"sources": json.dumps(node.sources)} if node.sources else {}
        sizes: tuple[int, ...] = ()
        function = node.name if isinstance(node, PackedCall) else node.kernel
        if isinstance(node, Step):
            info = self.kernels[node.kernel]
            attrs |= {"ops": " ".join(info.ops), "schedule": info.schedule}
            if info.outputs and info.outputs[-1].name == "workspace":
                attrs["workspace"] = str(len(info.outputs) - 1)
            sizes = tuple(evaluate(size, frame.sizes) for size in node.sizes)
        self._add(GraphNode("tvm_op", self._unique(function), inputs, (), function, sizes, attrs), outputs)

    def _place(self, ref: BufferRef, frame: _Frame) -> _Byte:
        offset = evaluate(ref.offset, frame.sizes)
        if ref.space in ("input", "output"):
            base = (frame.inputs if ref.space == "input" else frame.outputs)[ref.index]
            return _Byte(base.space, base.index, base.offset + offset)
        if ref.space == "heap":
            raise self.no_graph("memory of the heap, whose size only the program finds out")
        return _Byte(ref.space, 0, offset + (frame.arena if ref.space == "arena" else 0))

    def _spec(self, ref: BufferRef, frame: _Frame) -> TensorSpec:
        self._check(ref.spec)
        return TensorSpec("", ref.spec.at(frame.sizes), ref.spec.dtype)

    # ---- which tensor a memory holds

    def _add(self, node: GraphNode, outputs: Sequence[tuple[_Byte, TensorSpec]]) -> int:
        """Adds a node and records it as the writer of its outputs' memory."""
        number = len(self.nodes)
        self.nodes.append(node)
        self.outputs.append(outputs)
        for index, (place, spec) in enumerate(outputs):
            begin, end = place.offset, place.offset + int(spec.num_bytes)
            held = self.held.setdefault((place.space, place.index), [])
            if node.function != NOP:
                held[:] = [w for w in held if not (w.begin < end and begin < w.end) and not (w.begin == w.end == begin == end)]
            held.append(_Written(begin, end, spec.shape, spec.dtype, (number, index)))  # type: ignore[arg-type] # sizes are numbers
        return number

    def _read(self, place: _Byte, spec: TensorSpec) -> tuple[int, int]:
        """The tensor at a location: an output written there with the same type, or a new node that reinterprets it."""
        begin, end = place.offset, place.offset + int(spec.num_bytes)
        held = self.held.get((place.space, place.index), [])
        over = [w for w in held if (w.begin < end and begin < w.end) or (begin == end == w.begin == w.end)]
        for written in over:
            if (written.begin, written.end, written.shape, written.dtype) == (begin, end, spec.shape, spec.dtype):
                return written.producer
        if not over and begin != end:
            raise self.no_graph(f"a tensor in the memory {place.space} {place.index} that no call before has written")
        whole = [w for w in over if (w.begin, w.end) == (begin, end)]
        inputs = tuple(w.producer for w in sorted(whole[:1] or over, key=lambda w: w.begin))
        name = "reshape_nop" if len(inputs) == 1 else "concatenate_nop"
        return self._add(GraphNode("tvm_op", self._unique(name), inputs, (), NOP), [(place, spec)]), 0

    # ---- the graph

    def graph(self, program: ProgramInfo, sizes: Mapping[str, int]) -> Graph:
        heads = []
        for i, spec in enumerate(program.outputs):
            self._check(spec)
            heads.append(self._read(_Byte("output", i, 0), TensorSpec("", spec.at(sizes), spec.dtype)))
        first = self._first_bytes()
        nodes = []
        for number, (node, outputs) in enumerate(zip(self.nodes, self.outputs, strict=True)):
            entries = tuple(self._entry(place, spec, first[number, i]) for i, (place, spec) in enumerate(outputs))
            nodes.append(replace(node, outputs=entries))
        return Graph(tuple(nodes), tuple(self.args), tuple(heads), tuple(spec.name for spec in program.outputs))

    def _first_bytes(self) -> dict[tuple[int, int], int]:
        """For each tensor, the first byte of the group of tensors that nodes without code connect to it: they share memory."""
        groups: dict[tuple[int, int], set[tuple[int, int]]] = {}
        offsets: dict[tuple[int, int], int] = {}
        for number, (node, outputs) in enumerate(zip(self.nodes, self.outputs, strict=True)):
            for index, (place, _) in enumerate(outputs):
                offsets[number, index] = place.offset
                group = {(number, index)}
                if node.function == NOP:
                    group = group.union(*(groups[place] for place in node.inputs))
                for member in group:
                    groups[member] = group
        return {member: min(offsets[other] for other in group) for member, group in groups.items()}

    def _entry(self, place: _Byte, spec: TensorSpec, first: int) -> Entry:
        storage = self.storages.setdefault((place.space, place.index, first), len(self.storages))
        return Entry(spec.shape, spec.dtype, storage, place.offset - first)  # type: ignore[arg-type] # sizes are numbers
