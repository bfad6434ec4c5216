"""The domain of ONNX Runtime's operators, and what their inputs have to be."""

from functools import partial

from relayc.frontend.converter import Tensor
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError

DOMAIN = "com.microsoft"
microsoft = partial(converter, domain=DOMAIN)
"""Registers the converter of an operator of this domain."""


def check_ranks(ranks: tuple[int, ...], **inputs: Tensor | None) -> None:
    """Raises OnnxError if an input is present and has another number of dimensions."""
    for name, tensor in inputs.items():
        if tensor is not None and tensor.rank not in ranks:
            raise OnnxError(f"input {name}: expected {' or '.join(map(str, ranks))} dimensions, found {list(tensor.shape)}")
