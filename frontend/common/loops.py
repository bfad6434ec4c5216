"""Loops that carry tensors, and give rows of each iteration, as relay.while.

What a loop carries is the number of the iteration, the condition where the body decides it, the values of the model, and its scan outputs.
Where the number of iterations, and the sizes of a row, are known before the loop, as expressions, a scan output is a tensor of that many
rows, of which each iteration writes one; where they are not, the rows so far, which grow. That rows whose sizes only the body knows are
alike is checked when it runs.

Sizes of carried values that change have symbols of the loop. Which these are shows when the body is converted: it is converted again until
the types that it gives are instances of those that it is given.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.relay import If as Branch
from relayc.dialects.relay import TensorType, While, fields_of, make_tuple
from relayc.dialects.relay.scopes import scope_before
from relayc.dialects.relay.types import TupleType
from relayc.frontend.converter import ModelBuilder, Tensor, assume, constant, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.sizes import as_pending, size_tensor
from relayc.frontend.steps import as_numbers, cast, filled, reshape, subtract
from relayc.symbolic import Dim, Size, symbol, symbols_of

Body = Callable[[Tensor, Tensor | None, list[Tensor]], tuple[Tensor | None, list[Tensor], list[Tensor]]]
"""Of the number of the iteration, the condition and the carried values: the next condition and values, and rows of the scan outputs."""


ATTEMPTS = 32


class _OtherTypes(Exception):
    """A body gives other types than it was given."""


@dataclass
class CarriedLoop:
    """A loop under construction.

    Attributes:
      trips: number of iterations, where it is known before the loop.
      limit: the same, or the most, as a scalar of the program; None where there is none.
      condition: at first; None where the body does not decide it.
      carried: values at first.
      names: of these, for symbols of their sizes.
      body: builds the operators of an iteration.
      backwards: of each scan output, whether its rows are written from the last to the first; where trips is known.
    """

    trips: Size | None
    limit: Tensor | None
    condition: Tensor | None
    carried: list[Tensor]
    names: list[str]
    body: Body
    backwards: list[bool]
    declared: list[list[int | None]]
    """What the model says of the shape of each row, where it says any."""
    types: list[TensorType] = field(default_factory=list)
    rows: list[TensorType] | None = None
    """Types of the rows of the scan outputs, once they are known."""
    classes: list[tuple[list[tuple[int, int]], Dim]] = field(default_factory=list)
    """Dimensions (value, axis) that change alike, and their symbol."""
    grown: Dim | None = None
    """How many rows there are so far."""
    late: dict[tuple[int, int], Dim] = field(default_factory=dict)
    """Sizes (scan output, axis of its rows) that only the body knows, and their symbols after the loop."""

    def run(self) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        """The values after the loop, and the scan outputs. Raises ModelError."""
        self.types = [t.type for t in self.carried]
        self.rows = None if self.backwards else []
        if self.trips == 0 and not self.backwards:
            return self.carried, []
        for _ in range(ATTEMPTS):
            try:
                with ModelBuilder.current().trial():
                    return self._build()
            except _OtherTypes:
                if self.trips == 0:
                    return self.carried, [self._no_rows(r) for r in self.rows or []]
        raise ModelError(f"expected a body whose sizes change in the same way in each iteration, found {', '.join(map(str, self.types))}")

    def _build(self) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        number = constant(np.int64(0))
        state = [number, *([self.condition] if self.condition is not None else []), *self.carried, *map(self._no_rows, self.rows or [])]
        head = 1 + (self.condition is not None)
        carried = TupleType((*(t.type for t in state[:head]), *self.types, *map(self._rows_type, self.rows or [])))

        def goes_on(value: ir.Value) -> ir.Value:
            number, *rest = taken_apart(value)
            found = rest[0] if self.condition is not None else None
            if self.limit is not None:
                within = emit("less", number, self.limit)
                found = within if found is None else emit("logical_and", found, within)
            return (constant(np.bool_(True)) if found is None else found).value

        def step(value: ir.Value) -> ir.Value:
            number, *rest = taken_apart(value)
            condition = rest.pop(0) if self.condition is not None else None
            values, written = rest[: len(self.carried)], rest[len(self.carried) :]
            number.name = "step"
            number.elements = as_pending(number, not_negative=True)
            if self.trips is not None:
                ModelBuilder.current().counters[str(number.elements[()])] = self.trips
            following, found, rows = self.body(number, condition, values)
            rows = [self._as_declared(r, d) for r, d in zip(rows, self.declared, strict=True)]
            self._learn(found, rows)
            written = [self._written(w, r, number, back) for w, r, back in zip(written, rows, self.backwards, strict=True)]
            after = [emit("add", number_as_data(number), constant(np.int64(1)))]
            if following is not None:
                after.append(reshape(following, ()))
            return together([*after, *found, *written])

        final = taken_apart(While.create(together(state), goes_on, step, carried))[head:]
        rows = final[len(self.carried) :]
        if self.trips is not None:
            rows = tuple(assume(r, (self.trips, *r.shape[1:])) for r in rows)
        return final[: len(self.carried)], rows

    # ---- what changes

    def _learn(self, found: Sequence[Tensor], rows: Sequence[Tensor]) -> None:
        """Raises _OtherTypes where the body is to be converted again, for types that are known now; ModelError where none would do."""
        for before, after, name in zip(self.types, found, self.names, strict=True):
            if before.rank != after.rank or before.dtype != after.dtype:
                raise ModelError(f"value {name!r} that the loop carries: expected {before}, found {after.type}")
        changed = False
        # Dimensions that were taken to change alike, and do not, are apart from now on.
        parted: list[tuple[list[tuple[int, int]], Dim]] = []
        for members, own in self.classes:
            by_size: dict[Size, list[tuple[int, int]]] = {}
            for i, axis in members:
                by_size.setdefault(found[i].shape[axis], []).append((i, axis))
            parted += [(m, own if k == 0 else self._fresh(m)) for k, m in enumerate(by_size.values())]
            changed |= len(by_size) > 1
        # Those that change, and were not taken to.
        starting: dict[tuple[Size, Size], list[tuple[int, int]]] = {}
        known = {m for members, _ in parted for m in members}
        for i, (before, after) in enumerate(zip(self.types, found, strict=True)):
            for axis, (a, b) in enumerate(zip(before.sizes, after.shape, strict=True)):
                if (i, axis) not in known and a != b:
                    starting.setdefault((self.carried[i].shape[axis], b), []).append((i, axis))
        parted += [(members, self._fresh(members)) for members in starting.values()]
        self.classes = parted
        types = [list(t.shape) for t in self.types]
        for members, own in parted:
            for i, axis in members:
                types[i][axis] = own
        expected, self.rows = self.rows, [self._row_type(i, r) for i, r in enumerate(rows)]
        if changed or starting or self.rows != expected:
            self.types = [t.with_shape(shape) for t, shape in zip(self.types, types, strict=True)]
            raise _OtherTypes

    def _fresh(self, members: Sequence[tuple[int, int]]) -> Dim:
        i, axis = members[0]
        first = self.carried[i].shape[axis]
        return symbol(ModelBuilder.current().fresh(str(first) if isinstance(first, Dim) else f"{self.names[i]}_{axis}"))

    # ---- scan outputs

    @staticmethod
    def _as_declared(row: Tensor, declared: list[int | None]) -> Tensor:
        """A row of a size that only the iteration knows, as the model declares it: that is checked when the program runs."""
        scope = _before_loop(row)
        if len(declared) != row.rank:
            return row
        return assume(row, [d if w is None or symbols_of(d).issubset(scope) else w for d, w in zip(row.shape, declared, strict=True)])

    def _row_type(self, output: int, row: Tensor) -> TensorType:
        """The type of a row as it is known outside the body."""
        scope = _before_loop(row)
        shape = list(row.shape)
        for axis, d in enumerate(row.shape):
            if not symbols_of(d).issubset(scope):
                if (output, axis) not in self.late:
                    self.late[output, axis] = symbol(ModelBuilder.current().fresh(f"row_{axis}"))
                shape[axis] = self.late[output, axis]
        return row.type.with_shape(shape)

    def _is_late(self, row: TensorType) -> bool:
        return any(size in row.shape for size in self.late.values())

    def _rows_type(self, row: TensorType) -> TensorType:
        if self.trips is not None and not self._is_late(row):
            return row.with_shape((self.trips, *row.shape))
        if self.grown is None:
            self.grown = symbol(ModelBuilder.current().fresh("steps"))
        return row.with_shape((self.grown, *row.shape))

    def _no_rows(self, row: TensorType) -> Tensor:
        if self.trips is None or self._is_late(row):
            return filled((0, *(0 if d in self.late.values() else d for d in row.sizes)), 0, row.dtype)
        # Not a constant: the program would come with as many zeros.
        return emit("full", constant(0, row.dtype), shape=(self.trips, *row.sizes))

    def _written(self, rows: Tensor, row: Tensor, number: Tensor, backwards: bool) -> Tensor:
        new = reshape(row, (1, *row.shape))
        if rows.shape[0] == self.grown:
            rows = _alike(rows, row, number)
            return emit("concatenate", *((new, rows) if backwards else (rows, new)), axis=0)
        assert self.trips is not None
        at = number_as_data(number)
        if backwards:
            at = subtract(size_tensor(self.trips - 1), at)
        places = emit("reshape", at, newshape=(1, 1))
        return cast(emit("scatter_nd", as_numbers(rows), places, as_numbers(new), mode="update", in_bounds=True), rows.dtype)


def _alike(rows: Tensor, row: Tensor, number: Tensor) -> Tensor:
    """The rows of the iterations before as ones of the sizes of a row: that they are is checked when the program runs, if there are any."""
    if rows.shape[1:] == row.shape:
        return rows
    is_first = emit("equal", number_as_data(number), constant(np.int64(0)))
    found = Branch.create(is_first.value, lambda: filled((0, *row.shape), 0, row.dtype).value, lambda: rows.value)
    return assume(Tensor(TensorType.of(found), value=found), (rows.shape[0], *row.shape))


def _before_loop(row: Tensor) -> frozenset[str]:
    """Names of the symbols that have a value before the loop whose body is being built."""
    return scope_before(ir.InsertionPoint.current.block.owner) if row.type.symbols else frozenset()


def taken_apart(value: ir.Value) -> tuple[Tensor, ...]:
    """The fields of a tuple."""
    return tuple(Tensor(TensorType.of(v), value=v) for v in fields_of(value))


def together(tensors: Sequence[Tensor]) -> ir.Value:
    """A tuple of tensors."""
    return make_tuple([t.value for t in tensors])


def counted(
    trips: Size,
    states: list[Tensor],
    names: list[str],
    step: Callable[[Tensor, list[Tensor]], tuple[list[Tensor], list[Tensor]]],
    backwards: Sequence[bool],
    declared: Sequence[list[int | None]] | None = None,
) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
    """The states after so many iterations, and the scan outputs [trips, ...]. Raises ModelError.

    Args:
      names: of the states, for symbols of their sizes.
      step: of the number of an iteration, int64, and the states before it, those after it, and a row of each scan output.
      backwards: of each scan output, whether its rows are written from the last to the first.
      declared: what is known of the shapes of rows beforehand (see `declared_sizes`).
    """

    def body(number: Tensor, _: Tensor | None, values: list[Tensor]) -> tuple[Tensor | None, list[Tensor], list[Tensor]]:
        return None, *step(number_as_data(number), values)

    rows = [[] for _ in backwards] if declared is None else list(declared)
    return CarriedLoop(trips, size_tensor(trips), None, states, names, body, list(backwards), rows).run()


def number_as_data(number: Tensor) -> Tensor:
    """The number of an iteration as data, of which nothing is known."""
    return Tensor(number.type, value=number.value)
