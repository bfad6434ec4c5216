"""All that `relayc-opt` prints for the files of test/lit, of which their CHECK lines look at parts."""

import io
import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from relayc.tools import opt

ROOT = Path(__file__).parents[2]
LIT = ROOT / "test" / "lit"
_COMMAND = re.compile(r"// RUN: (?:not )?relayc-opt (%s [^|>]*?)(?: 2>&1)?(?: \||$)")

_OF_PROCESS = ("primitives/tensorize.mlir", "tools/opt-errors.mlir")
"""Their errors list the intrinsics, and the passes and settings, that are registered."""


def files() -> list[str]:
    """The files with such commands, below test/lit, but for those whose output depends on what the process compiled before."""
    found = [str(path.relative_to(LIT)) for path in sorted(LIT.rglob("*.mlir")) if _COMMAND.search(path.read_text())]
    return [name for name in found if name not in _OF_PROCESS]


def outputs(name: str) -> Iterator[str]:
    """What each command of a file prints, with its errors."""
    text = (LIT / name).read_text()
    for line in text.splitlines():
        if (found := _COMMAND.match(line)) and "%t" not in line:
            yield _output(shlex.split(found[1].replace("%s", str(LIT / name))))


def _output(arguments: list[str]) -> str:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = opt.main(arguments)
    return f"{code}\n{out.getvalue()}{err.getvalue()}".replace(f"{ROOT}/", "")
