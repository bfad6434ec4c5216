"""An operator from outside the package states facts about itself, and the graph passes treat it by them."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest
from rewrites import program_of
from support import Const, program, run_program

import relayc
from relayc.dialects.mlir import arith, ir
from relayc.dialects.relay import OPS, Fused, IRModule, LayoutRole, Op, Operand, Pattern, Precision, TensorType, View, build
from relayc.dialects.relay.images import ImageOp
from relayc.dialects.relay.layout import layout
from relayc.pipelines import PassContext, find_pass
from relayc.pipelines.te.rules import core, scalar


def _twice(op: Op, data: ir.Value) -> ir.Value:
    dtype = core.operand_type(op).dtype
    return core.elementwise(op, [data], lambda x: arith.AddFOp(x, x).result if scalar.is_float(dtype) else arith.AddIOp(x, x).result)


@pytest.fixture
def outside() -> Iterator[None]:
    """Operators `outside_NAME`, gone again after the test."""
    before = set(OPS)

    class Plain(Op, name="outside_plain"):
        """Twice its operand; says nothing of itself but that it is elementwise."""

        data: Operand
        pattern = Pattern.ELEMWISE

        @staticmethod
        def infer(op: View) -> TensorType:
            return op.data

    class Twice(Op, name="outside_twice"):
        """Twice its operand."""

        data: Operand
        pattern = Pattern.ELEMWISE
        layout_role = LayoutRole.FOLLOWS
        precision = Precision.FOLLOW
        keeps_shape = True

        @staticmethod
        def infer(op: View) -> TensorType:
            return op.data

    class Flip(ImageOp, name="outside_flip"):
        """An image with its rows in the opposite order."""

        data: Operand
        layout: str = "NCHW"
        pattern = Pattern.INJECTIVE
        layout_role = LayoutRole.FOLLOWS
        layout_gain = 1.0
        precision = Precision.EXACT

        @staticmethod
        def infer(op: View) -> TensorType:
            layout(op.layout, "NCHW")
            return op.data

    class Lines(Op, name="outside_lines"):
        """A matrix as one line: the same elements in the same order."""

        data: Operand
        pattern = Pattern.INJECTIVE
        is_view = True

        @staticmethod
        def infer(op: View) -> TensorType:
            return op.data.with_shape((1, op.data.num_elements))

    class Mirror(Op, name="outside_mirror"):
        """The operand turned around as a whole."""

        data: Operand
        pattern = Pattern.INJECTIVE
        involutory = True

        @staticmethod
        def infer(op: View) -> TensorType:
            return op.data

    class After(Op, name="outside_after"):
        """lhs with rhs put behind every element: lhs where rhs is 7."""

        lhs: Operand
        rhs: Operand
        pattern = Pattern.BROADCAST
        right_neutral = 7

        @staticmethod
        def infer(op: View) -> TensorType:
            return op.lhs

    core.compute("outside_plain", "outside_twice")(_twice)

    @core.compute("outside_flip")
    def flip(op: Op, data: ir.Value) -> ir.Value:
        rank, rows = len(data.type.shape), layout(op.layout).index("H")
        last = data.type.shape[rows] - 1
        source = [last - core.dim(i) if i == rows else core.dim(i) for i in range(rank)]
        return core.parallel(core.result_type(op), [data], lambda x: x, [core.affine_map(rank, source)])

    yield
    for name in set(OPS) - before:
        del OPS[name]
        core.RULES.pop(name, None)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def between_convolutions(name: str):
    def body(x, v, w):
        first = build("nn.conv2d", x, v, padding=(1, 1, 1, 1))
        return [build("nn.conv2d", build(name, first), w, padding=(1, 1, 1, 1))]

    return body, [normal(1, 16, 8, 8), Const(normal(32, 16, 3, 3, seed=1)), Const(normal(32, 32, 3, 3, seed=2))]


def transforms(mod) -> int:
    return str(mod).count('"relay.layout_transform"')


@pytest.mark.parametrize(("name", "expected"), [("outside_plain", 4), ("outside_twice", 2), ("outside_flip", 2)])
def test_an_operator_follows_layouts_where_it_says_so(outside, name, expected):
    body, arrays = between_convolutions(name)
    with PassContext(config={"relay.AlterOpLayout.block": 8}):
        mod = find_pass("AlterOpLayout")(program(body, arrays))
    mod.verify()
    assert transforms(mod) == expected


@pytest.mark.parametrize(
    ("layouts", "expected"),
    [({}, 2), ({"out_layout": "NCHW"}, 2), ({"kernel_layout": "IOHW"}, 0), ({"data_layout": "NHWC"}, 0), ({"out_layout": "NHWC"}, 0)],
)
def test_only_convolutions_in_the_layouts_of_onnx_take_another_layout(layouts, expected):
    def body(x, v, w):
        first = build("nn.conv2d", x, v, padding=(1, 1, 1, 1), **layouts)
        return [build("nn.conv2d", first, w, padding=(1, 1, 1, 1), **layouts)]

    arrays = [normal(1, 16, 16, 16), Const(normal(16, 16, 3, 3, seed=1)), Const(normal(16, 16, 3, 3, seed=2))]
    with PassContext(config={"relay.AlterOpLayout.block": 8}):
        assert transforms(find_pass("AlterOpLayout")(program(body, arrays))) == expected


@pytest.mark.parametrize(
    ("size", "depth", "expected"), [(8, 64, 0), (16, 64, 0), (32, 64, 2), (64, 64, 2), (32, 63, 0), (48, 64, 0), (33, 64, 0)]
)
def test_pointwise_convolutions_take_another_layout_where_planes_lie_whole_pages_apart(size, depth, expected):
    """A page has 4096 bytes: as many as 32 x 32 numbers."""
    arrays = [np.zeros((1, depth, size, size), np.float32), Const(normal(64, depth, 1, 1))]
    with PassContext(config={"relay.AlterOpLayout.block": 8}):
        mod = find_pass("AlterOpLayout")(program(lambda x, w: [build("nn.conv2d", x, w)], arrays))
    assert transforms(mod) == expected


def test_operators_in_another_layout_take_the_place_of_those_before():
    text = "transpose(nn_relu(nn_conv2d(x, numbers(16, 16, 3, 3))), axes=(0, 2, 3, 1))"
    with PassContext(config={"relay.AlterOpLayout.block": 8}):
        mod = find_pass("AlterOpLayout")(program_of("x:1x16x4x4", text))
    operations = mod.main.regions[0].blocks[0].operations
    assert [op.operation.name for op in operations] == ["relay.constant", "relay.nn_conv2d", "relay.nn_relu", "func.return"]


@pytest.mark.parametrize("name", ["outside_twice", "outside_flip"])
def test_what_follows_a_layout_computes_the_same(outside, name):
    body, arrays = between_convolutions(name)
    found = run_program(body, arrays)[0]
    expected = run_program(body, arrays, opt_level=0)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("name", "stored"), [("outside_plain", "f32"), ("outside_twice", "bf16"), ("outside_flip", "bf16")])
def test_an_operator_reads_bf16_where_it_says_so(outside, name, stored):
    """What stands alone between two products reads the first one's result as that is stored."""
    x, w = normal(1, 8, 4, 8), normal(8, 8, seed=1)

    def body(x, w):
        first = build("nn.dense", x, w)
        turned = build("transpose", build(name, build("transpose", first, axes=(0, 2, 1, 3))), axes=(0, 2, 1, 3))
        return [build("nn.dense", turned, w)]

    config = {"relay.ToMixedPrecision.force": True}
    with relayc.PassContext(config=config, disabled_pass=["FuseOps.epilogue", "FuseOps.prologue"]):
        mod = relayc.compile(program(body, [x, Const(w)]), precision="bf16", stop_after="relay")
    groups = [op for op in mod.main.regions[0].blocks[0].operations if isinstance(op, Fused)]
    product = next(group for group in groups if "nn_dense" in str(group))
    assert str(product.operation.results[0].type).endswith(f"x{stored}>")


