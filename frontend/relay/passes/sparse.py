"""Products with weights of many zeros as products with sparse matrices."""

from collections.abc import Mapping, Sequence

import numpy as np

from relayc.dialects.relay.errors import check
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.analysis import free_vars
from relayc.frontend.relay.ast.functor import post_order
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.op.functions import call
from relayc.frontend.relay.passes.operators import name_of, replaced

PARTS = ("data", "indices", "indptr")


def weights_of_dense(function: e.Expr) -> list[str]:
    """The names of the variables that are weights of nn.dense, each once."""
    calls = [node for node in post_order(function) if isinstance(node, e.Call) and name_of(node) == "nn.dense"]
    return list(dict.fromkeys(node.args[1].name_hint for node in calls if isinstance(node.args[1], e.Var)))


def block_sparse(weight: np.ndarray, block: Sequence[int]) -> dict[str, np.ndarray]:
    """A matrix as the parts of one of blocks of rows and columns, of which those are stored that are not 0. Raises RelayError."""
    fits = weight.ndim == 2 and len(block) == 2 and not any(n % b for n, b in zip(weight.shape, block, strict=True))
    check(fits, "block size", f"one that divides a matrix of shape {weight.shape}", tuple(block))
    rows, columns = (n // b for n, b in zip(weight.shape, block, strict=True))
    blocks = weight.reshape(rows, block[0], columns, block[1]).swapaxes(1, 2)
    stored = (blocks != 0).any((2, 3))
    indptr = np.concatenate([[0], stored.sum(1).cumsum()])
    return dict(zip(PARTS, (blocks[stored], np.nonzero(stored)[1].astype(np.int32), indptr.astype(np.int32)), strict=True))


def dense_to_sparse(mod: RelayModule, weight_name: Sequence[str], weight_shape: Sequence[Sequence[int]]) -> RelayModule:
    """nn.dense of weights by their names as nn.sparse_dense of parameters NAME.data, NAME.indices and NAME.indptr.

    Args:
      weight_shape: for each weight the three sizes of its data, that of its indices and that of its indptr.
    """
    parts: dict[str, list[e.Var]] = {}
    for name, (count, rows, columns, indices, indptr) in zip(weight_name, weight_shape, strict=True):
        shapes: Mapping[str, Sequence[int]] = {"data": (count, rows, columns), "indices": (indices,), "indptr": (indptr,)}
        dtypes = dict.fromkeys(PARTS, "int32") | {"data": "float32"}
        parts[name] = [e.Var(f"{name}.{part}", t.TensorType(shapes[part], dtypes[part])) for part in PARTS]

    def change(_: e.Call, new: e.Call) -> e.Expr | None:
        weight = new.args[1] if name_of(new) == "nn.dense" else None
        if not isinstance(weight, e.Var) or weight.name_hint not in parts:
            return None
        return call("nn.sparse_dense", [new.args[0], *parts[weight.name_hint]], span=new.span)

    def with_parameters(function: e.Function) -> e.Expr:
        used, own = {var.vid: var for var in free_vars(function.body)}, {param.vid: param for param in function.params}
        kept = [param for vid, param in own.items() if vid in used]
        return function.replace(params=(*kept, *(var for vid, var in used.items() if vid not in own)))

    return replaced(mod, change).map_functions(with_parameters) if parts else mod
