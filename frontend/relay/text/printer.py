"""Relay text of expressions, types and modules, as Relay prints it.

An expression that is used once is written where it is used if that is the end of a scope or the value of a let; every other one gets a
number: `%0 = add(%x, 1f);`.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.attrs import DICT_ATTRS, Attrs
from relayc.frontend.relay.ast.base import Node
from relayc.frontend.relay.ast.functor import children, pre_order
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.op.table import signature
from relayc.frontend.relay.text.metadata import Metadata
from relayc.symbolic import Dim
from relayc.trampoline import Call, each, trampoline

REFERENCES: dict[type[e.Expr], str] = {e.RefCreate: "ref", e.RefRead: "ref_read", e.RefWrite: "ref_write"}
"""The names of what is done with references."""
VERSION = "0.0.5"
_INLINE = (e.Constant, e.GlobalVar, e.Op, e.Var, e.Constructor)
_INDENT = "  "
_SUFFIXES = {"int32": "", "int16": "i16", "int64": "i64", "float16": "f16", "float32": "f", "float64": "f64"}

Annotate = Callable[[e.Expr], str]


def astext(node: Node, show_meta_data: bool = True, annotate: Annotate | None = None) -> str:
    """A node as text with its version and, unless it is not to be shown, its metadata section."""
    printer = Printer(annotate, show_spans=True)
    text = printer.print(node)
    return f'#[version = "{VERSION}"]\n{text}' + (printer.metadata.text() if show_meta_data else "")


def pretty(node: Node) -> str:
    """A node as text for people."""
    return Printer(None).print(node)


class Printer:
    """A text: its names and numbers in use, and its metadata."""

    def __init__(self, annotate: Annotate | None, show_spans: bool = False) -> None:
        self.metadata = Metadata()
        self._annotate, self._show_spans = annotate, show_spans
        self._lines: list[str] = []
        self._depth = 0
        self._begin()

    def _begin(self) -> None:
        """Resets numbers and names, for each function of a module."""
        self._texts: dict[Any, str] = {}
        self._count = 0
        self._uses = Counter[e.Expr]()
        self._names: dict[str, int] = {}
        self._type_names: dict[int, str] = {}

    # ---- what can be printed

    def print(self, node: Any) -> str:
        """The text of a node."""
        if isinstance(node, RelayModule):
            return self._module(node)
        if isinstance(node, e.TypeData):
            return self._type_data(node)
        if isinstance(node, t.Type):
            return self.type_text(node)
        if isinstance(node, e.Expr):
            self._count_uses(node)
            trampoline(self._scope(node))
            return "\n".join(self._lines)
        if isinstance(node, e.Pattern):
            return self._pattern(node)
        if isinstance(node, e.Clause):
            return f"{self._pattern(node.lhs)} => {pretty(node.rhs)}"
        raise TypeError(f"expected a part of a program, found {type(node).__name__}")

    def _module(self, module: RelayModule) -> str:
        parts = [self._type_data(data) for data in module.type_definitions.values()]
        for var, function in sorted(module.functions.items(), key=lambda item: item[0].name_hint):
            self._begin()
            self._lines = []
            self._count_uses(function)
            trampoline(self._function(function, f"def @{var.name_hint}"))
            parts.append("\n".join(self._lines))
        return "\n\n".join(parts) + ("\n" if parts else "")

    def _type_data(self, data: e.TypeData) -> str:
        self._begin()
        name = f"{self.type_text(data.header)}{self._type_params(data.type_vars)}"
        if not data.constructors:
            return f"extern type {name}"
        return f"type {name} {{\n{''.join(f'{_INDENT}{self._constructor(c)},{chr(10)}' for c in data.constructors)}}}"

    def _constructor(self, constructor: e.Constructor) -> str:
        inputs = ", ".join(map(self.type_text, constructor.inputs))
        return f"{constructor.name_hint}({inputs})" if inputs else constructor.name_hint

    # ---- names, numbers and lines

    def _count_uses(self, root: e.Expr) -> None:
        for node in pre_order([root], children):
            self._uses.update(children(node))

    def _line(self, text: str) -> None:
        self._lines.append(_INDENT * self._depth + text if text else "")

    @contextmanager
    def _inside(self) -> Iterator[None]:
        self._depth += 1
        yield
        self._depth -= 1

    def _name(self, hint: str) -> str:
        name = re.sub(r"[^\w./]|\.(?![A-Za-z_])|/(?!\w)", "_", hint, flags=re.ASCII)
        if not name[:1].isalpha():
            name = f"v{name}"
        count = self._names.get(name)
        self._names[name] = 0 if count is None else count
        while count is not None:
            count += 1
            self._names[name] = count
            if f"{name}{count}" not in self._names:
                name = f"{name}{count}"
                self._names[name] = 0
                break
        return name

    def _declare(self, var: e.Var) -> str:
        """The text of a variable at its binding."""
        text = self._texts[var] = f"%{self._name(var.name_hint)}"
        if var.virtual_device_ is not None:
            text = f"{text} {{virtual_device={self._attribute(var.virtual_device_)}}}"
        return text if var.type_annotation is None else f"{text}: {self.type_text(var.type_annotation)}"

    # ---- expressions

    def _scope(self, node: e.Expr) -> Call[None]:
        """Writes the lines of a scope, the last of which is its result."""
        while isinstance(node, e.Let) and node not in self._texts:
            declared = self._declare(node.var)
            value = yield self._text(node.value, inline=True)
            self._line(f"let {declared} = {value};")
            node = node.body
            if self._uses[node] > 1:
                break
        self._line((yield self._text(node, inline=True)))

    def _text(self, node: e.Expr, inline: bool = False) -> Call[str]:
        """The text of an expression at its use; writes the lines that must precede it."""
        if node in self._texts and not isinstance(node, e.Constant):
            return self._texts[node]
        if isinstance(node, e.Var):
            self._line(f"free_var {self._declare(node)};")
            return self._texts[node]
        inline = isinstance(node, _INLINE) or (inline and self._uses[node] <= 1)
        text = (yield self._written(node)) + self._comment(node)
        if inline:
            if not isinstance(node, e.Let):
                self._texts[node] = text
            return text
        name = self._texts[node] = f"%{self._count}"
        self._count += 1
        self._line(f"{name} = {text};")
        return name

    def _comment(self, node: e.Expr) -> str:
        if isinstance(node, (e.Function, e.Let, e.Op, e.GlobalVar, e.Constructor)):
            return ""
        if self._annotate is not None:
            text = self._annotate(node)
            return f" /* {text} */" if text else ""
        parts = [] if node.checked_type_ is None else [f"ty={self.type_text(node.checked_type_)}"]
        parts += [f"span={node.span}"] if node.span is not None and self._show_spans else []
        return f" /* {' '.join(parts)} */" if parts else ""

    def _block(self, node: e.Expr, open_: str, close: str) -> Call[str]:
        """A nested scope on separate lines."""
        kept, self._lines = self._lines, []
        with self._inside():
            yield self._scope(node)
        kept, self._lines = self._lines, kept
        return "\n".join([open_, *kept, f"{_INDENT * self._depth}{close}"])

    def _written(self, node: e.Expr) -> Call[str]:
        if isinstance(node, e.Call):
            args = yield each(self._text(arg) for arg in node.args)
            op = yield self._text(node.op)
            if isinstance(node.op, e.Constructor) and not args:
                return op
            return f"{op}({', '.join([*args, *self._call_attrs(node)])})"
        if isinstance(node, e.Constant):
            return self._constant(node)
        if isinstance(node, e.Op):
            return node.name
        if isinstance(node, e.Constructor):
            return node.name_hint
        if isinstance(node, e.GlobalVar):
            return f"@{node.name_hint}"
        if isinstance(node, e.Tuple):
            fields = yield each(self._text(field) for field in node.fields)
            return f"({fields[0]},)" if len(fields) == 1 else f"({', '.join(fields)})"
        if isinstance(node, e.TupleGetItem):
            return f"{(yield self._text(node.tuple_value))}.{node.index}"
        if isinstance(node, e.Let):
            return (yield self._block(node, "(", ")"))
        if isinstance(node, e.If):
            cond = yield self._text(node.cond)
            then = yield self._block(node.true_branch, "{", "}")
            otherwise = yield self._block(node.false_branch, "{", "}")
            return f"if ({cond}) {then} else {otherwise}"
        if isinstance(node, e.Function):
            kept, self._lines = self._lines, []
            yield self._function(node, "fn ")
            kept, self._lines = self._lines, kept
            return "\n".join(kept).strip(" ")
        if isinstance(node, e.Match):
            return (yield self._match(node))
        parts = yield each(self._text(part) for part in children(node))
        return f"{REFERENCES[type(node)]}({', '.join(parts)})"

    def _function(self, node: e.Function, head: str) -> Call[None]:
        params = [self._declare(param) for param in node.params]
        given = node.attrs if node.virtual_device_ is None else {"virtual_device": node.virtual_device_, **node.attrs}
        attrs = [f"{name}={self._attribute(value)}" for name, value in given.items()]
        result = "" if node.ret_type is None else f" -> {self.type_text(node.ret_type)}"
        self._line(f"{head}{self._type_params(node.type_params)}({', '.join([*params, *attrs])}){result} {{")
        with self._inside():
            yield self._scope(node.body)
        self._line("}")

    def _match(self, node: e.Match) -> Call[str]:
        data = yield self._text(node.data)
        text = f"match{'' if node.complete else '?'} ({data}) {{\n"
        with self._inside():
            for clause in node.clauses:
                pattern = self._pattern(clause.lhs)
                body = yield self._block(clause.rhs, "{", "}")
                text += f"{_INDENT * self._depth}{pattern} => {body},\n"
        return f"{text}{_INDENT * self._depth}}}"

    def _pattern(self, node: e.Pattern) -> str:
        if isinstance(node, e.PatternVar):
            return self._declare(node.var)
        if isinstance(node, e.PatternWildcard):
            return "_"
        assert isinstance(node, (e.PatternConstructor, e.PatternTuple))
        inner = ", ".join(map(self._pattern, node.patterns))
        if isinstance(node, e.PatternTuple):
            return f"({inner},)" if len(node.patterns) == 1 else f"({inner})"
        return f"{node.constructor.name_hint}({inner})" if inner else node.constructor.name_hint

    # ---- numbers and attributes

    def _constant(self, node: e.Constant) -> str:
        if node.data.ndim == 0 and node.dtype == "bool":
            return str(bool(node.data))
        if node.data.ndim == 0 and node.dtype in _SUFFIXES and np.isfinite(node.data):
            return f"{_number(node.data[()])}{_SUFFIXES[node.dtype]}"
        return self.metadata.refer(node)

    def _call_attrs(self, node: e.Call) -> list[str]:
        """Attributes of a call that are not the operator's defaults."""
        if node.attrs is None:
            return []
        defaults = signature(node.op.name).attrs if isinstance(node.op, e.Op) else {}
        given = [(name, value) for name, value in node.attrs.items() if name not in defaults or not _same(defaults[name], value)]
        texts = [f"{name}={self._attribute(value)}" for name, value in given]
        is_typed = not isinstance(node.op, e.Op) and node.attrs.type_key != DICT_ATTRS
        return [*texts, f"attrs_type_key={json.dumps(node.attrs.type_key)}"] if is_typed else texts

    def _attribute(self, value: Any) -> str:
        if value is None or isinstance(value, bool):
            return str(value)
        if isinstance(value, str):
            return json.dumps(value)
        if isinstance(value, (tuple, list)):
            return f"[{', '.join(map(self._attribute, value))}]"
        if isinstance(value, int):
            return str(int(value))
        if isinstance(value, float):
            return f"{_number(value)}f"
        if isinstance(value, Attrs):
            return str(value)
        if isinstance(value, dict):
            return f"{{{', '.join(f'{self._key(key)}: {self._attribute(v)}' for key, v in value.items())}}}"
        return self.metadata.refer(value)

    def _key(self, key: Any) -> str:
        """A key of a map: a variable that is bound here, or a string."""
        if isinstance(key, e.Var) and key in self._texts:
            return self._texts[key]
        return json.dumps(getattr(key, "name_hint", key))

    # ---- types

    def _type_params(self, params: tuple[t.TypeVar, ...]) -> str:
        return f"[{', '.join(map(self.type_text, params))}]" if params else ""

    def type_text(self, node: t.Type) -> str:
        """The text of a type."""
        if isinstance(node, t.TensorType):
            shape = [self.metadata.refer(d) if isinstance(d, Dim) else str(d) for d in node.shape]
            return f"Tensor[({', '.join(shape)}), {node.dtype}]" if shape else node.dtype
        if isinstance(node, t.TupleType):
            fields = [self.type_text(field) for field in node.fields]
            return f"({fields[0]},)" if len(fields) == 1 else f"({', '.join(fields)})"
        if isinstance(node, t.FuncType):
            params, args = self._type_params(node.type_params), ", ".join(map(self.type_text, node.arg_types))
            return f"fn {params}({args}) -> {self.type_text(node.ret_type)}"
        if isinstance(node, t.RefType):
            return f"ref({self.type_text(node.value)})"
        if isinstance(node, t.TypeCall):
            args = ", ".join(map(self.type_text, node.args))
            return f"{self.type_text(node.func)}[{args}]" if args else self.type_text(node.func)
        if isinstance(node, t.GlobalTypeVar):
            return node.name_hint
        if isinstance(node, t.TypeVar):
            if id(node) not in self._type_names:
                taken = self._type_names.values()
                names = [node.name_hint, *(f"{node.name_hint}{i}" for i in range(1, len(self._type_names) + 2))]
                self._type_names[id(node)] = next(name for name in names if name not in taken)
            return self._type_names[id(node)]
        return "_"


def _number(value: Any) -> str:
    text = str(value)
    return text[:-2] if text.endswith(".0") else text


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)
