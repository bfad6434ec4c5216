"""Random numbers: functions of a key and a position, the same for the same key in any order and on any number of threads."""

from relayc.dialects.relay.base import Op, Operand, Pattern, Sizes, TensorType, View, check
from relayc.dialects.relay.conditions import require_at_least
from relayc.dialects.relay.shapes import shape_text

BITS = ("uint32", "uint64")


class ThreefryGenerate(Op, name="random_threefry_generate", relay_name="random.threefry_generate"):
    """Random bits: Threefry of 20 rounds (Salmon et al., Random123) of the position of each element in row-major order.

    A key of uint32 [2] is that of Threefry-2x32: an element of `dtype` uint32 is the first word of the block of its position, one of uint64
    both words, the first one being the lower. A key of uint64 [8] is that of Threefry-4x64 as TVM has it: four words of a key and four of
    the counter of the first block; elements are uint64, of which four are a block. Relay's operator has a key of ten words and gives it
    back, advanced by what was drawn.
    """

    key: Operand
    out_shape: Sizes
    dtype: str = "uint32"
    pattern = Pattern.INJECTIVE

    @staticmethod
    def infer(op: View) -> TensorType:
        short, long = TensorType((2,), "uint32"), TensorType((8,), "uint64")
        is_long = op.key == long
        check(is_long or op.key == short, "key", f"{short} or {long}", op.key)
        check(op.dtype in BITS[is_long:], "dtype", " or ".join(BITS[is_long:]), op.dtype)
        for d in op.out_shape:
            require_at_least(0, d, "out_shape", "no negative size", shape_text(op.out_shape))
        return TensorType(op.out_shape, op.dtype)
