"""Functions of JAX compiled by relayc, compared with what JAX itself computes."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import numpy as np

import relayc
from relayc.pipelines.evaluate.relay import RelayInterpreter


def values(*shapes, seed=0):
    """Arrays of both signs, of which no two rows are alike."""
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=shape).astype(np.float32) for shape in shapes)


def numbers_like(types):
    """Numbers for parameters of the types that nested ShapeDtypeStructs say: positive vectors, which may be variances, and other tensors of
    both signs. The initial numbers of models are not needed: they take longer than all the rest."""
    leaves, form = jax.tree.flatten(types)
    bounds = [(0.3, 1.3) if len(leaf.shape) < 2 else (-0.4, 0.6) for leaf in leaves]
    rng = np.random.default_rng(0)
    return form.unflatten([rng.uniform(*b, leaf.shape).astype(leaf.dtype) for b, leaf in zip(bounds, leaves, strict=True)])


def same(found, wanted, tolerance=2e-5):
    """Checks nested results: structure, dtypes and numbers."""
    found, form = jax.tree.flatten(found)
    wanted, expected = jax.tree.flatten(wanted)
    assert form == expected
    for a, b in zip(found, wanted, strict=True):
        b = np.asarray(b)
        assert a.dtype == b.dtype
        np.testing.assert_allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=tolerance, atol=tolerance)


def agrees(function, *args, open_sizes=None, more=(), tolerance=2e-5):
    """Compiles a function once, and compares its results for the arguments, and for `more` ones of other sizes. Gives the module."""
    imported = relayc.from_jax(function, *args, polymorphic_shapes=open_sizes)
    assert "in_bounds = false" not in str(imported.module)  # starts are clamped, and updates out of bounds dropped
    module = relayc.compile(imported)
    for given in (args, *more):
        same(module(*given), jax.jit(function)(*given), tolerance)
    return module


def interprets(text, calls, wanted):
    """Interprets a program of StableHLO, and compares its result for each call with what numpy gives."""
    module = relayc.from_stablehlo(text)
    assert "in_bounds = false" not in str(module.module)
    run = RelayInterpreter(module)
    for args in calls:
        (found,), expected = run("main", list(args)), np.asarray(wanted(*args))
        same(found.view(expected.dtype) if expected.dtype.kind in "bu" else found, expected)
