"""What an architecture provides: a module, example inputs, and seeded weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
import transformers
from torch import Tensor, nn

Size = Literal["tiny", "full", "large"]


@dataclass(frozen=True)
class Sample:
    """A module together with the example inputs it is exported with."""

    module: nn.Module
    inputs: dict[str, Tensor]
    outputs: tuple[str, ...]


class Select(nn.Module):
    """Calls a transformers model and returns plain tensors.

    Args:
        model: a model whose forward returns a transformers ``ModelOutput``.
        arguments: names under which the positional inputs are passed on.
        fields: attributes of the result to return, in order.
        options: further keyword arguments, the same for each call.
    """

    def __init__(
        self,
        model: nn.Module,
        arguments: tuple[str, ...],
        fields: tuple[str, ...],
        **options: Any,
    ) -> None:
        super().__init__()
        self.model = model
        self.arguments = arguments
        self.fields = fields
        self.options = options

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        arguments = dict(zip(self.arguments, inputs, strict=True))
        result = self.model(**arguments, **self.options)
        return tuple(getattr(result, name) for name in self.fields)


def image(channels: int, height: int, width: int) -> Tensor:
    """A random image batch of one."""
    return torch.randn(1, channels, height, width)


def tokens(batch: int, length: int, vocabulary: int) -> Tensor:
    """Random token numbers, int64."""
    return torch.randint(0, vocabulary, (batch, length))


def padding_mask(batch: int, length: int) -> Tensor:
    """One for a token and zero for padding; the last sequence ends in padding."""
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[-1, length * 3 // 4 :] = 0
    return mask


def scaled(norm: nn.BatchNorm2d, low: float, high: float) -> nn.BatchNorm2d:
    """Ask for scales of a batch norm other than the usual ones of about one."""
    norm.scales = (low, high)
    return norm


def randomise(model: nn.Module) -> None:
    """Fill every parameter and buffer statistic with plausible random values.

    Linear and convolution weights are scaled by their fan-in so that activations
    neither explode nor fade with depth.  Norms get scales and shifts that differ
    per channel, and batch norms also get running statistics, so that folding them
    changes every channel in its own way.
    """
    done: set[int] = set()

    def fill(parameter: Tensor | None, values: Callable[[Tensor], Tensor]) -> None:
        if parameter is not None and id(parameter) not in done:
            done.add(id(parameter))
            parameter.data.copy_(values(parameter))

    def normal(std: float) -> Callable[[Tensor], Tensor]:
        return lambda like: torch.randn(like.shape) * std

    def uniform(low: float, high: float) -> Callable[[Tensor], Tensor]:
        return lambda like: low + (high - low) * torch.rand(like.shape)

    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            fill(module.weight, uniform(*getattr(module, "scales", (0.7, 1.3))))
            fill(module.bias, normal(0.1))
            fill(module.running_mean, normal(0.2))
            fill(module.running_var, uniform(0.5, 1.5))
        elif isinstance(module, nn.Embedding):
            fill(module.weight, normal(0.05))
        elif isinstance(module, transformers.pytorch_utils.Conv1D):
            fill(module.weight, normal(1 / math.sqrt(module.nx)))
        elif isinstance(module, nn.ConvTranspose2d):
            taps = math.prod(module.kernel_size) / math.prod(module.stride)
            fill(module.weight, normal(1 / math.sqrt(module.in_channels * taps)))
        elif isinstance(module, nn.Conv1d | nn.Conv2d):
            # Convolutions mostly feed rectifiers, which halve the variance.
            fan_in = module.weight[0].numel()
            fill(module.weight, normal(math.sqrt(2 / fan_in)))
        elif isinstance(module, nn.Linear):
            fill(module.weight, normal(1 / math.sqrt(module.in_features)))

    for path, parameter in model.named_parameters():
        if path.endswith("layer_scale_parameter"):
            fill(parameter, uniform(0.1, 0.4))
        elif path.endswith("bias") or parameter.dim() > 1:
            fill(parameter, normal(0.05))
        else:  # the scale of a layer norm or an RMS norm
            fill(parameter, uniform(0.7, 1.3))
