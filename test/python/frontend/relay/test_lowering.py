"""Relay programs run."""

import contextlib
import re

import numpy as np
import pytest

import relayc
from relayc import relay
from relayc.dialects.relay.base import RelayError
from relayc.dialects.relay.errors import NeedsControl
from relayc.frontend.relay.importer import from_relay
from relayc.frontend.relay.lowering import lower
from relayc.pipelines.evaluate.relay import RelayInterpreter

X = np.array([[1, 2, 3], [4, 5, 6]], "float32")


def run(source, *args):
    program = relay.parse(source) if isinstance(source, str) else source
    return relay.create_executor("graph", program if isinstance(program, relay.IRModule) else relay.IRModule.from_expr(program)).evaluate()(
        *args
    )


@pytest.mark.parametrize("cache", [None, True])
def test_a_function_is_a_model(cache):
    x = relay.var("x", shape=(2, 3))
    module = relayc.compile(relay.Function([x], relay.add(x, relay.const(1.0))), cache=cache)
    np.testing.assert_array_equal(module["main"](X), X + 1)


def test_functions_loops_and_branches():
    found = run(
        """
        def @id[A](%x: A) -> A { %x }
        def @square(%x: float32) { (%x * %x, (%x, 1f)) }
        def @factorial(%n: int32) -> int32 { if (%n < 2) { 1 } else { %n * @factorial(%n - 1) } }
        def @doubled(%n: int32, %x: float32) -> float32 { if (%n < 1) { %x } else { @doubled(%n - 1, %x * 2f) } }
        def @same[A](%n: int32, %x: A) -> A { if (%n < 1) { %x } else { @same(%n - 1, %x) } }
        def @even(%n: int32) -> bool { if (%n < 1) { True } else { @odd(%n - 1) } }
        def @odd(%n: int32) -> bool { if (%n < 1) { False } else { @even(%n - 1) } }
        def @main(%x: Tensor[(2, 3), float32], %n: int32) {
          let %sum = fn (%i, %y) {
            let %more = %i < %n;
            if (%more) { if (%i < 2) { %sum(%i + 1, %y + %x) } else { %sum(%i + 1, %y * 2f) } } else { (%y, %i).0 }
          };
          let %pair = fn [A](%a: A) { (%a, %a) };
          let %twice = fn (%f, %v) { %f(%f(%v)) };
          (%sum(0, %x), @id(%pair(%n).1), %twice(fn (%q: Tensor[(2, 3), float32]) { %q * %q }, %x),
           @square(3f), @factorial(5), @doubled(3, 1f), @even(7), @same(2, 5))
        }
        """,
        X,
        4,
    )
    np.testing.assert_array_equal(found[0].numpy(), X * 3 * 4)
    np.testing.assert_array_equal(found[2], X**4)
    assert found[1] == 4 and found[3] == [9, [3, 1]] and found[4:] == [120, 8, False, 5]


def test_lowered_loops_are_loops():
    module = relay.parse("def @main(%n: int32) -> int32 { if (%n < 10) { @main(%n + 3) } else { %n } }")
    assert "relay.while" in str(lower(module)) and "call" not in str(lower(module))
    assert run(module, 1) == 10


def test_programs_are_read_from_text_by_the_names_of_files(tmp_path):
    module = relay.parse("def @main(%x: Tensor[(2, 3), float32]) { exp(%x) }")
    (tmp_path / "a.relay").write_text(module.astext())
    (tmp_path / "b.MLIR").write_text(str(lower(module)))
    for path in (str(tmp_path / "a.relay"), tmp_path / "b.MLIR"):
        assert "relay.exp" in str(from_relay(path))


@pytest.mark.parametrize(("depth", "fits"), [(8, True), (9, False)])
def test_functions_nest_in_their_own_calls(depth, fits):
    """A function is put in its own place so many times: one that calls itself by others has no end."""
    expr = "%x"
    for level in range(depth):
        expr = f"%once(fn (%a{level}: float32) {{ exp({expr.replace('%x', f'%a{level}')}) }}, %x)"
    module = relay.parse(f"def @main(%x: float32) {{ let %once = fn (%f: fn (float32) -> float32, %v: float32) {{ %f(%v) }}; {expr} }}")
    if fits:
        assert str(lower(module)).count("relay.exp") == depth
    else:
        with pytest.raises(RelayError, match="a function that calls itself by others"):
            lower(module)


