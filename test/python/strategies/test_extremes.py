"""Shapes at the edge: nothing to add up, rows of billions, buffers that fit on no stack."""

import re

import numpy as np
import pytest
from oracle import values
from support import Const, program, run_program

import relayc
from relayc.dialects.mlir import func, ir, make_context
from relayc.dialects.relay import IRModule, TensorType, build
from relayc.pipelines.emission.index import even_parts, even_runs
from relayc.pipelines.tir.values.buffers import MOST_LOCAL_BYTES


def tir(name, *shapes, **attributes):
    """The tir of one operator on inputs of these shapes."""
    with make_context(), ir.Location.name("test"):
        mod = IRModule(ir.Module.create())
        with ir.InsertionPoint(mod.module.body):
            main = func.FuncOp("main", ([TensorType(shape, "float32").to_mlir() for shape in shapes], []))
        with ir.InsertionPoint(main.add_entry_block()):
            result = build(name, *main.arguments, **attributes)
            func.ReturnOp([result])
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([a.type for a in main.arguments], [result.type]))
    return str(relayc.compile(mod, target=relayc.Target("cpu", mcpu="x86-64-v3", num_threads=1), stop_after="tir").module)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize(("shape", "axis"), [((0, 2, 2), (0, 1, 2)), ((3, 0), (1,)), ((0, 9), (0,))])
def test_a_sum_over_nothing_is_zero(dtype, shape, axis):
    x = values(shape, dtype)
    other = values(x.sum(axis=axis).shape, dtype)
    (found,) = run_program(lambda x, y: [build("add", build("sum", x, axis=axis), y)], [x, other])
    np.testing.assert_array_equal(found, other)


def test_nan_is_a_number_of_a_kernel():
    x = np.ones((2, 3), np.float32)
    mod = program(lambda x, c: [build("add", x, c)], [x, Const(np.array(np.nan, np.float32))])
    assert np.isnan(relayc.compile(mod)["main"](x)).all()


def test_rows_of_billions_have_few_tiles_of_their_own():
    text = tir("nn.conv1d", (1, 8, 2**31), (8, 8, 3), padding=(1,), kernel_size=(3,), channels=8)
    assert len(text.splitlines()) < 5000


@pytest.mark.parametrize("depth", [64, 2**20])
def test_buffers_on_the_stack_fit_there(depth):
    text = tir("nn.attention", (1, 2, 4, depth), (1, 2, 6, depth), (1, 2, 6, depth), scale=1.0)
    sizes = [int(size) * 4 for size in re.findall(r"memref\.alloca\(\).*: memref<(\d+)xf32>", text)]
    assert all(size <= MOST_LOCAL_BYTES for size in sizes)


def test_parts_are_even():
    for extent in range(1, 40):
        for most in range(1, 9):
            parts = even_parts(extent, most)
            assert sum(parts) == extent and max(parts) <= most and max(parts) - min(parts) <= 1 and len(parts) == -(-extent // most)
            assert [size for size, count in even_runs(extent, most) for _ in range(count)] == parts
