"""Changes of functions by the values of their parameters: nn.dense of weights of many zeros as nn.sparse_dense."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from relayc.frontend.relay.ast import Function, RelayModule, ndarray
from relayc.frontend.relay.passes.sparse import block_sparse, dense_to_sparse, weights_of_dense


def _bsr_dense(
    func: Function, params: dict[str, Any], blocksize: Sequence[int], sparsity_threshold: float
) -> tuple[Function, dict[str, Any]]:
    """A function whose products have sparse weights of blocks, where a share of zeros is reached, and its parameters.

    `params` is changed: NAME becomes NAME.data, NAME.indices and NAME.indptr. Raises RelayError if blocks do not divide a weight.
    """
    shapes = {}
    for name in weights_of_dense(func):
        weight = None if name not in params else params[name].numpy() if hasattr(params[name], "numpy") else np.asarray(params[name])
        if weight is None or weight.dtype != np.float32 or np.mean(weight == 0) < sparsity_threshold:
            continue
        parts = block_sparse(weight, blocksize)
        del params[name]
        params.update({f"{name}.{part}": ndarray(array) for part, array in parts.items()})
        shapes[name] = [n for array in parts.values() for n in array.shape]
    mod = dense_to_sparse(RelayModule.from_expr(func), list(shapes), list(shapes.values()))
    return mod["main"], params


bsr_dense = SimpleNamespace(convert=_bsr_dense)
