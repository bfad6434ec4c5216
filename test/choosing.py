"""Chooses the cases of tests that run by default, by a record of the lines of the compiler that each case executes.

Every test keeps one case. The choice then adds the case with the most new lines per second, until `EXECUTIONS` tests execute each line, or
all tests that execute it are chosen. Line coverage does not show faults that depend on sizes: `SHARES` adds cases of tests of sizes. The
record lacks the lines that other processes execute: tests that start processes run whole (`WHOLE`).
"""

from __future__ import annotations

import heapq
import json
import subprocess
import sys
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from executed import ROOT, Executed

EXECUTIONS = 2
SHARES = {"test/python/frontend/test_onnx_conformance.py": 8, "test/python/strategies/": 6, "test/python/test_golden.py": 4}
"""At least one case in so many runs, of the tests in a folder or file."""
WHOLE = tuple(
    f"test/python/{name}" for name in ("bench/", "export/", "serve/", "tools/", "test_cache.py", "test_packaging.py", "test_pages.py")
)
CASES = ROOT / "test" / "python" / "cases.json"


def choose(executed: Executed) -> int:
    """Writes `CASES`: for each test that does not run whole the number of its cases, and the names of the cases that run."""
    CASES.unlink(missing_ok=True)
    cases = {test: names for test, names in _cases(_collected()).items() if len(names) > 1}
    lines, seconds = executed.lines_by_test(), executed.seconds
    fixed = {*lines} - {_name(test, case) for test, names in cases.items() for case in names}
    for test, names in cases.items():
        recorded = [name for case in names if (name := _name(test, case)) in lines]
        fixed |= {min(recorded, key=seconds)} if recorded else set()
        fixed |= {name for name in recorded if _is_of_share(name)}
    chosen = _cover(lines, seconds, fixed)
    found = {}
    for test, names in sorted(cases.items()):
        kept = [case for case in names if _name(test, case) in chosen]
        if kept and len(kept) < len(names):
            found[test] = [len(names), *kept]
    CASES.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()) + "\n}\n")
    left, total = (sum(map(seconds, tests)) for tests in (chosen, lines))
    print(f"{len(chosen)} of {len(lines)} tests run, {left:.0f} of {total:.0f} s")
    return 0


def left_out(names: Sequence[str]) -> set[str]:
    """The names of collected cases that do not run by default. A test whose cases have changed since the choice runs whole."""
    chosen, cases = json.loads(CASES.read_text()) if CASES.exists() else {}, _cases(names)
    found = set()
    for test, (count, *kept) in chosen.items():
        if len(cases[test]) == count and {*kept} <= {*cases[test]}:
            found |= {_name(test, case) for case in cases[test] if case not in kept}
    return found


def _cases(names: Iterable[str]) -> defaultdict[str, list[str]]:
    """The names of the cases of each test. A method of ONNX's own test classes is a case of its class."""
    found = defaultdict(list)
    for name in names:
        test, bracket, case = name.partition("[")
        if not bracket and "::OnnxBackend" in name:
            test, case = name.rsplit("::", 1)
        if case and not test.startswith(WHOLE):
            found[test].append(case.removesuffix("]"))
    return found


def _name(test: str, case: str) -> str:
    return f"{test}::{case}" if test.rpartition("::")[2].startswith("OnnxBackend") else f"{test}[{case}]"


def _collected() -> list[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "test/python"]
    text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [line for line in text.splitlines() if line.startswith("test/python/")]


def _is_of_share(name: str) -> bool:
    return any(name.startswith(place) and zlib.crc32(name.rpartition("::")[2].encode()) % share == 0 for place, share in SHARES.items())


def _cover(lines: dict[str, np.ndarray], seconds: Callable[[str], float], fixed: set[str]) -> set[str]:
    """The fixed tests and a greedy choice of others, such that each line is executed `EXECUTIONS` times if that many tests execute it."""
    counts = np.zeros(1 + max(int(numbers.max(initial=0)) for numbers in lines.values()), np.int32)
    for numbers in lines.values():
        counts[numbers] += 1
    wanted, chosen = np.minimum(counts, EXECUTIONS), set(fixed)
    for test in fixed:
        wanted[lines[test]] -= 1

    def worth(test: str) -> float:
        return int((wanted[lines[test]] > 0).sum()) / max(seconds(test), 0.01)

    queue = [(-worth(test), test) for test in lines if test not in fixed]
    heapq.heapify(queue)
    while queue:
        _, test = heapq.heappop(queue)
        gain = worth(test)
        if gain and queue and gain < -queue[0][0]:  # others have covered some of its lines
            heapq.heappush(queue, (-gain, test))
        elif gain:
            chosen.add(test)
            wanted[lines[test]] -= 1
    return chosen
