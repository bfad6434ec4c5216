"""What the shapes of a model become where its dimensions are symbols: against the shapes that ONNX Runtime finds at several sizes."""

from math import prod
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import model_of
from shapes_by_size import check_shapes, imported, shapes

import relayc
from relayc.frontend.onnx import OnnxError, fold_sizes, from_onnx
from relayc.frontend.sizes import LONGEST, Inexact, Ratio
from relayc.symbolic import symbol

INT, BOOL = TensorProto.INT64, TensorProto.BOOL
MODELS = Path(__file__).parents[2] / "models"
node = helper.make_node


def operators(mod):
    block = mod.main.regions[0].blocks[0]
    return [op.operation.name.removeprefix("relay.") for op in block.operations]


# ---- exported models -------------------------------------------------------------------------------------------------------------------


def symbolic(path):
    """A model and the names of its symbols; the first dimension of each input is one, where it has none."""
    model = onnx.load(path)
    initializers = {t.name for t in model.graph.initializer}
    for value in (i for i in model.graph.input if i.name not in initializers):
        dims = value.type.tensor_type.shape.dim
        if dims and not dims[0].dim_param and path.parent == MODELS:
            dims[0].dim_param = "batch"
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    return model, sorted({d.dim_param for i in model.graph.input for d in i.type.tensor_type.shape.dim if d.dim_param})


DYNAMIC = sorted((MODELS / "dynamic").glob("*.onnx"))
FREE = [MODELS / f"{name}.onnx" for name in ("bert", "convnext", "gpt2", "mlp_mixer", "mobilenet_v2", "resnet18")]


