"""Buffers of a script, and annotations of arguments."""

from typing import Any

from relayc.dialects.mlir import ir
from relayc.dialects.relay.errors import RelayError, check
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index
from relayc.pipelines.te.language.dtypes import check_dtype
from relayc.pipelines.tir.script.building import current
from relayc.pipelines.tir.script.values import ExprLike, IndexExpr, Scalar, as_index, size_of, stored
from relayc.symbolic import Size, parse


class BufferType:
    """`T.Buffer`: describes an argument.

    Args:
      shape: numbers, expressions over sizes, or texts of such expressions.
      name: of the buffer, if it differs from the argument's.
      param: whether it is a parameter, known at compile time.
    """

    def __init__(self, shape: Any, dtype: str = "float32", name: str | None = None, param: bool = False) -> None:
        self.shape = read_shape(shape, "T.Buffer")
        self.dtype = check_dtype(dtype, "T.Buffer")
        self.name, self.param = name, param


class Handle:
    """`T.handle`: an argument that `T.match_buffer` describes."""


class BufferRegion:
    """A region of a buffer in T.reads or T.writes."""

    def __init__(self, buffer: "Buffer") -> None:
        self.buffer = buffer

    def __repr__(self) -> str:
        return f"a region of {self.buffer.name}"


class Buffer:
    """A buffer of the function that is being built."""

    def __init__(self, value: ir.Value, shape: tuple[Size, ...], dtype: str, name: str) -> None:
        self.value, self.sizes, self.dtype, self.name = value, shape, dtype, name

    @property
    def shape(self) -> tuple[ExprLike, ...]:
        """Its sizes: numbers, and expressions over symbols."""
        return tuple(d if isinstance(d, int) else IndexExpr(Index(d)) for d in self.sizes)

    def __getitem__(self, indices: Any) -> "Scalar | BufferRegion":
        state = current(self.name)
        if state.says_regions:
            return BufferRegion(self)
        state.in_block(f"an element of {self.name}")
        at = state.indices(self._indices(indices), self.sizes, self.name)
        return Scalar(emit.create("memref.load", [self.value.type.element_type], [self.value, *at]), self.dtype)

    def store(self, indices: Any, value: ExprLike) -> None:
        """Stores an element."""
        state = current(self.name)
        made = stored(value, self.dtype, f"{self.name}[...]")
        at = state.indices(self._indices(indices), self.sizes, self.name)
        emit.create("memref.store", [], [made, self.value, *at])

    def _indices(self, indices: Any) -> list[Index]:
        given = list(indices) if isinstance(indices, (tuple, list)) else [indices]
        check(not any(isinstance(i, slice) for i in given), self.name, "an element", "a slice")
        check(len(given) == len(self.sizes), self.name, f"{len(self.sizes)} indices", len(given))
        return [as_index(i, f"{self.name}: index of dimension {d}") for d, i in enumerate(given)]

    def __repr__(self) -> str:
        return f"the buffer {self.name}"


def read_shape(shape: Any, what: str) -> tuple[Size, ...]:
    """The sizes of a shape: numbers, expressions over symbols, or texts of such expressions. Raises RelayError for other values."""
    entries = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    found = []
    for d, entry in enumerate(entries):
        where = f"{what}: dimension {d}"
        if isinstance(entry, str):
            try:
                entry = parse(entry)
            except ValueError as error:
                raise RelayError(f"{where}: {error}") from None
        found.append(size_of(entry, where))
    return tuple(found)
