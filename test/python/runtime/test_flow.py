"""Programs with branches, loops, calls of each other and of Python functions."""

import contextlib
import dataclasses
import gc
import json
import threading
import traceback
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tvm_ffi
from handmade_flow import DEPTH, FLAG, FUNCTION, PARAMETER, build_artifact, expected

from relayc.runtime import BufferRef, Module, get_global_func, register_func
from relayc.runtime.stepwise import Stepwise

X = np.full((2, 3), 3, np.float32)
"""main doubles twice in Python and then seven times in climb: 3, 6, 12, 24, ... 1536."""


@pytest.fixture(scope="module")
def artifact():
    return build_artifact()


@pytest.fixture(scope="module")
def flow(artifact):
    return Module(artifact)


@pytest.fixture(autouse=True)
def doubles():
    def double(x, y):
        y[...] = 2 * x

    register_func(FUNCTION, double, override=True)


class Unknown(Exception):
    """tvm-ffi knows nothing of it, and cannot make one of a message."""

    def __init__(self, code, detail):
        super().__init__(code, detail)
        self.detail = detail


def raises(make):
    """Lets the Python function raise; gives what it raised."""
    raised = []

    def fail(x, y):
        raised.append(make())
        raise raised[-1]

    register_func(FUNCTION, fail, override=True)
    return raised


# ---- functions


def test_public_programs_come_before_kernels(flow):
    assert flow.function_names() == ("main", "climb", "add", "below")
    np.testing.assert_array_equal(flow["main"](X), expected(X))
    np.testing.assert_array_equal(flow["climb"](X), 512 * X)
    assert [kernel.name for kernel in flow.step_kernels] == ["add", "below", "add", "below", "add", "add"]


def test_programs_run_by_name(flow):
    assert list(flow.run({"x": X})) == ["y"]
    np.testing.assert_array_equal(flow.run({"x": X}, function="climb")["y"], 512 * X)
    for wrong in ("add", "nothing"):
        with pytest.raises(KeyError, match=f"no program '{wrong}' in the module; it has main, climb"):
            flow.run({"x": X}, function=wrong)


def test_without_main_the_first_public_program_stands_for_the_module(artifact):
    main, climb = artifact.programs
    module = Module(dataclasses.replace(artifact, programs=(climb, dataclasses.replace(main, public=False))))
    assert module.function_names() == ("climb", "add", "below") and repr(module).startswith("<relayc module: <relayc function climb(")
    np.testing.assert_array_equal(module.run({"x": X})["y"], 512 * X)
    assert [row.where for row in module.profile([X], repeat=1).rows] == ["climb", "climb/then", "climb/else"]
    assert module.num_threads is None
    with pytest.raises(KeyError, match="no program 'main' in the module; it has climb"):
        module.profile([X], function="main")
    assert len(module.call_sites("main")) == 7


def test_machine_code_is_asked_for_by_program_or_kernel(artifact):
    module = Module(dataclasses.replace(artifact, programs=(artifact.programs[0], dataclasses.replace(artifact.programs[1], public=False))))
    for name in ("main", "climb", "add"):
        with pytest.raises(ValueError, match="expected a program made of object files"):  # which those of the tests are not
            module.assembly(name)
    with pytest.raises(KeyError, match="no function 'nothing'"):
        module.assembly("nothing")


def test_too_deep_a_recursion_is_an_error(flow):
    with pytest.raises(RecursionError, match="climb"):
        flow["climb"](np.zeros_like(X))


# ---- exceptions


def test_an_exception_arrives_as_the_object_that_it_was(flow):
    for make in (lambda: KeyError("gone"), lambda: Unknown(1, [2]), lambda: SystemExit(3), KeyboardInterrupt):
        raised = raises(make)
        with pytest.raises(type(make())) as found:
            flow["main"](X)
        assert found.value is raised[0]
        frames = [frame.name for frame in traceback.extract_tb(found.value.__traceback__)]
        assert frames[0] == "test_an_exception_arrives_as_the_object_that_it_was" and frames[-1] == "fail"


