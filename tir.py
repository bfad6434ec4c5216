"""Schedules: how kernels run, said by people. See docs/schedules.md."""

from relayc.pipelines.blocks.references import BlockRV, LoopRV
from relayc.pipelines.blocks.schedule import Schedule, replay
from relayc.pipelines.blocks.structure import ScheduleError
from relayc.pipelines.blocks.trace import Trace

__all__ = ["BlockRV", "LoopRV", "Schedule", "ScheduleError", "Trace", "replay"]