def test_rounds_of_loops_may_bind_values_in_branches():
    module = relay.parse("""
    def @main(%n: int32, %x: Tensor[(2), float32]) -> Tensor[(2), float32] {
      if (%n < 6) {
        let %y = %x + %x;
        if (%n < 3) { let %m = %n + 2; @main(%m, %y * %y) } else { @main(%n + 1, %y) }
      } else { %x }
    }""")
    run, x = RelayInterpreter(lower(module)), np.array([1, -0.5], np.float32)
    assert "relay.while" in str(run.mod)
    for n, expected in ((7, x), (5, 2 * x), (3, 8 * x), (2, (2 * x) ** 2 * 4), (1, (2 * x) ** 2 * 8), (0, (2 * (2 * x) ** 2) ** 2 * 4)):
        np.testing.assert_array_equal(run("main", [np.array(n, np.int32), x])[0], expected)


def test_while_loops():
    n, x = relay.var("n", "int32"), relay.var("x", shape=(2, 3))
    loop = relay.while_loop(lambda i, y: i < n, [relay.const(0), x], lambda i, y: (i + relay.const(2), y * x))
    function = relay.Function([n, x], loop(relay.const(0), x))
    found = run(function, 5, X)
    assert found[0] == 6
    np.testing.assert_allclose(found[1], X**4)
    assert "relay.while" in str(lower(relay.IRModule.from_expr(function)))


def test_what_branches_share_is_computed_in_each():
    c, x = relay.var("c", "bool"), relay.var("x", shape=(2, 3))
    shared = relay.exp(x)
    branch = relay.If(c, shared + shared, relay.log(shared))
    f = relay.Function([c, x], relay.Tuple([branch, shared]))
    for cond, expected in ((True, 2 * np.exp(X)), (False, X)):
        found = run(f, cond, X)
        np.testing.assert_allclose(found[0], expected, rtol=1e-5)
        np.testing.assert_allclose(found[1], np.exp(X), rtol=1e-5)


def test_sizes_that_are_not_known():
    x, y = (relay.var(name, shape=(relay.Any(), 3)) for name in "xy")
    f = relay.create_executor().evaluate(relay.Function([x, y], relay.sum(x + y, axis=0)))
    np.testing.assert_allclose(f(X, X), 2 * X.sum(0))
    np.testing.assert_allclose(f(X[:1], X[:1]), 2 * X[0])
    grown = relay.parse("""
    def @main(%x: Tensor[(?, 3), float32]) {
      let %f = fn (%i: int32, %y: Tensor[(?, 3), float32]) -> Tensor[(?, 3), float32] {
        if (%i < 2) { %f(%i + 1, concatenate((%y, %x), axis=0)) } else { %y }
      };
      %f(0, %x)
    }
    """)
    np.testing.assert_array_equal(run(grown, X), np.concatenate([X] * 3))


def test_programs_that_are_right_for_some_sizes():
    x, y = (relay.var(name, shape=(relay.Any(), 3)) for name in "xy")
    add = relay.create_executor("vm").evaluate(relay.Function([x, y], (x + y) * relay.const(2.0)))
    for left, right in ((X, X[:1]), (X[1:], X), (X, X)):
        np.testing.assert_array_equal(add(left, right), (left + right) * 2)
    with pytest.raises(RelayError, match="add"):
        add(X, np.concatenate([X, X]))
    with pytest.raises(ValueError, match="expected"):
        add(X, X[0])
    z = relay.var("z", relay.TupleType([relay.TensorType((relay.Any(),)), relay.TensorType((2,))]))
    split = relay.create_executor("vm").evaluate(relay.Function([z], relay.reshape(relay.TupleGetItem(z, 0), (-4, 2, -1))))
    np.testing.assert_array_equal(split(z=(X.reshape(-1), X[:, 0])), X.reshape(2, 3))
    with pytest.raises(RelayError, match="reshape"):
        split((X[0], X[:, 0]))


