"""ONNX If and Loop on values of the program, against ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.parser import parse_model
from onnx_cases import parsed
from shapes_by_size import imported, shapes

import relayc
from relayc import OnnxError
from relayc.frontend.common import loops
from relayc.frontend.onnx import from_onnx, sequences
from relayc.frontend.onnx import loops as object_loops
from relayc.frontend.onnx.objects import ElementType, Source

FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
X = np.array([[0.5, -1.0, 2.0], [3.0, 0.25, -0.75]], np.float32)


def tensor(name, type_, shape):
    return helper.make_tensor_value_info(name, type_, shape)


def graph(name, nodes, inputs, outputs, **constants):
    initializers = [numpy_helper.from_array(np.asarray(value), key) for key, value in constants.items()]
    return helper.make_graph(nodes, name, inputs, outputs, initializers)


def model(nodes, inputs, outputs, **constants):
    return helper.make_model(graph("g", nodes, inputs, outputs, **constants), opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def agree(proto, *feeds, rtol=1e-5):
    """Both give the same for each of the inputs."""
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    module = relayc.compile(proto, cache=False)
    for feed in feeds:
        found = module.run(feed)
        for name, wanted in zip(found, session.run(None, feed), strict=True):
            np.testing.assert_allclose(found[name], wanted, rtol=rtol, atol=1e-6)


def branch(name, operator, result="r"):
    return graph(name, [helper.make_node(operator, ["x"], [result])], [], [tensor(result, FLOAT, [2, 3])])


def test_a_branch_on_an_input():
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch("a", "Exp"), else_branch=branch("b", "Neg"))
    proto = model([node], [tensor("c", BOOL, []), tensor("x", FLOAT, [2, 3])], [tensor("y", FLOAT, [2, 3])])
    agree(proto, *({"c": np.array(c), "x": X} for c in (True, False)))


def test_branches_in_branches_with_weights_and_several_results():
    w = np.random.default_rng(0).standard_normal((3, 3)).astype(np.float32)
    inner = helper.make_node("If", ["c"], ["p"], then_branch=branch("a", "Exp", "q"), else_branch=branch("b", "Neg", "q"))
    products = [helper.make_node("MatMul", ["x", "w"], ["s"]), inner, helper.make_node("Identity", ["s"], ["t"])]
    both = [tensor("p", FLOAT, [2, 3]), tensor("t", FLOAT, [2, 3])]
    then = graph("then", products, [], both, w=w)
    otherwise = graph(
        "else", [helper.make_node("MatMul", ["x", "v"], ["t"]), helper.make_node("Abs", ["x"], ["p"])], [], both, v=w.T.copy()
    )
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["positive"]),
        helper.make_node("If", ["positive"], ["y", "z"], then_branch=then, else_branch=otherwise),
    ]
    inputs = [tensor("c", BOOL, [1]), tensor("x", FLOAT, [2, 3])]
    proto = model(nodes, inputs, [tensor("y", FLOAT, [2, 3]), tensor("z", FLOAT, [2, 3])], zero=np.float32(0))
    agree(proto, *({"c": np.array([c]), "x": x} for c in (True, False) for x in (X, -X)))


def loop(nodes, carried, **constants):
    """A Loop's body that carries `v` and sees the iteration `i` and the condition `c`; it gives `cond` and the names `carried`."""
    inputs = [tensor("i", INT, []), tensor("c", BOOL, []), tensor("v", FLOAT, [2, 3])]
    return graph("body", nodes, inputs, [tensor("cond", BOOL, []), *(tensor(n, FLOAT, [2, 3]) for n in carried)], **constants)


def test_a_loop_with_a_number_of_trips():
    body = loop(
        [
            helper.make_node("Cast", ["i"], ["f"], to=FLOAT),
            helper.make_node("Add", ["v", "f"], ["s"]),
            helper.make_node("Mul", ["s", "x"], ["n"]),
            helper.make_node("Identity", ["c"], ["cond"]),
        ],
        ["n"],
    )
    node = helper.make_node("Loop", ["m", "", "x"], ["y"], body=body)
    proto = model([node], [tensor("m", INT, []), tensor("x", FLOAT, [2, 3])], [tensor("y", FLOAT, [2, 3])])
    agree(proto, *({"m": np.array(m), "x": X} for m in (0, 1, 4)))


