"""Tensors made of numbers and sizes."""

from typing import Any

from relayc.frontend.converter import Tensor, emit
from relayc.frontend.pytorch.operands import operand
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.sizes import positions
from relayc.frontend.steps import broadcast_to, cast, filled, reshape
from relayc.symbolic import Dim, Size

_FILLED = {0: ("zeros", "_efficientzerotensor", "empty", "empty_strided", "empty_permuted", "new_empty_strided"), 1: ("ones",)}


@aten("full", "full_like", "new_full")
def full(fill_value: Any) -> Tensor:
    if isinstance(fill_value, (bool, int, float)):
        return filled(node().sizes, fill_value, node().dtype)
    return broadcast_to(operand(fill_value), node().sizes)


for _value, _names in _FILLED.items():
    _forms = [form for name in _names for form in (name, f"{name}_like", f"new_{name}")]
    aten(*_forms)(lambda _value=_value: filled(node().sizes, _value, node().dtype))


@aten("scalar_tensor", "prims.scalar_tensor")
def scalar_tensor(s: Any) -> Tensor:
    return operand(s)


@aten("arange", "prims.iota")
def arange(start: Any = 0, step: Any = 1) -> Tensor:
    dtype = node().dtype
    whole = all(isinstance(v, (int, Dim)) for v in (start, step))
    computed = "int64" if whole else "float64" if dtype in ("float32", "float64") else "float32"
    x = cast(positions(node().sizes[0]), computed)
    x = x if step == 1 else emit("multiply", x, operand(step, computed))
    return cast(x if start == 0 else emit("add", x, operand(start, computed)), dtype)


def identity(rows: Size, columns: Size, dtype: str) -> Tensor:
    """A matrix with ones on the diagonal, and zeros elsewhere."""
    i, j = reshape(positions(rows), (rows, 1)), reshape(positions(columns), (1, columns))
    return cast(emit("equal", i, j), dtype)
