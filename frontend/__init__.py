"""How models come in: one package for each format."""

from relayc.frontend import onnx

__all__ = ["onnx"]
