"""Random numbers of torch's default generator, for programs of torch's models: the packed functions `relayc.torch.NAME`.

A function takes the parameters of a distribution, then the tensor that it fills as torch fills a tensor of the same shape and dtype. After
torch.manual_seed a program therefore draws the numbers of eager mode. Parameters are scalars, float64 or int64, where torch takes numbers.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from relayc.runtime.registry import register_func
from relayc.runtime.tensor import to_torch

_PREFIX = "relayc.torch."
_METHODS = ("uniform", "normal", "random", "bernoulli", "exponential", "cauchy", "log_normal", "geometric")
"""Methods of torch's tensors, in place and with numbers as parameters."""


def _tensors(arrays: tuple[np.ndarray, ...]) -> list[Any]:
    import torch  # noqa: F401 (only programs of torch's models need torch)

    return [to_torch(array) for array in arrays]


def _fill(method: str, *arrays: np.ndarray) -> None:
    *parameters, out = _tensors(arrays)
    getattr(out, method)(*(p.item() for p in parameters))


def _bernoulli_of(*arrays: np.ndarray) -> None:
    probabilities, out = _tensors(arrays)
    out.bernoulli_(probabilities)


def _normal_of(*arrays: np.ndarray) -> None:
    import torch

    means, deviations, out = _tensors(arrays)
    torch.normal(means, deviations, out=out)


def _multinomial(*arrays: np.ndarray) -> None:
    import torch

    probabilities, replacement, out = _tensors(arrays)
    torch.multinomial(probabilities, out.shape[-1], bool(replacement), out=out)


def _randperm(*arrays: np.ndarray) -> None:
    import torch

    (out,) = _tensors(arrays)
    torch.randperm(len(out), out=out)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: partial(_fill, f"{name}_") for name in _METHODS},
    **{"bernoulli_of": _bernoulli_of, "normal_of": _normal_of, "multinomial": _multinomial, "randperm": _randperm},
}
for _name, _function in _FUNCTIONS.items():
    register_func(_PREFIX + _name, _function, override=True)
