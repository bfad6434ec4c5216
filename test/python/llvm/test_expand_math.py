"""Mathematical functions: accuracy against wider arithmetic, special values, scalars and vectors, small floats."""

import ml_dtypes
import numpy as np
import pytest
from accuracy import SIZE, check, erf, samples
from jitted import call, compile_text, elementwise

from relayc.dialects.relay.module import IRModule
from relayc.pipelines.llvm.expand_math import expand_math

DTYPES = {"f32": np.float32, "f64": np.float64}


# Function, and the largest error in ulp that the documentation of expand_math states, for f32 and f64. Outside the ranges of EXACT the
# references are more accurate than this by far: 80-bit floats, or for erf the C library in 64 bits.
FUNCTIONS = {
    "exp": (np.exp, 1, 1.5),
    "exp2": (np.exp2, 1, 1.5),
    "expm1": (np.expm1, 2, 3),
    "log": (np.log, 2, 2),
    "log2": (np.log2, 2, 2),
    "log10": (np.log10, 3, 3),
    "log1p": (np.log1p, 4, 4),
    "tanh": (np.tanh, 6, 4),
    "erf": (erf, 6, 1),
    "sin": (np.sin, 2, 1),
    "cos": (np.cos, 2, 1),
    "tan": (np.tan, 4, 1),
    "asin": (np.arcsin, 3, 1),
    "acos": (np.arccos, 3, 1),
    "atan": (np.arctan, 3, 1),
    "sinh": (np.sinh, 1, 2),
    "cosh": (np.cosh, 1, 2),
    "asinh": (np.arcsinh, 1, 2),
    "acosh": (np.arccosh, 1, 2),
    "atanh": (np.arctanh, 1, 2),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 2, 2),
}
FORMS = [("f32", 0), ("f32", 1), ("f32", 4), ("f32", 8), ("f32", 16), ("f64", 0), ("f64", 4)]
# Without fused multiply-add too.
FORMS = [*((*form, "native") for form in FORMS), ("f32", 8, "x86-64"), ("f64", 4, "x86-64")]


@pytest.fixture(scope="module", params=FORMS, ids=str)
def compiled(request):
    element, lanes, mcpu = request.param
    text = [elementwise(f"k_{name}", f"%y = math.{name} %x0 : TYPE", element, lanes, SIZE) for name in FUNCTIONS]
    return compile_text("\n".join(text), mcpu=mcpu), element, mcpu


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_as_accurate_as_documented(compiled, name):
    engine, element, mcpu = compiled
    reference, single_limit, double_limit = FUNCTIONS[name]
    limit = single_limit if element == "f32" else double_limit
    x = samples(DTYPES[element])
    if element == "f32" and name in ("sin", "cos", "tan"):
        x = x[(np.abs(x) < (2.0**45 if mcpu == "native" else 2.0**7)) | ~np.isfinite(x)]
        x = np.resize(x, SIZE)
    y = np.empty_like(x)
    call(engine, f"k_{name}", x, y)
    with np.errstate(all="ignore"):
        expected = reference(x.astype(np.longdouble))
    check(y, expected, limit if mcpu == "native" else 1.1 * limit)


def test_exp_of_minus_infinity_is_zero_and_of_large_numbers_infinity():
    x = np.array([-np.inf, -1e30, 1e30, np.inf, 0, -0.0, 100, -100], np.float32)
    y = np.empty_like(x)
    call(compile_text(elementwise("k", "%y = math.exp %x0 : TYPE", "f32", 8, 8)), "k", x, y)
    np.testing.assert_array_equal(y, np.array([0, 0, np.inf, np.inf, 1, 1, np.inf, 0], np.float32))


@pytest.mark.parametrize("name", ["tanh", "erf", "sin", "cos"])
def test_bounded_functions_stay_in_their_bounds(name):
    x = np.concatenate([np.linspace(-30, 30, SIZE - 6), [1e20, -1e20, 3e38, -3e38, 1e15, -1e15]]).astype(np.float32)
    y = np.empty_like(x)
    call(compile_text(elementwise("k", f"%y = math.{name} %x0 : TYPE", "f32", 8, SIZE)), "k", x, y)
    assert np.abs(y).max() <= 1


@pytest.mark.parametrize(("element", "lanes"), [("f32", 0), ("f32", 8), ("f64", 4)])
def test_powers(element, lanes):
    dtype = DTYPES[element]
    rng = np.random.default_rng(1)
    special = np.array([0, -0.0, 1, -1, 2, -2, 0.5, 3, -3, np.inf, -np.inf, np.nan, 1e10, 2.5], dtype)
    x, y = (a.ravel() for a in np.meshgrid(special, special))
    x = np.concatenate([x, rng.uniform(-9, 9, 4096).astype(dtype), np.exp(rng.uniform(-20, 20, 4096)).astype(dtype)])
    y = np.concatenate([y, rng.integers(-9, 9, 4096).astype(dtype), rng.uniform(-4, 4, 4096).astype(dtype)])
    x, y = np.resize(x, SIZE), np.resize(y, SIZE)
    z = np.empty_like(x)
    call(compile_text(elementwise("k", "%y = math.powf %x0, %x1 : TYPE", element, lanes, SIZE, 2)), "k", x, y, z)
    with np.errstate(all="ignore"):
        check(z, np.power(x.astype(np.longdouble), y.astype(np.longdouble)), 1)