def test_a_following_operator_computes_in_f32_and_rounds_once(outside):
    x, w = normal(4, 16), normal(16, 16, seed=1)
    with relayc.PassContext(config={"relay.ToMixedPrecision.force": True}):
        module = relayc.compile(
            program(lambda x, w: [build("nn.dense", build("outside_twice", build("nn.dense", x, w)), w)], [x, Const(w)]), precision="bf16"
        )
    rounded = lambda a: a.astype(ml_dtypes.bfloat16).astype(np.float32)  # noqa: E731 (short)
    expected = rounded(2 * (rounded(x) @ rounded(w).T)) @ rounded(w).T
    np.testing.assert_allclose(module["main"](x), expected, rtol=2e-2, atol=2e-2)


def names_of(mod) -> list[str]:
    return [op.operation.name.removeprefix("relay.") for op in mod.main.regions[0].blocks[0].operations][:-1]


def test_a_view_becomes_a_reshape_and_stays_outside_of_groups(outside):
    x = normal(3, 4)

    def body(x):
        return [build("exp", build("outside_lines", x))]

    assert names_of(find_pass("CanonicalizeOps")(program(body, [x]))) == ["reshape", "exp"]
    assert names_of(find_pass("FuseOps")(program(body, [x]))) == ["outside_lines", "fused"]
    np.testing.assert_allclose(run_program(body, [x])[0], np.exp(x).reshape(1, 12), rtol=1e-6)
    with PassContext(disabled_pass=["CanonicalizeOps"]):
        found = relayc.compile(program(body, [x]))["main"](x)
    np.testing.assert_allclose(found, np.exp(x).reshape(1, 12), rtol=1e-6)


