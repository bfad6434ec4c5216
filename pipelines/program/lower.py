"""te -> tir: kernels become loops over buffers by their schedules, and programs calls, branches and loops on planned memory."""

from collections.abc import Iterable, Mapping
from typing import Any

from relayc.dialects.mlir import ir
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.parameters import Parameter
from relayc.pipelines.program import MAX_RECURSION_DEPTH
from relayc.pipelines.program.body import Call, items_of, read_program
from relayc.pipelines.program.emit import Emitter
from relayc.pipelines.program.functions import program_components, read_functions
from relayc.pipelines.program.kernels import Kernels
from relayc.pipelines.program.nodes import program_infos
from relayc.pipelines.program.places import Places
from relayc.pipelines.program.plan import Plan
from relayc.pipelines.program.results import check_results
from relayc.pipelines.schedule.inplace import concatenated
from relayc.pipelines.target import Target
from relayc.runtime.artifact import KernelInfo, ProgramInfo


class TirModule(IRModule):
    """A module in the tir stage, and what the runtime has to know of it.

    Attributes:
      programs, kernels: as in the runtime's Artifact.
      arena_bytes: size of the arena that public programs take; each of them uses what it needs of that.
      layout: where every parameter goes in the parameter blob; `parameters.Blob` writes them.
      params_bytes: size of the parameter blob.
      uses_tiles: whether a kernel has operations on matrix tiles.
    """

    def __init__(self, module: ir.Module) -> None:
        super().__init__(module)
        self.programs: tuple[ProgramInfo, ...] = ()
        self.kernels: tuple[KernelInfo, ...] = ()
        self.arena_bytes = 0
        self.layout: list[Parameter] = []
        self.params_bytes = 0
        self.uses_tiles = False

    def take_layout(self) -> list[Parameter]:
        """Hands over `layout`, and with it the arrays."""
        layout, self.layout = self.layout, []
        return layout


def lower_to_tir(mod: IRModule, target: Target, config: Mapping[str, Any] | None = None) -> TirModule:
    """Lowers a te module (see te.lower) whose results are materialized (see results) for a target.

    Args:
      config: of the PassContext: tunable numbers of schedules (see schedule.table), and relay.max_recursion_depth.

    Raises:
      RelayError: an operation or a form that a program may not have; a recursion that takes too much memory.
      ValueError: a number that no schedule has, or a depth that is not positive.
    """
    config = config or {}
    depth = config.get("relay.max_recursion_depth", MAX_RECURSION_DEPTH)
    if depth < 1:
        raise ValueError(f"relay.max_recursion_depth: expected at least 1, found {depth}")
    with mod.context, ir.Location.unknown():
        functions = read_functions(mod.module)
        programs = {name: read_program(f) for name, f in functions.programs.items()}
        for program in programs.values():
            check_results(program)
        joins = {name: parts for name, f in functions.kernels.items() if (parts := concatenated(f)) is not None}
        places = {name: Places(program, joins) for name, program in programs.items()}
        out = TirModule(ir.Module.create())
        with ir.InsertionPoint(out.module.body):
            for op in functions.other:
                op.operation.clone()
            kernels = Kernels(functions, _needless(places.values()), target, config)
            plan = Plan(functions, places, program_components(functions), kernels, mod.params, depth)
            Emitter(functions, kernels, plan).run()
        out.programs = program_infos(functions, plan)
        out.kernels = tuple(kernels.infos.values())
        out.arena_bytes = max((p.arena_bytes for p in plan.programs.values() if p.is_public), default=0)
        out.layout, out.params_bytes = plan.layout, plan.params_bytes
        out.uses_tiles = any(s.uses_tiles for s in kernels.scheduled.values())
    return out


def _needless(places: Iterable[Places]) -> set[str]:
    """Names of the kernels that no call needs, as all that call them are concatenations in place."""
    calls = [(item, p) for p in places for item in items_of(p.program.body) if isinstance(item, Call)]
    needless, needed = (
        {call.callee for call, p in calls if any(r in p.needless for r in call.op.operation.results) == flag} for flag in (True, False)
    )
    return needless - needed
