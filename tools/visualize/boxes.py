"""What a picture of a program shows: boxes in the order in which they run, groups of boxes, and arrows between boxes."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from relayc.dialects.discardable import NAME
from relayc.dialects.functions import symbol_name
from relayc.dialects.locations import sources_of
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.calls import stage_of
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.types import TupleType, relay_type
from relayc.runtime.graph import NOP, Graph
from relayc.runtime.profile import Profile


@dataclass(frozen=True)
class Box:
    """An operation, an input or an output.

    Attributes:
      name: of the operator or the kernel; lines: what the box says below it, such as types.
      kind: "operator", "kernel", "input" or "output".
      groups: labels of the groups around it, outermost first, each with a number that tells groups of one label apart.
      sources: the names of the model's nodes that it came from.
      seconds: the time of a kernel; None if it was not measured.
    """

    name: str
    lines: tuple[str, ...] = ()
    kind: str = "operator"
    groups: tuple[tuple[int, str], ...] = ()
    sources: tuple[str, ...] = ()
    seconds: float | None = None


@dataclass(frozen=True)
class Arrow:
    """A value from one box (by its number) to another. `is_back`: into the next repetition of what is drawn once."""

    source: int
    target: int
    text: str = ""
    is_back: bool = False


@dataclass
class Drawing:
    """Boxes and arrows, each arrow once."""

    boxes: list[Box] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)

    def add(self, box: Box, inputs: Iterable[tuple[int, str]]) -> int:
        """Adds a box; its inputs are boxes with the text of the values passed. Returns its number."""
        self.boxes.append(box)
        number = len(self.boxes) - 1
        self.arrows += dict.fromkeys(Arrow(source, number, text) for source, text in inputs)
        return number


# ---- a program as IR --------------------------------------------------------------------------------------------------------------------


def program_boxes(mod: IRModule) -> Drawing:
    """The operators of a module of the relay stage; fusion groups, branches and loops are groups, and so are functions if there are
    several. Raises ValueError for a module of a later stage."""
    reader = _ProgramReader()
    with mod.context, mod.ranges:
        defined = [op for op in mod.module.body.operations if isinstance(op, func.FuncOp) and not op.is_external]
        functions = [op for op in defined if stage_of(op.operation) == "relay"]
        for function in functions:
            reader.function(function, len(functions) > 1)
    return reader.drawing


_LATER = ("linalg.", "tensor.empty", "scf.", "memref.", "llvm.")
"""How names of operations of later stages begin."""


class _ProgramReader:
    def __init__(self) -> None:
        self.drawing = Drawing()
        self._from: dict[ir.Value, list[int]] = {}
        self._constants: set[ir.Value] = set()
        self._groups = 0

    def function(self, function: func.FuncOp, is_group: bool) -> None:
        groups = (self._group(f"@{symbol_name(function)}"),) if is_group else ()
        block = function.regions[0].blocks[0]
        for argument, attributes in zip(block.arguments, function.arg_attrs, strict=True):
            name = NAME.get(attributes, f"arg{argument.arg_number}")
            self._from[argument] = [self.drawing.add(Box(name, (_type_text(argument),), "input", groups), [])]
        for i, value in enumerate(self._block(block, groups)):
            self.drawing.add(Box(f"output {i}", (_type_text(value),), "output", groups), self._inputs([value]))

    def _group(self, label: str) -> tuple[int, str]:
        self._groups += 1
        return self._groups, label

    def _block(self, block: ir.Block, groups: tuple[tuple[int, str], ...]) -> Sequence[ir.Value]:
        """Reads the operations of a block; returns the operands of its terminator."""
        *operations, last = list(block.operations)
        for op in operations:
            self._operation(op, groups)
        return list(last.operation.operands)

    def _operation(self, view: ir.OpView, groups: tuple[tuple[int, str], ...]) -> None:
        op = view.operation
        if op.name.startswith(_LATER):
            raise ValueError(f"visualize: expected a module of the relay stage, found {op.name}")
        name = (type(view).relay_name if isinstance(view, Op) else "") or op.name.removeprefix("relay.")
        if name == "constant":
            self._constants.update(op.results)
            return
        if name in ("tuple", "tuple_get_item"):
            self._from[op.results[0]] = [source for v in op.operands for source in self._from.get(v, [])]
            return
        if len(op.regions):
            self._regions(op, name, groups)
            return
        constants = Counter(_type_text(v) for v in op.operands if v in self._constants)
        results = [r for r in op.results if next(iter(r.uses), None) is not None] or list(op.results)
        lines = [f"{text} constant" if n == 1 else f"{n} constants {text}" for text, n in constants.items()]
        lines += map(_type_text, results)
        called = ir.FlatSymbolRefAttr(op.attributes["callee"]).value if op.name == "func.call" else ""
        box = Box(f"@{called}" if called else name, tuple(lines), "operator", groups, sources_of(op.location))
        number = self.drawing.add(box, self._inputs(op.operands))
        self._from.update((result, [number]) for result in op.results)

    def _regions(self, op: ir.Operation, name: str, groups: tuple[tuple[int, str], ...]) -> None:
        """A fusion group, a branch or a loop: a block has the last operands as its arguments, and may end with the results."""
        inside = (*groups, self._group(name))
        for region in op.regions:
            for block in region.blocks:
                given = list(op.operands)[len(op.operands) - len(block.arguments) :]
                for argument, value in zip(block.arguments, given, strict=False):
                    self._from[argument] = self._from.get(value, [])
                    if value in self._constants:
                        self._constants.add(argument)
                ended = self._block(block, inside)
                if name == "while" and region == op.regions[0]:
                    continue  # a condition, which is no result
                for result, value in zip(op.results, ended, strict=False):
                    self._from[result] = sorted({*self._from.get(result, []), *self._from.get(value, [])})

    def _inputs(self, values: Iterable[ir.Value]) -> list[tuple[int, str]]:
        return [(source, _type_text(v)) for v in values for source in self._from.get(v, [])]


def _type_text(value: ir.Value) -> str:
    try:
        type_ = relay_type(value.type)
    except TypeError:
        raise ValueError(f"visualize: expected a module of the relay stage, found a value of type {value.type}") from None
    return f"{len(type_.fields)} tensors" if isinstance(type_, TupleType) else str(type_).removeprefix("tensor<").removesuffix(">")


# ---- a compiled program -----------------------------------------------------------------------------------------------------------------


def kernel_boxes(graph: Graph, inputs: int, profile: Profile | None) -> Drawing:
    """The calls of kernels of a compiled program, with their times where it was profiled.

    Args:
      inputs: how many arguments are inputs; those behind them are parameters, which are no boxes.
    """
    drawing, numbers = Drawing(), dict[int, int]()
    times: dict[str, list[float]] = {}
    for row in profile.rows if profile is not None else ():
        times.setdefault(row.kernel.name, []).append(row.seconds)
    shown = set(graph.arguments[:inputs])
    for number, node in enumerate(graph.nodes):
        shapes = tuple(str(entry.spec) for entry in node.outputs)
        if node.op == "null":
            if number in shown:
                numbers[number] = drawing.add(Box(node.name, shapes, "input"), [])
            continue
        seconds = times[node.function].pop(0) if times.get(node.function) else None
        schedule = node.attrs.get("schedule", "").split(" ")[0]
        lines = (*([schedule] if schedule else []), *shapes, *([f"{seconds * 1e6:.1f} us"] if seconds is not None else []))
        name = "view" if node.function == NOP else node.function
        box = Box(name, lines, "kernel", sources=node.sources, seconds=seconds)
        given = [(numbers[n], str(graph.entry((n, i)).spec)) for n, i in node.inputs if n in numbers]
        numbers[number] = drawing.add(box, given)
    for name, place in zip(graph.output_names, graph.heads, strict=True):
        drawing.add(Box(name, (str(graph.entry(place).spec),), "output"), [(numbers[place[0]], "")] if place[0] in numbers else [])
    return drawing