def test_operators_with_rules_of_their_own():
    x = relay.var("x", shape=(2, 3))
    ops = [
        relay.zeros_like(x),
        relay.full_like(x, relay.const(7)),
        relay.reshape_like(x, relay.var("y", shape=(3, 2))),
        relay.nn.pad(x, ((1, 0), (0, 1)), 5),
        relay.split(x, 3, axis=1).astuple(),
        relay.std(x, axis=1),
        relay.arange(relay.const(3)),
        relay.nn.batch_matmul(relay.expand_dims(x, 0), relay.expand_dims(x, 0)),
        relay.logsumexp(x, axis=1),
        *relay.mean_variance(x, axis=1),
        *relay.mean_std(x, axis=0, keepdims=True, exclude=True),
        *relay.mean_variance(x, axis=[1], keepdims=True, unbiased=True),
        relay.trilu(x, relay.const(1)),
        relay.trilu(x, -1, upper=False),
        *(relay.op.call(f"annotation.{name}", x) for name in ("checkpoint", "stop_fusion", "bitpack_start", "bitpack_end")),
        *(relay.op.call(f"annotation.compiler_{end}", x, compiler="c") for end in ("begin", "end")),
        relay.op.call("annotation.cast_hint", x, dtype="int8"),
        relay.annotation.on_device(x, "cpu"),
        relay.op.device_copy(x, "cpu", "cpu"),
    ]
    y = relay.free_vars(ops[2])[1]
    found = run(relay.Function([x, y], relay.Tuple(ops)), X, X.reshape(3, 2))
    expected = [np.zeros_like(X), np.full_like(X, 7), X.reshape(3, 2), np.pad(X, ((1, 0), (0, 1)), constant_values=5)]
    expected += [np.split(X, 3, 1), X.std(1), np.arange(3), (X @ X.T)[None], np.log(np.exp(X).sum(1))]
    expected += [X.mean(1), X.var(1), X.mean(1, keepdims=True), X.std(1, keepdims=True)]
    expected += [X.mean(1, keepdims=True), X.var(1, keepdims=True, ddof=1), np.triu(X, 1), np.tril(X, -1), *[X] * 9]
    for value, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(value), right, rtol=1e-5)


def test_functions_of_shapes_that_are_values():
    x, k = relay.var("x", shape=(2, 3)), relay.var("k", shape=(), dtype="int32")
    shape = relay.const(np.array([2, 3]))
    cases = [
        (relay.op.call("dyn.zeros", shape, dtype="int8"), np.zeros((2, 3), "int8")),
        (relay.op.call("dyn.ones", shape), np.ones((2, 3), "float32")),
        (relay.op.call("dyn.tile", x, relay.const(np.array([2]))), np.tile(X, (1, 2))),
        (relay.op.call("dyn.tile", x, relay.const(np.array([2, 1, 3]))), np.tile(X, (2, 1, 3))),
        (relay.op.call("dyn.expand_dims", x, relay.const(1)), X[:, None]),
        (relay.op.call("dyn.squeeze", relay.expand_dims(x, 1), relay.const(np.array([1]))), X),
        (relay.op.call("vm.reshape_tensor", x, relay.const(np.array([3, 2])), newshape=(3, 2)), X.reshape(3, 2)),
        (
            relay.op.call("dyn.strided_slice", x, *(relay.const(np.array(v)) for v in ([0, 1], [-1, 2], [1, 1])), slice_mode="size"),
            X[:, 1:],
        ),
        (
            relay.op.call("dyn.strided_slice", x, *(relay.const(np.array(v)) for v in ([1, 0], [1, 2], [1, 1])), slice_mode="size"),
            X[1:, :2],
        ),
        (
            relay.op.call(
                "dyn.sparse_to_dense",
                relay.const(np.array([[0, 1], [1, 2]])),
                relay.const(np.array([5.0, 7.0], "float32")),
                relay.const(1.0),
                shape,
            ),
            np.array([[1, 5, 1], [1, 1, 7]], "float32"),
        ),
        (
            relay.op.call(
                "dyn.nn.upsampling3d",
                relay.reshape(x, (1, 1, 1, 2, 3)),
                *map(relay.const, (2.0, 1.0, 3.0)),
                coordinate_transformation_mode="asymmetric",
            ),
            X.reshape(1, 1, 1, 2, 3).repeat(2, 2).repeat(3, 4),
        ),
        (
            relay.op.call("nn.fifo_buffer", x, relay.const(np.arange(8, dtype="float32").reshape(2, 4)), axis=1),
            np.float32(np.c_[[[3], [7]], X]),
        ),
        (
            relay.op.call("nn.fifo_buffer", x, relay.const(np.arange(8, dtype="float32").reshape(2, 4)), axis=-1),
            np.float32(np.c_[[[3], [7]], X]),
        ),
        (relay.trilu(x, k), np.triu(X, 1)),
    ]
    found = run(relay.Function([x, k], relay.Tuple([case for case, _ in cases])), X, 1)
    for value, (_, expected) in zip(found, cases, strict=True):
        assert value.dtype == expected.dtype
        np.testing.assert_array_equal(value.numpy(), expected)


