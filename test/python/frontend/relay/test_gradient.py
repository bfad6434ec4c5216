"""Gradients against differences of the function, computed in float64."""

import numpy as np
import pytest

from relayc import relay
from relayc.dialects.relay.errors import RelayError

STEP = 1e-5
CLOSE = {"rtol": 1e-5, "atol": 1e-6}
"""Differences by a step of 1e-5 on both sides are off by its square times the third derivative, and by 1e-16 / 1e-5."""


def check(expr, *arrays):
    """Compares the gradients of an expression of variables x0, x1, ... with differences."""
    variables = {v.name_hint: v for v in relay.free_vars(expr)}
    params = [variables[f"x{i}"] for i in range(len(arrays))]
    function = relay.Function(params, expr)
    run = relay.create_executor("graph").evaluate(function)
    result, grads = relay.create_executor("graph").evaluate(relay.transform.gradient(function))(*arrays)
    np.testing.assert_allclose(result.numpy(), run(*arrays).numpy())
    rng = np.random.default_rng(5)
    for array, grad in zip(arrays, grads, strict=True):
        places = list(np.ndindex(*array.shape))
        for place in [places[i] for i in rng.permutation(len(places))[:4]]:
            sums, before = [], array[place]
            for step in (STEP, -STEP):
                array[place] = before + step
                sums.append(run(*arrays).numpy().sum())
            array[place] = before
            np.testing.assert_allclose(grad.numpy()[place], (sums[0] - sums[1]) / (2 * STEP), **CLOSE)


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).uniform(0.3, 0.9, shape)


def of(*shapes):
    return [relay.var(f"x{i}", shape=shape, dtype="float64") for i, shape in enumerate(shapes)]


def test_elementwise_operators():
    x, y = of((2, 3), (3,))
    names = ("exp", "log", "log2", "sqrt", "rsqrt", "tanh", "sigmoid", "sin", "tan", "atan", "acos", "erf", "abs", "sinh", "asinh", "atanh")
    terms = [relay.op.call(name, x) * y for name in names]
    terms += [relay.op.call(name, x, y) for name in ("add", "subtract", "multiply", "divide", "power", "maximum", "minimum")]
    terms.append(relay.acosh(x + relay.const(2.0, "float64")))
    clipped = relay.clip(x, 0.4, 0.7) + relay.nn.leaky_relu(x - y, 0.3) + relay.nn.relu(y - x)
    total = relay.where(relay.less(x, y), x * x, clipped)
    for weight, term in enumerate(terms, 1):
        total = total + relay.const(float(weight), "float64") * term
    check(total, drawn(2, 3), drawn(3, seed=1))


def test_shapes_and_slices():
    x, y = of((2, 3, 4), (2, 3, 4))
    joined = relay.concatenate([x, relay.transpose(relay.reshape(y, (4, 3, 2)), (2, 1, 0))], axis=-1)
    parts = relay.split(joined, 4, axis=2)
    sliced = relay.strided_slice(parts[0] * parts[2], begin=[0, 2, 0], end=[2, -5, 2], strides=[1, -1, 1])
    stacked = relay.stack([relay.squeeze(relay.expand_dims(sliced, 0), axis=[0]), sliced * sliced], axis=1)
    taken = relay.take(y, relay.const([[0, 2], [2, 1]]), axis=1)
    every_second = relay.strided_slice(x, begin=[0, 0, 0], end=[2, 3, 4], strides=[1, 2, 2])
    total = relay.sum(relay.exp(stacked)) + relay.sum(taken * taken) + relay.sum(relay.exp(every_second))
    check(total + relay.sum(relay.tanh(relay.broadcast_to(relay.sum(x, axis=1), (5, 2, 4)))), drawn(2, 3, 4), drawn(2, 3, 4, seed=1))


def test_reductions():
    x = of((3, 4))[0]
    total = relay.sum(x * x, axis=1) * relay.max(x, axis=1) + relay.mean(relay.exp(x), axis=[-1]) * relay.min(x, axis=0, exclude=True)
    check(total + relay.variance(x, axis=1) + relay.sum(relay.nn.softmax(x) * relay.nn.log_softmax(x * x), axis=1), drawn(3, 4))


def test_products():
    x, w, b = of((2, 5), (3, 5), (3,))
    y = relay.nn.bias_add(relay.nn.dense(x, w), b)
    check(relay.exp(relay.nn.matmul(y, y, transpose_a=True)), drawn(2, 5), drawn(3, 5, seed=1), drawn(3, seed=2))
    a, c = of((2, 3, 4), (2, 4, 5))
    first = relay.nn.batch_matmul(a, c, transpose_b=False)
    second = relay.nn.batch_matmul(first, a, transpose_a=True, transpose_b=False)
    check(relay.nn.batch_matmul(second, second), drawn(2, 3, 4), drawn(2, 4, 5, seed=1))


