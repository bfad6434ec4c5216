"""Times of a program's calls one by one, and of whole calls: what a profile is made of."""

import statistics
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relayc.runtime.artifact import aligned_array
from relayc.runtime.device_function import DeviceFunction
from relayc.runtime.exceptions import reraise_original
from relayc.runtime.function import Function
from relayc.runtime.profile import Peak, Profile, make_profile
from relayc.runtime.program_code import ProgramCode
from relayc.runtime.stepwise import Stepwise
from relayc.runtime.timing import timed

_Rounds = list[list[tuple[float, int]]]
"""Seconds and calls of each call site in each round."""


def profile_steps(
    code: ProgramCode,
    program: Function | DeviceFunction,
    given: Sequence[Any],
    params: np.ndarray,
    repeat: int,
    measure_peak: Callable[[int], Peak] | None,
) -> Profile:
    """Times each call site of a program and whole calls; medians over `repeat` rounds.

    Args:
      given: inputs in order, which a call has accepted.
      params: the parameter blob.
    """
    if isinstance(program, DeviceFunction):
        steps, rounds, whole = _on_device(code, program, given, repeat)
        threads = 1
    else:
        with program.host_values():
            arrays = program.check(given)
            steps, rounds, threads = _on_host(code, program, arrays, params, repeat)
        taken = given if program.has_host_values else arrays
        whole = list(timed(lambda: program(*taken), 1, repeat).results)
    times = [(statistics.median(s for s, _ in site), statistics.median_low(n for _, n in site)) for site in zip(*rounds, strict=True)]
    return make_profile(steps.sites, times, statistics.median(whole), threads, measure_peak, steps.work)


def _rounds(steps: Stepwise, repeat: int) -> _Rounds:
    """The times of the rounds that follow a first one."""
    found: _Rounds = []
    steps.run()
    for _ in range(repeat):
        steps.run()
        found.append(list(zip(steps.seconds, steps.calls, strict=True)))
    return found


def _on_device(code: ProgramCode, program: DeviceFunction, given: Sequence[Any], repeat: int) -> tuple[Stepwise, _Rounds, list[float]]:
    """The call after its last round, the rounds, and the seconds of whole calls, by the clock of the device."""
    with program.on_device(given) as call:
        spaces = {"input": call.inputs, "output": call.outputs, "arena": [call.arena], "param": [call.params]}
        steps = Stepwise(program.name, code.programs, code.kernels, code.packed, spaces, call.sizes, call.memory)
        rounds = _rounds(steps, repeat)
        whole = [call.program.time(lambda: program(*call.inputs)) for _ in range(repeat)]
        call.memory.wait()
        return steps, rounds, [seconds() for seconds in whole]


def _on_host(
    code: ProgramCode, program: Function, inputs: Sequence[np.ndarray], params: np.ndarray, repeat: int
) -> tuple[Stepwise, _Rounds, int]:
    """The call after its last round, the rounds, and the number of threads."""
    made, sizes, arena_bytes = program.call_shapes(inputs)
    outputs = [aligned_array(*one) for one in made]
    assert code.arenas is not None  # the program runs on the host
    arena = code.arenas.acquire(arena_bytes)
    try:
        spaces = {"input": inputs, "output": outputs, "arena": [arena[1]], "param": [params]}
        steps = Stepwise(program.name, code.programs, code.kernels, code.packed, spaces, sizes)
        with program.team as threads:
            rounds = _rounds(steps, repeat)
    except BaseException as error:
        reraise_original(error)
        raise
    finally:
        code.arenas.release(arena)
    return steps, rounds, threads
