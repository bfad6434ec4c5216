"""Windows whose padding changes the result: depthwise convolutions of integers with a zero point that is not 0, against numpy."""

import itertools

import numpy as np
import pytest

import relayc
from relayc.dialects.mlir import func, ir, make_context
from relayc.dialects.relay import IRModule, TensorType, build
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.symbolic import parse

SIZES = [(1, 1), (2, 3), (3, 2), (7, 5), (9, 16), (5, 33), (14, 14), (2, 63), (31, 65), (4, 130)]
"""Height and width: windows that lie in the padding in part, on both sides and as a whole; around a vector and a tile."""


def convolution(layout, channels, sizes, weight, zero, options):
    """A program of one depthwise convolution of u8 by constant s8 in s32; sizes may be symbolic."""
    shape = (1, *sizes, channels) if layout == "NHWC" else (1, channels, *sizes)
    with make_context(), ir.Location.name("test"):
        mod = IRModule(ir.Module.create())
        data = TensorType(tuple(parse(d) if isinstance(d, str) else d for d in shape), "uint8").to_mlir()
        with ir.InsertionPoint(mod.module.body):
            main = func.FuncOp("main", ([data], []))
        block = main.add_entry_block()
        with ir.InsertionPoint(block):
            attrs = {"groups": channels, "data_layout": layout, "out_dtype": "int32", "pad_value": zero, **options}
            result = build("nn.conv2d", block.arguments[0], mod.constant(weight), **attrs)
            func.ReturnOp([result])
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([data], [result.type]))
    mod.verify()
    return mod


def expected(x, weight, zero, strides, padding, dilation):
    """The sums of an NCHW image."""
    top, left, bottom, right = padding
    padded = np.pad(x.astype(np.int64), [(0, 0), (0, 0), (top, bottom), (left, right)], constant_values=zero)
    reach = [(k - 1) * d + 1 for k, d in zip(weight.shape[2:], dilation, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach, (2, 3))
    windows = windows[:, :, :: strides[0], :: strides[1], :: dilation[0], :: dilation[1]]
    return np.einsum("nchwyx,cyx->nchw", windows, weight[:, 0].astype(np.int64))


WINDOWS = [
    ((3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    ((5, 5), (2, 2), (2, 2, 2, 2), (1, 1)),
    ((3, 2), (1, 2), (4, 1, 5, 3), (1, 1)),
    ((3, 3), (1, 1), (2, 2, 2, 2), (2, 2)),
    ((6, 7), (1, 1), (3, 3, 2, 3), (1, 1)),
]
TAKEN = {("NHWC", False): "window_channels", ("NHWC", True): "window_channels", ("NCHW", True): "window_columns"}
"""The strategies that have to take padding into account themselves, by the layout and whether sizes are symbolic."""


@pytest.mark.parametrize(
    "layout, channels, mcpu",
    [
        ("NHWC", 19, None),
        ("NHWC", 48, None),
        ("NCHW", 3, None),
        ("NHWC", 19, "x86-64-v3"),
        ("NCHW", 3, "x86-64-v3"),
        ("NHWC", 24, "avxvnni"),
    ],
    ids=str,
)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_zero_points_in_the_padding(layout, channels, mcpu, window):
    rng = np.random.default_rng(channels)
    taps, strides, padding, dilation = window
    weight = rng.integers(-128, 128, (channels, 1, *taps)).astype(np.int8)
    options = {"strides": strides, "padding": padding, "dilation": dilation}
    reach = [(k - 1) * d + 1 for k, d in zip(taps, dilation, strict=True)]
    sizes = [s for s in SIZES if all(n + low + high >= r for n, low, high, r in zip(s, padding[:2], padding[2:], reach, strict=True))]
    if mcpu == "avxvnni":
        target = Target("cpu", mcpu="x86-64-v3", features="+avxvnni", emulate=True)
    else:
        target = Target("cpu") if mcpu is None else Target("cpu", mcpu=mcpu)

    def module_of(sizes, zero):
        with PassContext(disabled_pass=["AlterOpLayout"]):
            module = relayc.compile(convolution(layout, channels, sizes, weight, zero, options), target=target, cache=False)
        name = TAKEN.get((layout, isinstance(sizes[0], str)))
        is_wide = isinstance(sizes[0], str) or min(sizes) >= 5
        if name is not None and is_wide and mcpu is None and target.mask_bits == 8:
            assert name in module.kernels[0].schedule
        return module

    symbolic = {zero: module_of(("h", "w"), zero) for zero in (0, 255)}
    for size, (zero, module) in itertools.chain(
        itertools.product(sizes, symbolic.items()), [(size, (3, module_of(size, 3))) for size in sizes[1::4]]
    ):
        x = rng.integers(0, 256, (1, channels, *size)).astype(np.uint8)
        given = np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if layout == "NHWC" else x
        found = np.asarray(module["main"](given))
        found = found.transpose(0, 3, 1, 2) if layout == "NHWC" else found
        np.testing.assert_array_equal(found, expected(x, weight, zero, strides, padding, dilation), str((size, zero)))


@pytest.mark.parametrize("layout, channels", [("NHWC", 24), ("NCHW", 3)])
def test_zero_points_in_the_padding_on_a_gpu(layout, channels):
    """Vectors of channels and columns; paddings on each side, wider than the input in part."""
    rng = np.random.default_rng(channels)
    taps, strides, padding, dilation = window = WINDOWS[2]
    weight = rng.integers(-128, 128, (channels, 1, *taps)).astype(np.int8)
    options = dict(zip(("strides", "padding", "dilation"), window[1:], strict=True))
    target = Target("cuda", arch="sm_80", emulate=True, num_threads=2)
    with PassContext(config={"gpu.check_races": True}, disabled_pass=["AlterOpLayout"]):
        module = relayc.compile(convolution(layout, channels, ("h", "w"), weight, 131, options), target=target, cache=False)
    assert module.kernels[0].schedule.startswith("window ")
    for size in ((1, 1), (3, 2), (7, 33)):
        x = rng.integers(0, 256, (1, channels, *size)).astype(np.uint8)
        given = np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if layout == "NHWC" else x
        found = np.asarray(module["main"](given))
        found = found.transpose(0, 3, 1, 2) if layout == "NHWC" else found
        np.testing.assert_array_equal(found, expected(x, weight, 131, strides, padding, dilation), str(size))


def test_paddings_at_one_index_of_tensors_of_two_extents():
    """Both are read at the same indices, inside of one of which there is another padding."""
    kernel = relayc.compile_kernel("""
func.func @main(%x: tensor<5xf32>, %y: tensor<7xf32>) -> tensor<11xf32> {
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  %p = tensor.pad %x low[1] high[3] {
  ^bb0(%i: index):
    tensor.yield %one : f32
  } : tensor<5xf32> to tensor<9xf32>
  %q = tensor.pad %y low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %two : f32
  } : tensor<7xf32> to tensor<9xf32>
  %e = tensor.empty() : tensor<9xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]} ins(%p, %q : tensor<9xf32>, tensor<9xf32>) outs(%e : tensor<9xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %c = arith.mulf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<9xf32>
  %z = tensor.pad %s low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %two : f32
  } : tensor<9xf32> to tensor<11xf32>
  return %z : tensor<11xf32>
}""")
    x, y = np.arange(2, 7, dtype=np.float32), np.arange(11, 18, dtype=np.float32)
    both = np.pad(x, (1, 3), constant_values=1) * np.pad(y, (1, 1), constant_values=2)
    np.testing.assert_array_equal(kernel(x, y), np.pad(both, (1, 1), constant_values=2))
