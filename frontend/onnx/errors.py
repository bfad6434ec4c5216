"""The exceptions of the ONNX frontend."""

from relayc.frontend.errors import MissingShapes, ModelError


class OnnxError(ModelError):
    """An ONNX model that cannot be imported."""


class MissingOnnxShapes(OnnxError, MissingShapes):
    """An ONNX model whose inputs have symbolic dimensions that nobody gave a size."""
