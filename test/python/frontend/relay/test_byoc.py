"""Partitions for other code generators: what they are, that they run, and OpenVINO as one of them, against relayc itself and numpy."""

import sys

import numpy as np
import pytest
from oracle import values

import relayc
from relayc import relay
from relayc.frontend.relay.dataflow_pattern import is_op, wildcard
from relayc.frontend.relay.passes import byoc
from relayc.relay import openvino

transform = relay.transform
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
"""Sums of a few dozen products of float32, in another order."""


@pytest.fixture
def takes():
    """Lets a generator of a name take operators."""
    taken = []

    def take(compiler, *names):
        for name in names:
            relay.op.get(name).set_attr(f"target.{compiler}", lambda call: True)
            taken.append((name, f"target.{compiler}"))

    yield take
    for name, key in taken:
        relay.op.get(name).reset_attr(key)


def partitioned(expr, compiler):
    passes = [transform.AnnotateTarget(compiler), transform.MergeCompilerRegions(), transform.PartitionGraph()]
    return transform.Sequential(passes)(relay.IRModule.from_expr(expr))


def partitions(mod):
    return {v.name_hint: f for v, f in mod.functions.items() if "Compiler" in f.attrs}


def operators(function):
    found = []
    relay.analysis.post_order_visit(function, lambda e: found.append(e.op.name) if isinstance(e, relay.Call) else None)
    return sorted(found)


def test_patterns_become_composite_functions():
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))
    table = [("t.add_relu", is_op("nn.relu")(wildcard() + wildcard()), lambda last: last.args[0].args[1] is not last.args[0].args[0])]
    found = transform.MergeComposite(table)(relay.IRModule.from_expr(relay.nn.relu(x + y) * relay.nn.relu(x + x)))["main"]
    (call, other) = found.body.args
    assert call.op.attrs["Composite"] == "t.add_relu"
    assert other.op.name == "nn.relu"  # the check refuses it
    data = values((2, 3)), values((2, 3), seed=1)
    result = relay.create_executor("graph").evaluate(found)(*data).numpy()
    np.testing.assert_allclose(result, np.maximum(sum(data), 0) * np.maximum(2 * data[0], 0), **CLOSE)


@pytest.mark.parametrize("check", [(), (None,)])
def test_patterns_without_a_check_take_all_matches(check):
    x = relay.var("x", shape=(2, 3))
    found = transform.MergeComposite([("t.exp", is_op("exp")(wildcard()), *check)])(relay.IRModule.from_expr(relay.exp(x)))["main"]
    assert found.body.op.attrs["Composite"] == "t.exp" and found.body.args == found.params


def test_regions_do_not_depend_on_each_other_both_ways(takes):
    takes("two", "abs", "add", "nn.relu")
    x = relay.var("x", shape=(3,))
    first = relay.abs(x)
    mod = partitioned(relay.nn.relu(first) + relay.tanh(first), "two")
    assert sorted(map(operators, partitions(mod).values())) == [["abs", "nn.relu"], ["add"]]
    (both,) = [f for f in partitions(mod).values() if operators(f) != ["add"]]
    assert isinstance(both.ret_type, relay.TupleType)
    data = values((3,))
    result = relay.create_executor("graph", mod).evaluate()(data).numpy()
    np.testing.assert_allclose(result, np.abs(data) + np.tanh(np.abs(data)), **CLOSE)


def test_each_branch_has_a_partition_of_its_own(takes):
    takes("branches", "exp", "abs", "negative")
    x, c = relay.var("x", shape=(3,)), relay.var("c", "bool")
    y = relay.abs(x)
    mod = partitioned(relay.Function([c, x], relay.If(c, relay.exp(y), relay.negative(y))), "branches")
    assert sorted(map(operators, partitions(mod).values())) == [["abs"], ["exp"], ["negative"]]
    calls = []

    @relayc.register_external_codegen("branches")
    def codegen(name, function):
        functions = {"exp": np.exp, "abs": np.abs, "negative": np.negative}
        (op,) = operators(function)

        def call(data, out):
            calls.append(op)
            out[...] = functions[op](data)

        return call

    try:
        run = relay.create_executor("graph", mod).evaluate()
        data = values((3,))
        np.testing.assert_allclose(run(True, data).numpy(), np.exp(np.abs(data)), **CLOSE)
        np.testing.assert_array_equal(run(False, data).numpy(), -np.abs(data))
    finally:
        relayc.remove_external_codegen("branches")
    assert calls == ["abs", "exp", "abs", "negative"]
    assert relay.create_executor("graph", mod).evaluate()(False, data).numpy()[0] == -np.abs(data[0])  # relayc compiles it now
    assert len(calls) == 4


