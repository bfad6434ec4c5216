"""Indices out of range: an error of the call where ONNX Runtime has one, and no check where the range is proved."""

import numpy as np
import onnxruntime
import pytest
from onnx.parser import parse_model
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument

import relayc

onnxruntime.set_default_logger_severity(4)


def model_of(text: str):
    return parse_model('<ir_version: 8, opset_import: ["" : 18]> main ' + text)


def array(*numbers, dtype=np.int64):
    return np.array(numbers, dtype)


def floats(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def check(text: str, *calls, **options):
    """Each call gives what ONNX Runtime gives; after a text instead of an input follows a call that both refuse, with that message."""
    model = model_of(text)
    module = relayc.compile(model, cache=False, **options)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [i.name for i in session.get_inputs()]
    for given in calls:
        message = given[0] if isinstance(given[0], str) else None
        arrays = [np.asarray(a) for a in given[message is not None :]]
        feeds = dict(zip(names, arrays, strict=True))
        if message is None:
            np.testing.assert_allclose(module["main"](*arrays), session.run(None, feeds)[0], rtol=1e-6)
            continue
        with pytest.raises((Fail, InvalidArgument)):
            session.run(None, feeds)
        with pytest.raises(ValueError, match=message):
            module["main"](*arrays)
    return module


def checks(module) -> list[str]:
    """The kernels of a module that look for an index out of range."""
    return [kernel.name for kernel in module.kernels if "worst_index" in kernel.name]


def test_gather():
    x = floats(50, 4)
    many = np.random.default_rng(1).integers(-50, 50, 2000)
    module = check(
        "(float[n, 4] x, int64[k] i) => (float[k, 4] y) { y = Gather(x, i) }",
        (x, many),
        (x, array(0, 49, -50)),
        (x, array()),
        (floats(0, 4), array()),
        (
            r'main: "Gather#0": index 50 into axis 0 of tensor<\?x4xf32, \["n"\]>: expected at most 49',
            x,
            np.where(many == many[1997], 50, 3),
        ),
        ("index -51 into axis 0 .* at least -50", x, np.where(np.arange(2000) == 1, -51, many)),
        (f"index {1 << 40} into", x, array(1 << 40)),
        ("expected at least one element along axis 0", floats(0, 4), array(0)),
    )
    assert len(checks(module)) == 1


def test_gather_of_static_shapes_at_int32():
    check(
        "(float[5, 4] x, int32[2, 3] i) => (float[5, 2, 3] y) { y = Gather<axis = 1>(x, i) }",
        (floats(5, 4), array([0, 3, -4], [1, 2, 1], dtype=np.int32)),
        ("index 4 into axis 1 of tensor<5x4xf32>: expected at most 3", floats(5, 4), array([0, 3, -4], [1, 2, 4], dtype=np.int32)),
        ("index -5 into axis 1", floats(5, 4), array([0, 3, -4], [-5, 2, 3], dtype=np.int32)),
    )


def test_gather_and_scatter_elements():
    x = floats(5, 4)
    calls = [(array([0, 1], [3, -4]),), ("index 4 into axis 1", array([0, 1], [3, 4])), ("index -5 into axis 1", array([0, -5], [1, 1]))]
    named = [(*call[:-1], x, call[-1]) for call in calls]
    check("(float[n, m] x, int64[e, k] i) => (float[e, k] y) { y = GatherElements<axis = 1>(x, i) }", *named)
    text = "(float[n, m] x, int64[e, k] i, float[e, k] u) => (float[n, m] y) { y = ScatterElements<axis = 1>(x, i, u) }"
    check(text, *((*call, floats(2, 2)) for call in named))


_CELLS = [
    (array([0, 1], [4, -4]),),
    (array([-5, -4], [1, 1]),),
    ("index 4 into axis 1", array([4, 3], [3, 4])),
    ("index 5 into axis 0", array([5, 3], [3, 3])),
    ("index -5 into axis 1", array([0, -5], [1, 1])),
    ("index -6 into axis 0", array([-6, 0], [1, 1])),
]


def test_columns_of_indices_are_of_an_axis_each():
    x = floats(5, 4)
    calls = [(*call[:-1], x, call[-1]) for call in _CELLS]
    check("(float[n, m] x, int64[e, 2] i) => (float[e] y) { y = GatherND(x, i) }", *calls)
    check(
        "(float[n, m] x, int64[2, e] t) => (float[e] y) { i = Transpose<perm = [1, 0]>(t) y = GatherND(x, i) }",
        *((*call[:-1], np.ascontiguousarray(call[-1].T)) for call in calls),
    )
    check(
        "(float[n, m] x, int64[e, 1] a, int64[e, 1] b) => (float[e] y) { i = Concat<axis = 1>(a, b) y = GatherND(x, i) }",
        *((*call[:-1], call[-1][:, :1], call[-1][:, 1:]) for call in calls),
    )
    check(
        '(float[n, m] x, int64[e, 2] i, float[e] u) => (float[n, m] y) { y = ScatterND<reduction = "add">(x, i, u) }',
        *((*call, floats(2)) for call in calls),
    )


def test_rows_of_indices_are_joined():
    x = floats(5, 4)
    check(
        "(float[n, m] x, int64[e, 2] a, int64[e, 2] b) => (float[k] y) { i = Concat<axis = 0>(a, b) y = GatherND(x, i) }",
        *((*call[:-1], x, call[-1], array([1, 1], [2, 3])) for call in _CELLS),
        *((*call[:-1], x, array([1, 1], [2, 3]), call[-1]) for call in _CELLS[-1:]),
    )
    check(
        "(float[n, m] x, int64[e] a, int64[k] b) => (float[j, m] y) { i = Concat<axis = 0>(a, b) y = Gather(x, i) }",
        (x, array(4, -5), array(0)),
        ("index 5 into axis 0", x, array(5, 0), array(0)),
        ("index -6 into axis 0", x, array(4), array(0, -6)),
    )


def test_indices_that_kernels_compute():
    x = floats(5, 4)
    check(
        "(float[n, m] x, int64[e] i) => (float[e, m] y) { two = Constant<value_int = 2>() j = Mul(i, two) y = Gather(x, j) }",
        (x, array(0, 1, -2)),
        ("index 6 into", x, array(0, 3)),
        ("index -6 into", x, array(-3)),
    )


def test_positions_are_checked_by_sizes():
    """A table of positions that is too short for the past and the new tokens, as in GPT-2."""
    module = check(
        """(float[9, 4] x, int64[k] z, float[past] c) => (float[k, 4] y) {
          one = Constant<value_int = 1>() s = Shape(z) t = Squeeze(s) p = Shape(c) q = Squeeze(p) e = Add(q, t)
          r = Range(q, e, one) y = Gather(x, r) }""",
        (floats(9, 4), array(1, 2), floats(7)),
        (floats(9, 4), array(), floats(20)),
    )
    assert not checks(module)
    with pytest.raises(ValueError, match="index 9 into axis 0 of tensor<9x4xf32>: expected at most 8"):
        module["main"](floats(9, 4), array(1, 2), floats(8))


@pytest.mark.parametrize(
    "indices",
    [
        "i = ArgMax<axis = 1, keepdims = 0>(z)",
        "k = Constant<value_ints = [2]>() v, i = TopK<axis = 1>(z, k)",
        "c = Cast<to = 7>(z) s = Shape<start = 1, end = 2>(z) i = Mod(c, s)",
        """c = Cast<to = 7>(z) s = Shape<start = 1, end = 2>(z) one = Constant<value_int = 1>() zero = Constant<value_int = 0>()
           last = Sub(s, one) a = Max(c, zero) i = Min(a, last)""",
        "b = Greater(z, z) i = Cast<to = 7>(b)",
        "c = Constant<value_ints = [0, 1, 0]>() s = Shape(z) d = Add(c, c) i = Sub(d, c)",
    ],
)
def test_indices_proved_to_be_in_range_are_not_checked(indices):
    text = f"(float[n, 4] x, float[k, n] z) => (float y) {{ {indices} g = Gather(x, i) y = ReduceSum<keepdims = 0>(g) }}"
    model = model_of(text)
    module = relayc.compile(model, cache=False, dims={"n": (2, 100)})
    assert not checks(module)
    feeds = {"x": floats(5, 4), "z": 9 * floats(3, 5)}
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)[0]
    np.testing.assert_allclose(module["main"](*feeds.values()), expected, rtol=1e-5)


