"""The result of `relayc.quantize`: the model, and a report for each layer."""

import math
import os
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import onnx
from onnx import ModelProto
from rich.table import Table

from relayc.tools.quantize.twin import Score
from relayc.tools.tables import NUMBER, make_table, scaled
from relayc.tools.timing import Comparison

_LARGEST_FILE = 1 << 30
"""Bytes of a model above which its weights are in a separate file."""


@dataclass(frozen=True)
class LayerReport:
    """A layer before and after.

    Attributes:
      form: "int8", "4 bits", "8 bits", or "float".
      weights_db, output_db: the power of the weights, and of the result, in that of their error, in dB; of the result with the data of the
        model in floats, so that the errors of other layers do not count. None where that was not measured.
      sensitivity: the error of the model's results with this layer alone quantised, as a share of their root mean square; None where no
        limit asked for it.
      bytes_before, bytes_after: of the weights and the bias.
      seconds_before, seconds_after: of the kernels that have the layer in them; None without times.
    """

    name: str
    operator: str
    form: str
    weights_db: float | None
    output_db: float | None
    sensitivity: float | None
    bytes_before: int
    bytes_after: int
    seconds_before: float | None = None
    seconds_after: float | None = None


@dataclass(frozen=True)
class Quantized:
    """A quantised model.

    Attributes:
      model: an onnx.ModelProto.
      layers: reports in the order of the model.
      score: the results beside those of the model in floats, over all samples, computed by relayc; None without samples.
      times: of calls of both models; None where nothing asked for them.
    """

    model: ModelProto
    layers: list[LayerReport]
    score: Score | None = None
    times: Comparison | None = None

    @property
    def snr(self) -> float | None:
        """The power of the model's results in that of their error, in dB, of the output that is farthest; None without samples."""
        return None if self.score is None else self.score.deviation.decibels

    @property
    def metric(self) -> tuple[float, float] | None:
        """The metric of the model in floats, and of the quantised one; None without a metric."""
        return None if self.score is None else self.score.metric

    def save(self, path: "str | os.PathLike") -> None:
        """Writes the model as an ONNX file, with a separate file of weights if it is large."""
        if self.model.ByteSize() < _LARGEST_FILE:
            onnx.save(self.model, path)
            return
        onnx.save(deepcopy(self.model), path, save_as_external_data=True, location=f"{Path(path).name}.data")

    def table(self) -> Table:
        """The report as a table of rich."""
        timed = any(layer.seconds_before is not None for layer in self.layers)
        rated = any(layer.sensitivity is not None for layer in self.layers)
        columns: dict[str, dict[str, Any]] = {"layer": {"overflow": "fold"}, "operator": {}, "form": {}}
        numbers = ["weights dB", "output dB", *(["sensitivity"] if rated else []), "bytes", "after"]
        numbers += ["us", "after us"] if timed else []
        table = make_table("layers", **columns, **dict.fromkeys(numbers, NUMBER))
        for layer in self.layers:
            row = [layer.name, layer.operator, layer.form, _db(layer.weights_db), _db(layer.output_db)]
            row += [_percent(layer.sensitivity)] if rated else []
            row += [scaled(layer.bytes_before), scaled(layer.bytes_after)]
            row += [_micro(layer.seconds_before), _micro(layer.seconds_after)] if timed else []
            table.add_row(*row)
        table.add_section()
        sums = [scaled(sum(getattr(layer, name) for layer in self.layers)) for name in ("bytes_before", "bytes_after")]
        times = [] if not timed else ["", ""] if self.times is None else [_micro(self.times.base_seconds), _micro(self.times.seconds)]
        table.add_row("model", "", "", "", _db(self.snr), *([""] if rated else []), *sums, *times)
        return table

    def summary(self) -> str:
        """The results in a line."""
        parts = [f"{sum(layer.form != 'float' for layer in self.layers)} of {len(self.layers)} layers quantised"]
        parts += [f"results {_db(self.snr)} dB above their error"] if self.score is not None else []
        parts += ["metric {:.4g} (in floats {:.4g})".format(*reversed(self.metric))] if self.metric is not None else []
        parts += [f"{self.times.ratio:.2f} times as fast"] if self.times is not None else []
        return ", ".join(parts)

    def as_data(self) -> dict[str, Any]:
        """The report as plain data; ratios without an error are None."""
        layers = [{name: _finite(value) for name, value in asdict(layer).items()} for layer in self.layers]
        metric = None if self.metric is None else {"float": self.metric[0], "quantized": self.metric[1]}
        return {"snr_db": _finite(self.snr), "metric": metric, "times": self.times and self.times.as_data(), "layers": layers}


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _db(value: float | None) -> str:
    return "" if value is None else "exact" if value == math.inf else f"{value:.1f}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.2%}"


def _micro(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e6:.1f}"
