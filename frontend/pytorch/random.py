"""Random numbers: calls of packed functions that draw from torch's default generator when the program runs (relayc.runtime.torch_random).

The calls of a program keep their order and are all made, so that a program draws the numbers that eager mode draws after the same
torch.manual_seed. There are two limits. Eager mode draws in the order of memory: it gives the same numbers where its tensors are
contiguous. torch.export drops numbers that nothing uses, which eager mode draws.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from relayc.dialects.relay.types import TensorType
from relayc.frontend.converter import Tensor, packed
from relayc.frontend.errors import ModelError
from relayc.frontend.pytorch.operands import operand
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.steps import cast, filled, multiply


def _drawn(name: str, *parameters: Any, generator: Any = None) -> Tensor:
    """The node's result, which a packed function fills; parameters that are numbers are scalars of float64 or int64."""
    if generator is not None:
        raise ModelError("expected numbers of torch's default generator, found a generator of the model's own")
    given = [p if isinstance(p, Tensor) else operand(p, "float64" if isinstance(p, float) else "int64") for p in parameters]
    return packed(f"relayc.torch.{name}", given, TensorType(node().sizes, node().dtype))[0]


aten("rand", "rand_like")(partial(_drawn, "uniform", 0.0, 1.0))
aten("randn", "randn_like")(partial(_drawn, "normal", 0.0, 1.0))
aten("randperm")(partial(_drawn, "randperm"))


@aten("randint", "randint_like")
def randint(high: Any, low: Any = 0, generator: Any = None) -> Tensor:
    return _drawn("random", low, high, generator=generator)


@aten("bernoulli")
def bernoulli(self: Tensor, p: Any = None, generator: Any = None) -> Tensor:
    if p is None or isinstance(p, Tensor):
        return _drawn("bernoulli_of", self if p is None else p, generator=generator)
    return _drawn("bernoulli", float(p), generator=generator)


@aten("normal", "normal_functional")
def normal(mean: Any = 0.0, std: Any = 1.0, generator: Any = None) -> Tensor:
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        dtype = node().dtype
        return _drawn("normal_of", operand(mean, dtype), operand(std, dtype), generator=generator)
    return _drawn("normal", float(mean), float(std), generator=generator)


_BY_FLOATS = {
    "uniform": ("from", "to"),
    "exponential": ("lambd",),
    "geometric": ("p",),
    "cauchy": ("median", "sigma"),
    "log_normal": ("mean", "std"),
}
"""Distributions, and their parameters."""


def _by_floats(name: str, parameters: Sequence[str], generator: Any = None, **given: Any) -> Tensor:
    return _drawn(name, *(float(given[p]) for p in parameters), generator=generator)


for _name, _parameters in _BY_FLOATS.items():
    aten(_name)(partial(_by_floats, _name, _parameters))


@aten("multinomial")
def multinomial(self: Tensor, replacement: bool, generator: Any = None) -> Tensor:
    return _drawn("multinomial", self, filled((), replacement, "bool"), generator=generator)


def dropped(x: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """Dropout in training: x without elements of probability p, the others scaled by 1 / (1 - p), and which elements are kept (bool)."""
    if p == 1:  # torch draws nothing in F.dropout, of which export makes native_dropout
        return multiply(x, 0.0), filled(x.shape, False, "bool")
    kept = packed("relayc.torch.bernoulli", [operand(1.0 - p, "float64")], TensorType(x.shape, "bool"))[0]
    return multiply(multiply(x, cast(kept, x.dtype)), 1 / (1 - p)), kept


@aten("native_dropout")
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Torch decomposes the other kinds of dropout."""
    return (input, filled(input.shape, True, "bool")) if train is False else dropped(input, p)