@pytest.mark.parametrize("is_run", [False, True], ids=["partitions", "results"])
def test_what_a_branch_reads_is_no_region_with_what_reads_the_branch(takes, is_run):
    takes("around", "abs", "add")
    x, c = relay.var("x", shape=(3,)), relay.var("c", "bool")
    first = relay.abs(x)
    for chosen in (relay.If(c, relay.exp(first), x), relay.Let(v := relay.var("v"), relay.exp(first), relay.If(c, v, x))):
        mod = partitioned(relay.Function([c, x], first + relay.tanh(chosen)), "around")
        assert sorted(map(operators, partitions(mod).values())) == [["abs"], ["add"]]
        if is_run:
            data = values((3,))
            result = relay.create_executor("graph", mod).evaluate()(True, data).numpy()
            np.testing.assert_allclose(result, np.abs(data) + np.tanh(np.exp(np.abs(data))), **CLOSE)


def test_loops_are_for_no_generator(takes):
    takes("calls", "add")
    x, loop, i = relay.var("x", shape=(2,)), relay.var("loop"), relay.var("i", "bool")
    function = relay.Function([i], relay.If(i, loop(relay.const(False)), x + x))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.Let(loop, function, loop(relay.const(True)))))
    last = transform.AnnotateTarget("calls")(mod)["main"].body.body
    assert (last.op.name, last.attrs["compiler"]) == ("annotation.compiler_end", "default")
    assert transform.AnnotateTarget("calls", include_non_call_ops=False)(mod)["main"].body.body.op.name_hint == "loop"


def test_a_pass_on_the_partitions_of_a_generator(takes):
    takes("folds", "add", "multiply")
    x, one = relay.var("x", shape=(3,)), relay.const(np.ones(3, "float32"))
    byoc.register_partition_pass("folds", transform.FoldConstant())
    mod = partitioned(relay.Function([x], relay.exp(x * (one + one))), "folds")
    ((name, found),) = partitions(mod).items()
    assert operators(found) == ["multiply"] and name == found.attrs["global_symbol"]
    assert "add" in operators(partitioned(relay.Function([x], x * (one + one)), "folds2")["main"])  # of another generator
    np.testing.assert_allclose(relay.create_executor("graph", mod).evaluate()(values((3,))).numpy(), np.exp(2 * values((3,))), **CLOSE)

    @byoc.register_partition_pass("folds")
    def doubled(mod):
        return mod.map_functions(lambda function: function.replace(body=function.body + function.body))

    doubling = partitioned(relay.Function([x], relay.exp(x * one)), "folds")
    np.testing.assert_allclose(relay.create_executor("graph", doubling).evaluate()(values((3,))).numpy(), np.exp(2 * values((3,))), **CLOSE)
    again = transform.Sequential([transform.MergeComposite([("t.exp", is_op("multiply")(None))]), transform.MergeCompilerRegions()])(mod)
    assert operators(partitions(again)[name]) == ["multiply"]  # of a generator: it stays


def test_annotations_that_are_there_stay(takes):
    takes("late", "exp")
    takes("early", "abs", "exp")
    x = relay.var("x", shape=(3,))
    body = relay.tanh(relay.exp(relay.abs(x)))
    early = transform.AnnotateTarget("early")(relay.IRModule.from_expr(body))
    found = transform.AnnotateTarget("late")(early)
    mod = transform.Sequential([transform.MergeCompilerRegions(), transform.PartitionGraph()])(found)
    assert {name: operators(f) for name, f in partitions(mod).items()} == {"tvmgen_default_early_main_0": ["abs", "exp"]}
    np.testing.assert_allclose(
        relay.create_executor("graph", mod).evaluate()(values((3,))).numpy(), np.tanh(np.exp(np.abs(values((3,))))), **CLOSE
    )


