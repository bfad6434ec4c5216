"""Sequences and optional values. What is known at import is computed there; see `objects`."""

from collections.abc import Sequence
from itertools import accumulate
from typing import overload

import numpy as np
from onnx import GraphProto, TensorProto, TypeProto

from relayc.dialects.mlir import ir
from relayc.frontend.converter import ModelBuilder, Tensor, assume, axis_of, constant, emit, inside, ints, may_equal, packed
from relayc.frontend.onnx.converters import converter, current
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.loops import repeated, scalar_of
from relayc.frontend.onnx.model import dtype_name
from relayc.frontend.onnx.objects import (
    ABSENT,
    NUMBER,
    OPTIONAL,
    SEQUENCE,
    ElementType,
    OptionalType,
    OptionalValue,
    SequenceType,
    SequenceValue,
    Source,
    Value,
    as_tensor,
    content_type,
    fetched,
    text,
    type_of,
)
from relayc.frontend.onnx.transform import Concat
from relayc.frontend.sizes import MOST_SIZES, elements_of, shape_tensor, sizes
from relayc.frontend.steps import binary, cast, reshape, row, strided_slice
from relayc.symbolic import Dim, Size, bounds, proves

_KNOWN = 4096
"""Parts that a tensor is split into, each of which is known by itself, at most."""

_UNROLLED = 64
"""Elements of a sequence that SequenceMap computes one by one in the program's text, at most."""


def _sequence(value: Value, what: str) -> SequenceValue:
    if not isinstance(value, SequenceValue):
        raise OnnxError(f"input {what}: expected a sequence, found {type_of(value)}")
    return value


def _with_rank(element: ElementType, declared: TypeProto | None, more: int = 0) -> ElementType:
    """The type of elements; where their rank is not known, by what a model declares of a tensor that has `more` axes more."""
    if element.shape is not None or declared is None or not declared.tensor_type.HasField("shape"):
        return element
    rank = len(declared.tensor_type.shape.dim) - more
    return ElementType(element.dtype, (None,) * rank, Source.DECLARED)


def _declared() -> TypeProto | None:
    """The type that the model declares for the node's first output."""
    return next(iter(current().declared), None)


def _where() -> Tensor:
    return text(current().what)


def _made(function: str, element: ElementType, *args: Tensor) -> SequenceValue:
    """The sequence returned by a packed function."""
    return SequenceValue(SequenceType(element), number=packed(f"{SEQUENCE}{function}", args, NUMBER)[0])


# ---- positions ------------------------------------------------------------------------------------------------------------------------


def _position(value: Value) -> int | Tensor:
    """A position as a number if it is known, otherwise as int64[]."""
    at = scalar_of(as_tensor(value, "input position"), "position")
    return int(at.array) if at.is_known else cast(at, "int64")


def _counted(position: int, length: int, last: int) -> int:
    """A position from the front. Raises OnnxError for one outside of [-length, last]."""
    if not -length <= position <= last:
        within = f"a value in [{-length}, {last}]" if -length <= last else "none"
        raise OnnxError(f"input position: expected {within} in a sequence of {length} elements, found {position}")
    return position + length if position < 0 else position


def _number(position: int | Tensor) -> Tensor:
    return constant(np.int64(position)) if isinstance(position, int) else position


def _is_within(position: Tensor, length: int) -> bool:
    """Whether a position that only the program knows is known to be in [0, length): the number of an iteration, say."""
    found = elements_of(position)
    if found is None:
        return False
    at = found.reshape(-1)[0]
    trips = ModelBuilder.current().counters.get(str(at))
    if trips is not None:
        return proves(lambda: trips <= length)
    return isinstance(at, Dim) and proves(lambda: at >= 0) and proves(lambda: at < length)


# ---- construction and change ----------------------------------------------------------------------------------------------------------


@converter(since=11, foldable=False, objects=True)
def SequenceConstruct(*tensors: Value) -> SequenceValue:
    return SequenceValue.of([as_tensor(t, "inputs") for t in tensors])


@converter(since=11, foldable=False)
def SequenceEmpty(*, dtype: int = TensorProto.FLOAT) -> SequenceValue:
    return SequenceValue.of([], ElementType(dtype_name(dtype, "attribute dtype")))