@pytest.mark.parametrize("path", [*FREE, *DYNAMIC], ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_every_shape_of_a_model_is_that_of_onnxruntime(path):
    model, names = symbolic(path)
    # Whole numbers of patches for images.
    pictures = {"height", "width"}
    compared, _ = check_shapes(
        model, *({n: 32 * (k + 1) if n in pictures else 1 + k if n == "batch" else 5 + 6 * k for n in names} for k in range(2))
    )
    assert compared >= len(model.graph.node)


@pytest.mark.parametrize(("path", "operators_of_sizes"), [(MODELS / "bert.onnx", 2), (MODELS / "gpt2.onnx", 4)], ids=["bert", "gpt2"])
def test_shape_arithmetic_leaves_no_operators(path, operators_of_sizes):
    model, _ = symbolic(path)
    found = operators(from_onnx(model))
    assert sum(name in ("sizes", "arange", "shape_of", "define_sizes", "match_shape") for name in found) <= operators_of_sizes
    assert not {"shape_of", "define_sizes", "match_shape"} & set(found)


# ---- arithmetic --------------------------------------------------------------------------------------------------------------------------


def on_shape(*nodes, dims=("n", 3), sizes=({"n": 1}, {"n": 7}, {"n": 12}), **initializers):
    """Nodes on `s`, the shape of the input x, and on `n` and `f`, the first size as an integer and as a float."""
    before = [
        node("Shape", ["x"], ["s"]),
        node("Shape", ["x"], ["n1"], start=0, end=1),
        node("Squeeze", ["n1"], ["n"]),
        node("Cast", ["n"], ["f"], to=TensorProto.FLOAT),
    ]
    constants = {name: np.asarray(value) for name, value in initializers.items()}
    model = model_of([*before, *nodes], {"x": list(dims)}, [nodes[-1].output[0]], constants)
    compared, known = check_shapes(model, *sizes)
    assert compared == known == len(sizes) * (len(before) + sum(len(n.output) for n in nodes))


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div", "Mod", "Min", "Max"])
@pytest.mark.parametrize("other", [1, 2, 5])
def test_integer_arithmetic(operator, other):
    on_shape(node(operator, ["n", "k"], ["y"]), k=other)


@pytest.mark.parametrize("other", [-7, -2, 2, 5])
def test_quotients_round_towards_zero(other):
    # n - 6 is negative, zero or positive.
    on_shape(
        node("Sub", ["n", "six"], ["d"]), node("Div", ["d", "k"], ["y"]), sizes=[{"n": n} for n in (1, 5, 6, 7, 13)], six=6, k=abs(other)
    )


def test_quotients_of_negatives_round_towards_zero():
    on_shape(node("Neg", ["n"], ["d"]), node("Div", ["d", "k"], ["y"]), k=4)


@pytest.mark.parametrize("rounded", ["Floor", "Ceil"])
@pytest.mark.parametrize("factor", [0.5, 2.0, 1.5, 0.375])
def test_floats_that_are_exact(rounded, factor):
    on_shape(node("Mul", ["f", "k"], ["m"]), node(rounded, ["m"], ["r"]), node("Cast", ["r"], ["y"], to=INT), k=np.float32(factor))


def test_quotients_of_sizes_cancel():
    on_shape(
        node("Mul", ["n", "two"], ["m"]),
        node("Cast", ["m"], ["g"], to=TensorProto.FLOAT),
        node("Div", ["g", "f"], ["y"]),
        two=2,
    )


def test_movements_of_sizes():
    on_shape(
        node("Gather", ["s", "back"], ["a"]),
        node("Concat", ["a", "s", "n1"], ["b"], axis=0),
        node("Slice", ["b", "one", "four"], ["c"]),
        node("Unsqueeze", ["c", "one"], ["d"]),
        node("Transpose", ["d"], ["e"]),
        node("Reshape", ["e", "minus"], ["g"]),
        node("Split", ["g"], ["h", "i"], num_outputs=2),
        node("Expand", ["i", "three"], ["j"]),
        node("Tile", ["j", "two"], ["k"]),
        node("ReduceProd", ["k"], ["y"], keepdims=0),
        back=[1, 0],
        one=[1],
        four=[4],
        minus=[-1],
        three=[3],
        two=[2],
    )


def test_sizes_among_known_numbers():
    at, numbers = np.array([2, 0]), np.array([7, 8, 9])
    on_shape(node("ScatterElements", ["numbers", "at", "s"], ["a"]), node("Gather", ["a", "at"], ["y"]), numbers=numbers, at=at)


@pytest.mark.parametrize(("repeats", "is_known"), [(63, True), (64, True), (65, False)])
def test_longer_tensors_of_sizes_are_data(repeats, is_known):
    nodes = [
        node("Shape", ["x"], ["s"], end=1),
        node("Tile", ["s", "repeats"], ["long"]),
        node("Slice", ["long", "last", "end"], ["k"]),
        node("ConstantOfShape", ["k"], ["y"]),
    ]
    given = {"repeats": np.array([repeats]), "last": np.array([-1]), "end": np.array([2**40])}
    assert (shapes(imported(model_of(nodes, {"x": ["n", 2]}, initializers=given)))["y"] == ["n"]) == is_known


def test_comparisons_that_have_one_answer():
    model = model_of(
        [
            node("Shape", ["x"], ["s"]),
            node("ConstantOfShape", ["two"], ["ones"], value=numpy_helper.from_array(np.array([1]))),
            node("Mul", ["ones", "minus"], ["unknown"]),
            node("Equal", ["wanted", "unknown"], ["keep"]),
            node("Where", ["keep", "s", "wanted"], ["target"]),
            node("Expand", ["x", "target"], ["y"]),
        ],
        {"x": ["n", 1]},
        initializers={"two": np.array([2]), "minus": np.array(-1), "wanted": np.array([-1, 4])},
    )
    assert shapes(imported(model))["y"] == ["n", "4"]
    check_shapes(model, {"n": 1}, {"n": 5})


def test_a_range_of_sizes():
    model = model_of(
        [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "zero"], ["n"]),
            node("Add", ["n", "five"], ["m"]),
            node("Range", ["n", "m", "two"], ["y"]),
        ],
        {"x": ["n"]},
        initializers={"zero": np.array(0), "five": np.array(5), "two": np.array(2)},
    )
    compared, known = check_shapes(model, {"n": 0}, {"n": 3})
    assert compared == known == 8