def test_a_loop_until_a_condition():
    body = loop(
        [
            helper.make_node("Mul", ["v", "two"], ["n"]),
            helper.make_node("ReduceMax", ["n"], ["top"], keepdims=0),
            helper.make_node("Less", ["top", "limit"], ["cond"]),
        ],
        ["n"],
        two=np.float32(2),
        limit=np.float32(100),
    )
    node = helper.make_node("Loop", ["", "c0", "x"], ["y"], body=body)
    inputs = [tensor("c0", BOOL, []), tensor("x", FLOAT, [2, 3])]
    proto = model([node], inputs, [tensor("y", FLOAT, [2, 3])])
    agree(proto, *({"c0": np.array(c), "x": x} for c in (True, False) for x in (X, X * 60)))


def looped(nodes, carried, results, **constants):
    """A Loop's body that carries `carried` (names in, names out), and gives `results`; it goes on as long as `cond` says."""
    inputs = [tensor("i", INT, []), tensor("c", BOOL, []), *(tensor(name, FLOAT, None) for name in carried)]
    types = dict.fromkeys((*carried.values(), *results), FLOAT) | {"larger": BOOL}
    outputs = [tensor("cond", BOOL, []), *(tensor(name, types[name], None) for name in (*carried.values(), *results))]
    return graph("body", nodes, inputs, outputs, **constants)


GOES_ON = helper.make_node("Identity", ["c"], ["cond"])


@pytest.mark.parametrize("trips", [1, 5])
def test_scan_outputs_of_a_known_number_of_trips(trips):
    nodes = [
        GOES_ON,
        helper.make_node("Cast", ["i"], ["f"], to=FLOAT),
        helper.make_node("Add", ["v", "f"], ["w"]),
        helper.make_node("ReduceSum", ["w"], ["total"], keepdims=0),
        helper.make_node("Greater", ["w", "v"], ["larger"]),
    ]
    node = helper.make_node(
        "Loop", ["m", "", "x"], ["y", "all", "totals", "signs"], body=looped(nodes, {"v": "w"}, ["w", "total", "larger"])
    )
    outputs = [tensor("y", FLOAT, None), tensor("all", FLOAT, None), tensor("totals", FLOAT, None), tensor("signs", BOOL, None)]
    agree(model([node], [tensor("x", FLOAT, [2, 3])], outputs, m=np.int64(trips)), {"x": X})


def test_a_loop_of_no_trips_is_no_loop():
    nodes = [GOES_ON, helper.make_node("Neg", ["v"], ["w"])]
    node = helper.make_node("Loop", ["m", "", "x"], ["y", "all"], body=looped(nodes, {"v": "w"}, ["w"]))
    proto = model([node], [tensor("x", FLOAT, [2, 3])], [tensor("y", FLOAT, None), tensor("all", FLOAT, None)], m=np.int64(0))
    found = relayc.compile(proto, cache=False).run({"x": X})
    np.testing.assert_array_equal(found["y"], X)
    assert found["all"].shape == (0, 2, 3)


def test_rows_of_a_tensor_by_iteration():
    """x[i : i + 1] is one row, where there is one for each iteration."""
    nodes = [
        GOES_ON,
        helper.make_node("Add", ["i", "one"], ["j"]),
        helper.make_node("Unsqueeze", ["i", "zero"], ["begin"]),
        helper.make_node("Unsqueeze", ["j", "zero"], ["end"]),
        helper.make_node("Slice", ["x", "begin", "end"], ["row"]),
        helper.make_node("Add", ["v", "row"], ["w"]),
    ]
    body = looped(nodes, {"v": "w"}, ["row"], one=np.int64(1), zero=np.array([0]))
    node = helper.make_node("Loop", ["m", "", "s"], ["y", "rows"], body=body)
    inputs = [tensor("x", FLOAT, [2, 3]), tensor("s", FLOAT, [1, 3])]
    proto = model([node], inputs, [tensor("y", FLOAT, None), tensor("rows", FLOAT, None)], m=np.int64(2))
    agree(proto, {"x": X, "s": 1 - X[:1] ** 2})
    text = str(from_onnx(proto))
    assert "relay.take" in text and "relay.strided_slice" not in text