@converter(since=11, foldable=False, objects=True)
def SequenceInsert(sequence: Value, tensor: Value, position: Value | None = None) -> SequenceValue:
    given, item = _sequence(sequence, "input_sequence"), as_tensor(tensor, "input tensor")
    at = None if position is None else _position(position)
    if given.items is not None and not isinstance(at, Tensor):
        items = list(given.items)
        items.insert(len(items) if at is None else _counted(at, len(items), len(items)), item)
        return SequenceValue.of(items, given.type.element)
    return _appended(given, item) if at is None else _inserted(given, item, _number(at))


def _appended(sequence: SequenceValue, item: Tensor) -> SequenceValue:
    return _made("append", sequence.type.element.joined(ElementType.of(item)), sequence.number, item)


def _inserted(sequence: SequenceValue, item: Tensor, at: Tensor) -> SequenceValue:
    return _made("insert", sequence.type.element.joined(ElementType.of(item)), sequence.number, item, at, _where())


@converter(since=11, foldable=False, objects=True)
def SequenceErase(sequence: Value, position: Value | None = None) -> SequenceValue:
    given = _sequence(sequence, "input_sequence")
    at = -1 if position is None else _position(position)
    if given.items is not None and isinstance(at, int):
        items = list(given.items)
        del items[_counted(at, len(items), len(items) - 1)]
        return SequenceValue.of(items, given.type.element)
    return _made("erase", given.type.element, given.number, _number(at), _where())


# ---- parts of a tensor ----------------------------------------------------------------------------------------------------------------


class _Slices(Sequence[Tensor]):
    """The slices of a tensor along an axis, of which each is built where it is used.

    Args:
      parts: their sizes; where None, as many as the axis is long, of size 1 and without the axis.
    """

    def __init__(self, data: Tensor, axis: int, parts: Sequence[Size] | None) -> None:
        self.data, self.axis, self.parts = data, axis, parts
        self._ends = list(accumulate(parts or (), initial=0))
        self._found: dict[int, Tensor] = {}
        self._home = ir.InsertionPoint.current.block

    def __len__(self) -> int:
        size = self.data.shape[self.axis]
        assert self.parts is not None or isinstance(size, int)
        return size if self.parts is None else len(self.parts)  # type: ignore[return-value] # a number, as just stated

    @overload
    def __getitem__(self, i: int) -> Tensor: ...
    @overload
    def __getitem__(self, i: slice) -> list[Tensor]: ...
    def __getitem__(self, i: int | slice) -> Tensor | list[Tensor]:
        if isinstance(i, slice):
            return [self[k] for k in range(len(self))[i]]
        i = range(len(self))[i]
        if i not in self._found:
            with inside(self._home):
                self._found[i] = self._slice(i)
        return self._found[i]

    def _slice(self, i: int) -> Tensor:
        if self.parts is None:
            return row(self.data, i, self.axis)
        found = strided_slice(self.data, [self._ends[i]], [self._ends[i + 1]], [1], [self.axis])
        return assume(found, [self.parts[i] if a == self.axis else d for a, d in enumerate(found.shape)])

    def take(self, at: Tensor) -> Tensor | None:
        """The slice at a position that is known to exist; None unless all slices have size 1."""
        if self.parts is not None and any(p != 1 for p in self.parts):
            return None
        rows = at if self.parts is None else emit("reshape", at, newshape=(1,))
        return emit("take", self.data, rows, axis=self.axis, mode="fast")


@converter(since=11, foldable=False)
def SplitToSequence(data: Tensor, split: Tensor | None = None, *, axis: int = 0, keepdims: bool = True) -> SequenceValue:
    """Slices of size 1, which lose the axis unless `keepdims`; slices of one size, of which the last may be smaller; slices of sizes."""
    along = axis_of(axis, data.rank)
    if split is not None and (split.rank > 1 or split.dtype not in ("int64", "int32")):
        raise OnnxError(f"input split: expected int64 or int32, a scalar or a list, found {split.type}")
    size = data.shape[along]
    if split is None and not keepdims:
        element = ElementType.given(data.dtype, [d for a, d in enumerate(data.shape) if a != along])
        items = _Slices(data, along, None) if isinstance(size, int) and size <= MOST_SIZES else None
        return _split(data, along, constant(np.zeros((0, 0), np.int64)), element, items)
    parts = _parts(size, split)
    if parts is None:
        given = constant(np.int64(1)) if split is None else cast(split, "int64")
        step = int(given.array) if given.is_known and given.rank == 0 else None
        return _split(data, along, given, _element(data, along, step if step == 1 else None), None)
    data = assume(data, [sum(parts, 0) if a == along else d for a, d in enumerate(data.shape)])
    same = parts[0] if parts and all(p == parts[0] for p in parts) else None
    return _split(data, along, shape_tensor(parts), _element(data, along, same), _Slices(data, along, parts))


