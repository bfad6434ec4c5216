"""Helpers of the tests of relayc.te."""

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

import relayc
from relayc import te
from relayc.runtime.kernel import Kernel


def compiled(tensors: Sequence[te.Tensor], **options: Any) -> Kernel:
    """The function of some tensors as a kernel."""
    return relayc.compile_kernel(te.create_prim_func(tensors), **options)


def computed(tensors: Sequence[te.Tensor], *arrays: np.ndarray) -> list[np.ndarray]:
    """The results of the function of some tensors."""
    found = compiled(tensors)(*arrays)
    return list(found) if isinstance(found, (tuple, list)) else [found]


def numpy_dtype(name: str) -> np.dtype:
    """A dtype by its name in te."""
    return np.dtype(getattr(ml_dtypes, name, name))


def ir_of(tensors: Sequence[te.Tensor], **options: Any) -> str:
    """The text of the function of some tensors."""
    return str(te.create_prim_func(tensors, **options))
