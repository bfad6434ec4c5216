"""The domain of ONNX Runtime's operators."""

from functools import partial

from relayc.frontend.onnx.converters import converter

DOMAIN = "com.microsoft"
microsoft = partial(converter, domain=DOMAIN)
"""Registers the converter of an operator of this domain."""