def _parts(size: Size, split: Tensor | None) -> list[Size] | None:
    """The sizes of the slices, if they are known and at most MOST_SIZES; otherwise None: they are computed at run time.

    Raises OnnxError for invalid sizes.
    """
    step: int | None = 1
    if split is not None and split.rank == 1:
        if not split.type.is_static or split.type.num_elements > MOST_SIZES:
            return None
        parts = list(sizes(split, "split"))
        if not may_equal(sum(parts, 0), size) or any(bounds(p)[1] < 0 for p in parts):
            raise OnnxError(f"input split: expected sizes that add up to {size}, found {parts}")
        return parts
    if split is not None:
        step = ints(split, "split")[0] if split.is_known else None
    if step is not None and step < 1:
        raise OnnxError(f"input split: expected a size of 1 or more, found {step}")
    if step is None or not isinstance(size, int) or size > MOST_SIZES * step:
        return None
    return [min(step, size - start) for start in range(0, size, step)]


def _element(data: Tensor, axis: int, size: Size | None) -> ElementType:
    """The type of slices of a size, which may not be known."""
    return ElementType.given(data.dtype, [size if a == axis else d for a, d in enumerate(data.shape)])


def _split(data: Tensor, axis: int, parts: Tensor, element: ElementType, items: Sequence[Tensor] | None) -> SequenceValue:
    """Slices of a tensor, of sizes that the packed function takes; `items` are they, where their number is known."""
    where = _where()

    def pack() -> Tensor:
        return packed(f"{SEQUENCE}split", [data, parts, constant(np.int64(axis)), where], NUMBER)[0]

    return SequenceValue(SequenceType(element), items, pack() if items is None else None, pack)


# ---- what is in a sequence ------------------------------------------------------------------------------------------------------------


@converter(since=11, foldable=False, objects=True)
def SequenceLength(sequence: Value) -> Tensor:
    given = _sequence(sequence, "input_sequence")
    if given.items is not None:
        return constant(np.int64(len(given.items)))
    return packed(f"{SEQUENCE}length", [given.number], NUMBER)[0]


@converter(since=11, foldable=False, objects=True)
def SequenceAt(sequence: Value, position: Value) -> Tensor:
    return _at(_sequence(sequence, "input_sequence"), _position(position), _declared())


def _at(sequence: SequenceValue, at: int | Tensor, declared: TypeProto | None) -> Tensor:
    """The element at a position, int64[] where that is not known, of the type that the model declares."""
    items = sequence.items
    if items is not None and isinstance(at, int):
        return items[_counted(at, len(items), len(items) - 1)]
    if items is not None and isinstance(at, Tensor) and _is_within(at, len(items)):
        found = _taken(items, at)
        if found is not None:
            return found
    functions = (f"{SEQUENCE}shape", f"{SEQUENCE}at")
    element = _with_rank(sequence.type.element, declared)
    return fetched(element, functions, [sequence.number, _number(at), _where()], sequence.name or "element")


def _taken(items: Sequence[Tensor], at: Tensor) -> Tensor | None:
    """The element of a known sequence at a valid position, selected from one tensor of all elements; None if their types differ."""
    if isinstance(items, _Slices):
        return items.take(at)
    if any(t.type != items[0].type for t in items):
        return None
    return emit("take", emit("stack", *items, axis=0), at, axis=0, mode="fast")


