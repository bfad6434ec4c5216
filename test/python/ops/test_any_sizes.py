"""Every operator with symbolic sizes: compiled once, it gives at any sizes what the program of these sizes gives."""

import numpy as np
import pytest
from oracle import values
from support import Const, run_program
from symbolic_ops import Case, agrees, agrees_with_symbols, cases_of, symbolic_program

from relayc.dialects.relay import OPS, Pattern, TensorType, build
from relayc.dialects.relay.names import ir_name
from relayc.pipelines.te.rules.core import RULES


def f32(*shapes: str) -> list[str]:
    return [f"float32[{shape}]" for shape in shapes]


FLOAT_UNARY = "exp log log2 log10 sqrt rsqrt sigmoid sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf ceil floor round trunc"
ANY_UNARY = "abs negative sign isnan isinf isfinite copy nn.relu"
BINARY = (
    "add subtract multiply divide maximum minimum equal not_equal less less_equal greater greater_equal floor_divide mod floor_mod power"
)
INTEGER_BINARY = "bitwise_and bitwise_or bitwise_xor left_shift right_shift floor_divide floor_mod power add"

FEW_BITS = [
    np.random.default_rng(0).integers(0, 1 << 32, (2, 8, 16), np.uint32),
    np.full((2, 2, 16), 0.1, np.float32),
    np.full((1, 1, 1), 8, np.uint8),
]
"""Weights of nn.dense_blocks: 32 columns of two blocks of 32 numbers of 4 bits."""
STUMPS = (
    np.array([0, 3], np.int32),
    np.array([1, 0, 1, 4, 3, 4], np.int32),
    np.array([0, 0, 0, 1, 0, 0], np.int32),
    np.array([0.5, np.nan, np.nan, -0.5, np.nan, np.nan], np.float32),
    np.array([-np.inf], np.float32),
    np.array([False]),
)
"""Tables of two trees of one comparison each."""

