"""Sizes that operators take for equal, of dimensions with names of their own: checked by the call, against ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest
from onnx.parser import parse_model
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument

import relayc
from relayc.frontend.onnx.errors import OnnxError

onnxruntime.set_default_logger_severity(4)
RNG = np.random.default_rng(0)


def f(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def i(high, *shape):
    return RNG.integers(0, high, shape)


CASES = {
    "graph attention": (
        """(float[n, 4] x, int64[e, 1] i, float[f, 4] u) => (float[n, 4] y) {
          s = Shape(u) j = Expand(i, s) y = ScatterElements<axis = 0, reduction = "add">(x, j, u) }""",
        [(f(5, 4), i(5, 3, 1), f(3, 4)), (f(5, 4), i(5, 1, 1), f(1200, 4)), (f(5, 4), i(5, 0, 1), f(0, 4))],
        [
            (r"dimension 0: broadcast\(e, f\) is 3 and f is 1", f(5, 4), i(5, 3, 1), f(1, 4)),
            ("dimension 0: e is 3 and f is 2, expected sizes that broadcast", f(5, 4), i(5, 3, 1), f(2, 4)),
        ],
    ),
    "scatter elements": (
        "(float[n, m] x, int64[e, k] i, float[f, l] u) => (float[n, m] y) { y = ScatterElements<axis = 1>(x, i, u) }",
        [(f(5, 4), np.array([[0, 3], [2, 1]]), f(2, 2))],
        [("l is 3 and k is 2", f(5, 4), i(4, 3, 2), f(3, 3)), ("f is 2 and e is 3", f(5, 4), i(4, 3, 2), f(2, 2))],
    ),
    "scatter nd": (
        "(float[n, m] x, int64[e, 1] i, float[f, k] u) => (float[n, m] y) { y = ScatterND(x, i, u) }",
        [(f(5, 4), np.array([[3], [1]]), f(2, 4))],
        [("f is 3 and e is 2", f(5, 4), i(5, 2, 1), f(3, 4)), ("k is 3 and m is 4", f(5, 4), i(5, 2, 1), f(2, 3))],
    ),
    "gather nd of batches": (
        "(float[b, m] x, int64[c, k, 1] i) => (float[b, k] y) { y = GatherND<batch_dims = 1>(x, i) }",
        [(f(5, 4), i(4, 5, 3, 1))],
        [("b is 5 and c is 4", f(5, 4), i(4, 4, 3, 1))],
    ),
    "concat": (
        "(float[n, a] x, float[m, b] z) => (float[n, c] y) { y = Concat<axis = 1>(x, z) }",
        [(f(5, 4), f(5, 2))],
        [("m is 3 and n is 5", f(5, 4), f(3, 2))],
    ),
    "products": (
        "(float[b, n, d] q, float[c, m, e] k, float[g, l, h] v) => (float[b, n, h] y) "
        "{ t = Transpose<perm = [0, 2, 1]>(k) s = MatMul(q, t) a = Softmax(s) y = MatMul(a, v) }",
        [(f(2, 3, 8), f(2, 5, 8), f(2, 5, 6))],
        [
            ("e is 7 and d is 8", f(2, 3, 8), f(2, 5, 7), f(2, 5, 6)),
            ("l is 4 and m is 5", f(2, 3, 8), f(2, 5, 8), f(2, 4, 6)),
            ("c is 3 and b is 2", f(2, 3, 8), f(3, 5, 8), f(2, 5, 6)),
        ],
    ),
    "where": (
        "(bool[n, a] k, float[m, a] x, float[o, b] z) => (float[n, a] y) { y = Where(k, x, z) }",
        [(f(5, 4) > 0, f(5, 4), f(5, 4))],
        [("b is 3 and a is 4", f(5, 4) > 0, f(5, 4), f(5, 3)), ("m is 4 and n is 5", f(5, 4) > 0, f(4, 4), f(5, 4))],
    ),
    # Of one row of biases, as many as there are before position n: a size of at most 1 is 1 beside another one.
    "a size of at most 1": (
        """(float[n, m] x, float[1, 4] r) => (float[n, m] y) <int64[1] zero = {0}, int64[1] one = {1}, int64[1] far = {99}> {
          s = Shape<end = 1>(x) d = Sub(one, s) b = Max(d, zero) z = Slice(r, b, far, zero) t = Slice(z, zero, one, one) y = Add(x, t) }""",
        [(f(5, 4), f(1, 4)), (f(1, 4), f(1, 4)), (f(1030, 3), f(1, 4))],
        [],
    ),
    "layer norm": (
        "(float[n, a] x, float[s] k, float[t] z) => (float[n, a] y) { y = LayerNormalization(x, k, z) }",
        [(f(5, 4), f(4), f(4))],
        [("s is 3 and a is 4", f(5, 4), f(3), f(4)), ("t is 2 and a is 4", f(5, 4), f(4), f(2))],
    ),
    "group norm": (
        "(float[n, c, a] x, float[s] k, float[t] z) => (float[n, c, a] y) { y = GroupNormalization<num_groups = 2>(x, k, z) }",
        [(f(2, 6, 4), f(2), f(2))],
        [(r"c is 5 and 2\*\(c//2\) is 4", f(2, 5, 4), f(2), f(2)), ("s is 3, expected 2", f(2, 6, 4), f(3), f(2))],
    ),
    "convolution in groups": (
        "(float[n, c, a] x, float[o, i, 3] w, float[b] z) => (float[n, o, e] y) { y = Conv<group = 2>(x, w, z) }",
        [(f(2, 6, 9), f(4, 3, 3), f(4))],
        [
            (r"c is 5 and 2\*i is 6", f(2, 5, 9), f(4, 3, 3), f(4)),
            (r"o is 5 and 2\*\(o//2\) is 4", f(2, 6, 9), f(5, 3, 3), f(5)),
            ("b is 3, expected the same", f(2, 6, 9), f(4, 3, 3), f(3)),
        ],
    ),
    "transposed convolution": (
        "(float[n, c, a] x, float[i, o, 3] w) => (float[n, o, e] y) { y = ConvTranspose(x, w) }",
        [(f(2, 5, 9), f(5, 4, 3))],
        [("i is 4 and c is 5", f(2, 5, 9), f(4, 5, 3))],
    ),
    "quantization": (
        "(float[n, c] x, float[s] k) => (uint8[n, c] y) { y = QuantizeLinear<axis = 1>(x, k) }",
        [(f(3, 4), np.abs(f(4)) + 0.1)],
        [("s is 3 and c is 4", f(3, 4), np.abs(f(3)) + 0.1)],
    ),
    "diagonal": (
        '(float[b, n, m] x) => (float[b, n] y) { y = Einsum<equation = "bii->bi">(x) }',
        [(f(2, 3, 3),), (f(2, 1, 1),)],
        [("m is 2 and n is 3", f(2, 3, 2))],
    ),
    "depth to space": (
        "(float[n, c, h, w] x) => (float[n, d, e, f] y) { y = DepthToSpace<blocksize = 2>(x) }",
        [(f(2, 8, 3, 3),)],
        [(r"c is 6 and 4\*\(c//4\) is 4", f(2, 6, 3, 3))],
    ),
    "recurrent": (
        "(float[s, b, k] x, float[1, 12, l] w, float[1, 12, 3] r, float[1, c, 3] h, float[1, d, 3] e) => (float[s, 1, b, 3] y) "
        "{ y = LSTM<hidden_size = 3>(x, w, r, , , h, e) }",
        [(f(6, 2, 4), f(1, 12, 4), f(1, 12, 3), f(1, 2, 3), f(1, 2, 3))],
        [
            ("l is 5 and k is 4", f(6, 2, 4), f(1, 12, 5), f(1, 12, 3), f(1, 2, 3), f(1, 2, 3)),
            ("c is 3 and b is 2", f(6, 2, 4), f(1, 12, 4), f(1, 12, 3), f(1, 3, 3), f(1, 2, 3)),
        ],
    ),
    "what a loop carries": (
        """(int64 k, float[n, c] x, float[m, d] z) => (float[o, c] y) { t = Constant<value = bool {1}>()
          y = Loop(k, t, x)<body = b (int64 j, bool ci, float[p, c] v) => (bool co, float[p, c] w) {
            co = Identity(ci) w = Concat<axis = 0>(v, z) }> }""",
        [(np.array(3), f(4, 3), f(2, 3))],
        [("d is 2 and c is 3", np.array(1), f(4, 3), f(2, 2))],
    ),
    "what a branch gives": (
        """(bool k, float[n] x, float[m] z, float[o] w) => (float[q] y) {
          t = If(k)<then_branch = b () => (float[n] a) { a = Identity(x) }, else_branch = e () => (float[m] g) { g = Identity(z) }>
          y = Add(t, w) }""",
        [(np.array(True), f(4), f(5), f(4)), (np.array(False), f(4), f(5), f(5))],
        [("branch is 5 and o is 4", np.array(False), f(4), f(5), f(4))],
    ),
    "what a scan goes along": (
        """(float[a] h, float[n, b] x, float[m, c] z) => (float[a] y, float[n, a] w) {
          y, w = Scan<num_scan_inputs = 2, body = b (float[a] hi, float[b] xi, float[c] zi) => (float[a] ho, float[a] so) {
            t = Add(hi, xi) ho = Add(t, zi) so = Identity(ho) }>(h, x, z) }""",
        [(f(4), f(3, 4), f(3, 4))],
        [("m is 2 and n is 3", f(4), f(3, 4), f(2, 4)), ("c is 5 and a is 4", f(4), f(3, 4), f(3, 5))],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_call_says_which_sizes_are_not_equal(case):
    text, right, wrong = CASES[case]
    model = parse_model('<ir_version: 8, opset_import: ["" : 18]> main ' + text)
    module = relayc.compile(model, cache=False)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [given.name for given in session.get_inputs()]
    for arrays in right:
        found, expected = module["main"](*arrays), session.run(None, dict(zip(names, arrays, strict=True)))
        # Sums of up to 1,200 normal numbers, in another order.
        for a, b in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    for message, *arrays in wrong:
        with pytest.raises((Fail, InvalidArgument)):
            session.run(None, dict(zip(names, arrays, strict=True)))
        with pytest.raises(ValueError, match=message):
            module["main"](*arrays)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(float[n, 3] x, float[4, m] z) => (float[n, m] y) { y = MatMul(x, z) }", "4"),
        ("(float[n, m, 3] x, int64[e, 4] i) => (float[e] y) { y = GatherND(x, i) }", "at most 3"),
        ("(float[3, m] x, float[5, k] z) => (float[n, m] y) { y = Concat<axis = 1>(x, z) }", "differ in the size of axis 1 alone"),
    ],
)
def test_sizes_that_are_different_at_all_sizes_are_refused(text, message):
    with pytest.raises(OnnxError, match=message):
        relayc.compile(parse_model('<ir_version: 8, opset_import: ["" : 18]> main ' + text), cache=False)
