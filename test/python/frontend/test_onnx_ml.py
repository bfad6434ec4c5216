"""The domain ai.onnx.ml, against ONNX Runtime, with a symbolic number of rows."""

import re

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_cases import STUMP
from shapes_by_size import imported, shapes

import relayc
from relayc.frontend.onnx import OnnxError
from relayc.tools.inputs import tensors_of

DOMAIN = "ai.onnx.ml"
TYPES = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "int64": TensorProto.INT64, "int32": TensorProto.INT32}
FEATURES = 6
ROWS = 77
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def type_of(array):
    return TensorProto.STRING if array.dtype.kind in "OU" else TYPES[array.dtype.name]


def model_of(nodes, feeds, version=3):
    """A model of nodes of the domain, of whose inputs the number of rows is a symbol; every output that no node reads is one of it."""
    read = {name for node in nodes for name in node.input}
    outputs = [onnx.ValueInfoProto(name=name) for node in nodes for name in node.output if name not in read]
    inputs = [helper.make_tensor_value_info(name, type_of(x), ["n", *x.shape[1:]]) for name, x in feeds.items()]
    graph = helper.make_graph(nodes, "ml", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(DOMAIN, version)], ir_version=9)


def node(op_type, inputs, outputs, **attrs):
    given = {name: value for name, value in attrs.items() if value is not None and (not isinstance(value, list) or value)}
    return helper.make_node(op_type, inputs, outputs, domain=DOMAIN, **given)


def agree(model, feeds, relative=1e-5):
    """What both give is the same, and floats of a tensor to `relative` of the largest: sums in float32 in another order."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = dict(zip((o.name for o in session.get_outputs()), session.run(None, feeds), strict=True))
    module = relayc.compile(model)
    found = module.run(feeds)
    assert found.keys() == expected.keys()
    for name, want in expected.items():
        got = found[name]
        assert (got.dtype, got.shape) == (want.dtype, want.shape), name
        if want.dtype.kind == "f":
            largest = np.abs(want[np.isfinite(want)]).max(initial=1e-30)
            np.testing.assert_allclose(got, want, rtol=0, atol=relative * largest, err_msg=name)
        else:
            np.testing.assert_array_equal(got, want, err_msg=name)
    return module


def data(dtype="float32", seed=0, rows=ROWS):
    """Half of the numbers are small integers, some of the floats NaN."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-4, 5, (rows, FEATURES)).astype(dtype)
    if x.dtype.kind == "f":
        x = np.where(rng.random(x.shape) < 0.5, x, rng.normal(size=x.shape) * 2).astype(dtype)
        x[rng.random(x.shape) < 0.1] = np.nan
    return x


# ---- trees ----------------------------------------------------------------------------------------------------------------------------


def forest(seed=0, trees=3, depth=3, modes=MODES, targets=1, prefix="target", present=1.0, ids=None, shift=0.5, missing=None):
    """Attributes of random trees, some branches of which end early; thresholds are small integers, so that equality happens.

    Args:
      present: share of the weights that there are.
      ids: the one target of all weights; None for each.
      missing: missing_value_tracks_true of all nodes; None for random ones.
    """
    rng = np.random.default_rng(seed)
    found = {f"{prefix}_{name}": [] for name in ("treeids", "nodeids", "ids", "weights")}
    names = ["treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids", "missing_value_tracks_true"]
    found |= {f"nodes_{name}": [] for name in names}
    for tree in range(trees):
        pending, count = [(0, 0)], 1
        while pending:
            number, level = pending.pop(0)
            is_leaf = level == depth or (level > 1 and rng.random() < 0.3)
            value = int(rng.integers(-3, 4)) if not is_leaf else 0
            tracks = int(rng.integers(2)) if missing is None else missing
            follow = (0, 0) if is_leaf else (count, count + 1)
            mode = "LEAF" if is_leaf else str(rng.choice(modes))
            for name, entry in zip(names, (tree, number, int(rng.integers(FEATURES)), float(value), mode, *follow, tracks), strict=True):
                found[f"nodes_{name}"].append(entry)
            if not is_leaf:
                pending += [(count, level + 1), (count + 1, level + 1)]
                count += 2
                continue
            for target in range(targets):
                if rng.random() < present:
                    entry = (tree, number, target if ids is None else ids, float(np.float32(rng.random() - shift)))
                    for name, part in zip(("treeids", "nodeids", "ids", "weights"), entry, strict=True):
                        found[f"{prefix}_{name}"].append(part)
    return found


