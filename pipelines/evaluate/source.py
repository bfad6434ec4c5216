"""Operations as Python source, which the interpreters of te and of blocks and loops run: a value is a local variable."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from relayc.dialects.mlir import ir


class PythonSource:
    """Python source under construction.

    Attributes:
      names: the variable of each value.
      constants: by name what the source uses that is no variable of it.
    """

    def __init__(self) -> None:
        self.names: dict[ir.Value, str] = {}
        self.constants: dict[str, Any] = {}
        self._lines: list[str] = []
        self._depth = 0

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def execute(self, label: str) -> dict[str, Any]:
        """Runs the source, which a label names in tracebacks; returns what it defines, by name."""
        defined = dict(self.constants)
        exec(compile(self.text, label, "exec"), defined)
        return defined

    def new(self, value: ir.Value) -> str:
        """A new variable for a value."""
        self.names[value] = f"v{len(self.names)}"
        return self.names[value]

    def constant(self, value: Any) -> str:
        """A new name for a constant."""
        name = f"k{len(self.constants)}"
        self.constants[name] = value
        return name

    def line(self, text: str) -> None:
        self._lines.append("  " * self._depth + text)

    @contextmanager
    def indented(self, head: str) -> Iterator[None]:
        """Context in which lines follow a head, in its block."""
        self.line(head)
        self._depth += 1
        before = len(self._lines)
        yield
        if len(self._lines) == before:
            self.line("pass")
        self._depth -= 1


def listed(names: Sequence[str]) -> str:
    """Names as a tuple."""
    return f"({''.join(f'{name}, ' for name in names)})"