@pytest.mark.parametrize("attrs", [{}, {"strides": (2, 1), "padding": (1, 0), "dilation": (1, 2)}])
def test_convolutions(attrs):
    x, w = of((2, 3, 6, 5), (4, 3, 3, 2))
    y = relay.nn.conv2d(x, w, **attrs)
    check(relay.nn.global_avg_pool2d(y * y), drawn(2, 3, 6, 5), drawn(4, 3, 3, 2, seed=1))


@pytest.mark.parametrize(("groups", "channels", "out"), [(2, 4, 6), (3, 3, 6)])
def test_grouped_convolutions_in_other_layouts(groups, channels, out):
    """The second one is depthwise."""
    layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
    x, w = of((2, 6, 5, channels), (3, 2, channels // groups, out))
    y = relay.nn.conv2d(x, w, strides=(2, 1), padding=(1, 0), groups=groups, channels=out, kernel_size=(3, 2), **layouts)
    check(relay.sum(y * y, axis=(1, 2)), drawn(2, 6, 5, channels), drawn(3, 2, channels // groups, out, seed=1))


@pytest.mark.parametrize(("layout", "counts", "rounds_up"), [("NCHW", False, True), ("NHWC", False, False), ("NCHW", True, True)])
def test_average_pools_at_the_edge(layout, counts, rounds_up):
    """The windows of the first one reach over the data by 1 and 2 elements, and those of the last one by more, where they hang over."""
    shape = (2, 3, 6, 5) if layout == "NCHW" else (2, 6, 5, 3)
    x = of(shape)[0]
    attrs = {"count_include_pad": counts, "ceil_mode": rounds_up, "layout": layout}
    y = relay.nn.avg_pool2d(x, pool_size=(3, 2), strides=(2, 2), padding=(1, 0, 2, 1), **attrs)
    z = relay.nn.max_pool2d(x, pool_size=(3, 2), strides=(2, 2), padding=(1, 0, 2, 1), ceil_mode=rounds_up, layout=layout)
    check(relay.sum(y * y) + relay.sum(z * z), drawn(*shape))


@pytest.mark.parametrize("attrs", [{"strides": (2, 1), "padding": (1, 0)}, {"pool_size": (1, 1), "padding": (1, 1)}])
def test_pools(attrs):
    """The last one has windows that lie in the padding alone."""
    x = of((2, 3, 6, 5))[0]
    y = relay.nn.max_pool2d(x, **{"pool_size": (3, 2), **attrs})
    check(relay.where(relay.less(y, relay.const(0.0, "float64")), relay.zeros_like(y), y * y), drawn(2, 3, 6, 5))


def test_steps_of_slices():
    x = of((5, 7))[0]
    parts = [
        relay.strided_slice(x, begin, end, strides)
        for begin, end, strides in (
            ([0, 1], [5, 7], [2, 3]),
            ([4, 6], [-6, -8], [-2, -1]),
            ([3, 5], [0, 1], [-1, -3]),
            ([2, 2], [2, 6], [2, 2]),
        )
    ]
    total = relay.const(0.0, "float64")
    for part in parts:
        total = total + relay.sum(relay.exp(part))
    check(total, drawn(5, 7))


def test_lets_tuples_functions_and_branches():
    x, y = of((3,), (3,))
    p, t = relay.var("p", shape=(3,), dtype="float64"), relay.var("t")
    square = relay.Function([p], p * p)
    pair = relay.Let(t, relay.Tuple([square(x), relay.exp(y)]), relay.TupleGetItem(t, 0) * relay.TupleGetItem(t, 1) + square(y))
    branch = relay.If(relay.less(relay.sum(x), relay.sum(y)), pair * x, relay.tanh(x))
    for seeds in ((0, 1), (1, 0)):
        check(branch * y, *(drawn(3, seed=seed) * (1 + seed) for seed in seeds))


def test_calls_of_functions_of_a_module():
    mod = relay.parse("""
    def @square(%p: Tensor[(3), float64]) { %p * %p }
    def @main(%x: Tensor[(3), float64]) { @square(@square(%x)) }""")
    run = relay.create_executor("graph").evaluate(relay.transform.gradient(mod.get_global_var("main"), mod))
    result, (grad,) = run(drawn(3))
    np.testing.assert_allclose(result.numpy(), drawn(3) ** 4)
    np.testing.assert_allclose(grad.numpy(), 4 * drawn(3) ** 3)


def test_gradients_of_results_that_are_tuples():
    """The seed is one for every element of every field; what no field depends on has zeros."""
    x, y, z, p = *of((3,), (3,), (2,)), relay.var("p", relay.TupleType([relay.TensorType((3,), "float64")] * 2))
    pair = relay.Tuple([relay.Tuple([x * y, p]), relay.nn.dropout(x * x, 0.5)])
    for result, expected in [
        (pair, lambda a, b: (b + 2 * a, a, 0 * a[:2], [1 + 0 * a, 1 + 0 * a])),
        (relay.TupleGetItem(p, 0) * x, lambda a, b: (b, 0 * a, 0 * a[:2], [a, 0 * a])),
        (x, lambda a, b: (1 + 0 * a, 0 * a, 0 * a[:2], [0 * a, 0 * a])),
        (relay.cast(relay.cast(x * y, "int32"), "float64") + y, lambda a, b: (0 * a, 1 + 0 * a, 0 * a[:2], [0 * a, 0 * a])),
        (p, lambda a, b: (0 * a, 0 * a, 0 * a[:2], [1 + 0 * a, 1 + 0 * a])),
    ]:
        gradient = relay.transform.gradient(relay.Function([x, y, z, p], result))
        a, b = drawn(3), drawn(3, seed=1)
        grads = relay.create_executor("graph").evaluate(gradient)(a, b, drawn(2), (b, a))[1]
        for found, wanted in zip(grads, expected(a, b), strict=True):
            for part, right in zip(*((found, wanted) if isinstance(wanted, list) else ([found], [wanted])), strict=True):
                np.testing.assert_allclose(part.numpy(), right)


def test_what_has_no_gradient_is_named():
    x = of((3,))[0]
    f = relay.var("f", relay.FuncType([x.type_annotation], x.type_annotation))
    for function, options, message in [
        (relay.Function([x], x), {"mode": "second_order"}, "mode: expected one of .*higher_order.*, found 'second_order'"),
        (x, {}, "expected a function, found Var"),
        (relay.GlobalVar("f"), {}, "expected a function, found GlobalVar"),  # without a module
        (relay.Function([x, f], relay.Call(f, [x])), {}, "operators and functions that are known, found Var"),
        (relay.Function([x], relay.RefCreate(x)), {}, "expected tensors and tuples of them, found ref"),
        (relay.Function([relay.var("r", relay.RefType(relay.scalar_type("float32")))], x * x), {}, "tuples of them, found ref"),
    ]:
        with pytest.raises(RelayError, match=f"gradient: .*{message}"):
            relay.transform.gradient(function, **options)
    recursive = relay.parse("def @f(%n: int32, %x: float32) -> float32 { if (%n < 1) { %x } else { @f(%n - 1, %x * %x) } }")
    with pytest.raises(RelayError, match="gradient: expected functions that do not call themselves, found f"):
        relay.transform.gradient(recursive.get_global_var("f"), recursive)
    with pytest.raises(RelayError, match="operator cumsum has no gradient yet"):
        relay.transform.gradient(relay.Function([x], relay.cumsum(x)))
    c, r, u = relay.var("c", "bool"), relay.var("r"), relay.var("u")
    late = relay.Let(u, relay.If(c, relay.RefWrite(r, x), relay.RefWrite(r, x * x)), relay.RefRead(r))
    with pytest.raises(RelayError, match="expected a graph of operators, found RefRead"):
        relay.transform.gradient(relay.Function([c, x], relay.Let(r, relay.RefCreate(x), late)))


def test_references_closures_and_lists_are_followed():
    prelude = relay.Prelude()
    _, cons, nil = prelude.mod.get_type("List")
    x, y = of((3,), (3,))
    r, u, f, v, w = (relay.Var(name) for name in "rufvw")
    square = relay.Function([v], v * v * y)
    write = relay.RefWrite(r, f(relay.RefRead(r)) + relay.exp(x))
    check(relay.Let(r, relay.RefCreate(x), relay.Let(f, square, relay.Let(u, write, relay.RefRead(r) * x))), drawn(3), drawn(3, seed=1))
    add = relay.Function([v, w], relay.tanh(v) * w)
    total = relay.Call(prelude.foldl, [add, x, cons(y, cons(x * x, nil()))])
    functions = [relay.Function([x, y], body) for body in (total, relay.tanh(relay.tanh(x) * y) * (x * x))]
    found, expected = (relay.transform.gradient(function, prelude.mod) for function in functions)
    data, run = (drawn(3), drawn(3, seed=1)), relay.create_executor("graph", prelude.mod).evaluate
    for a, b in zip(run(found)(*data)[1], run(expected)(*data)[1], strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy())


@pytest.mark.parametrize("attrs", [{}, {"axis": 1, "batch_dims": 1}])
def test_elements_that_are_not_taken_along_an_axis_have_no_gradient(attrs):
    taken = relay.take(of((2, 3))[0], relay.const([[0, 2], [1, 1]]), **attrs)
    with pytest.raises(RelayError, match="take: expected elements taken along an axis, found others"):
        relay.transform.gradient(relay.Function(relay.free_vars(taken), taken))


def test_gradients_read_the_constants_of_a_call():
    """The sizes of a gradient are known where a constant operand says them."""
    padded = relay.op.call("dyn.nn.pad", of((2, 3))[0], relay.const([[1, 0], [0, 2]]), relay.const(3.0, "float64"))
    gradient = relay.transform.gradient(relay.Function(relay.free_vars(padded), padded))
    found = relay.transform.InferType()(relay.IRModule.from_expr(gradient))["main"]
    assert found.ret_type.fields[1].fields[0] == relay.TensorType((2, 3), "float64")
