"""Maps: ZipMap gives a sequence of them. As inputs, of CastMap and DictVectorizer, relayc does not have them."""

from collections.abc import Sequence

import numpy as np

from relayc.frontend.converter import Tensor, assume, constant, packed
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.ml.scores import DOMAIN, Labels, as_rows
from relayc.frontend.onnx.objects import NUMBER, SEQUENCE, ElementType, SequenceType, SequenceValue, Source


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
