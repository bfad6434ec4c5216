"""Guards of exported programs: conditions on the sizes of arguments, from the branches that Python took when torch exported the model."""

import ast
import math
from collections.abc import Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import torch

from relayc.frontend.errors import ModelError
from relayc.frontend.pytorch.values import Symbols
from relayc.frontend.sizes import expect
from relayc.symbolic import Size

_KINDS = {ast.Eq: "eq", ast.GtE: "ge", ast.LtE: "le", ast.Gt: "gt", ast.Lt: "lt", ast.NotEq: "ne"}
_NAMES = {
    "__builtins__": {},
    **{"max": torch.sym_max, "min": torch.sym_min},
    "math": SimpleNamespace(trunc=math.trunc, floor=math.floor, ceil=math.ceil),
    "torch": SimpleNamespace(sym_float=torch.sym_float, sym_int=torch.sym_int, sym_max=torch.sym_max, sym_min=torch.sym_min),
}
"""The names in a guard: functions that take symbolic sizes."""


def check_guards(guards: Iterable[str], arguments: Mapping[str, Any], symbols: Symbols) -> None:
    """Makes the program that is being built fail where a guard does not hold.

    Args:
      guards: torch's conditions, Python expressions such as `L['x'].size()[1] % 8 == 0`.
      arguments: the value of `L` in the conditions; its leaves are torch's fake tensors and numbers.
      symbols: the sizes of the program for the symbols in the sizes of fake tensors.

    Conditions that a size is not 0 or 1 are skipped, as torch skips them for sizes of inputs: torch assumes sizes of 2 or more in order to
    know what is broadcast, and relayc checks broadcasts when the program runs.

    Raises ModelError for a guard that is no comparison of sizes.
    """
    for text in guards:
        for condition in _conjuncts(ast.parse(text.strip(), mode="eval").body):
            try:
                for left, kind, right in _comparisons(condition):
                    expected = _size(right, arguments, symbols)
                    if kind != "ne" or expected not in (0, 1):
                        expect(_size(left, arguments, symbols), kind, expected)
            except (ValueError, TypeError, LookupError, AttributeError, NameError):
                shown = ast.unparse(condition)
                raise ModelError(f"expected guards that compare sizes of arguments, found {shown}, as torch exported the model") from None


def _conjuncts(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        for value in node.values:
            yield from _conjuncts(value)
    else:
        yield node


def _comparisons(node: Any) -> Iterator[tuple[ast.expr, str, ast.expr]]:
    yield from zip([node.left, *node.comparators], [_KINDS[type(op)] for op in node.ops], node.comparators, strict=False)


def _size(node: ast.expr, arguments: Mapping[str, Any], symbols: Symbols) -> Size:
    if any(isinstance(n, ast.Attribute) and n.attr.startswith("_") for n in ast.walk(node)):
        raise ValueError
    return symbols.size(eval(ast.unparse(node), {"L": arguments, **_NAMES}))
