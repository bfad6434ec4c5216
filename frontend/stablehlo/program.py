"""Programs of StableHLO as operators of the relay dialect: functions are inlined, each call is converted separately.

A value of the program is a Tensor, a Spread (which broadcasts when its elements are needed) or a Pair, the parts of complex numbers.
Integers that a program computes from its sizes (`get_dimension_size`) are tensors of sizes (relayc.frontend.sizes): operators with shapes
as operands accept these expressions.
"""

import re
from collections import ChainMap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from relayc.frontend.converter import Tensor, assume, at_node, constant
from relayc.frontend.errors import ModelError, UnsupportedOperators
from relayc.frontend.stablehlo import families as _families  # noqa: F401 (they register converters)
from relayc.frontend.stablehlo.registry import (
    COMPLEX,
    CONVERTERS,
    ELEMENTWISE,
    Converter,
    Node,
    Pair,
    Spread,
    declared,
    elements,
    elements_of_text,
    whole,
)
from relayc.frontend.stablehlo.sizes import divided, fold
from relayc.frontend.steps import broadcast_to, reshape
from relayc.symbolic import Size

Value = Tensor | Spread | Pair
_STRUCTURE = ("func.call", "func.return", "stablehlo.return", "stablehlo.constant", "stablehlo.composite", "stablehlo.optimization_barrier")
_LAZY = ("stablehlo.broadcast_in_dim", "stablehlo.dynamic_broadcast_in_dim", "stablehlo.reshape", "stablehlo.dynamic_reshape")
"""Operators whose converters take a Spread as it is."""

_OWN = str(Path(__file__).parents[1])
"""The folder of the frontends, which has no lines of a model's source."""


def label(op: Any) -> str:
    """The name of an operator in the table of converters."""
    name = str(op.name)
    if name == "stablehlo.custom_call":
        return f"custom_call @{op.attributes['call_target_name'].value}"
    return str(op.attributes["name"].value) if name == "stablehlo.composite" else name


def place(op: Any) -> tuple[str, str]:
    """The name of an operator in the program, and its line in the source; empty if unknown."""
    text = str(op.location)
    name = re.search(r'"([^"]+)"(?!:\d)', text)
    line = next((m for m in re.finditer(r'"([^"]+)":(\d+)', text) if not m[1].startswith(_OWN)), None)
    return name[1] if name else "", f"{line[1]}:{line[2]}" if line else ""