@pytest.mark.parametrize("directions", [(0, 0, 0), (1, 0, 1), (0, 1, 1)])
def test_a_scan_of_several_states_axes_and_directions(directions):
    nodes = [
        helper.make_node("Add", ["s", "a"], ["s2"]),
        helper.make_node("Mul", ["t", "b"], ["t2"]),
        helper.make_node("Sub", ["s2", "t2"], ["o"]),
        helper.make_node("Identity", ["a"], ["a2"]),
    ]
    named = [tensor(name, FLOAT, None) for name in ("s", "t", "a", "b")]
    body = graph("body", nodes, named, [tensor(name, FLOAT, None) for name in ("s2", "t2", "o", "a2")])
    node = helper.make_node(
        "Scan",
        ["s0", "t0", "x", "z"],
        ["s1", "t1", "all", "copy"],
        body=body,
        num_scan_inputs=2,
        scan_input_axes=[1, -2],
        scan_input_directions=directions[:2],
        scan_output_axes=[1, 0],
        scan_output_directions=[directions[2], 0],
    )
    inputs = [tensor("s0", FLOAT, [2]), tensor("t0", FLOAT, [2]), tensor("x", FLOAT, [2, 3]), tensor("z", FLOAT, [3, 2])]
    proto = model([node], inputs, [tensor(name, FLOAT, None) for name in ("s1", "t1", "all", "copy")])
    agree(proto, {"s0": X[0, :2], "t0": X[1, :2], "x": X, "z": X.T.copy()})


# ---- sizes that change, and that only the program knows -------------------------------------------------------------------------------


def main_of(nodes, inputs, outputs, **constants):
    """The shapes of the outputs of a model, as texts, and its program as text."""
    mod = imported(model(nodes, inputs, [tensor(name, FLOAT, None) for name in outputs], **constants))
    return [" ".join(sizes) for sizes in shapes(mod).values()], str(mod)


def test_a_value_that_grows_has_a_size_of_the_loop():
    nodes = [GOES_ON, helper.make_node("Concat", ["v", "x"], ["w"], axis=0)]
    loops = [helper.make_node("Loop", ["m", "", "x"], ["y"], body=looped(nodes, {"v": "w"}, []))]
    found, text = main_of(loops, [tensor("m", INT, []), tensor("x", FLOAT, ["n", 3])], ["y"])
    assert found == ["n_1 3"]
    assert '["n + n_1"]' in text


def test_values_that_grow_alike_share_their_size():
    nodes = [
        GOES_ON,
        helper.make_node("Concat", ["k", "x"], ["k2"], axis=0),
        helper.make_node("Concat", ["v", "x"], ["v2"], axis=0),
        helper.make_node("Add", ["k2", "v2"], ["both"]),
        helper.make_node("ReduceSum", ["both", "zero"], ["row"], keepdims=0),
    ]
    body = looped(nodes, {"k": "k2", "v": "v2"}, ["row"], zero=np.array([0]))
    inputs = [tensor("m", INT, []), tensor("x", FLOAT, [1, 3]), tensor("p", FLOAT, ["past", 3])]
    found, text = main_of([helper.make_node("Loop", ["m", "", "p", "p"], ["y", "z", "rows"], body=body)], inputs, ["y", "z", "rows"])
    assert found == ["past_1 3", "past_1 3", "m 3"]
    assert "match_shape" not in text


