"""`relayc.quantize` and `relayc quantize`: ONNX models in floats to models in 8 or 4 bits, calibrated by programs that relayc compiles.

The result is an ONNX model too, with QuantizeLinear and DequantizeLinear (QDQ) or MatMulNBits, which other engines load; relayc's pass
FakeQuantizationToInteger makes integer kernels of it.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto

from relayc.calibration import METHODS, Histogram, Largest, NotFinite, Products, Steps, is_finite, merged, observe, range_of, steps_of
from relayc.nearest import nearest
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile as compile_
from relayc.runtime import Module
from relayc.tools.quantize.data import Samples, open_samples, script_names
from relayc.tools.quantize.graph import Graph, prepare
from relayc.tools.quantize.layers import OPERATORS, Layer, decibels, find_layers, quantize_weights
from relayc.tools.quantize.qdq import plan, write
from relayc.tools.quantize.result import LayerReport, Quantized
from relayc.tools.quantize.smooth import smooth, smoothable
from relayc.tools.quantize.twin import Alone, Call, Metric, Score, Twin, choose, score
from relayc.tools.quantize.weight_only import quantize_blocks
from relayc.tools.timing import Comparison, compare_times

__all__ = ["LayerReport", "Quantized", "Settings", "quantize"]

Progress = Callable[..., None]


@dataclass(frozen=True)
class Settings:
    """How a model is quantised: the options of `relayc.quantize`, which describes them."""

    method: str = "mse"
    percentile: float = 99.99
    activations: str = "uint8"
    reduce_range: bool | None = None
    smooth: float | None = None
    correct_bias: bool = True
    keep: Sequence[str] = ()
    max_drop: float | None = None
    weight_only: int | None = None
    block_size: int = 32
    accuracy_level: int = 0
    gptq: bool = False
    samples: int | None = None
    times: float = 0.0
    compile_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _one_of("method", self.method, METHODS)
        _one_of("activations", self.activations, ("uint8", "int8"))
        _one_of("weight_only", self.weight_only, (None, 4, 8))
        if not 50 < self.percentile <= 100:
            raise ValueError(f"percentile: expected a number above 50, up to 100, found {self.percentile}")
        if self.smooth is not None and not 0 <= self.smooth <= 1:
            raise ValueError(f"smooth: expected a number from 0 to 1, found {self.smooth}")
        if self.block_size < 16 or self.block_size & (self.block_size - 1):
            raise ValueError(f"block_size: expected a power of two, 16 or more, found {self.block_size}")
        if self.samples is not None and self.samples < 1:
            raise ValueError(f"samples: expected 1 or more, found {self.samples}")
        if self.max_drop is not None and not self.max_drop >= 0:
            raise ValueError(f"max_drop: expected 0 or more, found {self.max_drop}")
        _one_of("accuracy_level", self.accuracy_level, tuple(range(5)))
        if self.accuracy_level and self.weight_only is None:
            raise ValueError("accuracy_level: expected weight_only, as it is an attribute of products with weights in blocks")
        if self.gptq and self.weight_only is None:
            raise ValueError("gptq: expected weight_only, as GPTQ rounds weights in blocks")
        if self.reduce_range and self.weight_only is not None:
            raise ValueError("reduce_range: expected activations that are quantised, found weight_only")
        if self.smooth is not None and self.weight_only is not None:
            raise ValueError("smooth: expected activations that are quantised, found weight_only")

    @property
    def reduces_range(self) -> bool:
        """Whether weights have 7 bits."""
        return Target(self.compile_options.get("target", "cpu")).reduces_range if self.reduce_range is None else self.reduce_range

    def compile(self, model: ModelProto) -> Module:
        """A program of a model."""
        return compile_(model, **self.compile_options)


def _one_of(name: str, value: Any, choices: Sequence[Any]) -> None:
    if value not in choices:
        raise ValueError(f"{name}: expected {' or '.join(map(str, choices))}, found {value}{nearest(value, choices)}")


def quantize(model: Any, data: Any = None, *, metric: Metric | None = None, progress: Progress | None = None, **options: Any) -> Quantized:
    """Quantises the convolutions and products of constant weights in an ONNX model.

    Weights become symmetric int8 with a scale for each output channel, biases int32, and the activations that layers read uint8 with one
    scale and zero point a tensor. `weight_only` quantises nothing but the weights of products, in blocks.

    Args:
      model: path of an ONNX file, its bytes, or an onnx.ModelProto, in floats.
      data: what the model gets in use: samples as dicts of arrays by input name, a function that gives them, or a path: of a folder of .npz
        or .npy files, of an .npz file, or of a Python script with the function `data` (and `metric`); see docs/quantization.md.
        `weight_only` without `gptq` and `max_drop` needs none.
      metric: a function of the outputs and the sample, each arrays by name, that gives a finite number, larger for better; its mean over
        the samples is the quality of a model. With a metric samples may have further arrays beside the inputs, as labels.
      progress: called with (what is done, how many are done, how many there are or None).
      method: how the range of an activation is chosen: "minmax" (all values), "percentile", "entropy" (the least Kullback-Leibler
        divergence), or "mse" (the least squared error; the default).
      percentile: of the values that are in the range of the method "percentile".
      activations: "uint8" with a zero point, or "int8" around zero.
      reduce_range: whether weights have 7 bits, -63 to 63, instead of 8: without VNNI and AMX their products are faster, as pmaddubsw adds
        two of them in 16 bits. By default what is faster on the target in `compile_options`.
      smooth: alpha of SmoothQuant, such as 0.5: moves the size of large channels from activations behind a normalisation into weights.
      correct_bias: whether biases take back the mean error of each output channel, where it is beyond chance.
      keep: names (with * and ?) or operators of layers that stay in floats.
      max_drop: the most that the metric may lose, in its own unit; without a metric the error of the model's results as a share of their
        root mean square. The most sensitive layers stay in floats as far as it takes.
      weight_only: 4 or 8: bits of the weights of products, in blocks of `block_size` inputs.
      accuracy_level: of the products with these (accuracy_level of MatMulNBits): 0 or 1 as in float32, 2 float16, 3 bfloat16, 4 data in
        8 bits; an engine may be more exact.
      gptq: whether these are rounded by GPTQ, which moves the error of a weight to those that it can still change.
      samples: how many samples are read at most.
      times: seconds for timing both models against each other; 0 for no times.
      compile_options: of `relayc.compile`, for the programs that measure: target, shapes, dims, cache, ...

    Raises:
      TypeError, ValueError: an option, the model, the data or what the metric gives are not as expected; ValueError for any exception in
        a script, which is its cause.
    """
    names = [one.name for one in fields(Settings)]
    for name in options:
        if name not in names:
            raise TypeError(f"quantize: expected options ({', '.join(['metric', 'progress', *names])}), found {name}{nearest(name, names)}")
    settings, where = Settings(**options), "data"
    if isinstance(data, (str, os.PathLike)) and Path(data).is_file() and Path(data).suffix == ".py":
        where, found = str(data), script_names(Path(data))
        data, metric = found["data"], metric or found.get("metric")
    if metric is not None and not callable(metric):
        raise TypeError(f"{where}: metric: expected a function of outputs and a sample that gives a number, found {metric!r}")
    if metric is not None and data is None:
        raise ValueError("metric: expected data")
    show = progress or (lambda *_: None)
    show("reading the model")
    graph = prepare(model)
    samples = None
    if data is not None:
        shapes = settings.compile_options.get("shapes")
        samples = open_samples(data, graph.inputs, shapes, metric is not None, settings.samples, where)
    elif settings.weight_only is None or settings.gptq or settings.max_drop is not None or settings.times:
        raise ValueError("quantize: expected data to calibrate on, found none")
    return _Work(graph, settings, samples, metric, show).run()


class _Work:
    """A model that is being quantised."""

    def __init__(self, graph: Graph, settings: Settings, samples: Samples | None, metric: Metric | None, show: Progress) -> None:
        self.floats = self.graph = graph
        self.settings, self.samples, self.metric, self.show = settings, samples, metric, show
        self.reference: Module | None = None
        self.steps: dict[str, Steps] = {}
        self.sensitivity: dict[str, float] = {}
        self.every: list[Layer] = find_layers(graph, (), self._operators())
        self.layers: list[Layer] = find_layers(graph, settings.keep, self._operators())
        if not self.layers:
            raise ValueError(f"quantize: expected layers with constant weights in f32 ({', '.join(self._operators())}), found none")

    def _operators(self) -> tuple[str, ...]:
        return ("Gemm", "MatMul") if self.settings.weight_only is not None else OPERATORS

    def run(self) -> Quantized:
        settings = self.settings
        if settings.weight_only is not None:
            self._round_blocks(settings.weight_only)
        else:
            self._smooth()
            self._calibrate()
        chosen = list(self.layers)
        alone: dict[str, Alone] = {}
        if self.samples is not None:
            self.show("compiling")
            twin = Twin(self.graph, self.layers, settings.compile)
            twin.measure(self.samples, self.show)
            alone = {layer.name: found for layer, found in zip(self.layers, twin.alone, strict=True)}
            if settings.correct_bias:
                self._correct(alone)
            if settings.max_drop is not None:
                kept, shares = choose(twin, self.samples, self.metric, settings.max_drop, self.show)
                self.sensitivity = {layer.name: share for layer, share in zip(self.layers, shares, strict=True)}
                chosen = [self.layers[i] for i in kept]
        model, module, found = self._checked(chosen)
        times, seconds = self._times(module)
        forms = {layer.name for layer in chosen}
        reports = [self._report(layer, layer.name in forms, alone.get(layer.name), seconds) for layer in self.every]
        return Quantized(model, reports, found, times)

    def _program(self, outputs: Sequence[str] = ()) -> Module:
        """The model in floats, with further tensors as its results."""
        self.show("compiling")
        module = self.settings.compile(self.graph.copy(self.graph.nodes, {}, [name for name in outputs if name not in self.graph.outputs]))
        if self.graph is self.floats:
            self.reference = module
        return module

    def _observe(self, observers: Any, what: str) -> None:
        """Shows tensors of all samples to observers by name."""
        assert self.samples is not None
        inputs = [value.name for value in self.graph.inputs]
        module = self._program([name for name in observers if name not in inputs])
        order = [*inputs, *self.graph.producers]
        ordered = {name: observers[name] for name in order if name in observers}
        for number, sample in enumerate(self.samples.tracked(what, self.show)):
            given = self.samples.inputs_of(sample)
            try:
                observe(ordered, {**given, **module.run(given)})
            except NotFinite as error:
                raise ValueError(f"{self.samples.place(number)}: {error}{self._cause(error.tensor, given)}") from None

    def _cause(self, tensor: str, given: Mapping[str, np.ndarray]) -> str:
        """The end of an error about a tensor that is not finite: the node that computes it, and the inputs that are not finite either."""
        node = self.graph.producers.get(tensor)
        if node is None:
            return ""
        wrong = [name for name, array in given.items() if not is_finite(array)]
        return f", the result of {node.op_type} {node.name}" + (f"; the input {wrong[0]} is not finite either" if wrong else "")

    def _smooth(self) -> None:
        if self.settings.smooth is None:
            return
        groups = smoothable(self.graph, self.layers)
        if groups:
            largest = {name: Largest() for name in groups}
            self._observe(largest, "measuring channels")
            self.graph = smooth(self.graph, groups, {name: one.values for name, one in largest.items()}, self.settings.smooth)
            self.layers = find_layers(self.graph, self.settings.keep, self._operators())

    def _calibrate(self) -> None:
        """Steps of all tensors that layers may read, then weights."""
        settings, how = self.settings, plan(self.graph, self.layers)
        histograms = {name: Histogram() for name in how.tensors if name not in how.limited}
        self._observe(histograms, "calibrating")
        for done, group in enumerate(how.groups):
            self.show("choosing ranges", done, len(how.groups))
            most = 254 + (settings.activations == "uint8")
            seen = [histograms[name] for name in group if name in histograms]
            ranges = [range_of(histogram, settings.method, settings.percentile, most) for histogram in seen]
            self.steps.update(dict.fromkeys(group, steps_of(*merged(ranges), settings.activations)))
        for layer in self.layers:
            layer.steps, layer.output_steps = self.steps[layer.data], self.steps.get(layer.output)
            quantize_weights(self.graph, layer, 63 if settings.reduces_range else 127)

    def _round_blocks(self, bits: int) -> None:
        products = {layer.data: Products() for layer in self.layers} if self.settings.gptq else {}
        if products:
            self._observe(products, "calibrating")
        for done, layer in enumerate(self.layers):
            self.show("rounding weights", done, len(self.layers))
            curvature = products[layer.data].values if products else None
            quantize_blocks(self.graph, layer, bits, self.settings.block_size, curvature, self.settings.accuracy_level)

    def _correct(self, alone: Mapping[str, Alone]) -> None:
        for layer in self.layers:
            if layer.bias is not None or layer.node.op_type != "MatMul":
                found = alone[layer.name].correction()
                layer.corrected = found if found.any() else layer.corrected

    def _checked(self, chosen: list[Layer]) -> tuple[ModelProto, Module | None, Score | None]:
        """The model with the chosen layers quantised, compiled as it will be used and compared with floats. Layers become floats until the
        limit holds."""
        while True:
            how = plan(self.graph, chosen)
            model = write(self.graph, chosen, {name: self.steps[name] for name in how.tensors} if self.steps else {}, how)
            if self.samples is None:
                return model, None, None
            floats = self.reference or self._program()
            self.show("compiling")
            module = self.settings.compile(model)
            found = score(self.samples, self._call(floats), self._call(module), self.metric, "comparing", self.show)
            most = self.settings.max_drop
            if most is None or found.drop <= most or not chosen:
                return model, module, found
            chosen.remove(max(chosen, key=lambda layer: self.sensitivity[layer.name]))

    def _call(self, module: Module) -> Call:
        """The results of a program, without the tensors that it has to show."""
        assert self.samples is not None
        inputs_of, outputs = self.samples.inputs_of, self.floats.outputs

        def call(sample: Mapping[str, Any]) -> dict[str, Any]:
            found = module.run(inputs_of(sample))
            return {name: found[name] for name in outputs}

        return call

    def _times(self, quantised: Module | None) -> tuple[Comparison | None, list[dict[str, float]]]:
        """Calls of both models against each other, and the seconds of the kernels of each layer in both."""
        if not self.settings.times or quantised is None or self.samples is None:
            return None, []
        floats = self.settings.compile(self.floats.copy(self.floats.nodes, {}))
        self.show("timing")
        inputs = self.samples.inputs_of(next(iter(self.samples)))
        found = compare_times(lambda: floats.run(inputs), lambda: quantised.run(inputs), self.settings.times)
        return found, [_seconds(module, inputs, self.every) for module in (floats, quantised)]

    def _report(self, layer: Layer, is_chosen: bool, alone: Alone | None, seconds: Sequence[Mapping[str, float]]) -> LayerReport:
        arrays = [self.floats.constants[name] for name in (layer.weight, layer.bias) if name is not None]
        before = after = sum(array.nbytes for array in arrays)
        tried = next((one for one in self.layers if one.name == layer.name), None)
        form, weights_db, output_db = "float", None, None
        if tried is not None and tried.weights is not None:
            reference = self.graph.constants[tried.weight].astype(np.float64)
            weights_db = decibels(float((reference**2).sum()), float(((reference - tried.weights) ** 2).sum()))
            output_db = None if alone is None else alone.decibels(tried.corrected)
            if is_chosen:
                form = "int8" if tried.block is None else f"{tried.block.bits} bits"
                after = tried.nbytes + before - arrays[0].nbytes
        first, second = (one.get(layer.name, 0.0) for one in seconds) if seconds else (None, None)
        sensitivity = self.sensitivity.get(layer.name)
        return LayerReport(layer.name, layer.node.op_type, form, weights_db, output_db, sensitivity, before, after, first, second)


def _seconds(module: Module, inputs: Mapping[str, np.ndarray], layers: Sequence[Layer]) -> dict[str, float]:
    """The time of the kernels that have a layer in them, in equal shares where they have several."""
    names, found = {layer.name for layer in layers}, dict[str, float]()
    for row in module.profile(inputs).rows:
        inside = [name for name in row.sources if name in names]
        for name in inside:
            found[name] = found.get(name, 0.0) + row.seconds / len(inside)
    return found
