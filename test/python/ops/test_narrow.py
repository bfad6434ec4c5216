"""Narrow types: every element in every conversion, rounding by its definition, moves to the last bit; and no arithmetic."""

import itertools

import numpy as np
import pytest
from narrow_types import BITS, FLOATS, INTEGERS, every_value, nearest, same_bits, some_values, telling_numbers
from support import Const, build, program, run, run_each, run_program

from relayc.dialects.mlir import ir, make_context
from relayc.dialects.relay import RelayError
from relayc.dialects.relay.elements import dense_array, dense_attr
from relayc.dialects.relay.narrow import converted
from relayc.pipelines.driver.compile import compile

POWERS = "float8_e8m0fnu"


@pytest.fixture(autouse=True)
def _numpy_is_quiet():
    with np.errstate(all="ignore"):
        yield


def casts(x, dtypes):
    """What casts to these types give: compiled, and as constants are folded."""
    return zip(run_each([("cast", {"dtype": d}) for d in dtypes], x), [converted(x, d) for d in dtypes], strict=True)


@pytest.mark.parametrize("dtype", BITS)
def test_every_element_is_converted_exactly(dtype):
    x = every_value(dtype)
    wide = x.astype(np.float32)
    targets = ("float32", "float16", "bfloat16", "bool", "int8")
    for target, results in zip(targets, casts(x, targets), strict=True):
        for values in results:
            assert values.dtype == np.dtype(target)
            if target.startswith("int"):
                limits = np.iinfo(target)
                fits = np.isfinite(wide) & (wide >= limits.min) & (wide <= limits.max)
                np.testing.assert_array_equal(values[fits], np.trunc(wide[fits]).astype(target), err_msg=target)
            else:
                expected = wide != 0 if target == "bool" else wide.astype(target)
                numbers = values.astype(np.float64), expected.astype(np.float64)
                np.testing.assert_array_equal(*numbers, err_msg=target)
                np.testing.assert_array_equal(*(np.signbit(v)[~np.isnan(v)] for v in numbers), err_msg=target)


@pytest.mark.parametrize(("dtype", "saturate"), [(d, s) for d in FLOATS for s in (None, False) if s is None or BITS[d] == 8])
def test_numbers_become_the_nearest(dtype, saturate):
    single = telling_numbers(dtype)
    double = single.astype(np.float64)
    every_half = np.arange(1 << 16, dtype=np.uint16)
    samples = [
        single,
        # Through float32 the neighbours of what is halfway would become that, and be rounded the wrong way.
        np.concatenate([np.nextafter(double, np.inf), np.nextafter(double, -np.inf), [1e300, -1e300, 1e-300]]),
        every_half.view("float16"),
        every_half.view("bfloat16"),
        np.array([2**62, -(2**62), *range(-500, 500)], np.int64),
    ]
    found = run_program(lambda *values: [build("cast", v, dtype=dtype, saturate=saturate) for v in values], samples)
    for x, values in zip(samples, found, strict=True):
        expected = nearest(x.astype(np.float64), dtype, saturate is None)
        for result in (values, converted(x, dtype, saturate is None)):
            numbers = result.astype(np.float64), expected.astype(np.float64)
            np.testing.assert_array_equal(*numbers, err_msg=f"{x.dtype} to {dtype}")
            np.testing.assert_array_equal(*(np.signbit(v)[~np.isnan(v)] for v in numbers), err_msg=f"{x.dtype} to {dtype}")


def power_of_two(x, saturate, round_mode):
    """The bits of float8_e8m0fnu for a number by ONNX Cast's table, with roundings by their definition; of the sign nothing is asked."""
    fraction, exponent = np.frexp(abs(x))  # x is fraction * 2**exponent with a fraction in [0.5, 1)
    if np.isnan(x):
        return 255
    up = {"up": fraction > 0.5, "down": False, "nearest": fraction >= 0.75}[round_mode]
    rounded = np.inf if np.isinf(x) else -np.inf if x == 0 else exponent - 1 + up
    if -127 <= rounded <= 127:
        return int(rounded) + 127
    return 255 if not saturate else 254 if rounded > 0 else 0


@pytest.mark.parametrize("round_mode", ["up", "down", "nearest"])
def test_numbers_become_powers_of_two(round_mode):
    rng = np.random.default_rng(0)
    edges = [0, 1, 0x2FFFFF, 0x300000, 0x3FFFFF, 0x400000, 0x400001, 0x5FFFFF, 0x600000, 0x7FFFFF, 0x800000, 0x800001, 0xC00000]
    edges += [0x200000, 0x200001, 0x7F000000, 0x7F000001, 0x7F3FFFFF, 0x7F400000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000]
    single = np.array([*edges, *rng.integers(0, 0x7F800000, 500)], np.uint32).view(np.float32)
    single = np.concatenate([single, -single, 2.0 ** np.arange(-149, 128, dtype=np.float64)]).astype(np.float32)
    samples = [single, np.array([1 + 1e-12, 1.5 - 1e-15, 1 - 1e-16, 1e-300], np.float64), np.arange(1, 99, dtype=np.float16), np.arange(9)]
    attributes = [{"dtype": POWERS, "saturate": saturate, "round_mode": round_mode} for saturate in (None, False)]
    found = run_program(lambda *values: [build("cast", v, **a) for v in values for a in attributes], samples)
    pairs = [(x, a["saturate"] is None) for x in samples for a in attributes]
    for (x, saturate), values in zip(pairs, found, strict=True):
        expected = [power_of_two(float(v), saturate, round_mode) for v in x]
        np.testing.assert_array_equal(values.view(np.uint8), expected)
        np.testing.assert_array_equal(converted(x, POWERS, saturate, round_mode).view(np.uint8), expected)