def test_identities_hold_for_operators_that_state_them(outside):
    x, seven = normal(3, 4), Const(np.float32(7))

    def body(x, seven):
        return [build("outside_mirror", build("outside_mirror", x)), build("outside_after", x, seven), build("outside_after", seven, x)]

    mod = find_pass("SimplifyExpr")(program(body, [x, seven]))
    returned = list(mod.main.regions[0].blocks[0].operations)[-1].operation.operands
    assert all(isinstance(value, ir.BlockArgument) for value in list(returned)[:2])
    assert names_of(mod)[-1] == "outside_after"  # 7 is neutral on the right only


# ---- the facts of Relay's own operators --------------------------------------------------------------------------------------------------

TWICE = {
    **{name: getattr(np, name) for name in ("abs", "ceil", "floor", "trunc", "round", "sign", "negative", "exp", "tanh", "sin")},
    "nn.relu": lambda x: np.maximum(x, 0),
    "logical_not": np.logical_not,
    "bitwise_not": np.invert,
}


def test_an_operator_applied_twice_is_simplified_where_numpy_says_so():
    for name, function in TWICE.items():
        array = np.array([False, True]) if name.endswith("not") else np.array([-1.5, -0.25, 0.75, 2.5], np.float32)
        once, twice = function(array), function(function(array))
        expected = 0 if np.array_equal(array, twice) else 1 if np.array_equal(once, twice) else 2
        mod = find_pass("SimplifyExpr")(program(lambda x, of=name: [build(of, build(of, x))], [array]))
        assert len(names_of(mod)) == expected, name


IMAGE, ROWS, VECTOR = normal(1, 2, 4, 4), normal(4, 8), normal(8)
VOLUME, INDICES = normal(1, 2, 4, 4, 4), np.zeros((4, 8), np.int64)
GATHERS = {
    "take": ((ROWS, INDICES), {"axis": 1}),
    "gather": ((ROWS, INDICES), {"axis": 1}),
    "gather_nd": ((ROWS, np.zeros((2, 3), np.int64)), {}),
    "image.resize2d": ((IMAGE,), {"size": (8, 8)}),
    "image.resize3d": ((VOLUME,), {"size": (8, 8, 8)}),
    "nn.upsampling": ((IMAGE,), {"scale_h": 2, "scale_w": 2}),
    "nn.upsampling3d": ((VOLUME,), {"scale_d": 2, "scale_h": 2, "scale_w": 2}),
    "image.grid_sample": ((IMAGE, normal(1, 2, 3, 3)), {}),
}
IN_PIECES = {
    "concatenate": ((ROWS, ROWS), {"axis": 0}),
    "stack": ((ROWS, ROWS), {"axis": 0}),
    "nn.pad": ((ROWS, Const(np.float32(0))), {"pad_width": (1, 1, 1, 1)}),
    "nn.mirror_pad": ((ROWS,), {"pad_width": (1, 1, 1, 1)}),
}
MOVES = {
    "copy": ((VECTOR,), {}),
    "cast": ((VECTOR,), {"dtype": "float16"}),
    "reinterpret": ((VECTOR,), {"dtype": "int32"}),
    "broadcast_to": ((VECTOR,), {"shape": (2, 8)}),
}
BY_ROWS = {
    "nn.softmax": ((ROWS,), {}),
    "nn.log_softmax": ((ROWS,), {}),
    "nn.layer_norm": ((ROWS, VECTOR, VECTOR), {}),
    "nn.rms_norm": ((ROWS, VECTOR), {}),
}
NORMALISES = {
    **BY_ROWS,
    "nn.instance_norm": ((IMAGE, normal(2), normal(2)), {}),
    "nn.group_norm": ((IMAGE, normal(2), normal(2)), {"num_groups": 2}),
    "nn.l2_normalize": ((ROWS,), {"eps": 1e-5, "axis": (1,)}),
}
VIEWS = {
    "reshape": ((ROWS,), {"newshape": (8, 4)}),
    "expand_dims": ((ROWS,), {"axis": 0}),
    "squeeze": ((IMAGE,), {"axis": (0,)}),
    "nn.batch_flatten": ((IMAGE,), {}),
}
OTHERS = {
    "transpose": ((ROWS,), {}),
    "tile": ((ROWS,), {"reps": (2, 1)}),
    "exp": ((VECTOR,), {}),
    "nn.lrn": ((IMAGE,), {"size": 3}),
}


