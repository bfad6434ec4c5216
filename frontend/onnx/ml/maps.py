"""Operators on maps, which relayc does not have: CastMap, DictVectorizer, ZipMap."""

from collections.abc import Sequence

from relayc.frontend.converter import Tensor
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.ml.scores import DOMAIN


@converter(domain=DOMAIN)
def CastMap(x: Tensor, *, cast_to: str = "TO_FLOAT", map_form: str = "DENSE", max_map: int = 1) -> Tensor:
    raise OnnxError("input X: expected a tensor, found a map from integers, which relayc does not have")


@converter(domain=DOMAIN)
def DictVectorizer(x: Tensor, *, int64_vocabulary: Sequence | None = None, string_vocabulary: Sequence | None = None) -> Tensor:
    raise OnnxError("input X: expected a tensor, found a map, which relayc does not have")


@converter(domain=DOMAIN)
def ZipMap(x: Tensor, *, classlabels_int64s: Sequence | None = None, classlabels_strings: Sequence | None = None) -> Tensor:
    raise OnnxError(
        "output Z: expected a tensor, found a sequence of maps: export the model with zipmap=False for probabilities as a tensor"
    )
