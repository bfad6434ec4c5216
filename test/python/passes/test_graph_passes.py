"""The graph passes on parameters and numbers: what lit cannot see in text."""

import operator
import tracemalloc

import numpy as np
import pytest
from support import Const, program, run_program

from relayc.dialects.relay import IRModule, RelayError, TensorType, build
from relayc.pipelines import PassContext, find_pass
from relayc.pipelines.graph.fold_scale_axis import is_constant
from relayc.pipelines.graph.reshapes import before_reshape, regroup
from relayc.pipelines.graph.rewrite import Rules
from relayc.pipelines.graph.share_parameters import _samples
from relayc.pipelines.graph.simplify_expr import _ORDERS
from relayc.symbolic import parse


def apply(mod, *names, **options):
    with PassContext(**options):
        for name in names:
            mod = find_pass(name)(mod)
    mod.verify()
    return mod


def names_of(mod):
    return [op.operation.name.removeprefix("relay.") for op in mod.main.regions[0].blocks[0].operations][:-1]


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


# ---- FoldConstant ---------------------------------------------------------------------------------------------------------------------


def test_folded_movement_is_a_view_of_the_parameter():
    weight = normal(64, 32)
    mod = apply(program(lambda x, w: [build("nn.dense", x, build("transpose", w))], [normal(4, 64), Const(weight)]), "FoldConstant")
    (array,) = mod.params.values()
    assert array.shape == (32, 64)
    assert np.shares_memory(array, weight)


def test_folding_drops_parameters_that_nothing_names():
    a, b = normal(64, 32), normal(64, 32, seed=1)
    mod = apply(program(lambda x, a, b: [build("add", x, build("multiply", a, b))], [normal(64, 32), Const(a), Const(b)]), "FoldConstant")
    (array,) = mod.params.values()
    np.testing.assert_array_equal(array, a * b)


def test_a_large_constant_with_another_axis_is_folded():
    weight = normal(300, 300)
    mod = program(lambda x, w: [build("add", x, build("broadcast_to", w, shape=(1, 300, 300)))], [normal(1, 300, 300), Const(weight)])
    (array,) = apply(mod, "FoldConstant").params.values()
    assert array.shape == (1, 300, 300)


@pytest.mark.parametrize(("rows", "is_folded"), [(128, True), (129, False)])
def test_repeated_elements_are_folded_up_to_64_kib(rows, is_folded):
    arrays = [normal(rows, 128), Const(normal(1, 128))]
    mod = program(lambda x, w: [build("add", x, build("broadcast_to", w, shape=(rows, 128)))], arrays)
    assert names_of(apply(mod, "FoldConstant")) == ["constant", *([] if is_folded else ["broadcast_to"]), "add"]


def test_folding_keeps_float32():
    mod = apply(program(lambda x: [build("exp", build("sum", x))], [Const(normal(20, 20))]), "FoldConstant")
    value = mod.value_of(mod.main.regions[0].blocks[0].operations[0].result)
    assert value.dtype == np.float32


def test_folding_does_not_copy_hundreds_of_megabytes():
    weight = np.broadcast_to(np.float32(1), (8192, 8192))  # stands for 256 MB without taking them
    mod = program(
        lambda x, w: [build("nn.dense", x, build("reshape", build("transpose", w), newshape=(8192, 8192)))],
        [normal(1, 8192), Const(weight)],
    )
    tracemalloc.start()
    apply(mod, "CanonicalizeOps", "SimplifyExpr", "EliminateCommonSubexpr", "FoldConstant", "DeadCodeElimination")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 << 20


def test_growth_is_limited_by_the_config():
    def outer(x, a, b):
        return [build("add", x, build("multiply", a, b))]

    arrays = [normal(512, 512), Const(normal(512, 1)), Const(normal(1, 512))]
    assert names_of(apply(program(outer, arrays), "FoldConstant")) == ["constant", "add"]
    kept = apply(program(outer, arrays), "FoldConstant", config={"relay.FoldConstant.max_growth": 1000})
    assert names_of(kept) == ["constant", "constant", "multiply", "add"]


def test_equal_parameters_become_one():
    a = normal(64, 32)
    mod = program(lambda x, a, b: [build("add", build("add", x, a), b)], [normal(64, 32), Const(a), Const(a.copy())])
    mod = apply(mod, "EliminateCommonSubexpr", "DeadCodeElimination")
    assert len(mod.params) == 1


