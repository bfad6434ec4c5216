"""What steers the graph rather than computing: identities and branches; loops are in `loops`."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from onnx import GraphProto

from relayc.dialects.mlir import ir
from relayc.dialects.relay import If as Branch
from relayc.frontend.common.loops import taken_apart, together
from relayc.frontend.converter import Tensor, constant, scalar
from relayc.frontend.onnx.converters import Node, converter, current
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.loops import scalar_of
from relayc.frontend.onnx.objects import Form, Value, common_form


@converter(foldable=False, objects=True)
def Identity(x: Value) -> Value:
    return x


@converter(foldable=False)
def If(cond: Tensor, *, then_branch: GraphProto, else_branch: GraphProto) -> tuple[Value, ...]:
    """The branch taken, in place, if the condition is known at import; otherwise a branch of the program."""
    node = current()
    if cond.is_known:
        return tuple(node.inline(then_branch if bool(scalar(cond, "cond")) else else_branch))
    branches = _Branches(node)
    then, otherwise = (partial(branches.build, graph) for graph in (then_branch, else_branch))
    found = taken_apart(Branch.create(scalar_of(cond, "cond").value, then, otherwise))
    return tuple(branches.values(found))


class _Branches:
    """The branches of an If. Sequences and optional values are returned as their tensors, if these are known and alike in both branches,
    otherwise as numbers."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.first: tuple[list[Value], ir.Block] | None = None
        self.forms: list[Form] = []

    def build(self, graph: GraphProto) -> ir.Value:
        """Builds one branch; returns its yielded value. Raises OnnxError."""
        values = self.node.inline(graph)
        if self.first is None:
            # What it yields may have to be written otherwise when the other branch is known.
            self.first = values, ir.InsertionPoint.current.block
            return together([v for v in values if isinstance(v, Tensor)] or [constant(np.int64(0))])
        before, block = self.first
        if len(before) != len(values):
            raise OnnxError(f"expected branches of as many outputs, found {len(before)} and {len(values)}")
        self.forms = [common_form(a, b) for a, b in zip(before, values, strict=True)]
        if any(form.type is not None for form in self.forms):
            last = block.operations[len(block.operations) - 1].operation
            with ir.InsertionPoint(last):
                last.operands[0] = self._yielded(before)
        return self._yielded(values)

    def _yielded(self, values: list[Value]) -> ir.Value:
        return together([tensor for form, value in zip(self.forms, values, strict=True) for tensor in form.tensors(value)])

    def values(self, tensors: Sequence[Tensor]) -> list[Value]:
        """The outputs, of the tensors that the branches yield."""
        left = iter(tensors)
        return [form.value(left) for form in self.forms]
