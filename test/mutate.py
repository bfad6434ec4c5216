"""Plants faults in the compiler, one at a time, and sees whether the tests find them.

    python test/mutate.py record                       # once: runs the suite, and records which test executes which line
    python test/mutate.py run --count 600 --seed 1     # plants faults all over, in proportion to what there is to get wrong
    python test/mutate.py run --package symbolic --package pipelines/te
    python test/mutate.py run --kind "a boundary"      # of one kind
    python test/mutate.py run --changed main..HEAD     # in lines that a range of revisions changed
    python test/mutate.py choose                       # which tests run by default (see choosing.py)

Of each fault only the tests that execute its lines run until one fails: those first that are fast, and like those that found others. They
are those that run by default, or all recorded ones with RELAYC_TEST_ALL=1 in the environment.
Survivors are printed as diffs, then a score for each package. OUT/faults.json keeps what has been found out: the same command goes on
where it was ended, and tries survivors again with --again. Faults that change no behaviour are listed with the reason in
equivalent_faults.json.

A driver of its own, as neither mutmut nor cosmic-ray chooses tests by the lines that they execute, or takes a package that is the root of
its checkout. Needs Python 3.12 or newer.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from choosing import WHOLE, choose, collected, left_out
from executed import LIT, LIT_TOOL, Executed, file_of
from faults import Fault, faults_of, is_fault
from planting import Trial, try_all
from rich.console import Console

from relayc.tools.tables import NUMBER, make_table

ROOT = Path(__file__).parent.parent
NEAR = 20
"""How many faults a test counts as having found that is named like the file of a fault, or executes what a constant is for."""
START_SECONDS = 60
"""Seconds that a process with tests may take beyond five times what the tests take: a fault may be a loop without end."""


def record(options: argparse.Namespace) -> int:
    """Runs the tests once, and records which line each executes."""
    options.out.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(options.jobs), "--dist", "worksteal", "-p", "executed"]
    command += [f"--executed={options.out}", *options.tests]
    environment = _environment(str(Path(__file__).parent))
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    command = [*LIT_TOOL, "-q", "-j", str(options.jobs), LIT]
    # A test that fails leaves a record as well.
    return subprocess.run(command, cwd=ROOT, env={**environment, "RELAYC_EXECUTED": str(options.out)}, check=False).returncode or code


def _environment(path: str) -> dict[str, str]:
    """The environment of tests that import from a folder first."""
    return {**os.environ, "KMP_BLOCKTIME": "0", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": path}


# ---- which faults are planted ----------------------------------------------------------------------------------------------------------


def package_of(path: str) -> str:
    """The package that a score is given for: relayc's own, those in pipelines, and each target."""
    parts = Path(path).parent.parts
    depth = 3 if parts[:2] == ("pipelines", "targets") else 2 if parts[:1] == ("pipelines",) else 1
    return "/".join(parts[:depth]) or "relayc"


def equivalent() -> set[tuple[str, str, str]]:
    """Faults that change no behaviour: file, line and line with the fault, without the spaces around them."""
    entries = json.loads((Path(__file__).parent / "equivalent_faults.json").read_text())
    return {(entry["path"], entry["line"], entry["fault"]) for entry in entries}


def first_change(fault: Fault, source: str) -> tuple[str, str]:
    """The first line that a fault changes, before and after."""
    pairs = zip(source.splitlines(), fault.planted(source).splitlines(), strict=False)
    before, after = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
    return before.strip(), after.strip()


def candidates(options: argparse.Namespace) -> list[Fault]:
    """All faults in the files that the options name."""
    changed = changed_lines(options.changed) if options.changed else None
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        name = str(path.relative_to(ROOT))
        if file_of(str(path)) is None or name.startswith("build/"):
            continue
        if options.package and not any(name.startswith(f"{package.rstrip('/')}/") or name == package for package in options.package):
            continue
        source = path.read_text()
        faults = faults_of(name, source)
        found += [f for f in faults if changed is None or not changed[name].isdisjoint(range(f.lines[0], f.lines[1] + 1))]
    return [f for f in found if not options.kind or f.kind in options.kind]


