"""Measurements on other machines: a measurer that submits measurements to workers of a Dask scheduler.

A worker is an ordinary `dask worker` process on a machine where the same relayc is installed. A resource states the level of its processor,
or the architecture of its GPU (relayc:sm_90a):

    dask worker tcp://HOST:8786 --nthreads 1 --resources "relayc:x86-64-v4=1"

A measurement takes one unit of that resource, so a worker measures one candidate at a time, and a lock prevents the workers of one machine
from measuring at the same time. The candidate is compiled and run in a child process of the worker (tune.process). If a worker is lost, the
scheduler resubmits its measurement to another worker; the search receives each measurement once.
"""

import fcntl
import os
import platform
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from relayc.packages import optional_package
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile_cache import source_digest
from relayc.runtime.device import Device
from relayc.tune.process import Measurer, WorkerProcess
from relayc.tune.tasks import Task
from relayc.tune.worker import Candidate, Measured

_CONNECT_SECONDS = 10.0
FIRST_SECONDS = 30.0
"""How long a scheduler without any worker may take to get one."""
MOST_ALONE_SECONDS = 60.0
"""How long a search waits for a worker after the last one is lost."""
_ASKED_SECONDS = 0.5
"""Interval at which the scheduler is queried for its workers."""

_process: WorkerProcess | None = None
"""Of this worker."""


def resource_of(target: Target) -> str:
    """The resource with which a worker states that it measures for a target."""
    return f"relayc:{getattr(target, 'mcpu', None) or getattr(target, 'arch', None) or target.kind}"


class Cluster(Measurer):
    """Measures on the workers of a scheduler that have a target; they may come and go.

    Args:
      address: of the scheduler, "tcp://HOST:PORT".

    Raises:
      ModuleNotFoundError: Dask is not installed. ConnectionError: no scheduler answers.
      ValueError: no worker has the target, or one that states it cannot run its code or has another relayc.
    """

    def __init__(self, address: str, target: Target) -> None:
        distributed = optional_package("distributed", "workers need Dask: pip install 'relayc[distributed]'")
        self._address, self._resource, self._asked, self._seen = address, resource_of(target), 0.0, time.monotonic()
        self._killed = distributed.scheduler.KilledWorker
        self._workers: tuple[str, ...] = ()
        try:
            self._client = distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ConnectionError(f"--scheduler: expected a Dask scheduler at {address}, found none ({error})") from None
        try:
            self._executor = self._client.get_executor(pure=False, resources={self._resource: 1})
            self._refuse_wrong_workers(target)
        except BaseException:
            self._client.close()
            raise

    def _refuse_wrong_workers(self, target: Target) -> None:
        deadline = time.monotonic() + FIRST_SECONDS
        while not self._find_workers() and not self._others() and time.monotonic() < deadline:
            time.sleep(_ASKED_SECONDS)  # workers that were started just now take a moment
        if not self._find_workers():
            what = f"{self._address}: expected a worker with the resource {self._resource} (dask worker --resources '{self._resource}=1')"
            raise ValueError(f"{what}, found {self._others() or 'no worker'}")
        refusals = self._client.run(refusal, str(target), source_digest(), workers=list(self._workers))
        for worker, text in refusals.items():
            if text:
                raise ValueError(f"worker {worker}: {text}")

    def _find_workers(self) -> tuple[str, ...]:
        """Addresses of the workers with the resource."""
        if time.monotonic() - self._asked >= _ASKED_SECONDS:
            known = self._client.scheduler_info()["workers"]
            self._workers = tuple(name for name, one in known.items() if one["resources"].get(self._resource, 0) >= 1)
            self._asked = time.monotonic()
        return self._workers

    def _others(self) -> str:
        """The resources of the workers, in words."""
        known = self._client.scheduler_info()["workers"]
        return ", ".join(f"{name} with {' '.join(one['resources']) or 'no resource'}" for name, one in known.items())

    @property
    def slots(self) -> int:
        """One measurement for each worker. Raises ConnectionError if there has been no worker for some time."""
        found = len(self._find_workers())
        now = time.monotonic()
        self._seen = now if found else self._seen
        if now - self._seen > MOST_ALONE_SECONDS:
            raise ConnectionError(f"{self._address}: no worker with the resource {self._resource} for {MOST_ALONE_SECONDS:.0f} s")
        return found

    def measure(self, task: Task, base: Candidate, candidate: Candidate, seconds: float) -> Measured:
        """See Measurer."""
        return self.submit(task, base, candidate, seconds).result()

    def submit(self, task: Task, base: Candidate, candidate: Candidate, seconds: float) -> "Future[Measured]":
        """See Measurer. A candidate whose workers die one after the other has crashed."""
        answer: Future[Measured] = Future()
        given = self._executor.submit(measure_here, replace(task, schedule=None), base, candidate, seconds, source_digest())
        given.add_done_callback(partial(_hand_over, answer, self._killed))
        return answer

    def close(self) -> None:
        """Gives up the measurements that are under way, and leaves the workers as they are."""
        self._executor.shutdown(wait=False)
        self._client.close()


def _hand_over(answer: "Future[Measured]", killed: type[Exception], given: "Future[Measured]") -> None:
    if given.cancelled():
        answer.cancel()
        return
    error = given.exception()
    if isinstance(error, killed):
        answer.set_result(Measured("crashed", message="every worker that measured it was lost"))
    elif error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(given.result())


# ---- on a worker ------------------------------------------------------------------------------------------------------------------


def refusal(target: str, sources: str) -> str:
    """Why this worker cannot measure for a target; "" if it can.

    Args:
      sources: digest of the sources of relayc on the machine of the search.
    """
    lacking = Target(target).lacking
    if lacking:
        return f"expected a machine with the features of {target}, found one ({Device('cpu').name}) that lacks {', '.join(lacking)}"
    return "" if sources == source_digest() else "expected the relayc that the search runs, found another version of its sources"


def measure_here(task: Task, base: Candidate, candidate: Candidate, seconds: float, sources: str) -> Measured:
    """Measures in a child process, when no other worker of this machine measures. Raises ValueError if this worker is unsuitable."""
    global _process
    why = refusal(task.target, sources)
    if why:
        raise ValueError(f"a worker on {platform.node()}: {why}")
    with _alone():
        _process = _process or WorkerProcess()
        return replace(_process.measure(task, base, candidate, seconds), machine=Device("cpu").name)


@contextmanager
def _alone() -> Iterator[None]:
    """Holds the lock of this machine, which ends with the process."""
    with open(os.path.join(tempfile.gettempdir(), f"relayc-measure-{os.getuid()}.lock"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
