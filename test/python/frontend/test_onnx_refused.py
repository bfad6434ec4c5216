"""Nodes that the ONNX importer refuses: the error says what was expected, and what was found."""

import re

import numpy as np
import pytest
from onnx import AttributeProto, helper, numpy_helper
from onnx.parser import parse_model
from onnx_cases import STUMP
from onnx_models import model_of

from relayc.frontend.onnx import OnnxError, from_onnx

DOMAINS = '"com.microsoft" : 1, "ai.onnx.ml" : 5, "ai.onnx.preview.training" : 1'
KINDS = {int: AttributeProto.INTS, float: AttributeProto.FLOATS, str: AttributeProto.STRINGS}

REFUSED = [
    # Windows.
    ("float[1, 2] x, float[1, 1] w", "y = Conv(x, w)", "input X: expected one to three spatial axes, found shape [1, 2]"),
    ("float[1, 1, 1, 1, 1, 4] x, float[1, 1, 1, 1, 1, 1] w", "y = Conv(x, w)", "input X: expected one to three spatial axes, found shape"),
    ("float[1, 1, 5] x, float[1, 1, k] w", "y = Conv(x, w)", "input W: expected a window of a known size, found [1, 1, k]"),
    ("float[1, 1, 5] x, float[1, 1, 3, 3] w", "y = Conv(x, w)", "input W: expected rank 3 as X has, found [1, 1, 3, 3]"),
    ("float[1, 1, 5] x, float[1, 1, 3] w", "y = Conv<pads = [1]>(x, w)", "attribute pads: expected 2 values, found [1]"),
    ("float[1, 1, 5] x, float[1, 1, 3] w", "y = Conv<strides = [1, 1]>(x, w)", "attribute strides: expected 1 value(s), found [1, 1]"),
    (
        "float[1, 1, 5, 5] x, float[1, 1, 3, 3] w",
        "y = Conv<strides = [2147483648, 1]>(x, w)",
        "attribute strides: expected values of at most 2147483647, found [2147483648, 1]",
    ),
    ("float[4] x", 'y = Gelu<approximate = "sinh">(x)', "attribute approximate: expected none or tanh, found 'sinh'"),
    (
        "float[1, 1, 5] x, float[1, 1, 3] w",
        'y = Conv<auto_pad = "SAME">(x, w)',
        "attribute auto_pad: expected NOTSET, VALID, SAME_UPPER or",
    ),
    (
        "float[1, 1, 5] x, float[1, 1, 3] w",
        "y = ConvTranspose<output_shape = [5, 5]>(x, w)",
        "attribute output_shape: expected 1 value(s), found [5, 5]",
    ),
    (
        "float[1, 1, n] x, float[1, 1, 3] w",
        "y = ConvTranspose<output_shape = [5]>(x, w)",
        "attribute output_shape: expected none for an input of symbolic size [1, 1, n], found [5]",
    ),
    (
        "float[1, 1, n, 5] x, float[1, 1, 3, 3] w",
        "y = ConvTranspose<output_shape = [5, 7]>(x, w)",
        "attribute output_shape: expected none for an input of symbolic size [1, 1, n, 5], found [5, 7]",
    ),
    (
        "float[1, 1, n] x",
        'y, i = MaxPool<kernel_shape = [2], strides = [2], auto_pad = "SAME_UPPER">(x)',
        "expected padding of known size beside the output Indices, found SAME_UPPER of",
    ),
    (
        "float[1, 1, 2] x, int64[1, 1, 2] i, int64[2] s = {1, 9}",
        "y = MaxUnpool<kernel_shape = [2]>(x, i, s)",
        "input output_shape: expected 3 sizes, found [1, 9]",
    ),
    ("float[1, 4] x, int64[1] s = {5}", "y = Col2Im(x, s, s)", "expected blocks [batch, elements, blocks] of one to three axes, found"),
    (
        "float[1, 4, 4] x, int64[1] s = {5}, int64[2] b = {1, 1}",
        "y = Col2Im(x, s, b)",
        "of one to three axes, found tensor<1x4x4xf32>, [5]",
    ),
    ("float[1, 4, 4] x, int64[4] s = {5, 5, 5, 5}", "y = Col2Im(x, s, s)", "of one to three axes, found"),
    (
        "float[1, 5, 4] x, int64[1] s = {5}",
        "y = Col2Im<strides = [0]>(x, s, s)",
        "attributes strides and dilations: expected values of 1 or more, found [0] and [1]",
    ),
    ("float[1, 5, 4] x, int64[1] s = {5}", "y = Col2Im<dilations = [0]>(x, s, s)", "expected values of 1 or more, found [1] and [0]"),
    (
        "float[1, 5, 4] x, int64[1] s = {5}, int64[1] b = {0}",
        "y = Col2Im(x, s, b)",
        "input block_shape: expected sizes of 1 or more, found [0]",
    ),
    (
        "float[1, 3, 4] x, float[2, 3, 1] w, float[1, 1, 4] o",
        "y = DeformConv<group = 2>(x, w, o)",
        "expected channels in groups of 2 and of 1, found X [1, 3, 4] and W [2, 3, 1]",
    ),
    ("float[1, 3, 4] x, float[2, 3, 1] w, float[1, 1, 4] o", "y = DeformConv<group = 0>(x, w, o)", "groups of 0 and of 1"),
    ("float[1, 3, 4] x, float[2, 3, 1] w, float[1, 1, 4] o", "y = DeformConv<offset_group = 0>(x, w, o)", "groups of 1 and of 0"),
    ("float[1, 3, 4] x, float[2, 3, 1] w, float[1, 1, 4] o", "y = DeformConv<offset_group = 2>(x, w, o)", "groups of 1 and of 2"),
    ("float[1, 4, 4] x, float[3, 2, 1] w, float[1, 1, 4] o", "y = DeformConv<group = 2>(x, w, o)", "W [3, 2, 1]"),
    # Attention.
    (
        "float[2, 3, 8] x",
        "y = Attention<q_num_heads = 3, kv_num_heads = 3>(x, x, x)",
        "input Q: expected 4 dimensions, or 3 whose last is a multiple of the number of heads, found [2, 3, 8]",
    ),
    ("float[2, 3, 8] x", "y = Attention<q_num_heads = 2, kv_num_heads = 3>(x, x, x)", "input K: expected 4 dimensions, or 3 whose last"),
    ("float[2, 3, 8] x", "y = Attention(x, x, x)", "input Q: expected 4 dimensions"),
    ("float[3, 8] x", "y = Attention<q_num_heads = 2, kv_num_heads = 2>(x, x, x)", "input Q: expected 4 dimensions"),
    *(
        (
            "float[1, 2, 3, 4] x",
            f"y = Attention<{name} = {value}>(x, x, x)",
            "expected a finite softcap of 0 or more and a finite scale, found",
        )
        for name, value in (("softcap", "-1.0"), ("softcap", "inf"), ("scale", "inf"), ("scale", "nan"), ("softcap", "nan"))
    ),
    (
        "float[1, 2, 3, 4] x, float[1, 2, 3] p",
        "y, a, b = Attention(x, x, x, , p, x)",
        "inputs past_key and past_value: expected 4 dimensions, found tensor<1x2x3xf32> and tensor<1x2x3x4xf32>",
    ),
    ("float[1, 2, 3, 4] x, float[1, 2, 3] p", "y, a, b = Attention(x, x, x, , x, p)", "past_value: expected 4 dimensions"),
    # Elements and matrices.
    ("uint8[2] x", 'y = BitShift<direction = "UP">(x, x)', "attribute direction: expected LEFT or RIGHT, found 'UP'"),
    ("float[2, 3] x, float[3] z", "y = Gemm(x, z)", "inputs A and B: expected matrices, found [2, 3] and [3]"),
    ("float[2, 3] x, float[2] z", "y = Gemm(z, x)", "inputs A and B: expected matrices, found [2] and [2, 3]"),
    ("float[3] x", "y = Det(x)", "expected matrices, found [3]"),
    ("float[2, 3] x", 'y = Einsum<equation = "ij,jk">(x)', "attribute equation: expected 1 operand(s), found 'ij,jk'"),
    ("float[2, 3] x", 'y = Einsum<equation = "ijk">(x)', "attribute equation: expected 2 indices for [2, 3], found 'ijk'"),
    ("float[2, 3] x", 'y = Einsum<equation = "ij->ik">(x)', "attribute equation: expected 2 indices for [2, 3], found 'ij->ik'"),
    ("float[2, 3] x, float[2] z", "y = Concat<axis = 0>(x, , x)", "expected inputs without a gap, found one that is not given"),
    ("5: float[2] x", 'y = Cast<to = "number">(x)', "attribute to: expected the name of an element type, found 'number'"),
    # Tensors out of nothing.
    (
        "int64[1] s",
        "y = ConstantOfShape<value = float[2] {1.0, 2.0}>(s)",
        "attribute value: expected one element, found [2]",
    ),
    ("int64 i = {2}, int64 z = {0}", "y = Range(i, i, z)", "input delta: expected a value other than 0, found 0"),
    ("int64 i, int64 z = {0}", "y = Range(i, i, z)", "input delta: expected a value other than 0, found 0"),
    (
        "float[n] x, float z = {0}",
        "s = Size(x)\n f = Cast<to = 1>(s)\n y = Range(f, f, z)",
        "input delta: expected a value other than 0, found 0",
    ),
    (
        "int64 i, int64[2] z",
        "y = Range(i, z, i)",
        "expected inputs of one element, found tensor<i64>, tensor<2xi64> and tensor<i64>",
    ),
    (
        "double a = {0}, double b = {1e300}, double c = {1e-300}",
        "y = Range(a, b, c)",
        "expected a number of elements, found one from 0.0 to",
    ),
    ("float[1099511627776, 1] x, int64[1] s", "y = ReverseSequence(x, s)", "expected a constant of at most"),
    ("float[4194304, 4194304] x", "y = EyeLike(x)", "expected a constant of at most"),
    ("int64 a = {0}, int64 b = {4611686018427387904}, int64 c = {1}", "y = Range(a, b, c)", "expected at most 140737488355328 bytes"),
    ("float[2] x", "y = EyeLike(x)", "expected a matrix, found [2]"),
    ("float[2] x", "y = RandomUniformLike<dtype = 6>(x)", "attribute dtype: expected a floating-point type, found int32"),
    ("int32[2] x", "y = RandomNormalLike(x)", "attribute dtype: expected a floating-point type, found int32"),
    ("float[2] x", "y = Multinomial(x)", "expected logarithms of probabilities [batch, classes], found [2]"),
    ("float[2, 3] x", "y = Multinomial<dtype = 1>(x)", "attribute dtype: expected int32 or int64, found float32"),
    ("uint8[n] x", 'y = ImageDecoder<pixel_format = "CMYK">(x)', "attribute pixel_format: expected RGB, BGR or Grayscale, found 'CMYK'"),
    ("uint8[n, 2] x", "y = ImageDecoder(x)", "input encoded_stream: expected a vector of uint8, found"),
    ("int8[n] x", "y = ImageDecoder(x)", "input encoded_stream: expected a vector of uint8, found"),
    # Resampling.
    (
        "1: float[1, 1, 2] x",
        "y = Upsample<height_scale = 2.0, width_scale = 2.0>(x)",
        "input X: expected a batch of images, found [1, 1, 2]",
    ),
    (
        "float[2, 3] x, float[2] s = {2, 2}",
        'y = Resize<mode = "area">(x, , s)',
        "attribute mode: expected nearest, linear or cubic, found 'area'",
    ),
    ("float[2, 3] x, float[2] s", 'y = Resize<mode = "area">(x, , s)', "attribute mode: expected nearest, linear or cubic, found 'area'"),
    (
        "9: float[2, 3] x, float[2] s",
        'y = Upsample<mode = "area">(x, s)',
        "attribute mode: expected nearest, linear or cubic, found 'area'",
    ),
    ("float[2, 3] x, float[1] s = {2}", "y = Resize(x, , s)", "input scales: expected 2 values, found 1"),
    ("float[2, 3] x, float[2] s = {2, -1}", "y = Resize(x, , s)", "input scales: expected sizes of 0 or more, found -3.0"),
    (
        "float[2, 2] x, float[2] s = {2, 4611686018427387904}",
        "y = Resize(x, , s)",
        "input scales: expected sizes of 0 or more, found 9.223372036854776e+18",
    ),
    ("float[2, 3] x", "y = Resize(x)", "expected one of the inputs scales and sizes, found neither"),
    (
        "float[2, 3] x, float[0] s = {}, int64[0] n = {}",
        "y = Resize(x, , s, n)",
        "expected one of the inputs scales and sizes, found neither",
    ),
    (
        "float[2, 3] x, float[2] s = {1, 2}, float[3] r = {0, 0, 1}",
        'y = Resize<coordinate_transformation_mode = "tf_crop_and_resize">(x, r, s)',
        "expected 2 scales and a roi of 4 values, found [1.0, 2.0] and 3",
    ),
    (
        "float[2, 3] x, float[1] s = {2}, float[4] r = {0, 0, 1, 1}",
        'y = Resize<coordinate_transformation_mode = "tf_crop_and_resize">(x, r, s)',
        "expected 2 scales and a roi of 4 values, found [2.0] and 4",
    ),
    (
        "float[2, 3] x, float[2] s",
        'y = Resize<coordinate_transformation_mode = "tf_crop_and_resize">(x, , s)',
        "expected the input roi for tf_crop_and_resize, found none",
    ),
    ("float[2, 3] x, float[3] s", "y = Resize(x, , s)", "expected a tensor of shape"),
    ("float[2, 3] x, float[2, 1] s", "y = Resize(x, , s)", "input scales: expected 2 floats, found tensor<2x1xf32>"),
    ("float[2, 3] x, float[2] s", 'y = Resize<nearest_mode = "up">(x, , s)', "attribute nearest_mode: expected"),
    (
        "float[2, 3] x, float[2] s",
        'y = Resize<coordinate_transformation_mode = "own">(x, , s)',
        "attribute coordinate_transformation_mode: expected one of operator set 19, found 'own'",
    ),
    (
        "float[2, 3] x, float[2] s = {2, 3}",
        'y = Resize<antialias = 1, mode = "linear", coordinate_transformation_mode = "tf_half_pixel_for_nn">(x, , s)',
        "attribute coordinate_transformation_mode: expected one that takes antialias, found 'tf_half_pixel_for_nn'",
    ),
    ("float[2, 3] x, int64[1] s = {2}", "y = Resize(x, , , s)", "input sizes: expected 2 values, found 1"),
    (
        "float[2, 3] x, int64[2] s = {2, 5}",
        'y = Resize<keep_aspect_ratio_policy = "largest">(x, , , s)',
        "attribute keep_aspect_ratio_policy: expected stretch, not_larger or not_smaller, found 'largest'",
    ),
    (
        "float[n, 3] x, int64[2] s = {2, 5}",
        'y = Resize<keep_aspect_ratio_policy = "largest">(x, , , s)',
        "attribute keep_aspect_ratio_policy: expected stretch, not_larger or not_smaller, found 'largest'",
    ),
    ("float[n, 3] x, int64[1] s = {2}", 'y = Resize<keep_aspect_ratio_policy = "not_larger">(x, , , s)', "expected 2 values, found 1"),
    ("float[2, 0] x, int64[2] s = {2, 5}", "y = Resize(x, , , s)", "input X: expected axes with elements to resize, found one of size 0"),
    ("float[1, 1, 4] x, float[1, 2, 2, 2] g", "y = GridSample(x, g)", "input grid: expected rank 3 as X has, found [1, 2, 2, 2]"),
    ("float[1, 1, 4, 4] x, float[1, 2, 2] g", "y = GridSample(x, g)", "input grid: expected rank 4 as X has, found [1, 2, 2]"),
    (
        "float[1, 1, 4, 4] x, float[1, 2, 2, 2] g",
        'y = GridSample<mode = "area">(x, g)',
        "attribute mode: expected",
    ),
    (
        "float[2, 3] t, int64[4] s = {1, 1, 4, 4}",
        "y = AffineGrid(t, s)",
        "expected theta [N, k, k + 1] of floats and k + 2 sizes, k of 2 or 3, found tensor<2x3xf32> and 4 sizes",
    ),
    ("float[1, 1, 2] t, int64[3] s = {1, 1, 4}", "y = AffineGrid(t, s)", "found tensor<1x1x2xf32> and 3 sizes"),
    ("int32[1, 2, 3] t, int64[4] s = {1, 1, 4, 4}", "y = AffineGrid(t, s)", "found tensor<1x2x3xi32> and 4 sizes"),
    (
        "float[5, 4] b, float[1, 1, 5] s",
        "y = NonMaxSuppression(b, s)",
        "expected boxes [batch, boxes, 4] and scores [batch, classes, boxes], found tensor<5x4xf32> and tensor<1x1x5xf32>",
    ),
    ("float[1, 5, 4] b, float[1, 5] s", "y = NonMaxSuppression(b, s)", "found tensor<1x5x4xf32> and tensor<1x5xf32>"),
    (
        "float[1, 5, 4] b, float[1, 1, 5] s",
        "y = NonMaxSuppression<center_point_box = 2>(b, s)",
        "attribute center_point_box: expected 0 or 1, found 2",
    ),
    (
        "float[1, 1, 4, 4] x, float[2, 4] r, int64[2] b",
        'y = RoiAlign<coordinate_transformation_mode = "own">(x, r, b)',
        "attribute coordinate_transformation_mode: expected half_pixel or output_half_pixel, found 'own'",
    ),
    (
        "float[1, 1, 4, 4] x, float[8] r, int64[2] b",
        "y = RoiAlign(x, r, b)",
        "expected rois [regions, 4] and batch_indices [regions], found",
    ),
    (
        "float[1, 1, 4, 4] x, float[2, 4] r, int64[2, 1] b",
        "y = RoiAlign(x, r, b)",
        "expected rois [regions, 4] and batch_indices [regions]",
    ),
    ("int32[2] a = {1, 2}, float[2] b = {1, 2}", "y = Add(a, b)", "rhs: expected the element type of lhs, int32, found"),
    ("float[2] a = {1, 2}, float[3] b = {1, 2, 3}", "y = Add(a, b)", "shapes do not broadcast"),
    (
        "float[2] x, bool[2] c = {0, 1}",
        "y = If<then_branch = t () => (float[2] r) { r = Neg(x) }, else_branch = e () => (float[2] r) { r = Abs(x) }>(c)",
        "input cond: expected one element, found [2]",
    ),
    *(
        (f"float[3] x, int64[2] p = {{{pads}}}", f'y = Pad<mode = "{mode}">(x, p)', "expected at most 140737488355328 bytes")
        for pads in ("0, 4611686018427387904", "4611686018427387904, 0")
        for mode in ("reflect", "edge", "wrap")
    ),
    # Features.
    ("float[4] x", "y = ai.onnx.ml.Scaler<offset = [1.0, 2.0, 3.0]>(x)", "expected a tensor of shape [3], found [4]"),
    ("float[2, 4] x", "y = ai.onnx.ml.Scaler<scale = [1.0, 2.0, 3.0]>(x)", "expected a tensor of shape [2, 3], found [2, 4]"),
    # Shapes.
    ("float[2, 3] x, int64[3] s = {2, 3, 0}", "y = Reshape(x, s)", "input shape: expected zeros for axes of data [2, 3], found [2, 3, 0]"),
    ("float[2, 3] x, int64[2] s = {-1, -1}", "y = Reshape(x, s)", "input shape: expected sizes and at most one -1, found [-1, -1]"),
    ("float[2, 3] x, int64[2] s = {-2, 3}", "y = Reshape(x, s)", "input shape: expected sizes and at most one -1, found [-2, 3]"),
    ("float[2, 3] x, int64[n] s", "y = Reshape(x, s)", "input shape: expected as many elements as is known at import, found"),
    ("float[2, 3] x, int64 s", "y = Reshape(x, s)", "input shape: expected a list of integers, found tensor<i64>"),
    ("float[2, 3] x", "y = Transpose<perm = [0]>(x)", "attribute perm: expected 2 axes, found [0]"),
    ("float[2, 3, 1] x, int64[2] a = {2, 1}", "y = Squeeze(x, a)", "axes: expected axes of size 1 of [2, 3, 1], found [1]"),
    ("float[2, 3] x, int64[2] a = {0, -2}", "y = ReduceSum(x, a)", "expected each axis once, found [0, -2]"),
    (
        "float[2, 3] x, int64[1] b = {0}, int64[2] e = {1, 2}",
        "y = Slice(x, b, e)",
        "expected starts, ends, axes and steps of one length, found 1, 2,",
    ),
    ("float[2, 3] x, int64[1] b = {0}, int64[2] e = {0, 1}", "y = Slice(x, b, b, e)", "of one length, found 1, 1, 2, 1"),
    ("float[2, 3] x, int64[1] b = {0}, int64[2] e = {1, 1}", "y = Slice(x, b, b, b, e)", "of one length, found 1, 1, 1, 2"),
    ("float[2, 3] x, int64[1] b = {0}", "y = Slice(x, b, b, b, b)", "input steps: expected values other than 0, found 0"),
    (
        "float[2, 3] x, int64[1] b, int64[2] a",
        "y = Slice(x, b, b, a)",
        "expected starts, ends, axes and steps of one length, found tensor<1xi64>",
    ),
    (
        "float[2, 3] x, int64[1] b, int64[2] a",
        "y = Slice(x, a, a, a, b)",
        "expected starts, ends, axes and steps of one length, found tensor<2xi64>",
    ),
    (
        "float[2, 3] x, int64[1] b = {0}, int64[2] s",
        "y = Slice(x, b, b, b, s)",
        "expected starts, ends and steps of one length, found tensor<1xi64>, tensor<1xi64> and tensor<2xi64>",
    ),
    ("float[2, 3] x, int64[1] b = {0}, int64[n] s", "y = Slice(x, s, s, b, s)", "expected starts, ends and steps of one length, found"),
    ("float[4] x", "y, z = Split<num_outputs = 3>(x)", "attribute num_outputs: expected 2, the number of outputs, found 3"),
    ("float[2, 3] x, int64[1] r = {2}", "y = Tile(x, r)", "input repeats: expected 2 values, found [2]"),
    ("float[2, 3] x, int64[2] p = {1, 1}", "y = Pad(x, p)", "pads: expected 4 values, found [1, 1]"),
    (
        "float[2, 3] x, int64[4] p = {1, 1, 1, 1}",
        'y = Pad<mode = "mirror">(x, p)',
        "attribute mode: expected constant, reflect, edge or wrap, found",
    ),
    (
        "float[0, 3] x, int64[4] p = {1, 0, 0, 0}",
        'y = Pad<mode = "wrap">(x, p)',
        "pads: expected none along axis 0, which has no element to repeat, found 1 and 0",
    ),
    (
        "float[2, 3] x, int64[3] p, int64[2] a",
        "y = Pad(x, p, , a)",
        "input pads: expected two for each of the axes tensor<2xi64>, found tensor<3xi64>",
    ),
    ("float[2, 3] x, int64[1] s = {1}", "y = CenterCropPad(x, s)", "input shape: expected 2 values, one for each axis, found [1]"),
    ("float[2, 3] x, int64[3] a", "y = ReduceSum<keepdims = 0>(x, a)", "input axes: expected at most 2, found 3"),
    ("float[2, 3] x, int64[n] a", "y = ReduceSum<keepdims = 0>(x, a)", "input axes: expected as many axes as is known at import, found n"),
    ("float[2, 3] x, int64[n] a", "y = Unsqueeze(x, a)", "input axes: expected as many axes as is known at import, found tensor"),
    ("float[2, 3] x, float[1] a", "y = ReduceSum(x, a)", "input axes: expected a list of integers, found tensor<1xf32>"),
    ("float[2, 3] x, int64[1, 1] a", "y = ReduceSum(x, a)", "input axes: expected a list of integers, found tensor<1x1xi64>"),
    ("float[2, 3] x, int64[1] k = {-1}", "y, i = TopK(x, k)", "k: expected 0 or more, found -1"),
    (
        "float[2, 3] x",
        "y = TensorScatter<axis = 0>(x, x)",
        "expected an axis behind the batch, and an update of the rank of the cache, found 0 and [2, 3]",
    ),
    ("float[2, 3, 4] x, float[2, 3] u", "y = TensorScatter(x, u)", "found -2 and [2, 3]"),
    ("float[2, 3, 4] x", 'y = TensorScatter<mode = "ring">(x, x)', "attribute mode: expected linear or circular, found 'ring'"),
    ("float[2, 3] x, int64[1] s = {4}", "y = Expand(x, s)", "expected equal or 1 in dimension -1, found (2, 3), [4]"),
    ("float[2, 1] x, float[1] a = {1}", "y = Squeeze(x, a)", "input axes: expected a list of integers, found float32[1]"),
    ("float[2, 1] x, int64[1, 1] a = {1}", "y = Squeeze(x, a)", "input axes: expected a list of integers, found int64[1, 1]"),
    ("float[4] x, int64[2] k = {1, 2}", "y, i = TopK(x, k)", "input K: expected one element, found [2]"),
    *(
        ("float[4] x, int64[1] i", f"y = Gather<axis = {axis}>(x, i)", f"attribute axis: expected a value in [-1, 1), found {axis}")
        for axis in (1, -2)
    ),
    ("float[1, 3, 6, 5] x", "y = DepthToSpace<blocksize = 2>(x)", "channels: expected a multiple of 4, found 3"),
    ("float[1, 3, 6, 5] x", "y = SpaceToDepth<blocksize = 2>(x)", "width: expected a multiple of 2, found 5"),
    # What no operator takes.
    ("float[4] x", "y, w = Relu(x)", "expected at most 1 output(s), found 2 in use"),
    ("float[4] x", "y = Relu(x, x)", "expected at most 1 input(s) (x), found 2"),
    ("float[4] x", "y = Relu<alpha = 1>(x)", "expected attributes among none, found alpha"),
    ("float[4] x", "y = Concat(x)", "expected attribute axis, found none"),
    ("float[2] x = {1, 2}", "y = ArgMax<keepdims = 2, select_last_index = 1>(x)", "attribute keepdims: expected 0 or 1, found 2"),
    ("float[2] x = {1, 2}", "y = Flatten<axis = 5>(x)", "attribute axis: expected a value in [-1, 1), found 5"),
    ("float[4] x", "y = Concat<axis = 1.0>(x)", "attribute axis: expected int, found float"),
    ("float[4] x", "y = Relu()", "expected input x, found none"),
    ("float[4] x", "y = Constant()", "expected one value attribute, found 0"),
    ("float[4] x", "y = Constant<value_int = 1, value_float = 1.0>()", "expected one value attribute, found 2"),
    # Normalisations and quantisation.
    (
        "float[2, 3] x, float[3] s",
        "y, m, v = BatchNormalization(x, s, s, s, s)",
        "attribute training_mode: expected 1 beside more than one output, found 0",
    ),
    ("float x, float[1] s", "y = BatchNormalization(x, s, s, s, s)", "input X: expected a batch, found a scalar"),
    (
        "7: float[2, 3, 4] x, float[3, 4] s",
        "y, m, v = BatchNormalization<spatial = 0>(x, s, s, s, s)",
        "attribute spatial: expected statistics for each channel (1) in training, found 0",
    ),
    ("float[2] x, float[1] s", "y = GroupNormalization<num_groups = 1>(x, s, s)", "input X: expected a batch and channels, found [2]"),
    ("float[2, 3] x, float[2, 3] s", "y = RMSNormalization(x, s)", "input scale: expected a shape that broadcasts to [3], found [2, 3]"),
    ("float[2, 3] x", "y = LpNormalization<p = 3>(x)", "attribute p: expected 1 or 2, found 3"),
    ("float[2] x, float s, int32 z", "y = QuantizeLinear(x, s, z)", "expected a quantised type among"),
    (
        "float[2] x, float s, uint8 z",
        "y = QuantizeLinear<output_dtype = 3>(x, s, z)",
        "attribute output_dtype: expected uint8, the type of the zero point, found int8",
    ),
    # Signals and strings.
    ("float[2, 5, 3] x", "y = DFT(x)", "expected a signal whose last dimension is 1 or 2, found [2, 5, 3]"),
    ("float[2] x", "y = DFT(x)", "expected a signal whose last dimension is 1 or 2, found [2]"),
    ("int32[2, 5, 1] x", "y = DFT(x)", "expected a signal of floats, found int32"),
    ("float[2, 5, 1] x, int64 a = {2}", "y = DFT(x, , a)", "axis: expected one of the signal's, not the last one, found 2"),
    ("float[2, 5, 1] x, int64 n = {0}", "y = DFT(x, n)", "expected a transform of 1 element or more, found 0"),
    ("float[2, 9, 1] x, int64 z = {0}, int64 n = {4}", "y = STFT(x, z, , n)", "input frame_step: expected 1 or more, found 0"),
    ("float[2, 9, 1] x, int64 z = {1}, int64 n = {0}", "y = STFT(x, z, , n)", "expected a transform of 1 element or more, found 0"),
    ("float[2, 9, 1, 1] x, int64 n = {4}", "y = STFT(x, n, , n)", "input signal: expected [batch, length, 1 or 2], found [2, 9, 1, 1]"),
    ("float[2, 3, 1] x, int64 n = {4}", "y = STFT(x, n, , n)", "input signal: expected at least one frame of 4 elements, found [2, 3, 1]"),
    (
        "string[2] x",
        'y = StringNormalizer<case_change_action = "TITLE">(x)',
        "attribute case_change_action: expected NONE, LOWER or UPPER, found 'TITLE'",
    ),
    ("float[2] x", 'y = RegexFullMatch<pattern = "a">(x)', "input X: expected strings, found"),
    ("string[1, 1, 2] x", "y = StringNormalizer(x)", "input X: expected a vector, or a matrix of one row, found"),
    *(
        (
            f"{kind} x",
            'y = TfIdfVectorizer<mode = "TF", min_gram_length = 1, max_gram_length = 1, max_skip_count = 0, ngram_counts = [0], '
            f"ngram_indexes = [0], {pool}>(x)",
            "input X: expected a vector or matrix of what the pool has, found",
        )
        for kind, pool in (
            ("int64[1, 1, 2]", "pool_int64s = [1]"),
            ("int64", "pool_int64s = [1]"),
            ("float[2]", "pool_int64s = [1]"),
            ("string[2]", "pool_int64s = [1]"),
            ("int64[2]", 'pool_strings = ["a"]'),
        )
    ),
    (
        "int64[2] x",
        'y = TfIdfVectorizer<mode = "TF", min_gram_length = 1, max_gram_length = 1, max_skip_count = 0, ngram_counts = [0], '
        "ngram_indexes = [-1, 3], pool_int64s = [1, 2]>(x)",
        "attribute ngram_indexes: expected one or more of 0 or more, found [-1, 3]",
    ),
    ("float[1, 1] x, int64[3] a", "y = Squeeze(x, a)", "input axes: expected at most 2, found 3"),
    # Sequences.
    ("float[4] x, float s", "y = SplitToSequence(x, s)", "input split: expected int64 or int32, a scalar or a list, found tensor<f32>"),
    ("float[4] x, int64[1, 1] s", "y = SplitToSequence(x, s)", "input split: expected int64 or int32, a scalar or a list, found"),
    ("float[4] x, int64[2] s = {5, -1}", "y = SplitToSequence(x, s)", "input split: expected sizes that add up to 4, found [5, -1]"),
    ("float[4] x, int64 s = {0}", "y = SplitToSequence(x, s)", "input split: expected a size of 1 or more, found 0"),
    (
        "float[4] x",
        "a = SequenceConstruct(x, x)\n b = SequenceConstruct(x)\n"
        "y = SequenceMap<body = f (float[4] u, float[4] v) => (float[4] w) { w = Add(u, v) }>(a, b)",
        "expected sequences of one length, found 1, 2",
    ),
    (
        "float[4] x",
        "a = SequenceConstruct(x, x)\n y = SequenceMap<body = f (float[4] u, float[4] v) => (float[4] w) { w = Add(u, v) }>(a)",
        "expected a body of 1 inputs, found 2",
    ),
    (
        "float[4] x",
        "o = Optional<type = float[4]>()\n y = OptionalGetElement(o)",
        "input: expected an optional value that is there, found none",
    ),
    ("float[4] x", "y = Optional()", "expected an input, or attribute type, found neither"),
    ("float[4] x", "o = Optional(x)\n y = Optional(o)", "input: expected a tensor or a sequence, found"),
    # Loops and branches.
    (
        "int64[2] m, float[2] x",
        "y = Loop<body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w) { d = Identity(c) w = Neg(v) }>(m, , x)",
        "M: expected one element, found tensor<2xi64>",
    ),
    (
        "int64 m, float[2] x",
        "y = Loop<body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w) { d = Identity(c) w = Cast<to = 7>(v) }>(m, , x)",
        "value 'v' that the loop carries: expected tensor<2xf32>, found tensor<2xi64>",
    ),
    (
        "int64 m, float[2] x",
        "y = Loop<body = b (int64 i, bool c, float[2] v) => (bool d) { d = Identity(c) }>(m, , x)",
        "expected a body of 3 inputs, found 3, and 1 outputs",
    ),
    (
        "int64 m, float[2] x",
        "y = Loop<body = b (int64 i, bool c) => (bool d, float[2] w) { d = Identity(c) w = Neg(x) }>(m, , x)",
        "expected a body of 3 inputs, found 2, and 2 outputs",
    ),
    (
        "bool c, float[2] x",
        "y = If<then_branch = a () => (float[2] u) { u = Neg(x) }, "
        "else_branch = b () => (float[2] u, float[2] v) { u = Neg(x)\n v = Abs(x) }>(c)",
        "expected branches of as many outputs, found",
    ),
    (
        "float[2] x",
        "s = SequenceConstruct(x)\n"
        "y = Loop<body = b (int64 i, bool c, float[2] u) => (bool d, float[2] v) { d = Identity(c)\n v = Neg(u) }>(s, , x)",
        "inputs M and cond: expected tensors, found others",
    ),
    *(
        (
            "float[2, 3] x",
            f"y = Scan<num_scan_inputs = {count}, body = b (float[3] u) => (float[3] v) {{ v = Neg(u) }}>(x)",
            f"attribute num_scan_inputs: expected 1 to 1, found {count}",
        )
        for count in (0, 2)
    ),
    *(
        (
            "8: float[1, 2, 3] x",
            f"y = Scan<num_scan_inputs = {count}, body = b (float[3] u) => (float[3] v) {{ v = Neg(u) }}>( , x)",
            f"attribute num_scan_inputs: expected 1 to 1, found {count}",
        )
        for count in (0, 2)
    ),
    *(
        (
            f"8: float{state} s, float{data} x",
            "y = Scan<num_scan_inputs = 1, body = b (float t, float u) => (float v) { v = Add(t, u) }>( , s, x)",
            "expected states [batch, ...] and inputs [batch, sequence, ...], found tensor<",
        )
        for state, data in (("[2]", "[2]"), ("", "[2, 3]"))
    ),
    (
        "float[2, 3] x",
        "y = Scan<num_scan_inputs = 1, scan_input_axes = [0, 1], body = b (float[3] u) => (float[3] v) { v = Neg(u) }>(x)",
        "attribute scan_input_axes: expected 1 value(s), found [0, 1]",
    ),
    (
        "float[2] x",
        "s = SequenceEmpty()\n i = Constant<value_int = 1>()\n t = SequenceInsert(s, x, i)\n y = SequenceLength(t)",
        "input position: expected a value in [0, 0] in a sequence of 0 elements, found 1",
    ),
    (
        "float[2] x",
        "s = SequenceEmpty()\n i = Constant<value_int = 0>()\n t = SequenceErase(s, i)\n y = SequenceLength(t)",
        "input position: expected none in a sequence of 0 elements, found 0",
    ),
    ("float[2] x", "y, , z = Relu(x)", "expected at most 1 output(s), found 2 in use"),
    (
        "float[1, 7, 1] x, int64 s = {4}, float[8] w",
        "y = STFT(x, s, w)",
        "input signal: expected at least one frame of 8 elements, found [1, 7, 1]",
    ),
    (
        "float[3, 2, 4] x, float[1, 8, 4] w, float[1, 8, 2] r",
        "y = LSTM<hidden_size = 2, clip = 0.0>(x, w, r)",
        "attribute clip: expected a number above 0, found 0.0",
    ),
    # Training.
    (
        "float r, int64 t, float[2] x",
        'y, z = ai.onnx.preview.training.Momentum<norm_coefficient = 0.0, alpha = 0.9, beta = 0.9, mode = "fast">(r, t, x, x, x)',
        "attribute mode: expected standard or nesterov, found 'fast'",
    ),
    (
        "float[2] x",
        'z = Mul(x, x)\n y = ai.onnx.preview.training.Gradient<xs = ["x"], y = "z">(x, x)',
        "expected an input for each of x, each named once, found 2",
    ),
    (
        "float[2] x",
        'z = Mul(x, x)\n y, w = ai.onnx.preview.training.Gradient<xs = ["x", "x"], y = "z">(x, x)',
        "expected an input for each of x, x, each named once, found 2",
    ),
    # Operators of ONNX Runtime.
    (
        "float[1, 1, 5] x, float[1, 1, 3] w",
        'y = com.microsoft.FusedConv<activation = "LeakyRelu", activation_params = [0.1, 0.2]>(x, w)',
        "activation LeakyRelu: expected the parameters alpha, found [0.1",
    ),
    *(
        (
            "float[1, 3, 8] x, float[8, 24] w",
            f"y = com.microsoft.Attention<num_heads = 2, qkv_hidden_sizes = {sizes}>(x, w)",
            f"attribute qkv_hidden_sizes: expected three numbers with the sum 24, found {sizes}",
        )
        for sizes in ([8, 16], [8, 8, 9])
    ),
    (
        "float[1, 3, 8] x, float[8, 25] w",
        "y = com.microsoft.Attention<num_heads = 2>(x, w)",
        "expected three numbers with the sum 25, found [8, 8",
    ),
    (
        "float[1, 3, 9] x, float[9, 27] w",
        "y = com.microsoft.Attention<num_heads = 2>(x, w)",
        "input weights: expected [batch, sequence, a multiple of 2 heads]",
    ),
    (
        "float[1, 3, 8] x, float[8, 24] w",
        "y = com.microsoft.Attention<num_heads = 0>(x, w)",
        "input weights: expected [batch, sequence, a multiple of 0",
    ),
    *(
        (
            f"float[1, 3, 8] x, float[8, 24] w, float{shape} p",
            "y, q = com.microsoft.Attention<num_heads = 2>(x, w, , , p)",
            f"input past: expected [2, batch, heads, sequence, elements of a head], found {shape}",
        )
        for shape in ([2, 1, 2, 5], [3, 1, 2, 5, 4])
    ),
    *(
        (
            f"float[2, 3, 8] x, float[8, 24] w, int32{shape} m",
            "y = com.microsoft.Attention<num_heads = 2>(x, w, , m)",
            f"input mask: expected {text}, found {shape}",
        )
        for shape, text in (
            ([1, 1, 1, 1, 3], "1 to 4 dimensions"),
            ([3], "one number for each of 2 entries, two, or three and two more"),
            ([1], "one number for each of 2 entries, two, or three and two more"),
            ([7], "one number for each of 2 entries, two, or three and two more"),
        )
    ),
    (
        "float[1, 3, 8] x",
        "y, k, v, q = com.microsoft.MultiHeadAttention<num_heads = 2>(x, x, x)",
        "output qk: expected it not to be used, found a use",
    ),
    (
        "float[1, 3, n] x",
        "y = com.microsoft.MultiHeadAttention<num_heads = 2>(x, x, x)",
        "input query: expected heads of a known size above 0, found",
    ),
    (
        "float[1, 3, 0] x",
        "y = com.microsoft.MultiHeadAttention<num_heads = 2>(x, x, x)",
        "input query: expected heads of a known size above 0, found [1, 3, 2, 0]",
    ),
    (
        "float[2, 8] x, uint8[4, 1, 2] b = {1, 2, 3, 4, 1, 2, 3, 4}, float[4] s = {1, 1, 1, 1}",
        "y = com.microsoft.MatMulNBits<K = 8, N = 4, block_size = 16>(x, b, s)",
        "expected bytes of at least 16 numbers of 4 bits in a row, found [4, 1, 2]",
    ),
    *(
        (
            "float[2, 8] x, uint8[4, 1, 4] b = {1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}, float[4] s = {1, 1, 1, 1}",
            f"y = com.microsoft.MatMulNBits<K = {k}, N = {n}, block_size = {block}, weight_prepacked = {packed}>(x, b, s)",
            f"expected positive N, K and block_size, and weights in their order, found {n}, {k}, {block}, {packed}",
        )
        for k, n, block, packed in ((0, 4, 16, 0), (8, 0, 16, 0), (8, 4, 0, 0), (8, 4, 16, 1))
    ),
    *(
        (
            f"float[2, 8] x, float[2, 3] r, float[{experts}, 5, 8] w, float[{experts}, 8, 5] v",
            f"y = com.microsoft.MoE<{attributes}>(x, r, w, , v)",
            message,
        )
        for experts, attributes, message in (
            (3, "use_sparse_mixer = 1", "attribute use_sparse_mixer: expected 0, found 1"),
            (3, "swiglu_limit_after_activation = 1", "attribute swiglu_limit_after_activation: expected 0, found 1"),
            (3, "k = 0", "attribute k: expected 1 to 3, the number of experts, found 0"),
            (3, "k = 4", "attribute k: expected 1 to 3, the number of experts, found 4"),
            (3, 'activation_type = "tanh"', "attribute activation_type: expected relu, gelu, silu, swiglu or identity, found 'tanh'"),
            (3, 'activation_type = "swiglu"', "attribute swiglu_fusion: expected 1 or 2 where there is no fc3, found 0"),
        )
    ),
    *(
        (
            "float[1, 1, 16] q, float[1, 1, 8] k, float[1, 1, 3, 4] s, int32[1] n, int32 t",
            f"y, a, b{more} = com.microsoft.GroupQueryAttention<num_heads = 4, kv_num_heads = 2{attribute}>(q, k, k, , , n, t)",
            message,
        )
        for more, attribute, message in (
            ("", ', k_quant_type = "PER_TENSOR"', "expected caches of floats that grow, and no output of scores, found"),
            ("", ', v_quant_type = "PER_TENSOR"', "expected caches of floats that grow"),
            ("", ", qk_output = 1", "expected caches of floats that grow"),
            ("", ", sliding_window_cache = 1", "expected caches of floats that grow"),
            (", c", "", "expected caches of floats that grow"),
            ("", ", do_rotary = 1", "inputs cos_cache and sin_cache: expected both where do_rotary is set, found none"),
        )
    ),
    *(
        (
            "float[1, 1, 16] q, float[1, 1, 8] k, int32[1] n, int32 t, float[9, 2] c",
            f"y, a, b = com.microsoft.GroupQueryAttention<num_heads = 4, kv_num_heads = 2, do_rotary = 1>(q, k, k, , , n, t, {caches})",
            "inputs cos_cache and sin_cache: expected both where do_rotary is set, found none",
        )
        for caches in ("c", ", c")
    ),
    (
        "float[1, 1, 16] q, float[1, 1, 8] k, int32[1] n, int32 t, float[9, 3] c",
        "y, a, b = com.microsoft.GroupQueryAttention<num_heads = 4, kv_num_heads = 2, do_rotary = 1>(q, k, k, , , n, t, c, c)",
        "input cos_cache: expected at most 2 columns for [1, 1, 4, 4], found [9, 3]",
    ),
    (
        "float[2, 3] x, float[1, 2, 3] s, float[3] g",
        "y = com.microsoft.SkipLayerNormalization(x, s, g)",
        "input skip: expected at most 2 dimensions as input has, found [1, 2, 3]",
    ),
    *(
        (
            "float[2, 3] x, float[3] g",
            f"{outputs} = com.microsoft.SkipLayerNormalization(x, x, g)",
            "outputs mean and inv_std_var: expected them not to be used, as only training does, found a use",
        )
        for outputs in ("y, m", "y, , v")
    ),
    (
        "float s, uint8 z, uint8[2] x",
        "y = com.microsoft.QLinearConcat<axis = 0>(s, z, x, s)",
        "expected tensors, each with its scale and zero point, found 2 inputs",
    ),
    ("float s, uint8 z", "y = com.microsoft.QLinearConcat<axis = 0>(s, z)", "each with its scale and zero point, found 0 inputs"),
    # ai.onnx.ml.
    *(
        ("int64[2] x", f"y = ai.onnx.ml.LabelEncoder<{attributes}>(x)", message)
        for attributes, message in (
            ("values_int64s = [1]", "attributes keys_*: expected one of them, found 0"),
            ("keys_int64s = [1], keys_floats = [1.0], values_int64s = [1]", "attributes keys_*: expected one of them, found 2"),
            ("keys_int64s = [1]", "attributes values_*: expected one of them, found 0"),
            ("keys_int64s = [1, 2], values_int64s = [1]", "expected a value for each of 2 keys, found 1"),
            ("keys_floats = [1.0], values_int64s = [1]", "input X: expected elements of the type of the keys, float32, found int64"),
            (
                "keys_int64s = [1], values_int64s = [1], default_tensor = int64[2] {1, 2}",
                "attribute default_tensor: expected one element, found [2]",
            ),
        )
    ),
    (
        "int64[2] x",
        'y = ai.onnx.ml.OneHotEncoder<cats_strings = ["a"]>(x)',
        "attribute cats_int64s: expected categories for data of type int64",
    ),
    (
        "string[2] x",
        "y = ai.onnx.ml.OneHotEncoder<cats_int64s = [1]>(x)",
        "attribute cats_strings: expected categories for data of type string",
    ),
    ("float x, int64[1] i", "y = ai.onnx.ml.ArrayFeatureExtractor(x, i)", "input X: expected features, found a scalar"),
    (
        "float[2, 3] x",
        "y = ai.onnx.ml.FeatureVectorizer<inputdimensions = [3]>(x, x)",
        "attribute inputdimensions: expected one for each of 2 inputs, found 1",
    ),
    (
        "float[2, 3] x",
        "y = ai.onnx.ml.Imputer<imputed_value_int64s = [1]>(x)",
        "attribute imputed_value_floats: expected values for data of type float32, found none",
    ),
    (
        "int64[2, 3] x",
        "y = ai.onnx.ml.Imputer<imputed_value_floats = [1.0]>(x)",
        "attribute imputed_value_int64s: expected values for data of type int64, found none",
    ),
    ("float x", "y = ai.onnx.ml.Imputer<imputed_value_floats = [1.0]>(x)", "input X: expected features, found a scalar"),
    ("float[2, 3] x", 'y = ai.onnx.ml.Normalizer<norm = "L3">(x)', "attribute norm: expected MAX, L1 or L2, found 'L3'"),
    ("float x", 'y = ai.onnx.ml.Normalizer<norm = "L1">(x)', "input X: expected rank 1 or 2, found []"),
    ("float[1, 2, 3] x", 'y = ai.onnx.ml.Normalizer<norm = "L1">(x)', "input X: expected rank 1 or 2, found [1, 2, 3]"),
    *(
        ("float[2, 3] x", f"y = ai.onnx.ml.LinearRegressor<{attributes}>(x)", message)
        for attributes, message in (
            ("coefficients = [1.0, 2.0, 3.0], targets = 0", "attribute targets: expected 1 or more, found 0"),
            (
                "coefficients = [1.0, 2.0, 3.0], targets = 2",
                "attribute coefficients: expected 2 rows of the same length, found 3 numbers",
            ),
            ('coefficients = [1.0, 2.0, 3.0], post_transform = "RELU"', "attribute post_transform: expected NONE, SOFTMAX, LOGISTIC"),
        )
    ),
    (
        "float[1, 2, 3] x",
        "y = ai.onnx.ml.LinearRegressor<coefficients = [1.0, 2.0, 3.0]>(x)",
        "expected a shape [rows, features] or [features], found [1, 2, 3]",
    ),
    *(
        ("float[2, 3] x", f"y, s = ai.onnx.ml.LinearClassifier<coefficients = [1.0, 2.0, 3.0]{attributes}>(x)", message)
        for attributes, message in (
            ("", "expected a label for each of 0 classes, found 0"),
            (", classlabels_ints = [1], intercepts = [1.0, 2.0]", "expected a label for each of 2 classes, found 1"),
            (', classlabels_ints = [1], classlabels_strings = ["a"]', "expected class labels as integers or as strings, found both"),
        )
    ),
    ("float[2, 3] x", "y = ai.onnx.ml.ZipMap(x)", "attribute classlabels_int64s: expected labels, found none"),
    *(
        ("float[2, 3] x", f"y = ai.onnx.ml.SVMRegressor<{attributes}>(x)", message)
        for attributes, message in (
            (
                'coefficients = [1.0], rho = [0.0], kernel_type = "TANH"',
                "attribute kernel_type: expected LINEAR, POLY, RBF or SIGMOID, found",
            ),
            (
                "coefficients = [1.0], rho = [0.0], kernel_params = [1.0]",
                "attribute kernel_params: expected gamma, coef0 and degree, found 1",
            ),
            ("coefficients = [1.0], rho = [0.0, 1.0]", "attribute rho: expected one number, found 2"),
            (
                "coefficients = [1.0, 2.0], rho = [0.0], n_supports = 2, support_vectors = [1.0, 2.0, 3.0]",
                "attribute support_vectors: expected 2 rows of the same length, found 3 numbers",
            ),
            (
                "coefficients = [1.0, 2.0], rho = [0.0], n_supports = 2",
                "attribute support_vectors: expected 2 rows of the same length, found 0",
            ),
        )
    ),
    *(
        (
            "float[2, 1] x",
            f"y, s = ai.onnx.ml.SVMClassifier<classlabels_ints = [0, 1], support_vectors = [1.0, 2.0], {attributes}>(x)",
            message,
        )
        for attributes, message in (
            (
                "coefficients = [1.0, 2.0], rho = [0.0], vectors_per_class = [2]",
                "attribute vectors_per_class: expected a number for each of 2 classes, found [2]",
            ),
            (
                "coefficients = [1.0, 2.0], rho = [0.0], vectors_per_class = [3, -1]",
                "attribute vectors_per_class: expected a number for each of 2 classes, found [3, -1]",
            ),
            (
                "coefficients = [1.0], rho = [0.0], vectors_per_class = [1, 1]",
                "expected 2 coefficients for each of 1 classes, and 1 numbers rho, found 1, and 1",
            ),
            ("coefficients = [1.0, 2.0], rho: floats = [], vectors_per_class = [1, 1]", "and 1 numbers rho, found 2, and 0"),
            (
                "coefficients = [1.0, 2.0], rho = [0.0], vectors_per_class = [1, 1], prob_a = [1.0], prob_b: floats = []",
                "attributes prob_a, prob_b: expected 1 numbers each, found 1 and 0",
            ),
        )
    ),
    (
        "float[2, 1] x",
        "y, s = ai.onnx.ml.SVMClassifier<classlabels_ints = [0], support_vectors = [1.0], coefficients = [1.0], rho = [0.0], "
        "vectors_per_class = [1]>(x)",
        "attribute vectors_per_class: expected a number for each of 1 classes, found [1]",
    ),
]

