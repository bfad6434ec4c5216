"""Activations that Relay spells out, with the attributes that ONNX gives them."""

from relayc.frontend.converter import Tensor, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.steps import binary, divide, in_float32, like, multiply


def exp_below_zero(x: Tensor, alpha: float, gamma: float = 1.0, exponent: Tensor | None = None) -> Tensor:
    """gamma * x where x is positive, else gamma * alpha * (exp(exponent) - 1); the exponent is x by default: ELU, SELU, CELU."""
    # The exponent is cut off at 0, so that the branch not taken does not overflow.
    negative = binary("subtract", emit("exp", binary("minimum", exponent or x, 0.0)), 1.0)
    found = emit("where", binary("greater", x, 0.0), x, multiply(negative, alpha))
    return found if gamma == 1.0 else multiply(found, gamma)


def hard_sigmoid(x: Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    return emit("clip", binary("add", multiply(x, alpha), beta), a_min=0.0, a_max=1.0)


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x)), written as max(x, 0) + log(1 + exp(-|x|)) so that large x does not overflow."""
    small = emit("log", binary("add", emit("exp", emit("negative", emit("abs", x))), 1.0))
    return emit("add", binary("maximum", x, 0.0), small)


def softsign(x: Tensor) -> Tensor:
    return divide(x, binary("add", emit("abs", x), 1.0))


def mish(x: Tensor) -> Tensor:
    return multiply(x, emit("tanh", softplus(x)))


def swish(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return multiply(x, emit("sigmoid", x if alpha == 1.0 else multiply(x, alpha)))


def shrink(x: Tensor, *, lambd: float = 0.5, bias: float = 0.0) -> Tensor:
    """0 near 0, elsewhere x that is moved towards 0 by `bias`."""
    below = emit("where", binary("less", x, -lambd), binary("add", x, bias), like(0, x))
    return emit("where", binary("greater", x, lambd), binary("subtract", x, bias), below)


def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    """Raises ModelError for an approximation other than none and tanh."""
    if approximate == "none":
        half = multiply(x, 0.5)
        return multiply(half, binary("add", emit("erf", multiply(x, 0.5**0.5)), 1.0))
    if approximate != "tanh":
        raise ModelError(f"attribute approximate: expected none or tanh, found {approximate!r}")
    return in_float32(x, _gelu_tanh)


def _gelu_tanh(x: Tensor) -> Tensor:
    cube = multiply(multiply(x, x), x)
    inner = multiply(emit("add", x, multiply(cube, 0.044715)), (2 / 3.141592653589793) ** 0.5)
    return multiply(multiply(x, 0.5), binary("add", emit("tanh", inner), 1.0))
