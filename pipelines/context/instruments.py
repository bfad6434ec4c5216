"""Instruments: objects that a PassContext calls around every pass. Built in: timing, IR dump, verifier."""

import io
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import RelayError
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.scopes import check_scopes

ELIDE_ABOVE = 16
"""Constants with more elements than this are elided in dumps."""


def flag_of(name: str) -> str:
    """The command-line flag of a pass: `EliminateCommonSubexpr` -> `eliminate-common-subexpr`; a flag is its own flag."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])", "-", name).lower()


@dataclass(frozen=True)
class PassInfo:
    """What is known of a pass without running it.

    Attributes:
      name: Relay's name (`FoldConstant`).
      opt_level: lowest level at which a Sequential runs it.
      required: names of the passes that must run before it.
      stage: relay, te, tir or llvm: the stage of the module that it leaves.
      composite: True for a Sequential, whose passes are observed one by one too.
    """

    name: str
    opt_level: int = 0
    required: tuple[str, ...] = ()
    stage: str = "relay"
    composite: bool = False

    @cached_property
    def flag(self) -> str:
        return flag_of(self.name)


@dataclass(frozen=True)
class KernelSchedule:
    """A schedule that a person wrote, applied to a kernel.

    Attributes:
      kernel, schedule: their names.
      before, after: the kernel as MLIR text: blocks and loops; before a replacement by another function what it is in te.
      trace: what was done, as a script; empty for a replacement.
    """

    kernel: str
    schedule: str
    before: str
    after: str
    trace: str

    def __str__(self) -> str:
        """The three, apart as MLIR's tools split files."""
        parts = [f"// Kernel {self.kernel} before the schedule {self.schedule}.\n{self.before}", f"// After it.\n{self.after}"]
        return "\n// -----\n".join([*parts, *([f"// The schedule.\n{self.trace}"] if self.trace else [])]) + "\n"


class PassInstrument:
    """Base of the instruments: every method may be left as it is.

    Attributes:
      observes_schedules: whether `run_on_schedule` is to be called; observes_tunings: `run_on_tuning`.
    """

    observes_schedules = observes_tunings = False

    def enter_pass_ctx(self) -> None:
        """Called when the PassContext is entered."""

    def exit_pass_ctx(self) -> None:
        """Called when the PassContext is left, also by an exception."""

    def should_run(self, mod: IRModule, info: PassInfo) -> bool:
        """Whether the pass shall run; one False of any instrument skips a pass that is not required."""
        return True

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Called with the module that the pass is about to be given."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Called with the module that the pass gave."""

    def run_on_schedule(self, found: KernelSchedule) -> None:
        """Called with each kernel that a schedule which a person wrote was applied to."""

    def run_on_tuning(self, kernel: str, values: Mapping[str, Sequence[Any]]) -> None:
        """Called with the sensible values of the tunable numbers of each kernel that is scheduled."""


@dataclass
class _Timed:
    name: str
    seconds: float = 0.0
    passes: list["_Timed"] = field(default_factory=list)


class PassTimingInstrument(PassInstrument):
    """Measures the time of each pass; passes of a Sequential are listed below it."""

    def __init__(self) -> None:
        self._root = _Timed("total")
        self._open: list[tuple[_Timed, float]] = []

    def enter_pass_ctx(self) -> None:
        self._root, self._open = _Timed("total"), []

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        timed = _Timed(info.name)
        (self._open[-1][0] if self._open else self._root).passes.append(timed)
        self._open.append((timed, time.perf_counter()))

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        timed, start = self._open.pop()
        timed.seconds = time.perf_counter() - start

    def rows(self) -> list[tuple[int, str, float]]:
        """(depth, pass name, seconds) of every pass run in the last context, in order."""
        found: list[tuple[int, str, float]] = []

        def visit(timed: _Timed, depth: int) -> None:
            found.append((depth, timed.name, timed.seconds))
            for inner in timed.passes:
                visit(inner, depth + 1)

        for timed in self._root.passes:
            visit(timed, 0)
        return found

    def render(self) -> str:
        """The times as a table in text."""
        from rich.console import Console
        from rich.table import Table

        rows = self.rows()
        total = sum(seconds for depth, _, seconds in rows if depth == 0)
        table = Table("pass", title=f"{total * 1e3:.1f} ms in passes")
        table.add_column("ms", justify="right")
        table.add_column("share", justify="right")
        for depth, name, seconds in rows:
            table.add_row("  " * depth + name, f"{seconds * 1e3:.2f}", f"{seconds / total:.0%}" if total else "")
        out = io.StringIO()
        Console(file=out, width=100).print(table)
        return out.getvalue()


def ir_text(operation: ir.Operation, elide_above: int = ELIDE_ABOVE, locations: bool = False) -> str:
    """MLIR text in which constants of more than `elide_above` elements are elided."""
    out = io.StringIO()
    operation.print(large_elements_limit=elide_above, enable_debug_info=locations, assume_verified=True, file=out)
    return out.getvalue()


class DumpIR(PassInstrument):
    """Writes the IR after each pass to DIR/STAGE/NNN-flag.mlir, numbered through all stages; 000-input is what the first pass got.

    Large constants are elided. A Sequential writes nothing: what it leaves is what its last pass left. Kernels with a schedule that a
    person wrote go to DIR/tir/blocks/KERNEL.mlir, before and after it, and with its trace.
    """

    observes_schedules = True

    def __init__(self, directory: str | os.PathLike) -> None:
        self.directory = Path(directory)
        self._count = 0

    def _write(self, mod: IRModule, stage: str, name: str) -> None:
        folder = self.directory / stage
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self._count:03}-{name}.mlir").write_text(ir_text(mod.module.operation))
        self._count += 1

    def run_on_schedule(self, found: KernelSchedule) -> None:
        folder = self.directory / "tir" / "blocks"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{found.kernel}.mlir").write_text(str(found))

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        if self._count == 0:
            self._write(mod, "relay", "input")

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        if not info.composite:
            self._write(mod, info.stage, info.flag)


class KeepSchedules(PassInstrument):
    """Keeps the kernels with a schedule that a person wrote.

    Attributes:
      found: one for each kernel and schedule, in order; a later schedule of a kernel replaces an earlier attempt.
    """

    observes_schedules = True

    def __init__(self) -> None:
        self.found: list[KernelSchedule] = []

    def run_on_schedule(self, found: KernelSchedule) -> None:
        self.found.append(found)


class Verifier(PassInstrument):
    """Verifies the module after every pass, and that symbols have values at their uses; an error names the pass that caused it."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        try:
            mod.verify()
            if info.stage == "relay":
                check_scopes(mod.module)
        except (ir.MLIRError, ValueError) as e:
            raise RelayError(f"after pass {info.name}: {e}") from e
