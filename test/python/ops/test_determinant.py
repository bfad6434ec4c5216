"""Numerics of determinants, against numpy in float64."""

import numpy as np
import pytest
from oracle import values
from support import program, run

import relayc
from relayc.dialects.relay import build


@pytest.mark.parametrize("shape", [(2, 2), (3, 3, 3), (5, 1, 1), (2, 3, 4, 4), (2, 9, 9), (4, 0, 0), (0, 3, 3), (0, 5, 5)])
def test_determinants(shape):
    x = values(shape)
    # Elements of size 1: products of rounded elements, of which some cancel.
    np.testing.assert_allclose(run("det", x), np.linalg.det(x.astype("float64")), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_dtypes(dtype):
    x = values((3, 4, 4), dtype)
    found = run("det", x)
    assert found.dtype == x.dtype
    tolerance = {"float16": 2e-3, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(found.astype("float64"), np.linalg.det(x.astype("float64")), rtol=tolerance, atol=tolerance)


def test_pivots_of_zero():
    matrices = np.zeros((3, 4, 4), np.float32)
    matrices[0] = np.eye(4)[[1, 0, 3, 2]]
    matrices[1] = np.eye(4)[[3, 0, 1, 2]]
    matrices[2, :, 0] = 1  # of rank 1
    np.testing.assert_array_equal(run("det", matrices), [1, -1, 0])


@pytest.mark.parametrize(("size", "has_loops"), [(3, False), (4, True)])
def test_small_determinants_are_expanded(size, has_loops):
    mod = program(lambda x: [build("det", x)], [np.zeros((2, size, size), np.float32)])
    assert ("scf.for" in str(relayc.compile(mod, stop_after="te"))) == has_loops
