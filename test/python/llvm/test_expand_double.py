"""Mathematical functions of f64 without a C library, and exact remainders: accuracy against 80-bit floats and the C library."""

import math

import numpy as np
import pytest
from accuracy import SIZE, check, erf, samples
from jitted import call, compile_text, elementwise

from relayc.dialects.mlir import ir
from relayc.pipelines.llvm.expand_double import EXPANSIONS
from relayc.pipelines.llvm.expand_math import expand_math
from relayc.pipelines.llvm.expand_remainder import expand_remainders

# Function, and the largest error in ulp that the documentation of expand_double states.
FUNCTIONS = {
    "sin": (np.sin, 2),
    "cos": (np.cos, 2),
    "tan": (np.tan, 3),
    "asin": (np.arcsin, 2),
    "acos": (np.arccos, 2),
    "atan": (np.arctan, 2),
    "sinh": (np.sinh, 3),
    "cosh": (np.cosh, 3),
    "asinh": (np.arcsinh, 3),
    "acosh": (np.arccosh, 3),
    "atanh": (np.arctanh, 3),
    "erf": (erf, 2),
}


def expand(module: ir.Module) -> None:
    expand_math(module, EXPANSIONS)
    assert "math.powf" not in str(module)
    assert not any(f"math.{name} " in str(module) for name in FUNCTIONS)


@pytest.fixture(scope="module", params=[0, 2])
def compiled(request):
    text = [elementwise(f"k_{name}", f"%y = math.{name} %x0 : TYPE", "f64", request.param, SIZE) for name in FUNCTIONS]
    return compile_text("\n".join(text), prepare=expand)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_as_accurate_as_documented(compiled, name):
    x = samples(np.float64)
    if name in ("sin", "cos", "tan"):
        x = np.resize(x[(np.abs(x) < 2.0**45) | ~np.isfinite(x)], SIZE)
    y = np.empty_like(x)
    call(compiled, f"k_{name}", x, y)
    reference, limit = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        check(y, reference(x.astype(np.longdouble)), limit)


@pytest.mark.parametrize("lanes", [0, 2])
def test_powers(lanes):
    rng = np.random.default_rng(1)
    special = np.array([0, -0.0, 1, -1, 2, -2, 0.5, 3, -3, np.inf, -np.inf, np.nan, 1e10, 2.5, 1e-300, 1e300, 1 + 2**-52, 1e17])
    x, y = (a.ravel() for a in np.meshgrid(special, special))
    positive = np.exp(rng.uniform(-700, 700, 16384))
    x = np.concatenate([x, rng.uniform(-9, 9, 8192), np.exp(rng.uniform(-20, 20, 8192)), positive])
    y = np.concatenate([y, rng.integers(-99, 99, 8192), rng.uniform(-40, 40, 8192), rng.uniform(-1, 1, 16384) * 700 / np.log(positive)])
    x, y = np.resize(x, SIZE), np.resize(y, SIZE)
    z = np.empty_like(x)
    call(compile_text(elementwise("k", "%y = math.powf %x0, %x1 : TYPE", "f64", lanes, SIZE, 2), prepare=expand), "k", x, y, z)
    with np.errstate(all="ignore"):
        check(z, np.power(x.astype(np.longdouble), y.astype(np.longdouble)), 2)


@pytest.mark.parametrize("lanes", [0, 4])
@pytest.mark.parametrize("element", ["f32", "f64"])
def test_remainders_are_exact(element, lanes):
    dtype = {"f32": np.float32, "f64": np.float64}[element]
    x = samples(dtype)
    y = np.random.default_rng(3).permutation(x)
    y[: SIZE // 4] = x[: SIZE // 4] / dtype(3)  # whole multiples, nearly
    z = np.empty_like(x)
    text = elementwise("k", "%y = arith.remf %x0, %x1 : TYPE", element, lanes, SIZE, 2)
    call(compile_text(text, prepare=expand_remainders), "k", x, y, z)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(z, np.fmod(x, y))
    zeros = (z == 0) & np.isfinite(x)
    np.testing.assert_array_equal(np.signbit(z[zeros]), np.signbit(x[zeros]))


def test_remainders_of_small_floats():
    # Every f16 against some, by the remainders of the same numbers in f64, which are f16 again.
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    for divisor in (1.0, 3.0, 0.1, 6e-8, 65504.0):
        y = np.full_like(x, divisor)
        z = np.empty_like(x)
        call(compile_text(elementwise("k", "%y = arith.remf %x0, %x1 : TYPE", "f16", 0, SIZE, 2), prepare=expand_remainders), "k", x, y, z)
        with np.errstate(all="ignore"):
            expected = [math.fmod(a, b) if math.isfinite(a) else math.nan for a, b in zip(x.astype(float), y.astype(float), strict=True)]
        np.testing.assert_array_equal(z, np.array(expected).astype(np.float16))