@pytest.mark.parametrize(("size", "step", "count"), [(0, 1, 0), (1, 1, 1), (127, 1, 127), (128, 2, 64), (6400, 100, 64)])
def test_parameters_are_told_apart_by_few_elements(size, step, count):
    found = np.frombuffer(_samples(np.arange(size, dtype=np.uint16)), np.uint16)
    assert found.tolist() == list(range(0, size, step)) and len(found) == count


@pytest.mark.parametrize("shape", [(), (1,), (4, 1), (1, 1, 1)])
def test_numbers_beside_branches_of_one_channel(shape):
    """What follows a branch has a number for each channel, which one without the axis of the channels has not."""
    is_beside = shape == (1,)

    def body(x, *others):
        weights, numbers = others[:2], others[2:]
        return [build("multiply", build("nn.dense", x, w), n) for w, n in zip(weights, numbers, strict=True)]

    arrays = [normal(4, 8), normal(1, 8), normal(1, 8, seed=1), Const(normal(*shape)), Const(normal(*shape, seed=2))]
    config = {"relay.CombineParallel.min_branches": 2, "relay.CombineParallel.variables": True}
    found = apply(program(body, arrays), "CombineParallelDense", config=config)
    assert names_of(found).count("multiply") == (1 if is_beside else 2)


# ---- numerics through the whole pipeline ------------------------------------------------------------------------------------------------


def same_with_and_without_passes(body, arrays, rtol=1e-5):
    """Compiles at level 4 and at level 0 without the optional passes, and compares."""
    optional = ["SimplifyExpr", "RecognizePatterns", "FoldScaleAxis", "SinkReshapes", "EliminateCommonSubexpr"]
    with PassContext(opt_level=0, disabled_pass=optional):
        expected = run_program(body, arrays, opt_level=0)
    found = run_program(body, arrays, opt_level=4)
    for a, b in zip(found, expected, strict=True):
        # Factors in weights and other orders of sums: a few ulp of the largest value.
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * max(1.0, float(np.abs(b).max(initial=0))))


@pytest.mark.parametrize(("count", "expected"), [(8, True), (9, False)])
def test_up_to_8_operators_on_a_constant_are_constant(count, expected):
    found = []

    def body(x, w):
        for _ in range(count):
            w = build("abs", w)
        found.append(is_constant(w))
        return [build("add", x, w)]

    program(body, [normal(4), Const(normal(4))])
    assert found == [expected]


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("layout", ["OIHW", "HWIO", "IOHW"])
def test_scales_into_grouped_convolutions(groups, layout):
    x = normal(2, 4, 5, 6)
    name = "nn.conv2d_transpose" if layout == "IOHW" else "nn.conv2d"
    sizes = {"O": 8, "I": 4, "H": 3, "W": 3}
    sizes["O" if layout == "IOHW" else "I"] //= groups
    weight = normal(*(sizes[axis] for axis in layout), seed=1)
    scale, bias, before = (Const(normal(n, 1, 1, seed=s)) for n, s in ((8, 2), (8, 3), (4, 4)))

    def body(x, w, scale, bias, before):
        conv = build(name, build("multiply", x, before), w, groups=groups, kernel_layout=layout)
        return [build("multiply", build("add", conv, bias), scale)]

    mod = apply(program(body, [x, Const(weight), scale, bias, before]), "FoldScaleAxis", "FoldConstant", "DeadCodeElimination")
    assert [n for n in names_of(mod) if n != "constant"] == [name.replace(".", "_"), "add"]
    same_with_and_without_passes(body, [x, Const(weight), scale, bias, before])