def changed_lines(revisions: str) -> defaultdict[str, set[int]]:
    """The lines of each file that a range of revisions wrote, as they are numbered now if nothing has been changed since."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    text = subprocess.run(["git", "diff", "-U0", revisions, "--", "*.py"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    name = ""
    for line in text.splitlines():
        if line.startswith("+++ b/"):
            name = line[6:]
        elif match := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            begin, count = int(match[1]), int(match[2] or 1)
            found[name].update(range(begin, begin + count))
    return found


def chosen(faults: Sequence[Fault], count: int, seed: int) -> list[Fault]:
    """So many faults, of each package in proportion to what there are, but one at least; kinds of faults take turns.

    Constants and operators are more than half of all faults, and conditions are what people get wrong.
    """
    rng = random.Random(seed)
    by_package: defaultdict[str, list[Fault]] = defaultdict(list)
    for fault in faults:
        by_package[package_of(fault.path)].append(fault)
    known, found = equivalent(), []

    def counts(fault: Fault) -> bool:
        source = (ROOT / fault.path).read_text()
        return is_fault(fault, source) and (fault.path, *first_change(fault, source)) not in known

    for package in sorted(by_package):
        of_kind: defaultdict[str, list[Fault]] = defaultdict(list)
        for fault in by_package[package]:
            of_kind[fault.kind].append(fault)
        for group in of_kind.values():
            rng.shuffle(group)
        queue = [group for _, group in sorted(of_kind.items())]
        wanted = max(1, round(count * len(by_package[package]) / len(faults)))
        while wanted and any(queue):
            for group in queue:
                while group and wanted:
                    fault = group.pop()
                    if counts(fault):
                        found.append(fault)
                        wanted -= 1
                        break
    rng.shuffle(found)
    return found


# ---- whether the tests find them ---------------------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What became of a fault: `found` by the test `by`, `survived` so many tests, or `not executed` by any."""

    fault: Fault
    status: str
    tests: int = 0
    by: str = ""


