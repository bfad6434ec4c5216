"""Numbers that are no sizes: they may be negative, whoever shares a kernel with them."""

import numpy as np
import onnxruntime
import pytest
from onnx.parser import parse_model

import relayc


def agrees(text: str, *calls) -> None:
    model = parse_model('<ir_version: 8, opset_import: ["" : 18]> main ' + text)
    module = relayc.compile(model, cache=False)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [given.name for given in session.get_inputs()]
    for arrays in calls:
        expected = session.run(None, dict(zip(names, arrays, strict=True)))
        found = module["main"](*arrays)
        for a, b in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_window_that_begins_before_the_first_token():
    """The mask of Gemma 2: both ends of the window are positions, computed by one kernel."""
    agrees(
        """(float[past] c, int64[n] x) => (bool[n, k] y) {
          zero = Constant<value_int = 0>() one = Constant<value_int = 1>() window = Constant<value_int = 16>()
          column = Constant<value_ints = [1]>() row = Constant<value_ints = [0]>()
          ps = Shape(c) p = Squeeze(ps) ns = Shape(x) n = Squeeze(ns) total = Add(n, p)
          r = Range(zero, n, one) q = Add(r, p) k = Range(zero, total, one)
          q2 = Unsqueeze(q, column) k2 = Unsqueeze(k, row) begin = Sub(q2, window) a = Greater(k2, begin) b = LessOrEqual(k2, q2)
          y = And(a, b) }""",
        *((np.zeros(p, np.float32), np.zeros(n, np.int64)) for p, n in ((0, 1), (1, 1), (15, 2), (16, 1), (17, 5), (0, 1100), (1030, 3))),
    )


def test_ranges_of_negative_numbers_share_a_kernel_with_others():
    agrees(
        """(float[n] x, float[m] z) => (int64[n] a, int64[m] b, int64[n] c) {
          zero = Constant<value_int = 0>() one = Constant<value_int = 1>() ns = Shape(x) n = Squeeze(ns) ms = Shape(z) m = Squeeze(ms)
          less = Sub(n, m) minus = Neg(n) end = Add(less, n)
          a = Range(less, end, one) b = Range(zero, m, one) c = Range(minus, zero, one) }""",
        *((np.zeros(n, np.float32), np.zeros(m, np.float32)) for n, m in ((3, 1), (1, 3), (5, 5), (0, 7), (1, 2000))),
    )


@pytest.mark.parametrize("mode", ["constant", "edge"])
def test_padding_that_data_say_takes_away_where_it_is_negative(mode):
    text = f'(float[n] x, int64[2] p) => (float[m] y) {{ y = Pad<mode = "{mode}">(x, p) }}'
    pairs = ((0, 5), (-3, 9), (3, 1), (-4, -2), (2, -1))
    agrees(text, *((np.arange(9, dtype=np.float32), np.array(pair)) for pair in pairs))
    agrees(
        f'(float[n] x, int64[1] k) => (float[n] y) {{ b = Neg(k) p = Concat<axis = 0>(k, b) y = Pad<mode = "{mode}">(x, p) }}',
        *((np.arange(9, dtype=np.float32), np.array([k])) for k in (3, 0, -2)),
    )
