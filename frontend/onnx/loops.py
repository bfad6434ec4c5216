"""Loops: Loop and Scan as loops that carry tensors (see relayc.frontend.common.loops); of sequences and optional values the numbers are
carried."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from types import NoneType

import numpy as np
from onnx import GraphProto, ValueInfoProto

from relayc.frontend.common.loops import ATTEMPTS, CarriedLoop, counted, number_as_data
from relayc.frontend.converter import ModelBuilder, Tensor, assume, axis_of, constant, emit, simpler
from relayc.frontend.onnx.converters import Node, converter, current
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.objects import (
    ObjectType,
    Source,
    Value,
    as_tensor,
    by_number,
    declared_type,
    element_of,
    joined,
    number_of,
    type_of,
)
from relayc.frontend.sizes import known_elements, size, size_tensor, sizes
from relayc.frontend.steps import binary, cast, filled, reshape, subtract, transpose
from relayc.symbolic import Size


class _OtherObjects(Exception):
    """A body returns other types of sequences or optional values than its arguments."""


# ---- loops that carry sequences and optional values -----------------------------------------------------------------------------------


@dataclass
class _ObjectLoop:
    """A loop that may carry sequences and optional values, by their numbers.

    Their content types are determined by converting the body, which is repeated until argument and result types agree.

    Attributes:
      carried: initial values.
      names: of the carried values.
      declared: their types in the body, as declared by the model.
      body: as for a loop over tensors, except for the carried values.
    """

    carried: Sequence[Value]
    names: Sequence[str]
    declared: Sequence[ObjectType | None]
    body: Callable[[Tensor, Tensor | None, list[Value]], tuple[Tensor | None, Sequence[Value], list[Tensor]]]
    types: list[ObjectType | None] = field(default_factory=list)
    """Of the objects among the carried values."""

    def run(
        self, trips: Size | None, limit: Tensor | None, condition: Tensor | None, rows: Sequence[list[int | None]]
    ) -> tuple[list[Value], Sequence[Tensor]]:
        """The values after the loop, and the scan outputs, of whose rows `rows` are the declared sizes. Raises OnnxError."""
        self.types = [None if isinstance(v, Tensor) else _at_first(v.type, d) for v, d in zip(self.carried, self.declared, strict=True)]
        for _ in range(ATTEMPTS):
            numbers = self._numbers(self.carried)
            loop = CarriedLoop(trips, limit, condition, numbers, list(self.names), self._step, [False] * len(rows), list(rows))
            try:
                with ModelBuilder.current().trial():
                    final, found = loop.run()
            except _OtherObjects:
                continue
            return self._values(final), found
        raise OnnxError("expected a body that gives sequences and optional values of one type in each iteration, found others each time")

    def _values(self, tensors: Sequence[Tensor]) -> list[Value]:
        return [t if type_ is None else by_number(t, type_) for t, type_ in zip(tensors, self.types, strict=True)]

    def _numbers(self, values: Sequence[Value]) -> list[Tensor]:
        return [v if isinstance(v, Tensor) and t is None else number_of(v, t) for v, t in zip(values, self.types, strict=True)]

    def _step(self, number: Tensor, condition: Tensor | None, tensors: list[Tensor]) -> tuple[Tensor | None, list[Tensor], list[Tensor]]:
        following, found, rows = self.body(number, condition, self._values(tensors))
        types = [self._joined(*each) for each in zip(self.names, self.types, tensors, found, strict=True)]
        if types != self.types:
            self.types = types
            raise _OtherObjects
        return following, self._numbers(found), rows

    @staticmethod
    def _joined(name: str, before: ObjectType | None, tensor: Tensor, found: Value) -> ObjectType | None:
        if before is None and isinstance(found, Tensor):
            return None
        try:
            return joined(type_of(tensor) if before is None else before, type_of(found))
        except OnnxError as error:
            raise OnnxError(f"value {name!r} that the loop carries: {error}") from None


def _at_first(type_: ObjectType, declared: ObjectType | None) -> ObjectType:
    """The type of a value before a loop: of what is still empty, as the model declares it."""
    return joined(type_, declared) if declared is not None and element_of(type_).source is Source.NOTHING else type_


def repeated(
    limit: Tensor, trips: int | None, carried: Sequence[Value], names: Sequence[str], step: Callable[[Tensor, list[Value]], Sequence[Value]]
) -> list[Value]:
    """What values are after a number of iterations.

    Args:
      limit: the number of iterations, int64[]; `trips` is the same where it is known.
      names: of the values.
      step: gives the next values from the number of the iteration and the values.

    Raises OnnxError.
    """

    def body(number: Tensor, _: Tensor | None, values: list[Value]) -> tuple[None, Sequence[Value], list[Tensor]]:
        return None, step(number, values), []

    return _ObjectLoop(carried, names, [None] * len(carried), body).run(trips, limit, None, [])[0]


def declared_sizes(value: ValueInfoProto) -> list[int | None]:
    """The sizes that a model declares for a value, None for unspecified sizes; empty if it declares no shape."""
    return [d.dim_value if d.HasField("dim_value") else None for d in value.type.tensor_type.shape.dim]


def scalar_of(tensor: Tensor, what: str) -> Tensor:
    """A tensor of one element as rank 0; ONNX accepts both for scalars. Raises OnnxError."""
    if tensor.rank == 0:
        return tensor
    if tensor.type.is_static and tensor.type.num_elements != 1:
        raise OnnxError(f"{what}: expected one element, found {tensor.type}")
    return reshape(tensor, ())


def _decides(body: GraphProto) -> bool:
    """Whether the body of a Loop gives a condition that may be false: one that is not its own input, or true."""
    made = {name: node for node in body.node for name in node.output}
    name = body.output[0].name
    while name in made and made[name].op_type == "Identity" and made[name].input:
        name = made.pop(name).input[0]  # each once: a node may name itself
    if name == body.input[1].name:
        return False
    constants = {t.name: t for t in body.initializer}
    if name in made and made[name].op_type == "Constant":
        constants.update((name, a.t) for a in made[name].attribute if a.name == "value")
    if name not in constants:
        return True
    import onnx

    return not bool(onnx.numpy_helper.to_array(constants[name]).all())


@converter(foldable=False, objects=True)
def Loop(M: Tensor | None = None, cond: Tensor | None = None, *carried: Value, body: GraphProto) -> tuple[Value, ...]:
    """All forms: a number of iterations, a condition, both or none, values whose sizes change, sequences, scan outputs."""
    node = current()
    if any(not isinstance(t, (Tensor, NoneType)) for t in (M, cond)):
        raise OnnxError("inputs M and cond: expected tensors, found others")
    if len(body.input) != 2 + len(carried) or len(body.output) < 1 + len(carried):
        raise OnnxError(f"expected a body of {2 + len(carried)} inputs, found {len(body.input)}, and {len(body.output)} outputs")
    scans = len(body.output) - 1 - len(carried)
    limit = None if M is None else scalar_of(M, "M")
    start = constant(np.bool_(True)) if cond is None else scalar_of(cond, "cond")
    decides = _decides(body) or not (start.is_known and bool(start.array))
    trips = None
    if limit is not None and not decides and (scans or known_elements(limit) is not None):
        trips = _trips(limit)
        limit = size_tensor(trips)

    def step(number: Tensor, condition: Tensor | None, values: list[Value]) -> tuple[Tensor | None, list[Value], list[Tensor]]:
        given = condition if condition is not None else constant(np.bool_(True))
        following, *found = node.inline(body, number, given, *values)
        rows = [as_tensor(v, "scan output") for v in found[len(carried) :]]
        return (as_tensor(following, "cond of the body") if decides else None), found[: len(carried)], rows

    names = [value.name for value in body.input[2:]]
    declared = [declared_type(value.type, f"input {value.name} of the body") for value in body.input[2:]]
    rows_declared = list(map(declared_sizes, body.output[1 + len(carried) :]))
    final, rows = _ObjectLoop(carried, names, declared, step).run(trips, limit, start if decides else None, rows_declared)
    return (*final, *rows)


def _trips(limit: Tensor) -> Size:
    """The number of iterations of a loop that nothing ends before: an expression, or a symbol of what the program knows."""
    known = known_elements(limit)
    if known is not None:
        first = known.reshape(-1)[0]
        return max(first, 0) if isinstance(first, int) else first
    at_least_none = binary("maximum", cast(limit, "int64"), 0)
    at_least_none.name = limit.name or "trips"
    return sizes(at_least_none, "M")[0]


@converter(since=9, foldable=False)
def Scan(
    *inputs: Tensor,
    body: GraphProto,
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] | None = None,
    scan_input_directions: Sequence[int] | None = None,
    scan_output_axes: Sequence[int] | None = None,
    scan_output_directions: Sequence[int] | None = None,
) -> tuple[Tensor, ...]:
    """A loop over the slices of tensors: any axes and directions, several states."""
    node = current()
    if not 1 <= num_scan_inputs <= len(inputs):
        raise OnnxError(f"attribute num_scan_inputs: expected 1 to {len(inputs)}, found {num_scan_inputs}")
    states, scanned = list(inputs[: len(inputs) - num_scan_inputs]), list(inputs[len(inputs) - num_scan_inputs :])
    outputs = len(body.output) - len(states)
    axes = _for_each(scan_input_axes, num_scan_inputs, "scan_input_axes")
    forwards = _for_each(scan_input_directions, num_scan_inputs, "scan_input_directions")
    out_axes = _for_each(scan_output_axes, outputs, "scan_output_axes")
    out_directions = _for_each(scan_output_directions, outputs, "scan_output_directions")
    along = [axis_of(a, t.rank, "scan_input_axes") for a, t in zip(axes, scanned, strict=True)]
    trips = _common([t.shape[a] for t, a in zip(scanned, along, strict=True)])
    scanned = [assume(t, [trips if i == a else d for i, d in enumerate(t.shape)]) for t, a in zip(scanned, along, strict=True)]
    final, rows = _scanned(node, body, trips, states, list(zip(scanned, along, forwards, strict=True)), out_directions)
    moved = []
    for row, axis in zip(rows, out_axes, strict=True):
        order = list(range(1, row.rank))
        order.insert(axis_of(axis, row.rank, "scan_output_axes"), 0)
        moved.append(transpose(row, order))
    return (*final, *moved)


def _scanned(
    node: Node,
    body: GraphProto,
    trips: Size,
    states: list[Tensor],
    scanned: Sequence[tuple[Tensor, int, int]],
    out_directions: Sequence[int],
) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
    """The states after, and the outputs of, a scan over so many slices of tensors, each given with its axis and direction."""

    def step(at: Tensor, values: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        back = subtract(size_tensor(trips - 1), at) if any(d for *_, d in scanned) else at
        slices = [emit("take", t, back if backwards else at, axis=axis, mode="clip") for t, axis, backwards in scanned]
        found = [as_tensor(v, "output of the body") for v in node.inline(body, *values, *slices)]
        return found[: len(states)], found[len(states) :]

    names = [value.name for value in body.input[: len(states)]]
    rows_declared = list(map(declared_sizes, body.output[len(states) :]))
    return counted(trips, states, names, step, [bool(d) for d in out_directions], rows_declared)


@converter("Scan", since=8, foldable=False)
def Scan_8(
    sequence_lens: Tensor | None = None,
    *inputs: Tensor,
    body: GraphProto,
    num_scan_inputs: int,
    directions: Sequence[int] | None = None,
) -> tuple[Tensor, ...]:
    """A loop over a batch, whose entries are scanned separately: as many slices as the entry's length; later outputs are 0."""
    node = current()
    if not 1 <= num_scan_inputs <= len(inputs):
        raise OnnxError(f"attribute num_scan_inputs: expected 1 to {len(inputs)}, found {num_scan_inputs}")
    count = len(inputs) - num_scan_inputs
    if any(t.rank < 1 + (i >= count) for i, t in enumerate(inputs)):
        raise OnnxError(f"expected states [batch, ...] and inputs [batch, sequence, ...], found {', '.join(str(t.type) for t in inputs)}")
    batch, longest = _common([t.shape[0] for t in inputs]), _common([t.shape[1] for t in inputs[count:]])
    states = [assume(t, (batch, *t.shape[1:])) for t in inputs[:count]]
    scanned = [assume(t, (batch, longest, *t.shape[2:])) for t in inputs[count:]]
    forwards = _for_each(directions, num_scan_inputs, "directions")

    def step(number: Tensor, _: Tensor | None, __: list[Tensor]) -> tuple[Tensor | None, list[Tensor], list[Tensor]]:
        def entry(t: Tensor) -> Tensor:
            return emit("take", t, number_as_data(number), axis=0, mode="clip")

        trips = longest if sequence_lens is None else size(entry(sequence_lens), "sequence_lens")
        slices = [(entry(t), 0, d) for t, d in zip(scanned, forwards, strict=True)]
        final, rows = _scanned(node, body, trips, list(map(entry, states)), slices, [0] * (len(body.output) - count))
        return None, [], [*final, *(_with_rows(r, longest) for r in rows)]

    limit = size_tensor(batch)
    outputs = len(body.output)
    return tuple(CarriedLoop(batch, limit, None, [], [], step, [False] * outputs, [[]] * outputs).run()[1])


def _with_rows(x: Tensor, count: Size) -> Tensor:
    """x padded with rows of zeros to `count` rows."""
    missing = count - x.shape[0]
    return x if missing == 0 else emit("concatenate", x, filled((missing, *x.shape[1:]), 0, x.dtype), axis=0)


def _common(sizes: Sequence[Size]) -> Size:
    """Of sizes that are taken for equal, the one to go on with."""
    return reduce(simpler, sizes)


def _for_each(values: Sequence[int] | None, count: int, what: str) -> list[int]:
    found = [0] * count if values is None else list(values)
    if len(found) != count:
        raise OnnxError(f"attribute {what}: expected {count} value(s), found {found}")
    return found
