"""Signatures of te functions: the tensors of relay types under signless element types, with what callers see beside them."""

from collections.abc import Sequence

import numpy as np

from relayc.dialects.functions import signature_of, strings_attribute
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.types import TensorType, flat_types, relay_type
from relayc.pipelines.te import core


def te_dtype(dtype: str) -> str:
    """Name of the signless dtype that stands for `dtype` in the te stage and in memory: uint8 and bool are int8."""
    return "int8" if dtype == "bool" else dtype.replace("uint", "int")


def te_array(array: np.ndarray) -> np.ndarray:
    """`array` under its te dtype, the same bytes."""
    name = te_dtype(array.dtype.name)
    return array if name == array.dtype.name else array.view(name)


def flat_tensors(types: Sequence[ir.Type]) -> list[TensorType]:
    """The tensors of relay types, those in tuples one by one."""
    return [leaf for type_ in types for leaf in flat_types(relay_type(type_))]


def te_function(name: str, source: ir.Operation, what: tuple[str, str], visibility: str | None) -> func.FuncOp:
    """Builds a function without a body at the ambient insertion point, of the tensors that a relay function takes and gives.

    The element types that callers see stand in `relay.input_dtypes` and `relay.output_dtypes`.

    Args:
      what: what its arguments and its results are, for errors.

    Raises RelayError where the shape of a tensor is not known.
    """
    type_ = signature_of(source)
    tensors = flat_tensors(type_.inputs), flat_tensors(type_.results)
    types = tuple([_te_type(t, words) for t in part] for part, words in zip(tensors, what, strict=True))
    with source.location:
        function = func.FuncOp(name, types, visibility=visibility)
    for which, part in zip(("input", "output"), tensors, strict=True):
        function.attributes[f"relay.{which}_dtypes"] = strings_attribute(t.dtype for t in part)
    return function


def _te_type(type_: TensorType, what: str) -> ir.RankedTensorType:
    try:
        return core.te_type(type_)
    except RelayError as e:
        raise RelayError(f"{what}: {e}") from None