@pytest.mark.parametrize("missing", [0, 1, None])
def test_branches(missing):
    feeds = {"x": data()}
    nodes = []
    for modes in (["BRANCH_LEQ"], ["BRANCH_GT"], MODES):
        attributes = forest(modes=modes, missing=missing)
        nodes.append(node("TreeEnsembleRegressor", ["x"], [f"y{len(nodes)}"], n_targets=1, **attributes))
    agree(model_of(nodes, feeds), feeds)


def test_targets_and_what_joins_them():
    feeds = {"x": data()}
    nodes = []
    for function in ("SUM", "AVERAGE", "MIN", "MAX"):
        attributes = forest(seed=1, modes=["BRANCH_LT"], targets=3, present=0.7, missing=0)
        extra = {"aggregate_function": function, "base_values": [0.25, -0.5, 1.0], "n_targets": 3}
        nodes.append(node("TreeEnsembleRegressor", ["x"], [function], **attributes, **extra))
    agree(model_of(nodes, feeds), feeds)


def test_float64_tables():
    """Thresholds between two float32 numbers."""
    feeds = {"x": data("float64", seed=2)}
    attributes = forest(seed=2, modes=["BRANCH_LEQ", "BRANCH_LT"], targets=2)
    values = np.array(attributes.pop("nodes_values")) + 1e-12
    feeds["x"][::2] += 2e-12
    for name, array in (("nodes_values", values), ("target_weights", np.array(attributes.pop("target_weights")))):
        attributes[f"{name}_as_tensor"] = numpy_helper.from_array(array, name)
    agree(model_of([node("TreeEnsembleRegressor", ["x"], ["y"], n_targets=2, **attributes)], feeds), feeds)


def test_transforms():
    feeds = {"x": data(seed=3)}
    nodes = []
    for targets in (1, 3):
        attributes = forest(seed=3, modes=["BRANCH_LEQ"], targets=targets, shift=0, missing=0) | {"aggregate_function": "AVERAGE"}
        for transform in ("LOGISTIC", "SOFTMAX_ZERO", "PROBIT"):
            extra = {"post_transform": transform, "n_targets": targets}
            nodes.append(node("TreeEnsembleRegressor", ["x"], [f"{transform}{targets}"], **attributes, **extra))
    # Where PROBIT is steep, rounding shows.
    agree(model_of(nodes, feeds), feeds, relative=1e-4)


@pytest.mark.parametrize(("ids", "shift", "labels"), [(0, 0.5, [3, 5]), (0, 0, ["no", "yes"]), (1, 0.5, [3, 5])])
def test_one_score_for_two_classes(ids, shift, labels):
    feeds = {"x": data(seed=4)}
    nodes = []
    key = "classlabels_strings" if labels == ["no", "yes"] else "classlabels_int64s"
    for transform, base in (("NONE", []), ("LOGISTIC", [0.25, -0.5]), ("SOFTMAX", [0.125])):
        attributes = forest(seed=4, trees=2, depth=2, modes=["BRANCH_LEQ"], prefix="class", ids=ids, shift=shift, missing=0) | {key: labels}
        outputs = [f"{name}{transform}{len(base)}" for name in ("label", "scores")]
        nodes.append(node("TreeEnsembleClassifier", ["x"], outputs, **attributes, post_transform=transform, base_values=base))
    agree(model_of(nodes, feeds), feeds)


