"""What operators compute, in numpy: one function per operator, for FoldConstant.

A function gets the operation (for its attributes and result type) and its operands as arrays, and gives the result or a tuple of them; a
view of an operand where that is possible. Results have the operator's dtypes exactly: float32 stays float32, integers wrap, an integer
quotient is rounded toward zero. Unfoldable raised means: leave this operation to run time (an integer division by zero, say).
"""

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relayc.dialects.relay.base import Op
from relayc.dialects.relay.fourier import PLAN, plan_of
from relayc.dialects.relay.narrow import converted
from relayc.dialects.relay.reduce import reduced_axes
from relayc.dialects.relay.scopes import size_attributes
from relayc.dialects.relay.shapes import normalize_axis
from relayc.dialects.relay.transform import pad_pairs, permutation, slices
from relayc.dialects.relay.types import TensorType, numpy_dtype

Array = np.ndarray
Function = Callable[..., Any]
"""(op, *arrays) -> array(s)."""


class Unfoldable(Exception):
    """The operation has no value that is safe to compute now."""


@dataclass(frozen=True)
class NumpyOperator:
    """The evaluation of an operator in numpy.

    Attributes:
      function: (op, *arrays) -> array(s).
      max_elements: results with more elements are computed at run time, for example because the function is slow.
    """

    function: Function
    max_elements: float = math.inf


NUMPY_OPERATORS: dict[str, NumpyOperator] = {}
"""Evaluator of each operator, by its name in the IR."""


def numpy_operator(*names: str, max_elements: float = math.inf) -> Callable[[Function], Function]:
    """Registers a function (op, *arrays) -> array(s) as what the operators `names` compute."""

    def register(function: Function) -> Function:
        for name in names:
            NUMPY_OPERATORS[name] = NumpyOperator(function, max_elements)
        return function

    return register


def evaluate(op: Op, arrays: Sequence[Array]) -> list[Array] | None:
    """The results of an operation on these operands; None if it has no evaluator, or none for these values."""
    found_evaluator = NUMPY_OPERATORS.get(type(op)._op_name)
    types = [TensorType.of(r) for r in op.operation.results]
    if found_evaluator is None or not all(t.is_static for t in types) or size_attributes(op):
        return None
    if sum(math.prod(t.static_shape) for t in types) > found_evaluator.max_elements:
        return None
    try:
        with np.errstate(all="ignore"):
            found = found_evaluator.function(op, *arrays)
    except (Unfoldable, OverflowError, MemoryError):
        return None
    results = found if isinstance(found, tuple) else (found,)
    out = []
    for result, type_ in zip(results, types, strict=True):
        array = np.asarray(result)
        if array.dtype != numpy_dtype(type_.dtype):
            array = array.astype(numpy_dtype(type_.dtype))
        if array.shape != type_.shape:
            raise ValueError(f"{op.operation.name} at {op.source()}: evaluated to shape {array.shape}, expected {type_}")
        out.append(array)
    return out


def _dtype(op: Op) -> np.dtype:
    return numpy_dtype(TensorType.of(op.operation.results[0]).dtype)


def _shape(op: Op) -> tuple[int, ...]:
    return TensorType.of(op.operation.results[0]).static_shape


def _is_integer(x: Array) -> bool:
    return x.dtype.kind in "iub"


def _wide(x: Array) -> Array:
    """16-bit floats as float32, the type of the computation."""
    return x.astype(np.float32) if x.dtype.kind not in "iub" and x.dtype.itemsize == 2 else x


# ---- elementwise ----------------------------------------------------------------------------------------------------------------------

