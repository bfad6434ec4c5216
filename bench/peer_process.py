"""A revision of relayc in a process of its own interpreter: the side of the measuring process."""

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from relayc.bench import peer
from relayc.bench.engines import Job
from relayc.bench.worker import Served


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


class PeerProcess(Served):
    """A process of an interpreter that runs its relayc on one model; a context manager that ends it.

    Args:
      modules: for an interpreter without relayc: modules of this package that it gets; the last is the program, which imports no others.
    """

    def __init__(self, interpreter: Interpreter, modules: Sequence[str] = ()) -> None:
        # In a folder of its own: Python looks for modules in the folder of a program first, or in the working folder.
        self._folder = TemporaryDirectory(prefix="relayc-bench-")
        folder = Path(self._folder.name)
        super().__init__(_program(modules, folder), interpreter.python, cwd=folder, env=interpreter.environment)

    def close(self, seconds: float = 0.0) -> None:
        super().close(seconds)
        self._folder.cleanup()

    def start(self) -> dict[str, Any]:
        """Imports relayc; see `Peer.start`."""
        return self.request("start")

    def load(self, job: Job) -> dict[str, Any]:
        """Compiles the model of a job; see `Peer.load`."""
        model, shapes = os.path.abspath(job.model), {name: list(shape) for name, shape in job.shapes.items()}
        return self.request("load", model=model, inputs=dict(job.inputs), shapes=shapes, threads=job.threads, precision=job.precision)


def _program(modules: Sequence[str], folder: Path) -> list[str]:
    """Arguments of an interpreter, in a folder."""
    if not modules:
        return ["-c", Path(peer.__file__).read_text(encoding="utf-8")]
    package = folder / "relayc" / "bench"
    package.mkdir(parents=True)
    for name in modules:
        shutil.copy(Path(peer.__file__).with_name(f"{name}.py"), package)
    return ["-m", f"relayc.bench.{modules[-1]}"]
