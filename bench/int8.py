"""`bench int8`: quantised products and models, engine against engine and against floats.

Products are a u8 tensor, s8 weights with a scale for each column, and a u8 result, written with DequantizeLinear and QuantizeLinear. Models
are quantised by onnxruntime.quantization: statically (the same two operators around each operator, calibrated on random inputs), or,
without convolutions, dynamically (DynamicQuantizeLinear and MatMulInteger); and by `relayc.quantize`, calibrated on the same inputs.
Where the target multiplies weights of 7 bits faster, ONNX Runtime's tools also make a file with them, as its documentation advises there.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from rich.table import Table

import relayc
from relayc.bench.engines import ENGINES
from relayc.bench.latency import add_engines, difference_text, ratio_text, threads_text
from relayc.bench.measure import Point, Progress, Result, Settings, check, job_of, load_jobs, measure_model, take_turns
from relayc.bench.models import Case, Source, load_graph, make_case
from relayc.bench.ops import Operation
from relayc.pipelines.context.target import Target
from relayc.tools.onnx_graphs import inputs_of
from relayc.tools.quantize.twin import Deviation
from relayc.tools.tables import NUMBER, make_table

PRODUCTS = (
    "512x512x512,128x3072x768,128x768x3072,64x56-64k1s1,256x56-64k1s1,256x14-1024k1s1,2048x7-512k1s1,"
    "64x56-64k3s1,256x14-256k3s1,512x7-512k3s1,144x56-144k3s1g144"
)
"""The default products; shapes as in `bench ops`."""
CALIBRATIONS = 4
"""Inputs that static quantisation sees."""
FLOAT = "float"


# ---- products -----------------------------------------------------------------------------------------------------------------------


def quantised_operation(operation: Operation, seed: int) -> onnx.ModelProto:
    """A convolution or product of u8 data by constant s8 weights, to u8. Raises ValueError for any other operation."""
    if operation.operator not in ("Conv", "MatMul"):
        raise ValueError(f"int8: expected products and convolutions, found {operation.name}")
    data, weight, result = operation.shapes
    axis = 0 if operation.operator == "Conv" else 1
    depth = operation.flops // (2 * int(np.prod(result)))
    rng = np.random.default_rng(seed)
    constants = {
        "ws": rng.integers(-128, 128, weight).astype(np.int8),
        "w_scale": rng.uniform(0.005, 0.015, weight[axis]).astype(np.float32),
        "w_zero": np.zeros(weight[axis], np.int8),
        "x_scale": np.float32(0.02),
        "x_zero": np.uint8(0),
        "y_scale": np.float32(0.02 * 0.01 * 74 * 148 * depth**0.5 / 64),  # four standard deviations to each side
        "y_zero": np.uint8(128),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["xs", "x_scale", "x_zero"], ["x"]),
        helper.make_node("DequantizeLinear", ["ws", "w_scale", "w_zero"], ["w"], axis=axis),
        operation.node(),
        helper.make_node("QuantizeLinear", ["y", "y_scale", "y_zero"], ["ys"]),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.UINT8, shape) for name, shape in (("xs", data), ("ys", result)))
    graph = helper.make_graph(nodes, operation.name, [x], [y], [numpy_helper.from_array(v, name) for name, v in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def measure_products(operations: Sequence[Operation], settings: Settings, seed: int, progress: Progress) -> list[Point[Operation]]:
    """Measures every operation on every engine. Raises ValueError for one that is no product."""
    points = []
    for operation in operations:
        x = np.random.default_rng(seed).integers(0, 256, operation.shapes[0]).astype(np.uint8)
        results = measure_model(quantised_operation(operation, seed), operation.name, {"xs": x}, seed, settings, progress)
        points.append(Point(operation, {"operation": operation.name, "flops": operation.flops}, results))
    return points


def products_table(points: Sequence[Point[Operation]], peak: float, threads: int) -> Table:
    """One line per operation and engine; `of peak` is the share of the integer peak of vectors, in GOP/s."""
    title = f"u8 x s8 -> u8, {threads_text(threads)}; peak {peak:.0f} GOP/s"
    columns = {name: NUMBER for name in ("us", "ratio", "GOP/s", "of peak", "steps off")}
    table = make_table(title, operation={}, engine={}, **columns)
    for point in points:
        base = next((r.seconds for r in point.results if r.engine == "relayc"), None)

        def cells(result: Result, seconds: float, flops: int = point.subject.flops, base: float | None = base) -> list[str]:
            rate = flops / seconds / 1e9
            off = "" if result.difference is None else f"{result.difference:.0f}"
            return [f"{seconds * 1e6:.1f}", ratio_text(None if base is None else seconds / base), f"{rate:.0f}", f"{rate / peak:.0%}", off]

        add_engines(table, [point.subject.name], point.results, cells)
    return table


# ---- models -------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelPoint:
    """The results of the engines for a quantised model, and for the model in floats."""

    name: str
    form: str
    results: Mapping[tuple[str, str], Result]

    def as_data(self) -> list[dict[str, Any]]:
        """One record an engine and form, as plain data."""
        return [{"model": self.name, "form": form, **result.as_data()} for (_, form), result in self.results.items()]


@contextmanager
def quantised_files(path: Path, inputs: Sequence[Mapping[str, np.ndarray]]) -> Iterator[dict[str, Path]]:
    """A model quantised in the ways that suit it, as files by the name of the way."""
    from onnxruntime import set_default_logger_severity
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_dynamic, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    set_default_logger_severity(3)

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self.rest = iter(inputs)

        def get_next(self) -> Mapping[str, np.ndarray] | None:
            return next(self.rest, None)

    with TemporaryDirectory(prefix="relayc-bench-") as folder:
        at = lambda name: Path(folder) / f"{name}.onnx"  # noqa: E731 (short)
        prepared = at("prepared")
        model = onnx.load(path)
        kept = inputs_of(model.graph)
        del model.graph.input[:]
        model.graph.input.extend(kept)
        newest = max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=1)
        onnx.save(model if newest >= 13 else onnx.version_converter.convert_version(model, 13), prepared)
        quant_pre_process(prepared, prepared, skip_symbolic_shape=True)
        relayc.quantize(path, list(inputs)).save(at("relayc"))
        tools = {"static": partial(quantize_static, per_channel=True, activation_type=QuantType.QUInt8)}
        if not any(node.op_type == "Conv" for node in load_graph(path).node):
            tools["dynamic"] = quantize_dynamic
        files = {}
        for name, tool in tools.items():
            for form, reduced in [(name, False), (f"{name} 7 bits", True)][: 1 + Target().reduces_range]:
                readers = [Reader()] if name == "static" else []
                tool(prepared, at(form), *readers, weight_type=QuantType.QInt8, reduce_range=reduced)
                files[form] = at(form)
        files["relayc"] = at("relayc")
        yield files


def measure_quantised(
    sources: Sequence[Source], settings: Settings, shapes: Mapping[str, Sequence[int]], seed: int, progress: Progress
) -> list[ModelPoint]:
    """Every model in every form on every engine, and on relayc in floats. Raises ValueError for shapes that do not fit a model."""
    points = []
    for source in sources:
        progress(f"{source.name}: quantised")
        with source.file() as path:
            case = make_case(source.name, path, shapes, seed)
            calibration = [make_case(source.name, path, shapes, seed + 1 + i).inputs for i in range(CALIBRATIONS)]
            with quantised_files(path, calibration) as files:
                for form, file in files.items():
                    cases = {(engine, form): replace(case, path=file) for engine in settings.engines}
                    points.append(ModelPoint(source.name, form, _in_turns({**cases, ("relayc", FLOAT): case}, settings, progress)))
    return points


def _in_turns(cases: Mapping[tuple[str, str], Case], settings: Settings, progress: Progress) -> dict[tuple[str, str], Result]:
    """Cases by engine and form, measured in turns. Outputs are compared with ONNX Runtime's of the same form, and relayc's in floats."""
    jobs = {" ".join(key): job_of(case, key[0], settings.threads, settings.precision) for key, case in cases.items()}
    results = {" ".join(key): Result(case.name, key[0]) for key, case in cases.items()}
    with ExitStack() as stack:
        running, outputs = load_jobs(jobs, results, stack, progress)
        for name, found in outputs.items():
            check(results[name], found, outputs.get(f"ort {name.partition(' ')[2]}"))
            deviation = Deviation()
            deviation.add(*(dict(enumerate(values)) for values in (outputs.get(f"relayc {FLOAT}", found), found)))
            results[name].facts["share of error"] = deviation.share
        take_turns(results, running, settings, progress)
    return dict(zip(cases, results.values(), strict=True))


def models_table(points: Sequence[ModelPoint], threads: int) -> Table:
    """One line per model, form and engine; ratios are times relative to relayc on the quantised model, errors are relative to the root mean
    square of the results in floats."""
    title = f"quantised models, batch 1, {threads_text(threads)}"
    table = make_table(title, model={}, form={}, engine={}, **{name: NUMBER for name in ("median ms", "ratio", "difference", "error")})
    for point in points:
        base = next((r.seconds for (engine, form), r in point.results.items() if engine == "relayc" and form != FLOAT), None)
        for i, ((engine, form), result) in enumerate(point.results.items()):
            head = [point.name if i == 0 else "", form, ENGINES[engine].title]
            last = i == len(point.results) - 1
            if result.seconds is None:
                table.add_row(*head, "failed", end_section=last)
                continue
            table.add_row(
                *head,
                f"{result.seconds * 1e3:.2f}",
                ratio_text(None if base is None else result.seconds / base),
                difference_text(result),
                "" if form == FLOAT else f"{result.facts['share of error']:.1%}",
                end_section=last,
            )
    return table