def test_what_no_generator_took_is_for_the_next_one(takes):
    takes("second", "exp", "zeros", "add")
    x = relay.var("x", shape=(3,))
    mod = transform.AnnotateTarget("first")(relay.IRModule.from_expr(relay.exp(relay.abs(x)) + relay.zeros((3,), "float32")))
    mod = transform.Sequential([transform.AnnotateTarget("second"), transform.MergeCompilerRegions(), transform.PartitionGraph()])(mod)
    assert {name: operators(f) for name, f in partitions(mod).items()} == {"tvmgen_default_second_main_0": ["add", "exp"]}


def test_producers_are_merged_before_what_reads_them(takes):
    takes("t", "abs", "exp", "add")
    takes("u", "multiply")
    x, y = relay.var("x", shape=(3,)), relay.var("y", shape=(3,))
    size = relay.abs(x)
    mod = partitioned(relay.Function([x, y], y * size + relay.exp(size)), ["t", "u"])
    assert sorted(map(operators, partitions(mod).values())) == [["abs", "exp"], ["add"], ["multiply"]]


def test_a_region_without_inputs():
    end = relay.op.annotation.compiler_end(relay.zeros((3,), "float32"), "t")
    (region,) = byoc.AnnotatedRegionSet(end)
    assert (region.target, region.args, region.rets) == ("t", [], [end])


def test_tuples_of_constants_are_in_the_function_of_a_region(takes):
    takes("joins", "concatenate")
    x, one = relay.var("x", shape=(2,)), relay.const(np.ones(2, "float32"))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.concatenate([relay.concatenate([one, one], 0), relay.abs(x)], 0)))
    mod = transform.Sequential([transform.AnnotateTarget("joins", include_non_call_ops=False), transform.PartitionGraph()])(mod)
    found = partitions(mod).values()
    assert sorted(len(f.params) for f in found) == [0, 1] and all(not relay.free_vars(f) for f in found)
    found = transform.Sequential([transform.AnnotateTarget("joins", include_non_call_ops=False), transform.PartitionGraph()])(
        relay.IRModule.from_expr(relay.Function([x], relay.concatenate([one, x], 0)))
    )
    ((_, joined),) = partitions(found).items()
    assert isinstance(joined.params[0].checked_type, relay.TupleType) and not relay.free_vars(joined)


def test_partitions_without_a_generator_are_compiled_where_they_are_called(takes):
    takes("nobody", "add")
    x, weights = relay.var("x", shape=(300,)), relay.const(values((300,)))
    mod = partitioned(relay.Function([x], relay.exp(x + weights)), "nobody")
    factory = relay.build(mod, "llvm")
    assert factory.module.function_names()[0] == "main" and len(factory.params) == 1


def test_generators_get_types_and_give_tuples(takes):
    takes("pairs", "split", "add")
    x = relay.var("x", shape=(4, 2))
    halves = relay.split(x, 2, axis=0)
    mod = partitioned(relay.Function([x], relay.Tuple([halves[0], relay.exp(halves[1])])), "pairs")
    seen = []

    @relayc.register_external_codegen("pairs")
    def codegen(name, function):
        seen.append((name, function.params[0].checked_type, function.ret_type))

        def call(data, *outs):
            for out, part in zip(outs, np.split(data, 2), strict=True):
                out[...] = part

        return call

    try:
        data = values((4, 2))
        first, second = relay.create_executor("graph", mod).evaluate()(data)
    finally:
        relayc.remove_external_codegen("pairs")
    half = relay.TensorType((2, 2), "float32")
    assert seen == [("tvmgen_default_pairs_main_0", relay.TensorType((4, 2), "float32"), relay.TupleType([half, half]))]
    np.testing.assert_array_equal(first.numpy(), data[:2])
    np.testing.assert_allclose(second.numpy(), np.exp(data[2:]), **CLOSE)


