"""Shapes that a model computes: what is known of the elements of its integer tensors, as expressions over symbols.

Exporters write the arithmetic of shapes as nodes (Shape, Gather, Mul, Concat). Its results are *tensors of sizes*: the elements are known,
though not as numbers. A tensor of sizes enters the program only where an operator needs it as data; what takes sizes takes the expressions.
Where a shape comes from data, its elements become symbols that are defined there (`sizes`), and what a model takes for granted of shapes
is checked when the program runs (`converter.assume`).

Elements of a tensor of sizes are Sizes for integers and Ratios for floats. One that only the program knows is a symbol too, which is
*pending* until something takes it for a size: then it is defined (relay.define_sizes), where that is.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, prod
from typing import Any

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.relay.names import build
from relayc.dialects.relay.types import DTYPES, TensorType
from relayc.frontend.converter import ModelBuilder, Tensor, constant, emit, integer
from relayc.frontend.errors import ModelError
from relayc.symbolic import FAR, Dim, Size, exact, proves, symbol, symbols_of

LONGEST = 64
"""Elements of a tensor of sizes, at most: shapes are short."""

MOST_SIZES = 4096
"""Sizes that are known one by one, at most: those that only the program knows get a name each."""


class Inexact(Exception):
    """Arithmetic on sizes that gives no expression."""


@dataclass(frozen=True)
class Ratio:
    """A float that is a quotient of sizes; den > 0."""

    num: Size
    den: Size = 1

    @staticmethod
    def of(num: Size, den: Size) -> "Ratio":
        """In lowest terms. Raises Inexact for a denominator that may be negative."""
        if den == 0 or not proves(lambda: den >= 0):
            if not proves(lambda: den < 0):
                raise Inexact
            num, den = -num, -den
        whole = exact(num, den)
        if whole is not None:
            return Ratio(whole)
        inverse = exact(den, num) if num != 0 else None
        if inverse is not None and proves(lambda: inverse > 0):
            return Ratio(1, inverse)
        if isinstance(den, int):
            # A common factor of all coefficients.
            factor = gcd(den, *(num.terms.values() if isinstance(num, Dim) else [num]))
            return Ratio(num // factor, den // factor)
        return Ratio(num, den)

    @staticmethod
    def number(value: float) -> "Ratio":
        """A float. Raises Inexact for one whose products with sizes round: float32 has 24 bits, of which sizes have 16."""
        try:
            found = Fraction(value)
        except (OverflowError, ValueError):
            raise Inexact from None
        odd = abs(found.numerator)
        while odd and odd % 2 == 0:
            odd //= 2
        if odd.bit_length() > 8 or found.denominator > 1 << 32 or abs(found.numerator) > 1 << 32:
            raise Inexact
        return Ratio(found.numerator, found.denominator)

    @property
    def is_number(self) -> bool:
        return isinstance(self.num, int) and isinstance(self.den, int)

    def __float__(self) -> float:
        return int(self.num) / int(self.den)

    def __add__(self, other: "Ratio") -> "Ratio":
        return Ratio.of(self.num * other.den + other.num * self.den, self.den * other.den)

    def __sub__(self, other: "Ratio") -> "Ratio":
        return self + Ratio(-other.num, other.den)

    def __mul__(self, other: "Ratio") -> "Ratio":
        return Ratio.of(self.num * other.num, self.den * other.den)

    def __truediv__(self, other: "Ratio") -> "Ratio":
        if other.num == 0:
            raise Inexact
        return Ratio.of(self.num * other.den, self.den * other.num)

    def __neg__(self) -> "Ratio":
        return Ratio(-self.num, self.den)

    def floor(self) -> "Ratio":
        return Ratio(self.num // self.den)

    def ceil(self) -> "Ratio":
        return Ratio(-(-self.num // self.den))


def objects(shape: Sequence[int], elements: Sequence[Any]) -> np.ndarray:
    """An array of Python objects."""
    found = np.empty(len(elements), object)
    found[:] = elements
    return found.reshape(tuple(shape))


def is_sizes(tensor: Tensor) -> bool:
    """Whether the elements are known as expressions, not all as numbers."""
    return tensor.elements is not None


def is_at_import(tensor: Tensor) -> bool:
    """Whether every element is known at import, as a number or as an expression whose symbols have values here."""
    return tensor.is_known or (tensor.elements is not None and not pending_in(tensor.elements))


def pending_in(elements: np.ndarray) -> list[str]:
    """The symbols of elements that only the program knows, and that are not defined here."""
    builder = ModelBuilder.current()
    if not builder.pending:
        return []
    every = [part for e in elements.reshape(-1) for part in ((e.num, e.den) if isinstance(e, Ratio) else (e,))]
    names = dict.fromkeys(name for part in every if isinstance(part, Dim) for name in sorted(symbols_of(part)))
    return [name for name in names if name in builder.pending and not _is_defined(name)]


def _is_defined(name: str) -> bool:
    builder = ModelBuilder.current()
    return any((block, name) in builder.defined for block in _enclosing())


def as_pending(tensor: Tensor, not_negative: bool = False, signed: bool = False) -> np.ndarray:
    """The elements of a short tensor of integers that only the program knows, as pending symbols.

    Args:
      not_negative: whether they are known to be 0 or more.
      signed: whether they may be negative where they are defined. Symbols of sizes may not.
    """
    builder = ModelBuilder.current()
    key = (tensor.key, signed)
    names = builder.pending_names.get(key)
    if names is None:
        count = prod(tensor.type.static_shape)
        base = tensor.name or "size"
        names = [builder.fresh(base if count == 1 else f"{base}_{i}") for i in range(count)]
        builder.pending_names[key] = names
        builder.pending.update({name: (tensor, i, not_negative) for i, name in enumerate(names)})
        for name in names if signed else ():
            builder.bound(name, -FAR)
    return objects(tensor.type.static_shape, [symbol(name) for name in names])


def elements_of(tensor: Tensor) -> np.ndarray | None:
    """The elements of a short tensor, as those of a tensor of sizes; None where they are not known."""
    if tensor.elements is not None:
        return tensor.elements
    type_ = tensor.type
    if not tensor.is_known or not tensor.foldable or not type_.is_computed or not type_.is_static or type_.num_elements > LONGEST:
        return None
    array = tensor.array
    try:
        made = [Ratio.number(float(v)) if tensor.is_float else v.item() for v in array.reshape(-1)]
    except Inexact:
        return None
    return objects(array.shape, made)


def known_elements(tensor: Tensor) -> np.ndarray | None:
    """The elements of a short tensor that are known here, as expressions whose symbols have values; None for any other tensor.

    Pending symbols that are not negative get their values for that.
    """
    found = elements_of(tensor)
    pending = [] if found is None else pending_in(found)
    if not all(ModelBuilder.current().pending[name][2] for name in pending):
        return None
    for name in pending:
        _define(name)
    return found


def element_or_data(tensor: Tensor) -> np.ndarray | None:
    """As `elements_of`, where those that only the program knows are pending symbols."""
    found = elements_of(tensor)
    is_short = tensor.type.is_static and tensor.rank <= 1 and prod(tensor.type.static_shape) <= 16
    if found is None and not tensor.is_known and tensor.dtype in ("int64", "int32") and is_short:
        found = as_pending(tensor)
    return found


def tensor_of(elements: np.ndarray, dtype: str) -> Tensor:
    """A tensor of known elements: a constant if they are numbers."""
    flat = list(elements.reshape(-1))
    if all(e.is_number if isinstance(e, Ratio) else isinstance(e, (bool, int, np.bool_)) for e in flat):
        numbers = [float(e) if isinstance(e, Ratio) else e for e in flat]
        return constant(np.array(numbers, DTYPES[dtype]).reshape(elements.shape), dtype)
    return Tensor(TensorType(elements.shape, dtype), materialise=_computed, elements=elements)


def size_tensor(size: Size) -> Tensor:
    """A size as an int64 scalar."""
    return tensor_of(objects([], [size]), "int64")


def shape_tensor(sizes: Sequence[Size]) -> Tensor:
    """Sizes as int64[their number]."""
    return tensor_of(objects([len(sizes)], sizes), "int64")


def _computed(tensor: Tensor) -> ir.Value:
    """The operators that compute a tensor of sizes in the program."""
    assert tensor.elements is not None
    flat = list(tensor.elements.reshape(-1))
    if not tensor.is_float:
        found = _emit_sizes(flat, tensor.dtype)
    else:
        found = emit("cast", _emit_sizes([e.num for e in flat], "int64"), dtype=tensor.dtype)
        if any(e.den != 1 for e in flat):
            found = emit("divide", found, emit("cast", _emit_sizes([e.den for e in flat], "int64"), dtype=tensor.dtype))
    return found.value if tensor.rank == 1 else emit("reshape", found, newshape=tensor.shape, allowzero=0 in tensor.shape).value


def _emit_sizes(values: Sequence[Size], dtype: str) -> Tensor:
    return emit("sizes", values=tuple(values), dtype=dtype)


def is_iteration(index: Size, size: Size) -> bool:
    """Whether an index is the number of a loop's iteration, and a position in an axis of that size in every iteration."""
    trips = ModelBuilder.current().counters.get(str(index))
    return trips is not None and proves(lambda: trips <= size)


