"""A model with every layer twice, in floats and quantised, and a switch between the two.

One compilation answers what each layer loses by itself, how that shows in the results of the model, and what any choice of layers gives.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper

from relayc.tools.quantize.data import Samples
from relayc.tools.quantize.graph import Graph
from relayc.tools.quantize.layers import Layer, decibels
from relayc.tools.quantize.qdq import Writer

_SURE = 4
"""Standard errors that a mean has to be away from zero."""
SWITCHES, CORRECTIONS = "quantize.switches", "quantize.corrections"

Metric = Callable[[Mapping[str, np.ndarray], Mapping[str, np.ndarray]], float]


class Deviation:
    """How far results are from those of the model in floats: the error's power in that of the result, of the output that is farthest."""

    def __init__(self) -> None:
        self.sums: dict[Any, np.ndarray] = {}

    def add(self, reference: Mapping[Any, Any], found: Mapping[Any, Any]) -> None:
        for name, value in reference.items():
            a, b = np.asarray(value), np.asarray(found[name])
            if a.dtype.kind == "f":
                a, b = a.astype(np.float64), b.astype(np.float64)
                with np.errstate(invalid="ignore"):
                    # Equal infinities have no error, and any other pair with one is infinitely wrong.
                    error = np.where(a == b, 0, np.nan_to_num(a - b, nan=np.inf, posinf=np.inf, neginf=np.inf))
                pair = [float((a[np.isfinite(a)] ** 2).sum()), float((error**2).sum())]
            else:
                pair = [a.size, float(np.count_nonzero(a != b))]
            self.sums[name] = self.sums.get(name, np.zeros(2)) + pair

    @property
    def worst(self) -> np.ndarray:
        return max(self.sums.values(), key=lambda pair: pair[1] / max(pair[0], 1e-300), default=np.zeros(2))

    @property
    def share(self) -> float:
        """The error as a share of the result's root mean square."""
        signal, noise = self.worst
        return float(np.sqrt(noise / max(signal, 1e-300)))

    @property
    def decibels(self) -> float:
        return decibels(*self.worst)


@dataclass
class Score:
    """A quantised model beside the model in floats, over all samples."""

    deviation: Deviation = field(default_factory=Deviation)
    metrics: list[tuple[float, float]] = field(default_factory=list)

    @property
    def metric(self) -> tuple[float, float] | None:
        """The metric in floats, and quantised; None without one."""
        if not self.metrics:
            return None
        floats, quantised = np.mean(self.metrics, 0)
        return float(floats), float(quantised)

    @property
    def drop(self) -> float:
        """What is lost: of the metric; without one, the error as a share of the result's root mean square."""
        found = self.metric
        return self.deviation.share if found is None else found[0] - found[1]


Call = Callable[[Mapping[str, np.ndarray]], Mapping[str, Any]]


def score(samples: Samples, floats: Call, quantised: Call, metric: Metric | None, what: str, progress: Callable[..., None]) -> Score:
    """Both ways on every sample."""
    found = Score()
    for number, sample in enumerate(samples.tracked(what, progress)):
        a, b = floats(sample), quantised(sample)
        for name, value in a.items():
            array = np.asarray(value)
            if array.dtype.kind == "f" and np.isnan(array).any():
                raise ValueError(f"{samples.place(number)}: expected numbers in the result {name} of the model in floats, found nan")
        found.deviation.add(a, b)
        if metric is not None:
            models = (("model in floats", a), ("quantised model", b))
            first, second = (_rate(metric, outputs, sample, f"{samples.place(number)}, {which}") for which, outputs in models)
            found.metrics.append((first, second))
    return found