def test_a_function_sees_a_value_when_the_program_runs():
    x, seen = relay.var("x", shape=(2, 3)), []
    looked = relay.debug(relay.exp(x), lambda array: seen.append(array) or array.fill(0))
    pair = relay.debug(relay.Tuple([looked, x]), lambda *arrays: seen.extend(arrays))
    data = values((2, 3))
    found = relay.create_executor("graph").evaluate(relay.Function([x], relay.TupleGetItem(pair, 0) + x))(data)
    np.testing.assert_allclose(found.numpy(), np.exp(data) + data, **CLOSE)
    np.testing.assert_allclose(seen[1], np.exp(data), **CLOSE)
    np.testing.assert_array_equal(seen[2], data)
    assert len(seen) == 3
    assert relay.debug(x).op.name == "debug" and relay.debug(x).attrs["debug_func"] == "relayc.debug"  # a breakpoint


def test_errors_of_generated_code_arrive(takes):
    takes("fails", "exp")
    x = relay.var("x", shape=(3,))

    def fail(*arrays):
        raise ArithmeticError("too large")

    relayc.register_external_codegen("fails", lambda name, function: fail)
    try:
        with pytest.raises(ArithmeticError, match="too large"):
            relay.create_executor("graph", partitioned(relay.Function([x], relay.exp(x)), "fails")).evaluate()(values((3,)))
    finally:
        relayc.remove_external_codegen("fails")


def test_tables_of_patterns():
    assert byoc.get_pattern_table("none") == []
    assert {name for name, *_ in byoc.get_pattern_table("openvino")} >= {"openvino.conv2d_bias_relu", "openvino.dense_bias"}
    with pytest.raises(TypeError, match="pattern p: expected a dataflow pattern"):
        transform.MergeComposite([("p", 3)])(relay.IRModule.from_expr(relay.const(1)))


# ---- OpenVINO -------------------------------------------------------------------------------------------------------------------------


def same_as_relayc(expr, *arrays, params=None):
    """Checks what OpenVINO computes of a program against what relayc does; gives the partitioned program."""
    pytest.importorskip("openvino")
    mod = openvino.partition_for_openvino(expr, params)
    expected = relay.create_executor("graph", params=params).evaluate(expr)(*arrays)
    found = relay.create_executor("graph", mod).evaluate()(*arrays)
    for a, b in zip(found, expected, strict=True) if isinstance(found, list) else [(found, expected)]:
        np.testing.assert_allclose(a.numpy(), b.numpy(), **CLOSE)
    return mod


