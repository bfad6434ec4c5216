"""Shape and data movement, against numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import values
from support import Const, run, run_each

import relayc

DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "int64", "uint8", "uint64", "bool")


def numbered(*shape: int) -> np.ndarray:
    """Elements that tell their position."""
    return np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape).astype("float32")


@pytest.mark.parametrize(
    ("newshape", "expected"),
    [
        ((6, 20), (6, 20)),
        ((-1,), (120,)),
        ((0, -1), (2, 60)),
        ((0, 0, 20), (2, 3, 20)),
        ((-3, -3), (6, 20)),
        ((-3, -2), (6, 4, 5)),
        ((-2, 1), (2, 3, 4, 5, 1)),
        ((0, 0, -4, 2, -1, -2), (2, 3, 2, 2, 5)),
        ((0, 0, -4, -1, 4, 5), (2, 3, 1, 4, 5)),
    ],
)
def test_reshape_codes(newshape, expected):
    x = numbered(2, 3, 4, 5)
    np.testing.assert_array_equal(run("reshape", x, newshape=newshape), x.reshape(expected))


def test_reshape_to_and_from_a_scalar():
    np.testing.assert_array_equal(run("reshape", numbered(1, 1), newshape=()), np.float32(1))
    np.testing.assert_array_equal(run("reshape", np.float32(7).reshape(()), newshape=(1, 1)), [[7]])


def test_views():
    x = numbered(2, 1, 3, 1)
    calls = [("squeeze", {}), ("squeeze", {"axis": (-1,)}), ("expand_dims", {"axis": 1, "num_newaxis": 2}), ("nn.batch_flatten", {})]
    expected = [x.squeeze(), x[..., 0], x[:, None, None], x.reshape(2, 3)]
    for found, want in zip(run_each(calls, x), expected, strict=True):
        np.testing.assert_array_equal(found, want)
        assert found.shape == want.shape


@given(shape=st.lists(st.integers(1, 9), min_size=1, max_size=5), data=st.data())
@settings(max_examples=14, deadline=None, derandomize=True)
def test_transpose_and_reverse(shape, data):
    axes, axis = data.draw(st.permutations(range(len(shape)))), data.draw(st.integers(-len(shape), len(shape) - 1))
    x = numbered(*shape)
    turned, default, flipped = run_each([("transpose", {"axes": tuple(axes)}), ("transpose", {}), ("reverse", {"axis": axis})], x)
    np.testing.assert_array_equal(turned, x.transpose(axes))
    np.testing.assert_array_equal(default, x.T)
    np.testing.assert_array_equal(flipped, np.flip(x, axis))


@pytest.mark.parametrize("shape", [(64, 48), (3, 100, 33), (2, 17, 31, 5)])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_transpose_of_larger_tensors(shape, dtype):
    x = values(shape, dtype, limit=None)
    axes = [(1, 0), (0, 2, 1), (0, 2, 3, 1)][len(shape) - 2]
    np.testing.assert_array_equal(run("transpose", x, axes=axes), x.transpose(axes))


@pytest.mark.parametrize("dtype", DTYPES)
def test_movement_of_any_dtype(dtype):
    x = values((2, 3, 4), dtype, limit=None)
    table = {
        "transpose": ({"axes": (2, 0, 1)}, x.transpose(2, 0, 1)),
        "strided_slice": ({"begin": (0, 1), "end": (2, 3), "strides": (1, 1)}, x[:, 1:3]),
        "tile": ({"reps": (2, 1, 1)}, np.tile(x, (2, 1, 1))),
        "reverse": ({"axis": 2}, x[..., ::-1]),
        "nn.mirror_pad": ({"pad_width": (0, 0, 1, 2, 0, 0)}, np.pad(x, ((0, 0), (1, 2), (0, 0)), mode="symmetric")),
    }
    for found, (_, want) in zip(run_each([(n, a) for n, (a, _) in table.items()], x), table.values(), strict=True):
        assert found.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(run("concatenate", x, x, axis=1), np.concatenate([x, x], 1))


@st.composite
def slicings(draw):
    """A shape and, for some of its axes, begin, end and stride, in and out of range."""
    shape = draw(st.lists(st.integers(1, 8), min_size=1, max_size=3))
    axes = draw(st.lists(st.integers(0, len(shape) - 1), unique=True, min_size=1))
    slices = [draw(st.slices(shape[a])) for a in axes]
    return shape, axes, slices


@given(case=slicings())
@settings(max_examples=24, deadline=None, derandomize=True)
def test_strided_slice(case):
    shape, axes, slices = case
    x = numbered(*shape)
    whole = [slice(None)] * x.ndim
    for a, s in zip(axes, slices, strict=True):
        whole[a] = s
    expected = x[tuple(whole)]
    if expected.size == 0:
        return
    far = 2**62  # stands for an absent bound, as exporters write it
    strides = [1 if s.step is None else s.step for s in slices]
    begin = [(0 if step > 0 else far) if s.start is None else s.start for s, step in zip(slices, strides, strict=True)]
    end = [(far if step > 0 else -far) if s.stop is None else s.stop for s, step in zip(slices, strides, strict=True)]
    np.testing.assert_array_equal(run("strided_slice", x, begin=begin, end=end, strides=strides, axes=axes), expected)


def test_strided_slice_by_sizes():
    x = numbered(5, 6)
    np.testing.assert_array_equal(run("strided_slice", x, begin=(1, -3), end=(2, -1), slice_mode="size"), x[1:3, -3:])
    np.testing.assert_array_equal(run("strided_slice", x, begin=(-2,), end=(2,), slice_mode="size"), x[-2:])


@pytest.mark.parametrize(("sections", "axis"), [(3, 0), ((1, 4), 0), ((2,), -1), ((1, 2, 3), 1), (1, 0)])
def test_split(sections, axis):
    x = numbered(6, 4)
    found = run("split", x, indices_or_sections=sections, axis=axis)
    expected = np.split(x, sections, axis)
    for part, want in zip(found if isinstance(found, list) else [found], expected, strict=True):
        np.testing.assert_array_equal(part, want)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_concatenate_and_stack(axis):
    pieces = [numbered(*(n if i == axis % 3 else 4 for i in range(3))) + 100 * n for n in (1, 5, 2)]
    np.testing.assert_array_equal(run("concatenate", *pieces, axis=axis), np.concatenate(pieces, axis))
    same = [numbered(4, 3, 2) + i for i in range(3)]
    np.testing.assert_array_equal(run("stack", *same, axis=axis), np.stack(same, axis))


def test_concatenate_of_one_and_of_the_same_tensor():
    x = numbered(2, 3)
    np.testing.assert_array_equal(run("concatenate", x, axis=0), x)


@pytest.mark.parametrize("shape", [(2, 3, 4), (5, 2, 3, 4), (2, 3, 4)])
@pytest.mark.parametrize("source", [(1, 4), (2, 1, 1), (4,), ()])
def test_broadcast_to(source, shape):
    x = numbered(*source)
    np.testing.assert_array_equal(run("broadcast_to", x, shape=shape), np.broadcast_to(x, shape))


@pytest.mark.parametrize("reps", [(), (2,), (1, 3), (2, 3), (2, 1, 2), (1, 1)])
def test_tile(reps):
    x = numbered(3, 5)
    np.testing.assert_array_equal(run("tile", x, reps=reps), np.tile(x, reps))


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_repeat(axis):
    x = numbered(3, 5)
    np.testing.assert_array_equal(run("repeat", x, repeats=3, axis=axis), np.repeat(x, 3, axis))


PAD = (1, 2, 0, 3, 2, 0)
PAIRS = ((1, 2), (0, 3), (2, 0))


@pytest.mark.parametrize("wrap", [Const, lambda x: x])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "float16"])
def test_constant_pad(wrap, dtype):
    x, value = values((3, 4, 5), dtype, limit=None), np.array(2.5).astype(dtype)
    np.testing.assert_array_equal(run("nn.pad", x, wrap(value), pad_width=PAD), np.pad(x, PAIRS, constant_values=value))


@pytest.mark.parametrize("least", [0, 1])
def test_padding_by_a_number_of_run_time_reads_no_element_of_data_that_may_be_empty(least):
    program = relayc.Program()
    made = {"x": relayc.TensorType(("n", 3), "float32"), "number": relayc.TensorType((), "float32")}
    program.function(lambda x, number: program.op.nn.pad(x, number, pad_width=(1, 2, 0, 1)), name="main", **made)
    options = {"dims": {"n": (least, 9)}}
    assert ("tensor.pad" in str(relayc.compile(program, stop_after="te", **options).module)) == (least == 0)
    main = relayc.compile(program, **options)["main"]
    for n in (least, 3):
        x = numbered(n, 3)
        np.testing.assert_array_equal(main(x, np.float32(7)), np.pad(x, ((1, 2), (0, 1)), constant_values=7))


@pytest.mark.parametrize("mode", ["edge", "reflect"])
def test_pad_modes(mode):
    x = numbered(3, 4, 5)
    found = run("nn.pad", x, Const(np.float32(0)), pad_width=PAD, pad_mode=mode)
    np.testing.assert_array_equal(found, np.pad(x, PAIRS, mode=mode))


@pytest.mark.parametrize(("mode", "name"), [("SYMMETRIC", "symmetric"), ("REFLECT", "reflect")])
def test_mirror_pad(mode, name):
    x = numbered(3, 4, 5)
    np.testing.assert_array_equal(run("nn.mirror_pad", x, mode=mode, pad_width=PAD), np.pad(x, PAIRS, mode=name))


@pytest.mark.parametrize("k", [-5, -1, 0, 1, 2, 9])
def test_trilu(k):
    x = numbered(2, 4, 5)
    upper, lower = run_each([("trilu", {"upper": True}), ("trilu", {"upper": False})], x, np.array(k))
    np.testing.assert_array_equal(upper, np.triu(x, k))
    np.testing.assert_array_equal(lower, np.tril(x, k))


BLOCKED = numbered(2, 3, 4, 5, 8)  # NCHW8c
LAYOUTS = {
    "NCHW8c": BLOCKED,
    "NCHW": BLOCKED.transpose(0, 1, 4, 2, 3).reshape(2, 24, 4, 5),
    "NHWC": BLOCKED.transpose(0, 2, 3, 1, 4).reshape(2, 4, 5, 24),
    "NCHW4c": BLOCKED.reshape(2, 3, 4, 5, 2, 4).transpose(0, 1, 4, 2, 3, 5).reshape(2, 6, 4, 5, 4),
}


@pytest.mark.parametrize("source", LAYOUTS)
def test_layout_transform(source):
    x = np.ascontiguousarray(LAYOUTS[source])
    calls = [("layout_transform", {"src_layout": source, "dst_layout": target}) for target in LAYOUTS]
    for found, target in zip(run_each(calls, x), LAYOUTS, strict=True):
        np.testing.assert_array_equal(found, LAYOUTS[target], err_msg=target)


def test_layout_transform_of_weights():
    x = numbered(32, 8, 3, 3)
    found = run("layout_transform", x, src_layout="OIHW", dst_layout="OIHW4i16o")
    np.testing.assert_array_equal(found, x.reshape(2, 16, 2, 4, 3, 3).transpose(0, 2, 4, 5, 3, 1))


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize("block", [1, 2, 3])
def test_depth_to_space(mode, block):
    x = numbered(2, 5 * block * block, 3, 4)
    order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    split = (2, block, block, 5, 3, 4) if mode == "DCR" else (2, 5, block, block, 3, 4)
    expected = x.reshape(split).transpose(order).reshape(2, 5, 3 * block, 4 * block)
    np.testing.assert_array_equal(run("nn.depth_to_space", x, block_size=block, mode=mode), expected)
    channels_last = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    found = run("nn.depth_to_space", channels_last, block_size=block, mode=mode, layout="NHWC")
    np.testing.assert_array_equal(found, expected.transpose(0, 2, 3, 1))


@pytest.mark.parametrize("block", [1, 2])
def test_space_to_depth_is_the_inverse(block):
    x = numbered(2, 12, 4, 6)
    spread = run("nn.depth_to_space", x, block_size=block)
    np.testing.assert_array_equal(run("nn.space_to_depth", spread, block_size=block), x)
    last = np.ascontiguousarray(spread.transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(run("nn.space_to_depth", last, block_size=block, layout="NHWC"), x.transpose(0, 2, 3, 1))


def test_empty_tensors():
    x, full = np.zeros((2, 0, 3), np.float32), numbered(2, 4, 3)
    np.testing.assert_array_equal(run("concatenate", x, full, axis=1), full)
    np.testing.assert_array_equal(run("nn.pad", x, Const(np.float32(3)), pad_width=(0, 0, 1, 1, 0, 0)), np.full((2, 2, 3), 3))
    assert run("transpose", x, axes=(2, 0, 1)).shape == (3, 2, 0)
    for begin, end, stride in [(4, 4, 1), (9, 12, 1), (0, 0, -1), (3, 1, 1)]:
        assert run("strided_slice", full, begin=(begin,), end=(end,), axes=(1,), strides=(stride,)).shape == (2, 0, 3)
    assert [part.shape[1] for part in run("split", full, indices_or_sections=(0, 4), axis=1)] == [0, 4, 0]
