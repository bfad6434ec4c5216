"""What an architecture of the zoo provides: a network with seeded weights, its inputs, and the sizes that stay open."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from inputs import Input, Symbol
from torch import Tensor, nn

SEED = 2024


@dataclass(frozen=True)
class Network:
    """A module that is called with tensors in the order of `inputs`."""

    module: nn.Module
    inputs: dict[str, Input]


@dataclass(frozen=True)
class Architecture:
    """A row of the zoo's tables.

    Attributes:
      build: makes the network, or an ONNX model (by a converter of its own) with its inputs.
      symbols: the sizes that stay open.
      exporters: those that it is exported by.
      opset: version of the default ONNX operator set, by exporter.
    """

    build: Callable[[], Network | tuple[Any, dict[str, Input]]]
    symbols: Mapping[str, Symbol]
    exporters: tuple[str, ...] = ("dynamo", "torchscript")
    opset: Mapping[str, int] = field(default_factory=lambda: {"dynamo": 20, "torchscript": 18})


class Call(nn.Module):
    """Calls a network with tensors by name and returns the tensors of its result in order.

    Args:
      model: the network.
      names: under which the positional inputs are given.
      function: calls the network where that takes more than its inputs by name.
      options: further arguments, the same for each call.
    """

    def __init__(self, model: nn.Module, names: tuple[str, ...], function: Callable[..., Any] | None = None, **options: Any) -> None:
        super().__init__()
        self.model, self.names, self.function, self.options = model, names, function, options

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        named = dict(zip(self.names, inputs, strict=True))
        result = self.function(self.model, **named) if self.function else self.model(**named, **self.options)
        return tuple(tensors_in(result))


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors of a result: of tuples, lists, dictionaries and the outputs of transformers and diffusers."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item)


def called(model: nn.Module, inputs: dict[str, Input], function: Callable[..., Any] | None = None, **options: Any) -> Network:
    """A network that is called with its inputs by name (see Call)."""
    return Network(Call(model, tuple(inputs), function, **options), inputs)


def randomise(model: nn.Module) -> None:
    """Weights with which every one of them matters to the result.

    Products and convolutions get the fan-in's scale, so that activations neither explode nor fade with depth (a library's initial values
    fade in small widths). What a library sets to a constant, such as the scale of a norm, a bias or a layer scale of 1e-6, gets values
    that differ; all else keeps the library's values.
    """
    for module in model.modules():
        weight = getattr(module, "weight", None)
        if isinstance(module, (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)) and type(weight) is nn.Parameter and weight.numel():
            gain = 1.0 if isinstance(module, nn.Linear) else math.sqrt(2.0)
            weight.data.normal_(0.0, gain / math.sqrt(weight[0].numel()))
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.running_mean is not None:
            module.running_mean.normal_(0.0, 0.2)
            module.running_var.uniform_(0.5, 1.5)
    for parameter in model.parameters():
        if parameter.numel() and parameter.is_floating_point() and parameter.min() == parameter.max():
            size = max(abs(parameter.flatten()[0].item()), 0.3)
            parameter.data = (parameter + 0.3 * size * torch.randn(parameter.shape).clamp(-2, 2)).to(parameter.dtype)