def test_partitions_need_openvino(monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    x = relay.var("x", shape=(2,))
    with pytest.raises(ModuleNotFoundError, match=r"partition f: expected the extra openvino \(pip install 'relayc\[openvino\]'\)"):
        openvino.codegen("f", relay.Function([x], x))


def test_a_network_in_openvino():
    x, names = relay.var("x", shape=(2, 4, 9, 8)), {"w": (6, 2, 3, 3), "b": (6,), "d": (5, 6)}
    params = {name: values(shape, seed=i) for i, (name, shape) in enumerate(names.items())}
    w, b, d = (relay.var(name, shape=shape) for name, shape in names.items())
    y = relay.nn.bias_add(relay.nn.conv2d(x, w, padding=(1, 0, 2, 1), strides=(2, 1), groups=2), b)
    largest = relay.nn.max_pool2d(relay.nn.relu(y), (2, 2), (1, 1), (1, 1), (0, 0, 1, 1))
    pooled = relay.nn.avg_pool2d(largest, (3, 2), (2, 1), (1, 1), (1, 0, 1, 1))
    z = relay.nn.dense(relay.nn.batch_flatten(relay.nn.global_avg_pool2d(pooled)), d)
    mod = same_as_relayc(relay.Function([x, w, b, d], relay.nn.softmax(z)), values((2, 4, 9, 8), seed=9), params=params)
    assert [f.attrs["Compiler"] for f in partitions(mod).values()] == ["openvino"]
    assert 'Composite="openvino.conv2d_bias_relu"' in mod.astext()


def test_operators_in_openvino():
    a, b = values((2, 3, 4)), np.abs(values((2, 3, 4), seed=1)) + 0.5
    x, y = relay.var("x", shape=a.shape), relay.var("y", shape=b.shape)
    names = ("add", "subtract", "multiply", "divide", "maximum", "minimum")
    made = [relay.op.call(name, x, y) for name in names]
    made += [relay.op.call(name, x) for name in ("exp", "tanh", "sigmoid", "erf", "abs", "floor", "ceil", "negative")]
    made += [relay.sqrt(y), relay.log(y), relay.power(y, x), relay.clip(x, -0.5, 0.25)]
    mod = same_as_relayc(relay.Function([x, y], relay.Tuple(made)), a, b)
    assert partitions(mod)


def test_movements_and_products_in_openvino():
    x, y, w = relay.var("x", shape=(2, 3, 4)), relay.var("y", shape=(2, 3, 4)), relay.var("w", shape=(5, 3, 2, 1))
    moved = [relay.transpose(x, (2, 0, 1)), relay.reshape(x, (6, 4)), relay.concatenate([x, y], axis=-2), relay.clip(x, -0.5, 0.25)]
    products = [relay.nn.batch_matmul(x, y), relay.nn.batch_matmul(x, y, transpose_a=True, transpose_b=False)]
    products += [relay.nn.conv2d(relay.reshape(x, (2, 3, 2, 2)), w, padding=(1, 0, 0, 2), strides=(1, 2))]
    mod = same_as_relayc(relay.Function([x, y, w], relay.Tuple([*moved, *products])), values((2, 3, 4)), values((2, 3, 4), seed=1),
                         values((5, 3, 2, 1), seed=2))  # fmt: skip
    assert {"transpose", "concatenate", "nn.conv2d"} <= {name for f in partitions(mod).values() for name in operators(f)}


def test_what_openvino_does_not_take_is_relaycs():
    x, n = relay.var("x", shape=(3, 4)), relay.var("n", shape=(3, 4), dtype="int32")
    both = relay.Tuple([relay.exp(relay.sin(relay.exp(x))), n + n])
    same_as_relayc(relay.Function([x, n], both), values((3, 4)), np.arange(12).reshape(3, 4))
    mod = openvino.partition_for_openvino(relay.Function([n], n + n))
    assert not partitions(mod)
    image = relay.var("x", shape=(1, 4, 4, 3))
    nhwc = relay.nn.max_pool2d(image, (2, 2), layout="NHWC")
    assert not partitions(openvino.partition_for_openvino(relay.Function([image], nhwc)))
    product = relay.nn.relu(relay.nn.conv2d(image, relay.var("w", shape=(3, 3, 3, 2)), data_layout="NHWC", kernel_layout="HWIO"))
    mixed = relay.nn.dense(relay.var("a", shape=(2, 3)), relay.var("b", shape=(4, 3)), out_dtype="float64")
    spread = relay.nn.avg_pool2d(image, (2, 2), dilation=(2, 2))
    found = relay.Tuple([product, spread, mixed])
    mod = openvino.partition_for_openvino(relay.Function(relay.free_vars(found), found))
    assert list(map(operators, partitions(mod).values())) == [["nn.relu"]] and isinstance(mod["main"].body, relay.Tuple)


def test_sizes_that_are_not_known_are_relaycs():
    x, w = relay.var("x", shape=(relay.Any(), 4)), relay.var("w", shape=(3, 4))
    assert not partitions(openvino.partition_for_openvino(relay.Function([x, w], relay.nn.dense(x, w))))


def test_branches_in_openvino():
    pytest.importorskip("openvino")
    x, c = relay.var("x", shape=(3,)), relay.var("c", "bool")
    mod = openvino.partition_for_openvino(relay.Function([c, x], relay.If(c, relay.exp(x) + x, relay.tanh(x))))
    assert sorted(map(operators, partitions(mod).values())) == [["add", "exp"], ["tanh"]]
    run, data = relay.create_executor("graph", mod).evaluate(), values((3,))
    np.testing.assert_allclose(run(True, data).numpy(), np.exp(data) + data, **CLOSE)
    np.testing.assert_allclose(run(False, data).numpy(), np.tanh(data), **CLOSE)
