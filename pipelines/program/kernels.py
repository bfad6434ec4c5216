"""The kernels of a program: their schedules, what they take and give, and functions that come in the tir stage as they are."""

from collections.abc import Mapping, Sequence
from typing import Any

from relayc.dialects.functions import symbol_name
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.winograd import OWN_FLOPS
from relayc.pipelines.codegen.bufferize import bufferize_kernel
from relayc.pipelines.program.functions import Functions, specs_of, strings_of
from relayc.pipelines.schedule.cost import kernel_cost
from relayc.pipelines.schedule.strategy import Scheduled
from relayc.pipelines.schedule.table import schedule_kernel
from relayc.pipelines.schedule.tuning import Tuning
from relayc.pipelines.target import Target
from relayc.runtime.artifact import KernelInfo, TensorSpec


class Kernels:
    """Kernels in tir.

    Attributes:
      scheduled: by name.
      infos: by name, kernels first, in the order of the module.
    """

    def __init__(self, functions: Functions, needless: set[str], target: Target, config: Mapping[str, Any]) -> None:
        """Emits the kernels at the ambient insertion point.

        Args:
          needless: names of kernels that no call needs.
        """
        self.target, self.config = target, config
        self.scheduled: dict[str, Scheduled] = {}
        self._tunings: dict[str, Tuning] = {}
        wanted = [f for name, f in functions.kernels.items() if name not in needless]
        self._schedule(wanted)
        self.infos = {symbol_name(f): self._info(f) for f in wanted}
        for name in functions.tir:
            functions.tir[name].operation.clone()
        for standin in functions.standins:
            self.infos[functions.implementation(standin)] = _tir_info(functions, standin)

    def _schedule(self, kernels: Sequence[ir.OpView]) -> None:
        left = []
        for function in kernels:
            name = symbol_name(function)
            with function.operation.location:
                found = schedule_kernel(function, self.target, self.config)
            if found is None:
                left.append(function)
            else:
                self.scheduled[name], self._tunings[name] = found
        if left:
            fallback = ir.Module.create()
            with ir.InsertionPoint(fallback.body):
                for function in left:
                    function.operation.clone()
            bufferize_kernel(fallback)
            for function in fallback.body.operations:
                clone = function.operation.clone().opview
                if isinstance(clone, func.FuncOp):
                    self.scheduled[symbol_name(clone)] = Scheduled(clone)

    def _info(self, function: ir.OpView) -> KernelInfo:
        name = symbol_name(function)
        scheduled = self.scheduled[name]
        ins, outs = specs_of(function, "input"), specs_of(function, "output")
        ins = tuple(TensorSpec(s.name, scheduled.packings[i].shape, s.dtype) if i in scheduled.packings else s for i, s in enumerate(ins))
        if scheduled.workspace_bytes:
            outs += (TensorSpec("workspace", (scheduled.workspace_bytes,), "uint8"),)
        ops, sources = strings_of(function, "relay.ops"), strings_of(function, "relay.sources")
        cost = kernel_cost(function)
        moved = sum(min(s.num_bytes, cost.read.get(i, s.num_bytes)) for i, s in enumerate(ins)) + sum(s.num_bytes for s in outs)
        schedule = str(self._tunings.get(name, "bufferize"))
        return KernelInfo(name, ins, outs, ops, sources, cost.flops, moved, schedule, _own_flops(function))


def _own_flops(function: ir.OpView) -> int | None:
    found = function.operation.attributes
    return ir.IntegerAttr(found[OWN_FLOPS]).value if OWN_FLOPS in found else None


def _tir_info(functions: Functions, standin: str) -> KernelInfo:
    """Of a function of the tir stage, as a declaration describes it; what it computes is not known."""
    function = functions.standins[standin]
    ins, outs = specs_of(function, "input"), specs_of(function, "output")
    ops, sources = strings_of(function, "relay.ops"), strings_of(function, "relay.sources")
    return KernelInfo(functions.implementation(standin), ins, outs, ops, sources, 0, sum(s.num_bytes for s in (*ins, *outs)), "tir")
