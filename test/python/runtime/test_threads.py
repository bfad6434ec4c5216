"""Threads of calls: how many a call gets, what calls at the same time share, and what is left running afterwards."""

import _thread
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from onnx_models import weighted

import relayc
from relayc.runtime import deep, threads
from relayc.runtime.deep import on_deep_stack
from relayc.tools.inputs import random_inputs

MODEL = Path(__file__).parents[2] / "models" / "vit.onnx"


@pytest.fixture(scope="module")
def model():
    module = relayc.compile(MODEL)
    return module, list(random_inputs(module.inputs, 0).values())


@pytest.fixture
def unset(monkeypatch):
    """Nothing was set in the process."""
    monkeypatch.setattr(threads, "_requested", None)


@pytest.fixture
def cores(monkeypatch):
    """A machine of eight cores."""
    monkeypatch.setattr(threads, "usable_cpus", lambda: 8)


def team_size():
    return threads._runtime().omp_get_max_threads()


def run_script(text, **environment):
    """What a process prints that has nothing of this one."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


# ---- how many ----------------------------------------------------------------------------------------------------------------------


def test_a_call_alone_gets_what_was_asked_for(cores):
    with threads.Team(3) as count:
        assert (count, team_size()) == (3, 3)
    with threads.Team(12) as count:  # more than there are cores
        assert (count, team_size()) == (12, 12)


def test_calls_at_the_same_time_share_the_cores(cores):
    with threads.Team(8) as first, threads.Team(8) as second, threads.Team(8) as third:
        assert (first, second, third) == (8, 4, 2)
    with threads.Team(8) as after:
        assert after == 8


def test_calls_that_fit_beside_each_other_get_all_they_ask_for(cores):
    with threads.Team(2), threads.Team(2), threads.Team(2), threads.Team(2) as fourth:
        assert fourth == 2


def test_every_call_gets_a_thread(cores):
    teams = [threads.Team(8) for _ in range(20)]
    assert [team.__enter__() for team in teams][-1] == 1
    for team in teams:
        team.__exit__()


def test_a_failing_call_gives_its_share_back(model):
    module, inputs = model
    running = len(threads._running)
    with pytest.raises(TypeError):
        module["main"].packed(1)
    with pytest.raises(ValueError, match="expected"):
        module["main"](inputs[0][:, :1])
    assert len(threads._running) == running


def test_a_module_may_have_a_number_of_its_own(model):
    module, inputs = model
    others = threads.num_threads() + 1
    assert module.num_threads is None
    module.num_threads = others
    module["main"](*inputs)
    assert team_size() == others and module.profile(inputs, repeat=1).threads == others
    module.num_threads = None
    module["main"](*inputs)
    assert team_size() == threads.num_threads() == others - 1
    with pytest.raises(ValueError, match="expected 1 to 4096 threads, found 0"):
        module.num_threads = 0


def test_a_number_given_to_the_compiler_holds_for_plans_and_calls():
    module = relayc.compile(weighted()[0], target="cpu -mcpu=x86-64", num_threads=3)
    assert module.num_threads == 3 and relayc.Target(module.target) == relayc.Target("cpu -mcpu=x86-64 -num-threads=3")
    with pytest.raises(ValueError, match="expected 1 to 4096 threads, found 0"):
        relayc.compile(weighted()[0], num_threads=0)


def test_the_environment_says_how_many():
    code = "import relayc; print(relayc.num_threads())"
    assert run_script(code, OMP_NUM_THREADS="3") == ["3"]
    assert run_script(code, OMP_NUM_THREADS="3", RELAYC_NUM_THREADS="5") == ["5"]
    assert run_script("import relayc; relayc.set_num_threads(2); print(relayc.num_threads())", RELAYC_NUM_THREADS="5") == ["2"]


def test_more_threads_than_the_system_starts_are_an_error(monkeypatch):
    started = []

    def start(function, arguments):
        if len(started) == 20:
            raise RuntimeError("can't start new thread")
        started.append(start_really(function, arguments))

    start_really = _thread.start_new_thread
    monkeypatch.setattr(_thread, "start_new_thread", start)
    monkeypatch.setattr(threads, "usable_cpus", lambda: 8)
    with pytest.raises(ValueError, match="expected at most 20 threads, as many as the system lets this process start, found 31"):
        relayc.set_num_threads(31)
    assert threads.startable_threads(8) == 8
    for wrong, error in ((True, TypeError), (2.0, TypeError), ("2", TypeError), (0, ValueError), (4097, ValueError)):
        with pytest.raises(error, match=f"expected .* threads, found {wrong!r}"):
            threads.checked_threads(wrong)
    started.clear()
    assert threads.startable_threads(20) == len(started) == 20 and [threads.checked_threads(count) for count in (1, 4096)] == [1, 4096]


@pytest.mark.usefixtures("unset")
@pytest.mark.parametrize("text", ["0", "many", "-1", "4097"])
def test_an_environment_that_makes_no_sense_is_an_error(monkeypatch, text):
    monkeypatch.setenv("RELAYC_NUM_THREADS", text)
    threads._default.cache_clear()
    with pytest.raises(ValueError, match="RELAYC_NUM_THREADS: expected a number of threads, 1 to 4096, found"):
        relayc.num_threads()
    threads._default.cache_clear()


# ---- at the same time --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["vit", "mobilenet_v2"])
def test_results_do_not_depend_on_the_number_of_threads(name):
    module = relayc.compile(MODEL.with_stem(name))
    inputs = list(random_inputs(module.inputs, 0).values())
    results = []
    for module.num_threads in (1, 2, 3, 5):
        results.append(module["main"](*inputs))
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_calls_of_several_modules_from_many_threads_give_what_one_gives(model):
    other = relayc.compile(weighted()[0])
    calls = [(model[0]["main"], model[1]), (other["main"], list(random_inputs(other.inputs, 0).values()))]
    wanted = [main(*inputs) for main, inputs in calls]
    failures, finished = [], []

    def work(first):
        for i in range(first, first + 20):
            main, inputs = calls[i % 2]
            if not np.array_equal(main(*inputs), wanted[i % 2]):
                failures.append(i)
        finished.append(first)

    workers = [threading.Thread(target=work, args=(first,)) for first in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert len(finished) == 6 and not failures and not threads._running


# ---- afterwards --------------------------------------------------------------------------------------------------------------------


def test_threads_sleep_after_a_call():
    # With OpenMP's default they spin for 0.2 s.
    code = f"""
    import time, relayc
    from relayc.tools.inputs import random_inputs
    relayc.set_num_threads(2)
    module = relayc.compile({str(MODEL)!r})
    for _ in range(2):
        module["main"](*random_inputs(module.inputs, 0).values())
    start = time.process_time()
    time.sleep(0.4)
    print(time.process_time() - start)
    """
    environment = {name: "" for name in threads._WAITING_VARIABLES}
    assert float(run_script(code, **environment)[0]) < 0.05


@pytest.mark.parametrize("given", [None, *threads._WAITING_VARIABLES])
def test_one_setting_of_the_user_is_enough(monkeypatch, given):
    for name in threads._WAITING_VARIABLES:
        monkeypatch.setenv(name, "1" if name == given else "")
    calls = []
    runtime = SimpleNamespace(
        kmp_set_blocktime=lambda time: calls.append(("blocktime", time)), omp_set_num_threads=lambda count: calls.append(("count", count))
    )
    monkeypatch.setattr(threads, "_runtime", lambda: runtime)
    caller = threading.Thread(target=lambda: [threads._apply(count) for count in (3, 2)])
    caller.start()
    caller.join()
    assert calls == [*([] if given else [("blocktime", threads._BLOCK_MILLISECONDS)]), ("count", 3), ("count", 2)]


def test_a_setting_of_the_user_stays():
    code = """
    from relayc.runtime import threads
    with threads.Team(2):
        print(threads._runtime().kmp_get_blocktime())
    """
    assert run_script(code, **{name: "" for name in threads._WAITING_VARIABLES}) == ["1"]
    assert run_script(code, KMP_BLOCKTIME="17") == ["17"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_can_call():
    code = f"""
    import os, signal, warnings, relayc, numpy
    from relayc.tools.inputs import random_inputs
    warnings.simplefilter("ignore")  # of forking with threads
    relayc.set_num_threads(2)
    module = relayc.compile({str(MODEL)!r})
    inputs = list(random_inputs(module.inputs, 0).values())
    wanted = module["main"](*inputs)
    for _ in range(3):
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # ends the child where it hangs
            good = numpy.array_equal(module["main"](*inputs), wanted)
            os._exit(0 if good else 1)
        print(os.waitpid(child, 0)[1])
    print(numpy.array_equal(module["main"](*inputs), wanted))
    """
    assert run_script(code) == ["0", "0", "0", "True"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_process_forked_amid_calls_has_all_cores():
    inside, done = threading.Event(), threading.Event()

    def call():
        with threads.Team(2):
            inside.set()
            done.wait(60)

    other = threading.Thread(target=call)
    other.start()
    inside.wait(60)
    child = os.fork()
    if child == 0:
        with threads.Team(2) as count:
            os._exit(count)
    done.set()
    other.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert not threads._running


def test_torch_has_no_threads_that_wait_beside_a_call():
    pytest.importorskip("torch")
    code = """
    import os, time, torch
    from relayc.runtime import threads
    def of_process():
        return len(os.listdir("/proc/self/task"))
    def of_process_soon():  # the system lists a thread for a moment after the thread has been joined
        deadline = time.monotonic() + 10
        while of_process() > before and time.monotonic() < deadline:
            time.sleep(0.001)
        return of_process()
    torch.set_num_threads(3)
    x = torch.rand(1 << 20)
    before = of_process()
    for _ in range(2):
        wanted = x.exp()
        during = of_process()
        threads.pause_torch()
        print(during - before, of_process_soon() - before, torch.get_num_threads(), torch.equal(x.exp(), wanted))
        threads.pause_torch()
    """
    if sys.platform != "linux" or not run_script(
        "import torch; from relayc.runtime import threads; print(*[1][threads._torchs_runtime() is None :])"
    ):
        pytest.skip("torch has no OpenMP runtime that can pause")
    assert run_script(code) == ["2", "0", "3", "True"] * 2


def test_a_thread_of_deep_calls_that_has_ended_gets_no_call(monkeypatch):
    monkeypatch.setattr(deep, "_idle", [])
    monkeypatch.setattr(deep, "_IDLE_SECONDS", 0.01)
    thread = on_deep_stack(threading.current_thread, ())
    thread.join(10)
    assert not thread.is_alive() and not deep._idle


def test_a_process_does_not_wait_for_the_threads_of_deep_calls():
    assert on_deep_stack(lambda: threading.current_thread().daemon, ())


def test_a_system_that_lists_no_memory_has_no_libraries(monkeypatch):
    assert threads.loaded_library("libc.so.6").endswith("/libc.so.6") and threads.loaded_library("libnothing.so") is None

    def refused(*args, **named):
        raise PermissionError

    monkeypatch.setattr(threads, "open", refused, raising=False)
    assert threads.loaded_library("libc.so.6") is None


def test_the_number_that_was_set_last_counts(monkeypatch):
    monkeypatch.setattr(threads, "_requested", None)
    for count in (3, 2):
        threads.set_num_threads(count)
        assert threads.num_threads() == count


def test_a_forked_process_runs_nothing_yet(monkeypatch):
    before = threads._Caller()
    monkeypatch.setattr(threads, "_caller", before)
    monkeypatch.setattr(threads, "_running", [None, None])
    threads._after_fork()
    assert threads._caller is not before and threads._running == []