def test_two_scores_for_two_classes():
    """Where a row reaches no weight for the second class, the first score decides."""
    feeds = {"x": data(seed=5)}
    nodes = []
    for present in (1.0, 0.4):
        attributes = forest(seed=5, trees=2, depth=2, modes=["BRANCH_LEQ"], targets=2, prefix="class", present=present, missing=0)
        outputs = [f"label{present}", f"scores{present}"]
        nodes.append(node("TreeEnsembleClassifier", ["x"], outputs, classlabels_int64s=[0, 1], **attributes, post_transform="LOGISTIC"))
    agree(model_of(nodes, feeds), feeds)


@pytest.mark.parametrize("base", [[], [0.25, -0.5, 1.0]], ids=["no base", "base"])
def test_many_classes(base):
    feeds = {"x": data(seed=6)}
    attributes = forest(seed=6, trees=4, modes=["BRANCH_LEQ"], targets=3, prefix="class", present=0.8, missing=0)
    labels = ["a", "b", "c"]
    nodes = [
        node("TreeEnsembleClassifier", ["x"], ["label", "scores"], classlabels_strings=labels, base_values=base, **attributes),
        node("TreeEnsembleClassifier", ["x"], ["l", "s"], classlabels_int64s=[4, 7, 9], post_transform="SOFTMAX", **attributes),
    ]
    agree(model_of(nodes, feeds), feeds)


def test_numbers_of_rows():
    """No row, one, and more than a vector has; a vector is one row."""
    attributes = forest(seed=7, modes=["BRANCH_LEQ"], targets=2)
    module = agree(model_of([node("TreeEnsembleRegressor", ["x"], ["y"], n_targets=2, **attributes)], {"x": data()}), {"x": data()})
    whole = module.run({"x": data()})["y"]
    for rows in (0, 1, 2, 19):
        np.testing.assert_array_equal(module.run({"x": data()[:rows]})["y"], whole[:rows])


