"""Chooses the tests that run by default, by a record of the lines of the compiler that each test executes.

Tests of less than `SHORT` seconds run, each with one case at least, and all cases of less than `QUICK` seconds: cases on both sides of a
limit execute the same lines. The choice then adds the test or case with the most new lines per second, as long as these are at least
`WORTH`: first lines that no chosen test executes, then lines that one of them does. Line coverage does not show faults that depend on
sizes: `SHARES` adds cases of tests of sizes. The record lacks the lines that other processes execute: tests that start processes run whole
(`WHOLE`).
"""

from __future__ import annotations

import heapq
import json
import os
import subprocess
import sys
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable

import numpy as np
from executed import ROOT, Executed

# Seconds of an AMD EPYC (Zen 5), which takes half of the time of slower machines.
SHORT = 1.0
QUICK = 0.2
WORTH = (16.0, 320.0)
"""Lines per second for which a test is added: lines that no other chosen test executes, and lines that one other does."""
SHARES = {"test/python/frontend/test_onnx_conformance.py": 16, "test/python/strategies/": 8, "test/python/test_golden.py": 5}
"""At least one case in so many runs, of the tests in a folder or file."""
WHOLE = tuple(
    f"test/python/{name}" for name in ("bench/", "export/", "serve/", "tools/", "test_cache.py", "test_packaging.py", "test_pages.py")
)
CASES = ROOT / "test" / "python" / "cases.json"


def choose(executed: Executed) -> int:
    """Writes `CASES`: for each test that does not run whole the number of its cases, and the names of the cases that run. A test without
    cases is its only case, without a name."""
    there = collected()
    cases, before = _cases(there), left_out(there)
    lines, seconds = executed.lines_by_test(), executed.seconds
    fixed = {*lines} - {_name(test, case) for test, names in cases.items() for case in names}
    for test, names in cases.items():
        recorded = sorted((name for case in names if (name := _name(test, case)) in lines), key=seconds)
        fixed |= {name for name in recorded if _is_of_share(name)}
        fixed |= {name for name in recorded[:1] if seconds(name) < SHORT} | {name for name in recorded if seconds(name) < QUICK}
    chosen = _cover(lines, seconds, fixed)
    found = {}
    for test, names in sorted(cases.items()):
        newer = {name for case in names if (name := _name(test, case)) not in lines and name not in before and _may_be_chosen(name)}
        kept = [case for case in names if _name(test, case) in chosen | newer]
        if len(kept) < len(names):
            found[test] = [len(names), *kept]
    CASES.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()) + "\n}\n")
    left, total = (sum(map(seconds, tests)) for tests in (chosen, lines))
    print(f"{len(chosen)} of {len(lines)} tests run, {left:.0f} of {total:.0f} s")
    return 0


def left_out(names: Iterable[str]) -> set[str]:
    """The names of collected tests and cases that do not run by default. A test whose cases have changed since the choice runs whole."""
    chosen, cases = json.loads(CASES.read_text()) if CASES.exists() else {}, _cases(names)
    found = set()
    for test, (count, *kept) in chosen.items():
        if len(cases[test]) == count and {*kept} <= {*cases[test]}:
            found |= {_name(test, case) for case in cases[test] if case not in kept}
    return found


def _cases(names: Iterable[str]) -> defaultdict[str, list[str]]:
    """The names of the cases of each test that may run in part. A method of ONNX's own test classes is a case of its class."""
    found = defaultdict(list)
    for name in names:
        test, _, case = name.removesuffix("]").partition("[")
        if not case and "::OnnxBackend" in name:
            test, case = name.rsplit("::", 1)
        if not test.startswith(WHOLE):
            found[test].append(case)
    return found


def _name(test: str, case: str) -> str:
    if test.rpartition("::")[2].startswith("OnnxBackend"):
        return f"{test}::{case}"
    return f"{test}[{case}]" if case else test


def collected() -> list[str]:
    """The names of all tests and cases of pytest."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "test/python"]
    environment = {**os.environ, "RELAYC_TEST_ALL": "1"}
    text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, env=environment).stdout
    return [line for line in text.splitlines() if line.startswith("test/python/")]


def _share(name: str) -> int:
    """The share of the place of a test; 0 of others."""
    return next((share for place, share in SHARES.items() if name.startswith(place)), 0)


def _is_of_share(name: str) -> bool:
    return _share(name) > 0 and zlib.crc32(name.rpartition("::")[2].encode()) % _share(name) == 0


def _may_be_chosen(name: str) -> bool:
    """Whether a test or case that the record lacks, and the choice before did not leave out, runs: at places with a share those of it."""
    return not _share(name) or _is_of_share(name)


def _cover(lines: dict[str, np.ndarray], seconds: Callable[[str], float], fixed: set[str]) -> set[str]:
    """The fixed tests and a greedy choice of others by their new lines per second (see `WORTH`)."""
    counts = np.zeros(1 + max(int(numbers.max(initial=0)) for numbers in lines.values()), np.int32)
    chosen = set(fixed)
    for test in chosen:
        counts[lines[test]] += 1
    for executions, least in enumerate(WORTH):

        def worth(test: str) -> float:
            return int((counts[lines[test]] <= executions).sum()) / max(seconds(test), 0.01)  # noqa: B023 (called in this turn)

        queue = [(-worth(test), test) for test in lines if test not in chosen]
        heapq.heapify(queue)
        while queue:
            _, test = heapq.heappop(queue)
            gain = worth(test)
            if queue and gain < -queue[0][0]:  # others have covered some of its lines
                heapq.heappush(queue, (-gain, test))
            elif gain < least:
                break
            else:
                chosen.add(test)
                counts[lines[test]] += 1
    return chosen