def _rate(metric: Metric, outputs: Mapping[str, Any], sample: Mapping[str, np.ndarray], place: str) -> float:
    """What a metric gives. Raises TypeError where it gives no number, ValueError where the number is not finite."""
    given = metric(outputs, sample)
    try:
        found = math.nan if isinstance(given, (str, bytes)) else float(given)
    except (TypeError, ValueError):
        raise TypeError(f"{place}: expected a number from the metric, found {given!r}") from None
    if not math.isfinite(found):
        raise ValueError(f"{place}: expected a finite number from the metric, found {given!r}")
    return found


@dataclass
class Alone:
    """What a layer loses by itself, its data being those of the model in floats: sums over samples for each channel, and elements."""

    sums: np.ndarray
    elements: int = 0

    def correction(self) -> np.ndarray:
        """What takes back the mean error of each channel, where it is beyond chance: an outlier that was cut is no reason."""
        count = max(self.elements, 1)
        mean = self.sums[0] / count
        spread = np.sqrt(np.maximum(self.sums[1] / count - mean**2, 0) / count)
        return np.where(np.abs(mean) > _SURE * spread, -mean, 0).astype(np.float32)

    def decibels(self, correction: np.ndarray) -> float:
        """The result's power in that of the error with a correction, or with none (an empty one)."""
        added = correction.astype(np.float64) if correction.size else np.zeros(self.sums.shape[1])
        noise = self.sums[1] + 2 * added * self.sums[0] + self.elements * added**2
        return decibels(float(self.sums[2].sum()), float(np.maximum(noise, 0).sum()))


