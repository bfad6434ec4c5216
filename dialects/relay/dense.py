"""Matrix products and the bias that follows them: nn.dense, nn.matmul, nn.batch_matmul, nn.bias_add."""

from relayc.dialects.relay.base import Op, Operand, Pattern, Precision, Size, TensorType, View, check
from relayc.dialects.relay.conditions import require_equal, require_type
from relayc.dialects.relay.kinds import NUMBER, check_factors
from relayc.dialects.relay.linear import Linear, WeightChannels
from relayc.dialects.relay.shapes import normalize_axis


def _contract(a: TensorType, a_axis: int, b: TensorType, b_axis: int, names: tuple[str, str]) -> None:
    """The dimensions summed over must agree."""
    found, expected = b.shape[b_axis], a.shape[a_axis]
    require_equal(found, expected, f"dimension {b_axis} of {names[1]} {b}", f"{expected} (of {names[0]} {a})", found)


class Dense(Linear, name="nn_dense", relay_name="nn.dense"):
    """data x weight^T: data [..., in], weight [units, in] -> [..., units] (Relay nn.dense).

    `units` is optional, checked where given. `out_dtype` is the dtype of the result, that of data where empty.
    """

    data: Operand
    weight: Operand
    units: Size | None = None
    out_dtype: str = ""
    pattern = Pattern.OUT_ELEMWISE_FUSABLE
    precision = Precision.ALWAYS

    @staticmethod
    def infer(op: View) -> TensorType:
        names = ("data", "weight")
        check_factors(op.data, op.weight, names, op.out_dtype)
        check(op.data.rank >= 1, "rank of data", "at least 1", op.data.rank)
        check(op.weight.rank == 2, "rank of weight", 2, op.weight.rank)
        _contract(op.data, op.data.rank - 1, op.weight, 1, names)
        units = op.weight.shape[0]
        require_equal(units, op.units, "units", f"{units} (weight {op.weight})", op.units)
        return TensorType((*op.data.shape[:-1], op.units if units is None else units), op.out_dtype or op.data.dtype)

    def channel_axis(self, of_result: bool) -> int | None:
        return TensorType.of(self.data).rank - 1

    def weight_channels(self, of_result: bool) -> WeightChannels:
        return WeightChannels(0 if of_result else 1)


class Matmul(Linear, name="nn_matmul", relay_name="nn.matmul"):
    """tensor_a x tensor_b, each transposed where its flag is set (Relay nn.matmul).

    tensor_a [..., m, k] ([k, m] when transposed, then of rank 2), tensor_b [k, n] ([n, k] when transposed) -> [..., m, n].
    """

    tensor_a: Operand
    tensor_b: Operand
    units: Size | None = None
    out_dtype: str = ""
    transpose_a: bool = False
    transpose_b: bool = False
    pattern = Pattern.OUT_ELEMWISE_FUSABLE
    precision = Precision.ALWAYS

    @staticmethod
    def infer(op: View) -> TensorType:
        a, b, names = op.tensor_a, op.tensor_b, ("tensor_a", "tensor_b")
        check_factors(a, b, names, op.out_dtype)
        check(a.rank == 2 if op.transpose_a else a.rank >= 1, "rank of tensor_a", 2 if op.transpose_a else "at least 1", a.rank)
        check(b.rank == 2, "rank of tensor_b", 2, b.rank)
        _contract(a, 0 if op.transpose_a else a.rank - 1, b, 1 if op.transpose_b else 0, names)
        units = b.shape[0 if op.transpose_b else 1]
        require_equal(units, op.units, "units", f"{units} (tensor_b {b})", op.units)
        rows = a.shape[1:] if op.transpose_a else a.shape[:-1]
        return TensorType((*rows, op.units if units is None else units), op.out_dtype or a.dtype)

    def channel_axis(self, of_result: bool) -> int | None:
        return None if self.transpose_a and not of_result else TensorType.of(self.tensor_a).rank - 1

    def weight_channels(self, of_result: bool) -> WeightChannels:
        return WeightChannels(0 if self.transpose_b == of_result else 1)


class BatchMatmul(Op, name="nn_batch_matmul", relay_name="nn.batch_matmul"):
    """A matrix product for each entry of the batch (Relay nn.batch_matmul; tensor_b is transposed by default).

    tensor_a [b, m, k] ([b, k, m] when transposed), tensor_b [b, n, k] ([b, k, n] when not transposed) -> [b, m, n]. A batch of 1 is
    broadcast.
    """

    tensor_a: Operand
    tensor_b: Operand
    out_dtype: str = ""
    transpose_a: bool = False
    transpose_b: bool = True
    pattern = Pattern.OUT_ELEMWISE_FUSABLE
    precision = Precision.ALWAYS

    @staticmethod
    def infer(op: View) -> TensorType:
        a, b, names = op.tensor_a, op.tensor_b, ("tensor_a", "tensor_b")
        check_factors(a, b, names, op.out_dtype)
        check(a.rank == 3, "rank of tensor_a", 3, a.rank)
        check(b.rank == 3, "rank of tensor_b", 3, b.rank)
        _contract(a, 1 if op.transpose_a else 2, b, 2 if op.transpose_b else 1, names)
        batches = {n for n in (a.shape[0], b.shape[0]) if n not in (None, 1)}
        if len(batches) > 1:
            require_equal(a.shape[0], b.shape[0], f"batch of tensor_b {b}", f"{a.shape[0]} or 1 (of tensor_a {a})", b.shape[0])
        batch = batches.pop() if batches else (None if None in (a.shape[0], b.shape[0]) else 1)
        rows, columns = a.shape[2 if op.transpose_a else 1], b.shape[1 if op.transpose_b else 2]
        return TensorType((batch, rows, columns), op.out_dtype or a.dtype)


class BiasAdd(Op, name="nn_bias_add", relay_name="nn.bias_add"):
    """data plus a vector along one axis (Relay nn.bias_add): data [..., n, ...], bias [n]."""

    data: Operand
    bias: Operand
    axis: int = 1
    pattern = Pattern.BROADCAST
    precision = Precision.FOLLOW
    keeps_shape = True

    @staticmethod
    def infer(op: View) -> TensorType:
        NUMBER.require("data", op.data)
        axis = normalize_axis(op.axis, op.data.rank)
        check(op.bias.dtype == op.data.dtype, "bias", f"the dtype of data, {op.data.dtype}", op.bias.dtype)
        expected = TensorType((op.data.shape[axis],), op.data.dtype)
        require_type(expected, op.bias, f"bias for axis {axis} of data {op.data}")
        return op.data
