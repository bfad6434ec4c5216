"""The sizes of a call from outside, which the program of an entry checks: all that expressions have, and what a call may get wrong."""

import numpy as np
import pytest
import tvm_ffi

from relayc.dialects.mlir import ExecutionEngine, ir
from relayc.pipelines.codegen.packed import add_packed_entries, entry_addresses
from relayc.pipelines.packed_entry import PackedEntry
from relayc.runtime import TensorSpec
from relayc.symbolic import evaluate, maximum, minimum, parse

SHAPE = (
    parse("2*n*m + 3"),
    parse("n*n - m + 40"),
    parse("(5*n + 7) // (m + 1)"),
    minimum(parse("n"), parse("2*m"), 4),
    maximum(parse("n - m"), parse("m - n"), 1),
)


@pytest.fixture(scope="module")
def function():
    """f(x, n, m), which does nothing."""
    entries = {"f": PackedEntry((TensorSpec("x", SHAPE, "float32"),), ("n", "m"), ranges={"m": (1, 9)})}
    with ir.Context() as context, ir.Location.unknown():
        context.load_all_available_dialects()
        module = ir.Module.parse("llvm.func @f(%x: !llvm.ptr, %n: i64, %m: i64) {\n  llvm.return\n}")
        add_packed_entries(module, entries)
        assert module.operation.verify()
        engine = ExecutionEngine(module, opt_level=2)
    (address,) = entry_addresses(engine, entries).values()
    return tvm_ffi.Function.__from_extern_c__(address, keep_alive_object=engine)


def call(function, n, m, other=None):
    shape = [evaluate(d, {"n": n, "m": m}) for d in SHAPE]
    if other is not None:
        shape[other] += 1
    function(tvm_ffi.from_dlpack(np.zeros(shape, np.float32)), n, m)


@pytest.mark.parametrize(("n", "m"), [(0, 1), (1, 1), (3, 2), (2, 9), (7, 5)])
def test_every_dimension_is_what_its_expression_says(function, n, m):
    call(function, n, m)
    for axis, d in enumerate(SHAPE):
        wanted = evaluate(d, {"n": n, "m": m})
        with pytest.raises(ValueError, match=rf"f: dimension {axis} of x: expected .*, {wanted} for .*, found {wanted + 1}$"):
            call(function, n, m, axis)


def test_symbols_are_integers_within_their_bounds(function):
    for m, bound in ((0, "least 1"), (10, "most 9")):
        with pytest.raises(ValueError, match=f"f: m is {m}, expected at {bound}$"):
            call(function, 4, m)
    with pytest.raises(ValueError, match="with a value for n that is no integer"):
        function(tvm_ffi.from_dlpack(np.zeros((1,) * len(SHAPE), np.float32)), 1.0, 1)
