"""Relay's tensor type as a plain Python value, and its mapping to MLIR's tensor types.

Element types are named as in numpy, ml_dtypes and Relay ("float32", "int64", "uint8", "bool", "bfloat16", "float8_e4m3fn", "int4").
Signedness is part of the type in the `relay` stage (`ui8` against `i8`); the `te` stage and below are signless, and the operation says how
to read the bits.

Narrow types are floats of 8 bits and less and integers of less than 8. Nothing is computed in them: operators move their elements and
convert them. An element takes a byte, of which the bits above its own are zeros, as in the arrays of ml_dtypes.

An element of type "string" is the number of a string: its place in a table that holds no string twice (see relayc.runtime.host), of which
the module has the first ones, the program's own (IRModule.strings). Operators move such elements and tell whether two are equal; the rest
is done by packed functions. In MLIR they are `index` in the relay stage and i64 below. Arrays of them have a dtype of their own, STRING, in
which numpy does no arithmetic either.

A dimension is a number, an expression over symbols (see relayc.symbolic) or not known. In MLIR's types the last two are `?`, and the
encoding says the expressions, one text for each `?` in order: `tensor<?x768xf32, ["batch*seq"]>`. Where nothing is known of one the text is
`?`; a type without an encoding says nothing of any.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.relay.errors import RelayError
from relayc.symbolic import Dim, Ranges, Size, bounds, parse, product, symbols_of

_FLOATS = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"}
_INTS = {
    "bool": "i1",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "ui8",
    "uint16": "ui16",
    "uint32": "ui32",
    "uint64": "ui64",
}
_NARROW = {
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e4m3fnuz": "f8E4M3FNUZ",
    "float8_e5m2": "f8E5M2",
    "float8_e5m2fnuz": "f8E5M2FNUZ",
    "float8_e8m0fnu": "f8E8M0FNU",
    "float6_e2m3fn": "f6E2M3FN",
    "float6_e3m2fn": "f6E3M2FN",
    "float4_e2m1fn": "f4E2M1FN",
    "int4": "i4",
    "int2": "i2",
    "uint4": "ui4",
    "uint2": "ui2",
}
MLIR_NAMES = _FLOATS | _INTS | _NARROW | {"string": "index"}
STRING = np.dtype([("string", np.int64)])
"""The dtype of arrays of numbers of strings."""
DTYPES = {name: STRING if name == "string" else np.dtype(getattr(ml_dtypes, name, name)) for name in MLIR_NAMES}
BYTES = ("int8", "uint8")
"""Element types of quantised tensors."""
MAX_BYTES = 1 << 47
"""What a tensor may take: the memory that a process can address (47 bits on x86-64)."""
_FROM_MLIR = {mlir: name for name, mlir in MLIR_NAMES.items()}


@dataclass(frozen=True, slots=True)
class TensorType:
    """Shape (None for an unknown dimension, Relay's Any) and element type name of a tensor."""

    shape: tuple[Size | None, ...]
    dtype: str

    def __post_init__(self) -> None:
        if self.dtype not in MLIR_NAMES:
            raise ValueError(f"unknown dtype {self.dtype!r}; expected one of {', '.join(MLIR_NAMES)}")

    @property
    def rank(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        """Whether all sizes are numbers."""
        return all(isinstance(d, int) for d in self.shape)

    @property
    def is_known(self) -> bool:
        """Whether every dimension is a number or an expression."""
        return None not in self.shape

    @property
    def symbols(self) -> frozenset[str]:
        """Names of the symbols in its shape."""
        return frozenset().union(*(symbols_of(d) for d in self.shape if isinstance(d, Dim)))

    @property
    def is_float(self) -> bool:
        """Whether its elements are floats that are computed in."""
        return self.dtype in _FLOATS

    @property
    def is_narrow(self) -> bool:
        """Whether its elements are moved and converted only."""
        return is_narrow(self.dtype)

    @property
    def is_computed(self) -> bool:
        """Whether operators compute with its elements: they are neither narrow nor strings."""
        return not self.is_narrow and self.dtype != "string"

    @property
    def is_unsigned(self) -> bool:
        """Whether its elements are unsigned integers or bool."""
        return self.dtype == "bool" or self.dtype.startswith("uint")

    @property
    def sizes(self) -> tuple[Size, ...]:
        """The shape, if every dimension is known; raises ValueError otherwise."""
        found = tuple(d for d in self.shape if d is not None)
        if len(found) < len(self.shape):
            raise ValueError(f"{self} has an unknown dimension")
        return found

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape, if every dimension is a number; raises ValueError otherwise."""
        found = tuple(d for d in self.shape if isinstance(d, int))
        if len(found) < len(self.shape):
            raise ValueError(f"{self} has a dimension that is no number")
        return found

    @property
    def num_elements(self) -> Size:
        """Number of elements; raises ValueError if a dimension is not known."""
        return product(self.sizes)

    @property
    def num_bytes(self) -> Size:
        """Bytes of its elements in memory, an expression where sizes are symbolic."""
        return self.num_elements * DTYPES[self.dtype].itemsize

    def with_shape(self, shape: Iterable[Size | None]) -> "TensorType":
        """The type with another shape."""
        return TensorType(tuple(shape), self.dtype)

    def with_dtype(self, dtype: str) -> "TensorType":
        """The type with another dtype."""
        return TensorType(self.shape, dtype)

    def accepts(self, other: "RelayType") -> bool:
        """Whether `other` could be this type: equal but for dimensions that either side does not know."""
        return (
            isinstance(other, TensorType)
            and self.dtype == other.dtype
            and self.rank == other.rank
            and all(a is None or b is None or a == b for a, b in zip(self.shape, other.shape, strict=True))
        )

    def to_mlir(self) -> ir.RankedTensorType:
        """The MLIR type in the `relay` stage (signed and unsigned told apart).

        Raises:
          RelayError: a negative dimension, or more than MAX_BYTES.
        """
        self.check_size()
        return ranked_type(self.shape, element_type(self.dtype))

    def check_size(self) -> None:
        """Raises RelayError for a type that no memory can hold: a negative dimension, or more than MAX_BYTES.

        Dimensions of 0 count as 1, so that strides can be computed with too. Expressions are checked where they have values, but for
        those that have none of 0 or more.
        """
        num_bytes = DTYPES[self.dtype].itemsize
        for d in self.shape:
            if d is not None:
                if bounds(d)[1] < 0:
                    raise RelayError(f"shape: expected dimensions of 0 or more, found {list(self.shape)}")
                num_bytes *= d or 1 if isinstance(d, int) else 1
        if num_bytes > MAX_BYTES:
            raise RelayError(f"shape: expected at most {MAX_BYTES} bytes, found {num_bytes} for {self}")

    @staticmethod
    def from_mlir(type_: ir.Type) -> "TensorType":
        """Raises TypeError if `type_` is not a ranked tensor of a known element type, RelayError if it is too large for memory."""
        ranges = Ranges.current()
        if not ranges.is_of_program:
            return _parse(type_)
        # A program has many values and few types. What an expression is may depend on what is known of its symbols.
        found = ranges.memo.get(type_)
        if found is None:
            found = ranges.memo[type_] = _parse(type_)
        return found  # type: ignore[return-value] # what was put there

    @staticmethod
    def of(value: ir.Value) -> "TensorType":
        """The type of an MLIR value. Raises as `from_mlir` does."""
        return TensorType.from_mlir(value.type)

    @staticmethod
    def of_array(array: np.ndarray) -> "TensorType":
        """The type of an array. Raises ValueError for a dtype that relayc does not have."""
        return TensorType(tuple(array.shape), dtype_of(array))

    def __str__(self) -> str:
        dims = "".join(f"{d if isinstance(d, int) else '?'}x" for d in self.shape)
        return f"tensor<{dims}{MLIR_NAMES[self.dtype]}{_encoding_text(self.shape)}>"


def _parse(type_: ir.Type) -> TensorType:
    if not isinstance(type_, ir.RankedTensorType):
        raise TypeError(f"expected a ranked tensor, found {type_}")
    name = _FROM_MLIR.get(str(type_.element_type))
    if name is None:
        raise TypeError(f"element type of {type_} is not one of {', '.join(_FROM_MLIR)}")
    found = TensorType(shape_of(type_), name)
    found.check_size()
    return found


# ---- symbolic dimensions in MLIR's types ---------------------------------------------------------------------------------------------


def _encoding(shape: Sequence[Size | None]) -> list[str]:
    """The contents of the encoding of a shape; empty if it has none."""
    texts = ["?" if d is None else str(d) for d in shape if not isinstance(d, int)]
    return texts if any(text != "?" for text in texts) else []


def _encoding_text(shape: Sequence[Size | None]) -> str:
    texts = ", ".join(f'"{text}"' for text in _encoding(shape))
    return f", [{texts}]" if texts else ""


def ranked_type(shape: Sequence[Size | None], element: ir.Type) -> ir.RankedTensorType:
    """The MLIR type of a tensor of a shape."""
    if all(isinstance(d, int) for d in shape):
        return ir.RankedTensorType.get(list(shape), element)
    ranges, key = Ranges.current(), ("tensor", tuple(shape), element)
    if not ranges.is_of_program:
        return _symbolic_type(shape, element)
    if key not in ranges.memo:
        ranges.memo[key] = _symbolic_type(shape, element)
    return ranges.memo[key]


def _symbolic_type(shape: Sequence[Size | None], element: ir.Type) -> ir.RankedTensorType:
    dynamic = ir.ShapedType.get_dynamic_size()
    texts = _encoding(shape)
    encoding = ir.ArrayAttr.get([ir.StringAttr.get(text) for text in texts]) if texts else None
    return ir.RankedTensorType.get([d if isinstance(d, int) else dynamic for d in shape], element, encoding)


def shape_of(type_: ir.RankedTensorType) -> tuple[Size | None, ...]:
    """The shape that an MLIR type says. Raises TypeError if its encoding is not one text for each `?`, or a text is no size."""
    if type_.has_static_shape:
        return tuple(type_.shape)
    ranges, key = Ranges.current(), ("shape", type_)
    if not ranges.is_of_program:
        return _symbolic_shape(type_)
    if key not in ranges.memo:
        ranges.memo[key] = _symbolic_shape(type_)
    return ranges.memo[key]  # type: ignore[return-value] # what was put there


def _symbolic_shape(type_: ir.RankedTensorType) -> tuple[Size | None, ...]:
    shape = tuple(type_.shape)
    dynamic = ir.ShapedType.get_dynamic_size()
    unknown = sum(d == dynamic for d in shape)
    if type_.encoding is None:
        texts = ["?"] * unknown
    else:
        found = list(type_.encoding) if isinstance(type_.encoding, ir.ArrayAttr) else []
        if len(found) != unknown or not all(isinstance(a, ir.StringAttr) for a in found):
            raise TypeError(f"{type_}: expected an encoding of {unknown} texts, one for each ?, found {type_.encoding}")
        texts = [a.value for a in found]
    try:
        sizes = iter([None if text == "?" else parse(text) for text in texts])
    except ValueError as error:
        raise TypeError(f"{type_}: {error}") from None
    return tuple(next(sizes) if d == dynamic else d for d in shape)


@dataclass(frozen=True, slots=True)
class TupleType:
    """Relay's TupleType: the types of several values that are one."""

    fields: tuple["RelayType", ...]

    def accepts(self, other: "RelayType") -> bool:
        """Whether `other` could be this type: a tuple of as many fields that could be these."""
        return (
            isinstance(other, TupleType)
            and len(self.fields) == len(other.fields)
            and all(a.accepts(b) for a, b in zip(self.fields, other.fields, strict=True))
        )

    def to_mlir(self) -> ir.TupleType:
        return ir.TupleType.get_tuple([field.to_mlir() for field in self.fields])

    @property
    def flat(self) -> tuple[TensorType, ...]:
        """The tensors in it, in order, including those in nested tuples."""
        return tuple(leaf for field in self.fields for leaf in flat_types(field))

    def __str__(self) -> str:
        return f"tuple<{', '.join(map(str, self.fields))}>"


RelayType = TensorType | TupleType


def relay_type(type_: ir.Type) -> RelayType:
    """The type of a value of the relay stage. Raises TypeError if it is neither a ranked tensor nor a tuple of such."""
    if not isinstance(type_, ir.TupleType):
        return TensorType.from_mlir(type_)
    return TupleType(tuple(relay_type(type_.get_type(i)) for i in range(type_.num_types)))


def type_of(value: ir.Value) -> RelayType:
    """The relay type of a value. Raises TypeError as `relay_type` does."""
    return relay_type(value.type)


def flat_types(type_: RelayType) -> tuple[TensorType, ...]:
    """The tensors of a type, in order."""
    return (type_,) if isinstance(type_, TensorType) else type_.flat


def flat_sizes(type_: RelayType) -> list[Size | None]:
    """The dimensions of the tensors of a type, in order."""
    return [d for tensor in flat_types(type_) for d in tensor.shape]


def element_type(dtype: str) -> ir.Type:
    """MLIR element type of a dtype name in the `relay` stage, in the current context."""
    return ir.Type.parse(MLIR_NAMES[dtype])


def numpy_dtype(dtype: str) -> np.dtype:
    """numpy dtype of a dtype name, from ml_dtypes if numpy has none."""
    return DTYPES[dtype]


def dtype_of(array: np.ndarray) -> str:
    """The dtype name of the elements of an array."""
    return "string" if array.dtype == STRING else array.dtype.name


def is_narrow(dtype: str) -> bool:
    """Whether a dtype is narrow: a float of at most 8 bits, or an integer of less."""
    return dtype in _NARROW


def signless_dtype(dtype: str) -> str:
    """Name of the dtype that stands for `dtype` in the te stage and in memory: int8 for uint8, bool and narrow types, int64 for strings."""
    if dtype == "string":
        return "int64"
    return "int8" if dtype == "bool" or dtype in _NARROW else dtype.replace("uint", "int")


def is_bytes(value: ir.Value) -> bool:
    """Whether a value is one tensor of 8-bit integers whose sizes are all known, as numbers or symbols."""
    return isinstance(value.type, ir.RankedTensorType) and TensorType.of(value).dtype in BYTES and TensorType.of(value).is_known