WEIGHTS = {"treeids": [0, 0], "nodeids": [1, 2], "ids": [0, 0], "weights": [1.0, 2.0]}
REGRESSOR = STUMP | {f"target_{name}": values for name, values in WEIGHTS.items()} | {"n_targets": 1}
CLASSIFIER = STUMP | {f"class_{name}": values for name, values in WEIGHTS.items()} | {"classlabels_int64s": [0, 1, 2]}
NUMBERED = {
    "leaf_targetids": [0, 0],
    "leaf_weights": np.float32([1, 2]),
    "nodes_falseleafs": [1],
    "nodes_falsenodeids": [1],
    "nodes_featureids": [0],
    "nodes_modes": np.uint8([0]),
    "nodes_splits": np.float32([0.5]),
    "nodes_trueleafs": [1],
    "nodes_truenodeids": [0],
    "tree_roots": [0],
    "n_targets": 1,
}
NONE = {name: [] for name in STUMP}

TREES = [
    *((REGRESSOR, {name: values[1:]}, f"attribute {name}: expected") for name, values in STUMP.items() if name != "nodes_nodeids"),
    (REGRESSOR, {"nodes_missing_value_tracks_true": [0]}, "attribute nodes_missing_value_tracks_true: expected"),
    *(
        (REGRESSOR, {f"target_{name}": WEIGHTS[name][1:]}, "expected lists of weights of one length, found 2 and 1")
        for name in ("treeids", "nodeids", "weights")
    ),
    (REGRESSOR, {"target_ids": [0]}, "expected lists of weights of one length, found 1 and 2"),
    (
        REGRESSOR,
        NONE | {f"target_{name}": [] for name in WEIGHTS},
        "attribute nodes_nodeids: expected at least one node, found none",
    ),
    (REGRESSOR, {"nodes_nodeids": [0, 1, 1]}, "expected each node of a tree once, found one twice"),
    (REGRESSOR, {"nodes_featureids": [-1, 0, 0]}, "expected the number of a feature in [0, 2147483648), found -1"),
    (REGRESSOR, {"aggregate_function": "MEDIAN"}, "attribute aggregate_function: expected AVERAGE, SUM, MIN or MAX, found 'MEDIAN'"),
    (REGRESSOR, {"post_transform": "RELU"}, "attribute post_transform: expected NONE, SOFTMAX, LOGISTIC"),
    (REGRESSOR, {"nodes_values_as_tensor": np.float32([0.5, 0, 0])}, "attribute nodes_values: expected a list or a tensor, found both"),
    (CLASSIFIER, {"classlabels_int64s": []}, "attribute classlabels_int64s: expected at least one label, found none"),
    (CLASSIFIER, {"base_values": [1.0]}, "attribute base_values: expected one for each of 3 classes, found 1"),
    (NUMBERED, {"leaf_weights": np.float32([1])}, "attribute leaf_weights: expected one for each of 2 leaves, found 1"),
    (NUMBERED, {"nodes_modes": np.uint8([7])}, "attribute nodes_modes: expected numbers in [0, 7), found 7"),
    *(
        (NUMBERED, {name: value}, f"attribute {name}: expected a number in [0, ")
        for name, end in (("aggregate_function", 4), ("post_transform", 5))
        for value in (-1, end)
    ),
    *(
        (NUMBERED, {name: [0, 0]}, f"attribute {name}: expected")
        for name in ("nodes_trueleafs", "nodes_falseleafs", "nodes_truenodeids", "nodes_falsenodeids")
    ),
    *((NUMBERED, {name: np.repeat(NUMBERED[name], 2)}, f"attribute {name}: expected") for name in ("nodes_modes", "nodes_splits")),
    (NUMBERED, {"nodes_missing_value_tracks_true": [0, 0]}, "attribute nodes_missing_value_tracks_true: expected"),
    (NUMBERED, {"tree_roots": [3]}, "expected the number of a root in [0, 3), found 3"),
    (NUMBERED, {"tree_roots": [-1]}, "expected the number of a root in [0, 3), found -1"),
    (NUMBERED, {"nodes_modes": np.uint8([6])}, "attribute membership_values: expected 1 sets, each of which ends with NaN, found 0"),
    (
        NUMBERED,
        {"membership_values": np.float32([1, np.nan])},
        "attribute membership_values: expected 0 sets, each of which ends with NaN, found 1",
    ),
]


