"""ImageDecoder: files of images, which the runtime decodes."""

from typing import Literal

from relayc.dialects.relay.types import TensorType
from relayc.frontend.converter import Tensor, constant, kept, packed
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.sizes import sizes

_CHANNELS = {"RGB": 3, "BGR": 3, "Grayscale": 1}


@converter(since=20, foldable=False)
def ImageDecoder(encoded_stream: Tensor, *, pixel_format: Literal["RGB", "BGR", "Grayscale"] = "RGB") -> Tensor:
    if encoded_stream.dtype != "uint8" or encoded_stream.rank != 1:
        raise OnnxError(f"input encoded_stream: expected a vector of uint8, found {encoded_stream.type}")
    given = [encoded_stream, constant(pixel_format, "string")]
    shape, image = packed("relayc.host.image.decode", given, TensorType((2,), "int64"), TensorType((), "int64"))
    height, width = sizes(shape, "image")
    return kept(image, TensorType((height, width, _CHANNELS[pixel_format]), "uint8"))
