"""Which test executes which line of the compiler, and how long the test takes: a pytest plugin that records it, and what reads the record.

The plugin counts with sys.monitoring (Python 3.12): a line costs time once in a test, so that the suite takes little longer than without.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
NOT_COMPILER = ("test", "bench", "docs", "examples", "lit.cfg.py")
"""Folders and files of which no line is recorded."""
IMPORTING = "(import)"
"""What stands for a test where modules are imported and tests are collected."""


LIT = "test/lit/"
"""What names of lit tests begin with."""
LIT_TOOL = (sys.executable, "-c", "import sys, lit.main; sys.exit(lit.main.main())")
"""The test runner of LLVM; the environment of the frameworks has it without its command, and `-m lit.main` runs nothing."""


class Lines:
    """Counts the lines of the compiler that a process executes, test by test."""

    def __init__(self) -> None:
        self._lines: defaultdict[str, set[int]] = defaultdict(set)
        self._tests: dict[str, dict[str, Any]] = {}
        # The lines of a file that a test executes are those that many tests execute: each set is kept once, as the bits of a number.
        self._masks: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._names: dict[str, str | None] = {}
        tool = sys.monitoring.COVERAGE_ID
        sys.monitoring.use_tool_id(tool, "relayc")
        sys.monitoring.register_callback(tool, sys.monitoring.events.LINE, self._line)
        sys.monitoring.set_events(tool, sys.monitoring.events.LINE)
        self._began = time.perf_counter()

    def _line(self, code: CodeType, line: int) -> Any:
        try:
            name = self._names[code.co_filename]
        except KeyError:
            name = self._names[code.co_filename] = file_of(code.co_filename)
        if name:
            self._lines[name].add(line)
        return sys.monitoring.DISABLE

    def begin(self) -> None:
        """Has a test begin: what lines it executes is counted anew."""
        self._lines.clear()
        sys.monitoring.restart_events()
        self._began = time.perf_counter()

    @contextmanager
    def apart(self) -> Iterator[defaultdict[str, set[int]]]:
        """Gives the lines that the body executes, once it has; they are among those executed since `begin` too."""
        before, found = self._lines, defaultdict(set)
        self._lines = found
        sys.monitoring.restart_events()
        try:
            yield found
        finally:
            self._lines = before
            self.add(found)

    def add(self, lines: Mapping[str, set[int]]) -> None:
        """Has a test executed lines that were executed before it for its sake."""
        for name, numbers in lines.items():
            self._lines[name] |= numbers

    def end(self, test: str) -> None:
        """Keeps the lines that have been executed since `begin` as those of a test."""
        masks = {}
        for name, lines in self._lines.items():
            numbers = self._masks[name]
            masks[name] = numbers.setdefault(sum(1 << line for line in lines), len(numbers))
        self._tests[test] = {"seconds": round(time.perf_counter() - self._began, 3), "masks": masks}

    def write(self, path: Path) -> None:
        """Ends the counting, and writes a file for `Executed`."""
        sys.monitoring.set_events(sys.monitoring.COVERAGE_ID, sys.monitoring.events.NO_EVENTS)
        sys.monitoring.free_tool_id(sys.monitoring.COVERAGE_ID)
        masks = {name: [f"{mask:x}" for mask in numbers] for name, numbers in self._masks.items()}
        path.write_text(json.dumps({"masks": masks, "tests": self._tests}))


class Recorder:
    """A pytest plugin that writes FOLDER/executed-WORKER.json at the end of the session.

    What a fixture of several tests executes counts as executed by each of them.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._lines = folder, Lines()
        self._is_first = True
        self._of_fixtures: dict[Any, Mapping[str, set[int]]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if self._is_first:
            self._lines.end(IMPORTING)
            self._is_first = False
        self._lines.begin()
        result = yield
        for fixtures in item._fixtureinfo.name2fixturedefs.values():  # type: ignore[attr-defined] # of a function
            self._lines.add(self._of_fixtures.get(fixtures[-1], {}))
        self._lines.end(item.nodeid)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        if fixturedef.scope == "function":
            return (yield)
        with self._lines.apart() as lines:
            result = yield
        self._of_fixtures[fixturedef] = lines
        return result

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        worker = getattr(session.config, "workerinput", {}).get("workerid", "main")
        self._lines.write(self._folder / f"executed-{worker}.json")


@contextmanager
def recorded(folder: str, arguments: Sequence[str]) -> Iterator[None]:
    """Records what a tool of a lit test executes; which test it is, the arguments of the tool say."""
    tests = [name for name in map(_lit_test, arguments) if name]
    lines = Lines() if tests else None
    try:
        yield
    finally:
        if lines:
            lines.end(tests[0])
            lines.write(Path(folder) / f"executed-lit-{os.getpid()}.json")


def _lit_test(argument: str) -> str | None:
    path = Path(argument)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT / LIT) else None


