"""The pages for people: their programs and commands run, the site builds without a dead link, every public name is in the reference.

A page is a session: its blocks run in order, in a folder of its own that has the folders `test` and `docs`. Blocks of Python are
programs by themselves, blocks of sh are scripts that stop at the first command that fails. A comment before a block says more of it:

    <!-- needs: a C++ compiler -->    it runs only where there is one: NEEDS has what a comment may say
    <!-- file: app.cpp -->            it is not run, but written to a file
"""

import importlib.util
import inspect
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from test_documents import DOCUMENTS, ROOT

import relayc
from relayc.bench.__main__ import make_parser

SERVER = ROOT / "test" / "fork_server.py"
NEEDS = {
    "a C++ compiler": shutil.which("g++") is not None,
    "an NVIDIA GPU": shutil.which("nvidia-smi") is not None,
    "ptxas": importlib.util.find_spec("nvidia") is not None and importlib.util.find_spec("llvmlite") is not None,
    "torch": importlib.util.find_spec("torch") is not None,
    "torchao": importlib.util.find_spec("torchao") is not None,
    "jax": importlib.util.find_spec("jax") is not None,
    "flax": importlib.util.find_spec("flax") is not None,
    "keras": importlib.util.find_spec("keras") is not None and importlib.util.find_spec("jax") is not None,
    "matplotlib": importlib.util.find_spec("matplotlib") is not None,
    # Measurements, and what runs these tests or takes hours: for people. Their options are checked.
    "an idle machine": False,
    "a checkout": False,
    "an environment of its own": False,
    "other machines": False,
}
BLOCK = re.compile(r"^(?:<!-- (needs|file): ([^\n]*) -->\n)?```(\w+)\n(.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """A block of code in a page.

    Attributes:
      line: where its code begins in the page.
      needs, file: what the comment before it says.
    """

    line: int
    language: str
    code: str
    needs: str | None = None
    file: str | None = None


def blocks(name: str) -> Iterator[Block]:
    """The blocks of a page that do something."""
    text = (ROOT / name).read_text()
    for match in BLOCK.finditer(text):
        block = Block(text.count("\n", 0, match.start(4)) + 1, match[3], match[4], **({match[1]: match[2]} if match[1] else {}))
        if block.file or block.language in ("python", "sh"):
            yield block


PAGES = [name for name in DOCUMENTS if any(blocks(name))]


@pytest.fixture(scope="module")
def commands():
    """A folder of the commands of the package, each of which runs in a fork of a process that has the package imported already."""
    with TemporaryDirectory(prefix="relayc-") as folder:  # pytest's own may be too long for the path of a socket
        socket = Path(folder) / "socket"
        server = subprocess.Popen([sys.executable, SERVER, "serve", socket], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        for name, tool in (("relayc", "relayc"), ("relayc-opt", "relayc-opt"), ("run-program", "python")):
            command = Path(folder) / name
            command.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {SERVER} run {socket} {tool} "$@"\n')
            command.chmod(0o755)
        yield Path(folder)
        server.communicate()


@pytest.fixture(scope="module")
def environment(commands):
    """The variables of a session: commands are found, and programs that several pages compile are compiled once."""
    kept = {name: value for name, value in os.environ.items() if name != "RELAYC_CACHE"}
    path = os.pathsep.join([str(commands), str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**kept, "PATH": path, "RELAYC_CACHE_DIR": str(commands / "cache")}


@pytest.mark.parametrize("name", PAGES)
def test_the_blocks_of_a_page_run(name, tmp_path, environment, subtests):
    folder = tmp_path / "page"
    folder.mkdir()
    (folder / "test").symlink_to(ROOT / "test")
    shutil.copytree(ROOT / "docs", folder / "docs")
    for block in blocks(name):
        with subtests.test(f"{block.language} in line {block.line}"):
            if block.needs and not NEEDS[block.needs]:
                pytest.skip(f"needs {block.needs}")
            if block.file:
                (folder / block.file).write_text(block.code)
                continue
            program = tmp_path / f"{block.line}.{block.language}"  # from a file, as functions that are read by their source need one
            program.write_text(block.code)
            command = ["run-program"] if block.language == "python" else ["bash", "-euo", "pipefail"]
            done = subprocess.run([*command, program], cwd=folder, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", PAGES)
def test_a_command_that_is_not_run_has_options_that_exist(name):
    for block in blocks(name):
        if block.language == "sh":
            assert subprocess.run(["bash", "-n"], input=block.code, text=True).returncode == 0
            for line in re.findall(r"^python -m relayc\.bench (\w.*)", block.code, re.M):
                make_parser().parse_args(line.split("#")[0].replace("'", "").split())


def test_every_block_is_run_or_says_what_it_is():
    """What is indented is code that no test sees; what fences mark as code has a language."""
    for name in DOCUMENTS:
        text = re.sub(r"^```.*?^```$", "", (ROOT / name).read_text(), flags=re.M | re.S)
        assert re.findall(r"^\n {4}(?=\S)(?![-*] )(.*)", text, re.M) == [], name
        fences = re.findall(r"^```(.*)$", (ROOT / name).read_text(), re.M)[::2]
        assert set(fences) <= {"python", "sh", "py", "mlir", "text", "cpp", "c", "json", "dockerfile"}, name


def test_the_reference_has_every_public_name():
    reference = (ROOT / "docs" / "api.md").read_text()
    named = re.findall(r"^::: relayc\.(\S+)$", reference, re.M)
    public = {*relayc.__all__, *(f"tune.{name}" for name in relayc.tune.__all__)}
    public |= {*(f"runtime.{name}" for name in relayc.runtime.__all__ if name not in relayc.__all__)}
    assert sorted(named) == sorted(public)


def test_every_public_name_says_what_it_is():
    from relayc import relay, runtime, te, tir, tune

    def members(value):
        """A name and, of a class, its own public methods and properties; those that visit nodes are named after them."""
        own = vars(value).items() if inspect.isclass(value) else ()
        yield "", value
        yield from ((name, x) for name, x in own if inspect.isroutine(x) or isinstance(x, property) if not name.startswith(("_", "visit_")))

    silent = set()
    for module in (relayc, runtime, te, tir, tune, relay):
        for name in module.__all__:
            value = getattr(module, name)
            silent |= {
                f"{module.__name__}.{name} {member}" for member, x in members(value) if not inspect.getdoc(getattr(value, member, x))
            }
    assert silent == set()


@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="needs mkdocs-material")
def test_the_site_builds_and_has_no_dead_link(tmp_path):
    # Docstrings, which take a minute, link to nothing: `make docs` has them.
    quiet = {**os.environ, "RELAYC_DOCS_API": "false", "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path]
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