@pytest.mark.parametrize(("inputs", "nodes", "message"), REFUSED)
def test_nodes_that_are_refused(inputs, nodes, message):
    opset, _, inputs = inputs.rpartition(": ")
    model = parse_model(f'<ir_version: 10, opset_import: ["" : {opset or 24}, {DOMAINS}]> main ({inputs}) => (y) {{ {nodes} }}')
    with pytest.raises(OnnxError, match=re.escape(message)):
        from_onnx(model)


@pytest.mark.parametrize(("given", "change", "message"), TREES)
def test_trees_that_are_refused(given, change, message):
    op = "TreeEnsembleRegressor" if given is REGRESSOR else "TreeEnsembleClassifier" if given is CLASSIFIER else "TreeEnsemble"
    attributes = {n: numpy_helper.from_array(v) if isinstance(v, np.ndarray) else v for n, v in (given | change).items()}
    outputs = ["y", "s"] if given is CLASSIFIER else ["y"]
    # An empty list says no type.
    empty = [name for name, value in attributes.items() if value == []]
    node = helper.make_node(op, ["x"], outputs, domain="ai.onnx.ml", **{n: v for n, v in attributes.items() if n not in empty})
    node.attribute.extend(helper.make_attribute(n, [], attr_type=KINDS[type(given[n][0])]) for n in empty)
    model = model_of([node], {"x": [2, 1]}, outputs)
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 5 if given is NUMBERED else 3))
    with pytest.raises(OnnxError, match=re.escape(message)):
        from_onnx(model)
