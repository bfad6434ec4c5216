"""Steps of attention beside its products, which are dot_f32: softmax_weights_{columns} and transpose_f32_{size}."""

from functools import partial

from relayc import te
from relayc.dialects.mlir import lasting_context
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index
from relayc.pipelines.targets.cpu.strategies.attention.exponential import exp_below_zero
from relayc.pipelines.tir.editing.intrinsics import TensorCall, TensorIntrin
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.values import vectors

MOST = 89.0
"""Here and above the exponential is infinite. The largest f32 is e**88.7; softmax has no such numbers, and infinite from e**88.4 on will
do."""


def emit_weights(name: str, call: TensorCall) -> None:
    """Weights of some columns of a row of scores, of which there may be fewer by a number: vector by vector, in fewer operations than
    math.exp."""
    x, largest, weights, count = call["X"], call["M"], call["W"], call.counts["columns"]
    if not count.is_constant or not isinstance(count.const, int):
        raise ScheduleError(f"tensor intrinsic {name}: expected columns that are a number, found {count}")
    limit = largest.load(0)
    for start, lanes in vectors.pieces(count.const, call.target.lanes(32)):
        above = emit.arith("subf", x.load(start, lanes=lanes), emit.broadcast(limit, lanes))
        most = emit.number(MOST, above.type)
        weights.store(exp_below_zero(emit.select(emit.compare("ogt", above, most), most, above)), start)


def emit_transpose(size: int, call: TensorCall) -> None:
    """A transposed square of f32, in vector registers."""
    x, y = call["X"], call["Y"]
    columns = vectors.transpose([x.load(Index(row), 0, lanes=size) for row in range(size)])
    for row, value in enumerate(columns):
        y.store(value, row, 0)


def _softmax_weights(columns: str) -> TensorIntrin:
    name, width = f"softmax_weights_{columns}", int(columns)
    x, largest = te.placeholder((width,), name="X"), te.placeholder((1,), name="M")
    weights = te.compute((width,), lambda j: te.exp(x[j] - largest[0]), name="W")
    description = te.create_prim_func([x, largest, weights], context=lasting_context())
    return TensorIntrin.register(name, description, partial(emit_weights, name), partial={"columns": {"j": 1}})


def _transpose(size: str) -> TensorIntrin:
    name, extent = f"transpose_f32_{size}", int(size)
    x = te.placeholder((extent, extent), name="X")
    description = te.create_prim_func([x, te.compute((extent, extent), lambda i, j: x[j, i], name="Y")], context=lasting_context())
    return TensorIntrin.register(name, description, partial(emit_transpose, extent))


TensorIntrin.register_family("softmax_weights_{columns}", r"softmax_weights_([1-9]\d{0,2})", _softmax_weights)
TensorIntrin.register_family("transpose_f32_{size}", r"transpose_f32_(2|4|8|16)", _transpose)