def test_a_constant_out_of_range_is_an_error_of_the_call():
    text = "(float[n, 4] x) => (float[4] y) { i = Constant<value_int = 3>() y = Gather(x, i) }"
    module = check(text, (floats(5, 4),), (floats(4, 4),), ("index 3 into axis 0 .* at most 2", floats(3, 4)))
    assert not checks(module)
    check(text.replace("n, 4", "3, 4"), ("index 3 into axis 0 of tensor<3x4xf32>: expected at most 2", floats(3, 4)))


def test_a_branch_that_is_not_taken_checks_nothing():
    check(
        """(bool c, float[n, m] x, int64[e] i) => (float[q, m] y) {
          y = If(c)<
            then_branch = b () => (float[e, m] a) { a = Gather(x, i) }, else_branch = e () => (float[n, m] d) { d = Identity(x) }> }""",
        (np.bool_(True), floats(5, 4), array(3)),
        (np.bool_(False), floats(5, 4), array(7)),
        ('"If#0/Gather#0": index 7 into', np.bool_(True), floats(5, 4), array(7)),
    )


def test_a_loop_checks_the_rounds_that_it_runs():
    """Both gathers are of tensors from outside of the loop: they may move out of it, their checks may not."""
    check(
        """(int64 k, float[n] x, int64[m] z) => (float r) { c = Constant<value = bool {1}>() s = Constant<value = float {0}>()
          r = Loop(k, c, s)<body = b (int64 i, bool ci, float v) => (bool co, float vo) {
            co = Identity(ci) j = Gather(z, i) t = Gather(x, j) first = Gather(x, z) u = ReduceSum<keepdims = 0>(first) w = Add(t, u)
            vo = Add(v, w) }> }""",
        (np.int64(3), floats(4), array(0, 3, 1)),
        (np.int64(0), floats(4), array(9)),
        ('"Loop#2/Gather#1": index 3 into axis 0 of tensor<.xi64, .*: expected at most 2', np.int64(4), floats(4), array(0, 3, 1)),
        ('"Loop#2/Gather#.": index 9 into', np.int64(1), floats(4), array(9)),
    )


