"""Right calls of operators of the Relay language: of those that are composed of others, and of those with rules of their own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from symbolic_ops import tensor


@dataclass(frozen=True)
class Const:
    """An operand that is known."""

    array: np.ndarray


def const(value: Any, dtype: str) -> Const:
    return Const(np.asarray(value, dtype))


def call(*operands: Any, **attrs: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Operands that are texts of types, constants, or lists of these: tuples of tensors; and attributes."""
    return [_operand(operand) for operand in operands], attrs


def _operand(operand: Any) -> Any:
    if isinstance(operand, list):
        return [_operand(part) for part in operand]
    return operand if isinstance(operand, Const) else tensor(operand)


CALLS: dict[str, list[tuple[Sequence[Any], Mapping[str, Any]]]] = {
    "adv_index": [call(["float32[3, 4, 2]", "int64[2, 2]", "int64[2]"])],
    "argwhere": [call("bool[2, 3]"), call("bool[n, m]")],
    "collapse_sum_like": [call("float32[4, 5, 6]", "float32[1, 5, 1]")],
    "collapse_sum_to": [call("float32[4, 5, 6]", shape=(5, 1))],
    "contrib_reverse_reshape": [call("float32[4, 5, 6]", newshape=(-1, 0, 3))],
    "debug": [call("float32[2, 3]", debug_func="test.look"), call("float32[2, 3]")],
    "dft": [call("float32[3, 8]", "float32[3, 8]")],
    "dyn.arange": [call("float32[]", "float32[]", "float32[]", dtype="float32")],
    "dyn.broadcast_to": [call("float32[1, 4]", "int64[2]")],
    "dyn.expand_dims": [call("float32[2, 3]", const(1, "int32"))],
    "dyn.image.resize2d": [
        call("float32[1, 3, 4, 5]", "float32[2]", const([], "int64"), coordinate_transformation_mode="align_corners"),
        call("float32[1, 3, 4, 5]", "float32[2]", const([], "int64"), layout="NHWC", coordinate_transformation_mode="align_corners"),
    ],
    "dyn.nn.upsampling": [
        call("float32[1, 3, 4, 5]", "float32[]", "float32[]", method="bilinear", align_corners=True),
        call("float32[1, 3, 4, 5]", "float32[]", "float32[]", layout="NHWC", method="bilinear", align_corners=True),
    ],
    "dyn.nn.upsampling3d": [
        call(
            "float32[1, 1, 1, 2, 3]",
            const(2.0, "float32"),
            const(1.0, "float32"),
            const(3.0, "float32"),
            coordinate_transformation_mode="asymmetric",
        )
    ],
    "dyn.ones": [call(const([2, 3], "int64"))],
    "dyn.reshape": [call("float32[3, 4]", "int64[2]"), call("float32[2, 6]", "int32[2]")],
    "dyn.sparse_to_dense": [
        call(const([[0, 1], [1, 2]], "int64"), const([5.0, 7.0], "float32"), const(1.0, "float32"), const([2, 3], "int64"))
    ],
    "dyn.squeeze": [call("float32[2, 1, 3]", const([1], "int64"))],
    "dyn.strided_slice": [
        call("float32[3, 4]", "int64[2]", "int64[2]", const([1, 2], "int64")),
        call("float32[2, 3]", const([0, 1], "int64"), const([-1, 2], "int64"), const([1, 1], "int64"), slice_mode="size"),
        call("float32[2, 3]", const([1, 0], "int64"), const([1, 2], "int64"), const([1, 1], "int64"), slice_mode="size"),
    ],
    "dyn.tile": [
        call("float32[3, 4]", "int64[3]"),
        call("float32[2, 3]", const([2], "int64")),
        call("float32[2, 3]", const([2, 1, 3], "int64")),
    ],
    "dyn.zeros": [call(const([2, 3], "int64"), dtype="int8")],
    "einsum": [call(["float32[2, 3, 4]", "float32[4, 5]"], equation="bij,jk->bki")],
    "fixed_point_multiply": [
        call("int32[7]", multiplier=1073741824, shift=0),
        call("int32[7]", multiplier=1395864371, shift=2),
        call("int32[7]", multiplier=1073741824, shift=-1),
    ],
    "image.affine_grid": [call("float32[2, 2, 3]", target_shape=(4, 5))],
    "image.crop_and_resize": [
        call("float32[2, 3, 7, 9]", "float32[3, 4]", "int32[3]", crop_size=(4, 5), extrapolation_value=9.5),
        call("float32[2, 7, 9, 3]", "float32[3, 4]", "int32[3]", crop_size=(4, 5), layout="NHWC", extrapolation_value=9.5),
        call("float32[1, 2, 7, 9]", "float32[3, 4]", "int32[3]", crop_size=(1, 3), extrapolation_value=9.5),
    ],
    "image.dilation2d": [
        call("float32[2, 3, 8, 9]", "float32[3, 2, 3]", strides=(2, 1), padding=(1, 0, 2, 1), dilations=(2, 2)),
        call(
            "float32[2, 8, 9, 3]",
            "float32[2, 3, 3]",
            strides=(2, 1),
            padding=(1, 0, 2, 1),
            dilations=(2, 2),
            data_layout="NHWC",
            kernel_layout="HWI",
        ),
    ],
    "invert_permutation": [call("int32[4]")],
    "matrix_set_diag": [
        call("float32[2, 3, 4]", "float32[2, 3]", k1=0, k2=0),
        call("float32[2, 3, 4]", "float32[2, 3]", k1=1, k2=1),
        call("float32[2, 3, 4]", "float32[2, 4, 3]", k1=-1, k2=2),
    ],
    "meshgrid": [call(["float32[3]", "float32[4]", "float32[2]"]), call(["float32[3]", "float32[4]", "float32[2]"], indexing="xy")],
    "ndarray_size": [call("float32[4, 5, 6]")],
    "nn.avg_pool2d_grad": [
        call("float32[3, 2, 4, 5]", "float32[3, 2, 7, 6]", pool_size=(3, 2), strides=(2, 1), padding=(1, 0, 1, 0), count_include_pad=True),
        call("float32[1, 3, 2, 2]", "float32[1, 3, 4, 4]", pool_size=(2, 2), strides=(2, 2), padding=(0, 0, 0, 1)),
        call("float32[1, 2, 3, 4]", "float32[1, 2, 4, 5]", pool_size=(2, 2)),
    ],
    "nn.batch_to_space_nd": [call("float32[8, 2, 3, 3]", block_shape=(2, 2), crops=((1, 0), (0, 2)))],
    "nn.bitpack": [
        call("int16[n, 32, 3, 2]", bit_axis=4, pack_type="uint16"),
        call("int8[n, 2, 3, 128]", bits=2, pack_axis=3, bit_axis=3, pack_type="uint64"),
        call("int16[4, 20]", pack_type="int32"),
    ],
    "nn.bitserial_conv2d": [
        call(
            "int16[n, 32, 5, 4]",
            "uint32[3, 1, 3, 2, 3]",
            strides=(2, 1),
            padding=(1, 0, 0, 1),
            channels=3,
            kernel_size=(3, 2),
            activation_bits=2,
            weight_bits=3,
        ),
        call(
            "int16[n, 32, 5, 4]",
            "uint32[3, 1, 3, 2, 3]",
            strides=(2, 1),
            padding=(1, 0, 0, 1),
            channels=3,
            kernel_size=(3, 2),
            activation_bits=2,
            weight_bits=3,
            unipolar=False,
        ),
        call(
            "int16[n, 5, 4, 32]",
            "uint32[3, 2, 1, 3, 3]",
            strides=(2, 1),
            padding=(1, 0, 0, 1),
            channels=3,
            kernel_size=(3, 2),
            activation_bits=2,
            weight_bits=3,
            data_layout="NHWC",
            kernel_layout="HWIO",
            unipolar=False,
        ),
    ],
    "nn.bitserial_dense": [
        call("int16[n, 128]", "int16[5, 128]", units=5, out_dtype="int32"),
        call(
            "int16[n, 128]", "uint8[5, 3, 16]", units=5, data_bits=2, weight_bits=3, pack_dtype="uint8", out_dtype="int32", unipolar=False
        ),
        call("int16[4, 20]", "uint32[5, 2, 1]", weight_bits=3),
    ],
    "nn.contrib_conv2d_gemm_weight_transform": [
        call("float32[3, 2, 5, 6]", tile_N=4, tile_K=3),
        call("int8[3, 2, 5, 6]", tile_N=4, tile_K=3),
    ],
    "nn.contrib_conv2d_gemm_without_weight_transform": [
        call(
            "float32[n, 7, 6, 5]",
            "float32[2, 12, 3, 4]",
            strides=(2, 1),
            padding=(1, 0, 1, 1),
            channels=6,
            kernel_size=(3, 2),
            data_layout="NHWC",
            kernel_layout="HWIO",
            out_dtype="float32",
        ),
        call(
            "int8[n, 7, 6, 5]",
            "int8[2, 12, 4, 3]",
            strides=(2, 1),
            padding=(1, 0, 1, 1),
            channels=6,
            kernel_size=(3, 2),
            data_layout="NHWC",
            kernel_layout="HWIO",
            out_dtype="int32",
        ),
        call("float32[1, 3, 8, 8]", "float32[4, 4, 5, 3]", channels=4, kernel_size=(3, 3)),
    ],
    "nn.contrib_conv2d_winograd_nnpack_weight_transform": [
        call("float32[4, 3, 3, 3]", convolution_algorithm=3, out_dtype="float32"),
        call("float32[4, 3, 3, 3]", convolution_algorithm=1),
    ],
    "nn.contrib_conv2d_winograd_weight_transform": [
        call("float64[2, 3, 3, 3]", tile_size=2),
        call("float32[5, 3, 3, 3]", tile_size=4),
        call("float32[4, 4, 3, 3]", tile_size=9),
    ],
    "nn.contrib_conv2d_winograd_without_weight_transform": [
        call("float32[n, 3, 13, 10]", "float32[4, 4, 3, 5]", tile_size=2, padding=(1, 0, 2, 1), channels=5, kernel_size=(3, 3)),
        call("float32[2, 3, 13, 10]", "float32[8, 8, 3, 5]", tile_size=6, padding=(1, 0, 2, 1), channels=5, kernel_size=(3, 3)),
        call("float32[1, 3, 8, 8]", "float32[4, 4, 5, 3]", tile_size=2),
    ],
    "nn.contrib_conv3d_winograd_weight_transform": [
        call("float32[4, 3, 3, 3, 3]", tile_size=2),
        call("float32[4, 3, 2, 3, 3]", tile_size=2),
    ],
    "nn.contrib_conv3d_winograd_without_weight_transform": [
        call("float32[n, 3, 6, 7, 5]", "float32[4, 4, 4, 4, 3]", tile_size=2, padding=(1, 0, 1, 0, 1, 1), channels=4),
        call("float32[n, 3, 6, 7, 5]", "float32[4, 4, 2, 4, 3]", tile_size=2, strides=(2, 1, 1), padding=(1, 0, 1, 0, 1, 1), channels=4),
    ],
    "nn.contrib_dense_pack": [call("float32[3, 5]", "float32[2, 5, 4]", weight_layout="NC4n"), call("float32[3, 5]", "float32[4, 5]")],
    "nn.conv2d_backward_weight": [
        call(
            "float32[n, 4, 3, 6]",
            "float32[m, 3, 7, 6]",
            strides=(2, 1),
            padding=(1, 0, 0, 1),
            channels=4,
            kernel_size=(3, 2),
            kernel_layout="NCHW",
            out_layout="OIHW",
        ),
        call(
            "float32[n, 3, 4, 4]",
            "float32[m, 3, 7, 6]",
            strides=(2, 2),
            padding=(1, 1, 1, 1),
            groups=3,
            channels=3,
            kernel_size=(3, 2),
            kernel_layout="NCHW",
            out_layout="OIHW",
        ),
        call("float32[2, 3, 2, 2]", "float32[2, 3, 6, 6]", groups=2, kernel_size=(3, 3), kernel_layout="NCHW", out_layout="OIHW"),
    ],
    "nn.correlation": [
        call("float32[2, 3, 6, 7]", "float32[2, 3, 6, 7]", kernel_size=3, max_displacement=2, stride1=2, padding=(2, 2, 2, 2)),
        call(
            "float32[2, 3, 6, 7]",
            "float32[2, 3, 6, 7]",
            kernel_size=3,
            max_displacement=2,
            stride1=2,
            padding=(2, 2, 2, 2),
            is_multiply=False,
        ),
    ],
    "nn.cross_entropy_with_logits": [call("float32[4, 3]", "float32[4, 3]")],
    "nn.deformable_conv2d": [
        call(
            "float32[1, 4, 6, 7]",
            "float32[1, 36, 6, 7]",
            "float32[2, 2, 3, 3]",
            deformable_groups=2,
            padding=(1, 1, 1, 1),
            groups=2,
            channels=2,
            kernel_size=(3, 3),
        ),
        call(
            "float32[1, 6, 7, 4]",
            "float32[1, 6, 7, 36]",
            "float32[3, 3, 2, 2]",
            deformable_groups=2,
            padding=(1, 1, 1, 1),
            groups=2,
            channels=2,
            kernel_size=(3, 3),
            data_layout="NHWC",
            kernel_layout="HWIO",
        ),
    ],
    "nn.dilate": [call("float32[2, 7, 8]", strides=(1, 2, 3), dilation_value=0.5)],
    "nn.fifo_buffer": [
        call("float32[2, 3]", const([[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]], "float32"), axis=1),
        call("float32[2, 3]", const([[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]], "float32"), axis=-1),
    ],
    "nn.global_avg_pool1d": [call("float32[2, 3, 7]")],
    "nn.global_avg_pool3d": [call("float32[1, 4, 3, 5, 2]", layout="NDHWC")],
    "nn.global_max_pool1d": [call("float32[2, 3, 7]")],
    "nn.global_max_pool3d": [call("float32[1, 4, 3, 5, 2]")],
    "nn.internal.sparse_dense_padded": [call("float32[3, 4]", "float32[3]", "int32[3]", "int32[4]")],
    "nn.max_pool2d_grad": [
        call("float32[n, 2, 4, 5]", "float32[m, 2, 7, 6]", pool_size=(3, 2), strides=(2, 1), padding=(1, 0, 1, 0)),
        call("float32[3, 4, 5, 2]", "float32[3, 7, 6, 2]", pool_size=(3, 2), strides=(2, 1), padding=(1, 0, 1, 0), layout="NHWC"),
        call("float32[1, 2, 3, 4]", "float32[1, 2, 4, 5]", pool_size=(2, 2)),
    ],
    "nn.nll_loss": [
        call("float32[4, 3, 2]", "int64[4, 2]", "float32[3]", reduction="none", ignore_index=1),
        call("float32[4, 3, 2]", "int64[4, 2]", "float32[3]", reduction="sum", ignore_index=1),
        call("float32[4, 3, 2]", "int64[4, 2]", "float32[3]", ignore_index=1),
    ],
    "nn.space_to_batch_nd": [call("float32[2, 3, 4, 3]", block_shape=(2, 2), paddings=((1, 0), (0, 2)), pad_value=0.5)],
    "nn.sparse_add": [
        call("float32[3, 8]", "float32[5]", "int32[4]", "int32[3]"),
        call("float32[9, 9]", "float32[34]", "int32[34]", "int32[10]"),
        call("float32[9, 9]", "float32[m]", "int32[m]", "int32[n]"),
    ],
    "nn.sparse_conv2d": [
        call("float32[2, 5, 4, 6]", "float32[5, 4]", "int32[5]", "int32[3]"),
        call("float32[2, 5, 4, 6]", "float32[41, 4]", "int32[41]", "int32[3]", kernel_size=(3, 3)),
        call("float32[n, 6, 5, 4]", "float32[10, 2, 3]", "int32[10]", "int32[5]", layout="NCHW", kernel_size=(3, 1)),
    ],
    "nn.sparse_transpose": [call("float32[34]", "int32[34]", "int32[10]"), call("float32[m]", "int32[m]", "int32[n]")],
    "qnn.concatenate": [
        call(
            ["uint8[2, 3]", "uint8[2, 4]"],
            [const(0.5, "float32"), const(0.25, "float32")],
            [const(3, "int32"), const(120, "int32")],
            const(0.25, "float32"),
            const(7, "int32"),
            axis=1,
        )
    ],
    "qnn.contrib_dense_pack": [
        call(
            "uint8[3, 8]",
            "int8[3, 2, 2, 4]",
            const(100, "int32"),
            const(-3, "int32"),
            const(0.10000000149011612, "float32"),
            const(0.10000000149011612, "float32"),
            units=6,
            weight_layout="NC2n4c",
        )
    ],
    "qnn.dense": [
        call("uint8[3, 7]", "int8[5, 7]", const(4, "int32"), const(0, "int32"), const(0.5, "float32"), const(0.25, "float32"), units=5),
        call("float32[2, 3]", "float32[2, 3]", const(1, "int32"), const(1, "int32"), const(0.5, "float32"), const(0.5, "float32"), units=2),
    ],
    "qnn.quantize": [call("int64[2, 3]", const(0.5, "float32"), const(1, "int32"))],
    "qnn.requantize": [
        call("int32[3, 5]", const(0.125, "float32"), const(0, "int32"), const(60.0, "float32"), const(3, "int32"), out_dtype="uint8")
    ],
    "qnn.simulated_dequantize": [call("float32[5]", "int32[]", const(1.0, "float32"), const(10, "int32"))],
    "qnn.simulated_quantize": [call("float32[5]", "int32[]", const(1.0, "float32"), const(10, "int32"))],
    "random.multinomial": [
        call("uint64[10]", "float32[2, 5]", num_samples=300),
        call("uint64[10]", "float32[n, 5]", num_samples=300),
        call("uint64[10]", "float32[]", num_samples=3),
    ],
    "random.normal": [
        call("uint64[10]", const(4.0, "float32"), const(0.5, "float32"), out_shape=(5, 7), out_dtype="float32"),
        call("uint64[10]", const(4.0, "float64"), const(0.5, "float64"), out_shape=(5, 7), out_dtype="float64"),
        call("uint64[10]", const(4.0, "float64"), "float64[]", out_shape=(5, 7), out_dtype="float64"),
    ],
    "random.threefry_generate": [call("uint64[10]", out_shape=()), call("uint64[10]", out_shape=(3, 7))],
    "random.threefry_split": [call("uint64[10]"), call("uint64[9]")],
    "random.uniform": [
        call("uint64[10]", const(-2.0, "float32"), const(3.5, "float32"), out_shape=(5, 7), out_dtype="float32"),
        call("uint64[10]", const(-2.0, "float64"), const(3.5, "float64"), out_shape=(5, 7), out_dtype="float64"),
        call("uint64[10]", const(0, "int32"), const(1, "int32"), out_shape=(3,), out_dtype="int32"),
    ],
    "relay.op.annotation.simulated_quantize": [
        call("float32[4, 5]", const(0.0625, "float32"), const(-20.0, "float32"), const(19.0, "float32"), kind=1),
        call("float32[4, 5]", const(0.0625, "float32"), const(-20.0, "float32"), const(19.0, "float32"), kind=0),
        call("float32[4, 5]", const(0.0625, "float32"), const(-20.0, "float32"), const(19.0, "float32"), kind=2, rounding="floor"),
    ],
    "reshape_like": [call("float32[n, 2, 3, w]", "float32[1, 8, 8]"), call("float32[2, 3]", "float32[3, 2]")],
    "reverse_sequence": [
        call("float32[4, 3, 2]", "int32[3]", seq_axis=0, batch_axis=1),
        call("float32[2, 3]", const([1, 2, 3], "int32"), batch_axis=-1),
    ],
    "segment_sum": [call("float32[5, 2]", "int32[5]", "int64[1]"), call("float32[5, 2]", "int32[5]", const([4], "int64"))],
    "sequence_mask": [call("float32[4, 3, 2]", "int32[3]", mask_value=-1.0)],
    "slice_like": [
        call("float32[4, 5, 6]", "float32[2, 5, 3]"),
        call("float32[4, 5, 6]", "float32[2, 5, 3]", axes=(-1,)),
        call("float32[n, w]", "float32[1, 2]"),
    ],
    "sliding_window": [
        call("float32[2, 7, 8]", axis=1, window_shape=(3, 4), strides=(2, 3)),
        call("float32[2, 3]", axis=0, window_shape=(1,), strides=(1,)),
        call("float32[n, 3]", axis=0, window_shape=(1, 1), strides=(1, 1)),
    ],
    "sparse_fill_empty_rows": [
        call("int32[3, 2]", "float32[3]", "int64[2]", "float32[1]"),
        call("int32[0, 2]", "float32[0]", "int64[2]", "float32[1]"),
        call("int32[n, 2]", "float32[n]", "int64[2]", "float32[1]"),
    ],
    "sparse_reshape": [call("int64[3, 2]", "int64[2]", "int64[2]")],
    "sparse_to_dense": [
        call("int64[3, 2]", "float32[3]", const(7.0, "float32"), output_shape=(3, 4)),
        call("int64[]", "float32[]", const(7.0, "float32"), output_shape=(5,)),
    ],
    "stft": [call("float32[2, 20]", "float32[3]", n_fft=5, hop_length=4, win_length=3, normalized=False, onesided=True)],
    "strided_set": [
        call("float32[3, 5, 2]", "float32[3, 2, 2]", const([0, 1], "int64"), const([3, 4], "int64"), const([1, 2], "int64")),
        call("float32[3, 5, 2]", "float32[1, 5, 2]", const([1], "int64"), const([9], "int64"), const([2], "int64")),
        call("float32[3, 5, 2]", "float32[2, 5, 2]", const([-2, 0], "int64"), const([9, 9], "int64"), const([1], "int64")),
    ],
    "unique": [call("int32[7]", sorted=True, return_counts=True), call("int32[7]", sorted=False, return_counts=True)],
    "unravel_index": [call("int64[3]", const([2, 3, 4], "int64"))],
    "vision.get_valid_counts": [
        call("float32[2, 7, 6]", const(0.25, "float32"), score_threshold=0.25),
        call("float32[2, 7, 6]", "float32[]"),
    ],
    "vision.multibox_prior": [call("float32[1, 3, 2, 4]", sizes=(0.5, 0.25), ratios=(1.0, 4.0))],
    "vision.multibox_transform_loc": [
        call("float32[2, 4, 9]", "float32[2, 36]", "float32[1, 9, 4]", threshold=0.375, variances=(0.1, 0.2, 0.3, 0.4)),
        call(
            "float32[2, 4, 9]",
            "float32[2, 36]",
            "float32[1, 9, 4]",
            clip=False,
            threshold=0.375,
            variances=(0.1, 0.2, 0.3, 0.4),
            keep_background=True,
        ),
    ],
    "vision.non_max_suppression": [
        call("float32[2, 12, 6]", "int32[2]", "int32[2, 12]", const(-1, "int32"), const(0.30000001192092896, "float32")),
        call(
            "float32[2, 12, 6]",
            "int32[2]",
            "int32[2, 12]",
            const(-1, "int32"),
            const(0.30000001192092896, "float32"),
            force_suppress=True,
            top_k=6,
            return_indices=False,
            invalid_to_bottom=True,
        ),
        call(
            "float32[2, 12, 6]",
            "int32[2]",
            "int32[2, 12]",
            const(3, "int32"),
            const(0.30000001192092896, "float32"),
            return_indices=False,
            invalid_to_bottom=True,
        ),
    ],
    "vision.proposal": [
        call(
            "float32[2, 2, 2, 3]",
            "float32[2, 4, 2, 3]",
            "float32[2, 3]",
            scales=(1.0,),
            ratios=(1.0,),
            rpn_post_nms_top_n=4,
            rpn_min_size=1,
        ),
        call(
            "float32[2, 12, 3, 4]",
            "float32[2, 24, 3, 4]",
            "float32[2, 3]",
            scales=(1.0, 2.0),
            feature_stride=8,
            rpn_pre_nms_top_n=40,
            rpn_post_nms_top_n=6,
            rpn_min_size=6,
        ),
        call(
            "float32[2, 12, 3, 4]",
            "float32[2, 24, 3, 4]",
            "float32[2, 3]",
            scales=(1.0, 2.0),
            feature_stride=8,
            threshold=0.5,
            rpn_pre_nms_top_n=40,
            rpn_post_nms_top_n=9,
            rpn_min_size=6,
            iou_loss=True,
        ),
    ],
    "vision.regular_non_max_suppression": [
        call(
            "float32[2, 7, 4]",
            "float32[2, 7, 4]",
            max_detections_per_class=2,
            max_detections=4,
            num_classes=3,
            iou_threshold=0.4,
            score_threshold=0.25,
        ),
        call(
            "float32[2, 7, 4]",
            "float32[2, 7, 4]",
            max_detections_per_class=2,
            max_detections=40,
            num_classes=3,
            iou_threshold=0.4,
            score_threshold=0.25,
        ),
        call(
            "float32[b, n, 4]",
            "float32[b, n, 4]",
            max_detections_per_class=2,
            max_detections=40,
            num_classes=3,
            iou_threshold=0.4,
            score_threshold=0.25,
        ),
    ],
    "vision.yolo_reorg": [call("float32[1, 4, 4, 6]", stride=2)],
    "vm.reshape_tensor": [call("float32[2, 3]", const([3, 2], "int64"), newshape=(3, 2))],
    "qnn.add": [
        call(
            "uint8[3, 4]",
            "uint8[4]",
            *(const(v, t) for v, t in [(0.5, "float32"), (3, "int32"), (0.25, "float32"), (7, "int32"), (1.0, "float32"), (1, "int32")]),
        ),
        call(
            "int8[3, 4]",
            "int8[3, 1]",
            *(const(v, t) for v, t in [(0.5, "float32"), (0, "int32"), (0.5, "float32"), (0, "int32"), (0.5, "float32"), (0, "int32")]),
        ),
    ],
    "qnn.mul": [
        call(
            "uint8[3, 4]",
            "uint8[4]",
            *(const(v, t) for v, t in [(0.5, "float32"), (3, "int32"), (0.25, "float32"), (7, "int32"), (1.0, "float32"), (1, "int32")]),
        ),
    ],
    "qnn.subtract": [
        call(
            "uint8[3, 4]",
            "uint8[4]",
            *(const(v, t) for v, t in [(0.5, "float32"), (3, "int32"), (0.25, "float32"), (7, "int32"), (1.0, "float32"), (1, "int32")]),
        ),
    ],
    "qnn.conv2d": [
        call(
            "uint8[2, 4, 6, 5]",
            "int8[6, 2, 3, 3]",
            const(3, "int32"),
            const(0, "int32"),
            const(0.5, "float32"),
            const(0.25, "float32"),
            groups=2,
            channels=6,
            kernel_size=(3, 3),
            padding=(1, 0),
            out_dtype="int32",
        ),
        call(
            "uint8[2, 6, 5, 4]",
            "uint8[3, 3, 4, 6]",
            const(3, "int32"),
            const(9, "int32"),
            const(0.5, "float32"),
            const(0.25, "float32"),
            channels=6,
            kernel_size=(3, 3),
            strides=(2, 1),
            data_layout="NHWC",
            kernel_layout="HWIO",
            out_dtype="int32",
        ),
        call(
            "int8[2, 4, 6, 5]",
            "int8[4, 1, 3, 3]",
            "int32[]",
            "int32[]",
            "float32[]",
            "float32[4]",
            groups=4,
            channels=4,
            kernel_size=(3, 3),
            out_dtype="int32",
        ),
    ],
    "qnn.conv2d_transpose": [
        call(
            "uint8[2, 4, 6, 5]",
            "int8[4, 6, 3, 3]",
            const(3, "int32"),
            const(1, "int32"),
            const(0.5, "float32"),
            const(0.25, "float32"),
            channels=6,
            kernel_size=(3, 3),
            strides=(2, 2),
            output_padding=(1, 0),
            out_dtype="int32",
        ),
    ],
    "qnn.batch_matmul": [
        call(
            "uint8[2, 4, 6]",
            "int8[2, 5, 6]",
            const(3, "int32"),
            const(1, "int32"),
            const(0.5, "float32"),
            const(0.25, "float32"),
            out_dtype="int32",
        ),
        call("uint8[2, 4, 6]", "int8[1, 5, 6]", "int32[]", "int32[]", "float32[]", "float32[]", out_dtype="int32"),
    ],
    "qnn.softmax": [call("int8[3, 5]", const(0.5, "float32"), const(2, "int32"), const(0.00390625, "float32"), const(-128, "int32"))],
    "qnn.leaky_relu": [
        call("uint8[3, 5]", const(0.5, "float32"), const(2, "int32"), const(0.25, "float32"), const(4, "int32"), alpha=0.25)
    ],
    "qnn.avg_pool2d": [
        call(
            "int8[1, 3, 6, 7]",
            const(0.5, "float32"),
            const(2, "int32"),
            const(0.25, "float32"),
            const(4, "int32"),
            pool_size=(2, 3),
            strides=(2, 1),
            padding=(1, 0, 0, 1),
        ),
        call(
            "uint8[1, 6, 7, 3]",
            const(0.5, "float32"),
            const(2, "int32"),
            const(0.5, "float32"),
            const(2, "int32"),
            pool_size=(2, 2),
            layout="NHWC",
            count_include_pad=True,
            padding=(1, 1),
        ),
    ],
    **{
        f"qnn.{name}": [call("uint8[2, 3]", const(0.5, "float32"), const(2, "int32"), const(0.25, "float32"), const(4, "int32"))]
        for name in ("tanh", "exp", "sqrt", "rsqrt", "erf", "sigmoid", "log", "abs", "hardswish")
    },
    "qnn.dequantize": [call("int8[2, 3]", const(0.5, "float32"), const(2, "int32")), call("uint8[2, 3]", "float32[3]", "int32[3]", axis=1)],
    "dyn.topk": [call("float32[3, 7]", "int32[]"), call("float32[3, 7]", const(2, "int32"), axis=0, ret_type="values")],
    "dyn.one_hot": [
        call("int32[3]", "float32[]", "float32[]", const(4, "int32")),
        call("int32[n]", "int8[]", "int8[]", "int64[]", axis=0, dtype="int8"),
    ],
    "dyn.full": [call("float32[]", const([2, 3], "int64")), call("float32[]", "int64[2]")],
    "dyn.nn.pad": [
        call("float32[2, 3]", const([[0, 1], [2, 0]], "int32"), "float32[]"),
        call("float32[2, 3]", "int32[2, 2]", "float32[]", pad_mode="edge"),
    ],
    "nn.cross_entropy": [call("float32[4, 3]", "float32[4, 3]")],
    "trunc_divide": [call("int32[3]", "int32[3]"), call("float32[3]", "float32[]")],
    "trunc_mod": [call("int32[3]", "int32[3]"), call("float32[3]", "float32[]")],
    "fixed_point_multiply_per_axis": [
        call("int32[2, 3]", "int32[3]", "int32[3]", "int32[3]", is_lshift_required=True, is_rshift_required=True, axes=(1,))
    ],
    "auto_scheduler_layout_transform": [call("float32[4, 6]", src_layout="AB", dst_layout="AB3b")],
    "shape_of": [call("float32[n, 3]", dtype="int32")],
    "vm.shape_of": [call("float32[n, 3]")],
    "on_device": [call("float32[3]")],
    "annotation.stop_fusion": [call("float32[3]")],
    "image.grid_sample": [call("float32[1, 2, 4, 5]", "float32[1, 2, 3, 3]", method="nearest")],
    "searchsorted": [
        call("float32[2, 4]", "float32[2, 3]", right=True),
        call("float32[5]", "float32[2, 3]"),
        call("float32[]", "float32[]"),
    ],
    "nn.pad": [
        call("float32[n, 3]", "float32[1]", pad_width=((-1, 2), (0, -1))),
        call("int8[2, 3]", "float32[]", pad_width=((1, 2), (0, 0)), pad_mode="edge"),
    ],
    "nn.mirror_pad": [
        call("float32[4, 3]", pad_width=((-1, 2), (0, -1))),
        call("float32[4, 3]", mode="REFLECT", pad_width=((1, 2), (0, 1))),
    ],
    "nn.depth_to_space": [call("float32[1, 8, 2, 3]", block_size=2, mode="CDR")],
    "vision.roi_align": [call("float32[1, 6, 7, 2]", "float32[3, 5]", pooled_size=(2, 2), spatial_scale=0.5, layout="NHWC")],
    "arange": [
        call(const(0.0, "float32"), const(5.0, "float32"), const(2.0, "float32")),
        call("float32[]", const(5.0, "float32"), const(2.0, "float32")),
    ],
    "full_like": [call("int8[n, 3]", "float32[]")],
    "full": [call("float32[]", shape=(2, 3), dtype="int8"), call("float32[]", shape=(2, 3))],
    "cast_like": [call("int8[n, 3]", "float32[2]")],
    "broadcast_to_like": [call("int8[1, 3]", "float32[4, 3]")],
    "zeros_like": [call("int8[n, 3]")],
    "split": [call("float32[n, 3]", indices_or_sections=2), call("float32[4, 6]", indices_or_sections=(1, 4), axis=-1)],
    "reshape": [
        call("float32[n, m]", newshape=(4, 5)),
        call("float32[2, n]", newshape=(-3, 1)),
        call("float32[6, 4]", newshape=(-4, 2, -1, -2)),
    ],
    "strided_slice": [
        call("float32[5, 6]", begin=(1,), end=(4,), strides=(1,)),
        call("float32[5, 6]", begin=(1, 0), end=(-1, -1), strides=(1,), slice_mode="size"),
        call("float32[5, 6]", begin=(4, 1), end=(0,), strides=(-2, 3), axes=(-2, 1)),
    ],
    "sum": [call("bool[3, 4]", axis=(1,)), call("float32[3, 4]", axis=(0,), exclude=True)],
    "max": [call("bool[3, 4]", axis=(1,))],
    "argsort": [call("float32[3, 4]", axis=0, dtype="float32")],
    "topk": [call("float32[3, 4]", k=2, dtype="float32"), call("float32[3, 4]", k=2, ret_type="indices", dtype="float32")],
    "nn.bias_add": [call("float32[2, 3, 4]", "float32[1]", axis=1), call("float32[2, 3, 4]", "float32[3]", axis=-2)],
    "nn.dense": [
        call("int8[3, 4]", "float32[5, 4]"),
        call("float32[3, 4]", "int8[5, 4]", units=5),
        call("uint8[3, 4]", "int8[5, 4]", out_dtype="int32"),
    ],
    "nn.matmul": [call("float32[2, 3, 4]", "float32[3, 5]", transpose_a=True), call("float32[2, 4, 3]", "float32[5, 3]", transpose_b=True)],
    "nn.conv1d": [call("float32[2, 3]", "float32[4, 3, 1]"), call("float32[2, 6, 9]", "float32[6, 1, 3]", groups=6)],
    "nn.conv2d": [
        call("float32[1, 4, 6, 6]", "float32[2, 4, 3, 3]", groups=4, kernel_layout="IOHW"),
        call("float32[1, 4, 6, 6]", "float32[4, 2, 3, 3]", groups=4, channels=8, padding=(1, 2)),
        call("float32[1, 16, 6, 6]", "float32[2, 1, 3, 3, 16, 8]", channels=16, kernel_layout="OIHW16i8o"),
    ],
    "nn.conv2d_transpose": [call("float32[1, 4, 6, 6]", "float32[4, 5, 3, 3]", output_padding=(3, 1), padding=(1, 1), strides=(2, 2))],
}
