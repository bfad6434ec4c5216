"""Backends: the implementations of kinds of targets. A backend defines the attributes of its targets, the available schedules, and how
programs of the tir stage are compiled.

The backend of "cpu" is part of relayc. Others register under their own kind, `relayc.register_backend(MyBackend())`, and are used by every
target of that kind: `relayc.compile(model, target="mine")`.
"""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relayc.nearest import nearest
from relayc.runtime.artifact import ObjectCode

if TYPE_CHECKING:
    from concurrent.futures import Future

    from relayc.dialects.mlir import ir
    from relayc.pipelines.context.target import Target
    from relayc.pipelines.program.packed_entry import PackedEntry
    from relayc.pipelines.program.tir import TirModule
    from relayc.pipelines.tir.strategy.table import Entry
    from relayc.runtime.export import ExportedProgram, ExportRequest
    from relayc.runtime.profile import Peak
    from relayc.symbolic import Size


@dataclass(frozen=True)
class MachineCode:
    """A program as machine code in memory.

    Attributes:
      functions: address of the packed entry of each function; 0 if this machine cannot run the code.
      owner: keeps the code in memory.
      code: the same code as object files, for the cache; None if the backend does not create object files.
    """

    functions: Mapping[str, int]
    owner: object
    code: ObjectCode | None = None


class Backend(ABC):
    """What stands behind a kind of target.

    Attributes:
      kind: the kind, a word.
      device: kind of the devices that run the code (see runtime.device).
      modules: names of modules that register passes and config options of the backend when they are imported.
      makes_control: whether it has a `control_part`.
    """

    kind: str
    device: str
    modules: tuple[str, ...] = ()
    makes_control = False

    @property
    @abstractmethod
    def target(self) -> "type[Target]":
        """The class of its targets: attributes, their parsing and completion, and the properties that passes and schedules query."""

    def device_of(self, target: "Target") -> str:
        """Kind of the devices that run the code of a target."""
        return self.device

    def kernels_fail(self, target: "Target") -> bool:
        """Whether kernels for a target may raise errors: then each gives an i32, 0 or, with an error raised, another one."""
        return False

    @abstractmethod
    def strategies(self) -> "Sequence[Entry]":
        """The strategy table: asked from the first to the last for each kernel (see tir.strategy.table)."""

    def launch_loops(self, module: "ir.Module") -> "Mapping[str, Size] | None":
        """The fallback: turns every te function of a module into launches that need no schedule, in place.

        Gives bytes of the workspace that a function takes as its last argument before the symbols, by name; 0 of one that takes none. None
        of a kind of target whose kernels are loops over buffers (tir.fallback.bufferize). Raises MLIRError if an operation has no such
        form.
        """
        return None

    @abstractmethod
    def lower(self, module: "ir.Module", target: "Target") -> None:
        """Lowers a tir module to the last stage in place. Raises a ValueError for what has no lowering."""

    def control_part(self, text: str, symbols: Sequence[str], target: "Target") -> "Future[Any]":
        """The control of a program as machine code, for `machine_code` to link the kernels to.

        Args:
          text: in the LLVM dialect.
          symbols: of the entries in it.

        Raises:
          ValueError: the backend makes none.
        """
        raise ValueError(
            f"target {self.kind}: expected a target of the host for a program with data types, references or functions as values, "
            "found another one (relay.create_executor runs its kernels there)"
        )

    def machine_code(
        self,
        module: "ir.Module",
        target: "Target",
        entries: "Mapping[str, PackedEntry]",
        linked: "tuple[Mapping[str, str], Future[Any]] | None" = None,
    ) -> MachineCode:
        """The machine code of a module from `lower`, with a packed entry for each function of `entries`.

        Args:
          entries: the parameters of each function.
          linked: symbols of the entries passed to `control_part`, by name, and the result of `control_part`.

        Raises:
          ValueError: the backend does not create machine code, or not for this module.
        """
        raise ValueError(f"target {self.kind}: expected a backend that makes machine code, found one that only lowers (use stop_after)")

    def object_code(self, module: "ir.Module", target: "Target") -> ObjectCode:
        """The object files of a module that `lower` gave and that has its packed entries, for another backend whose host's code this is.

        Raises:
          ValueError: the backend makes none, or not of this module.
        """
        raise ValueError(f"target {self.kind}: expected a backend that makes object files, found one that does not")

    def export_library(self, program: "ExportedProgram", request: "ExportRequest") -> list[Path]:
        """Writes a compiled module as a library; gives the files that were written (see `Module.export_library`).

        Raises:
          ValueError: the backend makes no libraries, or not of this module.
          OSError: a file cannot be written.
        """
        raise ValueError(f"target {self.kind}: expected a backend that makes libraries, found one that does not")

    def host(self, target: "Target") -> "Target":
        """The target of a program's host code: the target itself if kernels run there too."""
        return target

    def permissions(self, program: "TirModule", target: "Target") -> tuple[str, ...]:
        """What a process must ask its device for before the program may run (`DeviceKind.request`)."""
        return ()

    def quick_peak(self, threads: int) -> "Peak":
        """The peak performance of this machine with a number of threads. Raises ImportError if it cannot be measured."""
        raise ImportError(f"target {self.kind}: nothing measures what the machine can do")


# ---- the registry -------------------------------------------------------------------------------------------------------------------

_BACKENDS: dict[str, Backend] = {}
_HOMES = {"cpu": "relayc.pipelines.targets.cpu.backend", "cuda": "relayc.pipelines.targets.cuda.backend"}
"""Modules that register a backend on its first use."""
_ALIASES = {"llvm": "cpu"}


def register_backend(backend: Backend, override: bool = False) -> None:
    """Registers a backend under its kind.

    Raises:
      ValueError: the kind is not a word, or is registered and `override` is false.
    """
    kind, home = backend.kind, type(backend).__module__
    if not kind.isidentifier():
        raise ValueError(f"backend {kind!r}: expected a word for a kind")
    if not override and (kind in _BACKENDS or kind in _ALIASES or _HOMES.get(kind, home) != home):
        raise ValueError(f"backend {kind!r}: expected a kind that is free or override=True, found it registered")
    _BACKENDS[kind] = backend


def unregister_backend(kind: str) -> None:
    """Forgets a backend that was registered."""
    _BACKENDS.pop(kind, None)


def find_backend(kind: str) -> Backend:
    """The backend of a kind of target.

    Raises:
      ValueError: nobody registered one.
    """
    kind = _ALIASES.get(kind, kind)
    if kind not in _BACKENDS and kind in _HOMES:
        importlib.import_module(_HOMES[kind])
    if kind not in _BACKENDS:
        known = sorted({*target_kinds(), *_ALIASES})
        raise ValueError(f"target: expected a kind out of {', '.join(known)}, found {kind or 'nothing'}{nearest(kind, known)}")
    return _BACKENDS[kind]


def target_kinds() -> list[str]:
    """The kinds of targets that have a backend."""
    return sorted({*_BACKENDS, *_HOMES})


def backend_modules() -> list[str]:
    """The `modules` of all backends."""
    return [module for kind in {**_HOMES, **_BACKENDS} for module in find_backend(kind).modules]


def registered_backends() -> list[type[Backend]]:
    """The classes of the backends that are registered by now."""
    return [type(backend) for backend in _BACKENDS.values()]
