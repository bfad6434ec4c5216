"""Time series, and recurrent networks."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import transformers
from inputs import Input, Symbol
from network import Architecture, Network, called
from torch import Tensor, nn

BATCH = {"batch": Symbol(high=64, example=2)}
STEPS = BATCH | {"steps": Symbol(high=1500, example=9)}
SMALL = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
SMALL |= {"encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "prediction_length": 8, "context_length": 24, "num_time_features": 2}


def forecaster(name: str, **options: Any) -> Network:
    """An encoder and a decoder over values, their lags and features of time, with parameters of a distribution at each step."""
    config = getattr(transformers, f"{name}Config")(**(SMALL | {"lags_sequence": [1, 2, 3]} | options))
    model = getattr(transformers, f"{name}Model")(config)
    past = 24 + 3
    inputs = {"past_values": Input(("batch", past)), "past_time_features": Input(("batch", past, 2))}
    inputs |= {"past_observed_mask": Input(("batch", past), "right-padded", dtype="float32"), "future_values": Input(("batch", 8))}
    return called(model, inputs | {"future_time_features": Input(("batch", 8, 2))}, use_cache=False)


def patches(name: str, head: str, **options: Any) -> Network:
    """A transformer on patches of a window."""
    sizes = {"context_length": 64, "patch_length": 8, "patch_stride": 4, "num_input_channels": 3, "d_model": 32, "prediction_length": 8}
    config = getattr(transformers, f"{name}Config")(**(sizes | options))
    return called(getattr(transformers, name + head)(config), {"past_values": Input(("batch", 64, 3))})


def autoformer() -> Network:
    return forecaster("Autoformer", moving_average=5, autocorrelation_factor=2)


class Recurrent(nn.Module):
    """A recurrent layer with its states going in and out, and a linear layer on what it gives."""

    def __init__(self, kind: type[nn.RNNBase], **options: Any) -> None:
        super().__init__()
        self.layer = kind(12, 20, batch_first=True, **options)
        self.head = nn.Linear(20 * (2 if options.get("bidirectional") else 1), 5)

    def forward(self, x: Tensor, *states: Tensor) -> Any:
        found, after = self.layer(x, states if len(states) > 1 else states[0] if states else None)
        return self.head(found), after


def recurrent(kind: type[nn.RNNBase], states: int = 0, layers: int = 1, **options: Any) -> Network:
    inputs = {"x": Input(("batch", "steps", 12))} | {f"state{i}": Input((layers, "batch", 20)) for i in range(states)}
    model = Recurrent(kind, num_layers=layers, **options)
    return called(model, inputs, lambda model, **values: model(*values.values()))


class Convolutional(nn.Module):
    """A temporal convolutional network: dilated, causal, with residuals and weight norms."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        norm = torch.nn.utils.parametrizations.weight_norm
        self.layers = nn.ModuleList(norm(nn.Conv1d(width if i else 4, width, 3, dilation=2**i)) for i in range(5))
        self.narrow = nn.Conv1d(4, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        for i, layer in enumerate(self.layers):
            y = torch.relu(layer(nn.functional.pad(x, (2 * 2**i, 0))))
            x = y + (x if i else self.narrow(x))
        return x


class NBeats(nn.Module):
    """Stacks of linear layers that take away what they explain."""

    def __init__(self, back: int = 48, ahead: int = 12, width: int = 32) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(back, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, back + ahead))
            for _ in range(3)
        )
        self.back = back

    def forward(self, x: Tensor) -> Tensor:
        total: Any = 0
        for block in self.blocks:
            found = block(x)
            x, total = x - found[:, : self.back], total + found[:, self.back :]
        return total


class DLinear(nn.Module):
    """A moving average and what is left of it, each through a linear layer along time."""

    def __init__(self, length: int = 96, ahead: int = 24, window: int = 25) -> None:
        super().__init__()
        self.trend, self.rest, self.window = nn.Linear(length, ahead), nn.Linear(length, ahead), window

    def forward(self, x: Tensor) -> Tensor:
        half = (self.window - 1) // 2
        wide = torch.cat([x[:, :1].repeat(1, half, 1), x, x[:, -1:].repeat(1, half, 1)], 1)
        trend = nn.functional.avg_pool1d(wide.transpose(1, 2), self.window, 1)
        return (self.trend(trend) + self.rest(x.transpose(1, 2) - trend)).transpose(1, 2)


PATCHES = {"num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 48, "scaling": "std", "num_targets": 3}

ROWS = {
    "informer": Architecture(partial(forecaster, "Informer", sampling_factor=2), BATCH),
    "autoformer": Architecture(autoformer, BATCH),
    "time-series-transformer": Architecture(partial(forecaster, "TimeSeriesTransformer"), BATCH),
    "patch-tst": Architecture(partial(patches, "PatchTST", "ForPrediction", **PATCHES), BATCH),
    "patch-tsmixer": Architecture(partial(patches, "PatchTSMixer", "ForPrediction", num_layers=2), BATCH),
    "lstm": Architecture(partial(recurrent, nn.LSTM, states=2, layers=2), STEPS),
    "lstm-bidirectional": Architecture(partial(recurrent, nn.LSTM, bidirectional=True), STEPS),
    "gru": Architecture(partial(recurrent, nn.GRU, states=1, layers=1), STEPS),
    "rnn": Architecture(partial(recurrent, nn.RNN, layers=2), STEPS),
    "tcn": Architecture(lambda: called(Convolutional(), {"x": Input(("batch", 4, "steps"))}), STEPS),
    "n-beats": Architecture(lambda: called(NBeats(), {"x": Input(("batch", 48))}), BATCH | {"batch": Symbol(high=4200, example=3)}),
    "d-linear": Architecture(lambda: called(DLinear(), {"x": Input(("batch", 96, 5))}), BATCH),
}