def test_an_exception_keeps_cause_and_context(flow):
    def fail(x, y):
        try:
            raise OSError("no file")
        except OSError as error:
            raise Unknown(1, 2) from error

    register_func(FUNCTION, fail, override=True)
    try:
        raise LookupError("of the caller")
    except LookupError:
        with pytest.raises(Unknown) as found:
            flow["main"](X)
    error = found.value
    assert isinstance(error.__cause__, OSError) and error.__context__ is error.__cause__
    assert isinstance(error.__context__.__context__, LookupError)


def test_a_class_registered_with_tvm_ffi_arrives_too(flow):
    tvm_ffi.register_error("relayc.test.Unknown", Unknown)
    try:
        raised = raises(lambda: Unknown(1, 2))
        with pytest.raises(Unknown) as found:
            flow["main"](X)
        assert found.value is raised[0]
    finally:
        del tvm_ffi.core.ERROR_NAME_TO_TYPE["relayc.test.Unknown"], tvm_ffi.core.ERROR_TYPE_TO_NAME[Unknown]


def test_an_exception_goes_through_several_programs(flow):
    inner = []

    def outer(x, y):
        inner.extend(raises(lambda: Unknown("inner", 0)))
        try:
            flow["main"](X)
        except Unknown as error:
            inner.append(error)
            raise

    register_func(FUNCTION, outer, override=True)
    with pytest.raises(Unknown) as found:
        flow["main"](X)
    assert found.value is inner[0] and found.value.args == ("inner", 0)


def test_threads_get_their_own_exceptions(flow):
    """Every thread's function raises what the thread passes, at the same time as the others."""
    meet = threading.Barrier(4)
    wrong = []

    def fail(x, y):
        meet.wait()
        raise Unknown(threading.get_ident(), float(x[0, 0]))

    register_func(FUNCTION, fail, override=True)

    def work(number):
        for i in range(100):
            try:
                flow["main"](np.full((2, 3), number + i / 128, np.float32))
            except Unknown as error:
                if error.args != (threading.get_ident(), number + i / 128):
                    wrong.append(error)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(1, 5)))
    assert not wrong


def test_an_error_of_the_compiled_code_is_not_taken_for_an_earlier_exception(flow):
    raises(lambda: Unknown(1, 2))
    with pytest.raises(RuntimeError):
        get_global_func(FUNCTION)(X, X)  # nobody takes the exception back
    with pytest.raises(RecursionError, match="climb"):
        flow["climb"](np.zeros_like(X))
    with pytest.raises(TypeError, match="add: argument 0"):
        flow["add"].packed(np.zeros(3), X, X)


def test_an_exception_is_not_kept(flow):
    alive = []

    def make():
        error = Unknown(1, 2)
        alive.append(weakref.ref(error))
        return error

    raises(make).clear()
    with contextlib.suppress(Unknown):
        flow["main"](X)
    raises(lambda: None)
    gc.collect()
    assert alive[0]() is None


# ---- arguments of Python functions


def test_python_functions_get_arrays_and_write_outputs(flow):
    seen = []

    def look(x, y):
        seen.append((type(x), x.dtype, x.shape, y.flags.writeable, x.copy()))
        np.from_dlpack(y)[...] = 1000 * np.from_dlpack(x)

    register_func(FUNCTION, look, override=True)
    np.testing.assert_array_equal(flow["main"](X), 1000 * (X + PARAMETER))
    (given,) = seen
    assert given[:4] == (np.ndarray, np.dtype("float32"), (2, 3), True)
    np.testing.assert_array_equal(given[4], X + PARAMETER)


# ---- profiles


def test_a_profile_counts_the_calls_of_every_site(flow):
    profile = flow.profile([X], repeat=3)
    assert [(row.where, row.kernel.name, row.calls) for row in profile.rows] == [
        ("main", "add", 1),
        ("main/loop/condition", "below", 3),
        ("main/loop", FUNCTION, 2),
        ("main/loop", "add", 2),
        ("climb", "below", 8),
        ("climb/then", "add", 7),
        ("climb/else", "add", 1),
    ]
    assert [row.sources for row in profile.rows[:3]] == [("first",), (), ("double",)]
    assert profile.rows[3].flops == 12 and all(row.seconds > 0 for row in profile.rows)
    assert sum(row.share for row in profile.rows) == pytest.approx(1)
    totals = {total.operators: total for total in profile.by_operators()}
    assert (totals["add",].calls, totals["add",].flops, totals[FUNCTION,].calls) == (11, 66, 2)
    data = json.loads(json.dumps(profile.as_data()))
    assert [row["calls"] for row in data["kernels"]] == [1, 3, 2, 2, 8, 7, 1] and data["kernels"][5]["where"] == "climb/then"
    lines = str(profile).splitlines()
    assert lines[2].split()[:3] == ["below", "main/loop/condition", "3"] and lines[-1].startswith("24 calls")


