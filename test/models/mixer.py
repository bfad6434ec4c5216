"""A network for time series, of linear layers only."""

from __future__ import annotations

import torch
from sample import Sample, Size
from torch import Tensor, nn


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
