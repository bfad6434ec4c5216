"""Windows: pooling, sums so far, and the gradient of pooling.

A window that Relay's pooling has not becomes one tensor for each place in the window, combined by the region.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

from relayc.frontend.common.padding import pad
from relayc.frontend.common.reductions import lowest
from relayc.frontend.converter import Tensor, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.stablehlo.reduce import apply_region, combine, expression, is_neutral, operator_of
from relayc.frontend.stablehlo.registry import Node, op
from relayc.frontend.stablehlo.shape import shape_operand
from relayc.frontend.steps import as_numbers, dilated, filled, multiply, reshape, strided_slice, transpose
from relayc.symbolic import Size

_MOST = 4096
"""Places of a window that are tensors of their own, at most."""


@dataclass(frozen=True)
class Window:
    """Windows along each axis: sizes, strides, dilations of the window and of the data, and padding."""

    sizes: tuple[Size, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    base: tuple[int, ...]
    low: tuple[Size, ...]
    high: tuple[Size, ...]

    @property
    def axes(self) -> list[int]:
        """The axes along which windows are more than elements as they are."""
        facts = zip(self.sizes, self.strides, self.low, self.high, strict=True)
        return [i for i, fact in enumerate(facts) if fact != (1, 1, 0, 0)]


def _window(node: Node, rank: int) -> Window:
    ones = (1,) * rank
    strides, dilations, base = (node.ints(name, ones) for name in ("window_strides", "window_dilations", "base_dilations"))
    return Window(node.ints("window_dimensions"), strides, dilations, base, *node.edges(rank))


@op("reduce_window")
def reduce_window(node: Node, *operands: Tensor) -> Any:
    count = len(operands) // 2
    return _reduced(node, operands[:count], operands[count:], _window(node, operands[0].rank), node.region(0))


@op("custom_call @stablehlo.dynamic_reduce_window")
def dynamic_reduce_window(node: Node, x: Tensor, first: Tensor, *amounts: Tensor) -> Any:
    sizes, strides, base, dilations, padding = (shape_operand(t, "window") for t in amounts)
    (callee,) = node.attribute("called_computations")
    block = node.program.functions[callee].regions[0].blocks[0]
    steps = [tuple(int(v) for v in values if isinstance(v, int)) for values in (strides, dilations, base)]
    if any(len(values) != x.rank for values in steps):
        raise ModelError("expected steps of windows that are numbers, found expressions")
    window = Window(sizes, steps[0], steps[1], steps[2], padding[::2], padding[1::2])
    return _reduced(node, [x], [first], window, block)


def _reduced(node: Node, data: Sequence[Tensor], first: Sequence[Tensor], window: Window, block: Any) -> Any:
    name = operator_of(block) if len(data) == 1 else None
    x = data[0]
    if not window.axes:
        return data if name is not None and is_neutral(first[0], name) else apply_region(node, block, [*first_like(first, x), *data])
    if any(b != 1 for b in window.base):
        if name is None or not is_neutral(first[0], name):
            raise ModelError("base_dilations: expected windows of elements side by side, found others")
        x, window = dilated(x, window.base, first[0].array.item()), replace(window, base=(1,) * x.rank)
        data = [x]
    if name is not None and is_neutral(first[0], name):
        found = _so_far(x, window, name) or _pooled(x, window, name)
        if found is not None:
            return found
    return _by_doubling(node, data, first, window, block) or _by_places(node, data, first, window, block)


def first_like(first: Sequence[Tensor], x: Tensor) -> list[Tensor]:
    """Numbers as tensors of the shape of x."""
    return [emit("broadcast_to", t, shape=x.shape) for t in first]


# ---- sums so far ------------------------------------------------------------------------------------------------------------------------


def _line(x: Tensor, window: Window) -> tuple[int, bool] | None:
    """The axis along which each window is all elements up to one (or from it on, True); None for other windows."""
    if len(window.axes) != 1:
        return None
    (axis,) = window.axes
    size = x.shape[axis]
    plain = window.strides[axis] == window.dilations[axis] == 1 and window.sizes[axis] == size
    sides = (window.low[axis], window.high[axis])
    return (axis, sides[0] == 0) if plain and sides in ((size - 1, 0), (0, size - 1)) else None


def _so_far(x: Tensor, window: Window, name: str) -> Tensor | None:
    found = _line(x, window)
    if found is None or name not in ("add", "multiply") or x.dtype == "bool":
        return None
    axis, backwards = found
    x = emit("reverse", x, axis=axis) if backwards else x
    total = emit("cumsum" if name == "add" else "cumprod", x, axis=axis)
    return emit("reverse", total, axis=axis) if backwards else total


def _by_doubling(node: Node, data: Sequence[Tensor], first: Sequence[Tensor], window: Window, block: Any) -> list[Tensor] | None:
    """All elements up to one, combined by any region: after step i of the 2**i elements up to each one."""
    found = _line(data[0], window)
    size = data[0].shape[found[0]] if found is not None else 0
    if found is None or not isinstance(size, int):
        return None
    axis, backwards = found
    values = [emit("reverse", t, axis=axis) if backwards else t for t in data]
    step = 1
    while step < size:
        before = [strided_slice(t, (0,), (size - step,), (1,), (axis,)) for t in values]
        here = [strided_slice(t, (step,), (size,), (1,), (axis,)) for t in values]
        joined = apply_region(node, block, [*before, *here])
        values = [
            emit("concatenate", strided_slice(t, (0,), (step,), (1,), (axis,)), j, axis=axis) for t, j in zip(values, joined, strict=True)
        ]
        step *= 2
    values = apply_region(node, block, [*first_like(first, values[0]), *values])
    return [emit("reverse", t, axis=axis) if backwards else t for t in values]


# ---- pooling ----------------------------------------------------------------------------------------------------------------------------


def _pooled(x: Tensor, window: Window, name: str) -> Tensor | None:
    """Relay's pooling: maxima, or means times the size of a window; None if Relay lacks this window."""
    if name not in ("maximum", "add") or not x.is_float:
        return None
    axes = window.axes
    n = len(axes)
    numbers = [v for values in (window.sizes, window.low, window.high) for v in values]
    if n > 3 or not all(isinstance(v, int) and v >= 0 for v in numbers):
        return None
    at = {what: tuple(int(getattr(window, what)[a]) for a in axes) for what in ("sizes", "strides", "dilations", "low", "high")}
    if any(max(low, high) >= size for low, high, size in zip(at["low"], at["high"], at["sizes"], strict=True)):
        return None
    spatial = "DHW"[3 - n :]
    inside = x.rank == n + 2 and axes == list(range(1, n + 1))
    others = [i for i in range(x.rank) if i not in axes]
    moved = x if inside else transpose(x, [*others, *axes])
    # As [batch, 1, ...] if the layout is not an image layout.
    pooled = moved if inside else reshape(moved, (prod(moved.shape[: len(others)]), 1, *moved.shape[len(others) :]))
    options: dict[str, Any] = {"pool_size": at["sizes"], "strides": at["strides"], "dilation": at["dilations"]}
    options |= {"padding": (*at["low"], *at["high"]), "layout": f"N{spatial}C" if inside else f"NC{spatial}"}
    if name == "maximum":
        found = emit(f"nn.max_pool{n}d", pooled, **options)
    else:
        mean = emit(f"nn.avg_pool{n}d", pooled, **options, count_include_pad=True)
        found = multiply(mean, float(prod(at["sizes"])))
    if inside:
        return found
    whole = reshape(found, (*moved.shape[: len(others)], *found.shape[2:]))
    order = [*others, *axes]
    return transpose(whole, [order.index(i) for i in range(x.rank)])


