"""Sizes that a program of the dialect computes, as expressions of the Relay language.

The dialect gives a size a name (`relay.define_sizes`, `relay.match_shape`) and writes the name in types and attributes. Relay has `?` in
types, and an operand in the place of the attribute (`dyn.reshape` for `reshape`).
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from relayc.dialects.relay.base import Op
from relayc.dialects.relay.sizes import DefineSizes, MatchShape
from relayc.dialects.relay.transform import Reshape
from relayc.dialects.relay.types import TensorType
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast.build import const
from relayc.frontend.relay.op.functions import call, vector
from relayc.symbolic import Dim, Floor, Size, name_of, symbols_of

_Source = Callable[[], e.Expr]


class ComputedSizes:
    """The symbols of a function: parameters, which types may refer to, and symbols that it computes."""

    def __init__(self) -> None:
        self.of_parameters: set[str] = set()
        self._sources: dict[str, _Source] = {}

    def add_parameter(self, value: e.Expr, shape: Sequence[Size | None]) -> None:
        """Adds the symbols that are sizes of a parameter by themselves."""
        self.of_parameters.update(self._add_axes(value, shape))

    def _add_axes(self, value: e.Expr, shape: Sequence[Size | None]) -> list[str]:
        """Adds the symbols that are sizes of a tensor by themselves, and are not known yet. Gives all of them."""
        axes = {name_of(size): axis for axis, size in enumerate(shape) if isinstance(size, Dim)}
        found = {name: axis for name, axis in axes.items() if name is not None}
        self._sources = {name: _axis(value, axis) for name, axis in found.items()} | self._sources
        return list(found)

    def define(self, op: Op, data: e.Expr) -> None:
        """Adds the symbols that an operation defines. Other operations define none."""
        if isinstance(op, DefineSizes):
            for i, name in enumerate(op.names):
                self._sources[name] = functools.cache(functools.partial(_element, data, i, TensorType.of(op.data).dtype))
        elif isinstance(op, MatchShape):
            self._add_axes(data, op.shape)

    def attributes(self, op: Op) -> dict[str, Any]:
        """The attributes of an operator, in which sizes that the program computes are expressions.

        In a shape of which the rest is known, such a size is the -1 of Relay's reshape: types keep the rest then.
        """
        found = {key: self._attribute(value) for key, value in op.attrs().items()}
        if isinstance(op, Reshape):
            late = [axis for axis, size in enumerate(found["newshape"]) if isinstance(size, e.Expr)]
            if len(late) == 1 and all(size > 0 for axis, size in enumerate(op.newshape) if axis not in late and isinstance(size, int)):
                found["newshape"] = tuple(-1 if axis in late else size for axis, size in enumerate(found["newshape"]))
        return found

    def _attribute(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(self._attribute, value))
        return self.expression(value) if isinstance(value, Dim) and not symbols_of(value) <= self.of_parameters else value

    def tensor(self, values: Sequence[Size], dtype: str) -> e.Expr:
        """Sizes as a tensor of rank 1."""
        found = vector([self.expression(value) if isinstance(value, Dim) else value for value in values])
        return found if dtype == "int64" else call("cast", [found], {"dtype": dtype})

    def expression(self, size: Size) -> e.Expr:
        """A size as a scalar of int64."""
        if isinstance(size, int):
            return const(size, "int64")
        total: e.Expr | None = None
        for atoms, count in size.terms.items():
            factors = [const(count, "int64")] if count != 1 or not atoms else []
            product = functools.reduce(lambda a, b: call("multiply", [a, b]), [*factors, *map(self._atom, atoms)])
            total = product if total is None else call("add", [total, product])
        assert total is not None
        return total

    def _atom(self, atom: Any) -> e.Expr:
        if isinstance(atom, str):
            return self._sources[atom]()
        if isinstance(atom, Floor):
            least = (
                call("maximum", [self.expression(atom.den), const(1, "int64")]) if isinstance(atom.den, Dim) else const(atom.den, "int64")
            )
            return call("floor_divide", [self.expression(atom.num), least])
        name = "minimum" if atom.kind == "min" else "maximum"
        return functools.reduce(lambda a, b: call(name, [a, b]), map(self.expression, atom.args))


def _axis(value: e.Expr, axis: int) -> _Source:
    return functools.cache(lambda: _element(call("shape_of", [value], {"dtype": "int64"}), axis))


def _element(data: e.Expr, index: int, dtype: str = "int64") -> e.Expr:
    """An element of a tensor of rank 0 or 1, by its index, as an int64."""
    found = call("take", [call("reshape", [data], {"newshape": (-1,)}), const(index, "int64")], {"axis": 0, "mode": "clip"})
    return found if dtype == "int64" else call("cast", [found], {"dtype": "int64"})
