"""Numerics of attention with the log-sum-exp, and of its derivatives, against numpy in double precision.

A program has both operators: the derivatives are found from the log-sum-exp of the first one. Errors are relative to the largest element.
"""

import numpy as np
import pytest
from attention_reference import Case, derivatives
from symbolic_attention import Symbolic

import relayc
from relayc.dialects.relay import TensorType
from relayc.frontend.converter import ModelBuilder, emit
from relayc.frontend.steps import cast
from relayc.pipelines.context.target import Target
from relayc.symbolic import parse

# As in test_attention; results of 16-bit floats are rounded, and so are the derivatives of the result, which delta is computed from.
TOLERANCE = {"float32": 1e-5, "float64": 1e-13, "float16": 3e-3, "bfloat16": 2e-2}

TILES = [
    Case((1, 1, 1, 16, 16, 16, 16)),
    Case((1, 2, 2, 64, 64, 64, 64)),
    Case((1, 2, 2, 33, 12, 32, 32)),
    Case((1, 2, 2, 32, 13, 80, 48)),
    Case((1, 2, 2, 31, 301, 24, 128)),
    Case((1, 1, 1, 65, 1100, 64, 64)),
]
HEADS = [
    Case((2, 4, 2, 33, 7, 12, 20)),
    Case((1, 6, 1, 40, 50, 16, 16)),
    Case((1, 2, 2, 17, 13, 5, 7)),
]
FEW_QUERIES = [
    Case((1, 1, 1, 1, 9, 8, 8)),
    Case((1, 4, 1, 1, 40, 16, 16)),
    Case((1, 8, 2, 3, 130, 16, 24)),
    Case((1, 2, 2, 5, 3, 3, 5)),
]
CAUSAL = {"is_causal": True, "empty_to_zero": True}
MASKS = [
    Case((1, 3, 3, 49, 49, 32, 32), mask=(1, 3, 49, 49)),
    Case((2, 4, 2, 33, 301, 80, 40), mask=(2, 1, 33, 301)),
    Case((1, 1, 1, 9, 1100, 128, 128), mask=(1, 1, 1, 1100)),
    Case((2, 4, 2, 33, 61, 12, 20), mask=(33, 61), mask_dtype="bool"),
    Case((1, 2, 2, 70, 3, 12, 20), mask=(70, 3), mask_dtype="bool", attributes={"empty_to_zero": True}),
    *(Case((1, 2, 2, 70, 150, 32, 32), attributes={**CAUSAL, "causal_offset": c}) for c in (0, 5, 90, 200, -30)),
    Case((1, 2, 2, 70, 259, 32, 32), mask=(1, 1, 70, 259), attributes=CAUSAL),
]
HALVES = [Case((1, 2, 2, 33, 70, 40, 20), mask=(33, 70), dtype=dtype) for dtype in ("bfloat16", "float16")]
DOUBLES = [Case((1, 2, 2, 19, 60, 20, 20), mask=(19, 60), dtype="float64")]


def both(case, query, key, value, grad, *mask):
    """Log-sum-exp, result and derivatives."""
    scale, wide = case.shape[5] ** -0.5, "float64" if case.dtype == "float64" else "float32"
    result, lse = emit("nn.attention_lse", query, key, value, *mask, scale=scale, **case.attributes)
    delta = emit("sum", emit("multiply", cast(result, wide), cast(grad, wide)), axis=(3,))
    causal = {name: given for name, given in case.attributes.items() if "causal" in name}
    return lse, result, *emit("nn.attention_grad", query, key, value, grad, lse, delta, *mask, scale=scale, **causal)


def program(cases, types):
    """The module of `both` of some cases, with arguments of the given types for each."""
    named = {f"x{i}_{k}": t for i, own in enumerate(types) for k, t in enumerate(own)}
    with ModelBuilder(named) as builder:
        found = [both(case, *(builder.inputs[f"x{i}_{k}"] for k in range(len(types[i])))) for i, case in enumerate(cases)]
        return builder.finish([(f"y{i}_{k}", t) for i, own in enumerate(found) for k, t in enumerate(own)])


def with_grad(case):
    """Query, key, value, grad, mask."""
    query, key, value, *mask = case.arrays()
    grad = np.random.default_rng(7).standard_normal((*query.shape[:3], value.shape[3])).astype(query.dtype)
    return [query, key, value, grad, *mask]


def compare(case, grad, found):
    expected = derivatives(case, grad.astype(np.float64))
    # Derivatives of the scores of a query sum to 0: those of query and key may be small beside their terms.
    largest = max(np.abs(b).max(initial=1) for b in expected[2:])
    for name, a, b in zip(("lse", "result", "d_query", "d_key", "d_value"), found, expected, strict=True):
        assert a.shape == b.shape, name
        bound = TOLERANCE[case.dtype] * (largest if name.startswith("d_") else np.abs(b[np.isfinite(b)]).max(initial=1))
        np.testing.assert_allclose(a.astype(np.float64), b, rtol=0, atol=bound, err_msg=f"{name} of {case}")