def test_indices_that_are_repeated_no_time_may_be_anything():
    check(
        "(float[n] x, int64[1] i, float[f] u) => (float[f] y) { s = Shape(u) j = Expand(i, s) y = GatherElements(x, j) }",
        (floats(4), array(2), floats(3)),
        (floats(4), array(4), floats(0)),
        ("index 4 into", floats(4), array(4), floats(3)),
    )


def test_each_pair_of_indices_and_size_is_checked_once():
    module = check(
        "(float[n, m] x, float[n, m] w, int64[e] i) => (float[e, m] y) { a = Gather(x, i) b = Gather(w, i) y = Add(a, b) }",
        (floats(5, 4), floats(5, 4), array(1, -5)),
        ("index 5 into", floats(5, 4), floats(5, 4), array(5)),
    )
    assert len(checks(module)) == 1


_TABLE = "(float[n, 4] x, int64[k] i) => (float[k, 4] y) { y = Gather(x, i) }"


@pytest.mark.parametrize("options", [{"precision": "bf16"}, {"opt_level": 0}], ids=str)
def test_every_way_to_compile_checks(options):
    check(_TABLE, (floats(5, 4), array(0, -5)), ("index 5 into", floats(5, 4), array(5)), **options)


def test_an_exported_library_checks(tmp_path):
    relayc.compile(model_of(_TABLE)).export_library(tmp_path / "table.so")
    function = relayc.load_module(tmp_path / "table.so")["main"]
    x = floats(5, 4)
    np.testing.assert_array_equal(function(x, array(4, -5)), x[[4, 0]])
    with pytest.raises(ValueError, match=r"index -6 into axis 0 .* at least -5"):
        function(x, array(1, -6))


def test_a_gpu_clamps_what_it_does_not_check():
    module = relayc.compile(model_of(_TABLE), target="cuda -emulate=true")
    x = floats(5, 4)
    np.testing.assert_array_equal(module["main"](x, array(4, -5, 7, -9)), x[[4, 0, 4, 0]])


def test_the_number_of_an_iteration_is_in_range_where_there_are_as_many_rows():
    module = check(
        """(float[n, 3] x) => (float[3] r) { s = Shape<start = 0, end = 1>(x) k = Squeeze(s) t = Constant<value = bool {1}>()
          z = Constant<value_floats = [0.0, 0.0, 0.0]>()
          r = Loop(k, t, z)<body = b (int64 i, bool ci, float[3] v) => (bool co, float[3] w) {
            co = Identity(ci) g = Gather(x, i) w = Add(v, g) }> }""",
        (floats(5, 3),),
        (floats(0, 3),),
    )
    assert not checks(module)
