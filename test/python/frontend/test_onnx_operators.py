"""Branches of ONNX converters against ONNX Runtime, or the onnx package's reference; the imported modules are interpreted, not compiled."""

import numpy as np
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator
from onnx_cases import arrays, parsed

from relayc.frontend.onnx import from_onnx
from relayc.pipelines import find_pass
from relayc.pipelines.evaluate.relay import RelayInterpreter

SCALES = "float xs = {0.04}, uint8 xz = {120}, float ys = {0.05}, uint8 yz = {7}"


def _numbers(count):
    """So many bytes, of which no two neighbours are alike, as the text of an initializer."""
    return ", ".join(str(i * 37 % 256) for i in range(count))


TREE = (
    'nodes_nodeids = [0, 1, 2], nodes_treeids = [0, 0, 0], nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_featureids = [1, 0, 0], '
    "nodes_values = [1.0, 0.0, 0.0], nodes_truenodeids = [1, 0, 0], nodes_falsenodeids = [2, 0, 0]"
)


def _long_size(result):
    """Nodes of x whose result has a size that is so long an expression of x's that it gets a name; then an operator of that."""
    step = "p{0} = MaxPool<kernel_shape = [1], strides = [3]>(d{0}) c{0} = Concat<axis = 2>(p{0}, p{0}) d{1} = Pad(c{0}, five)"
    return " ".join(["d0 = Identity(x)", *(step.format(i, i + 1) for i in range(12)), f"{result}(d12)"])


GROUPS = (
    "float[1, 1, 64] x, float[1, 1, 32] w, float[1, 2, 6, 16] p, int32[1] seen = {6}, int32 total = {7}, float[4] sink, float[16] v, "
    "float[16] u"
)

