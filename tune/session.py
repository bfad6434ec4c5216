"""The search over several kernels: the choice of the next kernel, its measurements, and the records."""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from relayc.pipelines.driver.tuning_space import TuningSpace
from relayc.pipelines.history.database import Database
from relayc.pipelines.history.record import Record, Trial
from relayc.pipelines.tir.strategy.tuning import SCRIPT, SKETCH
from relayc.runtime.device import Device
from relayc.tools.timing import FASTER, SLOWER
from relayc.tune.cost_model import CostModel
from relayc.tune.process import Measurer
from relayc.tune.search import AskSpace, Search
from relayc.tune.tasks import Task
from relayc.tune.worker import DEFAULT, Candidate, Measured

SECONDS = 1.0
"""The most that the times of one candidate take; most take a tenth."""
_VISIT = 4
"""Measurements of a kernel before another one may be next: a kernel that comes anew is compiled as it was."""
_DECAY = 0.85
"""Factor of the expected gain after a measurement without a gain."""

_WAIT_SECONDS = 1.0
"""Seconds to wait for a measurement before the measurer is queried for free slots."""

Steps = Generator[tuple[Task, Candidate, Candidate, float], Measured, None]
"""Requests to a measurer one after the other, each answered before the next."""

SpacesOf = Callable[[Task], tuple[Sequence[TuningSpace], AskSpace]]


@dataclass
class State:
    """The state of the search for a kernel.

    Attributes:
      best: the fastest candidate; relative: its time relative to the default; record: its record in the database.
      previous: the record in the database before.
      trials: trials of this session, in order; known: trials of earlier sessions.
      seconds: seconds of a call by the default schedule.
      stale: measurements since the last gain.
      skipped: why the kernel is not tuned, or no longer tuned.
      visits: number of its visits in progress.
    """

    task: Task
    search: Search | None = None
    best: Candidate = DEFAULT
    relative: float = 1.0
    record: Record | None = None
    previous: Record | None = None
    trials: list[Trial] = field(default_factory=list)
    known: int = 0
    seconds: float = 0.0
    stale: int = 0
    skipped: str = ""
    visits: int = 0

    @property
    def share(self) -> float:
        """What one more visit is worth: half as much for each that is under way; nothing while the first one asks for the space."""
        return 0.0 if self.visits and self.search is None else self.potential / 2**self.visits

    @property
    def potential(self) -> float:
        """Seconds of a call of the model that the kernel may still gain."""
        return 0.0 if self.skipped else (self.task.seconds * self.relative or 1e-9) * self.task.room * _DECAY**self.stale

    @property
    def saved(self) -> float:
        """Seconds of a call of the model that it has gained, by its own measurements."""
        return self.task.seconds * (1 - self.relative)


@dataclass(frozen=True)
class Status:
    """The progress of a session, for display.

    Attributes:
      kernel, candidate: the current measurement.
      trials: number of measurements so far, and its limit; None if only time is limited.
      seconds: seconds since the beginning, and their limit; None if only the number of trials is limited.
      gain: time of the model before relative to the time after, computed from the kernels.
    """

    kernel: str
    candidate: str
    trials: tuple[int, int | None]
    seconds: tuple[float, float | None]
    gain: float


