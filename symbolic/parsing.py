"""Sizes read from their texts."""

import ast
import keyword
from collections.abc import Callable

from relayc.symbolic.expressions import Size, known, symbol
from relayc.symbolic.extremes import broadcast, maximum, minimum

_OPERATORS: dict[type, Callable[[Size, Size], Size]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}

_FUNCTIONS: dict[str, Callable[..., Size]] = {"min": minimum, "max": maximum, "broadcast": broadcast}


def is_name(text: str) -> bool:
    """Whether a text can name a symbol: an identifier of Python that means nothing else in an expression."""
    return text.isidentifier() and not keyword.iskeyword(text) and text not in _FUNCTIONS


def parse(text: str) -> Size:
    """The size that a text describes. Raises ValueError for a text that is not an expression of sizes."""
    memo, key = known().memo, ("parse", text)
    if key not in memo:
        memo[key] = symbol(text) if is_name(text) else _parse(text)
    return memo[key]  # type: ignore[return-value] # what was put there


def _parse(text: str) -> Size:
    try:
        return _parsed(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        raise ValueError(f"expected a size such as 'n', '2*n + 1', 'n//2' or 'max(n, m)', found {text!r}") from None


def _parsed(node: ast.expr) -> Size:
    if isinstance(node, ast.Name) and is_name(node.id):
        return symbol(node.id)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_parsed(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_parsed(node.left), _parsed(node.right))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS and not node.keywords:
        return _FUNCTIONS[node.func.id](*map(_parsed, node.args))
    raise ValueError
