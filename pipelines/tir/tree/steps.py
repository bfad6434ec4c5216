"""The computation of a block at one point, as a list of steps: operations on elements, with the indices of their accesses.

Primitives edit steps, and they are lowered. Operations are written from them only when they are requested.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any, TypeAlias

from relayc.dialects.mlir import ir
from relayc.dialects.operations import producer_of
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import FAR, Index, Var
from relayc.pipelines.te.read.body import Constant
from relayc.pipelines.tir.tree.indices import Reader, Writer, canonical, equal, substitute, variables
from relayc.symbolic import Size


class Computed(Var):
    """A number of type index that a step computes; nothing else is known about it."""

    def __init__(self, value: ir.Value | None = None) -> None:
        super().__init__(-FAR, FAR, value, name="computed")


@dataclass(eq=False, slots=True)
class Access:
    """A load or store of a block.

    Attributes:
      buffer: the memref.
      indices: of the element, over the iterators of the block and the loops inside it.
      is_init: whether the access is in the init of the block.
    """

    buffer: ir.Value
    indices: tuple[Index, ...]
    is_store: bool
    is_init: bool = False


@dataclass(eq=False, slots=True)
class Step:
    """An operation on elements.

    Attributes:
      operands: for each operand the number of the step that computes it, an Index over the iterators for type index, or a Constant;
        otherwise the value. Empty for a load; the stored operand for a store.
      type: of the result; None for a store.
      access: the load or store that the step performs.
      var: the result as a variable of indices, if it is of type index.
    """

    name: str
    operands: tuple[Any, ...]
    type: ir.Type | None = None
    attributes: dict[str, ir.Attribute] = field(default_factory=dict)
    access: Access | None = None
    var: Computed | None = None


@dataclass
class Contents:
    """The contents of a block.

    Attributes:
      accesses: its loads and stores in order, the accesses of the init first.
      init, body: its steps; None if the block has no init, or they hold blocks.
      is_checked: whether check_elements accepted the accesses.
    """

    accesses: list[Access]
    init: list[Step] | None
    body: list[Step] | None
    is_checked: bool = False

    @cached_property
    def stored(self) -> Sequence[ir.Value]:
        """The buffers that are written, each once."""
        return tuple(dict.fromkeys(a.buffer for a in self.accesses if a.is_store))

    @cached_property
    def outputs(self) -> Sequence[ir.Value]:
        """The buffers that the body writes, each once, in the order of the stores."""
        return tuple(dict.fromkeys(a.buffer for a in self.accesses if a.is_store and not a.is_init))

    @cached_property
    def inputs(self) -> Sequence[ir.Value]:
        """The buffers that the body reads and does not write, each once, in the order of the loads."""
        return tuple(b for b in dict.fromkeys(a.buffer for a in self.accesses if not a.is_store and not a.is_init) if b not in self.outputs)

    @classmethod
    def of_steps(cls, init: list[Step] | None, body: list[Step] | None) -> "Contents":
        """The contents with these steps."""
        return cls([s.access for s in (*(init or ()), *(body or ())) if s.access is not None], init, body)

    def changed(self) -> None:
        """Records that buffers of accesses changed."""
        for name in ("stored", "outputs", "inputs"):
            self.__dict__.pop(name, None)


class Recorder:
    """Records the steps of an init or a body."""

    def __init__(self, is_init: bool) -> None:
        self.is_init = is_init
        self.steps: list[Step] = []

    def _add(self, step: Step) -> int:
        self.steps.append(step)
        return len(self.steps) - 1

    def load(self, buffer: ir.Value, indices: Sequence[Index]) -> Any:
        """An element of a buffer, as an operand."""
        return self._result(Step("memref.load", (), buffer.type.element_type), buffer, indices)

    def store(self, value: Any, buffer: ir.Value, indices: Sequence[Index]) -> None:
        """Stores an operand."""
        step = Step("memref.store", (canonical(value) if isinstance(value, Index) else value,))
        step.access = self._access(buffer, indices, True)
        self._add(step)

    def make(self, name: str, type_: ir.Type | None, operands: Sequence[Any], attributes: dict[str, ir.Attribute] | None = None) -> Any:
        """The result of an operation, as an operand."""
        return self._result(Step(name, tuple(canonical(v) if isinstance(v, Index) else v for v in operands), type_, attributes or {}))

    def _result(self, step: Step, buffer: ir.Value | None = None, indices: Sequence[Index] = ()) -> Any:
        if buffer is not None:
            step.access = self._access(buffer, indices, False)
        number = self._add(step)
        if not isinstance(step.type, ir.IndexType):
            return number
        step.var = Computed()
        return Index.of(step.var)

    def _access(self, buffer: ir.Value, indices: Sequence[Index], is_store: bool) -> Access:
        return Access(buffer, tuple(map(canonical, indices)), is_store, self.is_init)


Code: TypeAlias = Callable[[Recorder, Sequence[Index]], None]
"""Records steps, given the values of the iterators."""


def record_steps(code: Code, point: Sequence[Index], is_init: bool) -> list[Step]:
    """The steps of an init or a body at a point."""
    record = Recorder(is_init)
    code(record, point)
    return record.steps


class Copy:
    """Copies steps of an init or a body to a recorder, one after the other.

    Args:
      point: the values of the iterators.
    """

    def __init__(self, record: Recorder, point: Mapping[Var, Index]) -> None:
        self.record, self.point = record, dict(point)
        self.results: list[Any] = []
        """For each step that was copied the operand that stands for its result."""

    def run(self, steps: Sequence[Step]) -> None:
        """Copies steps."""
        for step in steps:
            self.step(step)

    def step(self, step: Step) -> None:
        """Copies the next step."""
        access, operands, found = step.access, list(map(self.operand, step.operands)), None
        if access is None:
            found = self.record.make(step.name, step.type, operands, step.attributes)
        elif access.is_store:
            self.record.store(operands[0], access.buffer, self.indices(access))
        else:
            found = self.record.load(access.buffer, self.indices(access))
        if step.var is not None and (var := self.record.steps[-1].var) is not None:
            var.low, var.high = step.var.low, step.var.high
        self.replace(step, found)

    def replace(self, step: Step, operand: Any) -> None:
        """Lets an operand stand for the result of the next step, which is not copied."""
        self.results.append(operand)
        if step.var is not None:
            self.point[step.var] = operand

    def operand(self, found: Any) -> Any:
        """The operand that stands for an operand of the next step."""
        return self.results[found] if isinstance(found, int) else substitute(found, self.point) if isinstance(found, Index) else found

    def indices(self, access: Access) -> list[Index]:
        """The indices of an access at this point."""
        return [substitute(i, self.point) for i in access.indices]


def copy_steps(steps: Sequence[Step], point: Mapping[Var, Index], is_init: bool) -> list[Step]:
    """Copies of the steps of an init or body at other values of the iterators."""
    return record_steps(lambda record, _: Copy(record, point).run(steps), (), is_init)


def live_steps(steps: list[Step], is_init: bool) -> list[Step]:
    """The steps of an init or body without those whose results nothing uses."""
    operands, live = numbered_operands(steps), set[int]()
    numbers = {s.var: number for number, s in enumerate(steps) if s.var is not None}
    for number, step in reversed(list(enumerate(steps))):
        if step.type is None or number in live:
            live.add(number)
            live.update(v for v in operands[number] if isinstance(v, int))
            if numbers:
                indices = [*(v for v in step.operands if isinstance(v, Index)), *(step.access.indices if step.access is not None else ())]
                live.update(numbers[v] for index in indices for v in variables(index) if isinstance(v, Computed))
    if len(live) == len(steps):
        return steps
    copy = Copy(Recorder(is_init), {})
    for number, step in enumerate(steps):
        if number in live:
            copy.step(step)
        else:
            copy.replace(step, None)
    return copy.record.steps


class NotSteps(ValueError):
    """A body has an operation with regions, or with several results; the message is its name."""


def constant_of(value: float | int, type_: ir.Type) -> Constant:
    """A number as an operand."""
    return Constant(emit.number_attribute(value, type_), type_)


def numbered_operands(steps: Sequence[Step]) -> list[list[Any]]:
    """The operands of each step, where a result of type index is also the number of its step instead of an Index."""
    numbers = {Index.of(s.var).key: number for number, s in enumerate(steps) if s.var is not None}
    return [[numbers.get(v.key, v) if isinstance(v, Index) else v for v in step.operands] for step in steps]


def read_steps(region: ir.Block, variables: Sequence[Var], sizes: Mapping[ir.Value, Size], is_init: bool) -> list[Step]:
    """The steps of an init or a body, over variables for its arguments. Raises NotSteps."""
    reader = Reader({a: Index.of(v) for a, v in zip(region.arguments, variables, strict=True)}, sizes)
    numbers: dict[ir.Value, int] = {}
    steps: list[Step] = []

    def operand(value: ir.Value) -> Any:
        number = numbers.get(value)
        if number is not None:
            return number
        if isinstance(value.type, ir.IndexType):
            return reader.read(value)
        producer = producer_of(value)
        if producer is not None and producer.name == "arith.constant":
            return Constant(producer.attributes["value"], value.type)
        return value

    for view in region.operations:
        op = view.operation
        name = op.name
        if len(op.regions) or len(op.results) > 1:
            raise NotSteps(name)
        if name == "arith.constant":
            continue
        if name == "memref.store":
            value, buffer, *at = op.operands
            access = Access(buffer, tuple(map(reader.read, at)), True, is_init)
            steps.append(Step(name, (operand(value),), access=access))
            continue
        result = op.results[0] if len(op.results) == 1 else None
        var: Computed | None = None
        if result is not None and isinstance(result.type, ir.IndexType):
            if name != "memref.load" and not _is_opaque(reader.read(result), result):
                continue  # computed where it is used
            var = Computed(result)
            reader.define(result, Index.of(var))
        elif result is not None:
            numbers[result] = len(steps)
        if name == "memref.load":
            buffer, *at = op.operands
            steps.append(Step(name, (), op.results[0].type, {}, Access(buffer, tuple(map(reader.read, at)), False, is_init), var))
        else:
            type_ = None if result is None else result.type
            steps.append(Step(name, tuple(map(operand, op.operands)), type_, dict(op.attributes.items()), None, var))
    return steps


def _is_opaque(index: Index, value: ir.Value) -> bool:
    """Whether a value is unknown: its index is a variable for the value itself."""
    var = next(iter(index.terms), None)
    return type(var) is Var and var.value == value


def write_steps(steps: Sequence[Step], point: Mapping[Var, Index]) -> None:
    """Writes the operations of steps at the ambient insertion point.

    Args:
      point: the values of the iterators.
    """
    writer, results = Writer(), list[ir.Value | None]()

    def written(operand: Any) -> ir.Value:
        if isinstance(operand, int):
            return results[operand]
        if isinstance(operand, Constant):
            return emit.constant(operand.attribute, operand.type)
        return writer(substitute(operand, point))

    for step in steps:
        operands = [written(v) for v in step.operands]
        if step.access is not None:
            operands += [step.access.buffer, *map(written, step.access.indices)]
        types = [] if step.type is None else [step.type]
        made = ir.Operation.create(step.name, results=types, operands=operands, attributes=step.attributes)
        results.append(made.results[0] if types else None)
        if step.var is not None:
            step.var.value = results[-1]


COMMUTATIVE: dict[str, Callable[[int], float | int]] = {
    "arith.addf": lambda bits: 0.0,
    "arith.mulf": lambda bits: 1.0,
    "arith.maximumf": lambda bits: -inf,
    "arith.maxnumf": lambda bits: -inf,
    "arith.minimumf": lambda bits: inf,
    "arith.minnumf": lambda bits: inf,
    "arith.addi": lambda bits: 0,
    "arith.muli": lambda bits: 1,
    "arith.maxsi": lambda bits: -(1 << (bits - 1)),
    "arith.maxui": lambda bits: 0,
    "arith.minsi": lambda bits: (1 << (bits - 1)) - 1,
    "arith.minui": lambda bits: -1,
    "arith.andi": lambda bits: -1,
    "arith.ori": lambda bits: 0,
    "arith.xori": lambda bits: 0,
}
"""Operations by which lanes may be combined in any order; each entry gives the neutral element for integers of the given width."""


def neutral(name: str, element: ir.Type) -> float | int:
    """The neutral element of a commutative operation for an element type."""
    bits = 0 if isinstance(element, ir.FloatType) else 64 if isinstance(element, ir.IndexType) else element.width
    return COMMUTATIVE[name](bits)


def combining_step(steps: Sequence[Step], store: Step) -> int | None:
    """The number of the step that combines a value with the stored element by one commutative operation; None if there is no such step, or
    the body also uses the element or the result of the step otherwise."""
    number, access = store.operands[0], store.access
    if not isinstance(number, int) or access is None or (combine := steps[number]).name not in COMMUTATIVE:
        return None
    loads = [i for i, s in enumerate(steps) if s.access is not None and s is not store and s.access.buffer == access.buffer]
    if len(loads) != 1 or not all(map(equal, steps[loads[0]].access.indices, access.indices)):  # type: ignore[union-attr] # it is one
        return None
    used = [v for s in steps for v in s.operands if isinstance(v, int)]
    return number if used.count(loads[0]) == used.count(number) == 1 and loads[0] in combine.operands else None
