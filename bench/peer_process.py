"""A revision of relayc in a process of its own interpreter: the side of the measuring process."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from relayc.bench import peer
from relayc.bench.engines import Job
from relayc.bench.worker import FEWEST_RUNS, MOST_RUNS, SECONDS, EngineError, settle


@dataclass(frozen=True)
class Interpreter:
    """An interpreter that has a revision of relayc, and the folders that it searches for modules before its own."""

    python: str
    path: tuple[str, ...] = ()

    @staticmethod
    def this() -> "Interpreter":
        """The one that runs now. A process that it starts finds the same modules, wherever this process has found them."""
        return Interpreter(sys.executable, tuple(os.path.abspath(folder) for folder in sys.path))

    @staticmethod
    def other(python: str, option: str = "--against", package: str = "relayc") -> "Interpreter":
        """The interpreter of another environment, which searches for modules only there. Raises ValueError if no program is named."""
        found = shutil.which(python)
        if found is None:
            raise ValueError(f"{option}: expected the Python of an environment in which {package} is installed, found {python!r}")
        # Not resolved: an environment is known by the link to its interpreter.
        return Interpreter(os.path.abspath(found))

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of its process: the same as for this process, except for the folders of modules."""
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return {**inherited, "PYTHONPATH": os.pathsep.join(self.path)} if self.path else inherited


class PeerProcess:
    """A process of an interpreter that runs its relayc on one model; a context manager that ends it.

    Args:
      modules: for an interpreter without relayc: modules of this package that it gets; the last is the program, which imports no others.

    Raises:
      EngineError: a request failed, or the process has died.
    """

    def __init__(self, interpreter: Interpreter, modules: Sequence[str] = ()) -> None:
        self._folder = TemporaryDirectory(prefix="relayc-bench-")
        self._errors = Path(self._folder.name) / "stderr"
        run = self._subfolder("run")
        with self._errors.open("wb") as errors:
            # In a folder of their own: Python looks for modules in the folder of a program first, or in the working folder.
            self._process = subprocess.Popen(
                [interpreter.python, *_program(modules, run)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=run,
                env=interpreter.environment,
                encoding="utf-8",
            )

    def __enter__(self) -> "PeerProcess":
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it died with a request unread
            self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._folder.cleanup()

    def start(self) -> dict[str, Any]:
        """Imports relayc; see `Peer.start`."""
        return self.request("start")

    def load(self, job: Job) -> dict[str, Any]:
        """Compiles the model of a job; see `Peer.load`."""
        inputs = self._subfolder("inputs") / "inputs.npz"
        return self.request(
            "load",
            model=os.path.abspath(job.model),
            inputs=str(inputs),
            names=list(job.inputs),
            dtypes=peer.save_arrays(inputs, list(job.inputs.values())),
            shapes={name: list(shape) for name, shape in job.shapes.items()},
            threads=job.threads,
            precision=job.precision,
        )

    def outputs(self) -> list[np.ndarray]:
        """The outputs of one call."""
        file = self._subfolder("outputs") / "outputs.npz"
        return peer.load_arrays(file, self.request("outputs", path=str(file)))

    def measure(self, runs: int | None) -> list[float]:
        """Seconds of each of `runs` calls, as many as fit in SECONDS by default."""
        return self.request("measure", runs=runs, seconds=SECONDS, fewest=FEWEST_RUNS, most=MOST_RUNS)

    def _subfolder(self, name: str) -> Path:
        path = Path(self._folder.name) / name
        path.mkdir(exist_ok=True)
        return path

    def request(self, method: str, **arguments: Any) -> Any:
        """What the program answers."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            print(json.dumps({"method": method, "arguments": arguments}), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise EngineError(self._last_words())
        settle(self._process.pid)
        answer = json.loads(line)
        if "error" in answer:
            raise EngineError(answer["error"])
        return answer["value"]

    def _last_words(self) -> str:
        """Why the process has ended: its exit code and the last line on its stderr."""
        try:
            code: int | str = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            code = "unknown"
        lines = self._errors.read_text(encoding="utf-8", errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f"the process ended with code {code}" + (f": {last[:500]}" if last else "")


def _program(modules: Sequence[str], folder: Path) -> list[str]:
    """Arguments of an interpreter, in a folder."""
    if not modules:
        return ["-c", Path(peer.__file__).read_text(encoding="utf-8")]
    package = folder / "relayc" / "bench"
    package.mkdir(parents=True)
    for name in modules:
        shutil.copy(Path(peer.__file__).with_name(f"{name}.py"), package)
    return ["-m", f"relayc.bench.{modules[-1]}"]
