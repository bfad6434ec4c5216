"""Compute rule of random bits: Threefry (Salmon, Moraes, Dror and Shaw: Parallel random numbers, as easy as 1, 2, 3)."""

from collections.abc import Sequence
from functools import reduce
from math import prod

from relayc.dialects.mlir import arith, linalg
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.core import Value, affine_map, compute, index_constant, operand_type, parallel, reshape, result_type
from relayc.pipelines.te.rules.literal import INDEX_DTYPE, divide, equal, integer_of

_WORD = "uint32"
_ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
_PARITY = 0x1BD11BDA
_ROUNDS = 20

_LONG = "uint64"
_LONG_ROTATIONS = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))
_LONG_PARITY = 0x1BD11BDAA9FC1A22


def _rotated(x: Value, by: int, dtype: str = _WORD) -> Value:
    left = arith.shli(x, scalar.constant(by, dtype))
    return arith.ori(left, arith.shrui(x, scalar.constant(scalar.bits(dtype) - by, dtype)))


def threefry(keys: tuple[Value, Value], counter: tuple[Value, Value]) -> tuple[Value, Value]:
    """The two words of a block; words are i32."""
    parity = arith.xori(arith.xori(*keys), scalar.constant(_PARITY, _WORD))
    schedule = (*keys, parity)
    x, y = (scalar.add(c, k, _WORD) for c, k in zip(counter, keys, strict=True))
    for i in range(_ROUNDS):
        x = scalar.add(x, y, _WORD)
        y = arith.xori(_rotated(y, _ROTATIONS[i % 8]), x)
        if i % 4 == 3:
            step = i // 4 + 1
            x = scalar.add(x, schedule[step % 3], _WORD)
            y = scalar.add(scalar.add(y, schedule[(step + 1) % 3], _WORD), scalar.constant(step, _WORD), _WORD)
    return x, y


def threefry_long(keys: Sequence[Value], counter: Sequence[Value]) -> list[Value]:
    """The four words of a block, computed as in TVM: no key is added after the last round. Words are i64."""
    parity = reduce(arith.xori, keys, scalar.constant(_LONG_PARITY, _LONG))
    schedule, words = (*keys, parity), list(counter)
    for i in range(_ROUNDS):
        if i % 4 == 0:
            step = i // 4
            words = [scalar.add(w, schedule[(step + j) % 5], _LONG) for j, w in enumerate(words)]
            words[3] = scalar.add(words[3], scalar.constant(step, _LONG), _LONG)
        for j, by in enumerate(_LONG_ROTATIONS[i % 8]):
            total = scalar.add(words[2 * j], words[2 * j + 1], _LONG)
            words[2 * j : 2 * j + 2] = total, arith.xori(total, _rotated(words[2 * j + 1], by, _LONG))
        words[1], words[3] = words[3], words[1]
    return words


def _generate_long(out: TensorType, key: Value) -> Value:
    """Element i is word i % 4 of block i // 4. A block adds its number to each word of the counter; a partial last block adds the number of
    preceding elements to the last word, as in TVM."""
    count = prod(out.sizes)

    def body(*state: Value) -> Value:
        index, whole = linalg.IndexOp(0).result, index_constant(count // 4 * 4)
        block = divide(index, index_constant(4))
        is_last = scalar.compare("ge", index, whole, INDEX_DTYPE)
        steps = [scalar.select(is_last, index_constant(0), block)] * 3 + [scalar.select(is_last, whole, block)]
        counter = [scalar.add(c, integer_of(step, _LONG), _LONG) for c, step in zip(state[4:], steps, strict=True)]
        found, *others = threefry_long(state[:4], counter)
        word = arith.subi(index, arith.muli(block, index_constant(4)))
        for i, other in enumerate(others, 1):
            found = scalar.select(equal(word, index_constant(i)), other, found)
        return found

    return parallel(TensorType((count,), out.dtype), [key] * 8, body, [affine_map(1, [i]) for i in range(8)])


@compute("random_threefry_generate")
def threefry_generate(op: Op, key: Value) -> Value:
    out = result_type(op)
    count = prod(out.sizes)
    if operand_type(op).dtype == _LONG:
        return reshape(_generate_long(out, key), out.sizes)
    short = isinstance(count, int) and count < 1 << 31

    def body(k0: Value, k1: Value) -> Value:
        index = linalg.IndexOp(0).result
        low = arith.index_cast(scalar.te_element("int32"), index)
        wide = scalar.te_element("int64")
        high = scalar.constant(0, _WORD)
        if not short:
            whole = arith.index_cast(wide, index)
            high = arith.trunci(scalar.te_element(_WORD), arith.shrui(whole, scalar.constant(32, "int64")))
        x, y = threefry((k0, k1), (low, high))
        if out.dtype == _WORD:
            return x
        upper = arith.shli(arith.extui(wide, y), scalar.constant(32, "int64"))
        return arith.ori(upper, arith.extui(wide, x))

    maps = [affine_map(1, [0]), affine_map(1, [1])]
    return reshape(parallel(TensorType((count,), out.dtype), [key, key], body, maps), out.sizes)
