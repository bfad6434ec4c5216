"""How the kernels of a program are scheduled, as text that a person can read, change and pass back."""

import fnmatch
from collections.abc import Callable

from relayc.dialects.discardable import SCHEDULE
from relayc.dialects.functions import symbol_name
from relayc.dialects.mlir import ir
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.instruments import KeepSchedules, KernelSchedule
from relayc.pipelines.context.passes import PassContext


def schedule_texts(compile_to_tir: Callable[[], IRModule], pattern: str = "*") -> dict[str, str]:
    """The schedules of kernels whose names match a pattern, by name.

    A comment names the strategy and its numbers. For a schedule of primitives, the blocks and loops follow in the form that
    `relayc.tir.from_source` reads, then the trace, which `schedules={NAME: trace}` of `relayc.compile` takes. For a built-in strategy, the
    loops on buffers follow.

    Args:
      compile_to_tir: compiles the program up to the tir stage.
    """
    current, kept = PassContext.current(), KeepSchedules()
    with PassContext(**current.settings, instruments=[*current.instruments, kept]):
        mod = compile_to_tir()
    by_primitives = {found.kernel: found for found in kept.found}
    texts = {}
    for op in mod.module.body.operations:
        name = symbol_name(op)
        if SCHEDULE.on(op) and fnmatch.fnmatchcase(name, pattern):
            chosen = SCHEDULE.of(op)
            texts[name] = f"# {name}: {chosen}\n{_text(op, chosen, by_primitives.get(name))}"
    return texts


def _text(op: ir.OpView, chosen: str, by_primitives: KernelSchedule | None) -> str:
    if by_primitives is None or by_primitives.schedule != chosen.split()[0]:
        return f"{op}\n"
    return schedule_script(by_primitives)


def schedule_script(found: KernelSchedule) -> str:
    """The blocks and loops that a schedule of primitives made, in TVMScript's form, and its trace, if it has one."""
    from relayc.pipelines.tir.script.printer import script

    blocks = script(IRModule.parse(found.after))
    return f"{blocks}\n# The trace.\n{found.trace}\n" if found.trace else blocks
