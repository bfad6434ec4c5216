"""The exceptions of the ONNX frontend."""

from relayc.frontend.errors import MissingShapes, ModelError


class OnnxError(ModelError):
    """An ONNX model that cannot be imported."""


class MissingOnnxShapes(OnnxError, MissingShapes):
    """An ONNX model with inputs of unknown rank that nobody gave a shape."""