def test_a_variable_without_a_value_is_an_error():
    x, y = relay.var("x", "float32"), relay.var("y", "float32")
    with pytest.raises(RelayError, match="expected a variable that is bound, found %y"):
        lower(relay.IRModule({"main": relay.Function([x], x + y)}))


def test_extremes_of_bools():
    x = relay.var("x", shape=(2, 3), dtype="bool")
    data = np.array([[True, False, True], [True, True, True]])
    found = run(relay.Function([x], relay.Tuple([relay.min(x, axis=1), relay.max(x, axis=[0, 1]), relay.max(x, axis=0)])), data)
    for value, expected in zip(found, (data.min(1), data.max(), data.max(0)), strict=True):
        assert value.dtype == bool
        np.testing.assert_array_equal(value, expected)


def test_products_of_operands_that_differ():
    a, b = relay.var("a", shape=(2, 3), dtype="uint8"), relay.var("b", shape=(4, 3), dtype="int8")
    left, right = np.array([[255, 1, 2], [0, 7, 200]], "uint8"), np.arange(-6, 6, dtype="int8").reshape(4, 3)
    found = run(relay.Function([a, b], relay.nn.dense(a, b, out_dtype="int32")), left, right)
    np.testing.assert_array_equal(found.numpy(), left.astype("int32") @ right.T.astype("int32"))
    x, w = relay.var("x", shape=(2, 3, 2)), relay.var("w", shape=(3, 4))
    values = np.arange(12, dtype="float32").reshape(2, 3, 2)
    found = run(relay.Function([x, w], relay.nn.matmul(x, w, transpose_a=True)), values, right.T)
    np.testing.assert_array_equal(found.numpy(), values.transpose(0, 2, 1) @ right.T.astype("float32"))


def test_models_are_compiled_from_text(tmp_path):
    module = relay.parse(
        "def @main(%x: Tensor[(2, 3), float32]) { %x + meta[relay.Constant][0] }", "x", None, {"relay.Constant": [relay.const(X)]}
    )
    path = tmp_path / "model.relay"
    path.write_text(module.astext())
    for model in (module, path, str(path)):
        compiled = relayc.compile(model)
        assert compiled.input_names == ("x",)
        np.testing.assert_array_equal(compiled["main"](X), 2 * X)


def test_build_gives_a_graph_executor():
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
    weights = np.arange(12, dtype="float32").reshape(4, 3)
    factory = relay.build(relay.Function([x, w], relay.nn.dense(x, w)), "llvm", params={"w": weights})
    executor = factory["default"]("cpu")
    executor.set_input("x", X)
    executor.run()
    np.testing.assert_allclose(executor.get_output(0).numpy(), X @ weights.T, rtol=1e-6)
    graph, lib, params = factory
    assert '"nodes"' in graph and lib is not None and len(params) == 1