def test_attention_with_heads_and_mask():
    x, mask = normal(2, 6, 16), normal(2, 1, 1, 6, seed=9)
    weights = [Const(normal(16, 16, seed=i)) for i in range(4)]
    bias = Const(normal(16, seed=5))

    def heads(x, w, bias, axes):
        flat = build("nn.matmul", build("reshape", x, newshape=(12, 16)), w)
        biased = build("add", build("reshape", flat, newshape=(2, 6, 16)), bias)
        return build("transpose", build("reshape", biased, newshape=(2, 6, 4, 4)), axes=axes)

    def body(x, mask, wq, wk, wv, wo, bias, scale):
        q, k, v = heads(x, wq, bias, (0, 2, 1, 3)), heads(x, wk, bias, (0, 2, 3, 1)), heads(x, wv, bias, (0, 2, 1, 3))
        q, k, v = (build("reshape", t, newshape=(8, *shape)) for t, shape in ((q, (6, 4)), (k, (4, 6)), (v, (6, 4))))
        scores = build("reshape", build("nn.batch_matmul", q, k, transpose_b=False), newshape=(2, 4, 6, 6))
        weights = build("nn.softmax", build("add", build("divide", scores, scale), mask))
        context = build("nn.batch_matmul", build("reshape", weights, newshape=(8, 6, 6)), v, transpose_b=False)
        context = build("transpose", build("reshape", context, newshape=(2, 4, 6, 4)), axes=(0, 2, 1, 3))
        flat = build("nn.matmul", build("reshape", context, newshape=(12, 16)), wo)
        return [build("add", build("reshape", flat, newshape=(2, 6, 16)), x)]

    same_with_and_without_passes(body, [x, mask, *weights, bias, Const(np.float32(2))])


def test_decomposed_norms_and_softmax():
    def body(x, gamma, beta, eps, two, half):
        mean = build("mean", x, axis=(-1,), keepdims=True)
        centred = build("subtract", x, mean)
        variance = build("mean", build("power", centred, two), axis=(-1,), keepdims=True)
        norm = build("divide", centred, build("power", build("add", variance, eps), half))
        layer = build("add", build("multiply", norm, gamma), beta)
        exp = build("exp", build("subtract", layer, build("max", layer, axis=(1,), keepdims=True)))
        return [build("divide", exp, build("sum", exp, axis=(1,), keepdims=True)), norm]

    constants = [Const(np.float32(v)) for v in (1e-5, 2, 0.5)]
    same_with_and_without_passes(body, [normal(4, 8, 16), Const(normal(16, seed=1)), Const(normal(16, seed=2)), *constants])


def test_parallel_branches():
    weights = [Const(normal(n, 8, seed=n)) for n in (3, 4, 5)]
    biases = [Const(normal(n, seed=n)) for n in (3, 4, 5)]

    def body(x, w0, w1, w2, b0, b1, b2):
        return [build("add", build("nn.dense", x, w), b) for w, b in ((w0, b0), (w1, b1), (w2, b2))]

    same_with_and_without_passes(body, [normal(4, 8), *weights, *biases])


# ---- helpers ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "target", "groups"),
    [
        ((6, 4), (2, 3, 4), [((6,), (2, 3)), ((4,), (4,))]),
        ((2, 1, 3), (6,), [((2, 1, 3), (6,))]),
        ((4,), (1, 4, 1), [((), (1,)), ((4,), (4,)), ((), (1,))]),
        ((0, 4), (4, 0), None),
    ],
)
def test_regroup(source, target, groups):
    found = regroup(source, target)
    assert (found is None) == (groups is None)
    if groups is not None:
        assert sum((a for a, _ in found), ()) == source
        assert sum((b for _, b in found), ()) == target
        assert all(np.prod(a) == np.prod(b) for a, b in found)


@pytest.mark.parametrize(
    ("shape", "expected"), [((4,), (1, 4)), ((2, 3, 1), (6, 1)), ((2, 3, 4), (6, 4)), ((), (1, 1)), ((3, 1), None), ((2, 1, 4), None)]
)
def test_shape_before_a_reshape(shape, expected):
    assert before_reshape(shape, (6, 4), (2, 3, 4)) == expected


def sizes(text):
    """A shape of numbers and expressions, written with spaces between."""
    return tuple(map(parse, text.split()))


@pytest.mark.parametrize(
    ("source", "target", "groups"),
    [
        ("n*s 768", "n s 12 64", [("n*s", "n s"), ("768", "12 64")]),
        ("n s 12 64", "12*n*s 64", [("n s 12", "12*n*s"), ("64", "64")]),
        ("200 n 3", "n 200 1 3", [("200 n", "n 200"), ("3", "1 3")]),
        ("n m", "m n", [("n m", "m n")]),
        ("n (n+1)*4", "4*n n+1", [("n (n+1)*4", "4*n n+1")]),
        ("n 4", "n m", None),
        ("0 n", "n 0", None),
    ],
)
def test_regroup_of_expressions(source, target, groups):
    assert regroup(sizes(source), sizes(target)) == (None if groups is None else [(sizes(a), sizes(b)) for a, b in groups])


