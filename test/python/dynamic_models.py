"""Arguments of the models of test/models/dynamic."""

from collections.abc import Mapping

import numpy as np

from relayc.runtime.artifact import numpy_dtype
from relayc.runtime.module import Module


def arguments(module: Module, sizes: Mapping[str, int], seed: int = 0) -> dict[str, np.ndarray]:
    """Normal numbers; tokens and lengths below 10, masks that leave out the last tokens of all but the first sequence."""
    rng, found = np.random.default_rng(seed), {}
    for spec in module.inputs:
        shape = spec.at(sizes)
        if spec.dtype.startswith("float"):
            found[spec.name] = rng.standard_normal(shape).astype(numpy_dtype(spec.dtype))
        elif spec.name == "attention_mask":
            found[spec.name] = (np.arange(shape[1]) < np.maximum(shape[1] - np.arange(shape[0])[:, None], 1)).astype(np.int64)
        else:
            found[spec.name] = rng.integers(0, 10, shape)
    return found