def test_executors_evaluate_expressions():
    executor = relay.create_executor("vm", relay.parse("def @f(%x: float32, %p: (float32, int32)) { %p.0 - %x }"))
    assert executor.evaluate(relay.const(2) + relay.const(3)) == 5
    assert executor.evaluate(executor.mod.get_global_var("f"))(1, (4.0, 2)) == 3
    assert executor.evaluate(executor.mod["f"])(p=(4.0, 2), x=1) == 3
    v = relay.var("v", "int32")
    assert executor.evaluate(v * v, {v: relay.const(3)}) == 9
    with pytest.raises(TypeError, match="expected 2 argument"):
        executor.evaluate(executor.mod["f"])(1)
    with pytest.raises(ValueError, match="create_executor"):
        relay.create_executor("tree")


def test_constructors_and_references_that_are_known():
    module = relay.parse(
        """
        def @main(%c: bool, %x: float32) {
          let %r = ref(%x);
          let %o = Some((%x, fn (%y: float32) { %y * ref_read(%r) }));
          let %u = ref_write(%r, ref_read(%r) + 1f);
          let %z = match (%o) { Some((%a, %f)) => if (%c) { %f(%a) } else { %a }, None => 0f };
          let %square = fn (%y: float32) { %y * %y };
          (%z, ref_read(%r), @hd(@tl(Cons(%x, Cons(%z, Nil)))), @compose(@compose(%square, %square), @compose(%square, %square))(%x))
        }
        """,
        init_module=relay.Prelude().mod,
    )
    assert run(module, True, 3.0) == [12, 4, 12, 3.0**16] and run(module, False, 3.0) == [3, 4, 3, 3.0**16]
    lower(module)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("let %b = if (%x < 1f) { Box(%x) } else { Box(1f) }; match? (%b) { Box(%y) => %y }", "a value of a data type"),
        ("match? (Two(%x)) { Box(%y) => %y }", "a value that no clause takes"),
        ("let %r = ref(%x); let %u = if (%x < 1f) { ref_write(%r, 1f) } else { () }; ref_read(%r)", "written in a branch"),
        ("let %f = fn (%a: float32) -> float32 { @g(Box(%a)) }; %f(%x)", "a function that calls itself by others"),
        ("let %f = if (%x < 1f) { fn (%a: float32) { %a } } else { fn (%a: float32) { %x } }; %f(%x)", "a function as a result"),
        ("let %f = fn (%a: float32) -> float32 { if (%a < 1f) { %a } else { %f(%a) * 2f } }; %f(%x)", "f calls itself before its end"),
    ],
)
def test_what_has_no_form_in_the_dialect_is_refused(body, message):
    module = relay.parse(
        "type B[A] { Box(A), Two(A) } def @g(%b: B[float32]) -> float32 { match? (%b) { Box(%x) => @h(Box(%x)) } }"
        f"def @h(%b: B[float32]) -> float32 {{ @g(%b) }} def @main(%x: float32) -> float32 {{ {body} }}"
    )
    with pytest.raises(RelayError, match=message):
        lower(module)


def test_deep_programs():
    x = relay.var("x", shape=(2, 3))
    found: relay.Expr = x
    for i in range(2_000):
        found = relay.Let(relay.Var("v"), relay.const(1), found) if i % 2 else relay.negative(found)
    assert str(lower(relay.IRModule.from_expr(found))).count("relay.negative") == 1_000


def test_transposed_convolutions_take_an_output_padding_of_more_than_a_step():
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 3, 4, 5), np.float32), rng.standard_normal((3, 4, 3, 2), np.float32)
    for padding, more in (((0, 0), (1, 1)), ((1, 0), (2, 1)), ((0, 1), (3, 1))):
        full = np.zeros((2, 4, 6, 6), np.float32)
        for i in range(4):
            for j in range(5):
                full[:, :, i : i + 3, j : j + 2] += np.einsum("nc,cohw->nohw", x[:, :, i, j], w)
        expected = np.pad(full, [(0, 0), (0, 0), (0, 3), (0, 3)])
        expected = expected[:, :, padding[0] : 6 - padding[0] + more[0], padding[1] : 6 - padding[1] + more[1]]
        variables = relay.var("x", shape=x.shape), relay.var("w", shape=w.shape)
        y = relay.nn.conv2d_transpose(*variables, padding=padding, output_padding=more)
        found = relay.create_executor("graph").evaluate(relay.Function(variables, y))(x, w).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)  # sums of at most 18 products


