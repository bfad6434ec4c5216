"""qnn.conv1d_transpose, conv2d_transpose, conv3d_transpose: sums of integers, against numpy bit for bit."""

import itertools

import numpy as np
import pytest
from support import Const, program
from symbolic_ops import symbolic_program, tensor

import relayc
from relayc.dialects.relay import build

S = Const(np.float32(0.5))


def drawn(shape, dtype):
    return np.random.default_rng(shape[-1]).integers(0, 256, shape).astype(np.uint8).view(dtype)


def scattered(x, w, strides, pads, extra, groups):
    """Every element of data times the window that it adds, cropped: the definition."""
    rank, (batch, channels) = x.ndim - 2, x.shape[:2]
    full = [(n - 1) * s + k + e for n, s, k, e in zip(x.shape[2:], strides, w.shape[2:], extra, strict=True)]
    found = np.zeros((batch, w.shape[1] * groups, *full), np.int64)
    for group, position in itertools.product(range(groups), np.ndindex(*x.shape[2:])):
        data = x[(slice(None), slice(group * channels // groups, (group + 1) * channels // groups), *position)]
        weight = w[group * channels // groups : (group + 1) * channels // groups]
        at = tuple(slice(p * s, p * s + k) for p, s, k in zip(position, strides, w.shape[2:], strict=True))
        out = slice(group * w.shape[1], (group + 1) * w.shape[1])
        found[(slice(None), out, *at)] += np.tensordot(data.astype(np.int64), weight.astype(np.int64), (1, 0))
    crop = tuple(slice(low, n - high) for low, high, n in zip(pads[:rank], pads[rank:], full, strict=True))
    return found[(slice(None), slice(None), *crop)]


CASES = {
    "no stride": ((2, 5, 7, 6), (5, 4, 3, 3), (1, 1), (0, 0, 0, 0), (0, 0), 1),
    "uneven padding": ((1, 8, 9, 17), (8, 16, 3, 2), (2, 1), (1, 0, 0, 1), (0, 0), 1),
    "doubled": ((1, 20, 16, 16), (20, 33, 4, 4), (2, 2), (1, 1, 1, 1), (0, 0), 1),
    "phases without taps": ((1, 3, 5, 4), (3, 6, 2, 1), (3, 2), (0, 0, 0, 0), (1, 0), 1),
    "elements without taps": ((1, 4, 4, 5), (4, 7, 3, 3), (2, 2), (0, 0, 0, 0), (1, 1), 1),
    "groups": ((1, 12, 8, 7), (12, 5, 3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 3),
    "one axis": ((2, 9, 65), (9, 10, 5), (4,), (2, 1), (0,), 1),
    "three axes": ((1, 4, 3, 4, 5), (4, 6, 3, 2, 3), (1, 2, 2), (1, 0, 0, 1, 1, 0), (0, 0, 1), 2),
}
WIDE = ("doubled", "uneven padding")
"""The cases that a schedule of bytes takes on every CPU."""
ZEROS = [("uint8", 0, 0), ("uint8", 131, 0), ("uint8", 255, -3), ("int8", -128, 0), ("int8", 7, 2), ("uint8", 9, -100)]
"""Element type of data, its zero point and the zero point of weights, which fit in s8 without it except for the last."""


def body(case, zeros):
    _, shape, strides, pads, extra, groups = CASES[case]
    dtype, zero, weight_zero = zeros
    reach = 128 if weight_zero == -100 else 64
    w = np.random.default_rng(1).integers(-reach, reach, shape) + (0 if weight_zero == -100 else weight_zero)
    w = w.astype(np.int8)
    parameters = [Const(np.array(zero, dtype)), Const(np.array(weight_zero, np.int8)), S, S]
    attrs = {"strides": strides, "padding": pads, "output_padding": extra, "groups": groups}
    name = f"qnn.conv{len(strides)}d_transpose"

    def right(x):
        return scattered(x.astype(int) - zero, w.astype(int) - weight_zero, strides, pads, extra, groups)

    return lambda x, *constants: [build(name, x, *constants, **attrs)], [Const(w), *parameters], right


@pytest.mark.parametrize("zeros", ZEROS, ids=str)
@pytest.mark.parametrize("case", CASES)
def test_sums_are_exact(case, zeros):
    x = drawn(CASES[case][0], zeros[0])
    built, constants, right = body(case, zeros)
    module = relayc.compile(program(built, [x, *constants]), cache=False)
    assert any(kernel.schedule.startswith("int8") for kernel in module.kernels) or case not in WIDE or zeros[2] == -100
    found = np.asarray(module["main"](x))
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, right(x))


@pytest.mark.parametrize("case", ["doubled", "one axis"])
def test_sums_at_any_sizes(case):
    zeros = ("uint8", 131, 0)
    built, constants, right = body(case, zeros)
    shape = CASES[case][0]
    free = ", ".join(["n", str(shape[1]), *"hw"[: len(shape) - 2]])
    module = relayc.compile(symbolic_program(built, [tensor(f"uint8[{free}]"), *constants]), cache=False)
    for sizes in ((1, 1), (2, 15), (1, 33)):
        x = drawn((sizes[0], shape[1], *[sizes[1]] * (len(shape) - 2)), "uint8")
        np.testing.assert_array_equal(np.asarray(module["main"](x)), right(x))