class Twin:
    """The model with switches.

    Attributes:
      alone: by layer, once it was measured.
    """

    def __init__(self, graph: Graph, layers: Sequence[Layer], compile: Callable[[ModelProto], Any]) -> None:
        self.graph, self.layers = graph, layers
        self.channels = [layer.channels(graph.constants[layer.weight]) for layer in layers]
        self.module = compile(self._model())
        self.alone = [Alone(np.zeros((3, count))) for count in self.channels]

    def _model(self) -> ModelProto:
        writer, by_name = Writer(self.graph), {layer.name: i for i, layer in enumerate(self.layers)}
        for node in self.graph.nodes:
            copied = deepcopy(node)
            writer.nodes.append(copied)
            if node.name in by_name:
                self._add(writer, copied, by_name[node.name])
        outputs = [f"{layer.name}.{part}" for layer in self.layers for part in ("sums", "size")]
        switches = helper.make_tensor_value_info(SWITCHES, TensorProto.BOOL, [len(self.layers)])
        corrections = helper.make_tensor_value_info(CORRECTIONS, TensorProto.FLOAT, [sum(self.channels)])
        return self.graph.copy(writer.nodes, writer.constants, outputs, [switches, corrections])

    def _add(self, writer: Writer, node: NodeProto, index: int) -> None:
        """The quantised form of a node, the choice, and the sums of the difference."""
        layer, name, count = self.layers[index], node.name, self.channels[index]
        assert layer.weights is not None
        node.output[0] = floats = f"{name}.floats"
        data = layer.data if layer.steps is None else writer.through_steps(layer.data, layer.steps, f"{name}.data")
        other = deepcopy(node)
        other.name, other.input[0], other.output[0] = f"{name}.twin", data, f"{name}.product"
        other.input[1] = writer.constant(f"{name}.weight.twin", layer.weights)
        writer.nodes.append(other)
        start = sum(self.channels[:index])
        ends = [writer.constant(f"{name}.{part}", np.array([at])) for part, at in (("start", start), ("end", start + count))]
        correction = writer.emit("Slice", [CORRECTIONS, *ends], f"{name}.correction")
        rank = layer.weights.ndim if layer.is_image else 1
        shape = writer.constant(f"{name}.shape", np.array([count, *[1] * (rank - 2)] if layer.is_image else [count]))
        found = writer.emit("Add", [f"{name}.product", writer.emit("Reshape", [correction, shape], f"{name}.shaped")], f"{name}.quantized")
        if layer.output_steps is not None:
            found = writer.through_steps(found, layer.output_steps, f"{name}.requantized")
        switch = writer.emit("Gather", [SWITCHES, writer.constant(f"{name}.index", np.array(index))], f"{name}.switch")
        writer.emit("Where", [switch, found, floats], layer.output)
        error = writer.emit("Sub", [f"{name}.quantized", floats], f"{name}.error")
        rows = [error]
        for part, of in (("error", error), ("signal", floats)):
            rows.append(writer.emit("Mul", [of, of], f"{name}.{part}.square"))
        if not layer.is_image:
            flat = writer.constant(f"{name}.rows", np.array([-1, count]))
            rows = [writer.emit("Reshape", [row, flat], f"{row}.rows") for row in rows]
        axes = writer.constant(f"{name}.axes", np.array([0, *range(2, rank)] if layer.is_image else [0]))
        sums = [writer.emit("ReduceSum", [row, axes], f"{row}.sum", keepdims=0) for row in rows]
        zero = writer.constant(f"{name}.zero", np.array([0]))
        writer.emit("Concat", [writer.emit("Unsqueeze", [s, zero], f"{s}.row") for s in sums], f"{name}.sums", axis=0)
        writer.emit("Size", [floats], f"{name}.size")

    def measure(self, samples: Samples, progress: Callable[..., None]) -> None:
        """Adds up what each layer loses by itself."""
        for sample in samples.tracked("measuring layers", progress):
            found = self._run(samples.inputs_of(sample), np.zeros(len(self.layers), bool))
            for layer, alone, count in zip(self.layers, self.alone, self.channels, strict=True):
                alone.sums += found[f"{layer.name}.sums"]
                alone.elements += int(found[f"{layer.name}.size"]) // count

    def _run(self, inputs: Mapping[str, np.ndarray], switches: np.ndarray) -> dict[str, Any]:
        corrected = [layer.corrected if layer.corrected.size else np.zeros(n) for layer, n in zip(self.layers, self.channels, strict=True)]
        return self.module.run({**inputs, SWITCHES: switches, CORRECTIONS: np.concatenate(corrected).astype(np.float32)})

    def call(self, samples: Samples, switches: np.ndarray) -> Call:
        """The model with some layers quantised."""
        return lambda sample: {
            name: value for name, value in self._run(samples.inputs_of(sample), switches).items() if name in self.graph.outputs
        }

    def sensitivity(self, samples: Samples, progress: Callable[..., None]) -> list[float]:
        """How far the results are from those in floats with each layer quantised alone, as a share of their root mean square."""
        count = len(self.layers)
        found, done = [Deviation() for _ in range(count)], 0
        total = None if samples.count is None else samples.count * count
        for sample in samples:
            reference = self.call(samples, np.zeros(count, bool))(sample)
            for i, switches in enumerate(np.eye(count, dtype=bool)):
                found[i].add(reference, self.call(samples, switches)(sample))
                done += 1
                progress("sensitivity", done, total)
        return [one.share for one in found]


def choose(
    twin: Twin, samples: Samples, metric: Metric | None, most: float, progress: Callable[..., None]
) -> tuple[list[int], list[float]]:
    """The layers to quantise so that at most `most` is lost, and the sensitivity of all.

    Layers become floats in the order of their sensitivity, as few as the limit allows: their number is found by bisection.
    """
    sensitivity = twin.sensitivity(samples, progress)
    order = [int(i) for i in np.argsort(sensitivity)]  # the most sensitive last
    floats = twin.call(samples, np.zeros(len(order), bool))

    def fits(count: int) -> bool:
        switches = np.isin(np.arange(len(order)), order[:count])
        return score(samples, floats, twin.call(samples, switches), metric, f"trying {count} of {len(order)} layers", progress).drop <= most

    chosen = len(order)
    if order and not fits(chosen):
        chosen = bisect_left(range(chosen), True, 1, key=lambda count: not fits(count)) - 1
    return sorted(order[:chosen]), sensitivity