@pytest.mark.parametrize("exponent", [1.0, 2.0, 3.0, 4.0, 0.5, -0.5, -1.0, -2.0])
def test_constant_powers(exponent):
    x = np.random.default_rng(2).uniform(0.01, 9, SIZE).astype(np.float32)
    y = np.empty_like(x)
    body = f"%e = arith.constant dense<{exponent}> : TYPE\n%y = math.powf %x0, %e : TYPE"
    call(compile_text(elementwise("k", body, "f32", 8, SIZE)), "k", x, y)
    check(y, x.astype(np.longdouble) ** exponent, 2)


@pytest.mark.parametrize("lanes", [0, 8])
@pytest.mark.parametrize(("op", "reference"), [("maximumf", np.maximum), ("minimumf", np.minimum)])
def test_extrema_pass_nan_on(op, reference, lanes):
    special = np.array([0, 1, -1, 2.5, np.inf, -np.inf, np.nan, 7], np.float32)
    x, y = (np.ascontiguousarray(a.ravel()) for a in np.meshgrid(special, special))
    results = []
    for bodies in (f"%y = arith.{op} %x0, %x1 : TYPE", "%c = arith.constant CONST : TYPE\n%y = arith." + op + " %x0, %c : TYPE"):
        z = np.empty_like(x)
        text = bodies.replace("CONST", "dense<1.0>" if lanes else "1.0")
        call(compile_text(elementwise("k", text, "f32", lanes, len(x), 2)), "k", x, y, z)
        results.append(z)
    np.testing.assert_array_equal(results[0], reference(x, y))
    np.testing.assert_array_equal(results[1], reference(x, np.float32(1)))


@pytest.mark.parametrize(("element", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
@pytest.mark.parametrize("lanes", [0, 8])
def test_small_floats_are_computed_in_single_precision(element, dtype, lanes):
    """One rounding at the end: the result is that of f32 arithmetic rounded once, up to ties."""
    x = np.random.default_rng(3).uniform(-3, 3, 4096).astype(dtype)
    bodies = {
        "exp": ("%y = math.exp %x0 : TYPE", np.exp),
        "tanh": ("%y = math.tanh %x0 : TYPE", np.tanh),
        "floor": ("%y = math.floor %x0 : TYPE", np.floor),
        "add": ("%y = arith.addf %x0, %x0 : TYPE", lambda v: v + v),
        "divide": ("%y = arith.divf %x0, %x0 : TYPE", lambda v: v / v),
        "maximum": ("%z = arith.negf %x0 : TYPE\n%y = arith.maximumf %x0, %z : TYPE", np.abs),
    }
    engine = compile_text("\n".join(elementwise(f"k_{n}", body, element, lanes, 4096) for n, (body, _) in bodies.items()))
    for name, (_, reference) in bodies.items():
        y = np.empty_like(x)
        call(engine, f"k_{name}", x, y)
        expected = reference(x.astype(np.float64))
        # Half a unit in the last place of the type, and the error of f32.
        tolerance = np.abs(expected) * (float(ml_dtypes.finfo(dtype).eps) / 2 + 1e-6)
        assert np.all(np.abs(y.astype(np.float64) - expected) <= tolerance), name


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_nothing_is_left_of_a_function_of_small_floats(element):
    module = IRModule.parse(f"func.func @f(%x: {element}) -> {element} {{\n%y = math.exp %x : {element}\nreturn %y : {element}\n}}")
    expand_math(module.module)
    assert "math.exp" not in str(module)


@pytest.mark.parametrize("lanes", [0, 8])
@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("cbrt", np.cbrt),
        ("round", lambda x: np.trunc(x + np.copysign(0.5, x))),
        ("roundeven", np.rint),
        ("ceil", np.ceil),
        ("trunc", np.trunc),
        ("sqrt", np.sqrt),
        ("absf", np.abs),
    ],
)
def test_other_functions_agree_with_the_reference(name, reference, lanes):
    x = np.linspace(-5, 5, 4096).astype(np.float32)
    y = np.empty_like(x)
    call(compile_text(elementwise("k", f"%y = math.{name} %x0 : TYPE", "f32", lanes, 4096)), "k", x, y)
    with np.errstate(all="ignore"):
        check(y, reference(x.astype(np.longdouble)), 4)