def check(cases, **options):
    arrays = [with_grad(case) for case in cases]

    flat = [a for own in arrays for a in own]
    module = relayc.compile(program(cases, [[TensorType.of_array(a) for a in own] for own in arrays]), **options)
    found = module["main"](*flat)
    for i, (case, own) in enumerate(zip(cases, arrays, strict=True)):
        compare(case, own[3], found[5 * i : 5 * i + 5])
    return module


@pytest.mark.parametrize(
    "cases", [TILES, HEADS, FEW_QUERIES, MASKS, HALVES, DOUBLES], ids=["tiles", "heads", "few", "masks", "halves", "doubles"]
)
def test_agrees_with_numpy(cases):
    module = check(cases)
    schedules = [kernel.schedule.split()[0] for kernel in module.kernels if any("attention" in op for op in kernel.ops)]
    assert set(schedules) <= {"attention_columns", "attention_rows", "attention_tiles", "attention_gradient"}
    assert "attention_gradient" in schedules


@pytest.mark.parametrize("width", [16, 32])
def test_vectors_of_other_widths(width):
    check([TILES[3], HEADS[0], FEW_QUERIES[2], MASKS[1], MASKS[10]], target=Target("cpu", vector_bytes=width, num_vector_registers=16))


def test_on_matrix_tiles():
    """The log-sum-exp of weights that are rounded to bfloat16 is of the weights before."""
    cases = [Case((1, 2, 2, 33, 70, 32, 16), dtype="bfloat16"), Case((1, 2, 2, 40, 40, 64, 64), attributes=CAUSAL, dtype="bfloat16")]
    module = check(cases, target=Target("cpu", mcpu="sapphirerapids", emulate=True, num_threads=2))
    assert sum(kernel.schedule.startswith("attention_tiles") for kernel in module.kernels) == 2


def test_threads_do_not_change_a_bit():
    arrays = with_grad(TILES[5])
    module = relayc.compile(program([TILES[5]], [[TensorType.of_array(a) for a in arrays]]))
    results = []
    for module.num_threads in (1, 2):
        results.append([np.array(r) for r in module["main"](*arrays)])
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


def test_nan_stays_in_its_row():
    """The derivatives of the key and of the value are sums over all queries."""
    case = Case((1, 1, 1, 20, 40, 8, 8))
    arrays = with_grad(case)
    arrays[0][0, 0, 5, 0] = np.nan
    lse, result, d_query, _, _ = relayc.compile(program([case], [[TensorType.of_array(a) for a in arrays]]))["main"](*arrays)
    for found in (lse, result, d_query):
        assert np.isnan(found[0, 0, 5]).all() and not np.isnan(np.delete(found, 5, 2)).any()


N_KEYS = [{"n": n, "m": m} for n in (0, 1, 2, 15, 16, 17, 33, 64, 70) for m in (0, 1, 11, 12, 13, 24, 31, 150)]
SYMBOLIC = {
    "self": Symbolic(("b", "3", "3", "n", "n", "32", "32"), [{"b": 1 + n % 2, "n": n} for n in (0, 1, 7, 16, 17, 40, 97, 150)]),
    "causal": Symbolic(("1", "4", "2", "n", "m", "16", "24"), N_KEYS, attributes=CAUSAL),
    "mask": Symbolic(("1", "2", "2", "n", "m", "16", "12"), N_KEYS, mask=("1", "1", "n", "m"), attributes={"empty_to_zero": True}),
    "queries": Symbolic(("1", "2", "2", "40", "m", "16", "16"), [{"m": m} for m in (1, 12, 30, 150)]),
    "keys": Symbolic(("1", "2", "2", "n", "40", "16", "16"), [{"n": n} for n in (1, 15, 16, 50)], dtype="bfloat16"),
}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_sizes(name):
    check_symbolic(SYMBOLIC[name])


def test_fewer_and_more_queries_than_a_vector():
    check_symbolic(Symbolic(("1", "1", "1", "n", "5", "8", "8"), [{"n": n} for n in (0, 1, 3, 8, 15, 16, 17, 40)]))


def check_symbolic(symbolic):
    """One program for all sizes."""
    batch, heads, groups, rows, keys, depth, width = map(parse, symbolic.shape)
    shapes = [(batch, heads, rows, depth), (batch, groups, keys, depth), (batch, groups, keys, width), (batch, heads, rows, width)]
    shapes += [tuple(map(parse, symbolic.mask))] if symbolic.mask is not None else []
    module = relayc.compile(program([symbolic.at(symbolic.sizes[-1])], [[TensorType(shape, symbolic.dtype) for shape in shapes]]))
    for sizes in symbolic.sizes:
        case = symbolic.at(sizes)
        arrays = with_grad(case)
        compare(case, arrays[3], module["main"](*arrays))