@pytest.mark.parametrize("count", [2, 3])
def test_sizes_that_change_one_after_the_other_are_found_in_as_many_attempts(count, monkeypatch):
    """Each value becomes the one before it, of which the first grows."""
    monkeypatch.setattr(loops, "ATTEMPTS", 3)
    names = [f"v{i}" for i in range(count)]
    nodes = [GOES_ON, helper.make_node("Concat", ["v0", "x"], ["grown"], axis=0)]
    body = looped(nodes, dict(zip(names, ["grown", *names], strict=False)), [])
    results = [f"y{i}" for i in range(count)]
    nodes = [helper.make_node("Loop", ["m", "", *["x"] * count], results, body=body)]
    call = nodes, [tensor("m", INT, []), tensor("x", FLOAT, [1, 3])], results
    if count == 2:
        assert main_of(*call)[0] == ["v0_0 3", "v1_0 3"]
        return
    with pytest.raises(OnnxError, match=r"expected a body whose sizes change in the same way in each iteration, found tensor<\?x3xf32"):
        main_of(*call)


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_sequence_whose_type_its_first_element_says_takes_two_attempts(attempts, monkeypatch):
    monkeypatch.setattr(object_loops, "ATTEMPTS", attempts)
    proto = parse_model("""<ir_version: 10, opset_import: ["" : 20]> g (int64 k, float[3] x) => (seq(float) y) {
        none = SequenceEmpty ()
        y = Loop (k, , none) <body = b (int64 i, bool c, seq(float) s) => (bool d, seq(float) t) {
            d = Identity (c)
            t = SequenceInsert (s, x)
        }>
    }""")
    if attempts == 2:
        assert from_onnx(proto)
        return
    with pytest.raises(OnnxError, match="expected a body that gives sequences and optional values of one type in each iteration"):
        from_onnx(proto)


def test_positions_in_a_sequence_of_three_elements():
    assert [sequences._counted(at, 3, 3) for at in range(-3, 4)] == [0, 1, 2, 0, 1, 2, 3]
    for at, last in ((-4, 3), (4, 3), (3, 2)):
        with pytest.raises(OnnxError, match=rf"expected a value in \[-3, {last}\] in a sequence of 3 elements, found {at}"):
            sequences._counted(at, 3, last)


@pytest.mark.parametrize(
    ("shape", "source", "joined"),
    [((2, 3), Source.GIVEN, None), ((4,), Source.GIVEN, (None,)), ((2, 3), Source.DECLARED, (None,)), (None, Source.NOTHING, (2,))],
)
def test_elements_of_what_is_put_in_count_for_more_than_declared_ones(shape, source, joined):
    given, other = ElementType("float32", (2,), Source.GIVEN), ElementType("float32", shape, source)
    assert given.joined(other).shape == other.joined(given).shape == joined


def test_values_that_grow_from_nothing():
    nodes = [GOES_ON, helper.make_node("Concat", ["v", "x"], ["w"], axis=0)]
    loops = [helper.make_node("Loop", ["m", "", "none"], ["y"], body=looped(nodes, {"v": "w"}, []))]
    found, _ = main_of(loops, [tensor("m", INT, []), tensor("x", FLOAT, [2, 3])], ["y"], none=np.zeros((0, 3), np.float32))
    assert found == ["v_0 3"]


def test_scan_outputs_of_a_loop_that_a_condition_ends():
    nodes = [
        helper.make_node("Mul", ["v", "two"], ["w"]),
        helper.make_node("ReduceMax", ["w"], ["top"], keepdims=0),
        helper.make_node("Less", ["top", "limit"], ["cond"]),
    ]
    body = looped(nodes, {"v": "w"}, ["w", "top"], two=np.float32(2), limit=np.float32(100))
    for count in ("", "m"):
        loops = [helper.make_node("Loop", [count, "", "x"], ["y", "all", "tops"], body=body)]
        found, _ = main_of(loops, [tensor("m", INT, []), tensor("x", FLOAT, ["n", 3])], ["y", "all", "tops"])
        assert found == ["n 3", "steps n 3", "steps"]


