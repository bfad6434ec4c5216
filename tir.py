"""Schedules: how kernels run, said by people. See docs/schedules.md."""

from relayc.pipelines.tir.editing.intrinsics import Operand, TensorCall, TensorIntrin
from relayc.pipelines.tir.schedule.references import BlockRV, LoopRV
from relayc.pipelines.tir.schedule.schedule import Schedule, replay
from relayc.pipelines.tir.schedule.trace import Trace
from relayc.pipelines.tir.script import language as T
from relayc.pipelines.tir.script.printer import script, show
from relayc.pipelines.tir.script.reader import from_source, prim_func
from relayc.pipelines.tir.script.source import ScriptError
from relayc.pipelines.tir.tree.members import ScheduleError

__all__ = [
    "BlockRV",
    "LoopRV",
    "Operand",
    "Schedule",
    "ScheduleError",
    "ScriptError",
    "T",
    "TensorCall",
    "TensorIntrin",
    "Trace",
    "from_source",
    "prim_func",
    "replay",
    "script",
    "show",
]