def test_numbers_at_the_limits_of_powers_of_two():
    bits = [0, 1, 0x200000, 0x200001, 0x2FFFFF, 0x300000, 0x3FFFFF, 0x400000, 0x400001, 0x5FFFFF, 0x600000, 0x7FFFFF, 0x800000, 0x7F800000]
    x = np.array([*bits, 0x7FC00000], np.uint32).view(np.float32)
    for round_mode, saturate in itertools.product(("up", "down", "nearest"), (True, False)):
        expected = [power_of_two(float(v), saturate, round_mode) for v in x]
        np.testing.assert_array_equal(converted(x, POWERS, saturate, round_mode).view(np.uint8), expected)


def test_powers_of_two_become_numbers():
    codes = np.arange(256, dtype=np.uint8)
    found = run("cast", codes.view(POWERS), dtype="float32")
    np.testing.assert_array_equal(found, [*(2.0 ** np.arange(-127, 128)), np.nan])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_casts_to_integers_keep_the_low_bits(dtype):
    samples = [np.arange(-40, 40).astype(t) for t in ("int8", "int32", "int64", "float32", "float16")]
    samples += [np.linspace(-7.9, 7.9, 50), np.arange(256, dtype=np.uint8), every_value("int4"), every_value("float8_e4m3fn")[:64]]
    found = run_program(lambda *values: [build("cast", v, dtype=dtype) for v in values], [*samples, np.array([True, False])])
    for x, values in zip(samples, found, strict=False):
        whole = np.trunc(x.astype(np.float64)).astype(np.int64)
        expected = (whole.astype(np.uint8) & ((1 << BITS[dtype]) - 1)).view(dtype)
        assert same_bits(values, expected) and same_bits(converted(x, dtype), expected), x.dtype
    assert found[-1].astype(np.int8).tolist() == [1 if BITS[dtype] > 1 else -1, 0]


@pytest.mark.parametrize("dtype", ["float8_e5m2", "int2"])
def test_elements_are_moved_bit_by_bit(dtype):
    x, y, other = some_values(dtype, (4, 6)), some_values(dtype, (70, 61), 1), some_values(dtype, (4, 6), 2)
    one, index, flags = other[:1, 0].reshape(()), np.array([5, -1, 0]), x.view(np.uint8) % 2 == 0
    condition = np.broadcast_to(flags, x.shape)

    def body(x, other, one, index, condition, y):
        return [
            build("transpose", x, axes=(1, 0)),
            build("copy", x),
            build("concatenate", x, other, axis=1),
            build("take", x, index, axis=1, mode="fast"),  # negative from the end
            build("strided_slice", x, begin=(5,), end=(0,), strides=(-2,), axes=(1,)),
            build("nn.pad", x, one, pad_width=(1, 0, 0, 2)),
            build("broadcast_to", build("reshape", x, newshape=(4, 1, 6)), shape=(4, 3, 6)),
            build("where", condition, x, other),
            build("full", one, shape=(2, 3)),
            build("zeros", shape=(3,), dtype=dtype),
            build("transpose", y, axes=(1, 0)),
        ]

    bits, filled = x.view(np.uint8), one.view(np.uint8)
    expected = [
        x.T,
        x,
        np.concatenate([x, other], 1),
        x[:, index],
        x[:, 5:0:-2],
        np.pad(bits, ((1, 0), (0, 2)), constant_values=filled).view(dtype),
        np.broadcast_to(x[:, None], (4, 3, 6)),
        np.where(condition, x, other),
        np.full((2, 3), filled).view(dtype),
        np.zeros(3, np.uint8).view(dtype),
        y.T,
    ]
    for form in (lambda a: a, Const):
        found = run_program(body, [form(a) for a in (x, other, one, index, condition)] + [y])
        for i, (values, wanted) in enumerate(zip(found, expected, strict=True)):
            assert same_bits(values, wanted), (i, values, wanted)


@pytest.mark.parametrize("dtype", BITS)
def test_constants_stand_in_the_ir_bit_by_bit(dtype):
    x = every_value(dtype)
    with make_context(), ir.Location.unknown():
        for array in (x, *(x[i : i + 1] for i in range(len(x))), x[:0], np.tile(x, 256 // len(x) * 2)):
            read = dense_array(ir.DenseElementsAttr(ir.Attribute.parse(str(dense_attr(array)))))
            numbers = np.isnan(array.astype(np.float32))
            assert np.array_equal(np.isnan(read.astype(np.float32)), numbers)
            assert same_bits(read[~numbers], array[~numbers])


def test_casts_that_keep_every_value_are_left_out():
    def left(x, middle, target):
        mod = program(lambda v: [build("cast", build("cast", v, dtype=middle), dtype=target)], [x])
        return str(compile(mod, stop_after="relay")).count('"relay.cast"')

    x = every_value("float8_e4m3fn")
    assert left(x, "float32", "float8_e4m3fn") == 0
    assert left(x, "float16", "float64") == left(every_value("int4"), "float16", "float32") == 1
    assert left(x, "float8_e5m2", "float32") == left(np.ones(4, np.float32), "float8_e4m3fn", "float32") == 2
    assert left(every_value(POWERS), "float16", "float32") == 2  # there is no 2**127 in float16


@pytest.mark.parametrize("name", ["add", "equal", "maximum", "exp", "abs", "nn.relu", "sum", "nn.matmul", "bitwise_not", "argsort"])
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "int4"])
def test_nothing_is_computed(name, dtype):
    x = some_values(dtype, (4, 4))
    operands = (x, x) if name in ("add", "equal", "maximum", "nn.matmul") else (x,)
    with pytest.raises(RelayError, match=r"expected an? .*element type"):
        run(name, *operands)