def test_sites_that_are_not_reached_have_no_calls(flow):
    rows = flow.profile([np.full((2, 3), 2000, np.float32)], repeat=1).rows
    assert [row.calls for row in rows] == [1, 1, 0, 0, 1, 0, 1]
    assert [(row.seconds, row.share, row.gflops, row.gbytes) for row in rows if not row.calls] == [(0, 0, 0, 0)] * 3


def test_a_profile_of_another_program(flow):
    profile = flow.profile({"x": X}, repeat=1, function="climb")
    assert [(row.where, row.calls) for row in profile.rows] == [("climb", 10), ("climb/then", 9), ("climb/else", 1)]


def stepwise(artifact, flow, programs, arena_bytes):
    y = np.empty_like(X)
    spaces = {"input": [X], "output": [y], "arena": [np.empty(arena_bytes, np.uint8)], "param": [artifact.params]}
    by_name = {program.name: program for program in programs}
    return y, Stepwise(programs[0].name, by_name, {k.name: k for k in artifact.kernels}, lambda name: flow[name].packed, spaces, {})


def test_calls_one_by_one_give_the_results_of_a_call(artifact, flow):
    y, steps = stepwise(artifact, flow, artifact.programs, artifact.programs[0].arena_bytes)
    for _ in range(2):
        y.fill(0)
        steps.run()
        np.testing.assert_array_equal(y, expected(X))
        assert steps.calls == [1, 3, 2, 2, 8, 7, 1]


def test_calls_one_by_one_may_be_as_deep_as_the_program_says(artifact, flow):
    climb = artifact.programs[1]
    # The condition is another byte, which nobody changes: the program calls itself for ever.
    always = BufferRef("param", 0, 0, FLAG)
    first, branch = climb.steps
    steps = (first, dataclasses.replace(branch, condition=dataclasses.replace(always, offset=artifact.params.nbytes - 57)))
    assert artifact.params[steps[1].condition.offset]
    for depth in (DEPTH, 2000):  # more than Python functions may
        endless = dataclasses.replace(climb, steps=steps, max_depth=depth)
        _, calls = stepwise(artifact, flow, [endless], 128 * depth)
        with pytest.raises(RecursionError, match=f"climb: expected at most {depth} calls in one another, found more"):
            calls.run()
        assert calls.calls == [depth, depth, 0]


def test_what_a_profiled_function_raises_arrives_as_it_was(flow):
    with pytest.raises(RecursionError, match="climb"):
        flow.profile([np.zeros_like(X)], function="climb")
    calls, raised = [], []

    def fail_later(x, y):
        calls.append(0)
        y[...] = 2 * x
        if len(calls) > 3:  # in the calls one by one
            raised.append(Unknown(1, 2))
            raise raised[0]

    register_func(FUNCTION, fail_later, override=True)
    with pytest.raises(Unknown) as found:
        flow.profile([X], repeat=1)
    assert found.value is raised[0] and len(calls) == 4


def test_second_branches_and_loops_of_a_place_have_numbers(artifact):
    (first, loop, call), climb = artifact.programs[0].steps, artifact.programs[1]
    twice = dataclasses.replace(artifact.programs[0], steps=(loop, first, loop, *climb.steps, climb.steps[1], call))
    sites = Module(dataclasses.replace(artifact, programs=(twice, climb))).call_sites()
    places = list(dict.fromkeys(site.where for site in sites))
    loops = ["main/loop/condition", "main/loop", "main", "main/loop_1/condition", "main/loop_1"]
    assert places == [*loops, "main/then", "climb", "climb/then", "climb/else", "main/else", "main/then_1", "main/else_1"]