def test_deep_trees():
    """A chain of nodes, each of which takes a step of the walk."""
    depth = 120
    names = [*(f"nodes_{n}" for n in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids"))]
    rows = [(0, 2 * i, i % FEATURES, i / depth, "BRANCH_LEQ", 2 * i + 1, 2 * i + 2) for i in range(depth)]
    rows += [(0, 2 * i + 1, 0, 0.0, "LEAF", 0, 0) for i in range(depth)] + [(0, 2 * depth, 0, 0.0, "LEAF", 0, 0)]
    leaves = [row[1] for row in rows if row[4] == "LEAF"]
    attributes = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    weights = {"target_treeids": [0] * len(leaves), "target_nodeids": leaves, "target_ids": [0] * len(leaves)}
    feeds = {"x": np.random.default_rng(8).uniform(0.5, 1, (ROWS, FEATURES)).astype("float32")}
    weights["target_weights"] = [float(v) for v in leaves]
    agree(model_of([node("TreeEnsembleRegressor", ["x"], ["y"], n_targets=1, **attributes, **weights)], feeds), feeds)


def ensemble_of_operator_set_5(feeds, functions, **change):
    """Sets, and a tree that is one leaf."""
    modes = np.array([0, 6, 4, 6, 0], np.uint8)
    splits = np.array([0.5, 0, 2, 0, 0], np.float32)
    members = np.array([1, 2, -3, np.nan, 4, np.nan], np.float32)
    common = {
        "tree_roots": [0, 4],
        "nodes_featureids": [0, 1, 2, 3, 0],
        "nodes_modes": numpy_helper.from_array(modes),
        "nodes_splits": numpy_helper.from_array(splits),
        "nodes_truenodeids": [1, 0, 2, 3, 6],
        "nodes_trueleafs": [0, 1, 1, 1, 1],
        "nodes_falsenodeids": [2, 1, 3, 4, 6],
        "nodes_falseleafs": [0, 1, 0, 1, 1],
        "membership_values": numpy_helper.from_array(members),
        "leaf_targetids": [0, 1, 0, 1, 0, 1, 0],
        "leaf_weights": numpy_helper.from_array(np.array([1, 2, 4, 8, 16, 32, 64], np.float32)),
        "n_targets": 2,
        **change,
    }
    nodes = [node("TreeEnsemble", ["x"], [f"y{function}"], aggregate_function=function, **common) for function in functions]
    return model_of(nodes, feeds, version=5)


def test_ensembles_of_operator_set_5():
    feeds = {"x": np.random.default_rng(9).integers(-4, 5, (ROWS, FEATURES)).astype("float32")}
    agree(ensemble_of_operator_set_5(feeds, (1, 2)), feeds)


def test_an_ensemble_of_operator_set_5_has_as_many_targets_as_its_leaves_name():
    """Where it says no number of them."""
    feeds = {"x": np.random.default_rng(9).integers(-4, 5, (ROWS, FEATURES)).astype("float32")}
    found, wanted = (relayc.frontend.onnx.from_onnx(ensemble_of_operator_set_5(feeds, (1,), n_targets=n)) for n in (None, 2))
    assert str(found) == str(wanted)


@pytest.mark.parametrize(
    ("name", "numbers", "end", "expected"),
    [
        ("nodes_truenodeids", lambda n: [n, 0, 2, 3, 6], 5, "the number of a node or a leaf"),
        ("nodes_falsenodeids", lambda n: [2, 1, 3, n, 6], 7, "the number of a node or a leaf"),
        ("tree_roots", lambda n: [0, n], 12, "the number of a root in [0, 12)"),
        ("nodes_featureids", lambda n: [0, 1, 2, n, 0], 1 << 31, f"the number of a feature in [0, {1 << 31})"),
        ("leaf_targetids", lambda n: [n, 1, 0, 1, 0, 1, 0], 2, "targets in [0, 2)"),
    ],
)
def test_numbers_of_what_is_not_there(name, numbers, end, expected):
    """Those of roots and nodes do not name the nodes either that the sets of members are made of."""
    for number in (-1, end):
        with pytest.raises(OnnxError, match=re.escape(f"expected {expected}, found {number}")):
            relayc.frontend.onnx.from_onnx(ensemble_of_operator_set_5({"x": data()}, (1,), **{name: numbers(number)}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes_truenodeids": [5, 0, 0]}, "expected the number of a node, found 5 in tree 0"),
        ({"nodes_truenodeids": [1, 0]}, "attribute nodes_truenodeids: expected one for each of 3 nodes, found 2"),
        ({"nodes_truenodeids": [0, 0, 0]}, "found a node that leads back to itself"),
        ({"nodes_featureids": [6, 0, 0]}, "at least 7 features"),
        ({"nodes_modes": ["BRANCH_MEMBER", "LEAF", "LEAF"]}, "attribute nodes_modes"),
        ({"nodes_treeids": [0, 0]}, "attribute nodes_treeids: expected one for each of 3 nodes, found 2"),
        ({"nodes_values": [0.0]}, "attribute nodes_values: expected one for each of 3 nodes, found 1"),
        ({"target_ids": [0, 2]}, "expected targets in [0, 1), found 2"),
    ],
)
def test_trees_that_are_none(change, message):
    attributes = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [1, 0, 0],
        "nodes_values": [0.5, 0.0, 0.0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        "target_treeids": [0, 0],
        "target_nodeids": [1, 2],
        "target_ids": [0, 0],
        "target_weights": [1.0, 2.0],
    }
    model = model_of([node("TreeEnsembleRegressor", ["x"], ["y"], n_targets=1, **attributes | change)], {"x": data()})
    with pytest.raises(OnnxError) as error:
        relayc.frontend.onnx.from_onnx(model)
    assert message in str(error.value)


# ---- linear models and support vector machines ------------------------------------------------------------------------------------------


def numbers(*shape, seed=0):
    return [float(v) for v in np.random.default_rng(seed).normal(size=shape).astype("float32").reshape(-1)]


def test_linear_models():
    feeds = {"x": np.nan_to_num(data(seed=10))}
    nodes = []
    for targets in (1, 2):
        for transform in ("NONE", "LOGISTIC", "SOFTMAX"):
            attributes = {"coefficients": numbers(targets, FEATURES), "intercepts": numbers(targets), "post_transform": transform}
            nodes.append(node("LinearRegressor", ["x"], [f"r{targets}{transform}"], targets=targets, **attributes))
            outputs = [f"{name}{targets}{transform}" for name in ("label", "scores")]
            nodes.append(node("LinearClassifier", ["x"], outputs, classlabels_ints=[3, 5], **attributes))
    attributes = {"coefficients": numbers(3, FEATURES), "intercepts": numbers(3)}
    nodes.append(node("LinearClassifier", ["x"], ["text", "s"], classlabels_strings=["a", "b", "c"], **attributes))
    agree(model_of(nodes, feeds), feeds)


def test_intercepts_count_if_there_is_one_per_target():
    feeds = {"x": np.nan_to_num(data(seed=10))}
    found, wanted = (
        relayc.frontend.onnx.from_onnx(
            model_of([node("LinearRegressor", ["x"], ["y"], coefficients=numbers(2, FEATURES), targets=2, **given)], feeds)
        )
        for given in ({"intercepts": [100.0]}, {})
    )
    assert str(found) == str(wanted)


def weights_of(prefix, targets, leaves, weights):
    named = {"treeids": [0] * len(leaves), "nodeids": leaves, "ids": targets, "weights": weights}
    return {f"{prefix}_{name}": values for name, values in named.items()}


@pytest.mark.parametrize(
    ("labels", "of_leaves"),
    [(2, ([1, 1], [1, 2], [0.0, 0.3])), (2, ([1, 1], [1, 2], [-0.1, 0.3])), (3, ([0, 0, 1], [1, 2, 1], [-1.0, -2.0, -3.0]))],
)
def test_classes_of_which_leaves_say_little(labels, of_leaves):
    feeds = {"x": np.float32([[0, 1], [1, 0]])}
    attributes = STUMP | weights_of("class", *of_leaves) | {"classlabels_int64s": list(range(labels))}
    agree(model_of([node("TreeEnsembleClassifier", ["x"], ["label", "scores"], **attributes)], feeds), feeds)


def test_the_targets_of_leaves_say_how_many_there_are():
    made = node("TreeEnsembleRegressor", ["x"], ["y"], **STUMP, **weights_of("target", [2, 0, 1], [1, 2, 2], [1.0, 2.0, 3.0]))
    assert shapes(imported(model_of([made], {"x": np.zeros((3, 2), np.float32)}))) == {"y": ["n", "3"]}


KERNELS = [
    ("LINEAR", [0.5, 0.5, 3]),
    ("POLY", [0.25, 0.5, 3]),
    ("POLY", [0.25, 3.5, 2.5]),
    ("RBF", [0.25, 0, 0]),
    ("SIGMOID", [0.25, -0.5, 0]),
]


def test_support_vector_regression():
    feeds = {"x": np.random.default_rng(11).normal(size=(ROWS, FEATURES)).astype("float32") / 4}
    vectors = 9
    common = {"support_vectors": numbers(vectors, FEATURES, seed=12), "n_supports": vectors, "coefficients": numbers(vectors), "rho": [0.5]}
    nodes = [
        node("SVMRegressor", ["x"], [f"y{i}"], kernel_type=name, kernel_params=[float(v) for v in parameters], **common)
        for i, (name, parameters) in enumerate(KERNELS)
    ]
    nodes.append(node("SVMRegressor", ["x"], ["one"], one_class=1, kernel_type="RBF", kernel_params=[0.5, 0.0, 0.0], **common))
    linear = {"kernel_params": [0.0, 0.0, 0.0], "n_supports": 0, "coefficients": numbers(FEATURES), "rho": [0.5]}
    nodes.append(node("SVMRegressor", ["x"], ["linear"], **linear))
    agree(model_of(nodes, feeds), feeds)


@pytest.mark.parametrize("classes", [2, 3])
def test_support_vector_classification(classes):
    """Votes of pairs, with probabilities and without, and linear machines."""
    feeds = {"x": np.random.default_rng(13).normal(size=(ROWS, FEATURES)).astype("float32")}
    counts, pairs = [3, 4, 2][:classes], classes * (classes - 1) // 2
    vectors = sum(counts)
    common = {
        "support_vectors": numbers(vectors, FEATURES, seed=14),
        "vectors_per_class": counts,
        "coefficients": numbers(classes - 1, vectors, seed=15),
        "rho": [0.1, -0.1, -0.4][:pairs],  # each class is the label of some rows
        "kernel_type": "RBF",
        "kernel_params": [0.25, 0.0, 3.0],
    }
    texts, integers = {"classlabels_strings": ["a", "b", "c"][:classes]}, {"classlabels_ints": [7, 4, 9][:classes]}
    nodes = [
        node("SVMClassifier", ["x"], ["label", "scores"], **common, **texts),
        node("SVMClassifier", ["x"], ["l", "logistic"], **common, **integers, post_transform="LOGISTIC"),
        node("SVMClassifier", ["x"], ["pl", "p"], **common, **integers, prob_a=numbers(pairs, seed=16), prob_b=numbers(pairs, seed=17)),
    ]
    linear = {"kernel_params": [0.0, 0.0, 0.0], "rho": [0.5]}
    coefficients = numbers(classes, FEATURES)
    for i, row in enumerate((coefficients, [max(0.0, c) / 4 for c in coefficients])):
        nodes.append(node("SVMClassifier", ["x"], [f"ll{i}", f"ls{i}"], **linear, **integers, coefficients=row))
    agree(model_of(nodes, feeds), feeds)


def test_a_class_may_have_no_support_vectors():
    attributes = {"classlabels_ints": [0, 1], "support_vectors": [1.0, 2.0], "coefficients": [1.0, 2.0], "rho": [0.0]}
    made = node("SVMClassifier", ["x"], ["label", "scores"], vectors_per_class=[2, 0], **attributes)
    assert shapes(imported(model_of([made], {"x": np.zeros((3, 1), np.float32)}))) == {"label": ["n"], "scores": ["n", "2"]}


# ---- features ---------------------------------------------------------------------------------------------------------------------------


def test_features():
    x = data(seed=18)
    feeds = {"x": x, "k": np.random.default_rng(19).integers(-3, 4, (ROWS, 3)), "clean": np.nan_to_num(x)}
    nodes = [
        node("Imputer", ["x"], ["each"], imputed_value_floats=numbers(FEATURES), replaced_value_float=float("nan")),
        node("Imputer", ["x"], ["one"], imputed_value_floats=[0.5], replaced_value_float=2.0),
        node("Imputer", ["k"], ["whole"], imputed_value_int64s=[7, 8, 9], replaced_value_int64=-1),
        node("Scaler", ["x"], ["scaled"], offset=numbers(FEATURES), scale=numbers(FEATURES, seed=1)),
        node("Scaler", ["k"], ["shifted"], offset=[0.5], scale=[0.25]),
        node("Binarizer", ["clean"], ["flags"], threshold=0.5),
        node("FeatureVectorizer", ["clean", "one"], ["joined"], inputdimensions=[FEATURES, FEATURES]),
        node("FeatureVectorizer", ["k", "whole"], ["cut"], inputdimensions=[2, 5]),
        *(node("Normalizer", ["clean"], [norm], norm=norm) for norm in ("MAX", "L1", "L2")),
        node("Normalizer", ["k"], ["of integers"], norm="L2"),
    ]
    agree(model_of(nodes, feeds, version=1), feeds)


def test_the_number_of_rows_is_the_one_that_an_input_states():
    model = model_of([node("FeatureVectorizer", ["x", "one"], ["joined"])], {"x": data(), "one": data(seed=1)[:, :1]}, version=1)
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_value = ROWS
    assert [spec.shape for spec in relayc.compile(model).outputs] == [(ROWS, FEATURES + 1)]


def test_extraction():
    feeds = {"x": data(), "indices": np.array([4, 0, 4])}
    model = model_of([node("ArrayFeatureExtractor", ["x", "indices"], ["y"])], feeds)
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "count"
    agree(model, feeds)


# ---- categories -------------------------------------------------------------------------------------------------------------------------


def test_numbers_as_labels():
    x = data(seed=20)
    feeds = {"x": x, "k": np.random.default_rng(21).integers(-3, 4, (ROWS, 2)), "short": np.nan_to_num(x).astype("int32")}
    nan = float("nan")
    nodes = [
        node("LabelEncoder", ["k"], ["a"], keys_int64s=[3, -2, 0, 1], values_floats=[0.5, 1.5, 2.5, 3.5]),
        node("LabelEncoder", ["x"], ["b"], keys_floats=[2.0, nan, -1.0, 0.0], values_int64s=[10, 20, 30, 40], default_int64=-7),
        node("LabelEncoder", ["k"], ["c"], keys_int64s=[1, 2], values_strings=["one", "two"], default_string="many"),
        node(
            "LabelEncoder",
            ["short"],
            ["d"],
            keys_tensor=numpy_helper.from_array(np.array([2, 1], np.int32)),
            values_tensor=numpy_helper.from_array(np.array([5, 6], np.int32)),
            default_tensor=numpy_helper.from_array(np.array([9], np.int32)),
        ),
        node("OneHotEncoder", ["k"], ["hot"], cats_int64s=[2, -1, 0]),
    ]
    session_has_no = {"d"}
    agree(model_of([n for n in nodes if n.output[0] not in session_has_no], feeds, version=4), feeds)
    found = relayc.compile(model_of([n for n in nodes if n.output[0] in session_has_no], {"short": feeds["short"]}, version=4))
    short = feeds["short"]
    np.testing.assert_array_equal(found.run({"short": short})["d"], np.where(short == 2, 5, np.where(short == 1, 6, 9)))


def test_strings_as_labels():
    words = np.array(["red", "green", "blue", "none of these", ""], object)
    feeds = {"s": words[np.random.default_rng(22).integers(0, 5, (ROWS, 2))], "k": np.random.default_rng(23).integers(0, 4, (ROWS, 2))}
    colours, places = ["green", "red", "blue"], {"keys_strings": ["green", "red", "blue"]}
    nodes = [
        node("LabelEncoder", ["s"], ["number"], **places, values_int64s=[5, 3, 1], default_int64=0),
        node("LabelEncoder", ["s"], ["float"], **places, values_floats=[0.5, 0.25, 0.125]),
        node("LabelEncoder", ["s"], ["text"], **places, values_strings=["vert", "rouge", "bleu"], default_string="?"),
        node("CategoryMapper", ["s"], ["mapped"], cats_strings=colours, cats_int64s=[2, 0, 1]),
        node("CategoryMapper", ["k"], ["back"], cats_strings=colours, cats_int64s=[2, 0, 1], default_string="?"),
        node("OneHotEncoder", ["s"], ["hot"], cats_strings=colours),
    ]
    agree(model_of(nodes, feeds, version=2), feeds)
    nodes = [node("LabelEncoder", [name], [f"{name}_label"], classes_strings=colours) for name in feeds]
    agree(model_of(nodes, feeds, version=1), feeds)


@pytest.mark.parametrize(("attribute", "keys"), [("classlabels_int64s", [3, 5, 4]), ("classlabels_strings", ["a", "b", "c"])])
def test_maps_of_scores(attribute, keys):
    x = np.nan_to_num(data(rows=5)[:, :3])
    model = model_of([node("ZipMap", ["x"], ["y"], **{attribute: keys})], {"x": x})
    found = relayc.compile(model).run({"x": x})
    assert found["y"] == [dict(zip(keys, row, strict=True)) for row in x.tolist()]
    columns = tensors_of(found)
    assert columns.keys() == {f"y.{key}" for key in keys}
    np.testing.assert_array_equal(np.stack(list(columns.values()), axis=1), x)
