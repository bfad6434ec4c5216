"""Signatures of te functions: the tensors of relay types with signless element types, and the types that callers see."""

from collections.abc import Sequence

import numpy as np

from relayc.dialects.discardable import INPUT_DTYPES, OUTPUT_DTYPES, PACKED, PRIMITIVE
from relayc.dialects.functions import signature_of
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.scopes import symbols_in
from relayc.dialects.relay.types import TensorType, dtype_of, flat_types, relay_type, signless_dtype
from relayc.pipelines.emission.sizes import symbol_attributes
from relayc.pipelines.te.rules import core


def te_array(array: np.ndarray) -> np.ndarray:
    """`array` under its te dtype, sharing its memory."""
    found = dtype_of(array)
    name = signless_dtype(found)
    return array if name == found else array.view(name)


def flat_tensors(types: Sequence[ir.Type]) -> list[TensorType]:
    """The tensors of relay types, with tuples flattened."""
    return [leaf for type_ in types for leaf in flat_types(relay_type(type_))]


def te_function(name: str, source: ir.Operation, what: tuple[str, str], visibility: str | None) -> func.FuncOp:
    """Builds a function without a body at the ambient insertion point, with the tensors of a relay function's arguments and results.

    The attributes `relay.input_dtypes` and `relay.output_dtypes` hold the element types that callers see. The symbols that the function
    needs are its last arguments, and the symbols that it defines in the types of its results its last results (see
    pipelines.emission.sizes).

    Args:
      what: descriptions of its arguments and its results, for errors.

    Raises RelayError if the shape of a tensor is not known.
    """
    type_ = signature_of(source)
    tensors = flat_tensors(type_.inputs), flat_tensors(type_.results)
    inputs, results = ([_te_type(t, words) for t in part] for part, words in zip(tensors, what, strict=True))
    symbols, defined = needed_symbols(source), defined_symbols(source)
    index = ir.IndexType.get()
    with source.location:
        types = [*inputs, *[index] * len(symbols)], [*results, *[index] * len(defined)]
        function = func.FuncOp(name, types, visibility=visibility)
    for key, tensors_of, names in (("arg_attrs", inputs, symbols), ("res_attrs", results, defined)):
        if names:
            function.attributes[key] = ir.ArrayAttr.get([*[ir.DictAttr.get({})] * len(tensors_of), *symbol_attributes(names)])
    for dtypes, part in zip((INPUT_DTYPES, OUTPUT_DTYPES), tensors, strict=True):
        dtypes.put(function, tuple(t.dtype for t in part))
    return function


def needed_symbols(function: ir.Operation) -> list[str]:
    """Names of the symbols whose values must be passed to a relay function, in order.

    A kernel (`relay.primitive`) or packed function needs all symbols in its types; another function needs the symbols in the types of its
    arguments, because it defines the others itself.
    """
    signature = signature_of(function)
    if not PRIMITIVE.on(function) and not PACKED.on(function):
        return sorted({s for t in flat_tensors(signature.inputs) for s in t.symbols})
    found = {s for t in flat_tensors([*signature.inputs, *signature.results]) for s in t.symbols}
    for block in function.regions[0].blocks:
        for op in block.operations:
            found |= symbols_in(op)
    return sorted(found)


def defined_symbols(function: ir.Operation) -> list[str]:
    """Names of the symbols in the result types of a relay function that it defines itself, in order."""
    results = flat_tensors(signature_of(function).results)
    return sorted({s for t in results for s in t.symbols} - set(needed_symbols(function)))


def _te_type(type_: TensorType, what: str) -> ir.RankedTensorType:
    try:
        return core.te_type(type_)
    except RelayError as e:
        raise RelayError(f"{what}: {e}") from None