def test_weights_in_blocks_are_those_without():
    x, w = np.arange(96, dtype=np.float32).reshape(1, 6, 4, 4) % 7, np.arange(96, dtype=np.float32).reshape(4, 6, 2, 2) % 5
    blocks = w.reshape(2, 2, 3, 2, 2, 2).transpose(0, 2, 4, 5, 3, 1)  # OIHW2i2o
    channels = x.reshape(1, 3, 2, 4, 4).transpose(0, 1, 3, 4, 2)  # NCHW2c
    variables = relay.var("x", shape=("n", *channels.shape[1:])), relay.var("w", shape=blocks.shape)
    y = relay.nn.contrib_conv2d_nchwc(*variables, kernel_size=(2, 2), channels=4, data_layout="NCHW2c", kernel_layout="OIHW2i2o")
    found = relay.create_executor("graph").evaluate(relay.Function(variables, y))(channels, blocks).numpy()
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 2), (2, 3))
    expected = np.einsum("nchwij,ocij->nohw", windows, w)
    np.testing.assert_array_equal(found.transpose(0, 1, 4, 2, 3).reshape(1, 4, 3, 3), expected)


@pytest.mark.parametrize("dims", [(2, 3), (relay.Any(), relay.Any())])
def test_one_number_along_an_axis(dims):
    x, v = relay.var("x", shape=dims), relay.const(np.array([-2], "float32"))
    y = relay.Tuple([relay.nn.bias_add(x, v, axis=-1), relay.nn.prelu(x - relay.const(3.0), v)])
    bias, alpha = run(relay.Function([x], y), X)
    np.testing.assert_array_equal(bias.numpy(), X - 2)
    np.testing.assert_array_equal(alpha.numpy(), np.where(X > 3, X - 3, 6 - 2 * X))


def test_an_output_padding_of_more_axes_than_there_are_is_its_first_numbers():
    x, w = relay.var("x", shape=(1, 1, 2)), relay.var("w", shape=(1, 1, 2))
    y = relay.nn.conv1d_transpose(x, w, strides=(2,), output_padding=(1, 0))
    found = run(relay.Function([x, w], y), X[:1, None, :2], X[1:, None, :2])
    np.testing.assert_array_equal(found.numpy(), [[[4, 5, 8, 10, 0]]])


def test_programs_are_built_for_one_target():
    x = relay.var("x", shape=(2, 3))
    for target in ("llvm", ["llvm"], {"cpu": "llvm"}):
        executor = relay.build(relay.Function([x], x + x), target, "llvm", executor="graph", runtime="cpp")["default"]("cpu")
        executor.run(x=X)
        np.testing.assert_array_equal(executor.get_output(0).numpy(), 2 * X)
    with pytest.raises(ValueError, match=r"relay\.build: expected one target, found 2"):
        relay.build(relay.Function([x], x + x), ["llvm", "cuda"])


def test_weights_of_depthwise_convolutions_may_have_the_multiplier_on_axis_i():
    x, w = np.arange(32, dtype=np.float32).reshape(1, 2, 4, 4), np.arange(6, dtype=np.float32).reshape(2, 3, 1, 1)
    variables = relay.var("x", shape=x.shape), relay.var("w", shape=w.shape)
    y = relay.nn.conv2d(*variables, groups=2, channels=6, kernel_size=(1, 1))
    found = relay.create_executor("graph").evaluate(relay.Function(variables, y))(x, w).numpy()
    np.testing.assert_array_equal(found, (x[:, :, None] * w[None]).reshape(1, 6, 4, 4))


def test_parameters_of_one_name_get_numbers():
    params = [relay.var("x", shape=(size,)) for size in (2, 3, 4)] + [relay.var("", shape=(5,))]
    text = str(lower(relay.IRModule.from_expr(relay.Function(params, relay.Tuple(params)))))
    assert re.findall(r'relay.name = "(\w*)"', text) == ["x", "x_1", "x_2", "arg"]


