"""The dimensions of a model's inputs: symbols of the model, what `shapes` and `dims` make of them, and what is known of them."""

import numpy as np
import pytest
from onnx import helper
from onnx_models import model_of, relu

import relayc
from relayc.dialects.relay.types import TensorType
from relayc.frontend.onnx import from_onnx
from relayc.symbolic import FAR, Range

CACHED = {"ids": ["batch", "seq"], "mask": ["batch", "past + seq"], "past": ["batch", 4, "past"]}


def given(inputs, **arguments):
    """The shapes of the inputs of a model, as texts, and what is known of the symbols."""
    nodes = [helper.make_node("Identity", [name], [f"{name}_out"]) for name in inputs]
    mod = from_onnx(model_of(nodes, inputs, [f"{name}_out" for name in inputs]), **arguments)
    types = [TensorType.of(a) for a in mod.main.regions[0].blocks[0].arguments]
    return [" ".join(map(str, t.shape)) for t in types], dict(mod.ranges)


def test_what_the_model_calls_them_are_the_symbols():
    assert given(CACHED) == (["batch seq", "batch past + seq", "batch 4 past"], {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n", "n"),
        ("2*n + 1", "2*n + 1"),
        ("n // 2", "n//2"),
        ("max(n, 3)", "max(3, n)"),
        ("batch size", "batch_size"),
        ("floor(n/2)", "floor_n_2"),
        ("3d", "dim_3d"),
        ("None", "dim_None"),
        ("für", "für"),
        ("?", "x_1"),
        ("-1", "x_1"),
        ("", "x_1"),
    ],
)
def test_texts_are_expressions_or_become_names(text, expected):
    assert given({"x": ["n", text]})[0] == [f"n {expected}"]


def test_names_are_unique():
    assert given({"x": ["a b", "a-b", "a_b", None], "x_3": [None]})[0] == ["a_b_1 a_b_2 a_b x_3", "x_3_0"]


def test_an_expression_of_what_is_no_dimension_is_a_symbol_of_its_own():
    """Nothing would say what n is."""
    assert given({"x": ["2*n"], "y": ["2*n", 3]}, dims={"n": (1, 8)}) == (["dim_2_n", "dim_2_n 3"], {"dim_2_n": Range(2, 16)})


@pytest.mark.parametrize(
    ("arguments", "shapes"),
    [
        ({"shapes": {"ids": [2, 8]}}, ["2 8", "2 past + 8", "2 4 past"]),
        ({"shapes": {"ids": ["b", 8]}}, ["b 8", "b past + 8", "b 4 past"]),
        ({"shapes": {"ids": ["seq", "batch"]}}, ["seq batch", "seq batch + past", "seq 4 past"]),
        ({"shapes": {"ids": ["b", "2*t"], "past": ["b", 4, "t"]}}, ["b 2*t", "b 3*t", "b 4 t"]),
        ({"shapes": {"mask": [1, 12], "past": [1, 4, 9]}}, ["1 3", "1 12", "1 4 9"]),
        ({"dims": {"batch": 4, "past": 16}}, ["4 seq", "4 seq + 16", "4 4 16"]),
        ({"shapes": {"ids": ["b", "seq"]}, "dims": {"b": 2}}, ["2 seq", "2 past + seq", "2 4 past"]),
        ({"shapes": {"ids": [2, 8]}, "dims": {"batch": 2}}, ["2 8", "2 past + 8", "2 4 past"]),
        ({"shapes": {"mask": [1, 12]}, "dims": {"past": 4}}, ["1 8", "1 12", "1 4 4"]),
        ({"shapes": {"mask": [1, 9], "past": [1, 4, 9]}}, ["1 0", "1 9", "1 4 9"]),
        ({"shapes": {"ids": [2, 8]}, "dims": {"seq": (1, 8)}}, ["2 8", "2 past + 8", "2 4 past"]),
        ({"dims": {"seq": 0}}, ["batch 0", "batch past", "batch 4 past"]),
    ],
)
def test_shapes_and_dims_fix_and_rename(arguments, shapes):
    assert given(CACHED, **arguments)[0] == shapes