# ---- operators that take sizes ---------------------------------------------------------------------------------------------------------

SIZED = {
    "reshape": ([node("Reshape", ["x", "k"], ["y"])], {"k": [0, 2, -1]}, ["n", "2", "3"]),
    "reshape to a product": ([node("Reshape", ["x", "k"], ["y"])], {"k": [-1, 3]}, ["2*n", "3"]),
    "flatten": ([node("Flatten", ["x"], ["y"])], {}, ["n", "6"]),
    "slice from the end": ([node("Slice", ["x", "k", "last"], ["y"])], {"k": [-1], "last": [2**63 - 1]}, None),
    "slice": ([node("Slice", ["x", "k", "last"], ["y"])], {"k": [0], "last": [2**63 - 1]}, ["n", "6"]),
    "reverse": ([node("Slice", ["x", "k", "m", "a", "s"], ["y"])], {"k": [-1], "m": [-(2**63)], "a": [0], "s": [-1]}, ["n", "6"]),
    "pad": ([node("Pad", ["x", "k"], ["y"])], {"k": [1, 0, 2, 0]}, ["n + 3", "6"]),
    "pad by reflection": ([node("Pad", ["x", "k"], ["y"], mode="reflect")], {"k": [1, 0, 2, 0]}, ["n + 3", "6"]),
    "pad by wrapping": ([node("Pad", ["x", "k"], ["y"], mode="wrap")], {"k": [1, 0, 2, 0]}, ["n + 3", "6"]),
    "pad by wrapping what is cropped": ([node("Pad", ["x", "k"], ["y"], mode="wrap")], {"k": [-1, 2, 2, -1]}, ["n + 1", "7"]),
    "crop or pad": ([node("CenterCropPad", ["x", "k"], ["y"], axes=[0])], {"k": [4]}, ["4", "6"]),
    "tile": ([node("Tile", ["x", "k"], ["y"])], {"k": [2, 3]}, ["2*n", "18"]),
    "split": ([node("Split", ["x"], ["y", "z", "w"], num_outputs=3)], {}, None),
    "hardmax": ([node("Hardmax", ["x"], ["y"], axis=0)], {}, ["n", "6"]),
    "eye": ([node("EyeLike", ["x"], ["y"])], {}, ["n", "6"]),
    "resize": ([node("Resize", ["x", "", "k"], ["y"])], {"k": np.array([1.5, 2], np.float32)}, ["n + n//2", "12"]),
    "resize by a quotient of sizes": (
        [
            node("Shape", ["x"], ["s"]),
            node("Cast", ["s"], ["f"], to=TensorProto.FLOAT),
            node("Add", ["f", "k"], ["g"]),
            node("Div", ["g", "f"], ["q"]),
            node("Resize", ["x", "", "q"], ["y"]),
        ],
        {"k": np.array([1, 6], np.float32)},
        ["n + 1", "12"],
    ),
    "resize by a third": ([node("Resize", ["x", "", "k"], ["y"])], {"k": np.array([0.3, 2], np.float32)}, None),
    "unsqueeze": ([node("Unsqueeze", ["x", "k"], ["y"])], {"k": [0, 2]}, ["1", "n", "1", "6"]),
}


@pytest.mark.parametrize("name", SIZED)
def test_what_takes_sizes(name):
    nodes, initializers, expected = SIZED[name]
    model = model_of(nodes, {"x": ["n", 6]}, initializers={k: np.asarray(v) for k, v in initializers.items()})
    if expected is not None:
        assert shapes(imported(model))["y"] == expected
    check_shapes(model, {"n": 6}, {"n": 7})


