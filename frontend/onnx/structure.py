"""What steers the graph rather than computing: identities and branches; loops are in `loops`."""

from functools import partial

from onnx import GraphProto

from relayc.dialects.mlir import ir
from relayc.dialects.relay import If as Branch
from relayc.frontend.converter import Tensor, scalar
from relayc.frontend.onnx.converters import Node, converter, current
from relayc.frontend.onnx.loops import scalar_of, taken_apart, together


@converter(foldable=False)
def Identity(x: Tensor) -> Tensor:
    return x


@converter(foldable=False)
def If(cond: Tensor, *, then_branch: GraphProto, else_branch: GraphProto) -> tuple[Tensor, ...]:
    """The branch that is taken, in place, where the condition is known at import; else a branch of the program."""
    node = current()
    if cond.is_known:
        return tuple(node.inline(then_branch if bool(scalar(cond, "cond")) else else_branch))
    then, otherwise = (partial(_branch, node, graph) for graph in (then_branch, else_branch))
    return taken_apart(Branch.create(scalar_of(cond, "cond").value, then, otherwise))


def _branch(node: Node, graph: GraphProto) -> ir.Value:
    return together(node.inline(graph))
