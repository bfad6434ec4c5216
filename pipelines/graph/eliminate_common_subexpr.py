"""EliminateCommonSubexpr: equal operations on equal operands become one (upstream's cse); before it, equal parameters get one key.

An operator whose result is the first one of another operator on equal operands is that one.
"""

from collections.abc import Hashable

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.operations import users_of
from relayc.dialects.relay.base import OPS, Op
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.structure import Constant
from relayc.pipelines.context.passes import PassContext, function_pass
from relayc.pipelines.context.upstream import run_upstream
from relayc.pipelines.graph.blocks import graph_blocks

_HASHED_BYTES = 1 << 16
"""Parameters up to this size are one where their bytes are; larger ones only where they are one array, as hashing weights takes time."""


def _contents(array: np.ndarray) -> Hashable:
    """A key that is equal for equal parameters."""
    if array.nbytes <= _HASHED_BYTES:
        return "bytes", array.dtype.name, array.shape, array.tobytes()
    return "array", array.dtype.name, array.shape, array.strides, array.__array_interface__["data"][0]


def _share_keys(func: ir.Operation, mod: IRModule) -> None:
    """Lets constants of equal parameters name one of them: to MLIR, which does not see the table, the key is the constant."""
    first: dict[Hashable, str] = {}
    for block in graph_blocks(func):
        for op in block.operations:
            array = mod.params.get(op.key) if isinstance(op, Constant) and op.key is not None else None
            if array is not None:
                key = first.setdefault(_contents(array), op.key)
                if key != op.key:
                    op.operation.attributes["value"] = ir.StringAttr.get(key)


def _share_first_results(func: ir.Operation) -> None:
    """Of an operator, and one before it that has its result among others, the latter is enough."""
    for block in graph_blocks(func):
        for op in block.operations:
            if not isinstance(op, Op) or op.first_result_of is None:
                continue
            for user in users_of(op.operation.operands[0]):
                other = user.opview
                if not isinstance(other, OPS[op.first_result_of]) or user.block != block or not user.is_before_in_block(op.operation):
                    continue
                if list(user.operands) == list(op.operation.operands) and other.attrs() == op.attrs():
                    op.operation.results[0].replace_all_uses_with(user.results[0])
                    break


@function_pass(opt_level=1, name="EliminateCommonSubexpr")
def eliminate_common_subexpr(func: ir.Operation, mod: IRModule, ctx: PassContext) -> None:
    """Merges equal operations and equal constants, and operations of which others have the result."""
    _share_keys(func, mod)
    _share_first_results(func)
    run_upstream(func, "cse")
