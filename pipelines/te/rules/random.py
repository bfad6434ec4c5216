"""Compute rule of random bits: Threefry-2x32 (Salmon, Moraes, Dror and Shaw: Parallel random numbers, as easy as 1, 2, 3)."""

from math import prod

from relayc.dialects.mlir import arith, linalg
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.core import Value, affine_map, compute, parallel, reshape, result_type

_WORD = "uint32"
_ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
_PARITY = 0x1BD11BDA
_ROUNDS = 20


def _rotated(x: Value, by: int) -> Value:
    left = arith.ShLIOp(x, scalar.constant(by, _WORD)).result
    return arith.OrIOp(left, arith.ShRUIOp(x, scalar.constant(32 - by, _WORD)).result).result


def threefry(keys: tuple[Value, Value], counter: tuple[Value, Value]) -> tuple[Value, Value]:
    """Both words of a block; words are i32."""
    parity = arith.XOrIOp(arith.XOrIOp(*keys).result, scalar.constant(_PARITY, _WORD)).result
    schedule = (*keys, parity)
    x, y = (scalar.add(c, k, _WORD) for c, k in zip(counter, keys, strict=True))
    for i in range(_ROUNDS):
        x = scalar.add(x, y, _WORD)
        y = arith.XOrIOp(_rotated(y, _ROTATIONS[i % 8]), x).result
        if i % 4 == 3:
            step = i // 4 + 1
            x = scalar.add(x, schedule[step % 3], _WORD)
            y = scalar.add(scalar.add(y, schedule[(step + 1) % 3], _WORD), scalar.constant(step, _WORD), _WORD)
    return x, y


@compute("random_threefry_generate")
def threefry_generate(op: Op, key: Value) -> Value:
    out = result_type(op)
    count = prod(out.sizes)
    short = isinstance(count, int) and count < 1 << 31

    def body(k0: Value, k1: Value) -> Value:
        index = linalg.IndexOp(0).result
        low = arith.IndexCastOp(scalar.te_element("int32"), index).result
        wide = scalar.te_element("int64")
        high = scalar.constant(0, _WORD)
        if not short:
            whole = arith.IndexCastOp(wide, index).result
            high = arith.TruncIOp(scalar.te_element(_WORD), arith.ShRUIOp(whole, scalar.constant(32, "int64")).result).result
        x, y = threefry((k0, k1), (low, high))
        if out.dtype == _WORD:
            return x
        upper = arith.ShLIOp(arith.ExtUIOp(wide, y).result, scalar.constant(32, "int64")).result
        return arith.OrIOp(upper, arith.ExtUIOp(wide, x).result).result

    maps = [affine_map(1, [0]), affine_map(1, [1])]
    return reshape(parallel(TensorType((count,), out.dtype), [key, key], body, maps), out.sizes)