# Name: operator set, inputs, nodes that make `y`; arrays by name where random floats would not do.
CASES = {
    "unpooled": (18, "float[2, 1, 2, 3] x, int64[2, 1, 2, 3] i", "y = MaxUnpool<kernel_shape = [2, 3], strides = [2, 3]>(x, i)"),
    "unpooled to a size": (
        18,
        "float[2, 1, 3] x, int64[2, 1, 3] i, int64[3] s = {2, 1, 9}",
        "y = MaxUnpool<kernel_shape = [2], strides = [2], pads = [0, 0]>(x, i, s)",
    ),
    **{
        f"transposed convolution of {size} {mode}": (
            18,
            "float[1, 2, 4] x, float[2, 3, 3] w",
            f'y = ConvTranspose<output_shape = [{size}], strides = [2], auto_pad = "{mode}">(x, w)',
        )
        for size in (8, 9)
        for mode in ("SAME_UPPER", "SAME_LOWER")
    },
    "transposed convolution of two sizes": (
        18,
        "float[1, 2, 4, 3] x, float[2, 3, 3, 2] w",
        "y = ConvTranspose<output_shape = [10, 6], strides = [2, 2], output_padding = [1, 0]>(x, w)",
    ),
    "floats to the power of integers": (18, "float[n] x, int64[n] z", "y = Pow(x, z)"),
    "integers to the power of floats": (18, "int32[n] i, float[n] x", "y = Pow(i, x)"),
    "integers to the power of integers": (18, "int32[n] i, int64[n] z", "y = Pow(i, z)"),
    **{
        f"infinite {negative} {positive}": (
            20,
            "float[6] special",
            f"y = IsInf<detect_negative = {negative}, detect_positive = {positive}>(special)",
        )
        for negative in (0, 1)
        for positive in (0, 1)
    },
    "infinite of rank 0": (20, "float x", "y = IsInf<detect_negative = 0, detect_positive = 0>(x)"),
    **{
        f"centre of {size} and {other}": (18, f"float[4, 5] x, int64[2] s = {{{size}, {other}}}", "y = CenterCropPad(x, s)")
        for size, other in ((1, 8), (7, 2), (4, 5))
    },
    "blocks of channels": (28, "float[2, 3, 4, 6] x", 'y = SpaceToDepth<blocksize = 2, mode = "CRD">(x)'),
    "centre of an axis": (18, "float[n, 5] x, int64[1] s = {4}", "y = CenterCropPad<axes = [-2]>(x, s)"),
    "compressed": (18, "float[4, 3] x, bool[3] c = {0, 1, 0}", "y = Compress<axis = 0>(x, c)"),
    "compressed to nothing": (18, "float[4, 3] x, bool[2] c = {0, 0}", "y = Compress<axis = 1>(x, c)"),
    "compressed to nothing, of all": (18, "float[4, 3] x, bool[2] c = {0, 0}", "y = Compress(x, c)"),
    "compressed by places after the end": (18, "float[3] x, bool[5] d = {1, 0, 0, 0, 1}", "y = Compress(x, d)"),
    "compressed by data": (18, "float[4, m] x, bool[7] b", "y = Compress(x, b)"),
    "scattered": (10, "float[3, 3] x, int64[1, 2] j = {0, 2}, float[1, 2] u", "y = Scatter<axis = 1>(x, j, u)"),
    "a filter bank": (
        17,
        "int64 bins = {4}, int64 length = {16}, int64 rate = {8000}, float low = {100}, float[1] high",
        "h = Squeeze(high)\n y = MelWeightMatrix(bins, length, rate, low, h)",
    ),
    "largest of all": (18, "float[2, 3, 4] x", "y = GlobalMaxPool(x)"),
    "norms of all": (18, "float[2, 3, 4, 5] x", "y = GlobalLpPool<p = 3>(x)"),
    "norms of windows that hang over": (
        18,
        "float[1, 2, 6] x",
        "y = LpPool<kernel_shape = [3], strides = [2], ceil_mode = 1, p = 2>(x)",
    ),
    "norms of windows apart that hang over": (
        18,
        "float[1, 2, 6, 8] x",
        "y = LpPool<kernel_shape = [3, 2], strides = [2, 3], dilations = [2, 3], pads = [1, 0, 0, 1], ceil_mode = 1, p = 1>(x)",
    ),
    "largest of windows that hang over": (
        18,
        "float[1, 2, 6, 7] x",
        "y = MaxPool<kernel_shape = [3, 2], strides = [2, 3], dilations = [1, 2], pads = [1, 0, 1, 1], ceil_mode = 1>(x)",
    ),
    "means of windows that hang over": (
        18,
        "float[1, 2, 6] x",
        "y = AveragePool<kernel_shape = [3], strides = [2], ceil_mode = 1, pads = [1, 0], count_include_pad = 1>(x)",
    ),
    "places of the largest": (18, "float[1, 2, 6, 5] x", "z, y = MaxPool<kernel_shape = [3, 2], strides = [2, 1], pads = [1, 0, 0, 1]>(x)"),
    "columns of the largest": (18, "float[1, 2, 6, 5] x", "z, y = MaxPool<kernel_shape = [3, 2], storage_order = 1>(x)"),
    "regions": (18, "float[2, 3, 6, 7] x, float[2, 5] r", "y = MaxRoiPool<pooled_shape = [2, 3], spatial_scale = 0.5>(x, r)"),
    "aligned regions": (
        18,
        "float[2, 3, 6, 7] x, float[2, 4] q, int64[2] b = {1, 0}",
        "y = RoiAlign<output_height = 2, output_width = 3>(x, q, b)",
    ),
    "aligned regions of an old operator set": (
        10,
        "float[2, 3, 6, 7] x, float[2, 4] q, int64[2] b = {1, 0}",
        "y = RoiAlign<output_height = 2, output_width = 3, sampling_ratio = 2>(x, q, b)",
    ),
    "the largest of no axes": (18, "float[2, 3] x, int64[0] a = {}", "y = ReduceMax<noop_with_empty_axes = 1>(x, a)"),
    "means of dynamic axes": (18, "float[n, m] x", "y = ReduceMean(x)"),
    "a range of halves": (20, "float16 h", "o = Constant<value_float = 7.0>()\n e = CastLike(o, h)\n y = Range(h, e, h)"),
    "a range of known halves": (
        20,
        "float16[5] half",
        "a = Constant<value_float = 0.5>()\n c = Cast<to = 10>(a)\n b = Constant<value_float = 2.75>()\n e = Cast<to = 10>(b)\n"
        "r = Range(c, e, c)\n y = Add(r, half)",
    ),
    "layers": (17, "float[n, 3, 4] x, float[3, 4] w, float[4] v", "y = LayerNormalization<axis = 1>(x, w, v)"),
    "a batch of numbers": (14, "float[n] x, float[1] w, float[1] v, float[1] p, float[1] q", "y = BatchNormalization(x, w, v, p, q)"),
    "wrapped": (19, "float[2, 5] x, int64[4] p = {0, 7, 1, 2}", 'y = Pad<mode = "wrap">(x, p)'),
    "cropped": (19, "float[2, 5] x, int64[4] p = {1, -2, -1, 1}", "y = Pad(x, p)"),
    "cropped beside copies of the edge": (19, "float[4, 5] x, int64[4] p = {2, -1, -1, 2}", 'y = Pad<mode = "edge">(x, p)'),
    "padded along dynamic axes": (18, "float[2, 5] x, int64[2] k, int64[1] axis", "y = Pad(x, k, , axis)"),
    "unsqueezed along dynamic axes": (18, "float x, int64[2] axes", "y = Unsqueeze(x, axes)"),
    "all along dynamic axes": (18, "float[2, 3] x, int64[2] axes", "y = ReduceSum<keepdims = 0>(x, axes)"),
    "a flag of labels": (
        18,
        "int64[n] z",
        "y = ai.onnx.ml.LabelEncoder<keys_int64s = [1, 2, 1], values_floats = [0.5, 1.5, 7.0], default_float = 9.0>(z)",
    ),
    "features side by side": (
        18,
        "float[2, 3, 2] x, float[2] w, float[2, 2] v, int64[1] o = {1}",
        "u = Unsqueeze(w, o)\n y = ai.onnx.ml.FeatureVectorizer<inputdimensions = [7, 1, 1]>(x, u, v)",
    ),
    "the condition in a loop that none ends": (
        18,
        "int64 count, float[2] x",
        "t = Constant<value_int = 1>()\n z, y = Loop<body = b (int64 i, bool go, float[2] v) => (bool on, float[2] w, bool seen) "
        "{ on = Identity(go) w = Neg(v) seen = Identity(go) }>(count, , x)",
    ),
    **{
        f"einsum {equation}": (18, inputs, f'y = Einsum<equation = "{equation}">({arguments})')
        for equation, inputs, arguments in (
            ("ij,jk", "float[2, 3] x, float[3, 4] w", "x, w"),
            ("kj,ji", "float[2, 3] x, float[3, 4] w", "x, w"),
            ("ij,jk->ki", "float[n, 3] x, float[3, m] w", "x, w"),
            ("ij->", "float[2, 3] x", "x"),
            ("ii", "float[3, 3] x", "x"),
            ("iji->ji", "float[3, 2, 3] x", "x"),
            ("iii->i", "float[3, 3, 3] x", "x"),
            ("ii->i", "float[n, n] x", "x"),
            ("...ij,...jk->...ik", "float[4, 5, 2, 3] x, float[4, 1, 3, 2] w", "x, w"),
            ("...j", "float[2, 3] x", "x"),
            ("...ij,jk->...ik", "float[4, 5, 2, 3] x, float[3, 2] w", "x, w"),
            ("i...,i...->...", "float[2, 3] x, float[2, 3] w", "x, w"),
            ("ij,ij->ij", "float[2, 3] x, float[2, 3] w", "x, w"),
            ("i,j->ji", "float[2] x, float[3] w", "x, w"),
            ("ij,k->i", "float[2, 3] x, float[4] w", "x, w"),
            ("bij,bjk,k->bi", "float[2, 3, 4] x, float[2, 4, 3] w, float[3] v", "x, w, v"),
            ("ab,bc,cd->da", "float[2, 3] x, float[3, 4] w, float[4, 5] v", "x, w, v"),
            (" i j , j k -> i k ", "float[2, 3] x, float[3, 4] w", "x, w"),
        )
    },
    **{
        f"windows of {kernel} by {stride} {mode} {sizes}": (
            18,
            f"float[1, 1, {sizes}] x, float[1, 1, {kernel}] w",
            f'y = Conv<auto_pad = "{mode}", strides = [{stride}]>(x, w)',
        )
        for kernel, stride in ((1, 2), (2, 2), (2, 3), (3, 2), (4, 1))
        for mode in ("SAME_UPPER", "SAME_LOWER")
        for sizes in ("7", "10", "n")
    },
    **{
        f"{name} of {dtype} along {axes} {keep}": (13, f"{dtype}[2, 3, 4] j", f"y = {name}<axes = {axes}, keepdims = {keep}>(j)")
        for name, dtype in (
            ("ReduceMean", "int32"),
            ("ReduceL2", "int32"),
            ("ReduceLogSum", "float"),
            ("ReduceLogSumExp", "float"),
            ("ReduceMin", "int8"),
            ("ReduceSumSquare", "int32"),
            ("ReduceL1", "int32"),
        )
        for axes, keep in (([0, -1], 1), ([1], 0))
    },
    "a logarithm of a sum of infinities": (13, "float[3, 6] infinite", "y = ReduceLogSumExp<axes = [1]>(infinite)"),
    **{
        f"fused with {activation} {parameters}": (
            18,
            "float[1, 2, 6] x, float[3, 2, 3] w, float[3] v",
            f'y = com.microsoft.FusedConv<activation = "{activation}", activation_params = {parameters}>(x, w, v)',
        )
        for activation, parameters in (
            ("LeakyRelu", [0.3]),
            ("HardSigmoid", [0.4, 0.3]),
            ("Clip", [0.5, 1.5]),
            ("Tanh", [0.0]),
            ("Sigmoid", [0.0]),
        )
    },
    "a product of a transposed one": (
        18,
        "float[3, 2] x, float[3, 4] w",
        "y = com.microsoft.TransposeMatMul<transA = 1, alpha = 0.5>(x, w)",
    ),
    "largest of the last channels": (
        18,
        "int8[1, 6, 5, 2] j",
        "y = com.microsoft.NhwcMaxPool<kernel_shape = [3, 2], strides = [2, 1], pads = [1, 0, 0, 1]>(j)",
    ),
    **{
        f"experts {attributes}": (
            18,
            "float[4, 6] x, float[4, 3] router, float[3, 8, 6] first, float[3, 8] bias, "
            f"float[3, 6, {4 if 'swiglu' in attributes else 8}] second, float[3, 6] last",
            f"y = com.microsoft.MoE<{attributes}>(x, router, first, bias, second, last)",
        )
        for attributes in (
            'activation_type = "identity", k = 2',
            "k = 3",
            'activation_type = "gelu", k = 1',
            'activation_type = "silu", k = 2, normalize_routing_weights = 1',
            'activation_type = "swiglu", k = 2, swiglu_fusion = 1, activation_alpha = 1.5, activation_beta = 1.0, swiglu_limit = 1.0',
            'activation_type = "swiglu", k = 2, swiglu_fusion = 1, swiglu_limit_after_activation = 0',
        )
    },
    "sums of a logarithm": (13, "float[2, 3] x", "y = ReduceLogSumExp<axes = [-1]>(x)"),
    **{
        f"resized by {name}": (18, inputs, f"y = Resize<{attributes}>({arguments})")
        for name, inputs, attributes, arguments in (
            ("factors", "float[1, 1, 4, 5] x, float[4] t = {1, 1, 1.5, 0.6}", 'mode = "linear"', "x, , t"),
            ("factors of the program", "float[1, 1, 4, 5] x, float[4] f", 'mode = "linear"', "x, , f"),
            (
                "cubic factors of the program",
                "float[1, 1, 4, 5] x, float[4] f",
                'mode = "cubic", exclude_outside = 1, cubic_coeff_a = -0.5',
                "x, , f",
            ),
            (
                "nearest factors of the program",
                "float[1, 1, 4, 5] x, float[4] f",
                'nearest_mode = "ceil", coordinate_transformation_mode = "asymmetric"',
                "x, , f",
            ),
            (
                "a crop",
                "float[1, 1, 4, 5] x, float[8] roi = {0, 0, 0.25, 0.25, 1, 1, 0.75, 1.25}, float[4] t = {1, 1, 1.5, 0.75}",
                'mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize", extrapolation_value = 5.0',
                "x, roi, t",
            ),
            (
                "a crop of the program",
                "float[1, 1, 4, 5] x, float[8] crop, float[4] t = {1, 1, 1.5, 0.75}",
                'mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize", extrapolation_value = 5.0',
                "x, crop, t",
            ),
            (
                "a crop to sizes",
                "float[1, 1, 4, 5] x, float[8] crop, int64[4] s = {1, 1, 6, 4}",
                'mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize"',
                "x, crop, , s",
            ),
            (
                "sizes that keep the ratio",
                "float[1, 1, 4, 5] x, int64[2] s = {7, 6}",
                'axes = [2, 3], keep_aspect_ratio_policy = "not_larger"',
                "x, , , s",
            ),
            (
                "sizes that keep the ratio and are not smaller",
                "float[1, 1, 4, 5] x, int64[2] s = {7, 6}",
                'axes = [2, 3], keep_aspect_ratio_policy = "not_smaller"',
                "x, , , s",
            ),
            (
                "dynamic sizes that keep the ratio",
                "float[1, 1, n, 4] x, int64[2] s = {7, 6}",
                'axes = [2, 3], keep_aspect_ratio_policy = "not_larger"',
                "x, , , s",
            ),
            (
                "dynamic sizes that keep the ratio and are not smaller",
                "float[1, 1, n, 4] x, int64[2] s = {7, 6}",
                'axes = [2, 3], keep_aspect_ratio_policy = "not_smaller"',
                "x, , , s",
            ),
            (
                "aligned corners of the program",
                "float[1, 1, 4, 5] x, float[4] f",
                'mode = "linear", coordinate_transformation_mode = "align_corners"',
                "x, , f",
            ),
            (
                "half pixels of the program",
                "float[1, 1, 4, 5] x, float[4] f",
                'mode = "linear", coordinate_transformation_mode = "pytorch_half_pixel"',
                "x, , f",
            ),
        )
    },
    "a crop of four axes": (
        18,
        "float[3, 4, 5, 4] x, float[8] roi = {0, 0.25, 0, 0.5, 0.5, 1, 0.75, 1}, int64[4] s = {2, 3, 4, 6}",
        'y = Resize<mode = "nearest", coordinate_transformation_mode = "tf_crop_and_resize">(x, roi, , s)',
    ),
    "repeated": (9, "float[1, 1, 3, 4] x, float[4] g", "y = Upsample(x, g)"),
    "interpolated": (7, "float[1, 1, 3, 4] x", 'y = Upsample<mode = "linear", scales = [1.0, 1.0, 2.0, 1.5]>(x)'),
    "resized in operator set 10": (10, "float[1, 1, 3, 7] x, float[4] f", "y = Resize(x, f)"),
    "resized in operator set 10 by known factors": (10, "float[1, 1, 3, 7] x, float[4] t = {1, 1, 2.5, 0.6}", "y = Resize(x, t)"),
    "interpolated in operator set 10": (10, "float[1, 1, 3, 7] x, float[4] t = {1, 1, 2.5, 0.6}", 'y = Resize<mode = "linear">(x, t)'),
    "halves of a slice": (9, "float[n, 4] x", "y = Slice<starts = [1, -3], ends = [9, -1], axes = [0, 1]>(x)"),
    "largest by size": (9, "float[n, 4] x", "z, y = TopK<k = 2, axis = 1>(x)"),
    "largest of one": (18, "float[n, 4] x, int64[1] one = {1}", "y, z = TopK<axis = 1>(x, one)"),
    "weights of one input in a block": (
        18,
        f"float[3, 1] x, uint8[1, 1, 8] packed = {{{_numbers(8)}}}, float[1] scale = {{0.5}}",
        "y = com.microsoft.MatMulNBits<K = 1, N = 1, bits = 4, block_size = 16>(x, packed, scale)",
    ),
    **{
        f"rows of a table {zeros}": (
            18,
            f"uint8[3, 16] t = {{{_numbers(48)}}}, int64[2] rows = {{2, 0}}, float[3, 2] scale = {{1.0, 2.0, 0.5, 3.0, 0.25, 1.5}}, "
            "uint8[3, 1] zero = {33, 2, 240}, float[32] x",
            f"r = com.microsoft.GatherBlockQuantized<bits = 4, block_size = 16>(t, rows, scale{zeros})\n y = Mul(r, x)",
        )
        for zeros in ("", ", zero")
    },
    "a bias before a gate": (18, "float[2, 4] x, float[4] v", "y = com.microsoft.BiasGelu(x, v)"),
    **{
        f"a convolution {attributes}": (18, "float[1, 2, 6] x, float[3, 2, 3] w", f"y = {name}<{attributes}>(x, w)")
        for name, attributes in (
            ("com.microsoft.FusedConv", "strides = [2]"),
            ("Conv", 'auto_pad = "VALID", strides = [2]'),
        )
    },
    **{
        f"transposed convolution of windows {mode}": (
            18,
            "float[1, 2, 4] x, float[2, 3, 4] w",
            f'y = ConvTranspose<strides = [3], auto_pad = "{mode}">(x, w)',
        )
        for mode in ("SAME_UPPER", "SAME_LOWER", "VALID")
    },
    **{
        f"self-attention of keys {shape}": (
            18,
            f"float[2, 3, 4] x, float[4, 12] own, float[12] v, {shape} = {{{mask}}}",
            "y = com.microsoft.Attention<num_heads = 2>(x, own, v, mask)",
        )
        for shape, mask in (
            ("int32[2, 3, 3] mask", "1, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0"),
            ("int32[4] mask", "2, 3, 1, 0"),
            ("int32[2] mask", "2, 3"),
            ("int32[2, 3] mask", "1, 0, 1, 0, 1, 1"),
        )
    },
    **{
        f"attention, {name}": (23, inputs, nodes)
        for name, inputs, nodes in (
            ("scores too", "float[1, 2, 3, 4] x", "z, a, b, y = Attention(x, x, x)"),
            ("of a symbolic depth", "float[1, 2, 3, n] x", "y = Attention(x, x, x)"),
            ("softmax in float64", "float[1, 2, 3, 4] x", "y = Attention<softmax_precision = 11>(x, x, x)"),
        )
    },
    **{
        f"attention {count} to the {side}": (25, "float[1, 2, 4, 4] x", f"y = Attention<{side}_window_size = {count}>(x, x, x)")
        for side, count in (("right", 0), ("right", 1), ("left", 0))
    },
    **{
        f"{name} of quantised numbers": (18, f"uint8[2, 5] u, {SCALES}", f"y = com.microsoft.{name}<{attributes}>(u, xs, xz, ys, yz)")
        for name, attributes in (
            ("QLinearLeakyRelu", "alpha = 0.2"),
            ("QLinearSoftmax", "axis = -1, opset = 13"),
        )
    },
    "a product of quantised matrices in floats": (
        18,
        f"uint8[2, 3] u, uint8[3, 4] w8, {SCALES}",
        "y = com.microsoft.QGemm<alpha = 0.5>(u, xs, xz, w8, ys, yz)",
    ),
    "a product of integers of a zero point for each column": (
        18,
        "uint8[2, 3] u, uint8[3, 4] w8, uint8[1] a = {3}, uint8[1, 4] b = {5, 0, 128, 255}",
        "i = MatMulInteger(u, w8, a, b)\n y = Cast<to = 1>(i)",
    ),
    "a convolution of integers": (10, "uint8[1, 2, 6] u, uint8[3, 2, 3] w8, uint8 xz = {3}", "y = ConvInteger<pads = [1, 0]>(u, w8, xz)"),
    "a range of sizes in floats": (
        18,
        "float[n, 2] x",
        "s = Shape<end = 1>(x)\n f = Cast<to = 1>(s)\n e = Squeeze(f)\n o = Constant<value_float = 0.5>()\n y = Range(o, e, o)",
    ),
    "a product and a share of a sum": (18, "float[2, 3] x, float[3, 4] w, float[4] v", "y = Gemm<alpha = 0.5, beta = 0.25>(x, w, v)"),
    "a slice backwards to a size": (
        18,
        "float[n] x, float[m] w, int64[1] b = {9}, int64[1] a = {0}, int64[1] back = {-1}",
        "s = Shape(w)\n t = Slice(x, b, s, a, back)\n y = Neg(t)",
    ),
    "a slice of a shape in steps": (
        18,
        "float[n, m, 3] x, int64[1] b = {0}, int64[1] e = {3}, int64[1] two = {2}",
        "s = Shape(x)\n t = Slice(s, b, e, , two)\n o = ConstantOfShape(t)\n r = ReduceSum(x)\n y = Add(o, r)",
    ),
    "repeated by known factors": (9, "float[1, 1, 3, 4] x, float[4] t = {1, 1, 2, 1.5}", "y = Upsample(x, t)"),
    "resized to itself": (18, "float[1, 1, 3, 4] x, float[4] t = {1, 1, 1, 1}", "r = Resize(x, , t)\n y = Neg(r)"),
    "symmetric factors of the program": (
        19,
        "float[1, 1, 4, 5] x, float[4] f",
        'y = Resize<mode = "linear", coordinate_transformation_mode = "half_pixel_symmetric">(x, , f)',
    ),
    "antialias by a quotient of sizes": (
        18,
        "float[1, 1, n, 4] x, float[m] w, float[2] ones = {1, 1}, float[1] half = {0.5}",
        "s = Shape<start = 2, end = 3>(x) t = Shape(w) p = Cast<to = 1>(s) q = Cast<to = 1>(t) r = Div(q, p)\n"
        'f = Concat<axis = 0>(ones, r, half) y = Resize<mode = "linear", antialias = 1>(x, , f)',
    ),
    "padded by the edge": (18, "float[n, 4] x, int64[4] p = {2, 0, 1, 3}", 'y = Pad<mode = "edge">(x, p)'),
    "no logarithm of a sum": (13, "float[3, 0] x", "y = ReduceLogSumExp<axes = [1]>(x)"),
    "a loop of no trips": (
        18,
        "float[2] x, int64 none = {0}",
        "y = Loop<body = b (int64 i, bool go, float[2] v) => (bool on, float[2] w) { on = Identity(go) w = Neg(v) }>(none, , x)",
    ),
    **{
        f"a loop that the constant {value} may end": (
            18,
            "float[2] x, int64 count",
            "y = Loop<body = b (int64 i, bool go, float[2] v) => (bool on, float[2] w) "
            f"{{ on = Constant<value = bool {{{value}}}>() w = Neg(v) }}>(count, , x)",
        )
        for value in (0, 1)
    },
    **{
        f"rows of two late sizes {operator}": (
            18,
            "float[2, 3] x, bool[2] row, bool[3] column, int64 count",
            "z = Loop<body = b (int64 i, bool go) => (bool on, float[k, l] part) "
            "{ on = Identity(go) a = Compress<axis = 0>(x, row) part = Compress<axis = 1>(a, column) }>(count, , )\n "
            f"y = {operator}(z)",
        )
        for operator in ("Identity", "Shape")
    },
    **{
        f"recurrent of {name}": (
            14,
            f"float[3, 2, 4] x, float[1, {3 * gates}, 4] own, float[1, {3 * gates}, 3] again, float[1, {6 * gates}] v",
            f"y = {operator}<hidden_size = 3, {attributes}>(x, own, again, v)",
        )
        for name, operator, gates, attributes in (
            ("a bias apart", "GRU", 3, "linear_before_reset = 1"),
            ("a threshold", "RNN", 1, 'activations = ["ThresholdedRelu"], activation_alpha = [0.5]'),
        )
    },
    "groups of channels": (18, "float[2, 6, 3] x, float[3] w, float[3] v", "y = GroupNormalization<num_groups = 3>(x, w, v)"),
    **{
        f"{name} of no axes": (18, "float[2, 3] x, int64[0] a = {}", f"y = {name}<noop_with_empty_axes = 1>(x, a)")
        for name in ("ReduceL2", "ReduceLogSum", "ReduceSumSquare", "ReduceSum")
    },
    "a transform along a known axis": (17, "float[1, 6, 1] x", "y = DFT<axis = 1, onesided = 1>(x)"),
    "what is kept of all": (13, "float[2, 3] x", "z, m = Dropout(x) y = Cast<to = 1>(m)"),
    "a category given twice": (18, "int64[n] z", "y = ai.onnx.ml.OneHotEncoder<cats_int64s = [2, 3, 2]>(z)"),
    "features of a vector": (18, "float[4] x, int64[2] k", "y = ai.onnx.ml.ArrayFeatureExtractor(x, k)"),
    "a vector as one row": (
        18,
        "float[3] x",
        "y = ai.onnx.ml.LinearRegressor<coefficients = [1.0, -2.0, 3.0, 0.5, 0.25, 4.0], intercepts = [0.5, 1.0], targets = 2>(x)",
    ),
    **{
        f"{name} of two classes after {transform} as {outputs}": (
            18,
            "float[n, 2] x",
            f"{outputs} = ai.onnx.ml.SVMClassifier<classlabels_ints = [4, 7], coefficients = [{coefficients}], rho = [0.25], "
            f"kernel_params = [0.5, 0.0, 3.0], "
            f'{vectors}post_transform = "{transform}">(x)',
        )
        for name, coefficients, vectors in (
            ("machines", "1.0, -0.5", "support_vectors = [0.5, 1.0, 2.0, 0.25], vectors_per_class = [1, 1], "),
            ("a sum", "0.5, 0.25, 1.0, 0.5", ""),
            ("a difference", "-0.5, 0.25, 1.0, -1.5", ""),
        )
        for transform in ("NONE", "LOGISTIC")
        for outputs in ("y, z", "z, y")
    },
    "long sizes in branches": (
        18,
        "float[1, 1, n] x, bool yes, int64[6] five = {0, 0, 0, 0, 0, 5}",
        f"z = If<then_branch = t () => (float[1, 1, k] r) {{ {_long_size('r = Neg')} }}, "
        f"else_branch = e () => (float[1, 1, k] r) {{ {_long_size('r = Abs')} }}>(yes)\n {_long_size('w = Neg')}\n y = Add(z, w)",
    ),
    "half of a transform along a late axis": (20, "float[2, 6, 3, 1] x, int64 place", "y = DFT<onesided = 1>(x, , place)"),
    **{
        f"a range from {start} to {end} by {step}": (
            18,
            f"float[n, 2] x, int64 step = {{{step}}}, int64 low = {{1}}, int64 high = {{9}}",
            f"s = Shape<end = 1>(x) size = Squeeze(s) y = Range({start}, {end}, step)",
        )
        for start, end, step in (("size", "low", -2), ("high", "size", -3), ("high", "size", 1), ("low", "size", 2))
    },
    "every second number": (18, "int64 count", "o = Constant<value_int = 1>() t = Constant<value_int = 2>() y = Range(o, count, t)"),
    "a logarithm of a sum of halves": (13, "float16[2, 3] x", "y = ReduceLogSumExp<axes = [1]>(x)"),
    "one of a sequence": (
        18,
        "float[n, 3] x, float[n, 3] w, int64[1] two = {2}",
        "s = Shape<end = 1>(x) m = Mod(s, two) i = Squeeze(m) v = Neg(x) q = SequenceConstruct(x, w, v) y = SequenceAt(q, i)",
    ),
    "transposed sizes": (
        18,
        "float[n, m] x, float[1] w, int64[2] two = {2, 1}",
        "s = Shape(x) r = Reshape(s, two) u = Transpose(r) v = Squeeze(u) y = Expand(w, v)",
    ),
    **{
        f"groups of queries{inputs}{attributes}": (
            18,
            GROUPS,
            "y, k1, v1 = com.microsoft.GroupQueryAttention"
            f"<num_heads = 4, kv_num_heads = 2{attributes}>(x, w, w, p, p, seen, total{inputs})",
        )
        for inputs, attributes in ((", , , , , sink", ""), (", , , , , , v, u", ""), ("", ", smooth_softmax = 1"), ("", ", scale = 0.7"))
    },
    **{
        f"{outputs} of a tree of classes {ids} among {labels}, {weights}": (
            18,
            "float[n, 2] x",
            f"{outputs} = ai.onnx.ml.TreeEnsembleClassifier<{TREE}, class_treeids = [0, 0], class_nodeids = [1, 2], "
            f"class_ids = [{ids}], class_weights = [{weights}], classlabels_int64s = [{labels}]{base}>(x)",
        )
        for ids, labels, base in (
            ("0, 0", "3", ""),
            ("0, 0", "3, 4", ""),
            ("1, 1", "3, 4", ""),
            ("0, 1", "0, 1", ""),  # ONNX Runtime gives the numbers of these labels
            ("0, 2", "3, 4, 5", ", base_values = [0.5, -1.0, 2.0]"),
        )
        for weights in ("0.25, 0.0", "1.0, -2.0")
        for outputs in ("y, z", "z, y")
    },
    "a class that no leaf says anything of": (
        18,
        "float[n, 2] x",
        f"y, z = ai.onnx.ml.TreeEnsembleClassifier<{TREE}, class_treeids = [0, 0, 0], class_nodeids = [1, 2, 2], class_ids = [0, 0, 2], "
        "class_weights = [-1.0, -2.0, -3.0], classlabels_int64s = [3, 4, 5]>(x)",
    ),
    "the least of a tree": (
        18,
        "float[n, 2] x",
        f"y = ai.onnx.ml.TreeEnsembleRegressor<{TREE}, target_treeids = [0, 0], target_nodeids = [1, 2], target_ids = [0, 0], "
        'target_weights = [1.0, -2.0], n_targets = 1, aggregate_function = "MIN">(x)',
    ),
    "a tree of a target of all leaves and one of some": (
        18,
        "float[n, 2] x",
        f"y = ai.onnx.ml.TreeEnsembleRegressor<{TREE}, target_treeids = [0, 0, 0], target_nodeids = [1, 2, 1], target_ids = [0, 0, 1], "
        "target_weights = [1.0, -2.0, 3.0], n_targets = 2, base_values = [0.5, 5.0]>(x)",
    ),
    "a tree by numbers": (
        18,
        "float[n, 2] x",
        "y = ai.onnx.ml.TreeEnsemble<n_targets = 2, post_transform = 3, tree_roots = [0], nodes_featureids = [1], "
        "nodes_modes = uint8[1] {0}, nodes_splits = float[1] {1.0}, nodes_truenodeids = [0], nodes_trueleafs = [1], "
        "nodes_falsenodeids = [1], nodes_falseleafs = [1], leaf_targetids = [0, 1], leaf_weights = float[2] {1.5, -2.5}>(x)",
    ),
    "identical parts": (18, "float[n, 4] x", "y = Split<axis = 1, num_outputs = 1>(x)"),
}

