"""Plants faults in functions of a running process: a pytest plugin that tries each in a fork of a session that has collected all tests.

A fork takes 50 ms where a new process takes 5 to 20 s for its imports, so that most faults are found within a second.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import fork_server
import pytest
from _pytest.runner import runtestprotocol
from executed import LIT, LIT_TOOL
from faults import Fault

ROOT = Path(__file__).parent.parent
LEAST_SECONDS = 20
"""Seconds that a test may take beyond ten times what it takes without a fault: a fault may be a loop without end."""
MEMORY = 12 << 30
"""Bytes of address space that the tests of a fault may take beyond those of the session: a fault may allocate without end."""
OPTIMIZED = 1
"""The flag of code objects that are functions (CO_OPTIMIZED), neither modules nor classes."""


@dataclass(frozen=True)
class Trial:
    """A fault with the tests that are to find it, and the seconds that each takes without the fault."""

    fault: Fault
    tests: Mapping[str, float]


class Planter:
    """A pytest plugin that, instead of running the tests, tries faults.

    Args:
      trials: what to try.
      report: called with each trial and the test that fails; "" where none does, None where the fault is not in the body of a function.
      jobs: trials at the same time.
    """

    def __init__(self, trials: Iterator[Trial], report: Callable[[Trial, str | None], None], jobs: int) -> None:
        self._trials, self._report, self._jobs = trials, report, jobs
        self._functions: defaultdict[tuple[str, str, int], list[FunctionType]] = defaultdict(list)
        self._items: dict[str, pytest.Item] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = {item.nodeid: item for item in session.items}
        fork_server.imported_tools()  # so that faults are planted in them too
        gc.unfreeze()  # conftest.py freezes what it has imported: the collector does not list it then
        self._find_functions()
        running: dict[int, _Fork] = {}
        while True:
            while len(running) < self._jobs and (trial := next(self._trials, None)):
                codes = codes_of(trial.fault, (ROOT / trial.fault.path).read_text())
                if codes is None or not self._imports(trial.fault.path) or not self._has_any(codes):
                    self._report(trial, None)
                else:
                    fork = self._fork(trial, codes)
                    running[os.pidfd_open(fork.process)] = fork
            if not running:
                return True
            for ended in select.select(list(running), [], [])[0]:
                fork = running.pop(ended)
                os.close(ended)
                self._report(fork.trial, fork.result())

    def _find_functions(self) -> None:
        """Finds the functions that were made since the last call."""
        for function in gc.get_objects():
            if isinstance(function, FunctionType):
                self._functions[_key(function.__code__)].append(function)
        gc.collect()
        gc.freeze()

    def _has_any(self, codes: Sequence[tuple[CodeType, CodeType]]) -> bool:
        """Whether there is a function to plant one of the codes in: without it a fault would seem to survive."""
        return any(self._functions.get(_key(old)) for old, _ in codes)

    def _imports(self, path: str) -> bool:
        """Imports the module of a file that is imported where it is needed first: a fork could not plant faults in it. False if the
        import fails: the server and the client that tests import register protobuf files of one name."""
        name = ".".join(["relayc", *Path(path).with_suffix("").parts]).removesuffix(".__init__")
        if name not in sys.modules:
            try:
                importlib.import_module(name)
            except (ImportError, TypeError):
                return False
            self._find_functions()
        return True

    def _fork(self, trial: Trial, codes: Sequence[tuple[CodeType, CodeType]]) -> _Fork:
        read, write = os.pipe()
        folder = tempfile.mkdtemp(prefix="planted")
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # threads of libraries wait for work
            process = os.fork()
        if process:
            os.close(write)
            return _Fork(trial, process, read, folder)
        try:
            _live_alone(folder)
            for old, new in codes:
                for function in self._functions[_key(old)]:
                    function.__code__ = new
            failed = self._first_failure(trial.tests)
        except BaseException as error:
            failed = f"{type(error).__name__}: {error}"
        os.write(write, failed.encode()[:4000])
        os._exit(0)

    def _first_failure(self, tests: Mapping[str, float]) -> str:
        items = [self._items[test] for test in tests if test in self._items]
        for item, after in zip(items, [*items[1:], None], strict=False):
            signal.alarm(LEAST_SECONDS + round(10 * tests[item.nodeid]))
            if any(report.failed for report in runtestprotocol(item, nextitem=after, log=False)):
                return item.nodeid
        of_lit = {test: seconds for test, seconds in tests.items() if test.startswith(LIT)}
        signal.alarm(LEAST_SECONDS + round(10 * sum(of_lit.values())))
        return _failure_of_lit(list(of_lit)) if of_lit else ""


@dataclass(frozen=True)
class _Fork:
    trial: Trial
    process: int
    pipe: int
    folder: str

    def result(self) -> str:
        """What the fork has written, or how it ended: by a signal where a fault destroys memory, say."""
        status = os.waitpid(self.process, 0)[1]
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process, signal.SIGKILL)
        with os.fdopen(self.pipe, "rb", buffering=0) as file:
            text = (file.read(4000) or b"").decode(errors="replace")
        shutil.rmtree(self.folder, ignore_errors=True)
        if os.WIFSIGNALED(status):
            return "no end" if os.WTERMSIG(status) == signal.SIGALRM else f"signal {os.WTERMSIG(status)}"
        return text


def _failure_of_lit(tests: Sequence[str]) -> str:
    """The first lit test that fails, "" where none does; their tools are forks of this process."""
    path = str(Path(tempfile.gettempdir()) / "socket")
    read, write = os.pipe()
    if os.fork() == 0:
        os.dup2(read, 0)
        os.close(write)
        fork_server.serve(path)
        os._exit(0)
    command = [*LIT_TOOL, "-q", "-j1", "--max-failures=1", *tests]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "RELAYC_LIT_SERVER": path}, capture_output=True, text=True)
    os.close(write)
    failed = re.search(r"^  \S+ :: (\S+)", done.stdout, re.MULTILINE)
    return "" if done.returncode == 0 else failed[1] if failed else "lit"


def _live_alone(folder: str) -> None:
    """Makes a process the head of a group that writes nowhere but to a folder of its own, and takes no more than its share of memory."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.environ["PYTEST_DEBUG_TEMPROOT"] = folder
    tempfile.tempdir = folder
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _key(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def codes_of(fault: Fault, source: str) -> list[tuple[CodeType, CodeType]] | None:
    """The code of each function of a file that a fault changes, before and after; None where it changes what an import executes.

    A function that is defined in another is among them by itself, as it may have been made before.
    """
    name = str(ROOT / fault.path)
    # The lines behind the fault keep their numbers.
    left = source[fault.begin : fault.end].count("\n") - fault.text.count("\n")
    rest, line_end, behind = source[fault.end :].partition("\n")
    planted = source[: fault.begin] + fault.text + rest + "\n" * left + line_end + behind
    try:
        old, new = compile(source, name, "exec"), compile(planted, name, "exec")
    except SyntaxError:
        return None
    found: list[tuple[CodeType, CodeType]] = []
    return found if _changed(old, new, found) and found else None


def _changed(old: CodeType, new: CodeType, found: list[tuple[CodeType, CodeType]]) -> bool:
    """Adds the changed functions of a module, a class or a function; gives False where the fault cannot be planted in functions."""
    inner_old, inner_new = ([c for c in code.co_consts if isinstance(c, CodeType)] for code in (old, new))
    is_function = bool(old.co_flags & OPTIMIZED)
    alike = [c.co_qualname for c in inner_old] == [c.co_qualname for c in inner_new]
    if not is_function and (not alike or _without_inner(old) != _without_inner(new)):
        return False
    if is_function:
        if old.co_freevars != new.co_freevars:
            return False
        if old != new:
            found.append((old, new))
    return not alike or all(_changed(a, b, found) for a, b in zip(inner_old, inner_new, strict=True) if a != b)


def _without_inner(code: CodeType) -> tuple[Any, ...]:
    return code.co_code, code.co_names, [c for c in code.co_consts if not isinstance(c, CodeType)]


def try_all(trials: Iterator[Trial], report: Callable[[Trial, str | None], None], jobs: int) -> int:
    """Tries faults in a session of pytest that has all tests; gives its exit code."""
    options = ["-q", "--capture=sys", "-p", "no:cacheprovider", "-p", "no:xdist", f"--rootdir={ROOT}", str(ROOT / "test" / "python")]
    os.chdir(ROOT)
    sys.dont_write_bytecode = True
    return int(pytest.main(options, plugins=[Planter(trials, report, jobs)]))