def test_shape_of_expressions_before_a_reshape():
    source, target = sizes("b*s 4"), sizes("b s 4")
    assert before_reshape(sizes("b s 1"), source, target) == sizes("b*s 1")
    assert before_reshape(sizes("b s 4"), source, target) == source
    assert before_reshape(sizes("s 4"), source, target) is None


def test_rules_that_undo_each_other_end_with_a_warning():
    rules = Rules("Loop")

    @rules.on("negative")
    def to_abs(op, rw):
        return build("abs", op.data)

    @rules.on("abs")
    def to_negative(op, rw):
        return build("negative", op.data)

    mod = program(lambda x: [build("negative", x)], [normal(4)])
    with mod.context, pytest.warns(RuntimeWarning, match="Loop: the rules do not come to an end"):
        rules.apply(mod)
    mod.verify()


def test_rules_that_undo_each_other_are_given_up_in_the_first_sweep(monkeypatch):
    monkeypatch.setattr("relayc.pipelines.graph.rewrite._VISITS_PER_OPERATION", 1)
    rules, visited = Rules("Loop"), []

    @rules.on("negative")
    def again(op, rw):
        visited.append(op.relay_name)
        return build("negative", op.data)

    mod = program(lambda x: [build("negative", x)], [normal(4)])
    with mod.context, pytest.warns(RuntimeWarning, match="Loop: the rules do not come to an end"):
        rules.apply(mod)
    assert len(visited) == 101


def test_kernels_that_cannot_be_one_leave_the_functions_as_they_were():
    """No expression in a common size is 5 for one kernel and 7 for the other."""
    one, two = 'tensor<?x4xf32, ["n"]>', 'tensor<?x4xf32, ["2*n"]>'

    def kernel(name, type_, flops):
        attributes = f"{{relay.primitive, relay.own_flops = {flops} : i64}}"
        body = f'%0 = "relay.exp"(%x) : ({type_}) -> {type_} return %0 : {type_}'
        return f"func.func private @{name}(%x: {type_}) -> {type_} attributes {attributes} {{ {body} }}"

    calls = f"%0 = call @a(%x) : ({one}) -> {one} %1 = call @b(%y) : ({two}) -> {two} return %0, %1 : {one}, {two}"
    main = f"func.func @main(%x: {one}, %y: {two}) -> ({one}, {two}) {{ {calls} }}"
    mod = IRModule.parse("\n".join([kernel("a", one, 5), kernel("b", two, 7), main]))
    _, before = str(mod).split("\n", 1)
    assert str(apply(mod, "MergeSimilarKernels")).split("\n", 1)[1] == before


def test_a_chain_of_squares_that_nothing_uses_any_more_goes_in_as_many_steps():
    def body(x, is_first):
        last = x
        for _ in range(64):
            last = build("multiply", last, last)
        return [build("where", is_first, build("exp", x), last)]

    assert names_of(apply(program(body, [normal(3), Const(np.array([True, True, True]))]), "SimplifyExpr")) == ["exp"]


def test_rules_see_through_branches():
    mod = IRModule.parse("""
func.func @main(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relay.negative"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relay.if"(%c) ({
    %2 = "relay.negative"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    "relay.yield"(%2) : (tensor<4xf32>) -> ()
  }, {
    "relay.yield"(%x) : (tensor<4xf32>) -> ()
  }) : (tensor<i1>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}""")
    assert names_of(apply(mod, "SimplifyExpr", "DeadCodeElimination")) == ["if"]


@pytest.mark.parametrize(
    ("name", "compare"), [("less", operator.lt), ("less_equal", operator.le), ("greater", operator.gt), ("greater_equal", operator.ge)]
)
def test_a_comparison_is_known_where_it_is_the_same_of_all_differences(name, compare):
    for least in range(-2, 3):
        for most in range(least, 3):
            values = {compare(difference, 0) for difference in range(least, most + 1)}
            assert _ORDERS[name](least, most) == (values == {True}, values == {False}), (least, most)