# ONNX Runtime has no such element types or windows, or reads places in the larger image.
OF_REFERENCE = {
    "a range of halves",
    "a range of known halves",
    "unpooled to a size",
    "blocks of channels",
    *(f"attention {window}" for window in ("0 to the right", "1 to the right", "0 to the left")),
}


def test_the_sizes_of_a_transposed_convolution_may_be_those_of_all_dimensions():
    texts = []
    for sizes in ("10", "1, 3, 10"):
        nodes = f"y = ConvTranspose<output_shape = [{sizes}], strides = [2]>(x, w)"
        texts.append(str(from_onnx(parsed((18, "float[1, 2, 4] x, float[2, 3, 3] w", nodes)))))
    assert texts[0] == texts[1] and "-> tensor<1x3x10xf32>" in texts[0]


@pytest.mark.parametrize("name", CASES)
def test_against_others(name):
    session = ReferenceEvaluator if name in OF_REFERENCE else onnxruntime.InferenceSession
    feeds = arrays(name, CASES[name])
    (expected,) = session(parsed(CASES[name], True).SerializeToString()).run(["y"], feeds)
    (found,) = RelayInterpreter(find_pass("QnnCanonicalize")(from_onnx(parsed(CASES[name]))))("main", list(feeds.values()))
    found = found.view(expected.dtype) if found.dtype == np.int8 else found  # bytes there
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=2e-3 if found.dtype == np.float16 else 2e-5, atol=1e-5)