_OF_THE_SAME_NAME = (
    *("negative", "abs", "sign", "exp", "log", "log2", "log10", "sqrt", "add", "subtract", "multiply", "maximum", "minimum"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "isnan", "isinf", "isfinite"),
    *("less", "less_equal", "greater", "greater_equal", "logical_not", "logical_and", "logical_or", "logical_xor"),
    *("bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"),
)
_ELEMENTWISE: dict[str, Callable[..., Array]] = {
    **{name: getattr(np, name) for name in _OF_THE_SAME_NAME},
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "nn_relu": lambda x: np.maximum(x, np.zeros((), x.dtype)),
    "equal": operator.eq,  # of dtype STRING, which numpy's functions do not compare, too
    "not_equal": operator.ne,
}
_ROUNDING: dict[str, Callable[[Array], Array]] = {"floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc}
_OF_OPERATIONS: dict[str, Function] = {
    "copy": lambda op, x: x,
    "where": lambda op, condition, x, y: np.where(condition, x, y),
    "zeros": lambda op: np.broadcast_to(np.zeros((), _dtype(op)), _shape(op)),
    "ones": lambda op: np.broadcast_to(np.ones((), _dtype(op)), _shape(op)),
    "sizes": lambda op: np.array(op.values, _dtype(op)),
    "shape_of": lambda op, x: np.array(x.shape, _dtype(op)),
    **dict.fromkeys(("reshape", "expand_dims", "squeeze", "nn_batch_flatten"), lambda op, x: x.reshape(_shape(op))),
    "transpose": lambda op, x: x.transpose(permutation(op.axes, x.ndim)),
    "reverse": lambda op, x: np.flip(x, op.axis),
    "broadcast_to": lambda op, x: np.broadcast_to(x, _shape(op)),
    "tile": lambda op, x: np.tile(x, op.reps),
    "repeat": lambda op, x: np.repeat(x, op.repeats, op.axis),
    "concatenate": lambda op, *arrays: np.concatenate(arrays, op.axis),
    "stack": lambda op, *arrays: np.stack(arrays, op.axis),
    "trilu": lambda op, x, k: (np.triu if op.upper else np.tril)(x, int(k)),
}
"""Functions of an operation's attributes and result type, and its operands."""


def _elementwise(function: Callable[..., Array]) -> Function:
    return lambda op, *arrays: function(*map(_wide, arrays))


def _rounding(function: Callable[[Array], Array]) -> Function:
    return lambda op, x: x if _is_integer(x) else function(_wide(x))


for _name, _function in _ELEMENTWISE.items():
    numpy_operator(_name)(_elementwise(_function))
for _name, _function in _ROUNDING.items():
    numpy_operator(_name)(_rounding(_function))
NUMPY_OPERATORS.update((_name, NumpyOperator(_function)) for _name, _function in _OF_OPERATIONS.items())


@numpy_operator("erf", max_elements=1 << 14)
def _erf(op: Op, x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[np.float64])(x.astype(np.float64))


@numpy_operator("cast")
def _cast(op: Op, x: Array) -> Array:
    return converted(x, op.dtype, op.saturate is not False, op.round_mode or "up")


@numpy_operator("reinterpret")
def _reinterpret(op: Op, x: Array) -> Array:
    return x != 0 if _dtype(op) == np.bool_ else np.asarray(x, order="C").view(_dtype(op))


@numpy_operator("clip")
def _clip(op: Op, x: Array) -> Array:
    for bound, pick in ((op.a_min, np.maximum), (op.a_max, np.minimum)):
        if bound is None:
            continue
        if _is_integer(x):
            limits = np.iinfo(x.dtype)
            if math.isfinite(bound) and bound != int(bound):
                raise Unfoldable
            bound = max(min(bound, limits.max), limits.min)
        x = pick(x, np.array(bound, x.dtype))
    return x


def _division(of_integers: Callable[[Array, Array], Array], of_floats: Callable[[Array, Array], Array]) -> Function:
    def run(op: Op, a: Array, b: Array) -> Array:
        if not _is_integer(a):
            return of_floats(_wide(a), _wide(b))
        if not b.all():
            raise Unfoldable
        return of_integers(a, b)

    return run


def _truncated(a: Array, b: Array) -> Array:
    quotient, remainder = np.divmod(a, b)
    return quotient + ((remainder != 0) & (quotient < 0)).astype(a.dtype)


numpy_operator("divide")(_division(_truncated, np.divide))
numpy_operator("floor_divide")(_division(np.floor_divide, lambda a, b: np.floor(np.divide(a, b))))
numpy_operator("mod")(_division(np.fmod, np.fmod))
numpy_operator("floor_mod")(_division(np.mod, np.mod))


@numpy_operator("power")
def _power(op: Op, a: Array, b: Array) -> Array:
    if _is_integer(a) and (b < 0).any():
        raise Unfoldable
    return np.power(_wide(a), _wide(b))


# ---- reductions -----------------------------------------------------------------------------------------------------------------------


def _reduced(function: Callable[..., Array], needs_elements: bool = False) -> Function:
    def run(op: Op, x: Array) -> Array:
        axes = reduced_axes(x.ndim, op.axis, op.exclude)
        if needs_elements and x.size == 0:
            raise Unfoldable
        return function(_wide(x), axis=axes, keepdims=op.keepdims)

    return run


def _mean(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    options: dict[str, Any] = {"axis": axis, "keepdims": keepdims, "dtype": x.dtype}
    if not _is_integer(x):
        return np.mean(x, **options)
    total = np.sum(x, **options)
    count = math.prod(x.shape[a] for a in axis)
    if abs(total).max(initial=0) >= 1 << 52:
        raise Unfoldable
    return np.trunc(total / count)


numpy_operator("sum")(_reduced(lambda x, axis, keepdims: np.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype)))
numpy_operator("prod")(_reduced(lambda x, axis, keepdims: np.prod(x, axis=axis, keepdims=keepdims, dtype=x.dtype)))
numpy_operator("mean")(_reduced(_mean, needs_elements=True))
numpy_operator("max")(_reduced(np.max, needs_elements=True))
numpy_operator("min")(_reduced(np.min, needs_elements=True))
numpy_operator("all")(_reduced(np.all))
numpy_operator("any")(_reduced(np.any))


def _scan(function: Callable[..., Array], first: int) -> Function:
    def run(op: Op, x: Array) -> Array:
        axis = op.axis
        if axis is None:
            x, axis = x.reshape(-1), 0
        x = _wide(x.astype(_dtype(op)))
        found = function(x, axis=axis, dtype=x.dtype)
        if op.exclusive:
            found = np.roll(found, 1, axis)
            index: list[Any] = [slice(None)] * x.ndim
            index[axis] = slice(0, 1)
            found[tuple(index)] = first
        return found

    return run


numpy_operator("cumsum")(_scan(np.cumsum, 0))
numpy_operator("cumprod")(_scan(np.cumprod, 1))


# ---- transforms of signals ------------------------------------------------------------------------------------------------------------


@numpy_operator("fft")
def _fft(op: Op, x: Array, roots: Array, plan: Array, *multipliers: Array) -> Array:
    dtype, n = x.dtype, op.length
    rows = x[..., 0].astype(np.float64) if x.shape[2] == 1 else x.astype(np.float64) @ [1, 1j]
    if op.to_real:
        return np.fft.irfft(rows, n)[..., None].astype(dtype)
    before, after = [a[0].astype(np.float64) + 1j * a[1] for a in multipliers] + [np.ones(n)] * (2 - len(multipliers))
    kept = min(n, rows.shape[1])
    found = (np.fft.ifft if op.inverse else np.fft.fft)(rows[:, :kept] * before[:kept], n)[:, : op.frequencies] * after[: op.frequencies]
    return np.stack([found.real, found.imag], -1).astype(dtype)


@numpy_operator("fft_plan")
def _fft_plan(op: Op, length: Array) -> Array:
    found = np.zeros(PLAN, np.int64)
    plan = plan_of(int(length))
    found[: len(plan)] = plan
    return found


@numpy_operator("fft_roots")
def _fft_roots(op: Op, powers: Array, length: Array) -> Array:
    found = np.exp(-2j * np.pi / int(length) * (powers % int(length)))
    return np.stack([found.real, found.imag]).astype(op.dtype)


# ---- creation -------------------------------------------------------------------------------------------------------------------------


@numpy_operator("full")
def _full(op: Op, value: Array) -> Array:
    return np.broadcast_to(converted(value, TensorType.of(op.result).dtype), _shape(op))


@numpy_operator("arange")
def _arange(op: Op) -> Array:
    wide = np.int64 if all(float(v).is_integer() for v in (op.start, op.step)) else np.float64
    positions: Array = np.arange(_shape(op)[0], dtype=wide)
    return (np.array(op.start, wide) + positions * np.array(op.step, wide)).astype(_dtype(op))


# ---- movement -------------------------------------------------------------------------------------------------------------------------


@numpy_operator("strided_slice")
def _strided_slice(op: Op, x: Array) -> Array:
    index: list[slice] = [slice(None)] * x.ndim
    for axis, (begin, end, stride) in slices(op, x.ndim).items():
        index[axis] = slice(begin, end, stride)
    return x[tuple(index)]


@numpy_operator("nn_pad")
def _pad(op: Op, x: Array, value: Array) -> Array:
    pairs = np.array(pad_pairs(op.pad_width, x.ndim), np.int64).reshape(x.ndim, 2)
    return np.pad(x, pairs, constant_values=value) if op.pad_mode == "constant" else np.pad(x, pairs, mode=op.pad_mode)


@numpy_operator("take")
def _take(op: Op, x: Array, indices: Array) -> Array:
    if op.batch_dims:
        raise Unfoldable
    axis = op.axis
    if axis is None:
        x, axis = x.reshape(-1), 0
    return np.take(x, _in_bounds(indices, x.shape[axis], op.mode), axis)


def _in_bounds(indices: Array, size: int, mode: str) -> Array:
    indices = indices.astype(np.int64)
    if mode == "wrap":
        return indices % size
    if mode == "clip":
        return np.clip(indices, 0, size - 1)
    if mode == "raise" and ((indices < -size) | (indices >= size)).any():
        raise Unfoldable
    return np.clip(np.where(indices < 0, indices + size, indices), 0, size - 1)


def _mode(op: Op) -> str:
    return "raise" if op.checked_axes else "fast"


@numpy_operator("gather")
def _gather(op: Op, x: Array, indices: Array) -> Array:
    axis = normalize_axis(op.axis, x.ndim)
    grid = list(np.ogrid[tuple(slice(n) for n in indices.shape)])
    grid[axis] = _in_bounds(indices, x.shape[axis], _mode(op))
    return x[tuple(grid)]


@numpy_operator("gather_nd")
def _gather_nd(op: Op, x: Array, indices: Array) -> Array:
    if op.batch_dims:
        raise Unfoldable
    return x[tuple(_in_bounds(column, x.shape[i], _mode(op)) for i, column in enumerate(indices))]


@numpy_operator("one_hot")
def _one_hot(op: Op, indices: Array, on: Array, off: Array) -> Array:
    axis = op.axis % (indices.ndim + 1)
    wanted = np.expand_dims(indices, axis)
    positions = np.arange(op.depth).reshape([op.depth if i == axis else 1 for i in range(indices.ndim + 1)])
    return np.where(wanted == positions, on, off)