def test_windows_with_padding_by_size():
    weight = np.zeros((4, 3, 3, 3), np.float32)
    nodes = [
        node("Conv", ["x", "w"], ["c"], auto_pad="SAME_UPPER", strides=[2, 2]),
        node("MaxPool", ["c"], ["y"], auto_pad="SAME_LOWER", kernel_shape=[3, 3], strides=[2, 2]),
    ]
    model = model_of(nodes, {"x": ["b", 3, "h", "w_"]}, initializers={"w": weight})
    assert shapes(imported(model))["y"] == ["b", "4", "(h + 3)//4", "(w_ + 3)//4"]
    check_shapes(model, {"b": 1, "h": 8, "w_": 9}, {"b": 2, "h": 11, "w_": 1})


def test_what_windows_demand_is_known_of_the_input():
    def convolved(rows):
        weight = np.zeros((4, 3, rows, 3), np.float32)
        return imported(model_of([node("Conv", ["x", "w"], ["y"])], {"x": [1, 3, "h", 8]}, initializers={"w": weight}))

    mod = convolved(5)
    assert (mod.ranges["h"].low, shapes(mod)["y"]) == (5, ["1", "4", "h - 4", "6"])
    # Sizes of which none beyond the 64th is enough are not searched.
    assert [convolved(rows).ranges.of("h").low for rows in (64, 65)] == [64, 0]
    # A window has several places, more than 16, at the size that is typical.
    rows = {127: 128, 128: 257, 241: 257, 242: 2 * 257 + 1}
    assert {n: convolved(n).ranges.of("h").typical for n in rows} == rows


def test_a_table_bounds_what_is_read_of_it():
    """Positions 0 to n - 1 of a table of 16 are added to n rows: n is at most 16."""
    nodes = [
        node("Shape", ["x"], ["n"], start=0, end=1),
        node("Slice", ["table", "zero", "n"], ["part"]),
        node("Add", ["x", "part"], ["y"]),
    ]
    mod = imported(model_of(nodes, {"x": ["n", 2]}, initializers={"table": np.zeros((16, 2), np.float32), "zero": np.array([0])}))
    assert mod.ranges["n"].high == 16
    assert "match_shape" not in operators(mod)


# ---- what is not proved ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "inputs", "expected"),
    [
        (node("Add", ["x", "z"], ["y"]), {"x": ["n", 3], "z": ["m", 3]}, ["n", "3"]),
        (node("Add", ["x", "z"], ["y"]), {"x": ["n", 3], "z": [4, 3]}, ["4", "3"]),
        (node("MatMul", ["x", "z"], ["y"]), {"x": ["n", "k"], "z": ["m", 3]}, ["n", "3"]),
        (node("MatMul", ["x", "z"], ["y"]), {"x": ["a", 2, 3], "z": ["b", 3, 5]}, ["a", "2", "5"]),
        (node("Concat", ["x", "z"], ["y"], axis=1), {"x": ["n", "k"], "z": ["m", 3]}, ["n", "k + 3"]),
        (node("Gemm", ["x", "z"], ["y"], transB=1), {"x": ["n", "k"], "z": [2, "m"]}, ["n", "2"]),
    ],
    ids=["sum", "sum with a number", "product", "batches", "concatenation", "gemm"],
)
def test_sizes_that_a_model_takes_for_equal_are_checked_when_it_runs(made, inputs, expected):
    mod = imported(model_of([made], inputs))
    assert shapes(mod)["y"] == expected
    assert "match_shape" in operators(mod)


def test_sizes_that_cannot_be_equal_are_an_error():
    with pytest.raises(OnnxError, match=r"node 'Add#0' \(Add, opset 20\): expected a tensor of shape"):
        from_onnx(model_of([node("Add", ["x", "z"], ["y"])], {"x": ["n"], "z": ["n + 1"]} | {"w": ["n"]}))


