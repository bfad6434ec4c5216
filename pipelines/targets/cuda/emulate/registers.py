"""Special registers, and instructions without an effect when threads run one after the other."""

from collections.abc import Callable, Mapping, Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.targets.gpu.emulate.positions import WARP, Position, product
from relayc.pipelines.targets.gpu.emulate.registry import instruction
from relayc.pipelines.targets.gpu.emulate.thread import Thread

_PREFIX = "nvvm.read.ptx.sreg."
_OF_AXIS: Mapping[str, Callable[[Position], Sequence[ir.Value]]] = {
    "tid": lambda position: position.thread_id,
    "ctaid": lambda position: position.block_id,
    "ntid": lambda position: position.block,
    "nctaid": lambda position: position.grid,
}


def _warps(position: Position) -> ir.Value:
    return emit.arith("ceildivui", product(position.block), emit.index_constant(WARP))


_OTHERS: Mapping[str, Callable[[Position], ir.Value]] = {
    "laneid": lambda position: emit.arith("remui", position.linear, emit.index_constant(WARP)),
    "warpid": lambda position: emit.arith("divui", position.linear, emit.index_constant(WARP)),
    "warpsize": lambda position: emit.index_constant(WARP),
    "nwarpid": _warps,
}


@instruction(*[f"{_PREFIX}{name}.{axis}" for name in _OF_AXIS for axis in "xyz"], *[f"{_PREFIX}{name}" for name in _OTHERS])
def special_register(op: ir.Operation, thread: Thread) -> Sequence[ir.Value]:
    name, _, axis = op.name.removeprefix(_PREFIX).partition(".")
    value = _OF_AXIS[name](thread.position)["xyz".index(axis)] if axis else _OTHERS[name](thread.position)
    return [emit.create("arith.index_cast", [op.results[0].type], [value])]


@instruction(
    "nvvm.fence.mbarrier.init",
    "nvvm.fence.proxy",
    "nvvm.fence.proxy.acquire",
    "nvvm.fence.proxy.release",
    "nvvm.fence.sc.cluster",
    "nvvm.memory.barrier",
    "nvvm.nanosleep",
    "nvvm.prefetch",
    "nvvm.setmaxregister",
)
def nothing(op: ir.Operation, thread: Thread) -> Sequence[ir.Value]:
    """Fences and hints: memory is seen in the order in which threads run."""
    return []
