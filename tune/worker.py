"""Measurements in a separate process, which answers requests over a socket.

A request is (task, base, candidate, seconds), an answer a Measured. The process compiles the kernel, compares its results with the results
of the default schedule, and times both in turns. It may crash, hang, or run out of memory: see tune.process.
"""

import contextlib
import itertools
import json
import math
import resource
import signal
import sys
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import tvm_ffi

from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile_kernel import compile_kernel
from relayc.pipelines.history.records import DATABASE
from relayc.pipelines.program.functions import read_functions, specs_of
from relayc.processes import answer_requests
from relayc.runtime.artifact import TensorSpec
from relayc.runtime.device_function import DeviceFunction
from relayc.runtime.kernel import Kernel
from relayc.runtime.threads import Team
from relayc.tools.inputs import random_inputs, sizes_of_call
from relayc.tools.reference import compare
from relayc.tools.timing import WORTH, Comparison, compare_times, is_decided
from relayc.tune.tasks import Task

_MOST_COPIES, _MOST_COPY_BYTES = 64, 256 << 20
"""Of parameters that calls take in turns."""
_ROUNDS, _MOST_SECONDS = 20, 10.0
"""A candidate that seems faster gets so many rounds, where calls take so long that there were too few to know; not for longer than that."""
_LAUNCHES = 16
"""Calls that a GPU gets at once, so that a kernel takes longer than to submit it and to wait for it."""
_HOPELESS = 0.8
"""Ratio of the base's time to a candidate's below which a few rounds are enough."""
_KEPT = 3
"""Number of compiled candidates to keep: the default, the best, and the measured candidate."""


@dataclass(frozen=True)
class Candidate:
    """A way to compile a kernel: a strategy with its numbers; "" for the default strategy.

    Attributes:
      schedule: text of a trace or a module, in place of a strategy of the table.
    """

    strategy: str = ""
    numbers: Mapping[str, Any] = field(default_factory=dict)
    schedule: str = ""

    @property
    def name(self) -> str:
        """Equal for equal candidates."""
        return json.dumps([self.strategy, sorted(self.numbers.items()), self.schedule])

    def __str__(self) -> str:
        return " ".join([self.strategy or "default", *(f"{name}={value}" for name, value in self.numbers.items())])


DEFAULT = Candidate()


@dataclass(frozen=True)
class Measured:
    """The result of measuring a candidate.

    Attributes:
      outcome: "measured", "wrong" results, "failed" to compile or run, "crashed", "timeout".
      comparison: comparison of the base with the candidate.
      message: message of the error.
      machine: name of the machine; "" for this machine.
    """

    outcome: str
    comparison: Comparison | None = None
    message: str = ""
    machine: str = ""


class WrongResult(ValueError):
    """A candidate that gives something else than the default schedule."""


class Bench:
    """Measures candidates of one kernel after the other."""

    def __init__(self) -> None:
        self._task: Task | None = None
        self._calls: dict[str, Callable[[], Any]] = {}
        self._memory: dict[Hashable, list[tvm_ffi.Tensor]] = {}
        self._params: dict[str, np.ndarray] = {}
        self._expected: list[np.ndarray] = []

    def measure(self, task: Task, base: Candidate, candidate: Candidate, seconds: float) -> Measured:
        """Times a candidate and the base in turns, after it has given the same results as the default."""
        if task != self._task:
            self._task, self._calls, self._memory, self._params, self._expected = task, {}, {}, {}, []
        with PassContext(config={**task.config, DATABASE: ""}):
            try:
                first, second = self._compiled(task, base), self._compiled(task, candidate)
                with Team(task.threads):
                    clock = clock_of(task.threads if launches_of(task) == 1 else None)
                    found = compare_times(first, second, seconds, _is_enough, clock)
                    if found.high == math.inf and found.ratio > 1:
                        more = min(_MOST_SECONDS, seconds * _ROUNDS / found.rounds)
                        found = compare_times(first, second, more, _is_enough, clock)
                calls = launches_of(task)
                return Measured("measured", replace(found, base_seconds=found.base_seconds / calls, seconds=found.seconds / calls))
            except WrongResult as error:
                return Measured("wrong", message=str(error))
            except Exception as error:  # whatever a strategy or MLIR raises costs this candidate
                return Measured("failed", message=" ".join(f"{type(error).__name__}: {error}".split())[:500])

    def _compiled(self, task: Task, candidate: Candidate) -> Callable[[], Any]:
        """A call of a candidate whose results equal the results of the default schedule."""
        found = self._calls.pop(candidate.name, None)
        if found is None:
            if candidate != DEFAULT and not self._expected:
                self._compiled(task, DEFAULT)
            specs, results, found = self._made(task, candidate)
            if candidate == DEFAULT:
                self._expected = results
            check_results(specs, results, self._expected)
        self._calls[candidate.name] = found  # in the order of their last use
        while len(self._calls) > _KEPT:
            self._calls.pop(next(name for name in self._calls if name != DEFAULT.name))
        return found

    def _made(self, task: Task, candidate: Candidate) -> tuple[Sequence[TensorSpec], list[np.ndarray], Callable[[], Any]]:
        """What a candidate gives, and a call of it."""
        kernel, inputs = compiled(task, candidate, self._params)
        results = kernel(*inputs.values())
        arrays = [np.asarray(array) for array in (results if isinstance(results, (tuple, list)) else (results,))]
        return kernel.outputs, arrays, self._call(task, kernel, inputs)

    def _call(self, task: Task, kernel: Kernel, inputs: Mapping[str, Any]) -> Callable[[], Any]:
        """A call of the function of the kernel alone, its parameters packed and its memory at hand. Where the model's calls find the
        parameters in no cache, each call has others. On a GPU, `launches_of` calls of the kernel with the same arguments."""
        if isinstance(kernel.function, DeviceFunction):
            device = kernel.function.device
            launch = kernel.function.repeated([device.tensor(array) for array in inputs.values()], launches_of(task))

            def call() -> None:
                launch()
                device.synchronize()

            return call
        sizes = sizes_of_call(kernel.module, dict(inputs))
        numbers = [sizes[name] for name in kernel.info.symbols]
        params = [kernel.info.inputs[i] for i in task.params]
        copies = copies_of(sum(int(spec.num_bytes) for spec in params), task)
        turns = []
        for turn in range(copies):
            tensors = [self._tensor(spec, sizes, turn if spec in params else 0) for spec in (*kernel.info.inputs, *kernel.info.outputs)]
            turns.append(partial(kernel.packed, *tensors, *numbers))
        following = itertools.cycle(turns)
        return turns[0] if copies == 1 else lambda: next(following)()

    def _tensor(self, spec: TensorSpec, sizes: Mapping[str, int], copy: int) -> tvm_ffi.Tensor:
        """Memory that all candidates share: its addresses can change the speed of a kernel by half."""
        found = self._memory.setdefault((spec.name, spec.dtype, spec.at(sizes)), [])
        while len(found) <= copy:
            found.append(tvm_ffi.from_dlpack(random_inputs([spec], len(found), sizes)[spec.name]))
        return found[copy]


