"""Schedules: how kernels run, said by people. See docs/schedules.md."""

from relayc.pipelines.blocks.intrinsics import Operand, TensorCall, TensorIntrin
from relayc.pipelines.blocks.schedule import BlockRV, LoopRV, Schedule, replay
from relayc.pipelines.blocks.structure import ScheduleError
from relayc.pipelines.blocks.trace import Trace

__all__ = ["BlockRV", "LoopRV", "Operand", "Schedule", "ScheduleError", "TensorCall", "TensorIntrin", "Trace", "replay"]
