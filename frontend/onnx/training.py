"""Training: steps of optimisers, and derivatives of a part of the graph."""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.gradients import gradients
from relayc.frontend.onnx.converters import converter, current
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.loops import scalar_of
from relayc.frontend.onnx.objects import Value
from relayc.frontend.steps import add, binary, cast, divide, multiply, subtract

DOMAIN = "ai.onnx.preview.training"


def _groups(tensors: Sequence[Tensor], states: int) -> list[tuple[Tensor, ...]]:
    """Each tensor that is optimised with its gradient and its states: all tensors come first, then all gradients, and so on."""
    kinds = 2 + states
    if len(tensors) % kinds or not tensors:
        raise OnnxError(f"expected {kinds} inputs behind R and T for each tensor that is optimised, found {len(tensors)}")
    count = len(tensors) // kinds
    return [tuple(tensors[i + k * count] for k in range(kinds)) for i in range(count)]


def _stepped(tensors: Sequence[Tensor], states: int, step: Callable[..., Sequence[Tensor]]) -> tuple[Tensor, ...]:
    """The new tensors, then the new states of each kind."""
    found = [step(*group) for group in _groups(tensors, states)]
    return tuple(row[k] for k in range(1 + states) for row in found)


def _scalar(x: Tensor, what: str, dtype: str) -> Tensor:
    return cast(scalar_of(x, what), dtype)


def _regularised(x: Tensor, g: Tensor, norm_coefficient: float) -> Tensor:
    """The gradient including the gradient of the regularisation."""
    return g if norm_coefficient == 0 else add(multiply(x, norm_coefficient), g)


@converter(domain=DOMAIN)
def Adagrad(
    R: Tensor, T: Tensor, *tensors: Tensor, norm_coefficient: float = 0.0, epsilon: float = 1e-6, decay_factor: float = 0.0
) -> tuple[Tensor, ...]:
    """Steps that shrink with the squares of all gradients so far."""

    def step(x: Tensor, g: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        rate = divide(_scalar(R, "R", x.dtype), add(multiply(_scalar(T, "T", x.dtype), decay_factor), 1))
        g = _regularised(x, g, norm_coefficient)
        squares = add(h, multiply(g, g))
        return subtract(x, divide(multiply(rate, g), add(emit("sqrt", squares), epsilon))), squares

    return _stepped(tensors, 1, step)


@converter(domain=DOMAIN)
def Momentum(
    R: Tensor, T: Tensor, *tensors: Tensor, norm_coefficient: float, alpha: float, beta: float, mode: Literal["standard", "nesterov"]
) -> tuple[Tensor, ...]:
    """Steps along a mean of the gradients so far; in mode "nesterov" along the next one."""

    def step(x: Tensor, g: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        g = _regularised(x, g, norm_coefficient)
        is_later = binary("greater", scalar_of(T, "T"), 0)
        factor = emit("where", is_later, constant(beta, x.dtype), constant(1, x.dtype))
        mean = add(multiply(v, alpha), multiply(factor, g))
        along = mean if mode == "standard" else add(g, multiply(mean, alpha))
        return subtract(x, multiply(_scalar(R, "R", x.dtype), along)), mean

    return _stepped(tensors, 1, step)


@converter(domain=DOMAIN)
def Adam(
    R: Tensor,
    T: Tensor,
    *tensors: Tensor,
    alpha: float = 0.9,
    beta: float = 0.999,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
    epsilon: float = 1e-6,
) -> tuple[Tensor, ...]:
    """Steps along a mean of the gradients, in units of the root of a mean of their squares."""

    def rest(base: float) -> Tensor:
        """1 - base**T. In float64: a power that is almost 1 is taken from 1."""
        power = emit("power", constant(np.float64(base)), _scalar(T, "T", "float64"))
        return subtract(constant(np.float64(1)), power)

    rate = _scalar(R, "R", "float64")
    corrected = divide(multiply(rate, emit("sqrt", rest(beta))), rest(alpha))
    rate = emit("where", binary("greater", scalar_of(T, "T"), 0), corrected, rate)

    def step(x: Tensor, g: Tensor, v: Tensor, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        g = _regularised(x, g, norm_coefficient)
        mean = add(multiply(v, alpha), multiply(g, 1 - alpha))
        squares = add(multiply(h, beta), multiply(multiply(g, g), 1 - beta))
        found = subtract(x, multiply(cast(rate, x.dtype), divide(mean, add(emit("sqrt", squares), epsilon))))
        return found if norm_coefficient_post == 0 else multiply(found, 1 - norm_coefficient_post), mean, squares

    return _stepped(tensors, 2, step)


@converter(domain=DOMAIN)
def Gradient(*inputs: Tensor, xs: Sequence[str], y: str, zs: Sequence[str] = ()) -> tuple[Tensor, ...]:
    """The derivatives of the sum of `y` with respect to `xs`, where the tensors named `xs` and `zs` have the values of the inputs.

    The part of the graph between them is computed anew; what is computed twice becomes one in the program.
    """
    names = [*xs, *zs]
    if len(inputs) != len(names) or len(set(names)) != len(names):
        raise OnnxError(f"expected an input for each of {', '.join(names)}, each named once, found {len(inputs)}")
    # Separate values without known contents.
    given: list[Value] = [Tensor(t.type, value=emit("copy", t).value) for t in inputs]
    found = current().recomputed(dict(zip(names, given, strict=True)), y)
    if not isinstance(found, Tensor) or not found.is_float:
        raise OnnxError(f"attribute y: expected a tensor of floats, found {y!r}")
    return tuple(gradients(found, [t for t in given[: len(xs)] if isinstance(t, Tensor)]))