def launches_of(task: Task) -> int:
    """How many calls of a kernel are timed as one."""
    target = Target(task.target)
    return _LAUNCHES if target.is_gpu and not target.emulate else 1


def copies_of(num_bytes: int, task: Task) -> int:
    """How many copies of its parameters the calls of a kernel take in turns: so many that they are in no cache which the model's other
    parameters would fill, too."""
    target = Target(task.target)
    filled = [size for size in (target.l2_bytes, target.l3_bytes) if size and task.others + num_bytes > size]
    if not num_bytes or not filled:
        return 1
    return max(1, min(_MOST_COPIES, _MOST_COPY_BYTES // num_bytes, 1 + -(-2 * max(filled) // num_bytes)))


def compiled(task: Task, candidate: Candidate, params: dict[str, np.ndarray]) -> tuple[Kernel, Mapping[str, Any]]:
    """The kernel compiled by a candidate, and inputs for it.

    Args:
      params: the parameters by name; missing parameters are generated.
    """
    mod = IRModule.parse(task.text)
    with mod.context:
        functions = read_functions(mod.module)
        function = {**functions.kernels, **functions.programs}[task.name]
        specs = specs_of(function, "input")
    params.update({} if params else random_inputs([specs[i] for i in task.params], 0))
    settings = {f"{candidate.strategy}.{name}": value for name, value in candidate.numbers.items()}
    kernel = compile_kernel(
        mod,
        Target(task.target),
        {} if candidate.schedule or not candidate.strategy else {"strategy": candidate.strategy, **settings},
        {i: params[specs[i].name] for i in task.params},
        task.name,
        task.threads,
        schedule=candidate.schedule or None,
    )
    shapes = [shape for i, shape in enumerate(task.shapes) if i not in task.params]
    given = [TensorSpec(spec.name, shape, spec.dtype) for spec, shape in zip(kernel.inputs, shapes, strict=True)]
    return kernel, random_inputs(given, 1)


def check_results(specs: Sequence[TensorSpec], found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    """Raises WrongResult where results differ by more than sums in another order do: floats by the tolerances of their format, others at
    all."""
    for i, (spec, one, other) in enumerate(zip(specs, found, expected, strict=True)):
        if "float" not in spec.dtype:
            agrees, far = np.array_equal(one, other), "other values"
        else:
            compared = compare({"": one}, {"": other}, "f32" if spec.dtype in ("float32", "float64") else "bf16")
            agrees, far = compared.agrees, f"a difference of {compared.difference:.3g}"
        if not agrees:
            raise WrongResult(f"result {i}: expected what the default schedule gives, found {far}")


def clock_of(threads: int | None) -> Callable[[], float]:
    """The clock for calls: with one computing thread, the CPU time of the thread, which excludes the time of other processes."""
    return time.thread_time if threads == 1 else time.perf_counter


def _is_enough(found: Comparison) -> bool:
    """Whether a candidate is known to be faster, or known not to be worth a change."""
    return is_decided(found) or found.high < 1 + WORTH or found.ratio < _HOPELESS


def main(bench: Bench | None = None) -> None:
    """The process, whose first argument says how many bytes of memory it may take; 0 for no limit."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if num_bytes := int(sys.argv[1]):
        with contextlib.suppress(ValueError, OSError):  # not on every system
            resource.setrlimit(resource.RLIMIT_DATA, (num_bytes, num_bytes))
    measure = (bench or Bench()).measure
    answer_requests(lambda request: measure(*request))
