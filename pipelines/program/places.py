"""Where the tensors of a program are: in its inputs, its outputs, the parameters, or one arena whose parts are shared over time.

A tensor of the arena is alive from the step that first writes it to the last step that reads it. In a loop, what has been written before
the loop is needed again and again, and stays alive until the loop ends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.memory import Tensor
from relayc.pipelines.program.body import Body, Call, If, Program, While
from relayc.pipelines.schedule.inplace import Places as Within
from relayc.pipelines.schedule.inplace import find_places

Value = ir.Value


@dataclass(eq=False)
class Place:
    """Memory behind te values.

    Attributes:
      space, index: as in the runtime's BufferRef.
      key: of a parameter.
      tensor: of the arena; `offset` is the first byte in that.
    """

    space: str = "arena"
    index: int = 0
    key: str = ""
    tensor: Tensor | None = None
    offset: int = 0


def bytes_of(element: ir.Type) -> int:
    return max(1, element.width // 8)


def size_of(type_: ir.RankedTensorType) -> int:
    return prod(type_.shape) * bytes_of(type_.element_type)


class Places:
    """The places of all values of a program whose results are materialized (see results).

    Attributes:
      of: by value.
      needless: results of calls that have nothing left to do, as their operands are in place.
      tensors: those of the arena, each once.
    """

    def __init__(self, program: Program, joins: Mapping[str, Sequence[int]]) -> None:
        """
        Args:
          joins: kernels that concatenate in memory, by name (see schedule.inplace).
        """
        self.program, self.joins = program, joins
        self.of: dict[Value, Place] = {}
        self.needless: set[Value] = set()
        self._whole: dict[Value, Tensor] = {}
        arguments = program.body.block.arguments
        self.of.update((argument, Place("input", i)) for i, argument in enumerate(arguments))
        for value, constant in program.constants.items():
            self.of[value] = Place("param", key=constant.key)
        self._assign(program.body, [Place("output", i) for i in range(len(program.body.results))])
        for value in program.sources:
            self.of[value] = self.of[program.root(value)]
        self._live(program.body, [])
        self.tensors = list(dict.fromkeys(place.tensor for place in self.of.values() if place.tensor is not None))

    # ---- memory

    def _assign(self, body: Body, results: Sequence[Place]) -> None:
        """Gives the values of a body their places; its results have the given ones."""
        root = self.program.root
        wanted = {root(value): place for value, place in zip(body.results, results, strict=True)}
        for item in reversed(body.items):
            if isinstance(item, While):
                places = [wanted.get(r) or self._new(r) for r in item.op.operation.results]
                wanted.update(zip(map(root, item.op.operation.operands), places, strict=True))
                for values in (item.op.operation.results, item.before.block.arguments, item.after.block.arguments):
                    self.of.update(zip(values, places, strict=True))
                self._assign(item.before, places)
                self._assign(item.after, places)
        within = find_places(body.block, self.joins, bytes_of, set(wanted)) if body.block is not None else Within()
        self.needless |= within.needless
        for item in body.items:
            if isinstance(item, While):
                continue
            for result in item.op.operation.results:
                self.of[result] = wanted.get(result) or self._new(result, within)
            if isinstance(item, If):
                places = [self.of[r] for r in item.op.operation.results]
                self._assign(item.then, places)
                self._assign(item.otherwise, places)

    def _new(self, value: Value, within: Within | None = None) -> Place:
        whole, offset = within.outermost(value) if within is not None else (value, 0)
        if whole not in self._whole:
            self._whole[whole] = Tensor(size_of(whole.type))
        return Place(tensor=self._whole[whole], offset=offset)

    # ---- time

    def _live(self, body: Body, loops: list[While]) -> None:
        for item in body.items:
            values = [*item.op.operation.operands, *item.op.operation.results]
            if isinstance(item, Call):
                self._touch(values, item.step, loops)
            elif isinstance(item, If):
                self._touch([item.condition], item.step, loops)
                self._live(item.then, loops)
                self._live(item.otherwise, loops)
            else:
                self._live(item.before, [*loops, item])
                self._touch([item.condition], item.test, [*loops, item])
                self._live(item.after, [*loops, item])
                self._touch(values, item.last, loops)

    def _touch(self, values: Sequence[Value], step: int, loops: Sequence[While]) -> None:
        """Notes that values are read or written at a step within loops, the outermost first."""
        for value in values:
            tensor = self.of[value].tensor if value in self.of else None
            if tensor is not None:
                tensor.first = step if tensor.first is None else tensor.first
                around = next((loop.last for loop in loops if loop.first > tensor.first), step)
                tensor.last = max(tensor.last, around)
