"""Reductions, and what is found along an axis."""

from math import inf, prod
from typing import Any

from relayc.frontend.common.reductions import Reduction, extremum, relay_reduction
from relayc.frontend.converter import Tensor, axis_of, emit
from relayc.frontend.pytorch.elementwise import to_dtype
from relayc.frontend.pytorch.operands import axes_list, flat
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.sizes import size_tensor
from relayc.frontend.steps import as_numbers, binary, cast, divide, filled, like, multiply, reshape, subtract
from relayc.symbolic import Size

_REDUCTIONS: dict[str, Reduction] = {
    "sum": relay_reduction("sum"),
    "mean": relay_reduction("mean"),
    "prod": relay_reduction("prod"),
    "amax": extremum("max", "any"),
    "amin": extremum("min", "all"),
    "any": relay_reduction("any"),
    "all": relay_reduction("all"),
}


@aten(*_REDUCTIONS)
def reduction(self: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    name = node().operator.removeprefix("aten.")
    x = to_dtype(self, "bool" if name in ("any", "all") else node().dtype)
    axes = axes_list(dim, x.rank)
    return cast(_REDUCTIONS[name](x, axes, keepdim) if axes else x, node().dtype)


@aten("var", "std", "var_mean", "std_mean")
def var(self: Tensor, dim: Any = None, unbiased: bool = True, correction: Any = None, keepdim: bool = False) -> Any:
    name = node().operator
    axes = axes_list(dim, self.rank)
    less = int(unbiased) if correction is None else correction
    wide = cast(self, "float32") if self.dtype in ("float16", "bfloat16") else self
    mean = emit("mean", wide, axis=axes, keepdims=True) if axes else wide
    found = _variance(wide, mean, axes, less, keepdim)
    found = cast(emit("sqrt", found) if "std" in name else found, self.dtype)
    if not name.endswith("_mean"):
        return found
    return found, cast(reshape(mean, node().shape[1]), self.dtype)


def _variance(x: Tensor, mean: Tensor, axes: tuple[int, ...], less: Any, keepdim: bool) -> Tensor:
    if less in (0, 1) and axes and 0 not in x.shape:
        return emit("variance", x, mean, axis=axes, keepdims=keepdim, unbiased=less == 1)
    apart = subtract(x, mean)
    total = emit("sum", multiply(apart, apart), axis=axes, keepdims=keepdim) if axes else multiply(apart, apart)
    count: Size = prod(x.shape[a] for a in axes)
    return divide(total, binary("maximum", subtract(cast(size_tensor(count), x.dtype), float(less)), 0.0))


@aten("linalg_vector_norm")
def linalg_vector_norm(self: Tensor, ord: Any, dim: Any, keepdim: bool) -> Tensor:
    axes = axes_list(dim, self.rank)
    size = emit("abs", cast(self, node().dtype))
    if not axes:
        return cast(binary("not_equal", size, 0.0), size.dtype) if ord == 0 else size
    return p_norm(size, float(ord), axes, keepdim)


def p_norm(size: Tensor, p: float, axes: tuple[int, ...], keepdim: bool) -> Tensor:
    """The p-norm of absolute values."""
    if p in (inf, -inf):
        return emit("max" if p == inf else "min", size, axis=axes, keepdims=keepdim)
    if p == 0:
        return emit("sum", cast(binary("not_equal", size, 0.0), size.dtype), axis=axes, keepdims=keepdim)
    powers = size if p == 1 else multiply(size, size) if p == 2 else emit("power", size, like(p, size))
    total = emit("sum", powers, axis=axes, keepdims=keepdim)
    return total if p == 1 else emit("sqrt", total) if p == 2 else emit("power", total, like(1 / p, total))


@aten("argmax", "argmin")
def argmax(self: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    x = flat(self) if dim is None else self
    if x.rank == 0:
        return filled((), 0, "int64")
    relay_name = node().operator.removeprefix("aten.")
    found = emit(relay_name, x, axis=(axis_of(dim or 0, x.rank),), keepdims=keepdim and dim is not None)
    return reshape(cast(found, "int64"), node().sizes)


@aten("max", "min")
def max_(self: Tensor) -> Tensor:
    name = node().operator.removeprefix("aten.")
    return _REDUCTIONS["a" + name](self, axes_list(None, self.rank), False) if self.rank else self


@aten("max.dim", "min.dim")
def max_dim(self: Tensor, dim: int, keepdim: bool) -> tuple[Any, ...]:
    if self.rank == 0:
        return self, filled((), 0, "int64")
    name, axes = node().operator.removeprefix("aten."), (axis_of(dim, self.rank),)
    indices = cast(emit(f"arg{name}", as_numbers(self), axis=axes, keepdims=keepdim), "int64") if node().used(1) else None
    return _REDUCTIONS["a" + name](self, axes, keepdim), indices


@aten("cumsum", "cumprod")
def cumsum(self: Tensor, dim: int) -> Tensor:
    x = cast(self, node().dtype)
    return x if x.rank == 0 else emit(node().operator.removeprefix("aten."), x, axis=axis_of(dim, x.rank))


@aten("logcumsumexp")
def logcumsumexp(self: Tensor, dim: int) -> Tensor:
    """By the largest element of all: exact where a row is not far apart."""
    if self.rank == 0:
        return self
    axis = axis_of(dim, self.rank)
    top = emit("max", self, axis=(axis,), keepdims=True)
    total = emit("cumsum", emit("exp", subtract(self, top)), axis=axis)
    return emit("add", emit("log", total), top)
