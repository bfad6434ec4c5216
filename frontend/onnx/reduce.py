"""Reductions: along axes that are an attribute before operator set 18 (13 for ReduceSum) and an input from then on."""

from collections.abc import Callable, Sequence
from math import prod

from relayc.frontend.converter import Tensor, axes_of, axis_of, emit, ints
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.late_axes import reduce_late
from relayc.frontend.sizes import size_tensor
from relayc.frontend.steps import cast, divide, filled, in_float32, multiply

Reduction = Callable[[Tensor, tuple[int, ...], bool], Tensor]


def _relay(relay_name: str) -> Reduction:
    return lambda x, axes, keepdims: emit(relay_name, x, axis=axes, keepdims=keepdims)


_sum, _max = _relay("sum"), _relay("max")


def _extremum(relay_name: str, of_bool: str) -> Reduction:
    # The largest of bools is whether any holds.
    return lambda x, axes, keepdims: emit(of_bool if x.dtype == "bool" else relay_name, x, axis=axes, keepdims=keepdims)


def _mean(x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    if x.is_float:
        return emit("mean", x, axis=axes, keepdims=keepdims)
    count = size_tensor(prod(x.shape[a] for a in axes))
    return divide(_sum(x, axes, keepdims), cast(count, x.dtype))


def _sum_square(x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    return _sum(multiply(x, x), axes, keepdims)


def _l2(x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    return _as_float(x, lambda y: emit("sqrt", _sum_square(y, axes, keepdims)))


def _log_sum(x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    return _as_float(x, lambda y: emit("log", _sum(y, axes, keepdims)))


def _log_sum_exp(x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    """log(sum(exp(x))), with the largest element taken out so that it does not overflow."""

    def compute(y: Tensor) -> Tensor:
        if prod(y.shape[a] for a in axes) == 0:
            return emit("log", _sum(emit("exp", y), axes, keepdims))
        # An infinite maximum is not taken out: inf - inf would be NaN.
        largest = _max(y, axes, True)
        shift = emit("where", emit("isfinite", largest), largest, filled((), 0, y.dtype))
        total = _sum(emit("exp", emit("subtract", y, shift)), axes, True)
        found = emit("add", emit("log", total), shift)
        return found if keepdims else emit("squeeze", found, axis=axes)

    return _as_float(x, compute)


def _as_float(x: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
    """`compute` in a float type; the result of integers is an integer again, as ONNX has it."""
    if x.is_float:
        return in_float32(x, compute)
    return cast(compute(cast(x, "float64")), x.dtype)


_REDUCTIONS: dict[str, Reduction] = {
    "ReduceL1": lambda x, axes, keepdims: _sum(emit("abs", x), axes, keepdims),
    "ReduceL2": _l2,
    "ReduceLogSum": _log_sum,
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": _extremum("max", "any"),
    "ReduceMean": _mean,
    "ReduceMin": _extremum("min", "all"),
    "ReduceProd": _relay("prod"),
    "ReduceSum": _sum,
    "ReduceSumSquare": _sum_square,
}

_PER_ELEMENT: dict[str, Callable[[Tensor], Tensor]] = {
    "ReduceL1": lambda x: emit("abs", x),
    "ReduceL2": lambda x: emit("abs", x),
    "ReduceLogSum": lambda x: _as_float(x, lambda y: emit("log", y)),
    "ReduceSumSquare": lambda x: multiply(x, x),
}
"""What is left of a reduction over no axes at all; the others leave the data as it is."""


def _apply(name: str, data: Tensor, axes: Sequence[int] | None, keepdims: bool, noop_with_empty_axes: bool = False) -> Tensor:
    if not axes and noop_with_empty_axes:
        return _PER_ELEMENT[name](data) if name in _PER_ELEMENT else data
    chosen = axes_of(axes, data.rank) if axes else tuple(range(data.rank))
    if not chosen:
        return _PER_ELEMENT[name](data) if name in _PER_ELEMENT else data
    return _REDUCTIONS[name](data, chosen, keepdims)


def _apply_late(name: str, data: Tensor, axes: Tensor, keepdims: bool, noop_with_empty_axes: bool) -> Tensor:
    return reduce_late(data, axes, keepdims, not noop_with_empty_axes, lambda x, chosen: _REDUCTIONS[name](x, chosen, False))


def _register(name: str, axes_input_since: int) -> None:
    @converter(name)
    def reduce(data: Tensor, *, axes: Sequence[int] | None = None, keepdims: bool = True) -> Tensor:
        return _apply(name, data, axes, keepdims)

    @converter(name, since=axes_input_since)
    def reduce_with_axes_input(
        data: Tensor, axes: Tensor | None = None, *, keepdims: bool = True, noop_with_empty_axes: bool = False
    ) -> Tensor:
        if axes is not None and not axes.is_known and axes.type.num_elements != 0:
            return _apply_late(name, data, axes, keepdims, noop_with_empty_axes)
        chosen = ints(axes, "axes") if axes is not None and axes.is_known else ()
        return _apply(name, data, chosen, keepdims, noop_with_empty_axes)


for _name in _REDUCTIONS:
    _register(_name, 13 if _name == "ReduceSum" else 18)


def _arg(relay_name: str, data: Tensor, axis: int, keepdims: bool, select_last_index: bool) -> Tensor:
    chosen = (axis_of(axis, data.rank),)
    found = emit(relay_name, data, axis=chosen, keepdims=keepdims, select_last_index=select_last_index)
    return cast(found, "int64")


@converter()
def ArgMax(data: Tensor, *, axis: int = 0, keepdims: bool = True, select_last_index: bool = False) -> Tensor:
    return _arg("argmax", data, axis, keepdims, select_last_index)


@converter()
def ArgMin(data: Tensor, *, axis: int = 0, keepdims: bool = True, select_last_index: bool = False) -> Tensor:
    return _arg("argmin", data, axis, keepdims, select_last_index)
