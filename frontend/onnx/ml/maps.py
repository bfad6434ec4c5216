"""Maps: CastMap and DictVectorizer make tensors of one, which is an input of the model; ZipMap gives a sequence of them."""

from collections.abc import Sequence

import numpy as np

from relayc.dialects.relay import TensorType
from relayc.frontend.converter import Tensor, assume, constant, packed
from relayc.frontend.onnx.converters import converter, current
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.ml.scores import DOMAIN, Labels, as_rows
from relayc.frontend.onnx.objects import (
    NUMBER,
    SEQUENCE,
    ElementType,
    MapValue,
    SequenceType,
    SequenceValue,
    Source,
    Value,
    text,
    type_of,
)
from relayc.frontend.onnx.text import converted
from relayc.frontend.sizes import new_symbols
from relayc.frontend.steps import cast
from relayc.symbolic import Size

MAP = "relayc.host.map."
"""Prefix of the names of packed functions on maps."""

_CASTS = {"TO_FLOAT": "float32", "TO_STRING": "string", "TO_INT64": "int64"}
"""Dtypes by the values of cast_to."""


@converter(domain=DOMAIN)
def ZipMap(x: Tensor, *, classlabels_int64s: Sequence | None = None, classlabels_strings: Sequence | None = None) -> SequenceValue:
    """A sequence of maps from labels to scores, which can only be a result: the caller gets a list of dicts."""
    labels = Labels.of(classlabels_int64s, classlabels_strings)
    if not len(labels):
        raise OnnxError("attribute classlabels_int64s: expected labels, found none")
    rows = as_rows(x)
    rows = assume(rows, (rows.shape[0], len(labels)))
    keys = constant(labels.array)
    are_texts = constant(np.array(keys.dtype == "string"))
    (number,) = packed(f"{SEQUENCE}zip_map", [rows, keys, are_texts], NUMBER)
    return SequenceValue(SequenceType(ElementType(f"map({keys.dtype}, {x.dtype})", source=Source.GIVEN)), number=number)


def _map(value: Value, key: str | None = None) -> MapValue:
    """A map from keys of a dtype. Raises OnnxError for another value."""
    if not isinstance(value, MapValue) or value.type.key != (key or value.type.key):
        raise OnnxError(f"input X: expected a map{f' from {key}' if key else ''}, found {type_of(value)}")
    return value


def _row(function: str, given: MapValue, size: Size, *args: Tensor) -> Tensor:
    """The [1, size] that a packed function makes of a map's values."""
    return packed(f"{MAP}{function}", [given.number, *args], TensorType((1, size), given.type.value))[0]


@converter(domain=DOMAIN, foldable=False, objects=True)
def DictVectorizer(x: Value, *, int64_vocabulary: Sequence | None = None, string_vocabulary: Sequence | None = None) -> Tensor:
    """The values of the keys of the vocabulary in its order, [1, keys]: 0 or the empty string for one that the map lacks."""
    if bool(int64_vocabulary) == bool(string_vocabulary):
        raise OnnxError("expected attribute int64_vocabulary or string_vocabulary, and not both, with keys")
    keys = constant(np.array(string_vocabulary, object) if string_vocabulary else np.array(int64_vocabulary, np.int64))
    given = _map(x, keys.dtype)
    return _row("look_up", given, keys.shape[0], keys, _scalar("", given.type.value))


@converter(domain=DOMAIN, foldable=False, objects=True)
def CastMap(x: Value, *, cast_to: str = "TO_FLOAT", map_form: str = "DENSE", max_map: int = 1) -> Tensor:
    """The values in the order of their keys, [1, keys], or each at the position that its key says with 0 elsewhere, [1, max_map]."""
    if cast_to not in _CASTS:
        raise OnnxError(f"attribute cast_to: expected one of {', '.join(_CASTS)}, found {cast_to!r}")
    given = _map(x, "int64")
    if map_form == "DENSE":
        (count,) = packed(f"{MAP}length", [given.number], TensorType((1,), "int64"))
        (length,) = new_symbols(count, given.name or "map")
        row = _row("ordered", given, length)
    elif map_form == "SPARSE":
        if max_map < 1:
            raise OnnxError(f"attribute max_map: expected 1 or more, found {max_map}")
        row = _row("spread", given, max_map, _scalar("0", given.type.value), text(current().what))
    else:
        raise OnnxError(f"attribute map_form: expected DENSE or SPARSE, found {map_form!r}")
    dtype = _CASTS[cast_to]
    return converted(row, dtype) if (row.dtype == "string") != (dtype == "string") else cast(row, dtype)


def _scalar(missing: str, dtype: str) -> Tensor:
    """The replacement of a missing value: a text for strings, otherwise 0."""
    return constant(missing if dtype == "string" else 0, dtype)
