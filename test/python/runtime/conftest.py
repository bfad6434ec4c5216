"""Fixtures of the runtime tests: a program made without the compiler, and arguments of it."""

import ml_dtypes
import numpy as np
import pytest
from handmade import build_artifact

from relayc.runtime import Module


@pytest.fixture(scope="session")
def module() -> Module:
    return Module(build_artifact())


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((2, 3), dtype=np.float32)


@pytest.fixture
def n() -> np.ndarray:
    return np.arange(4).reshape(1, 4).astype(ml_dtypes.bfloat16)
