"""Progress bars: on a terminal alone, and never in the way of standard output."""

import contextlib
import os
import pty
import subprocess
import sys

import pytest

from relayc.tools import commands

PROGRAM = """
from relayc.tools.progress import import_progress, progress_bar, tracked

print(list(tracked("ab", "letters[bold]", 2)))
with progress_bar("searching") as show:
    show("halving")
    print("found")
with import_progress(QUIET) as advance:
    advance(1, 2)
    advance(2, 2)
"""


def shown(program, out=subprocess.PIPE):
    """Standard output of a program whose stderr is a terminal, and what the terminal gets."""
    terminal, end = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    done = subprocess.run([sys.executable, "-c", program], stdout=out, stderr=end, text=True, env=environment, check=True)
    os.close(end)
    text = os.read(terminal, 1 << 16).decode()
    os.close(terminal)
    return done.stdout, text


def test_a_terminal_shows_bars_and_standard_output_has_none_of_them():
    out, text = shown(PROGRAM.replace("QUIET", "False"))
    assert out == "['a', 'b']\nfound\n"
    assert all(word in text for word in ("letters[bold]", "2/2", "halving", "compiling")) and "found" not in text
    assert text.endswith("\x1b[1A\x1b[2K")  # nothing is left of the last bar


@pytest.mark.parametrize(("options", "is_quiet"), [({}, False), ({"quiet": True}, True)])
def test_a_command_that_compiles_shows_how_far_it_is(options, is_quiet, monkeypatch):
    found = []
    monkeypatch.setattr(commands, "import_progress", lambda quiet: found.append(quiet) or contextlib.nullcontext())
    monkeypatch.setattr("relayc.pipelines.driver.compile.compile", lambda model, **options: (model, options))
    assert commands.compile_with_progress("m", **options, target="cpu") == ("m", {"target": "cpu", "progress": None})
    assert found == [is_quiet]


def test_quiet_shows_no_bar():
    _, text = shown(PROGRAM.replace("QUIET", "True"))
    assert "halving" in text and "compiling" not in text


@pytest.mark.parametrize("quiet", ["False", "True"])
def test_a_pipe_gets_no_bar(quiet):
    done = subprocess.run([sys.executable, "-c", PROGRAM.replace("QUIET", quiet)], capture_output=True, text=True, check=True)
    assert done.stderr == ""
