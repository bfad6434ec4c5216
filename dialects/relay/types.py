"""Relay's tensor type as a plain Python value, and its mapping to MLIR's tensor types.

Element types are named as in numpy and Relay ("float32", "int64", "uint8", "bool", "bfloat16"). Signedness is part of the type in the
`relay` stage (`ui8` against `i8`); the `te` stage and below are signless, and the operation says how to read the bits.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.relay.errors import RelayError

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
MLIR_NAMES = _FLOATS | _INTS
DTYPES = {name: np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name) for name in MLIR_NAMES}
MAX_BYTES = 1 << 47
"""What a tensor may take: the memory that a process can address (47 bits on x86-64)."""
_FROM_MLIR = {mlir: name for name, mlir in MLIR_NAMES.items()}


@dataclass(frozen=True, slots=True)
class TensorType:
    """Shape (None where a dimension is not known, Relay's Any) and element type name of a tensor."""

    shape: tuple[int | None, ...]
    dtype: str

    def __post_init__(self) -> None:
        if self.dtype not in MLIR_NAMES:
            raise ValueError(f"unknown dtype {self.dtype!r}; expected one of {', '.join(MLIR_NAMES)}")

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        return None not in self.shape

    @property
    def is_float(self) -> bool:
        return self.dtype in _FLOATS

    @property
    def is_unsigned(self) -> bool:
        return self.dtype == "bool" or self.dtype.startswith("uint")

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape, of which every dimension is known; raises ValueError where one is not."""
        found = tuple(d for d in self.shape if d is not None)
        if len(found) < len(self.shape):
            raise ValueError(f"{self} has an unknown dimension")
        return found

    @property
    def num_elements(self) -> int:
        """Number of elements; raises ValueError where a dimension is not known."""
        return math.prod(self.sizes)

    @property
    def num_bytes(self) -> int:
        return self.num_elements * DTYPES[self.dtype].itemsize

    def with_shape(self, shape: Iterable[int | None]) -> "TensorType":
        return TensorType(tuple(shape), self.dtype)

    def with_dtype(self, dtype: str) -> "TensorType":
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
        dynamic = ir.ShapedType.get_dynamic_size()
        return ir.RankedTensorType.get([dynamic if d is None else d for d in self.shape], element_type(self.dtype))

    def check_size(self) -> None:
        """Raises RelayError for a type that no memory can hold: a negative dimension, or more than MAX_BYTES.

        Dimensions of 0 count as 1, so that strides can be computed with too.
        """
        num_bytes = DTYPES[self.dtype].itemsize
        for d in self.shape:
            if d is not None:
                if d < 0:
                    raise RelayError(f"shape: expected dimensions of 0 or more, found {list(self.shape)}")
                num_bytes *= d or 1
        if num_bytes > MAX_BYTES:
            raise RelayError(f"shape: expected at most {MAX_BYTES} bytes, found {num_bytes} for {self}")

    @staticmethod
    def from_mlir(type_: ir.Type) -> "TensorType":
        """Raises TypeError where `type_` is not a ranked tensor of a known element type, RelayError where no memory can hold it."""
        text = str(type_)
        found = _PARSED.get(text)
        if found is None:
            found = _PARSED[text] = _parse(type_)
        return found

    @staticmethod
    def of(value: ir.Value) -> "TensorType":
        return TensorType.from_mlir(value.type)

    @staticmethod
    def of_array(array: np.ndarray) -> "TensorType":
        return TensorType(tuple(array.shape), array.dtype.name)

    def __str__(self) -> str:
        dims = "".join(f"{'?' if d is None else d}x" for d in self.shape)
        return f"tensor<{dims}{MLIR_NAMES[self.dtype]}>"


# A program has many values and few types: reading one from MLIR costs ten times what looking its text up does.
_PARSED: dict[str, TensorType] = {}


def _parse(type_: ir.Type) -> TensorType:
    if not isinstance(type_, ir.RankedTensorType):
        raise TypeError(f"expected a ranked tensor, found {type_}")
    name = _FROM_MLIR.get(str(type_.element_type))
    if name is None:
        raise TypeError(f"element type of {type_} is not one of {', '.join(_FROM_MLIR)}")
    dynamic = ir.ShapedType.get_dynamic_size()
    found = TensorType(tuple(None if d == dynamic else d for d in type_.shape), name)
    found.check_size()
    return found


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
        """The tensors in it, in order, those of tuples in it too."""
        return tuple(leaf for field in self.fields for leaf in flat_types(field))

    def __str__(self) -> str:
        return f"tuple<{', '.join(map(str, self.fields))}>"


RelayType = TensorType | TupleType


def relay_type(type_: ir.Type) -> RelayType:
    """The type of a value of the relay stage. Raises TypeError where it is neither a ranked tensor nor a tuple of such."""
    if not isinstance(type_, ir.TupleType):
        return TensorType.from_mlir(type_)
    return TupleType(tuple(relay_type(type_.get_type(i)) for i in range(type_.num_types)))


def type_of(value: ir.Value) -> RelayType:
    """The relay type of a value. Raises TypeError as `relay_type` does."""
    return relay_type(value.type)


def flat_types(type_: RelayType) -> tuple[TensorType, ...]:
    """The tensors of a type, in order."""
    return (type_,) if isinstance(type_, TensorType) else type_.flat


def element_type(dtype: str) -> ir.Type:
    """MLIR element type of a dtype name in the `relay` stage, in the current context."""
    return ir.Type.parse(MLIR_NAMES[dtype])


def numpy_dtype(dtype: str) -> np.dtype:
    """numpy dtype of a dtype name (bfloat16 from ml_dtypes)."""
    return DTYPES[dtype]