CASES: dict[str, list[Case]] = {
    FLOAT_UNARY: [Case(f32("n, 3, m"))],
    ANY_UNARY: [Case(f32("n, 3, m")), Case(["float16[n]"])],
    "logical_not bitwise_not": [Case(["bool[n, 5]"])],
    BINARY: [Case(f32("n, 3, m", "3, 1")), Case(f32("n", "1"))],
    INTEGER_BINARY: [Case(["int32[n, m]", "int32[m]"])],
    "logical_and logical_or logical_xor": [Case(["bool[n, m]", "bool[m]"])],
    "nn.leaky_relu": [Case(f32("n, m"), {"alpha": 0.1})],
    "nn.prelu": [Case(f32("n, c, 5", "c")), Case(f32("n, c", "c"), {"axis": 1})],
    "nn.softmax": [Case(f32("n, m"), lows={"m": 1}), Case(f32("n, m, 5"), {"axis": 1}, {"m": 1}), Case(["float16[n, m]"], lows={"m": 1})],
    "nn.log_softmax": [Case(f32("n, m"), lows={"m": 1})],
    "nn.dropout": [Case(f32("n, m"))],
    "where": [Case(["bool[n, 1]", *f32("m", "n, m")])],
    "cast": [Case(f32("n, m"), {"dtype": "int32"})],
    "reinterpret": [Case(f32("n, m"), {"dtype": "uint32"}), Case(["int8[n]"], {"dtype": "bool"})],
    "clip": [Case(f32("n, m"), {"a_min": -0.5, "a_max": 0.5})],
    # made from attributes
    "full": [Case(f32(""), {"shape": ("n", 3)}, free="n")],
    "zeros": [Case([], {"shape": ("n", "2*n + 1")}, free="n")],
    "ones": [Case([], {"shape": (2, "n")}, free="n")],
    "arange": [
        Case([], {"start": 0, "stop": "n", "step": 1, "dtype": "int64"}, free="n"),
        Case([], {"start": "past", "stop": "past + n", "step": 2, "dtype": "int32"}, free="n past"),
        Case([], {"start": "n", "stop": 0, "step": -3, "dtype": "int64"}, free="n"),
    ],
    "shape_of": [Case(f32("n, m, n*m"))],
    "sizes": [Case([], {"values": ("n", 3, "n*m - 1")}, free="n m")],
    # views
    "reshape": [
        Case(f32("n, m, 4"), {"newshape": (0, -1)}, {"n": 1}),
        Case(f32("n, m, 4"), {"newshape": (-1,)}),
        Case(f32("n, 12"), {"newshape": (0, 3, 4)}),
        Case(f32("n, 6"), {"newshape": ("2*n", 3)}),
        Case(f32("n, 0, 4"), {"newshape": (0, 0, 3)}),
    ],
    "expand_dims": [Case(f32("n, m"), {"axis": 1})],
    "squeeze": [Case(f32("n, 1, m"), {"axis": (1,)})],
    "nn.batch_flatten": [Case(f32("n, m, 3"))],
    # movement
    "transpose": [Case(f32("n, m, 5"), {"axes": (2, 0, 1)}), Case(f32("n, m")), Case(["int8[n, m]"])],
    "reverse": [Case(f32("n, m"), {"axis": 0}), Case(f32("n, m"), {"axis": 1}), Case(f32("n, 4"), {"axis": 1})],
    "layout_transform": [
        Case(f32("n, 16, h, w"), {"src_layout": "NCHW", "dst_layout": "NCHW8c"}),
        Case(f32("n, 2, h, w, 8"), {"src_layout": "NCHW8c", "dst_layout": "NHWC"}),
        Case(f32("n, 8*c, h, 3"), {"src_layout": "NCHW", "dst_layout": "NCHW8c"}),
    ],
    "nn.depth_to_space": [
        Case(f32("n, 8, h, w"), {"block_size": 2}),
        Case(f32("n, h, w, 8"), {"block_size": 2, "layout": "NHWC", "mode": "CRD"}),
    ],
    "nn.space_to_depth": [Case(f32("n, 3, 2*h, 2*w"), {"block_size": 2})],
    "strided_slice": [
        Case(f32("n, m"), {"begin": (0, 1), "end": (2, -1)}),
        Case(f32("n, m"), {"begin": (-3,), "end": (1 << 62,), "axes": (1,)}),
        Case(f32("n, m"), {"begin": (0,), "end": ("n//2",), "axes": (0,)}),
        Case(f32("n, m"), {"begin": ("n//3",), "end": ("n",), "strides": (2,)}),
        Case(f32("n, m"), {"begin": (-1,), "end": (-(1 << 62),), "strides": (-1,), "axes": (0,)}),
        Case(f32("n, m"), {"begin": (1 << 62, 0), "end": (-(1 << 62), 2), "strides": (-2, 1)}),
        Case(f32("n, 5"), {"begin": (-1, -1), "end": (-(1 << 62), 1), "strides": (-1, -2)}),
        Case(f32("n, 3*m"), {"begin": ("m",), "end": ("m",), "axes": (1,), "slice_mode": "size"}),
    ],
    "split": [
        Case(f32("n, 3*m"), {"indices_or_sections": 3, "axis": 1}),
        Case(f32("n + 4, m"), {"indices_or_sections": (1, "n + 1"), "axis": 0}),
    ],
    "concatenate": [Case(f32("n, 3", "m, 3", "2, 3"), {"axis": 0}), Case(f32("n, past, 4", "n, 1, 4"), {"axis": 1})],
    "stack": [Case(f32("n, m", "n, m", "n, m"), {"axis": 1})],
    "broadcast_to": [Case(f32("m"), {"shape": ("n", "m")}, free="n"), Case(f32("n, 1"), {"shape": ("n", "k")}, free="k")],
    "tile": [Case(f32("n, 3"), {"reps": (2, 1, 3)}), Case(f32("n, 3"), {"reps": ("k", 2)}, free="k"), Case(f32("n, m"), {"reps": (0, 2)})],
    "repeat": [
        Case(f32("n, m"), {"repeats": 3, "axis": 0}),
        Case(f32("n, m"), {"repeats": "k", "axis": 1}, free="k"),
        Case(f32("n, m"), {"repeats": 2}),
    ],
    "nn.pad": [
        Case([*f32("n, m"), Const(np.float32(2))], {"pad_width": (1, 2, 0, 3)}),
        Case([*f32("n, m"), Const(np.float32(2))], {"pad_width": (0, "k", "2*k", 0)}, free="k"),
        Case(f32("n, m", ""), {"pad_width": (1, 2, 0, 3)}),
        Case([*f32("n, m"), Const(np.float32(0))], {"pad_width": (1, 2, 0, 3), "pad_mode": "edge"}, {"n": 1, "m": 1}),
        Case([*f32("n, m"), Const(np.float32(0))], {"pad_width": (1, 2, 0, 3), "pad_mode": "reflect"}, {"n": 3, "m": 4}),
    ],
    "nn.mirror_pad": [Case(f32("n, m"), {"pad_width": (1, 2, 0, 3)}, {"n": 2, "m": 3})],
    "trilu": [Case(["float32[b, n, m]", "int64[]"]), Case(["float32[n, n]", "int64[]"], {"upper": False})],
    # computed indices
    "take": [
        Case(["float32[n, 5]", "int64[m]"], {"axis": 0}, {"n": 1}),
        Case(["float32[b, n, 5]", "int64[b, m]"], {"axis": 1, "batch_dims": 1}, {"n": 1}),
        Case(["float32[n, m]", "int64[k]"], {"mode": "wrap"}, {"n": 1, "m": 1}),
        Case(["float32[b, n, 5]", Const(np.array(-1))], {"axis": 1}, {"n": 1}),
        Case(["float32[b, n, 5]", Const(np.array(0))], {"axis": 1}, {"n": 1}),
        Case(["float32[b, n, 5]", Const(np.array(2))], {"axis": 1}, {"n": 1}),
        Case(["float32[b, n]", Const(np.array(7))], {"axis": 1, "mode": "wrap"}, {"n": 1}),
    ],
    "gather": [Case(["float32[n, m]", "int64[k, m]"], {"axis": 0, "in_bounds": True}, {"n": 1})],
    "gather_nd": [Case(["float32[n, m, 3]", "int64[2, k]"], {"in_bounds": True}, {"n": 1, "m": 1})],
    "worst_index": [
        Case(["int64[n, m]"], {"size": "n"}),
        Case(["uint8[n, m]"], {"size": 2}),
        Case(["int32[n]"], {"size": 3, "times": "n"}),
    ],
    "one_hot": [
        Case(["int64[n]", *f32("", "")], {"depth": 5}),
        Case(["int64[n]", *f32("", "")], {"depth": "k", "axis": 0}, free="k"),
    ],
    "scatter_elements": [
        Case(["float32[n, m]", "int64[k, m]", "float32[k, m]"], {"axis": 0, "in_bounds": True}, {"n": 1}),
        Case(["float32[n, m]", "int64[k, m]", "float32[k, m]"], {"axis": 0, "reduction": "mean", "in_bounds": True}, {"n": 1}),
    ],
    "scatter_nd": [Case(["float32[n, m]", "int64[1, k]", "float32[k, m]"], {"mode": "add", "in_bounds": True}, {"n": 1})],
    # reductions and scans
    "sum prod max min": [Case(f32("n, m, 3"), {"axis": (1,)}), Case(f32("n, m"), {"axis": (0,), "keepdims": True}), Case(f32("n, m"))],
    "mean": [Case(f32("n, m, 3"), {"axis": (1,)}), Case(["int32[n, m]"], {"axis": (0,), "keepdims": True}), Case(["float16[n, m]"])],
    "all": [Case(["bool[n, m]"], {"axis": (1,)})],
    "any": [Case(["bool[n, m]"], {"axis": (0,)})],
    "argmax": [Case(f32("n, m"), {"axis": (1,)}, {"m": 1}), Case(f32("n, m"), lows={"n": 1, "m": 1})],
    "argmin": [Case(f32("n, m"), {"axis": (0,), "select_last_index": True}, {"n": 1})],
    "variance": [Case(f32("n, m", "n, 1"), {"axis": (1,)}), Case(f32("n, m", "1, m"), {"axis": (0,), "unbiased": True}, {"n": 2})],
    "cumsum": [Case(f32("n, m"), {"axis": 1}), Case(f32("n, m"), {"axis": 0, "exclusive": True}), Case(["int64[n, m]"])],
    "cumprod": [Case(f32("n, m"), {"axis": 0})],
    "sort": [Case(f32("n, m"), {"axis": 1}), Case(f32("n, m"), {"axis": 0, "is_ascend": False})],
    "argsort": [Case(f32("n, m"), {"axis": 1, "dtype": "int64"})],
    "argsort_rows": [Case(f32("n, m")), Case(["int8[n, m]"])],
    "topk": [
        Case(f32("n, m"), {"k": 3, "axis": 1}, {"m": 3}),
        Case(f32("n, 64"), {"k": "k", "axis": 1}, {"k": 1}, free="k", highs={"k": 64}),
        Case(f32("n, m"), {"k": 40, "axis": 1, "is_ascend": True, "ret_type": "indices"}, {"m": 40}),
    ],
    # normalisations
    "nn.batch_norm": [Case(f32("n, c, h, 3", "c", "c", "c", "c"), positive=(4,))],
    "nn.layer_norm": [Case(f32("n, m, 8", "8", "8")), Case(f32("n, m", "m", "m"))],
    "nn.rms_norm": [Case(f32("n, m", "m")), Case(f32("n, m, 8", "8"))],
    "nn.instance_norm": [Case(f32("n, 3, h, w", "3", "3")), Case(f32("n, c, h", "c", "c"))],
    "nn.group_norm": [Case(f32("n, 8, h, w", "8", "8"), {"num_groups": 2}), Case(f32("n, 4*c, h", "4*c", "4*c"), {"num_groups": 4})],
    "nn.l2_normalize": [Case(f32("n, m"), {"eps": 1e-5, "axis": (1,)})],
    "nn.lrn": [Case(f32("n, c, h, w"), {"size": 5})],
    # products and windows
    "nn.dense": [Case(f32("n, m, 16", "24, 16")), Case(f32("n, k", "8, k"))],
    "nn.matmul": [Case(f32("n, k", "k, m")), Case(f32("k, n", "m, k"), {"transpose_a": True, "transpose_b": True}), Case(f32("k", "k, m"))],
    "nn.batch_matmul": [Case(f32("b, n, k", "b, m, k")), Case(f32("b, n, 8", "1, 8, m"), {"transpose_b": False})],
    "nn.bias_add": [Case(f32("n, c, h", "c"))],
    "nn.conv1d": [Case(f32("n, 3, w", "4, 3, 3"), {"padding": (1, 1)}, {"w": 1})],
    "nn.conv2d": [
        Case(f32("n, 3, h, w", "8, 3, 3, 3"), {"padding": (1, 1, 1, 1)}, {"h": 1, "w": 1}),
        Case(f32("n, 3, h, w", "8, 3, 3, 3"), {"strides": (2, 2)}, {"h": 3, "w": 3}),
        Case(f32("n, 8, h, w", "8, 1, 3, 3"), {"groups": 8, "padding": (1, 1, 1, 1), "dilation": (2, 1)}, {"h": 3, "w": 1}),
        Case(f32("n, 8, h, w", "6, 4, 1, 1"), {"groups": 2}, {"h": 1, "w": 1}),
        Case(f32("n, 8, h, w", "2*c, 4, 1, 1"), {"groups": 2, "out_layout": "NHWC"}, {"h": 1, "w": 1, "c": 1}),
    ],
    "nn.conv3d": [Case(f32("n, 2, d, h, 5", "3, 2, 2, 3, 3"), {"padding": (0, 1, 1)}, {"d": 2, "h": 1})],
    "nn.conv1d_transpose": [Case(f32("n, 3, w", "3, 4, 3"), {"strides": (2,)}, {"w": 1})],
    "nn.conv2d_transpose": [
        Case(f32("n, 3, h, w", "3, 4, 3, 3"), {"strides": (2, 2), "padding": (1, 1, 1, 1), "output_padding": (1, 1)}, {"h": 1, "w": 1}),
        Case(f32("n, 4, h, w", "4, 2, 2, 3"), {"groups": 2, "dilation": (1, 2)}, {"h": 1, "w": 1}),
    ],
    "nn.conv3d_transpose": [Case(f32("n, 2, d, 3, w", "2, 3, 2, 2, 2"), {"strides": (2, 1, 2)}, {"d": 1, "w": 1})],
    "nn.max_pool1d": [Case(f32("n, c, w"), {"pool_size": (3,), "strides": (2,), "padding": (1, 1)}, {"w": 1})],
    "nn.max_pool2d": [
        Case(f32("n, c, h, w"), {"pool_size": (3, 3), "strides": (2, 2), "padding": (1, 1, 1, 1)}, {"h": 1, "w": 1}),
        Case(f32("n, c, h, w"), {"pool_size": (3, 2), "strides": (2, 2), "ceil_mode": True}, {"h": 3, "w": 2}),
    ],
    "nn.max_pool3d": [Case(f32("n, 2, d, h, 5"), {"pool_size": (2, 3, 2)}, {"d": 2, "h": 3})],
    "nn.avg_pool1d": [Case(f32("n, c, w"), {"pool_size": (3,), "strides": (2,), "padding": (1, 1)}, {"w": 1})],
    "nn.avg_pool2d": [
        Case(f32("n, c, h, w"), {"pool_size": (3, 3), "strides": (2, 2), "padding": (1, 1, 1, 1)}, {"h": 1, "w": 1}),
        Case(f32("n, c, h, w"), {"pool_size": (3, 3), "padding": (1, 1, 1, 1), "count_include_pad": True}, {"h": 1, "w": 1}),
        Case(f32("n, c, h, w"), {"pool_size": (3, 2), "strides": (2, 2), "ceil_mode": True}, {"h": 3, "w": 2}),
        Case(f32("n, c, h, w"), {"pool_size": (2, 2), "dilation": (2, 3), "padding": (1, 1, 1, 1)}, {"h": 2, "w": 3}),
    ],
    "nn.avg_pool3d": [Case(f32("n, 2, d, h, 5"), {"pool_size": (2, 3, 2), "padding": (1, 1, 0)}, {"d": 2, "h": 3})],
    "nn.global_max_pool2d": [Case(f32("n, c, h, w"), lows={"h": 1, "w": 1})],
    "nn.global_avg_pool2d": [Case(f32("n, 8, h, w"), lows={"h": 1, "w": 1})],
    "nn.adaptive_max_pool1d": [Case(f32("n, 2, w"), {"output_size": (3,)}, {"w": 1})],
    "nn.adaptive_max_pool2d": [Case(f32("n, 2, h, w"), {"output_size": (3, 2)}, {"h": 1, "w": 1})],
    "nn.adaptive_max_pool3d": [Case(f32("n, 2, d, 4, w"), {"output_size": (1, 2, 3)}, {"d": 1, "w": 1})],
    "nn.adaptive_avg_pool1d": [Case(f32("n, 2, 4*w"), {"output_size": (4,)}, {"w": 1})],
    "nn.adaptive_avg_pool2d": [
        Case(f32("n, 2, h, w"), {"output_size": (3, 2)}, {"h": 1, "w": 1}),
        Case(f32("n, 2, h, w"), {"output_size": (1, 1)}, {"h": 1, "w": 1}),
    ],
    "nn.adaptive_avg_pool3d": [Case(f32("n, 2, d, 4, w"), {"output_size": (1, 2, 3)}, {"d": 1, "w": 1})],
    "nn.winograd_input_transform": [Case(f32("n, 2, h, w, 8"), lows={"h": 1, "w": 1})],
    "nn.winograd_output_transform": [
        Case(f32("n, 72, (h + 3)//4, (w + 3)//4, 8"), {"height": "h", "width": "w"}, {"h": 1, "w": 1}, free="h w")
    ],
    "nn.dense_blocks": [Case([*f32("n, m, 64"), *map(Const, FEW_BITS)], {"units": 20, "bits": 4, "block_size": 32})],
    "nn.col2im": [
        Case(f32("n, c, 3, 2, h, w"), {"image_shape": ("h + 2", "w + 1")}, {"h": 1, "w": 1}),
        Case(f32("n, c, 3, (w + 1)//2"), {"image_shape": ("w",), "strides": (2,), "padding": (1, 1)}, {"w": 1}, free="w"),
        Case(f32("n, 2, a, b, h - a + 1, 1"), {"image_shape": ("h", "b")}, {"h": 31, "a": 1, "b": 1}, highs={"a": 31}),
    ],
    "nn.max_pool_indices": [
        Case(f32("n, c, h, w", "n, c, h - 1, w - 2"), {"pool_size": (2, 3)}, {"h": 2, "w": 3}),
        Case(f32("n, c, w", "n, c, (w + 1)//2"), {"pool_size": (3,), "strides": (2,), "padding": (1, 1), "layout": "NCW"}, {"w": 1}),
    ],
    "det": [Case(f32("n, m, 2, 2")), Case(f32("n, m, m"))],
    # trees
    "ml.tree_leaves": [Case([*f32("n, m"), *map(Const, STUMPS)], {"depth": 1, "num_features": 2}, {"m": 2})],
    "ml.leaf_weights": [Case([Const(np.array([[1, 2], [2, 0]], np.int32)), *f32("n + 3, m")])],
    "searchsorted": [Case(f32("m", "n, 2"), {"dtype": "int64"}), Case(f32("m", "n"), {"right": True})],
    # random numbers
    "random.threefry_generate": [
        Case(["uint32[2]"], {"out_shape": ("n", "3*m")}, free="n m"),
        Case(["uint64[8]"], {"out_shape": ("n", "3*m"), "dtype": "uint64"}, free="n m"),
    ],
    # sparse matrices
    "nn.sparse_dense": [
        Case([*f32("m, k", "n"), "int32[n]", "int32[u]"], lows={"k": 1, "u": 1}),
        Case([*f32("m, 3*k", "n, 2, 3"), "int64[n]", "int64[u]"], {"sparse_lhs": True}, {"k": 1, "u": 1}),
    ],
    # regions
    "vision.roi_align": [
        Case(f32("n, c, h, w", "r, 5"), {"pooled_size": (2, 3), "spatial_scale": 1.0, "sample_ratio": 2}, {"n": 1, "h": 1, "w": 1}),
        Case(f32("n, c, h, w", "r, 5"), {"pooled_size": (2, 1), "spatial_scale": 1.0, "aligned": True}, {"n": 1, "h": 1, "w": 1}),
        Case(f32("1, 2, h, w", "r, 5"), {"pooled_size": (2, 1), "spatial_scale": 0.3, "most_samples": "k"}, {"h": 1, "w": 1}, free="k"),
    ],
    "vision.roi_pool": [Case(f32("n, c, h, w", "r, 5"), {"pooled_size": (2, 3), "spatial_scale": 2.0}, {"n": 1, "h": 1, "w": 1})],
    # resampling
    "image.resize1d": [Case(f32("n, 2, w"), {"size": ("3*w",), "method": "linear"}, {"w": 1})],
    "image.resize2d": [
        Case(
            f32("n, 2, h, w"),
            {"size": ("2*h", "2*w"), "method": "nearest_neighbor", "coordinate_transformation_mode": "asymmetric"},
            {"h": 1, "w": 1},
        ),
        Case(f32("n, 2, h, w"), {"size": ("2*h", "2*w"), "method": "linear"}, {"h": 1, "w": 1}),
        Case(f32("n, 2, h, w"), {"size": (7, 5), "method": "linear"}, {"h": 1, "w": 1}),
        Case(f32("n, 2, h, w"), {"size": (7, 5), "method": "nearest_neighbor"}, {"h": 1, "w": 1}),
        Case(
            f32("n, 2, h, w"),
            {"size": ("a", "b"), "method": "cubic", "coordinate_transformation_mode": "align_corners"},
            {"h": 1, "w": 1, "a": 1, "b": 1},
            free="a b",
        ),
        Case(
            f32("n, 2, h, w"),
            {"size": ("a", "b"), "coordinate_transformation_mode": "pytorch_half_pixel"},
            {"h": 1, "w": 1, "a": 1, "b": 1},
            free="a b",
        ),
        Case(
            f32("n, 2, h, w"),
            {"size": ("a", "b"), "coordinate_transformation_mode": "tf_crop_and_resize", "roi": (0.1, 0.2, 0.9, 0.7)},
            {"h": 1, "w": 1, "a": 1, "b": 1},
            free="a b",
        ),
        Case(f32("n, 2, h, w"), {"size": ("h//2", "w//2"), "scales": (0.5, 0.5)}, {"h": 2, "w": 2}),
        Case(f32("n, 2, 2*h, 3*w"), {"size": ("h", "w"), "method": "nearest_neighbor"}, {"h": 1, "w": 1, "a": 1, "b": 1}),
    ],
    "image.grid_sample": [
        Case(f32("n, c, h, w", "n, 2, a, b"), {"padding_mode": "reflection", "align_corners": False}, {"h": 1, "w": 1}),
        Case(f32("n, 2, h, w", "n, 2, a, b"), {"padding_mode": "border", "method": "bicubic"}, {"h": 1, "w": 1}),
        Case(f32("n, 2, d, h, w", "n, 3, a, b, 5"), {"method": "nearest_neighbor", "layout": "NCDHW"}, {"d": 1, "h": 1, "w": 1}),
    ],
    "image.resize3d": [Case(f32("n, 2, d, 3, w"), {"size": ("d", 6, "w + 1")}, {"d": 1, "w": 1})],
    "nn.upsampling": [
        Case(f32("n, 2, h, w"), {"scale_h": 2, "scale_w": 3}),
        Case(f32("n, 2, h, w"), {"scale_h": 2, "scale_w": 2, "method": "bilinear", "align_corners": True}, {"h": 1, "w": 1}),
    ],
    "nn.upsampling3d": [Case(f32("n, 2, d, h, w"), {"scale_d": 2, "scale_h": 2, "scale_w": 1})],
}
"""By operators, which are tested in one program where there are several."""

