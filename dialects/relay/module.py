"""A relay program: the MLIR module and the parameter table its large constants live in (Relay's IRModule with its params)."""

import re
from collections.abc import Mapping

import numpy as np

from relayc.dialects.mlir import ir, make_context
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.structure import Constant
from relayc.dialects.relay.types import TensorType, numpy_dtype

INLINE_BYTES = 1024
"""Constants up to this size stand in the IR; larger ones in the parameter table, and the IR holds their key."""


def dense_attr(array: np.ndarray) -> ir.DenseElementsAttr:
    """The elements of `array` as an attribute of the relay stage's type (signedness kept)."""
    type_ = TensorType.of_array(array).to_mlir()
    array = np.ascontiguousarray(array)
    raw = array.view(np.uint16) if array.dtype.name == "bfloat16" else array.view(np.uint8) if array.dtype == np.bool_ else array
    if array.size == 0:
        return ir.Attribute.parse(f"dense<> : {type_}")
    return ir.DenseElementsAttr.get(raw, type=type_)


def _bfloat16_elements(attribute: ir.DenseElementsAttr) -> np.ndarray:
    # The bindings cannot read bf16 elements; their text can be: numbers, hexadecimal bits for inf and nan, one hex string when many.
    body = str(attribute)[len("dense<") :].rsplit("> :", 1)[0]
    if body.startswith('"0x'):
        return np.frombuffer(bytes.fromhex(body[3:-1]), numpy_dtype("bfloat16"))
    words = re.findall(r"0x[0-9A-Fa-f]+|[-+.0-9eE]+", body)
    dtype = numpy_dtype("bfloat16")
    # The decimals are the shortest that round to the element, not the element itself.
    bits = [int(w, 16) if w.startswith("0x") else int(np.float64(w).astype(dtype).view(np.uint16)) for w in words]
    return np.array(bits, np.uint16).view(dtype)


def dense_array(attribute: ir.DenseElementsAttr) -> np.ndarray:
    """The elements of a dense attribute as an array of its dtype; the inverse of `dense_attr`."""
    type_ = TensorType.from_mlir(attribute.type)
    dtype = numpy_dtype(type_.dtype)
    if type_.num_elements == 0:
        return np.zeros(type_.sizes, dtype)
    if attribute.is_splat:
        return np.full(type_.sizes, attribute.get_splat_value().value, dtype)
    if type_.dtype == "bfloat16":
        return _bfloat16_elements(attribute).reshape(type_.shape)
    return np.array(attribute).astype(dtype).reshape(type_.shape)


def is_uniform(array: np.ndarray) -> bool:
    """Whether an array has elements, all of the same bits: NaN is the same as NaN, and 0 is not -0."""
    return array.size > 0 and array.tobytes() == array.flat[:1].tobytes() * array.size


class IRModule:
    """An MLIR module in the `relay` stage, its context and its parameter table.

    Attributes:
      module: the MLIR module; its entry is the function `main`, whose arguments carry their names in the attribute `relay.name`.
      params: arrays by key; never changed in place, as keys may share an array.
    """

    def __init__(self, module: ir.Module, params: Mapping[str, np.ndarray] | None = None) -> None:
        self.module = module
        self.params = dict(params or {})

    @staticmethod
    def parse(text: str, params: Mapping[str, np.ndarray] | None = None, context: ir.Context | None = None) -> "IRModule":
        """Parses MLIR text. Raises MLIRError for text that does not parse, RelayError for a program that breaks an operator's rules."""
        with context or make_context(), ir.Location.unknown():
            module = IRModule(ir.Module.parse(text), params)
            module.verify()
            return module

    def verify(self) -> None:
        """Checks the program. Raises MLIRError where its structure is broken, RelayError where an operator's rules are."""
        self.module.operation.verify()

    @property
    def context(self) -> ir.Context:
        return self.module.context

    @property
    def main(self) -> ir.Operation:
        """The function `main`. Raises RelayError where there is none."""
        for op in self.module.body.operations:
            if "sym_name" in op.attributes and ir.StringAttr(op.attributes["sym_name"]).value == "main":
                return op
        raise RelayError("the module has no function main")

    def add_param(self, array: np.ndarray, key: str = "const") -> str:
        """Enters `array` in the parameter table under `key`, made unique by a number, and gives the key."""
        unique, n = key, 0
        while unique in self.params:
            n += 1
            unique = f"{key}.{n}"
        self.params[unique] = array
        return unique

    def constant(self, array: np.ndarray, key: str = "const") -> ir.Value:
        """Builds a relay.constant at the ambient insertion point: elements in the IR up to INLINE_BYTES, else in the parameter table."""
        array = np.asarray(array)
        if array.nbytes <= INLINE_BYTES:
            return Constant(value=dense_attr(array)).result
        return self.parameter(self.add_param(array, key))

    def parameter(self, key: str) -> ir.Value:
        """Builds a relay.constant for the entry `key` of the parameter table."""
        array = self.params[key]
        return Constant(value=ir.StringAttr.get(key), shape=array.shape, dtype=array.dtype.name).result

    def value_of(self, value: ir.Value) -> np.ndarray | None:
        """The array of a value made by relay.constant; None for any other value, and for a parameter that is not in the table."""
        owner = value.owner
        op = owner.opview if isinstance(owner, ir.Operation) else owner
        if not isinstance(op, Constant):
            return None
        if op.key is not None:
            return self.params.get(op.key)
        return dense_array(op.attributes["value"])

    def __str__(self) -> str:
        return str(self.module)
