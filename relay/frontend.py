"""`relayc.relay.frontend`: models of other formats as programs of the Relay language, by Relay's names."""

from collections.abc import Mapping, Sequence

from relayc.frontend.onnx import from_onnx as import_onnx
from relayc.frontend.onnx.model import ModelLike
from relayc.frontend.relay.ast.base import NDArray, ndarray
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.inference import infer_module
from relayc.frontend.relay.raising import raised
from relayc.symbolic import Size

__all__ = ["from_onnx"]


def from_onnx(
    model: ModelLike,
    shape: Mapping[str, Sequence[Size | str]] | None = None,
    dtype: str | Mapping[str, str] | None = None,
    opset: int | None = None,
    freeze_params: bool = True,
) -> tuple[RelayModule, dict[str, NDArray]]:
    """An ONNX model as a program of the Relay language.

    Args:
      model: path of the file, its contents, or a ModelProto.
      shape: shape by input name, for inputs with symbolic dimensions. A dimension that stays symbolic keeps its name in types.
      dtype: element type by input name, where the caller's differs from the model's. One for all inputs is ignored, as in Relay.
      opset: ignored: a model states its version. The parameter is there for programs written for Relay.
      freeze_params: whether initializers become constants; if not, they are parameters of `main`, with their values in the result.

    Returns:
      The module with its types, and the values of parameters by name.

    Raises:
      OnnxError: a file that is not ONNX, or an operator that is not supported.
      RelayError: a part of the model that Relay has no operator for: strings, sequences, and a few attributes of ONNX's.
    """
    found = import_onnx(model, shape, dtype if isinstance(dtype, Mapping) else None, freeze_params)
    params = {} if freeze_params else {name: ndarray(value) for name, value in found.params.items()}
    return infer_module(raised(found)), params
