"""Relay text as tokens, and errors that point at a place in it."""

import bisect
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from relayc.dialects.relay.errors import RelayError
from relayc.frontend.relay.ast.base import SourceName, Span


class ParseError(RelayError):
    """Text that is not a Relay program, with the place of the error."""


class Source:
    """A text with its name; places in it are offsets."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, SourceName(name)
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def _place(self, offset: int) -> tuple[int, int]:
        line = bisect.bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def span(self, begin: int, end: int) -> Span:
        """The part from one offset up to another."""
        (line, column), (end_line, end_column) = self._place(begin), self._place(end)
        return Span(self.name, line, end_line, column, end_column)

    def error(self, offset: int, message: str) -> ParseError:
        """An error that shows the line at an offset, with a mark under the place."""
        line, column = self._place(offset)
        shown = self.text[self._starts[line - 1] :].partition("\n")[0]
        mark = "".join("\t" if c == "\t" else " " for c in shown[: column - 1])
        return ParseError(f"{self.name}:{line}:{column}: {message}\n{shown}\n{mark}^")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of text.

    Attributes:
      kind: "version", "name", "local" (%x), "graph" (%0), "global" (@f), "number", "string", "mark" (punctuation) or "end".
      text: without what marks the kind; a string's value.
      begin, end: offsets.
    """

    kind: str
    text: str
    begin: int
    end: int


_NAME = r"[A-Za-z_]\w*(?:[./][A-Za-z_]\w*|/\w+)*"
_TOKENS = re.compile(
    rf"""(?P<space>\s+|//[^\n]*)
    |(?P<comment>/\*)
    |(?P<version>\#\[version\s*=\s*"[^"\n]*"\])
    |%(?P<graph>\d+)
    |%(?P<local>{_NAME})
    |@(?P<global>{_NAME})
    |(?P<number>(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|inf(?=f)|nan(?=f))(?:[if]\d*)?(?!\w))
    |(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<mark>->|=>|==|!=|<=|>=|[(){{}}\[\],;:.=<>+\-*/?])""",
    re.VERBOSE | re.ASCII,
)
_COMMENT = re.compile(r"/\*|\*/")


def tokens(source: Source, begin: int, end: int) -> Iterator[Token]:
    """The tokens of a part of a text, and one of kind "end". Raises ParseError."""
    text, at = source.text, begin
    while at < end:
        match = _TOKENS.match(text, at, end)
        if match is None:
            raise source.error(at, f"expected a token, found {text[at]!r}")
        kind = str(match.lastgroup)
        if kind == "comment":
            at = _end_of_comment(source, at, end)
            continue
        at = match.end()
        if kind == "space":
            continue
        found = match[kind]
        if kind == "string":
            try:
                found = json.loads(found)
            except ValueError as error:
                raise source.error(match.start(), f"expected a string as in JSON, found {error}") from None
        yield Token(kind, found, match.start(), at)
    yield Token("end", "the end of the text", end, end)


def _end_of_comment(source: Source, begin: int, end: int) -> int:
    """The end of a comment; comments may be nested."""
    depth, at = 0, begin
    while True:
        match = _COMMENT.search(source.text, at, end)
        if match is None:
            raise source.error(begin, "expected an end of the comment, found none")
        at = match.end()
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return at
