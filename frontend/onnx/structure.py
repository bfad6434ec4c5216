"""What steers the graph rather than computing: identities and branches."""

from onnx import GraphProto

from relayc.frontend.onnx.core import Tensor, converter, current
from relayc.frontend.onnx.errors import OnnxError


@converter()
def Identity(x: Tensor) -> Tensor:
    return x


@converter()
def If(cond: Tensor, *, then_branch: GraphProto, else_branch: GraphProto) -> tuple[Tensor, ...]:
    """The branch that is taken, in place, where the condition is known at import."""
    if not cond.is_known:
        raise OnnxError(f"expected a condition known at import, found {cond.label}, which depends on an input of the model")
    return tuple(current().inline(then_branch if bool(cond.array.reshape(())) else else_branch))