ATTENTION = ("nn_attention", "nn_attention_lse", "nn_attention_grad")
ELSEWHERE = ("fft", "fft_plan", "fft_roots", *ATTENTION, "ml_coupled_probabilities", "vision_all_class_non_max_suppression")
"""Operators that have a file of their own."""


@pytest.mark.parametrize(("names", "case"), cases_of(CASES))
def test_an_operator_at_any_sizes(names: str, case: Case) -> None:
    agrees(names.split(), case)


def test_every_operator_has_a_case() -> None:
    covered = {ir_name(name) for names in CASES for name in names.split()}
    assert set(RULES) - covered == set(ELSEWHERE)


def test_elementwise_operators_say_whether_they_keep_the_shape() -> None:
    """Fusion follows unknown sizes through those that do."""
    for names, (case, *_) in CASES.items():
        found = [OPS[ir_name(name)] for name in names.split()]
        operators = [o for o in found if o.pattern <= Pattern.BROADCAST and not (o.broadcasts or o.repeats_only)]
        if not operators:
            continue
        attrs = case.attrs
        mod = symbolic_program(lambda *v, of=operators, attrs=attrs: [v[0], *(build(o.relay_name, *v, **attrs) for o in of)], case.types)
        first, *results = (TensorType.of(v) for v in mod.main.regions[0].blocks[0].operations[-1].operands)
        for operator, result in zip(operators, results, strict=True):
            assert operator.keeps_shape == (first.shape == result.shape), operator.relay_name


@pytest.mark.parametrize(
    ("name", "shapes", "attrs"),
    [
        ("nn.softmax", [(3, 5)], {}),
        ("add", [(7, 3, 5), (3, 1)], {}),
        ("nn.dense", [(5, 12), (7, 12)], {}),
        ("nn.conv2d", [(2, 3, 9, 11), (4, 3, 3, 3)], {"padding": (1, 1, 1, 1)}),
        ("transpose", [(3, 7, 5)], {"axes": (2, 0, 1)}),
        ("concatenate", [(3, 4), (5, 4)], {"axis": 0}),
    ],
)
def test_programs_are_run_with_symbols_and_at_other_sizes(name, shapes, attrs):
    """What `run` does for some tests is not refused where nothing stands against it."""
    arrays = [values(shape, seed=i) for i, shape in enumerate(shapes)]
    body = lambda *operands: [build(name, *operands, **attrs)]  # noqa: E731 (an argument, not a definition)
    wanted, symbols, compared = agrees_with_symbols(body, arrays, run_program(body, arrays))
    assert wanted >= 1 and symbols == wanted and compared
