"""Random numbers: functions of a key and a position, the same for the same key in any order and on any number of threads."""

from relayc.dialects.relay.base import Op, Operand, Pattern, Sizes, TensorType, View, check
from relayc.dialects.relay.conditions import require_at_least
from relayc.dialects.relay.shapes import shape_text

BITS = ("uint32", "uint64")


class ThreefryGenerate(Op, name="random_threefry_generate", relay_name="random.threefry_generate"):
    """Random bits: Threefry-2x32 of 20 rounds (Salmon et al., Random123) of the position of each element in row-major order.

    The key is uint32 [2]; Relay's has ten words and comes back, advanced by what was drawn. An element of `dtype` uint32 is the first word
    of the block of its position, one of uint64 both words, the first one being the lower.
    """

    key: Operand
    out_shape: Sizes
    dtype: str = "uint32"
    pattern = Pattern.INJECTIVE

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.key == TensorType((2,), "uint32"), "key", TensorType((2,), "uint32"), op.key)
        check(op.dtype in BITS, "dtype", " or ".join(BITS), op.dtype)
        for d in op.out_shape:
            require_at_least(0, d, "out_shape", "no negative size", shape_text(op.out_shape))
        return TensorType(op.out_shape, op.dtype)