def test_a_scan_over_a_symbolic_axis():
    body = graph(
        "body", [helper.make_node("Add", ["s", "a"], ["s2"])], [tensor(n, FLOAT, None) for n in "sa"], [tensor("s2", FLOAT, None)] * 2
    )
    node = helper.make_node("Scan", ["s0", "x"], ["s1", "all"], body=body, num_scan_inputs=1, scan_output_axes=[-1])
    found, _ = main_of([node], [tensor("s0", FLOAT, ["d"]), tensor("x", FLOAT, ["t", "d"])], ["s1", "all"])
    assert found == ["d", "d t"]


def test_branches_of_different_shapes_give_a_size_of_the_branch():
    twice = graph("a", [helper.make_node("Concat", ["x", "x"], ["r"], axis=0)], [], [tensor("r", FLOAT, None)])
    node = helper.make_node("If", ["c"], ["y"], then_branch=twice, else_branch=branch("b", "Neg"))
    found, _ = main_of([node], [tensor("c", BOOL, []), tensor("x", FLOAT, ["n", 3])], ["y"])
    assert found == ["branch 3"]


def test_branches_of_different_ranks_are_refused():
    short = graph("a", [helper.make_node("ReduceSum", ["x"], ["r"], keepdims=0)], [], [tensor("r", FLOAT, None)])
    node = helper.make_node("If", ["c"], ["y"], then_branch=short, else_branch=branch("b", "Neg"), name="choice")
    proto = model([node], [tensor("c", BOOL, []), tensor("x", FLOAT, [2, 3])], [tensor("y", FLOAT, None)])
    with pytest.raises(OnnxError, match=r"node 'choice' \(If, opset 20\): .*expected tuple<tensor<f32>>, found tuple<tensor<2x3xf32>>"):
        from_onnx(proto)


def test_a_value_that_changes_its_rank_is_refused():
    nodes = [GOES_ON, helper.make_node("Unsqueeze", ["v", "zero"], ["w"])]
    loops = [helper.make_node("Loop", ["m", "", "x"], ["y"], body=looped(nodes, {"v": "w"}, [], zero=np.array([0])))]
    proto = model(loops, [tensor("m", INT, []), tensor("x", FLOAT, [2])], [tensor("y", FLOAT, None)])
    with pytest.raises(OnnxError, match=r"value 'v' that the loop carries: expected tensor<2xf32>, found tensor<1x2xf32>"):
        from_onnx(proto)


def test_weights_of_a_body_are_there_once():
    """Though the body is converted several times to find out which sizes change."""
    w = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32)
    nodes = [GOES_ON, helper.make_node("MatMul", ["v", "w"], ["p"]), helper.make_node("Concat", ["p", "x"], ["q"], axis=0)]
    loops = [helper.make_node("Loop", ["m", "", "x"], ["y", "all"], body=looped(nodes, {"v": "q"}, ["x"], w=w))]
    proto = model(loops, [tensor("m", INT, []), tensor("x", FLOAT, [1, 32])], [tensor("y", FLOAT, None), tensor("all", FLOAT, None)])
    assert list(from_onnx(proto).params) == ["w"]


# ---- rows of a size that only the body knows -------------------------------------------------------------------------------------------


def late_rows(condition):
    """A loop of `m` trips whose body has a loop of `k` trips; each gives a row, of as many numbers as the inner one has trips, and a table
    of products."""
    inner_nodes = [
        GOES_ON,
        helper.make_node("Concat", ["p", "x"], ["p2"], axis=0),
        helper.make_node("ReduceSum", ["p2"], ["t"], keepdims=0),
    ]
    nodes = [
        helper.make_node("Loop", ["k", "", "v"], ["w", "row"], body=looped(inner_nodes, {"p": "p2"}, ["t"])),
        helper.make_node("Concat", ["row", "row"], ["twice"], axis=0),
        helper.make_node("Einsum", ["row", "twice"], ["table"], equation="i,j->ij"),
        helper.make_node("Less", ["i", "last"], ["cond"]) if condition else GOES_ON,
    ]
    body = looped(nodes, {"v": "w"}, ["row", "table"], last=np.int64(1))
    loops = [helper.make_node("Loop", ["m", "", "x"], ["y", "rows", "tables"], body=body)]
    inputs = [tensor("m", INT, []), tensor("k", INT, []), tensor("x", FLOAT, ["n"])]
    return model(loops, inputs, [tensor(name, FLOAT, None) for name in ("y", "rows", "tables")])