def test_sizes_are_read_with_what_has_become_known_since():
    """A window says of h and w that they are 1 or more: what was computed of them before is the same expression as its result then."""
    nodes = [
        node("Slice", ["x", "ones", "ends", "axes"], ["rest"]),
        node("Shape", ["rest"], ["left"], start=2),
        node("Div", ["left", "four"], ["quotients"]),
        node("Add", ["quotients", "one"], ["steps"]),
        node("ReduceProd", ["steps"], ["places"]),
        node("Shape", ["x"], ["batch"], end=1),
        node("Concat", ["batch", "six", "places"], ["shape"], axis=0),
        node("MaxPool", ["x"], ["pooled"], kernel_shape=[2, 2], strides=[4, 4], pads=[0, 0, 1, 1]),
        node("Reshape", ["pooled", "shape"], ["y"]),
    ]
    numbers = {"ones": [1, 1], "ends": [2**40, 2**40], "axes": [2, 3], "four": [4], "one": [1], "six": [6]}
    initializers = {name: np.array(values) for name, values in numbers.items()}
    mod = imported(model_of(nodes, {"x": ["n", 6, "h", "w"]}, initializers=initializers))
    assert shapes(mod)["y"] == ["n", "6", "((h + 3)//4)*((w + 3)//4)"]
    assert mod.ranges["h"].low == mod.ranges["w"].low == 1 and "match_shape" not in operators(mod)


# ---- sizes that data decide --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "inputs", "expected"),
    [
        (node("NonZero", ["x"], ["y"]), {"x": ["n", 3]}, ["2", "count"]),
        (node("Compress", ["x", "c"], ["y"], axis=0), {"x": ["n", 3], "c": (BOOL, ["n"])}, ["count", "3"]),
        (node("Unique", ["x"], ["y"]), {"x": ["n"]}, ["count"]),
        (node("Reshape", ["x", "s"], ["y"]), {"x": ["n", 6], "s": (INT, [2])}, ["s_0", "s_1"]),
        (node("Expand", ["x", "s"], ["y"]), {"x": ["n", 1], "s": (INT, [2])}, ["broadcast(n, s_0)", "s_1"]),
        (node("Tile", ["x", "s"], ["y"]), {"x": ["n", 2], "s": (INT, [2])}, ["n*s_0", "2*s_1"]),
        (node("ConstantOfShape", ["s"], ["y"]), {"s": (INT, [2])}, ["s_0", "s_1"]),
        (node("TopK", ["x", "k"], ["y", "i"]), {"x": ["n"], "k": (INT, [1])}, ["k"]),
        (node("Slice", ["x", "a", "b"], ["y"]), {"x": ["n"], "a": (INT, [1]), "b": (INT, [1])}, ["max(0, min(b, n) - min(a, n))"]),
        (node("Range", ["a", "b", "c"], ["y"]), dict.fromkeys("abc", (INT, [])), ["limit"]),
    ],
    ids=lambda v: v.op_type if isinstance(v, onnx.NodeProto) else None,
)
def test_sizes_that_data_decide_are_symbols(made, inputs, expected):
    mod = imported(model_of([made], inputs))
    assert shapes(mod)["y"] == expected
    assert "define_sizes" in operators(mod)


def test_what_is_known_of_a_shape_beside_data_stays_known():
    nodes = [node("Concat", ["k", "rest"], ["s"], axis=0), node("Reshape", ["x", "s"], ["y"])]
    model = model_of(nodes, {"x": ["n", 6], "k": (INT, [1])}, initializers={"rest": np.array([2, 3])})
    assert shapes(imported(model))["y"] == ["s_0", "2", "3"]


def test_a_size_that_data_decide_is_defined_once():
    nodes = [node("ConstantOfShape", ["k"], ["a"]), node("ConstantOfShape", ["k"], ["b"]), node("Add", ["a", "b"], ["y"])]
    mod = imported(model_of(nodes, {"k": (INT, [1])}))
    assert operators(mod).count("define_sizes") == 1
    assert "match_shape" not in operators(mod)