@converter(since=11, foldable=False, objects=True)
def ConcatFromSequence(sequence: Value, *, axis: int, new_axis: bool = False) -> Tensor:
    given = _sequence(sequence, "input_sequence")
    if given.items is not None:
        if not given.items:
            raise OnnxError("input input_sequence: expected elements, found none")
        rank = given.items[0].rank
        along = axis_of(axis, rank + new_axis)
        if isinstance(given.items, _Slices) and (given.items.axis, given.items.parts is None) == (along, new_axis):
            return given.items.data
        return Concat(
            *([reshape(t, [*t.shape[:along], 1, *t.shape[along:]]) for t in given.items] if new_axis else given.items), axis=along
        )
    shape = list(_with_rank(given.type.element, _declared(), more=int(new_axis)).sizes)
    along = axis_of(axis, len(shape) + new_axis)
    shape[along : along + (not new_axis)] = [None]
    args = [given.number, constant(np.int64(along)), constant(np.int64(new_axis)), _where()]
    element = ElementType(given.type.element.dtype, tuple(shape))
    return fetched(element, (f"{SEQUENCE}concat_shape", f"{SEQUENCE}concat"), args, given.name or "joined")


# ---- the same for each element --------------------------------------------------------------------------------------------------------


@converter(since=17, foldable=False, objects=True)
def SequenceMap(sequence: Value, *others: Value, body: GraphProto) -> tuple[SequenceValue, ...]:
    """The body on the elements at each position: one by one in the program's text where they are known and few, else in a loop."""
    first, node = _sequence(sequence, "input_sequence"), current()
    inputs: list[Value] = [sequence, *others]
    known = {len(v.items) for v in inputs if isinstance(v, SequenceValue) and v.items is not None}
    if len(known) > 1:
        raise OnnxError(f"expected sequences of one length, found {', '.join(map(str, sorted(known)))}")
    if len(body.input) != len(inputs):
        raise OnnxError(f"expected a body of {len(inputs)} inputs, found {len(body.input)}")
    outputs = [ElementType(dtype_name(o.type.tensor_type.elem_type, f"output {o.name} of the body")) for o in body.output]
    count = len(first.items) if first.items is not None else None

    def results(at: int | Tensor) -> list[Tensor]:
        types = [value.type for value in body.input]
        given = [_at(v, at, t) if isinstance(v, SequenceValue) else v for v, t in zip(inputs, types, strict=True)]
        return [as_tensor(v, "output of the body") for v in node.inline(body, *given)]

    if count is not None and count <= _UNROLLED:
        rows = [results(i) for i in range(count)]
        return tuple(SequenceValue.of([found[k] for found in rows], element) for k, element in enumerate(outputs))

    def step(number: Tensor, values: list[Value]) -> list[Value]:
        return [_appended(_sequence(v, ""), found) for v, found in zip(values, results(number), strict=True)]

    empty: list[Value] = [SequenceValue.of([], element) for element in outputs]
    found = repeated(SequenceLength(first), count, empty, [o.name for o in body.output], step)
    return tuple(_sequence(v, "") for v in found)


# ---- optional values ------------------------------------------------------------------------------------------------------------------


@converter(since=15, foldable=False, objects=True)
def Optional(content: Value | None = None, *, type: TypeProto | None = None) -> OptionalValue:
    if content is not None:
        kind = type_of(content)
        if not isinstance(kind, (ElementType, SequenceType)):
            raise OnnxError(f"input: expected a tensor or a sequence, found {kind}")
        return OptionalValue(OptionalType(kind), content)  # type: ignore[arg-type] # a tensor or a sequence, as just checked
    if type is None:
        raise OnnxError("expected an input, or attribute type, found neither")
    return OptionalValue(OptionalType(content_type(type, "attribute type")))


@converter(since=15, foldable=False, objects=True)
def OptionalHasElement(given: Value | None = None) -> Tensor:
    if isinstance(given, OptionalValue) and not given.is_known:
        return binary("not_equal", given.number, ABSENT)
    is_there = given.content is not None if isinstance(given, OptionalValue) else given is not None
    return constant(np.bool_(is_there))


@converter(since=15, foldable=False, objects=True)
def OptionalGetElement(given: Value) -> Value:
    if not isinstance(given, OptionalValue):
        return given
    if given.content is not None:
        return given.content
    if given.is_known:
        raise OnnxError("input: expected an optional value that is there, found none")
    content = given.type.content
    if isinstance(content, SequenceType):
        return SequenceValue(content, number=packed(f"{OPTIONAL}present", [given.number, _where()], NUMBER)[0])
    element, functions = _with_rank(content, _declared()), (f"{OPTIONAL}shape", f"{OPTIONAL}get")
    return fetched(element, functions, [given.number, _where()], given.name or "content")