class Program:
    """The conversion of a module of StableHLO.

    Attributes:
      functions: functions by name.
      kept: for results of reductions, by `id`: the result with reduced axes of size 1, and the axes.
      sums: for results of sums, by `id`: the operand of the sum, and its axes.
      line: line in the source of the operator that is being converted.
    """

    def __init__(self, module: Any, progress: Callable[[int, int], None] | None = None) -> None:
        functions = (f for f in module.body.operations if f.operation.name == "func.func")
        self.functions = {f.operation.attributes["sym_name"].value: f.operation for f in functions}
        self.kept: dict[int, tuple[Tensor, Tensor, tuple[int, ...]]] = {}
        self.sums: dict[int, tuple[Tensor, Tensor, tuple[int, ...]]] = {}
        self.progress = progress
        self.done = 0
        self.line = ""

    @property
    def main(self) -> Any:
        """The function that is called: "main", or the only public one. Raises ModelError."""
        public = [f for f in self.functions.values() if _is_public(f)]
        found = self.functions.get("main") or (public[0] if len(public) == 1 else None)
        if found is None:
            raise ModelError(f"expected a function main, or a single public one, found {', '.join(self.functions) or 'none'}")
        return found

    def check(self) -> None:
        """Raises UnsupportedOperators with all operators that have no converter, and their lines."""
        reached = self._reached(self.main, set(), "")
        UnsupportedOperators.check((what, line) for op, line in reached if (what := self._lacking(op)) is not None)

    def _reached(self, op: Any, seen: set[str], line: str) -> Iterator[tuple[Any, str]]:
        """The operators of a function or region, and of the called functions, with their lines; an operator without a line gets the line
        of the call."""
        for region in op.regions:
            for block in region.blocks:
                for inner in (view.operation for view in block.operations):
                    here = place(inner)[1] or line
                    yield inner, here
                    yield from self._reached(inner, seen, here)
                    callee = self._callee(inner)
                    if callee is not None and callee not in seen:
                        seen.add(callee)
                        yield from self._reached(self.functions[callee], seen, here)

    @staticmethod
    def _callee(op: Any) -> str | None:
        """The function that replaces an operator."""
        if str(op.name) == "func.call":
            return str(op.attributes["callee"].value)
        if str(op.name) == "stablehlo.composite" and label(op) not in CONVERTERS:
            return str(op.attributes["decomposition"].value)
        return None

    @staticmethod
    def _lacking(op: Any) -> str | None:
        """What relayc lacks for an operator, in words."""
        name = label(op)
        if name not in CONVERTERS and str(op.name) not in _STRUCTURE:
            return name
        for value in (*op.operands, *op.results):
            found = declared(value.type)
            if found is None:
                return f"{name} of {value.type}"
            if found[1] == "complex" and name not in COMPLEX and str(op.name) not in _STRUCTURE:
                return f"{name} of complex numbers"
        return None

    # ---- conversion

    def call(self, name: str, values: Sequence[Value]) -> list[Value]:
        """What a function gives for values of its arguments."""
        function = self.functions[name]
        found = divided(function, values)
        return [found] if found is not None else self.block(function.regions[0].blocks[0], values, ChainMap())

    def block(self, block: Any, values: Sequence[Value], scope: "ChainMap[Any, Value]", of_scalars: bool = False) -> list[Value]:
        """The results of a block for values of its arguments; the values may be tensors if the block is of scalars."""
        inner = scope.new_child(dict(zip(block.arguments, values, strict=True)))
        *body, end = (view.operation for view in block.operations)
        for op in body:
            if self.progress is not None:
                self.done += 1
                self.progress(self.done, max(self.done, len(block.operations)))
            named, line = place(op)
            before, self.line = self.line, line or self.line
            what = f"operator {label(op)}" + (f" ({named})" if named else "") + (f", {self.line}" if self.line else "")
            with at_node(what, named or label(op)):
                results = self._converted(op, inner)
                self.line = before
                for value, result in zip(op.results, results, strict=True):
                    inner[value] = result if of_scalars else _as_declared(result, value.type)
        return [inner[value] for value in end.operands]

    def _converted(self, op: Any, scope: "ChainMap[Any, Value]") -> list[Value]:
        operands = [scope[value] for value in op.operands]
        name = label(op)
        callee = self._callee(op)
        if callee is not None:
            return self.call(callee, operands)
        if name == "stablehlo.constant":
            return [self._constant(op)]
        if name == "stablehlo.optimization_barrier":
            return operands
        node = Node(op, self, scope)
        folded = fold(node, operands)
        if folded is not None:
            return [folded]
        convert = CONVERTERS[name]
        if name in ELEMENTWISE:
            small = [value.tensor if isinstance(value, Spread) else value for value in operands]
            found = spread(self._elementwise(node, convert, small), _largest(operands))
        else:
            found = convert(node, *(operands if name in _LAZY else map(whole, operands)))
        return list(found) if isinstance(found, (tuple, list)) and not isinstance(found, (Spread, Pair)) else [found]

    @staticmethod
    def _constant(op: Any) -> Value:
        shape, dtype = declared(op.results[0].type) or ((), "")
        sizes = tuple(d or 0 for d in shape)
        if dtype != "complex":
            return spread(constant(elements(op.attributes["value"]), dtype), sizes)
        array = elements_of_text(op.get_asm(), shape, dtype)
        return Pair(*(broadcast_to(constant(part), sizes) for part in (array.real, array.imag)))

    # ---- reductions, and elementwise operators on them

    def without(self, kept: Tensor, axes: Sequence[int]) -> Tensor:
        """A reduction without its axes; the result with its axes is remembered."""
        found = reshape(kept, [d for i, d in enumerate(kept.shape) if i not in axes])
        self.kept[id(found)] = found, kept, tuple(axes)
        return found

    def _elementwise(self, node: Node, convert: Converter, operands: Sequence[Any]) -> Any:
        """The result of an elementwise operator. An operator only on reductions is computed with the reduced axes, so that its result
        broadcasts to the operand of the reduction."""
        found = [self.kept.get(id(x)) for x in operands]
        known = [k for k in found if k is not None]
        if not known or any(k is None and x.rank for k, x in zip(found, operands, strict=True)):
            return convert(node, *operands)
        _, first, axes = known[0]
        if any(k[1].shape != first.shape or k[2] != axes for k in known):
            return convert(node, *operands)
        whole = convert(node, *(x if k is None else k[1] for x, k in zip(operands, found, strict=True)))
        return self.without(whole, axes) if whole.shape == first.shape else convert(node, *operands)

    def with_axes(self, x: Tensor, shape: Sequence[Size]) -> Tensor | None:
        """The reduction that x is without axes of size 1 in `shape`."""
        found = self.kept.get(id(x))
        return found[1] if found is not None and found[1].shape == tuple(shape) else None


def spread(found: Any, shape: tuple[Size, ...]) -> Any:
    """The result of an elementwise operator on operands that broadcast to a shape."""
    if not isinstance(found, Tensor) or found.shape == shape:
        return found
    is_smaller = found.rank < len(shape) or any(a == 1 and b != 1 for a, b in zip(found.shape, shape, strict=True))
    return Spread(found, shape) if is_smaller else found


def _largest(operands: Sequence[Any]) -> tuple[Size, ...]:
    """The shape that elementwise operands have: some (a predicate, bounds) may be scalars."""
    return max((tuple(value.shape) for value in operands), key=len)


def _as_declared(value: Any, mlir_type: Any) -> Any:
    """A result of the type in the program. Raises ModelError if its type differs."""
    found = declared(mlir_type)
    if found is None or not isinstance(value, (Tensor, Spread)):
        return value
    shape, dtype = found
    if value.dtype != dtype or len(value.shape) != len(shape):
        raise ModelError(f"expected {mlir_type}, found {value.dtype}{list(value.shape)}")
    wanted = tuple(own if size is None else size for own, size in zip(value.shape, shape, strict=True))
    if wanted == tuple(value.shape):
        return value
    if isinstance(value, Spread):
        return Spread(value.tensor, wanted)
    return assume(value, wanted)


def _is_public(function: Any) -> bool:
    return "sym_visibility" not in function.attributes or function.attributes["sym_visibility"].value == "public"