def test_names_do_not_depend_on_hashes():
    add = node("Add", ["x", "z"], ["y"])
    assert len({str(from_onnx(model_of([add], {"x": ["n", "a"], "z": ["m", "b"]}))) for _ in range(3)}) == 1


def test_a_slice_that_begins_before_the_first_element_goes_backwards_from_there():
    """As the operator's text has it, and ONNX Runtime; numpy gives nothing."""
    numbers = {"first": [-3], "last": [-9], "axis": [-1], "back": [-2], "wanted": [5, 6], "row": [0], "rows": [[5, 6, 7], [8, 9, 10]]}
    initializers = {name: np.array(value) for name, value in numbers.items()}
    names = ["first", "last", "axis", "back"]
    nodes = [
        node("Slice", ["x", *names], ["y"]),
        node("Shape", ["x"], ["s"]),
        node("Slice", ["s", *names], ["of_sizes"]),
        node("Slice", ["wanted", *names], ["of_numbers"]),
        node("Slice", ["rows", "first", "last", "row", "back"], ["of_rows"]),
    ]
    model = model_of(nodes, {"x": ["n", "m"]}, ["y", "of_sizes", "of_numbers", "of_rows"], initializers, ir_version=10)
    module = relayc.compile(model, cache=False)
    for shape in ((2, 0), (3, 1), (2, 2), (2, 3), (1, 7)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        y, of_sizes, of_numbers, of_rows = module["main"](x)
        start = max(shape[1] - 3, 0)
        np.testing.assert_array_equal(y, x[:, start::-2])
        assert (of_sizes.tolist(), of_numbers.tolist()) == ([shape[0]], [5])
        assert of_rows.tolist() == [[5, 6, 7]]


@pytest.mark.parametrize("begin", [-1, -2])
def test_a_number_turned_around_is_known(begin):
    initializers = {"k": np.array([3] * -begin), "begin": np.array([begin]), "back": np.array([-2]), "axis": np.array([0])}
    nodes = [node("Slice", ["k", "begin", "end", "axis", "back"], ["s"]), node("Expand", ["x", "s"], ["y"])]
    assert shapes(imported(model_of(nodes, {"x": [1]}, initializers=initializers | {"end": np.array([-9])})))["y"] == ["3"]


@pytest.mark.parametrize("op_type, inputs", [("LayerNormalization", ["x", "scale", "bias"]), ("RMSNormalization", ["x", "scale"])])
def test_the_scale_of_a_normalisation_says_how_long_its_rows_are(op_type, inputs):
    node = helper.make_node(op_type, inputs, ["y"], axis=-1)
    scale = {name: np.array([1, 2, -1, 0.5], np.float32) for name in inputs[1:]}
    model = model_of([node], {"x": ["n", "m"]}, initializers=scale, opset=23)
    main = relayc.compile(model)["main"]
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    centred = x - x.mean(-1, keepdims=True) if op_type == "LayerNormalization" else x
    expected = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale["scale"] + scale.get("bias", 0)
    # Sums of four float32.
    np.testing.assert_allclose(main(x), expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="m is 5"):
        main(np.zeros((3, 5), np.float32))


@pytest.mark.parametrize(
    ("first", "last", "step"), [(5, 0, -2), (0, 5, 2), (0, 6, 2), (6, 0, -2), (0, 5, -1), (5, 0, 1), (0, LONGEST, 1), (LONGEST, 0, -1)]
)
def test_ranges_of_sizes(first, last, step):
    elements, _ = fold_sizes._range([np.array([v], object) for v in (first, last, step)], "int64", {})
    assert elements.tolist() == list(range(first, last, step))


@pytest.mark.parametrize("exponent", [-1, 0, 1, 4, 5])
def test_powers_of_sizes(exponent):
    n = symbol("n")
    if 0 <= exponent <= 4:
        assert fold_sizes._power(n, exponent) == prod([n] * exponent)
    else:
        with pytest.raises(Inexact):
            fold_sizes._power(n, exponent)


@pytest.mark.parametrize("given", [(0, LONGEST + 1, 1), (0, 5, 0), (0, symbol("n"), 1), (0, 5, symbol("n"))])
def test_ranges_that_are_too_long_or_of_a_number_that_is_not_known(given):
    with pytest.raises(Inexact):
        fold_sizes._range([np.array([v], object) for v in given], "int64", {})


@pytest.mark.parametrize(("length", "is_known"), [(LONGEST, True), (LONGEST + 1, False)])
def test_repeated_sizes_are_known_up_to_a_length(length, is_known):
    nodes = [node("Shape", ["x"], ["s"]), node("Expand", ["s", "length"], ["t"]), node("Slice", ["t", "from", "to"], ["k"])]
    initializers = {"length": np.array([length]), "from": np.array([0]), "to": np.array([1])}
    model = model_of([*nodes, node("Expand", ["w", "k"], ["y"])], {"x": ["n"], "w": [1]}, initializers=initializers)
    assert (shapes(imported(model))["y"] == ["n"]) == is_known


@pytest.mark.parametrize("value", [0.0, -255.0, 0.375, 2.0**-32, 2.0**32])
def test_numbers_whose_products_with_sizes_are_exact(value):
    assert float(Ratio.number(value)) == value


@pytest.mark.parametrize("value", [257.0, 1 / 3, 2.0**-33, 2.0**33, float("inf"), float("nan")])
def test_numbers_whose_products_with_sizes_may_round(value):
    with pytest.raises(Inexact):
        Ratio.number(value)


def test_a_scale_of_one_element_says_nothing_of_rows():
    for operator in ("RMSNormalization", "QuantizeLinear"):
        mod = imported(model_of([node(operator, ["x", "w"], ["y"])], {"x": ["n", 3], "w": [1]}, opset=23))
        assert shapes(mod)["y"] == ["n", "3"]


@pytest.mark.parametrize(
    ("made", "shape", "known", "wanted"),
    [
        (node("Pad", ["x", "k"], ["y"], mode="reflect"), [4], np.array([3, 0]), "nn_pad"),
        (node("Pad", ["x", "k"], ["y"], mode="reflect"), [4], np.array([4, 0]), "take"),
        (node("MatMul", ["x", "k"], ["y"]), [2, 3, 4], np.ones((1, 4, 5), np.float32), "nn_matmul"),
        (node("MatMul", ["x", "k"], ["y"]), [3, 4], np.ones((1, 4, 5), np.float32), "nn_batch_matmul"),
    ],
)
def test_which_operators_pad_and_multiply(made, shape, known, wanted):
    """A reflection is shorter than its axis; a matrix is shared by a batch of as many axes."""
    assert wanted in operators(from_onnx(model_of([made], {"x": shape}, initializers={"k": known})))


def test_the_larger_half_has_one_element_where_there_is_one():
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Div", ["s", "two"], ["h"]),
        node("Sub", ["s", "h"], ["k"]),
        node("TopK", ["x", "k"], ["y", "i"]),
    ]
    assert operators(imported(model_of(nodes, {"x": ["n"]}, initializers={"two": np.array([2])})))[:-1] == ["topk"]


def test_no_more_of_the_largest_are_found_than_are_wanted_and_one():
    largest = node("TopK", ["x", "k"], ["y", "i"])
    assert 'k = "max(m, min(1, n))"' in str(imported(model_of([node("Shape", ["w"], ["k"]), largest], {"x": ["n"], "w": ["m"]})))
    assert shapes(imported(model_of([largest], {"x": [2, 3]}, initializers={"k": np.array([0])})))["y"] == ["2", "0"]