def _places(x: Tensor, value: Tensor, window: Window) -> tuple[Tensor, Callable[[Sequence[int]], Tensor], list[tuple[int, ...]]]:
    """The padded data, its elements at a place of the windows, and the places."""
    sizes = tuple(s for s in window.sizes if isinstance(s, int))
    if len(sizes) < len(window.sizes) or prod(sizes) > _MOST:
        raise ModelError(f"expected windows of at most {_MOST} elements, found {list(window.sizes)}")
    padded = pad(x, [*window.low, *window.high], value, "constant", range(x.rank))
    steps = zip(padded.shape, sizes, window.dilations, window.strides, strict=True)
    counts = [(d - (s - 1) * r - 1) // t + 1 for d, s, r, t in steps]

    def at(place: Sequence[int]) -> Tensor:
        begin = [p * r for p, r in zip(place, window.dilations, strict=True)]
        end = [b + (c - 1) * t + 1 for b, c, t in zip(begin, counts, window.strides, strict=True)]
        return strided_slice(padded, begin, end, window.strides, range(x.rank))

    return padded, at, list(product(*map(range, sizes)))


def _by_places(node: Node, data: Sequence[Tensor], first: Sequence[Tensor], window: Window, block: Any) -> list[Tensor]:
    numbers = [as_numbers(t) for t in data]
    found = [_places(x, as_numbers(value), window) for x, value in zip(numbers, first, strict=True)]
    back = [t.dtype for t in data]
    values: list[Tensor] = []
    for place in found[0][2]:
        here = [
            emit("cast", at(place), dtype=dtype) if dtype == "bool" else at(place) for (_, at, _), dtype in zip(found, back, strict=True)
        ]
        values = apply_region(node, block, [*values, *here]) if values else here
    return apply_region(node, block, [*first_like(first, values[0]), *values])


# ---- the gradient of pooling ------------------------------------------------------------------------------------------------------------


_BETTER = {"ge(x0,x1)": "greater", "gt(x0,x1)": "greater_equal", "le(x0,x1)": "less", "lt(x0,x1)": "less_equal"}
"""By when the element chosen so far stays: how one compares that is chosen in its place."""


@op("select_and_scatter")
def select_and_scatter(node: Node, x: Tensor, source: Tensor, first: Tensor) -> Tensor:
    """Each element of the source goes to the place in its window that is chosen: the first one of the largest, or smallest, elements."""
    (choice,), name = expression(node.region(0)) or ("?",), operator_of(node.region(1))
    if choice not in _BETTER or name != "add":
        raise ModelError(f"expected the largest or smallest elements of windows, and sums, found {choice} and {name}")
    window = _window(node, x.rank)
    better_than = _BETTER[choice]
    padded, at, places = _places(x, filled((), lowest(x.dtype, "less" in better_than), x.dtype), window)
    best, where = at(places[0]), filled((), 0, "int32")
    for i, place in enumerate(places[1:], 1):
        better = emit(better_than, at(place), best)
        best = emit("where", better, at(place), best)
        where = emit("where", better, filled((), i, "int32"), where)
    total = None
    for i, place in enumerate(places):
        here = emit("where", emit("equal", where, filled((), i, "int32")), source, filled((), 0, source.dtype))
        apart = dilated(here, window.strides)
        after = [d - a - p for d, a, p in zip(padded.shape, apart.shape, place, strict=True)]
        there = pad(apart, [*place, *after], None, "constant", range(x.rank))
        total = there if total is None else combine("add", total, there)
    assert total is not None
    found = strided_slice(total, window.low, [a + d for a, d in zip(window.low, x.shape, strict=True)], (1,) * x.rank, range(x.rank))
    return found if is_neutral(first, "add") else combine("add", found, first)
