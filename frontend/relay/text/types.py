"""Types in Relay text, and the tokens that they and expressions are parsed from."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from relayc.dialects.relay.types import DTYPES
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.text.lexer import ParseError, Source, Token, tokens

_DTYPE = re.compile(r"(?:u?int|float|bfloat)\d+(?:x\d+)?|bool(?:x\d+)?|uint1(?:x\d+)?|int|float")
_Part = TypeVar("_Part")


class TypeParser:
    """Reads types, token by token.

    Args:
      metadata: what the text's references to metadata are of, by type.

    Attributes:
      global_types: data types by name.
    """

    def __init__(self, source: Source, begin: int, end: int, metadata: Mapping[str, Sequence[Any]]) -> None:
        self.source, self.metadata = source, metadata
        self._tokens = tokens(source, begin, end)
        self._ahead: list[Token] = []
        self.global_types: dict[str, t.GlobalTypeVar] = {}
        self._type_scopes: list[dict[str, t.TypeVar]] = []
        self._last = begin

    # ---- tokens

    def peek(self, ahead: int = 0) -> Token:
        """An upcoming token."""
        while len(self._ahead) <= ahead:
            self._ahead.append(next(self._tokens))
        return self._ahead[ahead]

    def next(self) -> Token:
        """The next token."""
        found = self.peek()
        if found.kind != "end":
            self._ahead.pop(0)
        self._last = found.end
        return found

    def at(self, text: str, ahead: int = 0) -> bool:
        """Whether a token is punctuation, or a keyword."""
        token = self.peek(ahead)
        return token.text == text and token.kind in ("mark", "name")

    def accept(self, text: str) -> bool:
        """Consumes the next token if it is punctuation or a keyword with this text."""
        found = self.at(text)
        if found:
            self.next()
        return found

    def expect(self, text: str) -> Token:
        """Takes the next token, which must be this text. Raises ParseError."""
        if not self.at(text):
            raise self.expected(repr(text))
        return self.next()

    def expect_kind(self, kind: str, what: str) -> Token:
        """Takes the next token, which must be of this kind. Raises ParseError."""
        if self.peek().kind != kind:
            raise self.expected(what)
        return self.next()

    def expected(self, what: str) -> ParseError:
        """The error for an unexpected next token."""
        token = self.peek()
        return self.source.error(token.begin, f"expected {what}, found {token.text if token.kind == 'end' else repr(token.text)}")

    def error(self, token: Token, message: str) -> ParseError:
        """An error at a token."""
        return self.source.error(token.begin, message)

    def separated(self, close: str) -> Iterator[None]:
        """Before each of the parts, separated by commas, up to the closing token, which is consumed."""
        while not self.accept(close):
            yield
            if not self.at(close):
                self.expect(",")

    def listed(self, close: str, part: Callable[[], _Part]) -> list[_Part]:
        """Parts separated by commas up to the closing token, which is consumed."""
        return [part() for _ in self.separated(close)]

    def integer(self, token: Token) -> int:
        """The value of a number of digits alone. Raises ParseError."""
        if not token.text.isdigit():
            raise self.error(token, f"expected an integer, found {token.text}")
        return int(token.text)

    def meta(self) -> Any:
        """The item of a reference to the metadata."""
        token = self.expect("meta")
        self.expect("[")
        kind = self.expect_kind("name", "a type of metadata").text
        self.expect("]")
        self.expect("[")
        number = self.integer(self.expect_kind("number", "a number"))
        self.expect("]")
        items = self.metadata.get(kind, ())
        if number >= len(items):
            raise self.error(token, f"meta[{kind}][{number}]: expected metadata of this number, found {len(items)} of the type")
        return items[number]

    # ---- types

    @contextmanager
    def type_scope(self, names: Sequence[t.TypeVar]) -> Iterator[None]:
        """A scope for the names of type variables."""
        self._type_scopes.append({var.name_hint: var for var in names})
        yield
        self._type_scopes.pop()

    def type_params(self) -> list[t.TypeVar]:
        """The type parameters of a function or a data type; empty without brackets."""
        if not self.accept("["):
            return []
        return self.listed("]", lambda: t.TypeVar(self.expect_kind("name", "the name of a type parameter").text))

    def annotation(self) -> t.Type | None:
        """The type after a colon; None if there is none, or it is `_`."""
        return self.optional_type() if self.accept(":") else None

    def optional_type(self) -> t.Type | None:
        """A type; None for `_`."""
        return None if self.accept("_") else self.type()

    def type(self) -> t.Type:
        """A type. Raises ParseError."""
        token = self.peek()
        if self.accept("_"):
            return t.IncompleteType()
        if self.accept("("):
            return t.TupleType(self.listed(")", self.type))
        if self.accept("fn"):
            params = self.type_params()
            with self.type_scope(params):
                self.expect("(")
                args = self.listed(")", self.type)
                self.expect("->")
                return t.FuncType(args, self.type(), params)
        if token.kind != "name":
            raise self.expected("a type")
        self.next()
        if token.text == "Tensor":
            return self._tensor()
        if token.text == "ref" and self.accept("("):
            value = self.type()
            self.expect(")")
            return t.RefType(value)
        for scope in reversed(self._type_scopes):
            if token.text in scope:
                return scope[token.text]
        if token.text in self.global_types:
            args = self.listed("]", self.type) if self.accept("[") else []
            return t.TypeCall(self.global_types[token.text], args)
        if token.text in DTYPES or _DTYPE.fullmatch(token.text):
            return t.TensorType((), token.text)
        raise self.error(token, f"expected a type, found the name {token.text!r}, which is none")

    def _tensor(self) -> t.TensorType:
        self.expect("[")
        shape = self.listed(")", self._size) if self.accept("(") else [self._size()]
        self.expect(",")
        dtype = self.expect_kind("name", "an element type").text
        self.expect("]")
        return t.TensorType(shape, dtype)

    def _size(self) -> Any:
        if self.accept("?") or self.accept("Any"):
            return t.Any()
        if self.at("meta"):
            return self.meta()
        token = self.expect_kind("number", "a dimension")
        if not token.text.split("i")[0].isdigit():
            raise self.error(token, f"expected a dimension, found {token.text}")
        return int(token.text.split("i")[0])