@pytest.mark.parametrize(("most", "stays"), [(1, True), (2, True), (3, False)])
def test_results_of_calls_in_what_is_inlined_have_the_sizes_of_the_caller_with_a_cast_and_without(most, stays):
    n, k = 'tensor<?xf32, ["n"]>', 'tensor<?xf32, ["k"]>'
    mod = IRModule.parse(f"""
func.func private @g(%x: {n}) -> {n} {{
  %0 = "relay.exp"(%x) : ({n}) -> {n}
  %1 = "relay.abs"(%0) : ({n}) -> {n}
  return %1 : {n}
}}
func.func private @f(%x: {n}) -> {n} {{
  %y = call @g(%x) : ({n}) -> {n}
  %cast = "relay.cast_shape"(%y) {{shape = ["n"]}} : ({n}) -> {n}
  %e = "relay.exp"(%y) : ({n}) -> {n}
  %s = "relay.add"(%cast, %e) : ({n}, {n}) -> {n}
  return %s : {n}
}}
func.func @main(%x: {n}, %z: {k}) -> ({n}, {k}) {{
  %a = call @g(%x) : ({n}) -> {n}
  %given = "relay.cast_shape"(%z) {{shape = ["n"]}} : ({k}) -> {n}
  %b = call @f(%given) : ({n}) -> {n}
  %found = "relay.cast_shape"(%b) {{shape = ["k"]}} : ({n}) -> {k}
  return %a, %found : {n}, {k}
}}
""")
    mod = apply(mod, "Inline", config={"relay.Inline.max_operations": most})
    assert ("@g" in str(mod)) == stays
    *_, e, total, _ = mod.main.regions[0].blocks[0].operations
    assert str(e.result.type) == str(total.result.type) == k and "@f" not in str(mod)


@pytest.mark.parametrize(("visibility", "stays"), [("", True), ("private", False)])
def test_of_functions_that_are_called_once_public_ones_stay_calls(visibility, stays):
    mod = IRModule.parse(f"""
func.func {visibility} @f(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relay.abs"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}}
""")
    assert ("call @f" in str(apply(mod, "Inline", config={"relay.Inline.max_operations": 1}))) == stays


UNKNOWN, N, M = "tensor<2x?xf32>", 'tensor<2x?xf32, ["n"]>', 'tensor<2x?xf32, ["m"]>'


def product_types(data, weight):
    """The types of the arguments of a product after InferType."""
    result = "tensor<?x?xf32>"
    mod = IRModule.parse(f"""
func.func @main(%x: {data}, %w: {weight}) -> {result} {{
  %0 = "relay.nn_dense"(%x, %w) : ({data}, {weight}) -> {result}
  return %0 : {result}
}}
""")
    return tuple(str(a.type) for a in apply(mod, "InferType").main.regions[0].blocks[0].arguments)


def test_sizes_that_nothing_says_are_those_that_they_must_be_equal_to():
    assert product_types(UNKNOWN, "tensor<2x4xf32>") == product_types("tensor<2x4xf32>", UNKNOWN) == ("tensor<2x4xf32>",) * 2
    assert product_types(UNKNOWN, "tensor<2x0xf32>") == ("tensor<2x0xf32>",) * 2
    assert product_types(UNKNOWN, M) == product_types(M, UNKNOWN) == (M, M)
    first, second = product_types(UNKNOWN, UNKNOWN)
    assert first == second != UNKNOWN


@pytest.mark.parametrize("weight", [M, "tensor<2x4xf32>", 'tensor<2x?xf32, ["n + 1"]>'])
def test_sizes_that_are_said_stay_what_they_are(weight):
    with pytest.raises(RelayError, match=r"relay.nn_dense at .*: dimension 1 of weight .*: expected n .*, found (m|4|n \+ 1)$"):
        product_types(N, weight)


@pytest.mark.parametrize(
    ("shape", "fits"), [((), True), ((1,), True), ((1, 1, 1), True), ((16, 1, 1), True), ((8, 8), False), ((8, 1), False)]
)
def test_what_is_added_between_convolutions_in_blocks(shape, fits):
    def body(x, first, second, added):
        return [build("nn.conv2d", build("add", build("nn.conv2d", x, first), added), second)]

    inputs = [normal(1, 3, 8, 8), Const(normal(16, 3, 1, 1)), Const(normal(32, 16, 1, 1)), normal(*shape)]
    mod = apply(program(body, inputs), "AlterOpLayout", "DeadCodeElimination")
    (total,) = (op for op in mod.main.regions[0].blocks[0].operations if op.operation.name == "relay.add")
    assert (TensorType.of(total.result).rank == 5) == fits
