"""What steers the graph rather than computing: identities, branches and loops."""

from collections.abc import Sequence

import numpy as np
from onnx import GraphProto

from relayc.dialects.mlir import ir
from relayc.dialects.relay import If as Branch
from relayc.dialects.relay import TensorType, While, fields_of, make_tuple
from relayc.frontend.converter import Tensor, constant, emit, scalar
from relayc.frontend.onnx.converters import converter, current
from relayc.frontend.onnx.errors import OnnxError


@converter(foldable=False)
def Identity(x: Tensor) -> Tensor:
    return x


def _scalar(tensor: Tensor, what: str) -> Tensor:
    """A tensor of one element as one of rank 0; ONNX allows either where it wants a scalar. Raises OnnxError."""
    if tensor.type.num_elements != 1:
        raise OnnxError(f"{what}: expected one element, found {tensor.type}")
    return tensor if tensor.rank == 0 else emit("reshape", tensor, newshape=())


def _taken_apart(value: ir.Value) -> tuple[Tensor, ...]:
    return tuple(Tensor(TensorType.of(v), value=v) for v in fields_of(value))


def _together(tensors: Sequence[Tensor]) -> ir.Value:
    return make_tuple([t.value for t in tensors])


@converter(foldable=False)
def If(cond: Tensor, *, then_branch: GraphProto, else_branch: GraphProto) -> tuple[Tensor, ...]:
    """The branch that is taken, in place, where the condition is known at import; else a branch of the program."""
    node = current()
    if cond.is_known:
        return tuple(node.inline(then_branch if bool(scalar(cond, "cond")) else else_branch))
    branches = [lambda graph=graph: _together(node.inline(graph)) for graph in (then_branch, else_branch)]
    return _taken_apart(Branch.create(_scalar(cond, "cond").value, *branches))


@converter(foldable=False)
def Loop(M: Tensor | None = None, cond: Tensor | None = None, *carried: Tensor, body: GraphProto) -> tuple[Tensor, ...]:
    """A loop of the program that carries the number of the iteration, the condition and the loop's own values.

    Scan outputs are refused: their length is known only when the program runs.
    """
    node = current()
    scans = len(body.output) - 1 - len(carried)
    if scans:
        raise OnnxError(f"expected a body without scan outputs, whose length the program decides, found {scans}")
    limit = None if M is None else _scalar(M, "M")
    start = constant(np.bool_(True)) if cond is None else _scalar(cond, "cond")

    def goes_on(state: ir.Value) -> ir.Value:
        number, condition, *_ = _taken_apart(state)
        if limit is not None:
            condition = emit("logical_and", condition, emit("less", number, limit))
        return condition.value

    def step(state: ir.Value) -> ir.Value:
        number, condition, *values = _taken_apart(state)
        following, *found = node.inline(body, number, condition, *values)
        return _together([emit("add", number, constant(np.int64(1))), _scalar(following, "cond of the body"), *found])

    final = While.create(_together([constant(np.int64(0)), start, *carried]), goes_on, step)
    return _taken_apart(final)[2:]