def positions(count: Size, dtype: str = "int64") -> Tensor:
    """0, 1, 2, ..., as many as there are positions in an axis."""
    if isinstance(count, int):
        return constant(np.arange(count), dtype)
    return emit("arange", start=0, stop=count, step=1, dtype=dtype)


# ---- shapes that only the program knows ---------------------------------------------------------------------------------------------


def sizes(tensor: Tensor, what: str, resolved: Callable[[], Tensor] | None = None, signed: bool = False) -> tuple[Size, ...]:
    """The elements of a one-dimensional (or scalar) integer input that says sizes.

    Symbols in them that only the program knows are defined here, and may not be negative then unless `signed`.

    Args:
      resolved: gives a vector with what the elements stand for where they may be no sizes yet (0 and -1 of Reshape).
      signed: whether the elements are numbers that may be negative (amounts of padding).

    Raises:
      ModelError: a tensor of another form.
    """
    if tensor.is_float or tensor.dtype == "bool" or tensor.rank > 1:
        raise ModelError(f"input {what}: expected a list of integers, found {tensor.dtype}{list(tensor.shape)}")
    if tensor.is_known:
        return tuple(int(v) for v in tensor.array.reshape(-1))
    found = tensor.elements
    if found is None:
        if not tensor.type.is_static:
            raise ModelError(f"input {what}: expected as many elements as is known at import, found {tensor.type}")
        if tensor.type.num_elements > MOST_SIZES:
            raise ModelError(f"input {what}: expected at most {MOST_SIZES} elements, found {tensor.type}")
        name = tensor.name or what
        if resolved is not None:
            tensor, resolved = resolved(), None
        tensor.name = tensor.name or name
        found = as_pending(tensor, signed=signed)
    elif signed:
        resolved = lambda: tensor  # noqa: E731 # its elements are symbols of sizes
    pending = ModelBuilder.current().pending
    flat = list(found.reshape(-1))
    if resolved is not None and any(not pending[name][2] for name in pending_in(found)):
        instead = resolved()
        instead.name = instead.name or tensor.name or what
        others = as_pending(instead, signed=signed)
        flat = [other if pending_in(objects([1], [e])) else e for e, other in zip(flat, others.reshape(-1), strict=True)]
    for name in pending_in(objects([len(flat)], flat)):
        _define(name)
    return tuple(flat)


