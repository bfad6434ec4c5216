"""Expressions and modules from Relay text, by recursive descent; calls of the descent wait on a list, as programs are deep."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from relayc.dialects.relay.errors import RelayError
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.attrs import DICT_ATTRS, Attrs
from relayc.frontend.relay.ast.base import ndarray
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.op.table import signature
from relayc.frontend.relay.text.lexer import Source, Token
from relayc.frontend.relay.text.metadata import HEADER, read_metadata
from relayc.frontend.relay.text.printer import REFERENCES, VERSION
from relayc.frontend.relay.text.types import TypeParser
from relayc.trampoline import Call, trampoline

_BINARY: list[dict[str, str]] = [
    {"==": "equal", "!=": "not_equal"},
    {"<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"},
    {"+": "add", "-": "subtract"},
    {"*": "multiply", "/": "divide"},
]
"""Infix operators, by increasing precedence."""
_LEVELS = {mark: (level, name) for level, names in enumerate(_BINARY) for mark, name in names.items()}
_REFERENCES: dict[str, Any] = {name: kind for kind, name in REFERENCES.items()}


def parse_expr(text: str, name: str = "from_string") -> e.Expr:
    """The expression that a text is. Raises ParseError."""
    parser = _parser(text, name, {})
    with parser.scope():
        found = trampoline(parser.sequence())
    parser.expect_kind("end", "the end of the text")
    return found


def parse_module(
    text: str, name: str = "from_string", init_module: RelayModule | None = None, init_metadata: Mapping[str, Sequence[Any]] | None = None
) -> RelayModule:
    """The module that a text is, without types that the text does not say.

    Args:
      name: of the text, for messages and spans.
      init_module: what the module has in addition, which the text may name.
      init_metadata: what references to metadata are of where the text has no metadata section.

    Raises:
      ParseError: with the line and a mark.
    """
    return _parser(text, name, init_metadata or {}).module(init_module)


def _parser(text: str, name: str, metadata: Mapping[str, Sequence[Any]]) -> "Parser":
    source = Source(text, name)
    end = len(text)
    at = text.rfind(f"\n{HEADER}")
    if at >= 0:
        end = at
        try:
            metadata = read_metadata(text[at + 1 + len(HEADER) :])
        except RelayError as error:
            raise source.error(at + 1, str(error)) from None
    parser = Parser(source, 0, end, metadata)
    if parser.peek().kind == "version":
        version = parser.next()
        if version.text.split('"')[1] != VERSION:
            raise parser.error(version, f'expected #[version = "{VERSION}"], found {version.text}')
    return parser


class Parser(TypeParser):
    """Reads expressions and modules, token by token."""

    def __init__(self, source: Source, begin: int, end: int, metadata: Mapping[str, Sequence[Any]]) -> None:
        super().__init__(source, begin, end, metadata)
        self._scopes: list[dict[str, e.Var]] = []
        self._graph: dict[str, e.Expr] = {}
        self._globals: dict[str, e.GlobalVar] = {}
        self._constructors: dict[str, e.Constructor] = {}

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A scope for the names of variables bound in it."""
        self._scopes.append({})
        yield
        self._scopes.pop()

    def _span(self, begin: int) -> Any:
        return self.source.span(begin, self._last)

    # ---- modules

    def module(self, init: RelayModule | None) -> RelayModule:
        """A module. Raises ParseError."""
        found = RelayModule() if init is None else init.shallow_copy()
        self._globals = {var.name_hint: var for var in found.functions}
        for data in found.type_definitions.values():
            self._know_type(data)
        defined: set[str] = set()
        while self.peek().kind != "end":
            token = self.peek()
            if self.at("type") or self.at("extern"):
                data = self._type_definition()
                found[data.header] = data  # type: ignore[index] # the header of a definition is global
            elif self.accept("def"):
                name = self.expect_kind("global", "the name of a function")
                if name.text in defined or name.text in (() if init is None else {v.name_hint for v in init.functions}):
                    raise self.error(name, f"function @{name.text}: expected a name that is not taken")
                defined.add(name.text)
                self._graph = {}
                with self.scope():
                    found[self._global(name.text)] = trampoline(self._function(token))
            else:
                raise self.expected("def, type or extern")
        return found

    def _global(self, name: str) -> e.GlobalVar:
        return self._globals.setdefault(name, e.GlobalVar(name))

    def _know_type(self, data: e.TypeData) -> None:
        assert isinstance(data.header, t.GlobalTypeVar)
        self.global_types[data.header.name_hint] = data.header
        self._constructors.update({c.name_hint: c for c in data.constructors})

    def _type_definition(self) -> e.TypeData:
        is_extern = self.accept("extern")
        self.expect("type")
        name = self.expect_kind("name", "the name of a type")
        if name.text in self.global_types or name.text in self._constructors:
            raise self.error(name, f"type {name.text}: expected a name that is not taken")
        header = self.global_types[name.text] = t.GlobalTypeVar(name.text)
        params = self.type_params()
        constructors: list[e.Constructor] = []
        if not is_extern:
            self.expect("{")
            with self.type_scope(params):
                constructors = self.listed("}", lambda: self._constructor(header))
        return e.TypeData(header, params, constructors)

    def _constructor(self, header: t.GlobalTypeVar) -> e.Constructor:
        name = self.expect_kind("name", "the name of a constructor")
        if name.text in self._constructors or name.text in self.global_types:
            raise self.error(name, f"constructor {name.text}: expected a name that is not taken")
        inputs = self.listed(")", self.type) if self.accept("(") else []
        found = self._constructors[name.text] = e.Constructor(name.text, inputs, header)
        return found

    # ---- variables and functions

    def _bind(self, token: Token, annotation: t.Type | None) -> e.Var:
        var = e.Var(token.text, annotation, self.source.span(token.begin, token.end))
        self._scopes[-1][token.text] = var
        return var

    def _lookup(self, token: Token) -> e.Var:
        for scope in reversed(self._scopes):
            if token.text in scope:
                return scope[token.text]
        raise self.error(token, f"expected a variable that is bound here, found %{token.text}")

    def _parameter(self) -> e.Var:
        name, device = self.next(), None
        if self.accept("{"):
            device = self._attribute("virtual_device")[1]
            self.expect("}")
        var = self._bind(name, self.annotation())
        var.virtual_device_ = device
        return var

    def _function(self, start: Token) -> Call[e.Function]:
        """A function from its type parameters on."""
        params: list[e.Var] = []
        attrs: dict[str, Any] = {}
        with self.scope():
            type_params = self.type_params()
            with self.type_scope(type_params):
                self.expect("(")
                for _ in self.separated(")"):
                    if self.peek().kind == "local":
                        params.append(self._parameter())
                    else:
                        key, value = self._attribute()
                        attrs[key] = value
                result = self.optional_type() if self.accept("->") else None
                body = yield self._block()
        device = attrs.pop("virtual_device", None)
        found = e.Function(params, body, result, type_params, attrs, self._span(start.begin))
        found.virtual_device_ = device
        return found

    def _block(self) -> Call[e.Expr]:
        self.expect("{")
        with self.scope():
            found = yield self.sequence()
        self.expect("}")
        return found

    # ---- expressions

    def sequence(self) -> Call[e.Expr]:
        """Lets, numbered expressions and free variables, and then the result."""
        bindings: list[tuple[e.Var, e.Expr, int]] = []
        while True:
            token = self.peek()
            if self.accept("let"):
                name = self.expect_kind("local", "a variable")
                var = self._bind(name, self.annotation())
                self.expect("=")
                value = yield self._expr()
                self.expect(";")
                bindings.append((var, value, token.begin))
            elif token.kind == "graph" and self.at("=", 1):
                self.next()
                self.next()
                self._graph[token.text] = yield self._expr()
                self.expect(";")
            elif self.accept("free_var"):
                name = self.expect_kind("local", "a variable")
                var = e.Var(name.text, self.annotation(), self._span(name.begin))
                self._scopes[0][name.text] = var
                self.expect(";")
            else:
                body = yield self._expr()
                if not self.accept(";"):
                    break
                bindings.append((e.Var("_"), body, token.begin))
        for var, value, begin in reversed(bindings):
            body = e.Let(var, value, body, self._span(begin))
        return body

    def _expr(self) -> Call[e.Expr]:
        """An expression with operators between its parts: each waits for the ones after it that bind more."""
        values = [(yield self._unary())]
        waiting: list[tuple[int, str]] = []
        while True:
            token = self.peek()
            level, name = _LEVELS.get(token.text, (-1, "")) if token.kind == "mark" else (-1, "")
            while waiting and waiting[-1][0] >= level:
                rhs, lhs = values.pop(), values.pop()
                values.append(e.Call(e.Op.get(waiting.pop()[1]), [lhs, rhs], None, None, lhs.span))
            if not name:
                return values[0]
            self.next()
            waiting.append((level, name))
            values.append((yield self._unary()))

    def _unary(self) -> Call[e.Expr]:
        begin, minus = self.peek().begin, 0
        while self.accept("-"):
            minus += 1
        if minus and self.peek().kind == "number":
            return self._number(self.next(), -1 if minus % 2 else 1)
        found = yield self._postfix()
        for _ in range(minus):
            found = e.Call(e.Op.get("negative"), [found], None, None, self._span(begin))
        return found

    def _postfix(self) -> Call[e.Expr]:
        begin = self.peek().begin
        found = yield self._atom()
        while True:
            if self.at("("):
                found = yield self._call(found, begin)
            elif self.at(".") and self.peek(1).kind == "number":
                self.next()
                token = self.next()
                # `.0.1` is the number 0.1 to the lexer.
                for index in token.text.split("."):
                    found = e.TupleGetItem(found, self.integer(replace(token, text=index)), self._span(begin))
            else:
                break
        if isinstance(found, e.Constructor) and not found.inputs:
            return e.Call(found, [], None, None, self._span(begin))
        return found

    def _call(self, callee: e.Expr, begin: int) -> Call[e.Expr]:
        self.expect("(")
        args, attrs = [], {}
        for _ in self.separated(")"):
            if self.peek().kind == "name" and self.at("=", 1):
                key, value = self._attribute()
                attrs[key] = value
            else:
                args.append((yield self._expr()))
        span = self._span(begin)
        try:
            return e.Call(callee, args, self._attrs(callee, attrs), None, span)
        except RelayError as error:
            raise self.source.error(begin, str(error)) from None

    def _attrs(self, callee: e.Expr, given: dict[str, Any]) -> Attrs | None:
        if isinstance(callee, e.Op):
            found = signature(callee.name)
            return Attrs(found.attributes(given), found.attrs_key) if found.attrs or given else None
        key = given.pop("attrs_type_key", DICT_ATTRS)
        return Attrs(given, key) if given else None

    def _atom(self) -> Call[e.Expr]:
        token = self.peek()
        if token.kind == "local":
            return self._lookup(self.next())
        if token.kind == "graph":
            self.next()
            if token.text not in self._graph:
                raise self.error(token, f"expected an expression of this number before, found %{token.text}")
            return self._graph[token.text]
        if token.kind == "global":
            self.next()
            return self._global(token.text)
        if token.kind == "number":
            return self._number(self.next(), 1)
        if self.accept("("):
            return (yield self._parentheses(token))
        if token.kind == "name":
            return (yield self._named(token))
        raise self.expected("an expression")

    def _parentheses(self, start: Token) -> Call[e.Expr]:
        """A tuple, or an expression in parentheses."""
        fields, is_tuple = [], self.at(")")
        with self.scope():
            while not self.accept(")"):
                fields.append((yield self.sequence()))
                if not self.at(")"):
                    self.expect(",")
                    is_tuple = True
        return e.Tuple(fields, self._span(start.begin)) if is_tuple else fields[0]

    def _named(self, token: Token) -> Call[e.Expr]:
        """An expression that begins with a name: a keyword, an operator or a constructor."""
        if token.text == "meta":
            found = self.meta()
            if not isinstance(found, e.Expr):
                raise self.error(token, f"expected an expression, found metadata of type {type(found).__name__}")
            return found
        self.next()
        if token.text in ("True", "False"):
            return e.Constant(ndarray(token.text == "True"), self._span(token.begin))
        if token.text == "fn":
            return (yield self._function(token))
        if token.text == "if":
            self.expect("(")
            cond = yield self._expr()
            self.expect(")")
            then = yield self._block()
            self.expect("else")
            otherwise = yield self._block()
            return e.If(cond, then, otherwise, self._span(token.begin))
        if token.text == "match":
            return (yield self._match(token))
        if token.text in _REFERENCES and self.at("("):
            made = yield self._parentheses(self.next())
            parts = made.fields if isinstance(made, e.Tuple) and token.text == "ref_write" else (made,)
            if len(parts) != len(_REFERENCES[token.text].parts):
                raise self.error(token, f"{token.text}: expected {len(_REFERENCES[token.text].parts)} argument(s), found {len(parts)}")
            return _REFERENCES[token.text](*parts, span=self._span(token.begin))
        if token.text in self._constructors:
            return self._constructors[token.text]
        try:
            return e.Op.get(token.text)
        except RelayError as error:
            raise self.error(token, str(error)) from None

    def _match(self, start: Token) -> Call[e.Expr]:
        complete = not self.accept("?")
        data = yield self._expr()
        self.expect("{")
        clauses = []
        for _ in self.separated("}"):
            with self.scope():
                pattern = self._pattern()
                self.expect("=>")
                body = yield self._block() if self.at("{") else self.sequence()
            clauses.append(e.Clause(pattern, body))
        return e.Match(data, clauses, complete, self._span(start.begin))

    def _pattern(self) -> e.Pattern:
        token = self.next()
        if token.kind == "local":
            return e.PatternVar(self._bind(token, self.annotation()))
        if token.text == "(" and token.kind == "mark":
            return e.PatternTuple(self.listed(")", self._pattern))
        if token.text == "_" and token.kind == "name":
            return e.PatternWildcard()
        if token.text not in self._constructors:
            raise self.error(token, f"expected a pattern, found {token.text!r}")
        inner = self.listed(")", self._pattern) if self.accept("(") else []
        return e.PatternConstructor(self._constructors[token.text], inner)

    # ---- numbers and attributes

    def _number(self, token: Token, sign: int) -> e.Constant:
        text, kind, bits = _split(token.text)
        span = self.source.span(token.begin, token.end)
        if kind == "f" or not text.isdigit():
            dtype = f"float{bits or 32}"
            if dtype not in ("float16", "float32", "float64"):
                raise self.error(token, f"expected a number of 16, 32 or 64 bits, found {token.text}")
            value = sign * float(text)
            largest = np.finfo(dtype).max
            if text[0].isdigit() and abs(value) > max(float(largest), float(str(largest))):  # the printed value may be rounded up
                raise self.error(token, f"expected a {dtype}, found {token.text}, which is beyond its range")
            return e.Constant(ndarray(value, dtype), span)
        number = sign * int(text)
        fits = -(1 << 31) <= number < 1 << 31
        dtype = f"int{bits or (32 if fits or kind else 64)}"
        if dtype not in ("int8", "int16", "int32", "int64") or not np.iinfo(dtype).min <= number <= np.iinfo(dtype).max:
            raise self.error(token, f"expected an {dtype}, found {number}")
        return e.Constant(ndarray(number, dtype), span)

    def _attribute(self, name: str = "") -> tuple[str, Any]:
        key = self.expect(name).text if name else self.expect_kind("name", "the name of an attribute").text
        self.expect("=")
        return key, self._value()

    def _entry(self) -> tuple[Any, Any]:
        """A key and a value of a map: the key is a string or a variable that is bound here."""
        token = self.next()
        if token.kind not in ("local", "string"):
            raise self.error(token, f"expected a string or a variable as the key of a map, found {token.text!r}")
        self.expect(":")
        return self._lookup(token) if token.kind == "local" else token.text, self._value()

    def _value(self) -> Any:
        """The value of an attribute."""
        token = self.peek()
        if self.at("meta"):
            return self.meta()
        if self.accept("["):
            return tuple(self.listed("]", self._value))
        if self.accept("("):
            return tuple(self.listed(")", self._value))
        if self.accept("{"):
            return dict(self.listed("}", self._entry))
        sign = -1 if self.accept("-") else 1
        token = self.next()
        if token.kind == "number":
            text, kind, _ = _split(token.text)
            return sign * (int(text) if text.isdigit() and kind != "f" else float(text))
        if token.kind == "string":
            return token.text
        if token.kind == "name":
            return {"None": None, "True": True, "False": False}.get(token.text, token.text)
        raise self.error(token, f"expected the value of an attribute, found {token.text!r}")


def _split(text: str) -> tuple[str, str, str]:
    """The digits of a number, the letter of its kind, and its bits."""
    for kind in ("f", "i"):
        digits, _, bits = text.rpartition(kind)
        if digits:
            return digits, kind, bits
    return text, "", ""
