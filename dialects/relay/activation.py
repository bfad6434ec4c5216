"""Activations: nn.relu, nn.leaky_relu, nn.prelu, nn.softmax, nn.log_softmax, nn.dropout."""

from relayc.dialects.relay.base import LayoutRole, Op, Operand, Pattern, Precision, TensorType, View, check
from relayc.dialects.relay.conditions import require_type
from relayc.dialects.relay.kinds import NUMBER
from relayc.dialects.relay.shapes import normalize_axis


def _check_float(data: TensorType) -> None:
    check(data.is_float, "data", "a float dtype", data.dtype)


class Relu(Op, name="nn_relu", relay_name="nn.relu"):
    """max(data, 0) (Relay nn.relu)."""

    data: Operand
    pattern = Pattern.ELEMWISE
    layout_role = LayoutRole.FOLLOWS
    precision = Precision.EXACT
    keeps_shape = True
    idempotent = True

    @staticmethod
    def infer(op: View) -> TensorType:
        NUMBER.require("data", op.data)
        return op.data


class LeakyRelu(Op, name="nn_leaky_relu", relay_name="nn.leaky_relu"):
    """data where positive, else alpha * data (Relay nn.leaky_relu; ONNX's default of alpha is 0.01)."""

    data: Operand
    alpha: float = 0.25
    pattern = Pattern.ELEMWISE
    layout_role = LayoutRole.FOLLOWS
    precision = Precision.FOLLOW
    keeps_shape = True

    @staticmethod
    def infer(op: View) -> TensorType:
        _check_float(op.data)
        return op.data


class Prelu(Op, name="nn_prelu", relay_name="nn.prelu"):
    """data where positive, else alpha * data with an alpha for each position along `axis` (Relay nn.prelu): alpha [n]."""

    data: Operand
    alpha: Operand
    axis: int = 1
    pattern = Pattern.BROADCAST
    precision = Precision.FOLLOW
    keeps_shape = True

    @staticmethod
    def infer(op: View) -> TensorType:
        _check_float(op.data)
        axis = normalize_axis(op.axis, op.data.rank)
        expected = TensorType((op.data.shape[axis],), op.data.dtype)
        require_type(expected, op.alpha, f"alpha for axis {axis} of data {op.data}")
        return op.data


class _AlongAxis(Op):
    data: Operand
    axis: int = -1
    pattern = Pattern.OUT_ELEMWISE_FUSABLE
    fuse_prologue = True
    by_rows = True

    @staticmethod
    def infer(op: View) -> TensorType:
        _check_float(op.data)
        normalize_axis(op.axis, op.data.rank)
        return op.data


class Softmax(_AlongAxis, name="nn_softmax", relay_name="nn.softmax"):
    """exp(data - max) / sum(exp(data - max)) along `axis` (Relay nn.softmax)."""


class LogSoftmax(_AlongAxis, name="nn_log_softmax", relay_name="nn.log_softmax"):
    """data - max - log(sum(exp(data - max))) along `axis` (Relay nn.log_softmax)."""


class Dropout(Op, name="nn_dropout", relay_name="nn.dropout"):
    """Dropout in inference (Relay nn.dropout): data as it is, and a mask of ones in the type of data."""

    data: Operand
    rate: float = 0.5
    pattern = Pattern.OPAQUE
    result_names = ("output", "kept")
    required_results = 2

    @staticmethod
    def infer(op: View) -> list[TensorType]:
        check(0.0 <= op.rate <= 1.0, "rate", "a value in [0, 1]", op.rate)
        return [op.data, op.data]
