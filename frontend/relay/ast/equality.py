"""Structural equality and hashes: two programs are equal where they differ in nothing but the names of variables.

Both are computed from one form: a sequence of tokens in which a bound variable is the number of its binding, and a node that occurs again
is the number of its first occurrence, so that programs which share a value are told from those which compute it twice.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from itertools import count, zip_longest
from typing import Any

import numpy as np

from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.attrs import Attrs
from relayc.frontend.relay.ast.base import Node

Token = Any
_SHARED = (e.Call, e.If, e.Let, e.Function, e.RefCreate, e.RefRead, e.RefWrite, e.Match, e.Tuple)
"""Nodes whose sharing is significant."""


class _Binding:
    """A variable at its binding."""

    def __init__(self, var: Node) -> None:
        self.var = var


class _Value:
    """An item that is a token itself."""

    def __init__(self, token: Token) -> None:
        self.token = token


class _Definition:
    """A constructor at its definition."""

    def __init__(self, constructor: e.Constructor) -> None:
        self.constructor = constructor


def tokens(root: Any, map_free_vars: bool) -> Iterator[tuple[Token, Any]]:
    """The form of a program, with the item that each token is of.

    Args:
      map_free_vars: whether free variables are numbered too, so that other free variables may take their place.
    """
    numbers: dict[int, int] = {}
    unused = count()  # not the length of numbers: a variable that is bound again gets another number
    waiting: list[Any] = [root]
    while waiting:
        item = waiting.pop()
        if isinstance(item, _Binding):
            numbers[_identity(item.var)] = next(unused)
            yield ("bind", getattr(item.var, "kind", None)), item.var
            if isinstance(item.var, e.Var):
                waiting += [item.var.type_annotation, *([] if item.var.virtual_device_ is None else [item.var.virtual_device_])]
        elif isinstance(item, (e.Var, e.Id, t.TypeVar, t.IncompleteType)):
            key = _identity(item)
            if key in numbers or not map_free_vars:
                yield ("var", numbers[key]) if key in numbers else ("free", key), item
            else:
                numbers[key] = next(unused)
                yield ("free", numbers[key]), item
                if isinstance(item, e.Var):
                    waiting.append(item.type_annotation)
        elif isinstance(item, _SHARED) and not (isinstance(item, e.Tuple) and not item.fields):
            if id(item) in numbers:
                yield ("again", numbers[id(item)]), item
            else:
                numbers[id(item)] = next(unused)
                yield type(item).__name__, item
                waiting.extend(reversed(_parts(item)))
        else:
            token, parts = _plain(item)
            yield token, item
            waiting.extend(reversed(parts))


def _identity(var: Node) -> int:
    return id(var.vid if isinstance(var, e.Var) else var)


def _sequence(values: tuple[Any, ...]) -> list[Any]:
    return [_Value(len(values)), *values]


def _bindings(variables: tuple[Any, ...]) -> list[Any]:
    return [_Value(len(variables)), *map(_Binding, variables)]


def _parts(node: e.Expr) -> list[Any]:
    """The contents of a node, in the order of its form: bindings before uses."""
    if isinstance(node, e.Call):
        types = [] if isinstance(node.op, e.Op) else _sequence(node.type_args)
        return [node.op, *_sequence(node.args), node.attrs, *types]
    if isinstance(node, e.Let):
        return [_Binding(node.var), node.value, node.body]
    if isinstance(node, e.Function):
        return [*_bindings(node.type_params), *_bindings(node.params), node.ret_type, node.attrs, node.body]
    if isinstance(node, e.Match):
        clauses = [part for clause in node.clauses for part in (clause.lhs, clause.rhs)]
        return [node.data, _Value((node.complete, len(node.clauses))), *clauses]
    if isinstance(node, e.Tuple):
        return _sequence(node.fields)
    return [getattr(node, name) for name in node.parts]


def _constant(item: e.Constant) -> tuple[Token, list[Any]]:
    data = np.ascontiguousarray(item.data)
    return ("Constant", item.dtype, data.shape, data.tobytes()), []


_PLAIN: dict[type, Callable[[Any], tuple[Token, list[Any]]]] = {
    e.Constant: _constant,
    e.Tuple: lambda item: ("()", []),  # one that is not empty is among the shared nodes
    e.TupleGetItem: lambda item: (("TupleGetItem", item.index), [item.tuple_value]),
    e.GlobalVar: lambda item: (("GlobalVar", item.name_hint), []),
    e.Op: lambda item: (("Op", item.name), []),
    e.Constructor: lambda item: (("Constructor", item.name_hint), []),
    e.PatternVar: lambda item: ("PatternVar", [_Binding(item.var)]),
    e.PatternConstructor: lambda item: ("PatternConstructor", [item.constructor, *_sequence(item.patterns)]),
    e.PatternTuple: lambda item: ("PatternTuple", _sequence(item.patterns)),
    e.Clause: lambda item: ("Clause", [item.lhs, item.rhs]),
    t.TensorType: lambda item: (("TensorType", item.shape, item.dtype), []),
    t.TupleType: lambda item: ("TupleType", _sequence(item.fields)),
    t.RefType: lambda item: ("RefType", [item.value]),
    t.GlobalTypeVar: lambda item: (("GlobalTypeVar", item.name_hint), []),
    t.TypeCall: lambda item: ("TypeCall", [item.func, *_sequence(item.args)]),
    t.FuncType: lambda item: (
        "FuncType",
        [*_bindings(item.type_params), *_sequence(item.arg_types), item.ret_type, *_sequence(item.type_constraints)],
    ),
    # Relations are equal if they have the same function.
    t.TypeRelation: lambda item: (("TypeRelation", item.func, item.num_inputs), [*_sequence(item.args), item.attrs]),
    e.TypeData: lambda item: ("TypeData", [item.header, *_bindings(item.type_vars), *map(_Definition, item.constructors)]),
}


def _plain(item: Any) -> tuple[Token, list[Any]]:
    """The token of an item, and its contents."""
    if isinstance(item, _Value):
        return ("value", item.token), []
    if isinstance(item, _Definition):
        return ("Definition", item.constructor.name_hint), _sequence(item.constructor.inputs)
    found = _PLAIN.get(type(item))
    if found is not None:
        return found(item)
    if isinstance(item, Attrs):
        filled = {name: value for name, value in item.items() if value is not None}
        return ("Attrs", tuple(sorted(filled))), [filled[name] for name in sorted(filled)]
    if hasattr(item, "structural_parts"):
        return (type(item).__name__, *item.structural_parts()[:1]), list(item.structural_parts()[1:])
    if item is None or (isinstance(item, Node) and not item.parts):
        return type(item).__name__, []
    if isinstance(item, (tuple, list)):
        return ("tuple", len(item)), list(item)
    if isinstance(item, Mapping):
        return ("map", len(item)), [part for pair in item.items() for part in pair]
    if isinstance(item, np.ndarray):
        return ("array", item.dtype.name, item.shape, item.tobytes()), []
    if isinstance(item, float):
        item = round(item, 9)  # numbers that went through float32 are those that were written
    # 1, 1.0 and True are equal, and so must their texts be.
    is_whole = isinstance(item, (bool, int, float)) and np.isfinite(item) and item == int(item)
    return ("value", int(item) if is_whole else item), []


def structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> bool:
    """Whether two nodes are equal but for the names of variables.

    Args:
      map_free_vars: whether a free variable may be another one on the other side.
    """
    return lhs is rhs or first_difference(lhs, rhs, map_free_vars) is None


def first_difference(lhs: Any, rhs: Any, map_free_vars: bool) -> tuple[Any, Any] | None:
    """The first items at which two nodes differ; None if they are equal."""
    missing = (None, None)
    for (a, x), (b, y) in zip_longest(tokens(lhs, map_free_vars), tokens(rhs, map_free_vars), fillvalue=missing):
        if not (a == b and type(a) is type(b)):
            return x, y
    return None


def assert_structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> None:
    """Raises ValueError with the first difference where two nodes are not equal."""
    found = first_difference(lhs, rhs, map_free_vars)
    if found is not None:
        a, b = (item.var if isinstance(item, _Binding) else getattr(item, "token", item) for item in found)
        raise ValueError(f"expected equal programs, found\n{a}\nin\n{lhs}\nand\n{b}\nin\n{rhs}")


def structural_hash(node: Any, map_free_vars: bool = False) -> int:
    """A number that is the same for nodes that are equal."""
    digest = hashlib.blake2b(digest_size=7)
    for token, _ in tokens(node, map_free_vars):
        digest.update(repr(token).encode())
    return int.from_bytes(digest.digest(), "little")
