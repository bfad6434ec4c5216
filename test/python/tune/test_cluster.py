"""Workers of a Dask scheduler: one is killed in the middle of a measurement, one joins late, and wrong ones are refused."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from tuned_kernels import product_text
from tuned_models import dense

import relayc
from relayc.pipelines.driver.compile_cache import source_digest
from relayc.pipelines.driver.tuning_space import TuningSpace
from relayc.pipelines.history.database import Database
from relayc.tune import cluster
from relayc.tune.session import Session
from relayc.tune.single import kernel_task
from relayc.tune.tasks import Task
from relayc.tune.worker import DEFAULT, Candidate, Measured

distributed = pytest.importorskip("distributed")

TARGET = relayc.Target("cpu", num_threads=1)
RESOURCE = cluster.resource_of(TARGET)

PRODUCT = product_text(32, 64, 48)


@contextmanager
def started(module, *words):
    """A process of Dask's command line, which is ended in the end."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "DASK_DISTRIBUTED__WORKER__MEMORY__TERMINATE": "False"}
    code = f"import sys; from distributed.cli.{module} import main; main(sys.argv[1:])"
    process = subprocess.Popen([sys.executable, "-c", code, *words], stderr=subprocess.PIPE, text=True, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def scheduler():
    with started("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show") as process:
        for line in process.stderr:
            found = re.search(r"tcp://127\.0\.0\.1:\d+", line)
            if found:
                yield found[0]
                return
        raise AssertionError("no scheduler")


def worker(address, name, resource):
    given = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1", "--name", name, "--death-timeout", "60"]
    given += ["--preload", "slow_measurer"]
    return started("dask_worker", address, *given, "--resources", f"{resource}=1")


def test_a_worker_may_die_and_another_may_join(scheduler, tmp_path):
    killed, seen = [], set()
    with ExitStack() as stack:
        client = stack.enter_context(distributed.Client(scheduler, set_as_default=False))
        given = {"one": RESOURCE, "two": RESOURCE, "other": "relayc:another-level"}
        processes = {name: stack.enter_context(worker(scheduler, name, resource)) for name, resource in given.items()}
        client.wait_for_workers(3, timeout=60)

        def names():
            return {address: known["name"] for address, known in client.scheduler_info()["workers"].items()}

        def report(status):
            known = names()
            busy = {known[address] for address, tasks in client.processing().items() if tasks and address in known}
            seen.update(busy)
            if "one" in busy and status.trials[0] >= 1 and not killed:
                processes["one"].send_signal(signal.SIGKILL)
                killed.append(status)
                stack.enter_context(worker(scheduler, "late", RESOURCE))
            deadline = time.monotonic() + 30
            while killed and "late" not in names().values() and time.monotonic() < deadline:
                time.sleep(0.1)

        chosen = {"rows": 4, "grain": 64}
        space = TuningSpace("k", (), "s", chosen, {"rows": (1, 2, 3, 4), "grain": (64, 512, 4096)})

        def ask(strategy, numbers):
            return TuningSpace("k", (), strategy, {**chosen, **numbers}, space.values)

        database, task = Database(tmp_path / "tuning.sqlite"), Task("key", "k", "", target=str(TARGET), seconds=1.0)
        with cluster.Cluster(scheduler, TARGET) as measurer:
            session = Session([task], database, measurer, lambda task: ([space], ask), "random", report=report)
            session.run(None, 60)
    assert killed and {"one", "two", "late"} <= seen and "other" not in seen
    trials = database.trials("key")
    assert len(session.gains) == len(trials) == 11  # all but the default
    assert len({str(trial.numbers) for trial in trials}) == 11  # none twice
    assert {trial.outcome for trial in trials} == {"measured"} and all(trial.machine for trial in trials)
    assert database.record("key").numbers["rows"] == 1 and session.gain == pytest.approx(1.4 / 1.1)


def test_a_worker_of_a_gpu_that_is_emulated(scheduler, tmp_path):
    gpu = relayc.Target("cuda -arch=sm_80 -emulate=true")
    with worker(scheduler, "of-a-gpu", "relayc:sm_80"), cluster.Cluster(scheduler, gpu) as measurer:
        found = relayc.tune.kernel(PRODUCT, gpu, trials=2, sampler="grid", database=tmp_path / "t.sqlite", measurer=measurer)
    outcomes = [(trial.outcome, trial.message) for trial in found.states[0].trials]
    assert outcomes == [("measured", "")] * 2 and found.states[0].seconds > 0


def test_without_a_right_worker_there_is_one_message(scheduler, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "FIRST_SECONDS", 0.0)
    with pytest.raises(ValueError, match=rf"expected a worker with the resource {RESOURCE} .*, found no worker"):
        relayc.tune(dense(), trials=2, scheduler=scheduler, database=tmp_path / "t.sqlite")


@pytest.mark.skipif(not relayc.Target("cpu -mcpu=sapphirerapids").lacking, reason="this machine has all features")
def test_a_worker_that_states_a_wrong_target_is_refused(scheduler):
    target = "cpu -mcpu=sapphirerapids"
    resource = cluster.resource_of(relayc.Target(target))
    with distributed.Client(scheduler, set_as_default=False) as client, worker(scheduler, "wrong", resource):
        client.wait_for_workers(1, timeout=60)
        with pytest.raises(ValueError, match=r"worker tcp://.* expected a machine with .*sapphirerapids.* lacks"):
            cluster.Cluster(scheduler, relayc.Target(target))


def test_a_worker_with_another_relayc_is_refused():
    target = str(relayc.Target("cpu"))
    assert cluster.refusal(target, cluster.source_digest()) == ""
    assert "another version" in cluster.refusal(target, "other")
    with pytest.raises(ValueError, match="another version"):
        cluster.measure_here(Task("key", "k", "", target=target), DEFAULT, DEFAULT, 1.0, "other")


def test_no_scheduler_is_an_error(monkeypatch):
    monkeypatch.setattr(cluster, "_CONNECT_SECONDS", 0.5)
    with pytest.raises(ConnectionError, match=r"expected a Dask scheduler at tcp://127\.0\.0\.1:9"):
        cluster.Cluster("tcp://127.0.0.1:9", relayc.Target("cpu"))


def test_a_worker_measures_a_kernel(monkeypatch):
    monkeypatch.setattr(cluster, "_process", None)
    task = kernel_task(PRODUCT, TARGET, None, None, {}, (1,), 1)
    try:
        found = cluster.measure_here(task, DEFAULT, Candidate("contraction", {"rows": 2}), 0.05, cluster.source_digest())
    finally:
        cluster._process.close()
    assert found.outcome == "measured" and found.comparison.seconds > 0 and found.machine


class Killed(Exception):
    """As Dask raises it where the workers of a measurement died."""


def test_answers_of_a_cluster_are_handed_over():
    measured = Measured("failed", message="one")
    for give, expected in [
        (lambda future: future.set_result(measured), measured),
        (lambda future: future.set_exception(Killed()), Measured("crashed", message="every worker that measured it was lost")),
        (lambda future: future.set_exception(OSError("gone")), OSError),
        (lambda future: future.cancel(), CancelledError),
    ]:
        answer, given = Future(), Future()
        give(given)
        cluster._hand_over(answer, Killed, given)
        if isinstance(expected, type):
            with pytest.raises(expected):
                answer.result(0)
        else:
            assert answer.result(0) == expected


def test_a_search_without_workers_ends(monkeypatch):
    """After `MOST_ALONE_SECONDS` without one; a worker that is there starts the time anew."""
    found = object.__new__(cluster.Cluster)
    found._address, found._resource, found._seen, workers = "here", "r", 100.0, []
    monkeypatch.setattr(cluster.Cluster, "_find_workers", lambda self: workers)
    now = 100.0 + cluster.MOST_ALONE_SECONDS
    monkeypatch.setattr(cluster.time, "monotonic", lambda: now)
    assert found.slots == 0
    workers.append("one")
    assert found.slots == 1
    workers.clear()
    now += cluster.MOST_ALONE_SECONDS
    assert found.slots == 0
    now += 1
    with pytest.raises(ConnectionError, match="here: no worker with the resource r for"):
        assert found.slots


def test_the_scheduler_is_asked_for_its_workers_now_and_then(monkeypatch):
    known = {"one": {"resources": {"r": 1}}, "two": {"resources": {}}, "three": {"resources": {"r": 0.5}}}
    found = object.__new__(cluster.Cluster)
    found._resource, found._asked, found._workers = "r", 100.0, ("before",)
    found._client = SimpleNamespace(scheduler_info=lambda: {"workers": known})
    now = 100.0 + cluster._ASKED_SECONDS / 2
    monkeypatch.setattr(cluster.time, "monotonic", lambda: now)
    assert found._find_workers() == ("before",)
    now = 100.0 + cluster._ASKED_SECONDS
    assert found._find_workers() == ("one",)
    known["two"]["resources"]["r"] = 1
    assert found._find_workers() == ("one",)


def test_a_machine_that_cannot_measure_says_why():
    target = "cpu -mcpu=sapphirerapids -mattr=+avxneconvert,+amx-complex"  # no CPU has both
    assert "lacks" in cluster.refusal(target, source_digest()) and "another version" in cluster.refusal("cpu", "other")
    assert cluster.refusal("cpu", source_digest()) == ""


OWN, OTHER = {"tcp://w": {"resources": {"relayc:here": 1}}}, {"tcp://o": {"resources": {}}, "tcp://p": {"resources": {"relayc:here": 0.5}}}


@pytest.mark.parametrize(
    ("workers", "refused", "message", "waited"),
    [
        ([{}, {}, OWN], "", None, 2),
        ([{**OTHER, **OWN}], "", None, 0),
        ([OWN], "it has another relayc", "^worker tcp://w: it has another relayc$", 0),
        ([OTHER, OWN], "", "found tcp://o with no resource, tcp://p with relayc:here$", 0),
        ([{}] * 9, "", r"^tcp://s: expected a worker with the resource relayc:here \(.*'relayc:here=1'\), found no worker$", 4),
    ],
)
def test_a_search_waits_for_a_worker_of_its_target_where_there_is_none_at_all(workers, refused, message, waited, monkeypatch):
    clock = [0.0]

    def sleep(seconds):
        clock[0] += seconds

    def run(function, *given, workers):
        assert given[0] == str(TARGET) and workers == ["tcp://w"]
        return dict.fromkeys(workers, refused)

    monkeypatch.setattr(cluster, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep))
    monkeypatch.setattr(cluster, "_ASKED_SECONDS", 1.0)
    monkeypatch.setattr(cluster, "FIRST_SECONDS", 4.0)
    found = object.__new__(cluster.Cluster)
    found._address, found._resource, found._asked, found._workers = "tcp://s", "relayc:here", -1.0, ()
    found._client = SimpleNamespace(scheduler_info=lambda: {"workers": workers[int(clock[0])]}, run=run)
    with nullcontext() if message is None else pytest.raises(ValueError, match=message):
        found._refuse_wrong_workers(TARGET)
    assert clock == [waited]


def test_measurements_under_way_are_given_up_where_a_search_ends():
    ends = threading.Event()
    with ThreadPoolExecutor(1) as executor:
        running = executor.submit(ends.wait, 20)
        closed = Mock()
        cluster.Cluster.close(SimpleNamespace(_executor=executor, _client=SimpleNamespace(close=closed)))
        assert not running.done() and closed.called
        ends.set()