class Session:
    """Searches until a limit is reached; every measurement is stored in the database immediately.

    Args:
      spaces_of: returns the tuning spaces of a kernel, and the function that queries them.
      sampler, of_sketches: sampler of candidates (see Search), and of kernels with generated schedules; by default the same.
      total: seconds of a call of the model.
      before: an earlier session, to whose gains the gains of this session are added.
      schedule_text: returns the text of a written schedule with some decisions.
      clock: returns seconds.
      sample: random numbers of a strategy of a kernel (see SampleKnobs).
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        database: Database,
        measurer: Measurer,
        spaces_of: SpacesOf,
        sampler: str,
        seed: int = 0,
        total: float = 0.0,
        of_sketches: str | None = None,
        before: "Session | None" = None,
        schedule_text: Callable[[Task, Candidate], str] | None = None,
        report: Callable[[Status], None] = lambda status: None,
        clock: Callable[[], float] = time.perf_counter,
        sample: Callable[[Task, str, int, Mapping[str, Any]], Mapping[str, Any] | None] = lambda task, strategy, seed, numbers: None,
    ) -> None:
        self.states = [State(task) for task in tasks]
        self.gains: list[float] = [] if before is None else list(before.gains)
        """Of the model, after each measurement."""
        self._before = 1.0 if before is None else before.gain
        self._begun = 0
        self._database, self._measurer, self._spaces_of, self._sampler, self._seed = database, measurer, spaces_of, sampler, seed
        self._total = max(total, sum(task.seconds for task in tasks)) or 1.0
        self._schedule_text, self._report, self._clock = schedule_text, report, clock
        self._machine = Device("cpu").name
        self._sample, self._of_sketches = sample, of_sketches or sampler
        learns = "model" in (self._of_sketches if task.sketches else sampler for task in tasks)
        self._model = CostModel(database.examples(), seed) if learns else None

    @property
    def gain(self) -> float:
        """Time of the model before in that after, as measured kernel by kernel."""
        return self._before * self._total / max(self._total - sum(state.saved for state in self.states), 1e-12)

    def run(self, trials: int | None, seconds: float | None) -> None:
        """Measures until the number of trials is reached, the time is over, or nothing is left to measure.

        A kernel is visited for several measurements at a time. The measurer gives the number of measurements that may be in progress: with
        several, kernels are visited at the same time, and one kernel more than once if no other kernel can gain as much.
        """
        start = self._clock()
        under_way: dict[Future[Measured], tuple[State, Steps]] = {}

        def is_over() -> bool:
            return (trials is not None and self._begun >= trials) or (seconds is not None and self._clock() - start >= seconds)

        def tell(state: State, candidate: str) -> None:
            done = len(self.gains)
            self._report(Status(state.task.name, candidate, (done, trials), (self._clock() - start, seconds), self.gain))

        def advance(state: State, steps: Steps, answer: Measured | None) -> None:
            try:
                request = next(steps) if answer is None else steps.send(answer)
            except StopIteration:
                state.visits -= 1
                return
            under_way[self._measurer.submit(*request)] = state, steps

        self._begun = 0
        while True:
            slots = self._measurer.slots
            state = None if len(under_way) >= slots or is_over() else max(self.states, key=lambda state: state.share, default=None)
            if state is not None and state.share > 0:
                state.visits += 1
                advance(state, self._visit(state, is_over, tell), None)
                continue
            if under_way:
                done, _ = wait(under_way, _WAIT_SECONDS, FIRST_COMPLETED)
                for future in done:
                    advance(*under_way.pop(future), future.result())
            elif slots or is_over():
                return
            else:
                time.sleep(_WAIT_SECONDS)
            if not slots and is_over():  # the measurements in progress have no worker
                return

    def _visit(self, state: State, is_over: Callable[[], bool], tell: Callable[[State, str], None]) -> Steps:
        """Some measurements of a kernel: yields each as a request, and is sent its result."""
        if state.search is None:
            tell(state, "default")
            yield from self._open(state)
        for _ in range(_VISIT):
            if state.search is None or state.skipped or is_over():
                return
            candidate = state.search.next()
            if candidate is None:
                state.skipped = "all combinations are measured"
                return
            state.search.seen.setdefault(candidate.name, None)  # another visit does not measure it, too
            self._begun += 1
            tell(state, str(candidate))
            yield from self._try(state, candidate)
            self.gains.append(self.gain)

    def _open(self, state: State) -> Steps:
        """Queries the tuning space of a kernel, and its earlier measurements."""
        spaces, ask = self._spaces_of(state.task)
        sampler = self._of_sketches if state.task.sketches else self._sampler
        search = Search(spaces, ask, sampler, self._seed, self._model, partial(self._sample, state.task))
        if search.size < 2:
            state.skipped = "nothing can be chosen"
            return
        default = Candidate(schedule=self._text(state.task, DEFAULT))
        opened = yield state.task, DEFAULT, default, SECONDS / 10
        if opened.comparison is None:
            state.skipped = f"the default schedule: {opened.outcome}: {opened.message}"
            return
        state.search, state.best, state.seconds = search, default, opened.comparison.seconds
        known = self._database.trials(state.task.key)
        for trial in known:
            # What the whole model refused is as good as the default.
            search.tell(Candidate(trial.strategy, trial.numbers), 1.0 if trial.outcome == "refused" else trial.relative)
        state.known = len(known)
        state.previous = state.record = self._database.record(state.task.key)
        best = None if state.record is None else self._recorded(state, state.record)
        if best is not None:
            again = (yield state.task, state.best, best, SECONDS).comparison
            if again is not None and again.verdict != SLOWER:
                state.best, state.relative = best, 1 / again.ratio

    def _recorded(self, state: State, record: Record) -> Candidate | None:
        """The candidate of a record; None if the search does not know its strategy."""
        if record.strategy == SKETCH:
            return Candidate(SKETCH, {}, record.numbers[SCRIPT])
        assert state.search is not None
        known = record.strategy in state.search.spaces
        return self._with_text(state.task, Candidate(record.strategy, record.numbers)) if known else None

    def _text(self, task: Task, candidate: Candidate) -> str:
        is_written = task.schedule is not None or candidate.strategy in task.sketches
        return self._schedule_text(task, candidate) if self._schedule_text is not None and is_written else ""

    def _with_text(self, task: Task, candidate: Candidate) -> Candidate:
        return replace(candidate, schedule=self._text(task, candidate))

    def _try(self, state: State, candidate: Candidate) -> Steps:
        """Measures a candidate in turns with the best one, and if it is faster, in turns with the default."""
        assert state.search is not None
        task, written = state.task, self._with_text(state.task, candidate)
        best, best_relative = state.best, state.relative
        measured = yield task, best, written, SECONDS
        found, is_best = measured.comparison, False
        relative = None if found is None else best_relative / found.ratio
        if found is not None and state.record is None:
            state.seconds = min(state.seconds, found.base_seconds)  # the first measurement is a short one
        if found is not None and found.verdict == FASTER:
            # The fastest of many is often one that was lucky: it is measured again, for longer.
            measured = yield task, Candidate(schedule=self._text(task, DEFAULT)), written, 2 * SECONDS
            again = measured.comparison
            is_best = again is not None and again.verdict == FASTER
            relative = None if again is None else 1 / again.ratio
            found = again
        if relative is not None and not is_best:
            relative = max(relative, best_relative)  # the apparent gain was noise
        if is_best and relative is not None and state.best != best and relative >= state.relative:
            is_best = False  # another worker has found a faster candidate meanwhile
        trial = replace(self._trial(task, candidate, relative, measured), features=state.search.features(candidate))
        if self._model is not None and found is not None:
            self._model.add(trial.features, found.seconds)
        record = None
        if is_best and relative is not None and found is not None:
            state.best, state.relative, state.stale = written, relative, 0
            count = state.known + len(state.trials) + 1
            record = Record(
                key=task.key,
                target=task.target,
                kernel=task.name,
                ops=task.ops,
                # A generated schedule applies wherever the kernel is compiled: it is its trace.
                strategy=SKETCH if candidate.strategy in task.sketches else candidate.strategy,
                numbers={SCRIPT: written.schedule} if candidate.strategy in task.sketches else candidate.numbers,
                seconds=found.seconds,
                default_seconds=found.base_seconds,
                ratio=found.ratio,
                low=found.low,
                high=found.high,
                trials=count,
                sizes=task.shapes,
                machine=measured.machine or self._machine,
                time=time.time(),
            )
            state.record = record
        else:
            state.stale += 1
        state.trials.append(trial)
        state.search.tell(candidate, relative)
        self._database.add(trial, record)

    def _trial(self, task: Task, candidate: Candidate, relative: float | None, measured: Measured) -> Trial:
        found = measured.comparison
        times = (0.0, 0.0, 0) if found is None else (found.seconds, found.base_seconds, found.rounds)
        machine = measured.machine or self._machine
        return Trial(task.key, candidate.strategy, candidate.numbers, relative, measured.outcome, measured.message, *times, machine=machine)

    def settle(self, refused: Sequence[str], checked: Sequence[str]) -> None:
        """Stores the results of the check by the whole model, by the keys of records: records that make it faster are marked as checked. A
        refused record is replaced by the record before it, if a model has checked that record."""
        for state in self.states:
            record = state.record
            if record is not None and record.key in checked:
                state.record = replace(record, is_checked=True, level_key=state.task.level_key)
                self._database.put(state.record)
            elif record is not None and record.key in refused:
                before = state.previous if state.previous is not record and state.previous and state.previous.is_checked else None
                self._database.add(Trial(record.key, record.strategy, record.numbers, 1.0, "refused", machine=self._machine), before)
                if before is None:
                    self._database.remove([record.key])
                state.record, state.relative, state.best = None, 1.0, DEFAULT
