"""What an exported program takes for granted of the sizes of its arguments: the branches that Python took when the model was exported."""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relayc.frontend.errors import ModelError
from relayc.frontend.sizes import expect
from relayc.symbolic import Size, parse

_KINDS = {ast.Eq: "eq", ast.GtE: "ge", ast.LtE: "le", ast.Gt: "gt", ast.Lt: "lt", ast.NotEq: "ne"}


@dataclass(frozen=True)
class Argument:
    """A tensor among the arguments, as a guard refers to its sizes."""

    shape: Sequence[Size]

    def size(self) -> Sequence[Size]:
        return self.shape


def check_guards(guards: Iterable[str], arguments: Mapping[str, Any]) -> None:
    """Has the program that is built fail where a guard does not hold.

    Args:
      guards: torch's conditions, Python expressions such as `L['x'].size()[1] % 8 == 0`.
      arguments: what `L` is in these, with Arguments, sizes and numbers as leaves.

    That a size is not 0 or 1 is left out, as torch leaves it out for sizes of inputs: torch takes sizes to be 2 or more to know what is
    broadcast, which relayc checks where it is done.

    Raises ModelError for a guard that is no comparison of sizes.
    """
    for text in guards:
        for condition in _conjuncts(ast.parse(text.strip(), mode="eval").body):
            try:
                for left, kind, right in _comparisons(condition):
                    found, expected = _size(left, arguments), _size(right, arguments)
                    if kind != "ne" or expected not in (0, 1):
                        expect(found, kind, expected)
            except (ValueError, LookupError, AttributeError):
                shown = ast.unparse(condition)
                raise ModelError(f"expected guards that compare sizes of arguments, found {shown}, as torch exported the model") from None


def _conjuncts(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        for value in node.values:
            yield from _conjuncts(value)
    else:
        yield node


def _comparisons(node: ast.expr) -> Iterator[tuple[ast.expr, str, ast.expr]]:
    if not isinstance(node, ast.Compare) or any(type(op) not in _KINDS for op in node.ops):
        raise ValueError
    yield from zip([node.left, *node.comparators], [_KINDS[type(op)] for op in node.ops], node.comparators, strict=False)


def _size(node: ast.expr, arguments: Mapping[str, Any]) -> Size:
    return parse(ast.unparse(_Values(arguments).visit(node)))


class _Values(ast.NodeTransformer):
    """Sizes in place of what a guard reads of the arguments."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.arguments = arguments

    def visit(self, node: ast.AST) -> Any:
        inner: Any = node
        while isinstance(inner, (ast.Subscript, ast.Attribute, ast.Call)):
            inner = inner.func if isinstance(inner, ast.Call) else inner.value
        if not isinstance(inner, ast.Name) or inner.id != "L":
            return self.generic_visit(node)
        found = eval(ast.unparse(node), {"L": self.arguments})
        return ast.parse(str(found), mode="eval").body
