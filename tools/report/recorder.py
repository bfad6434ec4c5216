"""What a report keeps of a compilation while it runs: every step, the pictures of the graph, the memory plan, the tunable numbers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.instruments import KernelSchedule, PassInfo, PassTimingInstrument, ir_text
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.driver.schedule_texts import schedule_script
from relayc.pipelines.program.plan import ProgramPlan, planned
from relayc.tools.report.texts import Texts
from relayc.tools.visualize.boxes import Drawing, program_boxes


@dataclass(frozen=True)
class Step:
    """A pass that ran, or the import.

    Attributes:
      texts: numbers of the texts that the program consists of after it.
      operations: how often there is each operation.
    """

    name: str
    stage: str
    seconds: float
    texts: list[int]
    operations: Counter[str]


@dataclass
class Recording:
    """What is kept.

    Attributes:
      drawings: of the graph, by what it shows.
      plans: the memory of programs, by name.
      tunings: sensible values of the tunable numbers, by kernel and number.
      schedules: what schedules of primitives made of kernels, as text, by kernel.
    """

    texts: Texts = field(default_factory=Texts)
    steps: list[Step] = field(default_factory=list)
    drawings: dict[str, Drawing] = field(default_factory=dict)
    plans: Mapping[str, ProgramPlan] = field(default_factory=dict)
    tunings: dict[str, Mapping[str, Sequence[Any]]] = field(default_factory=dict)
    schedules: dict[str, str] = field(default_factory=dict)


class Recorder(PassTimingInstrument):
    """Fills a Recording. Times are the times of passes alone."""

    observes_schedules = observes_tunings = True

    def __init__(self) -> None:
        super().__init__()
        self.recording = Recording()

    def _keep(self, mod: IRModule, name: str, stage: str, seconds: float) -> None:
        texts, operations = self.recording.texts.add_module(ir_text(mod.module.operation, locations=True))
        self.recording.steps.append(Step(name, stage, seconds, texts, operations))

    def _draw(self, mod: IRModule, name: str) -> None:
        with suppress(ValueError):  # there is no picture of a later stage
            self.recording.drawings[name] = program_boxes(mod)

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        recording = self.recording
        if not recording.steps and not info.composite:
            self._keep(mod, "import", info.stage, 0.0)
            self._draw(mod, "imported")
        if info.name == "OutlineGroups":
            self._draw(mod, "fused")
        elif info.name == "PlanMemory":
            recording.plans = planned(mod, PassContext.current().get("relay.max_recursion_depth"))
        super().run_before_pass(mod, info)

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        timed, _ = self._open[-1]
        super().run_after_pass(mod, info)
        if not info.composite:
            self._keep(mod, info.name, info.stage, timed.seconds)

    def run_on_schedule(self, found: KernelSchedule) -> None:
        self.recording.schedules[found.kernel] = schedule_script(found)

    def run_on_tuning(self, kernel: str, values: Mapping[str, Sequence[Any]]) -> None:
        self.recording.tunings[kernel] = values