def test_dims_bound():
    assert given(CACHED, dims={"batch": 4, "seq": (1, 512)}) == (["4 seq", "4 past + seq", "4 4 past"], {"seq": Range(1, 512)})
    assert given({"x": ["batch size"]}, dims={"batch size": (1, 8)}) == (["batch_size"], {"batch_size": Range(1, 8)})


def test_a_slice_has_the_size_that_an_addition_makes_known():
    """min(n, 512) rows of a table, added to n rows: n is at most 512."""
    rows = helper.make_node("Slice", ["table", "zero", "end"], ["rows"])
    nodes = [helper.make_node("Shape", ["x"], ["end"]), rows, helper.make_node("Add", ["x", "rows"], ["y"])]
    mod = from_onnx(model_of(nodes, {"x": ["n"], "table": [512]}, initializers={"zero": np.array([0])}))
    assert mod.ranges["n"].high == 512
    (found,) = [op for op in mod.main.regions[0].blocks[0].operations if op.operation.name == "relay.strided_slice"]
    assert [str(d) for d in TensorType.of(found.operation.results[0]).shape] == ["n"]


def test_an_input_of_unknown_rank_takes_a_shape():
    assert given({"x": None}, shapes={"x": ["n", 3]})[0] == ["n 3"]


# ---- programs ---------------------------------------------------------------------------------------------------------------------------


def program(**arguments):
    made = relayc.Program(**arguments)

    @made.function(x=TensorType(("n", "2*m", 3), "float32"), y=TensorType(("m",), "float32"))
    def main(x, y):
        return made.op.reshape(x, newshape=("n", -1)), y

    return made


def types(mod):
    return str(mod.main.attributes["function_type"])


def test_a_program_takes_texts_for_dimensions():
    mod = program(dims={"n": (1, 8)}).module()
    assert types(mod).endswith('-> (tensor<?x?xf32, ["n", "6*m"]>, tensor<?xf32, ["m"]>)')
    assert dict(mod.ranges) == {"n": Range(1, 8)}


def test_a_text_that_is_no_size_is_an_error():
    made = relayc.Program()
    with pytest.raises(ValueError, match="expected a size such as 'n'"):
        made.function(lambda x: x, name="main", x=TensorType(("a b",), "float32"))


def test_dims_of_a_program():
    mod = relayc.compile(program(), dims={"m": 4, "n": (1, 8)}, stop_after="relay")
    assert types(mod).endswith('-> (tensor<?x24xf32, ["n"]>, tensor<4xf32>)')
    assert mod.ranges["n"] == Range(1, 8)


def test_a_program_with_all_dims_given_runs():
    import numpy as np

    module = relayc.compile(program(), dims={"m": 2, "n": 5})
    x = np.arange(60, dtype=np.float32).reshape(5, 4, 3)
    np.testing.assert_array_equal(module["main"](x, np.ones(2, np.float32))[0], x.reshape(5, 12))


@pytest.mark.parametrize(
    ("dims", "expected"), [({"k": 1}, r"dims: expected names of dimensions \(m, n\), found k"), ({"n": -2}, f"a size of 0 to {FAR}")]
)
def test_dims_of_a_program_that_are_wrong(dims, expected):
    with pytest.raises(ValueError, match=expected):
        relayc.compile(program(), dims=dims)


def test_a_frontend_that_takes_no_dims_says_so():
    class Model:
        pass

    relayc.register_frontend("of models", types=(Model,))(lambda model, *, shapes=None, progress=None: program().module())
    try:
        with pytest.raises(ValueError, match="dims: expected none for a model that the frontend of models imports, found n"):
            relayc.compile(Model(), dims={"n": 2})
    finally:
        from relayc.frontend import remove_frontend

        remove_frontend("of models")


def test_fixed_dimensions_give_the_program_of_static_shapes():
    model = model_of([relu()], {"x": ["n", 3]})
    assert str(from_onnx(model, dims={"n": 2})) == str(from_onnx(model, shapes={"x": [2, 3]}))