def summed(y):
    return build("sum", y)


def computed_from(y):
    return build("abs", y)


def spread(y):
    """What reads each element of y several times."""
    return build("add", y, build("ones", shape=(16, 2, 8), dtype=TensorType.of(y).dtype))


@pytest.mark.parametrize(
    ("cases", "before", "after", "kernels"),
    [
        (GATHERS, None, summed, 2),
        ({"transpose": OTHERS["transpose"]}, None, summed, 1),
        (IN_PIECES, None, computed_from, 2),
        ({"tile": OTHERS["tile"]}, None, computed_from, 1),
        (VIEWS, None, computed_from, 2),
        (MOVES, None, spread, 1),
        ({"exp": OTHERS["exp"]}, None, spread, 2),
        (NORMALISES, computed_from, None, 1),
        ({"nn.lrn": OTHERS["nn.lrn"]}, computed_from, None, 2),
    ],
    ids=["gathers", "moves-anywhere", "in-pieces", "at-once", "views", "moves-only", "computes", "reads-rows", "reads-windows"],
)
def test_operators_are_fused_as_they_say(cases, before, after, kernels):
    for name, (arrays, attrs) in cases.items():

        def body(x, *others, of=name, attrs=attrs):
            found = build(of, before(x) if before else x, *others, **attrs)
            return [after(found) if after else found]

        found = names_of(find_pass("FuseOps")(program(body, arrays)))
        assert sum(name != "constant" for name in found) == kernels, name


def test_a_reshape_moves_past_what_computes_rows():
    for name, (arrays, attrs) in BY_ROWS.items():
        body = lambda x, *v, of=name, attrs=attrs: [build(of, build("reshape", x, newshape=(2, 2, 8)), *v, **attrs)]  # noqa: E731
        assert names_of(find_pass("SinkReshapes")(program(body, arrays)))[-1] == "reshape", name


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        ('%1 = "relay.full"(%s) {shape = array<i64: 4>} : (tensor<f32>)', True),
        ('%1 = "relay.zeros"() {shape = array<i64: 4>, dtype = "float32"} : ()', True),
        ('%1 = "relay.ones"() {shape = array<i64: 4>, dtype = "float32"} : ()', True),
        ('%1 = "relay.arange"() {start = 0.0 : f64, stop = 4.0 : f64, step = 1.0 : f64, dtype = "float32"} : ()', True),
        ('%1 = "relay.broadcast_to"(%s) {shape = array<i64: 4>} : (tensor<f32>)', True),
        (
            '%k = "relay.sizes"() {values = array<i64: 0, 1, 2, 3>, dtype = "int64"} : () -> tensor<4xi64>\n'
            '%1 = "relay.cast"(%k) {dtype = "float32"} : (tensor<4xi64>)',
            True,
        ),
        ('%1 = "relay.exp"(%x) : (tensor<4xf32>)', False),
    ],
)
def test_what_says_no_more_than_its_operands_stays_in_a_loop(text, stays):
    mod = IRModule.parse(f"""
func.func @main(%c: tensor<i1>, %x: tensor<4xf32>, %s: tensor<f32>) -> tensor<4xf32> {{
  %0 = "relay.while"(%x) ({{
  ^bb0(%a: tensor<4xf32>):
    "relay.yield"(%c) : (tensor<i1>) -> ()
  }}, {{
  ^bb0(%a: tensor<4xf32>):
    {text} -> tensor<4xf32>
    %2 = "relay.add"(%a, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "relay.yield"(%2) : (tensor<4xf32>) -> ()
  }}) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}}
""")
    assert (len(names_of(find_pass("LoopInvariantCodeMotion")(mod))) == 1) == stays
