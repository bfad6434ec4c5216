"""The text of a script, and errors with the position in it."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from relayc.dialects.relay.errors import RelayError
from relayc.pipelines.tir.tree.members import ScheduleError


class ScriptError(ValueError):
    """Unsupported code in a script: file, line, expected and found, and the text of the line."""


class Source:
    """The text of one or several functions.

    Attributes:
      tree: the parsed text; its positions are lines of the text.
    """

    def __init__(self, text: str, file: str, first_line: int = 1) -> None:
        self.file, self.first_line, self.lines = file, first_line, text.splitlines()
        try:
            self.tree = ast.parse(text)
        except SyntaxError as error:
            raise self.error_at(error.lineno or 1, f"expected Python, found {error.msg}") from None

    @staticmethod
    def of_function(function: Callable[..., Any]) -> "Source":
        """The text of a Python function. Raises ScriptError if it is not available."""
        try:
            lines, first = inspect.getsourcelines(function)
            file = inspect.getsourcefile(function) or "?"
        except (OSError, TypeError):
            name = getattr(function, "__name__", repr(function))
            raise ScriptError(f"{name}: expected a function whose source is in a file (T.from_source reads text), found none") from None
        return Source(textwrap.dedent("".join(lines)), file, first)

    def functions(self) -> list[ast.FunctionDef]:
        """The functions of the text, in order; imports may precede them."""
        found = []
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef):
                found.append(node)
            elif not isinstance(node, (ast.Import, ast.ImportFrom)) and not is_text(node):
                raise self.error(node, f"expected functions, found {kind_of(node)}")
        if not found:
            raise self.error_at(1, "expected a function, found none")
        return found

    def error(self, node: ast.AST, message: str) -> ScriptError:
        """An error at a node of the text."""
        return self.error_at(getattr(node, "lineno", 1), message)

    def error_at(self, line: int, message: str) -> ScriptError:
        """An error at a line of the text."""
        text = self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""
        return ScriptError(f"{self.file}:{line + self.first_line - 1}: {message}\n    {text}")

    @contextmanager
    def at(self, node: ast.AST) -> Iterator[None]:
        """Context in which errors are reported at a node of the text, unless an inner node has been reported."""
        try:
            yield
        except ScriptError:
            raise
        except (RelayError, ScheduleError) as error:
            raise self.error(node, str(error)) from None
        except Exception as error:  # errors of a user's function, or of Python for unsuitable values
            raise self.error(node, f"{type(error).__name__}: {error}") from error


def is_text(node: ast.stmt) -> bool:
    """Whether a statement is a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


_KINDS: dict[type[ast.AST], str] = {
    ast.AsyncFunctionDef: "an async function",
    ast.FunctionDef: "a function",
    ast.ClassDef: "a class",
    ast.While: "while",
    ast.Try: "try",
    ast.Raise: "raise",
    ast.Assert: "assert",
    ast.Return: "return",
    ast.Break: "break",
    ast.Continue: "continue",
    ast.Delete: "del",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.Import: "import",
    ast.ImportFrom: "import",
    ast.Lambda: "lambda",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
    ast.JoinedStr: "an f-string",
    ast.NamedExpr: "an assignment inside of an expression",
    ast.Starred: "a starred expression",
    ast.Set: "a set",
}


def kind_of(node: ast.AST) -> str:
    """The name of a kind of node, for messages."""
    return _KINDS.get(type(node), type(node).__name__)
