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

_METHODS = ("uniform", "normal", "random", "bernoulli", "exponential", "cauchy", "log_normal", "geometric")
"""Methods of torch's tensors, in place and with numbers as parameters."""


def _register(name: str, draw: Callable[..., Any]) -> None:
    """Registers what draws numbers, a function of the module torch, the tensors of parameters and the tensor to fill."""

    def fill(*arrays: np.ndarray) -> None:
        import torch  # only programs of torch's models need torch

        draw(torch, *map(to_torch, arrays))

    register_func(f"relayc.torch.{name}", fill, override=True)


def _by_method(method: str, torch: Any, *tensors: Any) -> None:
    *parameters, out = tensors
    getattr(out, method)(*(p.item() for p in parameters))


for _name in _METHODS:
    _register(_name, partial(_by_method, f"{_name}_"))
_register("bernoulli_of", lambda torch, probabilities, out: out.bernoulli_(probabilities))
_register("normal_of", lambda torch, means, deviations, out: torch.normal(means, deviations, out=out))
_register("multinomial", lambda torch, p, replacement, out: torch.multinomial(p, out.shape[-1], bool(replacement), out=out))
_register("randperm", lambda torch, out: torch.randperm(len(out), out=out))
