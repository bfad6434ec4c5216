"""Special registers, and instructions without an effect when threads run one after the other."""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.targets.gpu.emulate.registry import instruction
from relayc.pipelines.targets.gpu.emulate.thread import Thread
from relayc.pipelines.targets.gpu.positions import AXES, NUMBERS

_PREFIX = "nvvm.read.ptx.sreg."
_NAMES = {
    "tid": "thread_id",
    "ctaid": "block_id",
    "ntid": "block_dim",
    "nctaid": "grid_dim",
    "laneid": "lane_id",
    "warpid": "subgroup_id",
    "warpsize": "subgroup_size",
    "nwarpid": "num_subgroups",
}
"""The names that the gpu dialect gives to what registers hold."""
_SUFFIXES = [".x", ".y", ".z"]


@instruction(*[f"{_PREFIX}{register}{axis}" for register, name in _NAMES.items() for axis in (_SUFFIXES if name in AXES else [""])])
def special_register(op: ir.Operation, thread: Thread) -> Sequence[ir.Value]:
    register, _, axis = op.name.removeprefix(_PREFIX).partition(".")
    name = _NAMES[register]
    value = AXES[name](thread.position)["xyz".index(axis)] if axis else NUMBERS[name](thread.position)
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
    "nvvm.wgmma.fence.aligned",
)
def nothing(op: ir.Operation, thread: Thread) -> None:
    """Fences and hints: memory is seen in the order in which threads run."""