@pytest.mark.parametrize("condition", [False, True])
def test_rows_of_a_size_that_only_the_body_knows(condition):
    x = np.array([0.5, -1.0], np.float32)
    proto = late_rows(condition)
    agree(proto, *({"m": np.array(m), "k": np.array(k), "x": x} for m, k in ((3, 2), (1, 3), (2, 0))))
    found = relayc.compile(proto, cache=False).run({"m": np.array(0), "k": np.array(2), "x": x})
    assert found["rows"].shape == (0, 0) and found["tables"].shape == (0, 0, 0) and np.array_equal(found["y"], x)


def test_rows_that_are_not_alike_are_an_error():
    """Written from the last to the first, along the last axis."""
    nodes = [helper.make_node("Greater", ["a", "zero"], ["chosen"]), helper.make_node("NonZero", ["chosen"], ["found"])]
    body = graph("body", nodes, [tensor("a", FLOAT, None)], [tensor("found", INT, None)], zero=np.float32(0))
    node = helper.make_node(
        "Scan", ["x"], ["y"], body=body, num_scan_inputs=1, scan_output_axes=[-1], scan_output_directions=[1], name="scan"
    )
    module = relayc.compile(model([node], [tensor("x", FLOAT, ["n", 3])], [tensor("y", INT, None)]), cache=False)
    rows = [[1, -1, 2], [-1, 1, 1], [3, 2, -1]]
    found = [np.nonzero(np.array(row) > 0) for row in rows[::-1]]
    np.testing.assert_array_equal(module["main"](np.array(rows, np.float32)), np.stack(found, -1))
    with pytest.raises(ValueError, match=r'main: match_shape at "scan": dimension 2: .* is 2 and .* is 1, expected the same'):
        module["main"](np.array([[1, -1, 2], [-1, 1, -1]], np.float32))


def test_poolings_and_convolutions_of_an_image_from_around_a_branch():
    w = np.random.default_rng(0).standard_normal((16, 16, 3, 3)).astype(np.float32) / 12
    convolution = [
        helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["p", "w"], ["q"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["q", "x"], ["r"]),
    ]
    then = graph("then", convolution, [], [tensor("r", FLOAT, None)], w=w)
    mean = helper.make_node("AveragePool", ["x"], ["r"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=graph("else", [mean], [], [tensor("r", FLOAT, None)]))
    proto = model([node], [tensor("c", BOOL, []), tensor("x", FLOAT, ["n", 16, "h", 9])], [tensor("y", FLOAT, None)])
    x = np.random.default_rng(1).standard_normal((2, 16, 7, 9)).astype(np.float32)
    # Sums of 144 products in another order.
    agree(proto, *({"c": np.array(c), "x": x} for c in (True, False)), rtol=1e-4)


def test_positions_that_two_images_of_data_give():
    """Kernels that differ in these sizes alone are one, and what is joined of their results lies where the whole is."""
    nodes = []
    for image, positions, rows, found in ("xabp", "zcdq"):
        nodes += [
            helper.make_node("Greater", [image, "zero"], [positions + "_"]),
            helper.make_node("NonZero", [positions + "_"], [positions]),
            helper.make_node("Transpose", [positions], [rows], perm=[1, 0]),
            helper.make_node("GatherND", [image, rows], [found]),
        ]
    inputs = [tensor("x", FLOAT, [2, 8]), tensor("z", FLOAT, [2, 4])]
    values = np.random.default_rng(2).standard_normal((2, 12)).astype(np.float32)
    feeds = [{"x": s * values[:, :8], "z": s * values[:, 8:]} for s in (1, -1)]
    agree(model(nodes, inputs, [tensor("p", FLOAT, None), tensor("q", FLOAT, None)], zero=np.float32(0)), *feeds)


def test_a_size_that_is_a_quotient_by_an_input_s():
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Div", ["twelve", "s"], ["q"]),
        helper.make_node("ConstantOfShape", ["q"], ["zeros"]),
        helper.make_node("Exp", ["zeros"], ["ones"]),
        helper.make_node("CumSum", ["ones", "axis"], ["y"], exclusive=1),
    ]
    proto = model(nodes, [tensor("x", FLOAT, ["n"])], [tensor("y", FLOAT, None)], twelve=np.array([12]), axis=np.array(0))
    agree(proto, *({"x": np.zeros(n, np.float32)} for n in (1, 5, 20)))
    with pytest.raises(ValueError, match="main: expected sizes for which all shapes have a value, found n = 0"):
        relayc.compile(proto, cache=False)["main"](np.zeros(0, np.float32))