def file_of(path: str) -> str | None:
    """The name in the checkout of a file of the compiler, None for other files."""
    file = Path(path)
    if not file.is_relative_to(ROOT):
        return None
    name = file.relative_to(ROOT)
    return None if name.parts[0] in NOT_COMPILER or name.parts[0].startswith(".") else str(name)


class Executed:
    """What `Recorder` has written.

    Args:
      folder: has the files of all workers.
    """

    def __init__(self, folder: Path) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._by_file: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        for path in sorted(folder.glob("executed-*.json")):
            record = json.loads(path.read_text())
            masks = {name: [int(mask, 16) for mask in texts] for name, texts in record["masks"].items()}
            for test, found in record["tests"].items():
                self._seconds[test] += found["seconds"]  # a lit test may run several tools
                for name, number in found["masks"].items():
                    self._by_file[name].append((masks[name][number], test))

    def tests_of(self, path: str, lines: tuple[int, int]) -> list[str]:
        """The tests that execute one of the lines from the first to the second, fastest first. Where only the import of the file executes
        them, the tests that execute anything in the file; none where nothing executes them."""
        found = self._executing(path, lines)
        if found == {IMPORTING}:
            found = {test for _, test in self._by_file[path]}
        return sorted(found - {IMPORTING}, key=lambda test: self._seconds[test])

    def is_of_import(self, path: str, lines: tuple[int, int]) -> bool:
        """Whether only the import of the file executes the lines."""
        return self._executing(path, lines) == {IMPORTING}

    def _executing(self, path: str, lines: tuple[int, int]) -> set[str]:
        wanted = sum(1 << line for line in range(lines[0], lines[1] + 1))
        return {test for mask, test in self._by_file[path] if mask & wanted}

    def lines_by_test(self) -> dict[str, np.ndarray]:
        """The lines that each test executes, numbered through all files."""
        found, begin = defaultdict(list), 0
        for entries in self._by_file.values():
            known: dict[int, np.ndarray] = {}
            size = max((mask.bit_length() for mask, _ in entries), default=0) // 8 + 1
            for mask, test in entries:
                if mask not in known:
                    bits = np.unpackbits(np.frombuffer(mask.to_bytes(size, "little"), np.uint8), bitorder="little")
                    known[mask] = begin + np.flatnonzero(bits)
                found[test].append(known[mask])
            begin += 8 * size
        del found[IMPORTING]
        return {test: np.unique(np.concatenate(parts)) for test, parts in found.items()}

    @property
    def tests(self) -> Collection[str]:
        """The names of all tests."""
        return self._seconds.keys()

    def seconds(self, test: str) -> float:
        """How long a test takes."""
        return self._seconds[test]


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    # Before the first conftest.py, which imports the compiler.
    folder = early_config.known_args_namespace.executed
    if folder:
        early_config.pluginmanager.register(Recorder(Path(folder)), "executed-lines")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--executed", metavar="FOLDER", help="record which test executes which line")
