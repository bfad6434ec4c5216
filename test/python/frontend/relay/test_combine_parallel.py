"""CombineParallel... of the Relay language: branches of arguments, and what follows all of them, become one."""

import numpy as np
import pytest
from oracle import values

from relayc import relay

transform = relay.transform


def operators(function):
    found = []
    relay.analysis.post_order_visit(function, lambda e: found.append(e.op.name) if isinstance(e, relay.Call) else None)
    return found


def check(program, combine, wanted):
    """A program means the same after a pass, and has some operators so often then."""
    mod = relay.IRModule.from_expr(program)
    found = combine(mod)["main"]
    counts = {name: operators(found).count(name) for name in wanted}
    assert counts == wanted, found
    data = [values(tuple(p.type_annotation.shape), seed=i) for i, p in enumerate(program.params)]
    results = zip(*(relay.create_executor("graph").evaluate(each)(*data) for each in (program, found)), strict=True)
    for expected, result in results:
        np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)


def var(name, *shape):
    return relay.var(name, shape=shape)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_convolutions(layout):
    """The third has other windows; of the rest, a factor for each channel and relu are combined, the sum that only one has is not."""
    is_first, kernels = layout == "NCHW", "OIHW" if layout == "NCHW" else "HWIO"
    x = var("x", 1, 3, 6, 5) if is_first else var("x", 1, 6, 5, 3)
    weights = [var(f"w{i}", *((n, 3, k, k) if is_first else (k, k, 3, n))) for i, (n, k) in enumerate(((4, 1), (2, 1), (5, 3)))]
    scales = [var(f"s{i}", *((n, 1, 1) if is_first else (n,))) for i, n in enumerate((4, 2))]
    first, second, third = (relay.nn.conv2d(x, w, data_layout=layout, kernel_layout=kernels) for w in weights)
    ends = [relay.nn.relu(branch * scale) for branch, scale in zip((first, second), scales, strict=True)]
    program = relay.Function([x, *weights, *scales], relay.Tuple([ends[0], ends[1] + relay.const(1.0), third]))
    check(program, transform.CombineParallelConv2D(2), {"nn.conv2d": 2, "multiply": 1, "nn.relu": 1, "add": 1, "strided_slice": 2})
    check(program, transform.CombineParallelConv2D(3), {"nn.conv2d": 3, "multiply": 2})


def test_products():
    """A number for all channels is none for each: it stays behind."""
    x, weights = var("x", 2, 4), [var(f"w{i}", n, 4) for i, n in enumerate((3, 1, 5))]
    biases = [var(f"b{i}", *shape) for i, shape in enumerate(((3,), (1, 1), (5,)))]
    factors = [var(f"f{i}", 1) for i in range(3)]
    ends = [(relay.nn.dense(x, w) + b) * f for w, b, f in zip(weights, biases, factors, strict=True)]
    program = relay.Function([x, *weights, *biases, *factors], relay.Tuple(ends))
    check(program, transform.CombineParallelDense(), {"nn.dense": 1, "strided_slice": 3, "multiply": 3})


@pytest.mark.parametrize("transposed", [True, False])
def test_products_of_batches(transposed):
    x = var("x", 2, 3, 4)
    weights = [var(f"w{i}", 2, *((n, 4) if transposed else (4, n))) for i, n in enumerate((3, 2))]
    biases = [var(f"b{i}", n) for i, n in enumerate((3, 2))]
    ends = [relay.nn.batch_matmul(x, w, transpose_b=transposed) - b for w, b in zip(weights, biases, strict=True)]
    program = relay.Function([x, *weights, *biases], relay.Tuple(ends))
    check(program, transform.CombineParallelBatchMatmul(2), {"nn.batch_matmul": 1, "subtract": 1, "strided_slice": 2})


def test_branches_that_something_else_reads():
    """What follows is combined only where nothing else reads the branch; weights that the program computes are not combined."""
    x, weights = var("x", 2, 4), [var(f"w{i}", 3, 4) for i in range(3)]
    first, second = (relay.nn.dense(x, w) for w in weights[:2])
    third = relay.nn.dense(x, relay.exp(weights[2]))
    program = relay.Function([x, *weights], relay.Tuple([first, relay.nn.relu(first), relay.nn.relu(second), third]))
    check(program, transform.CombineParallelDense(2), {"nn.dense": 2, "nn.relu": 2, "strided_slice": 2})
