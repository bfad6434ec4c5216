"""Integers that a program computes of its sizes: kept as expressions, as far as the arithmetic is exact."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relayc.dialects.relay.types import DTYPES
from relayc.frontend.common.size_arithmetic import ARITHMETIC, converted, each, inexact, pick, remainder
from relayc.frontend.converter import Tensor
from relayc.frontend.sizes import LONGEST, Inexact, Ratio, elements_of, expect, objects, pending_in, tensor_of
from relayc.frontend.stablehlo.elementwise import COMPARISONS
from relayc.frontend.stablehlo.registry import Node, Pair, Spread, op, plain
from relayc.symbolic import Dim, Size, Undecided, is_long, maximum, minimum, proves


def known_sizes(x: Tensor) -> tuple[Size, ...] | None:
    """The elements of integers that are known as numbers or expressions; None for any others."""
    if x.is_known:
        return tuple(int(v) for v in x.array.reshape(-1))
    found = x.elements
    return None if found is None or pending_in(found) else tuple(found.reshape(-1))


@op("get_dimension_size")
def get_dimension_size(node: Node, operand: Tensor) -> Tensor:
    return tensor_of(objects([], [operand.shape[node.attribute("dimension")]]), node.dtype)


@op("custom_call @shape_assertion")
def shape_assertion(node: Node, holds: Tensor, *_: Tensor) -> tuple[()]:
    """A comparison of sizes that the program takes for granted: known of the symbols of inputs, and checked when the program runs."""
    if holds.is_known and bool(holds.array):
        return ()
    compare = node.op.operands[0].owner
    kind = {"GE": "ge", "LE": "le", "EQ": "eq"}.get(
        plain(compare.attributes["comparison_direction"]) if "compare" in str(getattr(compare, "name", "")) else ""
    )
    sides = [known_sizes(node.scope[value]) for value in compare.operands] if kind else []
    if kind is not None and len(sides) == 2 and all(side is not None and len(side) == 1 for side in sides):
        (left,), (right,) = sides  # type: ignore[misc] # as just found
        expect(left, kind, right)
    return ()


# ---- arithmetic -------------------------------------------------------------------------------------------------------------------------


def _sign(a: Any) -> int:
    if isinstance(a, Ratio):
        raise Inexact
    return 0 if a == 0 else 1 if proves(lambda: a > 0) else -1 if proves(lambda: a < 0) else inexact()


def _bools(compute: Callable[..., bool]) -> Callable[..., bool]:
    def apply(*args: Any) -> bool:
        return compute(*args) if all(isinstance(a, (bool, np.bool_)) for a in args) else inexact()

    return apply


def _select(condition: Any, a: Any, b: Any) -> Any:
    return (a if condition else b) if isinstance(condition, (bool, np.bool_)) else inexact()


_COMPUTED: dict[str, Callable[..., Any]] = {
    **{name: ARITHMETIC[name] for name in ("abs", "add", "divide", "maximum", "minimum", "multiply", "subtract")},
    "and": _bools(lambda a, b: bool(a and b)),
    "clamp": lambda low, x, high: pick(minimum)(pick(maximum)(x, low), high),
    "negate": ARITHMETIC["negative"],
    "not": _bools(lambda a: not a),
    "or": _bools(lambda a, b: bool(a or b)),
    "remainder": remainder(fmod=True),
    "select": _select,
    "sign": _sign,
}


def _elements(value: Any) -> np.ndarray | None:
    if isinstance(value, Pair):
        return None
    small = value.tensor if isinstance(value, Spread) else value
    if not small.type.is_static or any(not isinstance(d, int) for d in value.shape) or np.prod(value.shape, dtype=float) > LONGEST:
        return None
    found = elements_of(small)
    return None if found is None or pending_in(found) else np.broadcast_to(found, value.shape)


def fold(node: Node, operands: Sequence[Any]) -> Tensor | None:
    """The result of an operator on short tensors of sizes, or of known integers; None if the operator must be converted."""
    if not operands or len(node.op.results) != 1 or (node.name not in _COMPUTED and node.name not in _MOVED):
        return None
    arrays = [_elements(value) for value in operands]
    if any(a is None for a in arrays) or (operands[-1].dtype not in ("int32", "int64", "bool") and not _has_sizes(operands)):
        return None
    dtype = node.dtype
    try:
        given = [a for a in arrays if a is not None]
        if node.name in _MOVED:
            found, dtype = _MOVED[node.name](node, given, operands[0].dtype)
        else:
            found = each(_COMPUTED[node.name], *given)
        return tensor_of(found, dtype) if found.size <= LONGEST and all(_fits(e, dtype) for e in found.reshape(-1)) else None
    except (Inexact, Undecided):
        return None


def _has_sizes(operands: Sequence[Any]) -> bool:
    return any((v.tensor if isinstance(v, Spread) else v).elements is not None for v in operands if not isinstance(v, Pair))


def _fits(e: Any, dtype: str) -> bool:
    if isinstance(e, Ratio):
        return not is_long(e.num) and not is_long(e.den)
    if isinstance(e, Dim) or dtype == "bool" or dtype.startswith("float"):
        return not is_long(e)
    limits = np.iinfo(DTYPES[dtype])
    return bool(limits.min <= e <= limits.max)


def _slice(node: Node, arrays: list[Any], dtype: str) -> tuple[np.ndarray, str]:
    bounds = zip(*(node.ints(name) for name in ("start_indices", "limit_indices", "strides")), strict=True)
    return arrays[0][tuple(slice(*b) for b in bounds)], dtype


_MOVED: dict[str, Callable[[Node, list[Any], str], tuple[np.ndarray, str]]] = {
    "compare": lambda node, arrays, _: (each(ARITHMETIC[COMPARISONS[node.attribute("comparison_direction")]], *arrays), "bool"),
    "concatenate": lambda node, arrays, dtype: (np.concatenate(arrays, axis=node.attribute("dimension")), dtype),
    "convert": lambda node, arrays, dtype: converted(arrays[0], dtype, node.dtype),
    "reshape": lambda node, arrays, dtype: (arrays[0].reshape(node.static("reshape")), dtype),
    "slice": _slice,
}

# ---- division by JAX's functions --------------------------------------------------------------------------------------------------------

_FLOOR_DIVIDE = ("divide", "sign", "sign", "compare", "remainder", "compare", "and", "subtract", "call", "return")
_REMAINDER = ("compare", "call", "remainder", "compare", "compare", "compare", "compare", "and", "add", "select", "return")


def divided(function: Any, values: Sequence[Any]) -> Tensor | None:
    """The result of jax.numpy's floor_divide or remainder of sizes, written out in a function; None for any other call."""
    if len(values) < 2 or not all(isinstance(v, Tensor) for v in values[-2:]):
        return None
    names = tuple(str(o.operation.name).partition(".")[2] for o in function.regions[0].blocks[0].operations)
    names = tuple(name for name in names if name not in ("constant", "convert"))
    if names not in (_FLOOR_DIVIDE, _REMAINDER):
        return None
    a, b = (known_sizes(v) for v in values[-2:])
    if a is None or b is None or len(a) != 1 or len(b) != 1 or not proves(lambda: b[0] > 0):
        return None
    found = a[0] // b[0] if names == _FLOOR_DIVIDE else a[0] % b[0]
    return tensor_of(objects([], [found]), values[-2].dtype) if values[-2].rank == 0 else None
