"""Kernels to be tuned: the computation of each, the sizes of its calls, and its share of a model's time."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from relayc.dialects.discardable import PARAM, RANGES, UPDATES
from relayc.dialects.functions import value_attributes
from relayc.dialects.mlir import ir
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.instruments import PassInfo, PassInstrument
from relayc.pipelines.context.target import Target
from relayc.pipelines.history.keys import kernel_key
from relayc.pipelines.history.records import level_of
from relayc.pipelines.program.functions import read_functions
from relayc.pipelines.program.turning import mark_repeated
from relayc.pipelines.tir.strategy.choice import operators_of
from relayc.pipelines.tir.strategy.table import FUNCTIONS
from relayc.runtime import Module, Profile

MOST_ROOM, LEAST_ROOM, UNKNOWN_ROOM = 0.5, 0.02, 0.25
"""Limits of the share of a kernel's time that a search may save, which follows from its distance to the peak of the machine."""


@dataclass(frozen=True)
class Task:
    """A kernel to be tuned.

    Attributes:
      key, level_key: of the kernel for the target and for its level; see history.keys.
      name, ops: name and operators of the kernel; text: a te module with only the kernel.
      params: positions of the arguments that are parameters.
      shapes: shapes of the arguments in a call; () for parameters, whose shapes are in the text.
      target: text of the target; threads: threads of a call, None for the setting of the process.
      config: config of the PassContext that compiles it.
      schedule: a schedule that the user wrote, in place of the strategies of the table.
      sketches: generated schedules by name, which are tried in addition to the strategies of the table.
      seconds: seconds of all its calls in a call of the model; calls: number of these calls, one for each call site.
      room: estimated upper bound of the share of these seconds that a search may save.
      others: bytes that the model accesses between two calls of the kernel, which evict its data from caches.
    """

    key: str
    name: str
    text: str
    ops: tuple[str, ...] = ()
    params: tuple[int, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()
    target: str = "cpu"
    threads: int | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    schedule: Any = None
    sketches: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    calls: int = 1
    room: float = UNKNOWN_ROOM
    others: int = 0
    level_key: str = ""


class KernelTexts(PassInstrument):
    """Keeps the kernels of a program as they are when they are scheduled: (key, key for the level, text, operators, parameters) by name."""

    def __init__(self, target: Target) -> None:
        self._targets = target, level_of(target)
        self.found: dict[str, tuple[str, str, str, tuple[str, ...], tuple[int, ...]]] = {}

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        if info.name != "ScheduleKernels":
            return
        with mod.context, mod.ranges:
            functions = read_functions(mod.module)
            mark_repeated(functions.programs.values(), functions.kernels)
            for name, function in functions.kernels.items():
                if not UPDATES.on(function):
                    key, level_key = (kernel_key(function, target) for target in self._targets)
                    self.found[name] = key, level_key, module_text(mod, function), tuple(operators_of(function)), params_of(function)


def params_of(function: ir.OpView) -> tuple[int, ...]:
    """Positions of the arguments of a te function that are parameters."""
    return tuple(i for i, attributes in enumerate(value_attributes(function)) if PARAM.on(attributes))


def module_text(mod: IRModule, function: ir.OpView) -> str:
    """A function of a module as the text of a module, with the ranges of symbols."""
    lines = str(function).splitlines()
    aliases = [line for line in lines if line.startswith("#")]
    attributes = mod.module.operation.attributes
    known = f" attributes {{{RANGES.name} = {RANGES.of(attributes)}}}" if RANGES.on(attributes) else ""
    return "\n".join([*aliases, f"module{known} {{", *lines[len(aliases) :], "}", ""])


def model_tasks(
    texts: KernelTexts, module: Module, profile: Profile, target: Target, threads: int | None, config: Mapping[str, Any]
) -> list[Task]:
    """The kernels that a call of a model reached, the slowest first. Kernels with one key are one task; kernels whose schedule the user
    specifies, by a pattern of names, are left out.

    Args:
      config: config of the PassContext.
      profile: profile of the call.
    """
    params_bytes = sum(array.nbytes for array in module.params.values())
    taken = [*config.get("schedule.kernels", {}), *config.get(FUNCTIONS, {})]
    kept = {key: value for key, value in config.items() if key.startswith("schedule.") and key != FUNCTIONS}
    found: dict[str, Task] = {}
    for row in profile.rows:
        name, at = row.kernel.name, row.kernel.inputs
        if name not in texts.found or not row.calls or any(fnmatchcase(name, pattern) for pattern in taken):
            continue
        key, level_key, text, ops, params = texts.found[name]
        task = found.get(key)
        if task is None:
            shapes = tuple(() if i in params else tuple(map(int, spec.shape)) for i, spec in enumerate(at))
            # A kernel that a loop calls again still has its data in caches.
            own = sum(int(at[i].num_bytes) for i in params)
            others = max(0, params_bytes - own) if row.calls == 1 else 0
            room = UNKNOWN_ROOM if profile.peak is None else row.lost(profile.peak) / max(row.seconds, 1e-12)
            room = min(MOST_ROOM, max(LEAST_ROOM, room))
            task = Task(
                key, name, text, ops, params, shapes, str(target), threads, kept, calls=0, room=room, others=others, level_key=level_key
            )
        found[key] = replace(task, seconds=task.seconds + row.seconds, calls=task.calls + 1)
    return sorted(found.values(), key=lambda task: -task.seconds)
