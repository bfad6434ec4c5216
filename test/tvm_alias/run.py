"""Runs TVM's tests of Relay on relayc, a process for each file, and prints how many passed.

RELAYC_TVM_TESTS=tvm/tests/python/relay python test/tvm_alias/run.py [FILE ...] [--failures]
"""

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
FILES = (
    *(f"test_ir_{name}" for name in ("nodes", "parser", "text_printer", "well_formed", "bind")),
    *("test_expr_functor", "test_type_*", "test_analysis_*", "test_op_level[1-5]", "test_op_level10"),
)
"""The files that are run by default."""
SECONDS = 1200
"""How long a file may take."""


def run(tests: Path, name: str, show_failures: bool) -> dict[str, int]:
    """How many tests of a file passed, failed and were skipped."""
    python = tests.parents[2] / "python"
    env = {**os.environ, "PYTHONPATH": f"{HERE}{os.pathsep}{HERE.parents[1] / '.venv' / 'src'}"}
    if python.is_dir():
        env["RELAYC_TVM_PYTHON"] = str(python)
    options = ["-q", "-p", "tvm.testing", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(tests), "--tb=line"]
    command = [sys.executable, "-B", "-m", "pytest", *options, "-rfE" if show_failures else "-rN", str(tests / f"{name}.py")]
    try:
        found = subprocess.run(command, env=env, capture_output=True, text=True, timeout=SECONDS, cwd=tests).stdout
    except subprocess.TimeoutExpired:
        found = f"{SECONDS} seconds: 1 error"
    if show_failures:
        print(found)
    last = found.strip().splitlines()[-1] if found.strip() else "1 error"
    return {kind.rstrip("s"): int(count) for count, kind in re.findall(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed)", last)}


def main() -> None:
    tests = Path(os.environ["RELAYC_TVM_TESTS"]).resolve()
    wanted = [arg.removesuffix(".py") for arg in sys.argv[1:] if not arg.startswith("--")] or FILES
    names = [path.stem for name in wanted for path in sorted(tests.glob(f"{name}.py"))]
    total: dict[str, int] = {}
    for name in names:
        counts = run(tests, name, "--failures" in sys.argv)
        print(f"{name:44}", " ".join(f"{counts.get(kind, 0):5} {kind}" for kind in ("passed", "failed", "error", "skipped")), flush=True)
        for kind, count in counts.items():
            total[kind] = total.get(kind, 0) + count
    print(f"{'sum':44}", " ".join(f"{total.get(kind, 0):5} {kind}" for kind in ("passed", "failed", "error", "skipped")))


if __name__ == "__main__":
    main()
