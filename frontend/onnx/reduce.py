"""Reductions: along axes that are an attribute before operator set 18 (13 for ReduceSum) and an input from then on."""

from collections.abc import Callable, Sequence

from relayc.frontend.common.reductions import (
    Reduction,
    as_float,
    extremum,
    l2_norm,
    log_sum,
    log_sum_exp,
    mean,
    relay_reduction,
    sum_square,
)
from relayc.frontend.converter import Tensor, axes_of, axis_of, emit, ints
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.late_axes import reduce_late
from relayc.frontend.steps import cast, multiply

_sum = relay_reduction("sum")


_REDUCTIONS: dict[str, Reduction] = {
    "ReduceL1": lambda x, axes, keepdims: _sum(emit("abs", x), axes, keepdims),
    "ReduceL2": l2_norm,
    "ReduceLogSum": log_sum,
    "ReduceLogSumExp": log_sum_exp,
    "ReduceMax": extremum("max", "any"),
    "ReduceMean": mean,
    "ReduceMin": extremum("min", "all"),
    "ReduceProd": relay_reduction("prod"),
    "ReduceSum": _sum,
    "ReduceSumSquare": sum_square,
}

_PER_ELEMENT: dict[str, Callable[[Tensor], Tensor]] = {
    "ReduceL1": lambda x: emit("abs", x),
    "ReduceL2": lambda x: emit("abs", x),
    "ReduceLogSum": lambda x: as_float(x, lambda y: emit("log", y)),
    "ReduceSumSquare": lambda x: multiply(x, x),
}
"""Effect of a reduction over no axes; all others leave the data unchanged."""


def _apply(name: str, data: Tensor, axes: Sequence[int] | None, keepdims: bool, noop_with_empty_axes: bool = False) -> Tensor:
    chosen = axes_of(axes, data.rank) if axes else () if noop_with_empty_axes else tuple(range(data.rank))
    if not chosen:
        return _PER_ELEMENT[name](data) if name in _PER_ELEMENT else data
    return _REDUCTIONS[name](data, chosen, keepdims)


def _register(name: str, axes_input_since: int) -> None:
    @converter(name)
    def reduce(data: Tensor, *, axes: Sequence[int] | None = None, keepdims: bool = True) -> Tensor:
        return _apply(name, data, axes, keepdims)

    @converter(name, since=axes_input_since)
    def reduce_with_axes_input(
        data: Tensor, axes: Tensor | None = None, *, keepdims: bool = True, noop_with_empty_axes: bool = False
    ) -> Tensor:
        if axes is not None and not axes.is_known and axes.type.num_elements != 0:
            return reduce_late(data, axes, keepdims, not noop_with_empty_axes, lambda x, chosen: _REDUCTIONS[name](x, chosen, False))
        chosen = ints(axes, "axes") if axes is not None and axes.is_known else ()
        return _apply(name, data, chosen, keepdims, noop_with_empty_axes)


for _name in _REDUCTIONS:
    _register(_name, 13 if _name == "ReduceSum" else 18)


def _register_position(name: str) -> None:
    @converter(name)
    def position(data: Tensor, *, axis: int = 0, keepdims: bool = True, select_last_index: bool = False) -> Tensor:
        chosen = (axis_of(axis, data.rank),)
        found = emit(name.lower(), data, axis=chosen, keepdims=keepdims, select_last_index=select_last_index)
        return cast(found, "int64")


_register_position("ArgMax")
_register_position("ArgMin")