class Checkout:
    """A copy of the checkout, for faults that a running process cannot have: those that an import executes."""

    def __init__(self, folder: Path) -> None:
        self._root, self._folder = folder, folder / "relayc"
        ignored = shutil.ignore_patterns(".venv*", ".git", "build", "__pycache__", ".*_cache", "*.egg-info")
        shutil.copytree(ROOT, self._folder, ignore=ignored)

    def failure(self, trial: Trial) -> str:
        """The first test that fails, "" where none does."""
        path = self._folder / trial.fault.path
        source = path.read_text()
        path.write_text(trial.fault.planted(source))
        seconds = START_SECONDS + 5 * sum(trial.tests.values())
        of_lit = [test for test in trial.tests if test.startswith(LIT)]
        names = self._root / "tests.txt"
        names.write_text("\n".join(test for test in trial.tests if test not in of_lit))
        try:
            return (names.read_text() and self._pytest(names, seconds)) or (of_lit and self._lit(of_lit, seconds)) or ""
        finally:
            path.write_text(source)

    def _pytest(self, names: Path, seconds: float) -> str:
        code, text = self._run([sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", f"@{names}"], seconds)
        if code == 0:
            return ""
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", text, re.MULTILINE)
        return failed[1] if failed else "no end" if code is None else text.strip().splitlines()[-1] if text.strip() else f"exit {code}"

    def _lit(self, tests: Sequence[str], seconds: float) -> str:
        code, text = self._run([*LIT_TOOL, "-q", "-j1", "--max-failures=1", *tests], seconds)
        failed = re.search(r"^  \S+ :: (\S+)", text, re.MULTILINE)
        return "" if code == 0 else failed[1] if failed else "lit"

    def _run(self, command: Sequence[str], seconds: float) -> tuple[int | None, str]:
        """Exit code (None where there is no end) and output of a command, whose processes all end with it."""
        with tempfile.TemporaryFile("w+") as out:
            process = subprocess.Popen(
                command,
                cwd=self._folder,
                env=_environment(str(self._root)),
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code: int | None = process.wait(seconds)
            except subprocess.TimeoutExpired:
                code = None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            out.seek(0)
            return code, out.read()


def chosen_tests(executed: Executed, fault: Fault, limit: float, seed: int, found: Counter[str], left: Collection[str]) -> dict[str, float]:
    """The tests of a fault that are most likely to find it in a short time (see `NEAR`), for half of the seconds, and some of the others
    for the rest, so that all kinds of tests are among them; with their seconds.

    Args:
      found: how many faults the tests of each file have found so far.
      left: tests that do not run.
    """
    source = (ROOT / fault.path).read_text()
    # What an import executes is there for every test of the file, whichever imported it first.
    lines = fault.lines if is_in_function(fault, source) else (1, source.count("\n") + 1)
    tests = [test for test in executed.tests_of(fault.path, lines) if test not in left]
    near = {test for line in uses_of(fault, source) for test in executed.tests_of(fault.path, (line, line))}

    def cost(test: str) -> float:
        return executed.seconds(test) / (1 + found[_file_of_test(test)] + NEAR * (test in near or _is_named_like(test, fault.path)))

    tests.sort(key=cost)
    first: dict[str, float] = {}
    while tests and sum(first.values()) + executed.seconds(tests[0]) <= limit / 2:
        test = tests.pop(0)
        first[test] = executed.seconds(test)
    # A fault that only slow tests execute gets one all the same.
    others = {tests[0]: executed.seconds(tests[0])} if tests and not first else {}
    random.Random(seed).shuffle(tests)
    return first | others | _fitting(tests, executed, limit - sum(first.values()))


def _fitting(tests: Iterable[str], executed: Executed, left: float) -> dict[str, float]:
    """Each test that takes no more than the seconds that the tests before it leave."""
    found = {}
    for test in tests:
        if executed.seconds(test) <= left:
            found[test] = executed.seconds(test)
            left -= found[test]
    return found


def of_processes(executed: Executed, fault: Fault, limit: float, left: Collection[str]) -> dict[str, float]:
    """Tests for a line that no test executes in its own process, fastest first, with their seconds: a folder of tests that start
    processes has the name of a package of the file. The tests run in a checkout that has the fault."""
    folders = tuple(f"test/python/{name}/" for name in Path(fault.path).parent.parts if f"test/python/{name}/" in WHOLE)
    tests = sorted((t for t in executed.tests if t.startswith(folders) and t not in left), key=executed.seconds)
    return _fitting(tests, executed, limit)


def _file_of_test(test: str) -> str:
    return test.partition("::")[0]


def is_in_function(fault: Fault, source: str) -> bool:
    """Whether a call executes the first line of a fault, and not the import of its file."""
    functions = (n for n in ast.walk(ast.parse(source)) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return any(n.body[0].lineno <= fault.lines[0] <= (n.end_lineno or n.lineno) for n in functions)


def uses_of(fault: Fault, source: str) -> set[int]:
    """The lines of a file that use the constant of the module that a fault is in; none where it is elsewhere."""
    tree = ast.parse(source)
    made = (n for n in tree.body if isinstance(n, (ast.Assign, ast.AnnAssign)) and n.lineno <= fault.lines[0] <= (n.end_lineno or n.lineno))
    names = {n.id for statement in made for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return {n.lineno for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in names}


def _is_named_like(test: str, path: str) -> bool:
    """Whether a test has the name of a file: lit's combine-parallel-dense.mlir and test_combine_parallel_dense.py are of one subject."""
    return Path(path).stem in Path(_file_of_test(test)).stem.replace("-", "_")


class Outcomes:
    """What has become of faults, kept in a file and printed."""

    def __init__(self, path: Path, console: Console) -> None:
        self._path, self._console = path, console
        self.of: dict[Fault, Outcome] = {}
        for entry in json.loads(path.read_text()) if path.exists() else ():
            fault = entry.pop("fault")
            self._keep(Outcome(Fault(**{**fault, "lines": tuple(fault["lines"])}), **entry))

    def _keep(self, outcome: Outcome) -> None:
        self.of[outcome.fault] = outcome

    def found_by(self) -> Counter[str]:
        """How many faults the tests of each file have found."""
        return Counter(_file_of_test(outcome.by) for outcome in self.of.values() if outcome.status == "found")

    def add(self, trial: Trial, failed: str) -> None:
        """Keeps what became of a fault: the test that fails is "" where none does."""
        outcome = Outcome(trial.fault, "found" if failed else "survived" if trial.tests else "not executed", len(trial.tests), failed)
        self._keep(outcome)
        self._path.write_text(json.dumps([asdict(o) for o in self.of.values()], indent=1))
        if outcome.status != "found":
            self._console.print(_diff(outcome), markup=False, soft_wrap=True)
        self._console.print(f"[{len(self.of)}] {outcome.status} {outcome.by}", markup=False, soft_wrap=True)


def run(options: argparse.Namespace, console: Console) -> int:
    """Plants faults, and prints what survives."""
    began = time.monotonic()
    faults = chosen(candidates(options), options.count, options.seed)
    executed, outcomes = Executed(options.out), Outcomes(options.out / "faults.json", console)
    there = collected()
    left = set() if "RELAYC_TEST_ALL" in os.environ else left_out(there)
    # A test that is no longer there would fail, and seem to have found a fault.
    left |= {test for test in executed.tests if not test.startswith(LIT)} - {*there}
    in_copy: list[Trial] = []

    def trials() -> Iterator[Trial]:
        """Those that tests execute, each chosen tests for when its turn comes."""
        for fault in faults:
            if fault in outcomes.of and not (options.again and outcomes.of[fault].status != "found"):
                continue
            trial = Trial(fault, chosen_tests(executed, fault, options.limit, options.seed, outcomes.found_by(), left))
            if trial.tests and executed.is_of_import(fault.path, fault.lines):
                in_copy.append(trial)  # a function that is called no more in a process with all imports
            elif trial.tests:
                yield trial
            elif tests := of_processes(executed, fault, options.limit, left):
                in_copy.append(Trial(fault, tests))
            else:
                outcomes.add(trial, "")

    def report(trial: Trial, failed: str | None) -> None:
        if failed is None:
            in_copy.append(trial)
        else:
            outcomes.add(trial, failed)

    try_all(trials(), report, options.jobs)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        free: SimpleQueue[Checkout] = SimpleQueue()
        for number in range(options.jobs):
            free.put(Checkout(Path(folder) / str(number)))

        def failure(trial: Trial) -> str:
            checkout = free.get()
            try:
                return checkout.failure(trial)
            finally:
                free.put(checkout)

        for trial, failed in zip(in_copy, pool.map(failure, in_copy), strict=True):
            outcomes.add(trial, failed)
    print_scores([outcomes.of[fault] for fault in faults], console)
    console.print(f"{(time.monotonic() - began) / 60:.0f} min")
    return 0


def _diff(outcome: Outcome) -> str:
    source = (ROOT / outcome.fault.path).read_text()
    before, after = (text.splitlines(keepends=True) for text in (source, outcome.fault.planted(source)))
    lines = difflib.unified_diff(before, after, outcome.fault.path, f"{outcome.fault.kind}: {outcome.status}, {outcome.tests} tests", n=2)
    return "".join(lines)


def print_scores(outcomes: Sequence[Outcome], console: Console) -> None:
    """A table of what is found of the faults in each package."""
    of_package: defaultdict[str, list[str]] = defaultdict(list)
    for outcome in outcomes:
        of_package[package_of(outcome.fault.path)].append(outcome.status)
        of_package["all"].append(outcome.status)
    columns: Mapping[str, Any] = {"package": {"no_wrap": True}, "faults": NUMBER, "found": NUMBER, "%": NUMBER, "not executed": NUMBER}
    table = make_table("faults that the tests find", **columns)
    for package, statuses in sorted(of_package.items(), key=lambda item: (item[0] == "all", item[0])):
        found = statuses.count("found")
        share = f"{100 * found / len(statuses):.0f}"
        table.add_row(package, str(len(statuses)), str(found), share, str(statuses.count("not executed")))
    console.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "mutate", help="folder of what is found out (default: build/mutate)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="faults, or tests, at the same time (default 2)")
    commands = parser.add_subparsers(dest="command", required=True)
    measured = commands.add_parser("record", help="run the tests, and record which line each executes")
    measured.add_argument("tests", nargs="*", default=["test/python"], help="files or folders of tests (default: all)")
    commands.add_parser("choose", help="write which tests run by default, by the lines that they execute")
    planted = commands.add_parser("run", help="plant faults")
    planted.add_argument("--count", type=int, default=600, metavar="N", help="faults (default 600)")
    planted.add_argument("--seed", type=int, default=0, help="of the choice of faults (default 0)")
    planted.add_argument("--package", action="append", metavar="PATH", help="a folder or file, may be given several times (default: all)")
    planted.add_argument("--kind", action="append", help="one such as 'a condition dropped', may be given several times (default: all)")
    planted.add_argument("--changed", metavar="A..B", help="only lines that a range of revisions changed")
    planted.add_argument("--limit", type=float, default=120, metavar="S", help="seconds of tests for each fault, without it (default 120)")
    planted.add_argument("--again", action="store_true", help="try what survived again, with another limit or with new tests")
    options = parser.parse_args()
    if options.command == "choose":
        return choose(Executed(options.out))
    return record(options) if options.command == "record" else run(options, Console(highlight=False))


if __name__ == "__main__":
    sys.exit(main())
