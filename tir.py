"""Schedules: how kernels run, said by people. See docs/schedules.md."""

from relayc.pipelines.blocks.intrinsics import Operand, TensorCall, TensorIntrin
from relayc.pipelines.blocks.references import BlockRV, LoopRV
from relayc.pipelines.blocks.schedule import Schedule, replay
from relayc.pipelines.blocks.trace import Trace
from relayc.pipelines.blocks.tvmscript import language as T
from relayc.pipelines.blocks.tvmscript.printer import script, show
from relayc.pipelines.blocks.tvmscript.reader import from_source, prim_func
from relayc.pipelines.blocks.tvmscript.source import ScriptError
from relayc.pipelines.blocks.views import ScheduleError

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
