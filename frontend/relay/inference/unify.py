"""Unification: makes types with unknown parts equal, by a union-find of parts."""

from collections.abc import Mapping, Sequence
from typing import NoReturn

from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.functor import rebuilt_type, type_parts
from relayc.frontend.relay.inference.errors import TypeInferenceError


def substituted(type_: t.Type, values: Mapping[int, t.Type]) -> t.Type:
    """A type with type variables, by their id, replaced."""
    if isinstance(type_, t.TypeVar):
        return values.get(id(type_), type_)
    if isinstance(type_, (t.TensorType, t.IncompleteType, t.GlobalTypeVar)):
        return type_
    return rebuilt_type(type_, lambda part: substituted(part, values))


class Unifier:
    """The known parts of incomplete types."""

    def __init__(self) -> None:
        # By id, with the key itself, so that no other object gets the id.
        self._found: dict[int, tuple[t.IncompleteType, t.Type]] = {}

    def find(self, type_: t.Type) -> t.Type:
        """What a type is known to be, but for its parts."""
        path = []
        while isinstance(type_, t.IncompleteType) and id(type_) in self._found:
            path.append(type_)
            type_ = self._found[id(type_)][1]
        for passed in path:
            self._found[id(passed)] = passed, type_
        return type_

    def resolve(self, type_: t.Type) -> t.Type:
        """What a type and its parts are known to be."""
        found = self.find(type_)
        if isinstance(found, (t.TensorType, t.IncompleteType, t.TypeVar, t.GlobalTypeVar)):
            return found
        return rebuilt_type(found, self.resolve)

    def is_complete(self, type_: t.Type, within_data: bool = False) -> bool:
        """Whether all of a type is known.

        Args:
          within_data: whether arguments of data types need not be: any type will do for the elements of a list that is empty.
        """
        found = self.find(type_)
        if isinstance(found, t.IncompleteType) or (isinstance(found, t.TypeCall) and within_data):
            return not isinstance(found, t.IncompleteType)
        return all(self.is_complete(part, within_data) for part in type_parts(found))

    def instantiate(self, type_: t.FuncType, args: Sequence[t.Type] = ()) -> tuple[t.FuncType, tuple[t.Type, ...]]:
        """A function type with types in the place of its parameters, given or to be found; and these types."""
        made = tuple(args) or tuple(t.IncompleteType() for _ in type_.type_params)
        values = {id(param): arg for param, arg in zip(type_.type_params, made, strict=True)}
        inputs = [substituted(arg, values) for arg in type_.arg_types]
        return t.FuncType(inputs, substituted(type_.ret_type, values)), made

    def unify(self, a: t.Type, b: t.Type) -> t.Type:
        """The type that two types are; of a dimension that differs nothing is known. Raises TypeInferenceError if they cannot be one."""
        a, b = self.find(a), self.find(b)
        if a is b:
            return a
        if isinstance(a, t.IncompleteType) or isinstance(b, t.IncompleteType):
            return self._bind(a, b) if isinstance(a, t.IncompleteType) else self._bind(b, a)  # type: ignore[arg-type] # one of them
        if isinstance(a, t.FuncType) and isinstance(b, t.FuncType):
            return self._functions(a, b)
        if type(a) is not type(b):
            self._fail(a, b)
        if isinstance(a, t.TensorType):
            assert isinstance(b, t.TensorType)
            return self._tensors(a, b)
        if isinstance(a, (t.TypeVar, t.GlobalTypeVar)):
            is_name = isinstance(a, t.GlobalTypeVar) and a.name_hint == b.name_hint  # type: ignore[attr-defined] # of the same kind
            return a if is_name else self._fail(a, b)
        mine, others = list(type_parts(a)), list(type_parts(b))
        if len(mine) != len(others):
            self._fail(a, b)
        parts = iter([self.unify(x, y) for x, y in zip(mine, others, strict=True)])
        return rebuilt_type(a, lambda _: next(parts))

    def _functions(self, a: t.FuncType, b: t.FuncType) -> t.Type:
        if len(a.arg_types) != len(b.arg_types):
            self._fail(a, b)
        # What has more type parameters is an instance of the other.
        kept = min(a, b, key=lambda type_: len(type_.type_params))

        def instance(type_: t.FuncType) -> t.FuncType:
            if type_ is kept or not type_.type_params:
                return type_
            return self.instantiate(type_, kept.type_params if len(kept.type_params) == len(type_.type_params) else ())[0]

        # In the order of the operands, which errors state.
        a, b = instance(a), instance(b)
        args = [self.unify(p, q) for p, q in zip(a.arg_types, b.arg_types, strict=True)]
        return t.FuncType(args, self.unify(a.ret_type, b.ret_type), kept.type_params)

    def _tensors(self, a: t.TensorType, b: t.TensorType) -> t.Type:
        if a.dtype != b.dtype or len(a.shape) != len(b.shape):
            self._fail(a, b)
        if any(isinstance(x, int) and isinstance(y, int) and x != y for x, y in zip(a.shape, b.shape, strict=True)):
            self._fail(a, b)
        return a if a.shape == b.shape else t.TensorType([x if x == y else t.Any() for x, y in zip(a.shape, b.shape, strict=True)], a.dtype)

    def _bind(self, variable: t.IncompleteType, type_: t.Type) -> t.Type:
        if self._occurs(variable, type_):
            raise TypeInferenceError(f"expected a type that is no part of itself, found {self.resolve(type_)}")
        self._found[id(variable)] = variable, type_
        return type_

    def _occurs(self, variable: t.IncompleteType, type_: t.Type) -> bool:
        return any(self.find(part) is variable or self._occurs(variable, self.find(part)) for part in type_parts(type_))

    def _fail(self, a: t.Type, b: t.Type) -> NoReturn:
        raise TypeInferenceError(f"expected the type {self.resolve(a)}, found {self.resolve(b)}")