def test_arrays_of_another_rank_are_refused():
    """Sizes that are not known are those of the array, in tuples as well."""
    x, pair = relay.var("x", shape=(relay.Any(), 3)), relay.TupleType([relay.TensorType((relay.Any(),)), relay.TensorType((2,))])
    with pytest.raises(ValueError, match=r"expected Tensor\[\(\?, 3\), float32\], found an array of shape \(3,\)"):
        run(relay.Function([x], relay.exp(x)), np.zeros(3, np.float32))
    both = relay.Var("both", pair)
    total = relay.create_executor("graph").evaluate(relay.Function([both], relay.TupleGetItem(both, 0) + relay.TupleGetItem(both, 1)))
    for size in (2, 1):
        np.testing.assert_array_equal(total([np.ones(size, np.float32), np.arange(2, dtype=np.float32)]), [1, 2])


@pytest.mark.parametrize(
    ("call", "operator", "is_there"),
    [
        (lambda x, late: relay.nn.pad(x, ((0, 0), (0, 1))), "strided_slice", False),
        (lambda x, late: relay.nn.pad(late, ((-2, 0), (0, 0))), "match_shape", True),
        (lambda x, late: relay.nn.pad(late, ((0, 0), (0, 1))), "match_shape", False),
        (lambda x, late: relay.reshape(late, (1, 6)), "match_shape", True),
        (lambda x, late: relay.reshape(late, (-1, 3)), "match_shape", False),
        (lambda x, late: relay.nn.matmul(x, relay.var("y", shape=(2, 4)), transpose_a=True), 'transpose"', False),
    ],
)
def test_operators_that_calls_need_besides_their_own(call, operator, is_there):
    made = call(relay.var("x", shape=(2, 3)), relay.var("late", shape=(relay.Any(), 3)))
    assert (f"relay.{operator}" in str(lower(relay.IRModule.from_expr(made)).module)) == is_there


def test_a_bias_of_one_number_is_added_along_axes_that_are_there():
    x, b = relay.var("x", shape=(4, 3)), relay.var("b", shape=(1,))
    for axis in (-2, 1):
        assert relay.transform.InferTypeLocal(relay.nn.bias_add(x, b, axis)) == relay.TensorType((4, 3))
    for axis in (-3, 2):
        with pytest.raises(RelayError, match="axis"):
            relay.transform.InferTypeLocal(relay.nn.bias_add(x, b, axis))


@pytest.mark.parametrize(("calls", "fits"), [(8, True), (9, False)])
def test_calls_of_a_function_are_built_in_one_another_so_many_times(calls, fits):
    body = "exp(%v)"
    for i in range(calls):
        body = f"@apply(fn (%v: float32) -> float32 {{ {body} }}, %{'v' if i < calls - 1 else 'x'})"
    mod = relay.parse(f"def @apply[A](%f: fn (A) -> A, %v: A) -> A {{ %f(%v) }} def @main(%x: float32) -> float32 {{ {body} }}")
    with contextlib.nullcontext() if fits else pytest.raises(NeedsControl, match="a function that calls itself by others"):
        assert str(lower(mod).module).count("relay.exp") == 1


def test_a_weight_of_one_group_has_the_channels_of_the_data():
    x, w = relay.var("x", shape=(1, 1, 5, 5)), relay.var("w", shape=(1, 3, 3, 3))
    with pytest.raises(RelayError, match="channels"):
        relay.transform.InferTypeLocal(relay.nn.conv2d(x, w))


def test_a_program_that_needs_one_of_its_sizes_is_compiled_for_those_of_the_call():
    x, y = relay.var("x", shape=(relay.Any(),)), relay.var("y", shape=(2,))
    program = relay.Function([x, y], relay.sliding_window(x, 0, (2,), (1,)) + y)
    a, b = np.arange(4, dtype="float32"), np.array([3, -2], "float32")
    np.testing.assert_array_equal(run(program, a, b), np.stack([a[:-1], a[1:]], 1) + b)
    pairs, some = relay.var("x", shape=(relay.Any(), 2)), np.arange(8, dtype="float32").reshape(4, 2)
    program = relay.Function([pairs, y], relay.sliding_window(pairs, 0, (2, 2), (1, 1)) + y)
    np.testing.assert_array_equal(run(program, some, b), np.stack([some[:-1], some[1:]], 1)[:, None] + b)
