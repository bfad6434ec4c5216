"""The table of converters of StableHLO's operators, and the arguments of a converter.

A converter is one function for one operator, named as in StableHLO's specification; its arguments are the Node and the operands. Converters
registered as `elementwise` get operands that broadcast to each other; other converters get tensors of the sizes in the program.

    @op("reverse")
    def reverse(node, operand):
        ...
        return tensor

The result of a converter is compared with the result types of the operator (relayc.frontend.stablehlo.program).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from relayc.dialects.relay.types import DTYPES, MLIR_NAMES
from relayc.frontend.common.complex import Pair as Pair
from relayc.frontend.converter import Tensor, constant
from relayc.frontend.errors import ModelError
from relayc.frontend.sizes import LONGEST
from relayc.frontend.steps import broadcast_to
from relayc.symbolic import Size

if TYPE_CHECKING:
    from relayc.frontend.stablehlo.program import Program

Converter = Callable[..., Any]
CONVERTERS: dict[str, Converter] = {}
"""By name: "stablehlo.add", "chlo.erf"."""
ELEMENTWISE: set[str] = set()
COMPLEX: set[str] = set()
"""Operators that take or give complex numbers."""
_DTYPES = {mlir: name for name, mlir in MLIR_NAMES.items() if name != "string"}


class Spread(NamedTuple):
    """A tensor that broadcasts to a shape, and is not yet: operators that broadcast take it as it is."""

    tensor: Tensor
    shape: tuple[Size, ...]

    @property
    def dtype(self) -> str:
        return self.tensor.dtype

    @property
    def whole(self) -> Tensor:
        """A few numbers that are known stay known: they may be sizes."""
        sizes = [d for d in self.shape if isinstance(d, int)]
        if self.tensor.is_known and len(sizes) == len(self.shape) and prod(sizes) <= LONGEST:
            return constant(np.broadcast_to(self.tensor.array, sizes), self.dtype)
        return broadcast_to(self.tensor, self.shape)


def whole(value: "Tensor | Spread | Pair") -> Any:
    """A value as a tensor of its shape."""
    return value if isinstance(value, (Tensor, Pair)) else value.whole


def declared(mlir_type: Any) -> tuple[tuple[int | None, ...], str] | None:
    """The sizes (None for an open one) and the dtype of a type; None for one that relayc has not. Complex numbers are "complex"."""
    if not hasattr(mlir_type, "element_type") or not hasattr(mlir_type, "shape"):
        return None
    element = str(mlir_type.element_type)
    dtype = "complex" if element.startswith("complex") else _DTYPES.get(element)
    shape = tuple(None if mlir_type.is_dynamic_dim(i) else int(d) for i, d in enumerate(mlir_type.shape))
    return None if dtype is None else (shape, dtype)


@dataclass(frozen=True)
class Node:
    """The operator being converted.

    Attributes:
      op: it, of JAX's bindings of MLIR.
      program: whose conversion it is.
      scope: the values that it sees.
    """

    op: Any
    program: "Program"
    scope: Any

    @property
    def name(self) -> str:
        """Without the dialect."""
        return str(self.op.name).partition(".")[2]

    def attribute(self, name: str) -> Any:
        """An attribute as numbers, texts and arrays; None if there is none."""
        return plain(self.op.attributes[name]) if name in self.op.attributes else None

    def ints(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        """An attribute of integers."""
        found = self.attribute(name)
        return tuple(default) if found is None else tuple(int(v) for v in found)

    def numbers(self, name: str, class_name: str) -> Any:
        """An attribute of StableHLO's own, as the class of JAX's bindings that reads it."""
        from jax.extend.mlir.dialects import stablehlo

        return getattr(stablehlo, class_name)(self.op.attributes[name])

    def result(self, i: int = 0) -> tuple[tuple[int | None, ...], str]:
        """The sizes and the dtype of a result."""
        found = declared(self.op.results[i].type)
        assert found is not None  # Program.check refuses others
        return found

    @property
    def dtype(self) -> str:
        return self.result()[1]

    def edges(self, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The attribute `padding` as numbers before and after each of `rank` axes: a pair for each, one number for all, or no padding."""
        found = self.attribute("padding")
        low, high = np.broadcast_to(0 if found is None else found, (rank, 2)).T.tolist()
        return tuple(low), tuple(high)

    def static(self, what: str) -> tuple[int, ...]:
        """The sizes of a result that has no open one."""
        shape = self.result()[0]
        if None in shape:
            raise ModelError(f"{what}: expected sizes known at import, found {self.op.results[0].type}")
        return tuple(d for d in shape if d is not None)

    def region(self, i: int) -> Any:
        """The block of a region."""
        return self.op.regions[i].blocks[0]


def plain(attribute: Any) -> Any:
    """An attribute of MLIR as Python's and numpy's values."""
    kind = type(attribute).__name__
    if kind == "Attribute":  # of StableHLO: "#stablehlo<comparison_direction GT>"
        return str(attribute).rstrip(">").rpartition(" ")[2]
    if kind.startswith("Dense") and kind.endswith("ElementsAttr"):
        return elements(attribute)
    if kind == "ArrayAttr":
        return [plain(a) for a in attribute]
    if kind == "DictAttr":
        return {a.name: plain(a.attr) for a in attribute}
    return list(attribute) if kind.startswith("Dense") else attribute.value


def elements(attribute: Any) -> np.ndarray:
    """The numbers of a constant; a single number if all are the same."""
    found = declared(attribute.type)
    assert found is not None  # as of the value
    shape, dtype = found
    if dtype in ("bfloat16", "float16") or dtype.startswith(("float8", "int4", "uint4")):
        return elements_of_text(str(attribute), shape, dtype)
    array = np.asarray(attribute)
    return array.reshape(-1)[:1].reshape(()) if attribute.is_splat else array


def elements_of_text(text: str, shape: tuple[int | None, ...], dtype: str) -> np.ndarray:
    """The numbers in MLIR's text of a constant, `dense<...>`, for types that the bindings do not read. Large constants are hexadecimal."""
    part = np.dtype("float64" if "complex<f64>" in text else "float32") if dtype == "complex" else DTYPES[dtype]
    kind = np.result_type(part, np.complex64) if dtype == "complex" else part
    listed = text.partition("dense<")[2].partition(">")[0]
    whole = tuple(d or 0 for d in shape)
    if listed.startswith('"0x'):
        array = np.frombuffer(bytes.fromhex(listed[3:-1]), kind)
    else:
        numbers = [_number(v, part) for v in re.findall(r"0x[0-9A-Fa-f]+|[-+.\w]+", listed)]
        array = np.array(numbers, part).view(kind)
    return array.reshape(whole if array.size == np.prod(whole, dtype=int) else ())


def _number(text: str, kind: np.dtype) -> Any:
    """A number, or its bits."""
    if not text.startswith("0x"):
        return np.array(float(text)).astype(kind)
    return np.array(int(text, 16), f"uint{8 * kind.itemsize}").view(kind)


def op(*names: str, elementwise: bool = False, complex_too: bool = False) -> Callable[[Converter], Converter]:
    """Registers the converter of operators of the dialect stablehlo, of another dialect if the name contains it, or of calls of functions
    from outside ("custom_call @name")."""

    def register(function: Converter) -> Converter:
        for name in names:
            full = name if "." in name or "@" in name else f"stablehlo.{name}"
            CONVERTERS[full] = function
            if elementwise:
                ELEMENTWISE.add(full)
            if complex_too:
                COMPLEX.add(full)
        return function

    return register