def new_symbols(tensor: Tensor, stem: str) -> tuple[Size, ...]:
    """The elements of int64[n], of which nothing is known, as symbols that are defined here. Their names begin with `stem`."""
    names = [ModelBuilder.current().fresh(f"{stem}_{i}") for i in range(prod(tensor.type.static_shape))]
    build("define_sizes", tensor.value, names=names)
    return tuple(map(symbol, names))


def size(tensor: Tensor, what: str) -> Size:
    """The single element of an integer input that says a size. Raises ModelError as `sizes` does."""
    if tensor.type.num_elements != 1:
        raise ModelError(f"input {what}: expected one element, found {list(tensor.shape)}")
    if tensor.is_known and tensor.is_float:
        return integer(tensor, what)
    if tensor.rank > 1 and not is_at_import(tensor):
        tensor = emit("reshape", tensor, newshape=(1,))
    if tensor.elements is not None and not is_at_import(tensor):
        return sizes(tensor, what)[0]
    return sizes(tensor, what)[0] if tensor.rank <= 1 else elements_of(tensor).reshape(-1)[0]  # type: ignore[union-attr] # known


def _define(name: str) -> None:
    """Gives a pending symbol its value, in the ambient block."""
    builder = ModelBuilder.current()
    tensor, position, _ = builder.pending[name]
    value = tensor
    if tensor.rank == 1 and tensor.type.num_elements != 1:
        value = emit("strided_slice", tensor, begin=(position,), end=(position + 1,), strides=(1,), axes=(0,))
    build("define_sizes", value.value, names=(name,))
    builder.defined.add((next(_enclosing()), name))


def _enclosing() -> Iterator[ir.Block]:
    """The ambient block, and those that it is in."""
    block = ir.InsertionPoint.current.block
    while True:
        yield block
        owner = block.owner
        if owner.operation.name == "func.func":
            return
        block = owner.operation.block


_SIGNS = {"eq": "==", "ge": ">=", "le": "<=", "gt": ">", "lt": "<", "ne": "!="}


def expect(left: Size, kind: str, right: Size) -> None:
    """States that two sizes compare as `kind` (a key of _SIGNS) specifies. The import learns from it, and the program checks it."""
    message = f"the model expects {left} {_SIGNS[kind]} {right}" + ", found %lld" * (kind != "ne")
    if kind == "gt":
        kind, right = "ge", right + 1
    elif kind == "lt":
        kind, right = "le", right - 1
    elif kind == "ne":
        kind, left, right = "ge", (left - right) * (left - right), 1
    if kind != "eq":
        more = left - right if kind == "ge" else right - left
        if isinstance(more, Dim):
            ModelBuilder.current().learn([more])
    if not proves(lambda: left == right if kind == "eq" else left >= right if kind == "ge" else left <= right):
        build("check_sizes", found=left, expected=right, predicate=kind, message=message)
