"""Normalisations: nn.batch_norm, nn.layer_norm, nn.instance_norm, nn.group_norm, nn.rms_norm, nn.l2_normalize, nn.lrn.

A variance is the mean of the squared deviations. `center` and `scale` say whether beta is added and gamma multiplied.
"""

from relayc.dialects.relay.base import Ints, Op, Operand, Pattern, TensorType, View, check
from relayc.dialects.relay.conditions import require_divides, require_type
from relayc.dialects.relay.shapes import normalize_axis


def _check_vectors(op: View, axis: int, *names: str) -> None:
    """Each of the operands `names` is a vector along `axis` of data in the dtype of data, which is a float."""
    check(op.data.is_float, "data", "a float dtype", op.data.dtype)
    expected = TensorType((op.data.shape[axis],), op.data.dtype)
    for name in names:
        found = getattr(op, name)
        require_type(expected, found, f"{name} for axis {axis} of data {op.data}")


class _Affine(Op):
    """A normalisation with factors and summands along an axis."""

    data: Operand
    gamma: Operand
    beta: Operand
    axis: int = 1
    epsilon: float = 1e-5
    center: bool = True
    scale: bool = True
    pattern = Pattern.OUT_ELEMWISE_FUSABLE


class BatchNorm(_Affine, name="nn_batch_norm", relay_name="nn.batch_norm"):
    """(data - mean) / sqrt(var + epsilon) * gamma + beta with the statistics given, in inference (Relay nn.batch_norm).

    The vectors have a value for each position along `axis`. Results: the data normalised, the mean and the variance as they were.
    """

    moving_mean: Operand
    moving_var: Operand
    result_names = ("output", "mean", "variance")
    required_results = 3

    @staticmethod
    def infer(op: View) -> list[TensorType]:
        _check_vectors(op, normalize_axis(op.axis, op.data.rank), "gamma", "beta", "moving_mean", "moving_var")
        return [op.data, op.moving_mean, op.moving_var]


class LayerNorm(_Affine, name="nn_layer_norm", relay_name="nn.layer_norm"):
    """(data - mean) / sqrt(variance + epsilon) * gamma + beta with the statistics of data along `axis` (Relay nn.layer_norm).

    gamma and beta have a value for each position along `axis`.
    """

    axis: int = -1
    fuse_prologue = True
    by_rows = True

    @staticmethod
    def infer(op: View) -> TensorType:
        _check_vectors(op, normalize_axis(op.axis, op.data.rank), "gamma", "beta")
        return op.data


class RmsNorm(Op, name="nn_rms_norm", relay_name="nn.rms_norm"):
    """data / sqrt(mean(data^2) + epsilon) * gamma with the mean along `axis` (ONNX RMSNormalization; Relay has no such operator)."""

    data: Operand
    gamma: Operand
    axis: int = -1
    epsilon: float = 1e-5
    pattern = Pattern.OUT_ELEMWISE_FUSABLE
    fuse_prologue = True
    by_rows = True

    @staticmethod
    def infer(op: View) -> TensorType:
        _check_vectors(op, normalize_axis(op.axis, op.data.rank), "gamma")
        return op.data


class InstanceNorm(_Affine, name="nn_instance_norm", relay_name="nn.instance_norm"):
    """Normalises each channel (a position along `axis`) of each entry of the batch (dimension 0) by its own statistics.

    (data - mean) / sqrt(variance + epsilon) * gamma + beta (Relay nn.instance_norm; ONNX InstanceNormalization).
    """

    fuse_prologue = True

    @staticmethod
    def infer(op: View) -> TensorType:
        axis = normalize_axis(op.axis, op.data.rank)
        check(axis != 0, "axis", "another axis than that of the batch", axis)
        check(op.data.rank >= 3, "rank of data", "at least 3", op.data.rank)
        _check_vectors(op, axis, "gamma", "beta")
        return op.data


class GroupNorm(Op, name="nn_group_norm", relay_name="nn.group_norm"):
    """Normalises each of `num_groups` groups of channels of each entry of the batch (dimension 0) by its own statistics.

    (data - mean) / sqrt(variance + epsilon) * gamma + beta; gamma and beta have a value for each channel (Relay nn.group_norm; ONNX
    GroupNormalization-21).
    """

    data: Operand
    gamma: Operand
    beta: Operand
    num_groups: int
    axis: int = 1
    epsilon: float = 1e-5
    center: bool = True
    scale: bool = True
    pattern = Pattern.OUT_ELEMWISE_FUSABLE
    fuse_prologue = True

    @staticmethod
    def infer(op: View) -> TensorType:
        axis = normalize_axis(op.axis, op.data.rank)
        check(axis != 0, "axis", "another axis than that of the batch", axis)
        channels = op.data.shape[axis]
        check(op.num_groups >= 1, "num_groups", "at least 1", op.num_groups)
        require_divides(op.num_groups, channels, "num_groups", f"a divisor of the {channels} channels", op.num_groups)
        _check_vectors(op, axis, "gamma", "beta")
        return op.data


class L2Normalize(Op, name="nn_l2_normalize", relay_name="nn.l2_normalize"):
    """data / sqrt(max(sum(data^2), eps)) with the sum over the axes `axis` (Relay nn.l2_normalize)."""

    data: Operand
    eps: float
    axis: Ints
    pattern = Pattern.OUT_ELEMWISE_FUSABLE
    fuse_prologue = True

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.data.is_float, "data", "a float dtype", op.data.dtype)
        axes = [normalize_axis(a, op.data.rank) for a in op.axis]
        check(len(set(axes)) == len(axes) > 0, "axis", "one or more axes, each once", op.axis)
        return op.data


class Lrn(Op, name="nn_lrn", relay_name="nn.lrn"):
    """data / (bias + alpha / size * sum(data^2))^beta with the sum over a window of `size` positions along `axis`.

    The window of position i goes from i - (size - 1) // 2 to i + size // 2, cut off at the ends (Relay nn.lrn; ONNX LRN).
    """

    data: Operand
    size: int = 5
    axis: int = 1
    bias: float = 2.0
    alpha: float = 1e-5
    beta: float = 0.75
    pattern = Pattern.OUT_ELEMWISE_FUSABLE

    @staticmethod
    def infer(op: View) -> TensorType:
        _check_vectors(op, normalize_axis(op.axis, op.data.rank))
        check(op.size >= 1, "size", "at least 1", op.size)
        return op.data