def test_what_is_chosen_beyond_an_axis_is_none_of_its_elements():
    chosen = {"y": (["x", "c"], {}), "z": (["x", "known"], {"axis": 1}), "w": (["s", "known"], {"axis": 1})}
    nodes = [helper.make_node("Compress", names, [result], **axis) for result, (names, axis) in chosen.items()]
    inputs = [tensor("x", FLOAT, ["n", "m"]), tensor("c", BOOL, ["k"]), tensor("s", FLOAT, [2, 2])]
    proto = model(nodes, inputs, [tensor(name, FLOAT, None) for name in chosen], known=np.array([True, False, True]))
    agree(proto, *({"x": X[:, :m], "c": np.ones(k, bool), "s": X[:, 1:]} for m, k in ((3, 4), (2, 7), (1, 0))))


ROWS = "y = Loop<body = b (int64 i, bool go) => (bool on, KIND row) {{ on = Identity(go) row = {}(x) }}>({}, , )"
SUMS = """y = Loop<body = b (int64 i, bool go) => (bool on, float r) {
  on = Identity(go) s = Loop<body = c (int64 j, bool g) => (bool o, float v) { o = Identity(g) v = ReduceSum<keepdims = 0>(x) }>(i, , )
  r = ReduceSum<keepdims = 0>(s) }>(count, , )"""


@pytest.mark.parametrize(
    ("inputs", "nodes", "wanted"),
    [
        ("float[2, 3] x, int64 count", ROWS.format("Neg", "count").replace("KIND", "float[2, 3]"), {"scatter_nd": 1, "distinct = true": 0}),
        ("bool[2, 3] x, int64 count", ROWS.format("Not", "count").replace("KIND", "bool[2, 3]"), {"scatter_nd": 1}),
        ("float[n] x", "y = NonZero(x)", {"scatter_elements": 1, "distinct = true": 1}),
        ("float[n] x", "z, y = Unique(x)", {"scatter_elements": 2, "distinct = true": 2}),
        ("float[n] x, int64 count", SUMS, {"scatter_nd": 2, "maximum": 1}),
        (
            "float[2, 3] x, bool[2] row, bool[3] column, int64 count",
            "z, y = Loop<body = b (int64 i, bool go) => (bool on, float[k, 3] part, float[2, l] other) "
            "{ on = Identity(go) part = Compress<axis = 0>(x, row) other = Compress<axis = 1>(x, column) }>(count, , )",
            {"tensor.concat": 2},
        ),
        (
            "float[2] x",
            "y = Loop<body = b (int64 i, bool go, float[2] v) => (bool on, float[2] w) { on = Identity(go) w = Neg(v) }>(, , x)",
            {"dense<true>": 1},
        ),
    ],
    ids=["rows", "rows of truth", "places", "distinct elements", "as many trips as an iteration's number", "late axes", "no end"],
)
def test_which_operators_loops_and_places_are_made_of(inputs, nodes, wanted):
    """Places that are computed are not checked."""
    text = str(from_onnx(parsed((18, inputs, nodes))).module)
    assert {what: text.count(what) for what in wanted} == wanted and "in_bounds = false" not in text
