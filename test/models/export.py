"""Make the ONNX models that relayc is tested and measured with.

Every model is built from a configuration with seeded random weights; nothing is
downloaded.  Each architecture exists in two sizes: ``tiny`` keeps the real
structure (every kind of layer, residual, mask and resize) but is small enough to
be stored next to this script, ``full`` has the published dimensions.

    python test/models/export.py --size tiny --out test/models
    python test/models/export.py --size full --out DIR resnet50 bert

Each written file has been through the ONNX checker and has been run by
onnxruntime, whose outputs are compared with those of the PyTorch module.

Needs torch, transformers, onnx, onnxscript and onnxruntime, of which relayc itself
needs only onnx.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import itertools
import logging
import math
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
import onnxruntime
import onnxscript.optimizer
import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.models.efficientnet.modeling_efficientnet import EfficientNetFinalBlockLayer
from transformers.models.whisper.modeling_whisper import WhisperEncoder

Size = Literal["tiny", "full"]
Exporter = Literal["dynamo", "torchscript"]

SEED = 2024


# ---------------------------------------------------------------------------
# What an architecture provides
# ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """A module together with the example inputs it is exported with."""

    module: nn.Module
    inputs: dict[str, Tensor]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Architecture:
    """One row of the table of models.

    Attributes:
        build: makes the module and its example inputs.
        exporter: ``dynamo`` traces with torch.export, ``torchscript`` with
            torch.jit.  They spell the same operation differently, which is why
            both are used.
        opset: version of the default ONNX operator set.
        dynamic: input name -> axis -> symbol, for the tiny size only; the full
            size always has fixed shapes.
        fold_batch_norm: let the exporter merge batch norms into convolutions.
            Left off wherever that work should be the compiler's.
    """

    build: Callable[[Size], Sample]
    exporter: Exporter
    opset: int
    dynamic: dict[str, dict[int, str]] = field(default_factory=dict)
    fold_batch_norm: bool = True


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


# ---------------------------------------------------------------------------
# Weights
# ---------------------------------------------------------------------------


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


# ---------------------------------------------------------------------------
# Convolutional networks written out here
# ---------------------------------------------------------------------------


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut."""

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.closing_norm = scaled(nn.BatchNorm2d(width), 0.2, 0.6)
        self.shortcut = shortcut(inputs, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        y = self.closing_norm(self.conv2(y))
        return F.relu(y + self.shortcut(x))


class Bottleneck(nn.Module):
    """A 3x3 convolution between two 1x1 convolutions, and a shortcut."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = width * self.expansion
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.closing_norm = scaled(nn.BatchNorm2d(outputs), 0.2, 0.6)
        self.shortcut = shortcut(inputs, outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        y = F.relu(self.norm2(self.conv2(y)))
        y = self.closing_norm(self.conv3(y))
        return F.relu(y + self.shortcut(x))


def shortcut(inputs: int, outputs: int, stride: int) -> nn.Module:
    """Identity, or a projection where the shape changes."""
    if inputs == outputs and stride == 1:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


class ResNet(nn.Module):
    """Residual network for classification."""

    def __init__(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        depths: tuple[int, int, int, int],
        width: int,
        classes: int,
    ) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, padding=3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, padding=1),
        )
        blocks: list[nn.Module] = []
        channels = width
        for stage, depth in enumerate(depths):
            stage_width = width * 2**stage
            for index in range(depth):
                stride = 2 if stage > 0 and index == 0 else 1
                blocks.append(block(channels, stage_width, stride))
                channels = stage_width * block.expansion
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(self.blocks(self.stem(x)))
        return self.classifier(torch.flatten(x, 1))


def resnet18(size: Size) -> Sample:
    """ResNet-18."""
    if size == "tiny":
        model = ResNet(BasicBlock, (2, 2, 2, 2), width=4, classes=10)
        return Sample(model, {"image": image(3, 64, 64)}, ("logits",))
    model = ResNet(BasicBlock, (2, 2, 2, 2), width=64, classes=1000)
    return Sample(model, {"image": image(3, 224, 224)}, ("logits",))


def resnet50(size: Size) -> Sample:
    """ResNet-50; the tiny one has fewer blocks per stage."""
    if size == "tiny":
        model = ResNet(Bottleneck, (1, 2, 2, 1), width=4, classes=10)
        return Sample(model, {"image": image(3, 64, 64)}, ("logits",))
    model = ResNet(Bottleneck, (3, 4, 6, 3), width=64, classes=1000)
    return Sample(model, {"image": image(3, 224, 224)}, ("logits",))


class InvertedResidual(nn.Module):
    """Expand, filter each channel on its own, project back."""

    def __init__(self, inputs: int, outputs: int, stride: int, expand: int) -> None:
        super().__init__()
        hidden = inputs * expand
        layers: list[nn.Module] = []
        if expand != 1:
            layers += [
                nn.Conv2d(inputs, hidden, 1, bias=False),
                nn.BatchNorm2d(hidden),
                nn.ReLU6(),
            ]
        layers += [
            nn.Conv2d(hidden, hidden, 3, stride, padding=1, groups=hidden, bias=False),
            nn.BatchNorm2d(hidden),
            nn.ReLU6(),
            nn.Conv2d(hidden, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        ]
        self.layers = nn.Sequential(*layers)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y = self.layers(x)
        return x + y if self.residual else y


class MobileNetV2(nn.Module):
    """Inverted residuals with linear bottlenecks, for classification."""

    # expansion, channels, repeats, stride of the first
    STAGES = (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    )

    def __init__(self, divide: int, last: int, classes: int) -> None:
        super().__init__()
        channels = 32 // divide
        layers: list[nn.Module] = [
            nn.Conv2d(3, channels, 3, 2, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU6(),
        ]
        for expand, width, repeats, first_stride in self.STAGES:
            for index in range(repeats):
                stride = first_stride if index == 0 else 1
                outputs = width // divide
                layers.append(InvertedResidual(channels, outputs, stride, expand))
                channels = outputs
        layers += [
            nn.Conv2d(channels, last, 1, bias=False),
            nn.BatchNorm2d(last),
            nn.ReLU6(),
        ]
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(last, classes))

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x).mean(dim=(2, 3)))


def mobilenet_v2(size: Size) -> Sample:
    """MobileNet v2, width 1.0."""
    if size == "tiny":
        model = MobileNetV2(divide=8, last=40, classes=10)
        return Sample(model, {"image": image(3, 64, 64)}, ("logits",))
    model = MobileNetV2(divide=1, last=1280, classes=1000)
    return Sample(model, {"image": image(3, 224, 224)}, ("logits",))


class DoubleConv(nn.Module):
    """Twice a 3x3 convolution, a group norm and SiLU."""

    def __init__(self, inputs: int, outputs: int, groups: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1),
            nn.GroupNorm(groups, outputs),
            nn.SiLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1),
            nn.GroupNorm(groups, outputs),
            nn.SiLU(),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class UpLevel(nn.Module):
    """Doubles the resolution, joins the skip connection, convolves.

    ``how`` is one of ``transpose`` (transposed convolution), ``bilinear`` (to the
    size of the skip), ``corners`` (bilinear with aligned corners) and ``nearest``
    (by a factor of two).
    """

    def __init__(self, inputs: int, outputs: int, groups: int, how: str) -> None:
        super().__init__()
        self.how = how
        if how == "transpose":
            self.up: nn.Module = nn.ConvTranspose2d(inputs, outputs, 2, stride=2)
        else:
            self.up = nn.Conv2d(inputs, outputs, 1)
        self.join = DoubleConv(2 * outputs, outputs, groups)

    def forward(self, x: Tensor, skip: Tensor) -> Tensor:
        x = self.up(x)
        if self.how == "nearest":
            x = F.interpolate(x, scale_factor=2.0, mode="nearest")
        elif self.how != "transpose":
            corners = self.how == "corners"
            extent = skip.shape[2:]
            x = F.interpolate(x, extent, mode="bilinear", align_corners=corners)
        return self.join(torch.cat((skip, x), dim=1))


class UNet(nn.Module):
    """Encoder and decoder with skip connections, for dense prediction."""

    UP = ("transpose", "bilinear", "corners", "nearest")

    def __init__(self, widths: tuple[int, ...], groups: int, classes: int) -> None:
        super().__init__()
        self.enter = DoubleConv(3, widths[0], groups)
        pairs = list(itertools.pairwise(widths))
        self.down = nn.ModuleList(DoubleConv(a, b, groups) for a, b in pairs)
        self.up = nn.ModuleList(UpLevel(b, a, groups, self.UP[level]) for level, (a, b) in enumerate(reversed(pairs)))
        self.leave = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x)
        skips = []
        for level in self.down:
            skips.append(x)
            x = level(F.max_pool2d(x, 2))
        for level in self.up:
            x = level(x, skips.pop())
        return torch.sigmoid(self.leave(x))


def unet(size: Size) -> Sample:
    """U-Net with group norm; each level up resizes in a different way."""
    if size == "tiny":
        model = UNet((4, 6, 8, 12, 16), groups=2, classes=2)
        return Sample(model, {"image": image(3, 32, 48)}, ("mask",))
    model = UNet((64, 128, 256, 512, 1024), groups=32, classes=4)
    return Sample(model, {"image": image(3, 256, 256)}, ("mask",))


# ---------------------------------------------------------------------------
# Time series
# ---------------------------------------------------------------------------


class MixerBlock(nn.Module):
    """Mixes along time, then along features, each with a residual."""

    def __init__(self, steps: int, features: int, hidden: int) -> None:
        super().__init__()
        self.time_norm = nn.LayerNorm(features)
        self.time_mix = nn.Sequential(nn.Linear(steps, steps), nn.ReLU(), nn.Dropout(0.1))
        self.feature_norm = nn.LayerNorm(features)
        self.feature_mix = nn.Sequential(
            nn.Linear(features, hidden),
            nn.GELU(),
            nn.Dropout(0.1),
            nn.Linear(hidden, features),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.time_mix(self.time_norm(x).transpose(1, 2)).transpose(1, 2)
        return x + self.feature_mix(self.feature_norm(x))


class Mixer(nn.Module):
    """Forecasts the next steps of several series with linear layers only.

    The input is brought to zero mean and unit variance per series and the
    forecast is brought back.
    """

    def __init__(self, steps: int, horizon: int, series: int, width: int, blocks: int) -> None:
        super().__init__()
        self.enter = nn.Linear(series, width)
        self.blocks = nn.Sequential(*(MixerBlock(steps, width, 4 * width) for _ in range(blocks)))
        self.leave = nn.Linear(width, series)
        self.forecast = nn.Linear(steps, horizon)

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(dim=1, keepdim=True)
        spread = torch.sqrt(x.var(dim=1, keepdim=True, unbiased=False) + 1e-5)
        y = self.leave(self.blocks(self.enter((x - mean) / spread)))
        y = self.forecast(y.transpose(1, 2)).transpose(1, 2)
        return y * spread + mean


def mlp_mixer(size: Size) -> Sample:
    """MLP mixer for time series."""
    if size == "tiny":
        model = Mixer(steps=24, horizon=6, series=5, width=16, blocks=2)
        return Sample(model, {"series": torch.randn(2, 24, 5)}, ("forecast",))
    model = Mixer(steps=512, horizon=96, series=64, width=256, blocks=8)
    return Sample(model, {"series": torch.randn(1, 512, 64)}, ("forecast",))


# ---------------------------------------------------------------------------
# Networks from transformers
# ---------------------------------------------------------------------------


def bert(size: Size) -> Sample:
    """BERT encoder with a padding mask; the tiny one has two layers."""
    options: dict[str, Any] = {}
    batch, length = 1, 128
    if size == "tiny":
        batch, length = 2, 12
        options = {
            "vocab_size": 100,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 64,
            "max_position_embeddings": 32,
        }
    config = transformers.BertConfig(**options)
    inputs = {
        "input_ids": tokens(batch, length, config.vocab_size),
        "attention_mask": padding_mask(batch, length),
        "token_type_ids": (torch.arange(length) >= length // 2).long().repeat(batch, 1),
    }
    fields = ("last_hidden_state", "pooler_output")
    model = transformers.BertModel(config)
    return Sample(Select(model, tuple(inputs), fields), inputs, fields)


def gpt2(size: Size) -> Sample:
    """GPT-2 language model without a cache, 124M parameters."""
    options: dict[str, Any] = {}
    batch, length = 1, 64
    if size == "tiny":
        batch, length = 2, 10
        options = {
            "vocab_size": 100,
            "n_positions": 32,
            "n_embd": 32,
            "n_layer": 2,
            "n_head": 4,
            "bos_token_id": 0,
            "eos_token_id": 0,
        }
    config = transformers.GPT2Config(**options, attn_implementation="eager")
    model = transformers.GPT2LMHeadModel(config)
    inputs = {
        "input_ids": tokens(batch, length, config.vocab_size),
        "attention_mask": padding_mask(batch, length),
    }
    fields = ("logits",)
    return Sample(Select(model, tuple(inputs), fields, use_cache=False), inputs, fields)


def llama(size: Size) -> Sample:
    """Llama: rotary positions, grouped queries, RMS norm, SwiGLU.

    The full size has four layers of the width of a model of about 1B parameters
    and a smaller vocabulary.
    """
    length = 64
    options: dict[str, Any] = {
        "vocab_size": 8192,
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 4,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "max_position_embeddings": 2048,
    }
    if size == "tiny":
        length = 10
        options = {
            "vocab_size": 100,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 64,
        }
    config = transformers.LlamaConfig(**options)
    model = transformers.LlamaForCausalLM(config)
    inputs = {"input_ids": tokens(1, length, config.vocab_size)}
    fields = ("logits",)
    return Sample(Select(model, tuple(inputs), fields, use_cache=False), inputs, fields)


def vit(size: Size) -> Sample:
    """Vision transformer, base, patches of 16."""
    options: dict[str, Any] = {"num_labels": 1000}
    extent = 224
    if size == "tiny":
        extent = 32
        options = {
            "num_labels": 10,
            "patch_size": 8,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 64,
        }
    config = transformers.ViTConfig(image_size=extent, **options)
    model = transformers.ViTForImageClassification(config)
    inputs = {"pixel_values": image(3, extent, extent)}
    fields = ("logits",)
    return Sample(Select(model, tuple(inputs), fields), inputs, fields)


def convnext(size: Size) -> Sample:
    """ConvNeXt tiny (the published name of the smallest one)."""
    options: dict[str, Any] = {"num_labels": 1000}
    extent = 224
    if size == "tiny":
        extent = 64
        options = {
            "num_labels": 10,
            "hidden_sizes": [8, 12, 16, 24],
            "depths": [1, 1, 2, 1],
        }
    config = transformers.ConvNextConfig(**options)
    model = transformers.ConvNextForImageClassification(config)
    inputs = {"pixel_values": image(3, extent, extent)}
    fields = ("logits",)
    return Sample(Select(model, tuple(inputs), fields), inputs, fields)


def efficientnet(size: Size) -> Sample:
    """EfficientNet B0, with its uneven padding and squeeze-and-excitation."""
    options: dict[str, Any] = {
        "num_labels": 1000,
        "width_coefficient": 1.0,
        "depth_coefficient": 1.0,
        "hidden_dim": 1280,
    }
    extent = 224
    if size == "tiny":
        extent = 64
        options |= {
            "num_labels": 10,
            "width_coefficient": 0.1,
            "depth_coefficient": 0.5,
            "depth_divisor": 4,
            "hidden_dim": 128,
        }
    config = transformers.EfficientNetConfig(image_size=extent, **options)
    model = transformers.EfficientNetForImageClassification(config)
    for module in model.modules():
        if isinstance(module, EfficientNetFinalBlockLayer):
            # Makes up for the gate before it, except at the end of a residual branch;
            # wider layers average the gates out and need less of that.
            gain = 0.5 if module.apply_dropout else 1.5 if size == "tiny" else 1.0
            scaled(module.project_bn, 0.7 * gain, 1.4 * gain)
    inputs = {"pixel_values": image(3, extent, extent)}
    fields = ("logits",)
    return Sample(Select(model, tuple(inputs), fields), inputs, fields)


def segformer(size: Size) -> Sample:
    """SegFormer B0 for semantic segmentation."""
    options: dict[str, Any] = {"num_labels": 150}
    extent = 512
    if size == "tiny":
        extent = 64
        options = {
            "num_labels": 5,
            "hidden_sizes": [8, 8, 16, 24],
            "num_attention_heads": [1, 2, 4, 4],
            "depths": [1, 1, 1, 1],
            "mlp_ratios": [2, 2, 2, 2],
            "decoder_hidden_size": 16,
        }
    config = transformers.SegformerConfig(**options)
    model = transformers.SegformerForSemanticSegmentation(config)
    inputs = {"pixel_values": image(3, extent, extent)}
    fields = ("logits",)
    return Sample(Select(model, tuple(inputs), fields), inputs, fields)


def whisper_encoder(size: Size) -> Sample:
    """Encoder of Whisper tiny over 30 seconds of mel features."""
    options: dict[str, Any] = {"d_model": 384, "encoder_layers": 4}
    options |= {"encoder_attention_heads": 6, "encoder_ffn_dim": 1536}
    if size == "tiny":
        options = {
            "num_mel_bins": 16,
            "max_source_positions": 20,
            "d_model": 32,
            "encoder_layers": 2,
            "encoder_attention_heads": 4,
            "encoder_ffn_dim": 64,
        }
    config = transformers.WhisperConfig(**options)
    model = WhisperEncoder(config)
    frames = 2 * config.max_source_positions
    inputs = {"input_features": torch.randn(1, config.num_mel_bins, frames)}
    fields = ("last_hidden_state",)
    return Sample(Select(model, tuple(inputs), fields), inputs, fields)


# ---------------------------------------------------------------------------
# The table
# ---------------------------------------------------------------------------

BATCH = {0: "batch"}
BATCH_LENGTH = {0: "batch", 1: "length"}

ARCHITECTURES: dict[str, Architecture] = {
    "bert": Architecture(
        bert,
        "dynamo",
        opset=18,
        dynamic={
            "input_ids": BATCH_LENGTH,
            "attention_mask": BATCH_LENGTH,
            "token_type_ids": BATCH_LENGTH,
        },
    ),
    "convnext": Architecture(convnext, "dynamo", opset=20),
    "efficientnet": Architecture(efficientnet, "dynamo", opset=18, fold_batch_norm=False),
    "gpt2": Architecture(
        gpt2,
        "torchscript",
        opset=18,
        dynamic={"input_ids": BATCH_LENGTH, "attention_mask": BATCH_LENGTH},
    ),
    "llama": Architecture(llama, "dynamo", opset=18, dynamic={"input_ids": {1: "length"}}),
    "mlp_mixer": Architecture(mlp_mixer, "dynamo", opset=18, dynamic={"series": BATCH}),
    "mobilenet_v2": Architecture(mobilenet_v2, "torchscript", opset=18, fold_batch_norm=False),
    "resnet18": Architecture(
        resnet18,
        "torchscript",
        opset=18,
        dynamic={"image": BATCH},
        fold_batch_norm=False,
    ),
    "resnet50": Architecture(resnet50, "dynamo", opset=18),
    "segformer": Architecture(segformer, "torchscript", opset=18),
    "unet": Architecture(unet, "dynamo", opset=18),
    "vit": Architecture(vit, "torchscript", opset=20),
    "whisper_encoder": Architecture(whisper_encoder, "dynamo", opset=23),
}


# ---------------------------------------------------------------------------
# Export and check
# ---------------------------------------------------------------------------


def build(name: str, size: Size) -> Sample:
    """Build one model with its seeded weights, in evaluation mode."""
    torch.manual_seed(SEED)
    sample = ARCHITECTURES[name].build(size)
    randomise(sample.module)
    sample.module.eval().requires_grad_(False)
    return sample


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the exporters' progress notes and warnings off the terminal."""
    previous = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with (
            warnings.catch_warnings(),
            open(os.devnull, "w") as sink,
            contextlib.redirect_stdout(sink),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(previous)


def export_dynamo(
    sample: Sample,
    opset: int,
    dynamic: dict[str, dict[int, str]],
    fold_batch_norm: bool,
) -> onnx.ModelProto:
    """Export by way of torch.export."""
    # Select.forward takes its inputs as one variadic argument.
    shapes: Any = tuple(dynamic.get(name) for name in sample.inputs)
    if isinstance(sample.module, Select):
        shapes = (shapes,)
    program = torch.onnx.export(
        sample.module,
        tuple(sample.inputs.values()),
        input_names=list(sample.inputs),
        output_names=list(sample.outputs),
        dynamic_shapes=shapes if dynamic else None,
        opset_version=opset,
        dynamo=True,
        optimize=fold_batch_norm,
        verbose=False,
    )
    assert program is not None
    if not fold_batch_norm:
        # The folding of constants on its own, without the rules that merge layers.
        onnxscript.optimizer.inline(program.model)
        onnxscript.optimizer.fold_constants(program.model)
        onnxscript.optimizer.remove_unused_nodes(program.model)
    return program.model_proto


def export_torchscript(
    sample: Sample,
    opset: int,
    dynamic: dict[str, dict[int, str]],
    fold_batch_norm: bool,
) -> onnx.ModelProto:
    """Export by way of torch.jit.trace."""
    mode = torch.onnx.TrainingMode
    axes: dict[str, dict[int, str]] = dict(dynamic)
    if dynamic:
        for name in sample.outputs:
            axes[name] = next(iter(dynamic.values()))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        torch.onnx.export(
            sample.module,
            tuple(sample.inputs.values()),
            path,
            input_names=list(sample.inputs),
            output_names=list(sample.outputs),
            dynamic_axes=axes or None,
            opset_version=opset,
            dynamo=False,
            training=mode.EVAL if fold_batch_norm else mode.PRESERVE,
        )
        return onnx.load(path)


def strip(model: onnx.ModelProto) -> None:
    """Drop what the exporters note about the source: stack traces and the like."""
    del model.metadata_props[:]
    model.doc_string = ""

    def clean(graph: onnx.GraphProto) -> None:
        graph.doc_string = ""
        values = (*graph.input, *graph.output, *graph.value_info)
        for item in (*graph.node, *values, *graph.initializer, graph):
            item.doc_string = ""
            del item.metadata_props[:]
        for node in graph.node:
            for attribute in node.attribute:
                attribute.doc_string = ""
                if attribute.HasField("g"):
                    clean(attribute.g)

    clean(model.graph)


def grown(sample: Sample, dynamic: dict[str, dict[int, str]]) -> dict[str, Tensor]:
    """The example inputs with one more element along each dynamic axis."""
    inputs = dict(sample.inputs)
    for name, axes in dynamic.items():
        for axis in axes:
            extra = inputs[name].narrow(axis, 0, 1)
            inputs[name] = torch.cat((inputs[name], extra), dim=axis)
    return inputs


def compare(session: onnxruntime.InferenceSession, sample: Sample, inputs: dict[str, Tensor]) -> float:
    """Run onnxruntime and PyTorch; return the largest difference, raise if large."""
    feeds = {name: value.numpy() for name, value in inputs.items()}
    found = session.run(list(sample.outputs), feeds)
    expected = sample.module(*inputs.values())
    if isinstance(expected, Tensor):
        expected = (expected,)
    difference = 0.0
    for name, ours, theirs in zip(sample.outputs, found, expected, strict=True):
        reference = theirs.numpy()
        if not np.isfinite(ours).all():
            raise ValueError(f"output {name} is not finite")
        np.testing.assert_allclose(ours, reference, rtol=1e-3, atol=1e-4, err_msg=name)
        difference = max(difference, float(np.abs(ours - reference).max()))
    return difference


def check(path: Path, sample: Sample, dynamic: dict[str, dict[int, str]]) -> float:
    """Check the file and what it computes; return the largest difference seen."""
    onnx.checker.check_model(str(path), full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    difference = compare(session, sample, sample.inputs)
    if dynamic:
        other = compare(session, sample, grown(sample, dynamic))
        difference = max(difference, other)
    return difference


def operators(graph: onnx.GraphProto) -> collections.Counter[str]:
    """Count the operators of a graph and its subgraphs as ``domain::Type``."""
    count: collections.Counter[str] = collections.Counter()
    for node in graph.node:
        count[f"{node.domain}::{node.op_type}" if node.domain else node.op_type] += 1
        for attribute in node.attribute:
            if attribute.HasField("g"):
                count += operators(attribute.g)
    return count


def make(name: str, size: Size, out: Path) -> str:
    """Export and check one model and return a line that describes the file."""
    architecture = ARCHITECTURES[name]
    dynamic = architecture.dynamic if size == "tiny" else {}
    exporters = {"dynamo": export_dynamo, "torchscript": export_torchscript}
    export = exporters[architecture.exporter]
    sample = build(name, size)
    path = out / f"{name}.onnx"
    with torch.no_grad():
        with quiet():
            model = export(sample, architecture.opset, dynamic, architecture.fold_batch_norm)
        strip(model)
        path.write_bytes(model.SerializeToString(deterministic=True))
        difference = check(path, sample, dynamic)
    return f"{name}: {path.stat().st_size / 1000:.0f} kB, {len(model.graph.node)} nodes, within {difference:.1e} of PyTorch"


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Make the ONNX models that relayc is tested and measured with.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--size", choices=("tiny", "full"), default="tiny")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("--ops", action="store_true", help="also list the operators")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(ARCHITECTURES))
    if unknown:
        parser.error(f"no such model: {', '.join(unknown)}")
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.names or ARCHITECTURES:
        print(make(name, options.size, options.out), flush=True)
        if options.ops:
            model = onnx.load(options.out / f"{name}.onnx")
            for operator, count in sorted(operators(model.graph).items()):
                print(f"    {operator} x{count}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
