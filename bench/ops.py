"""`bench ops`: matrix products, also with weights of a few bits, convolutions and recurrent networks, each compared with the peak of the
machine.

Each is an ONNX model of one operator with constant weights, so that engines may pack them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from rich.table import Table

from relayc.bench.engines import ENGINES
from relayc.bench.latency import add_engines, difference_text, ratio, ratio_text, threads_text
from relayc.bench.measure import Point, Progress, Result, Settings, measure_model
from relayc.runtime import Peak
from relayc.tools.tables import NUMBER, make_table


@dataclass(frozen=True)
class Operation:
    """An ONNX operator with constant weights.

    Attributes:
      name: as `find_operations` reads it.
      shapes: of data, weights and result.
      flops: multiplications and additions of its products.
      attributes: of the node; domain: of the operator.
    """

    name: str
    operator: str
    shapes: tuple[tuple[int, ...], ...]
    flops: int
    attributes: Mapping[str, Any] = field(default_factory=dict)
    domain: str = ""

    def node(self) -> onnx.NodeProto:
        """The node: its data is x, its weights are w and v, its result is y."""
        weights = ("w", "v")[: len(self.shapes) - 2]
        return helper.make_node(self.operator, ["x", *weights], ["y"], domain=self.domain, **self.attributes)


def gemm(m: int, n: int, k: int) -> Operation:
    """f32 [m, k] times a constant [k, n]."""
    return Operation(f"{m}x{n}x{k}", "MatMul", ((m, k), (k, n), (m, n)), 2 * m * n * k)


def conv(channels: int, size: int, filters: int, kernel: int, stride: int = 1, groups: int = 1) -> Operation:
    """f32 convolution of one image [channels, size, size] with `filters` square windows, padded so that stride 1 keeps the size."""
    name = f"{channels}x{size}-{filters}k{kernel}s{stride}" + (f"g{groups}" if groups > 1 else "")
    out = (size + 2 * (kernel // 2) - kernel) // stride + 1
    weight, result = (filters, channels // groups, kernel, kernel), (1, filters, out, out)
    attributes = {"strides": [stride] * 2, "pads": [kernel // 2] * 4, "group": groups}
    return Operation(name, "Conv", ((1, channels, size, size), weight, result), 2 * prod(result) * prod(weight[1:]), attributes)


def recurrent(cell: str, steps: int, batch: int, inputs: int, hidden: int) -> Operation:
    """A recurrent network of one layer and one direction, f32: "lstm", "gru" or "rnn". Its weights are those of the input, and those of the
    hidden state. The gates add little to the operations of the products."""
    gates = {"lstm": 4, "gru": 3, "rnn": 1}[cell]
    weights = tuple((1, gates * hidden, width) for width in (inputs, hidden))
    shapes = (steps, batch, inputs), *weights, (steps, 1, batch, hidden)
    flops = 2 * steps * batch * gates * hidden * (inputs + hidden)
    return Operation(f"{cell}{steps}x{batch}x{inputs}-{hidden}", cell.upper(), shapes, flops, {"hidden_size": hidden})


def blocks(m: int, n: int, k: int, bits: int, block: int, level: int = 0) -> Operation:
    """f32 [m, k] times constant weights [n, k]^T of a few bits, in blocks of depth that share a scale: MatMulNBits of com.microsoft. Its
    weights are in bytes, followed by the scales.

    `level` is how exact the product has to be: 0 as products of f32, 4 with data that is rounded to 8 bits.
    """
    name = f"{m}x{n}x{k}q{bits}b{block}" + (f"a{level}" if level else "")
    shapes = (m, k), (n, k // block, block * bits // 8), (n * (k // block),), (m, n)
    attributes = {"K": k, "N": n, "bits": bits, "block_size": block, "accuracy_level": level}
    return Operation(name, "MatMulNBits", shapes, 2 * m * n * k, attributes, "com.microsoft")


SETS: dict[str, tuple[Operation, ...]] = {
    "square": tuple(gemm(n, n, n) for n in (32, 64, 128, 256, 512, 1024, 2048)),
    # BERT-base and ViT: projections, the two halves of the feed-forward part; rows that fill no tile.
    "skinny": (
        gemm(128, 768, 768),
        gemm(128, 3072, 768),
        gemm(128, 768, 3072),
        gemm(197, 768, 768),
        gemm(16, 768, 768),
        gemm(7, 1000, 512),
    ),
    # One token of a decoder, and the classifiers of image networks.
    "gemv": (gemm(1, 768, 768), gemm(1, 3072, 768), gemm(1, 768, 3072), gemm(1, 1000, 2048), gemm(1, 4096, 4096), gemm(1, 50257, 768)),
    "first": (conv(3, 224, 64, 7, 2), conv(3, 224, 32, 3, 2), conv(3, 224, 64, 3)),
    "resnet": (conv(64, 56, 64, 3), conv(128, 28, 128, 3), conv(256, 14, 256, 3), conv(128, 56, 128, 3, 2), conv(256, 28, 256, 3, 2)),
    "1x1": (conv(64, 56, 256, 1), conv(256, 56, 64, 1), conv(512, 28, 128, 1), conv(1024, 14, 256, 1), conv(256, 56, 512, 1, 2)),
    "7x7": (conv(512, 7, 512, 3), conv(2048, 7, 512, 1), conv(512, 7, 2048, 1), conv(512, 14, 512, 3, 2)),
    "mobilenet": (
        conv(32, 112, 32, 3, 1, 32),
        conv(96, 112, 96, 3, 2, 96),
        conv(144, 56, 144, 3, 1, 144),
        conv(384, 14, 384, 3, 1, 384),
        conv(960, 7, 960, 3, 1, 960),
        conv(144, 56, 24, 1),
        conv(384, 14, 64, 1),
        conv(320, 7, 1280, 1),
    ),
    # Alone, and in a batch.
    "recurrent": tuple(recurrent(cell, 128, batch, 512, 512) for cell in ("lstm", "gru", "rnn") for batch in (1, 8)),
    # Layers of a decoder, for a token, a few and a prompt; each beside the same product of floats.
    "blocks": tuple(
        operation
        for n, block in ((4096, 32), (11008, 128))
        for m in (1, 8, 128)
        for operation in (blocks(m, n, 4096, 4, block), blocks(m, n, 4096, 4, block, 4), gemm(m, n, 4096))
    ),
}
"""The shapes that are measured, by the name of their set."""

_GEMM = re.compile(r"(\d+)x(\d+)x(\d+)")
_CONV = re.compile(r"(\d+)x(\d+)-(\d+)k(\d+)s(\d+)(?:g(\d+))?")
_BLOCKS = re.compile(r"(\d+)x(\d+)x(\d+)q([248])b(\d+)(?:a(\d))?")
_RECURRENT = re.compile(r"(lstm|gru|rnn)(\d+)x(\d+)x(\d+)-(\d+)")


def find_operations(text: str) -> list[tuple[str, Operation]]:
    """Operations, each with the name of its set, from a list separated by commas: `all`, names of SETS, products as MxNxK, convolutions as
    CHANNELSxSIZE-FILTERSkKERNELsSTRIDE, with gGROUPS for groups, recurrent networks as CELLSTEPSxBATCHxINPUTS-HIDDEN, and products with
    weights of a few bits as MxNxKqBITSbBLOCK, with aLEVEL if they may be less exact.

    Raises:
      ValueError: an entry has none of these forms, or is impossible.
    """
    found: list[tuple[str, Operation]] = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        if entry == "all":
            found += [(name, operation) for name, operations in SETS.items() for operation in operations]
        elif entry in SETS:
            found += [(entry, operation) for operation in SETS[entry]]
        else:
            found.append(("given", _parse(entry)))
    if not found:
        raise ValueError("--sizes: expected at least one entry")
    return found


def _parse(entry: str) -> Operation:
    if match := _GEMM.fullmatch(entry):
        operation = gemm(*map(int, match.groups()))
    elif match := _CONV.fullmatch(entry):
        channels, size, filters, kernel, stride, groups = (int(number or 1) for number in match.groups())
        if stride < 1 or groups < 1 or channels % groups or filters % groups:
            raise ValueError(f"--sizes: expected a stride of 1 or more and groups that divide channels and filters, found {entry!r}")
        operation = conv(channels, size, filters, kernel, stride, groups)
    elif match := _RECURRENT.fullmatch(entry):
        operation = recurrent(match[1], *map(int, match.groups()[1:]))
    elif match := _BLOCKS.fullmatch(entry):
        m, n, k, bits, block, level = (int(number or 0) for number in match.groups())
        if block < 16 or k % block:
            raise ValueError(f"--sizes: expected blocks of 16 or more that divide the depth, found {entry!r}")
        operation = blocks(m, n, k, bits, block, level)
    else:
        forms = "MxNxK such as 128x768x768, 64x56-128k3s1, lstm128x1x512-512, or 1x4096x4096q4b32"
        raise ValueError(f"--sizes: expected all, {', '.join(SETS)}, {forms}, found {entry!r}")
    if min(prod(shape) for shape in operation.shapes) < 1:
        raise ValueError(f"--sizes: expected dimensions of 1 or more, found {entry!r}")
    return operation


def moved(operation: Operation) -> int:
    """Bytes of data, weights and result."""
    sizes = [1 if operation.operator == "MatMulNBits" and i == 1 else 4 for i in range(len(operation.shapes))]
    return sum(size * prod(shape) for size, shape in zip(sizes, operation.shapes, strict=True))


def model_of(operation: Operation, seed: int) -> onnx.ModelProto:
    """A model with only the operation; its weights are normal, scaled so that results are of the order of 1."""
    x, *shapes, y = operation.shapes
    scale, rng, node = np.sqrt(prod(y) / operation.flops * 2), np.random.default_rng(seed), operation.node()
    arrays = [(rng.standard_normal(shape) * scale).astype(np.float32) for shape in shapes]
    if operation.operator == "MatMulNBits":
        levels = 1 << (operation.attributes["bits"] - 1)
        arrays = [rng.integers(0, 256, shapes[0], np.uint8), np.full(shapes[1], scale * 2 / levels, np.float32)]
    weights = [numpy_helper.from_array(array, name) for name, array in zip(node.input[1:], arrays, strict=True)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", x), ("y", y))]
    graph = helper.make_graph([node], operation.name, ends[:1], ends[1:], weights)
    opsets = [helper.make_opsetid("", 18), *([helper.make_opsetid(node.domain, 1)] if node.domain else [])]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def measure_operations(
    chosen: Sequence[tuple[str, Operation]], peak: Peak, settings: Settings, seed: int, progress: Progress
) -> list[Point[Operation]]:
    """Measures every operation on every engine."""
    points = []
    for group, operation in chosen:
        results = measure_model(model_of(operation, seed), operation.name, None, seed, settings, progress)
        flops, num_bytes = operation.flops, moved(operation)
        facts = {"set": group, "flops": flops, "bytes": num_bytes, "limit_seconds": peak.limit(flops, num_bytes)}
        points.append(Point(operation, facts, results))
    return points


def operations_table(points: Sequence[Point[Operation]], peak: Peak, precision: str) -> Table:
    """One line per operation and engine; `of limit` is the share of the limit by the roofline."""
    table = make_table(
        f"operations, {threads_text(peak.threads)}, {precision} asked for",
        set={},
        operation={},
        engine={},
        computes={},
        **{name: NUMBER for name in ("us", "ratio", "GFLOP/s", "of peak", "GB/s", "of limit", "difference")},
    )
    for point in points:

        def cells(result: Result, seconds: float, point: Point[Operation] = point) -> list[str]:
            flops, num_bytes = point.facts["flops"], point.facts["bytes"]
            return [
                f"{seconds * 1e6:.1f}",
                ratio_text(ratio(point.results, result.engine)),
                f"{flops / seconds / 1e9:.1f}",
                f"{flops / seconds / 1e9 / peak.gflops:.0%}",
                f"{num_bytes / seconds / 1e9:.1f}",
                f"{point.facts['limit_seconds'] / seconds:.0%}",
                difference_text(result),
            ]

        add_engines(table, [point.facts["set"], point.subject.name], point.results, cells)
    return table


_MOST_NAMES = 24
"""Operations up to which a figure has their names: more would cover each other."""


def plot_roofline(points: Sequence[Point[Operation]], peak: Peak, precision: str, path: Path) -> None:
    """Operations per second over operations per byte, under the roof of the machine; a line joins the engines on an operation."""
    from relayc.bench.plots import figure

    intensities = [point.subject.flops / moved(point.subject) for point in points]
    rates = [{r.engine: p.subject.flops / r.seconds / 1e9 for r in p.results if r.seconds is not None} for p in points]
    ends = np.geomspace(min(*intensities, 0.25), max(*intensities, 4 * peak.gflops / peak.gbytes), 200)
    with figure(path, (9, 5.5)) as axes:
        roof = f"roof: {peak.gflops:.0f} GFLOP/s, {peak.gbytes:.1f} GB/s"
        axes.plot(ends, np.minimum(peak.gflops, ends * peak.gbytes), color="black", label=roof)
        for k, engine in enumerate(dict.fromkeys(r.engine for point in points for r in point.results)):
            pairs = [(x, found[engine]) for x, found in zip(intensities, rates, strict=True) if engine in found]
            at = [x for x, _ in pairs], [rate for _, rate in pairs]
            axes.scatter(*at, marker="o^s"[k % 3], label=ENGINES[engine].title, alpha=0.8, zorder=3)
        for point, x, found in zip(points, intensities, rates, strict=True):
            if not found:
                continue
            axes.plot([x, x], [min(found.values()), max(found.values())], color="0.8", linewidth=1, zorder=1)
            if len(points) <= _MOST_NAMES:
                place = {"textcoords": "offset points", "xytext": (0, -6), "rotation": 60, "ha": "right", "va": "top"}
                axes.annotate(point.subject.name, (x, min(found.values())), fontsize=7, color="0.35", **place)
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter("{x:g}")
        axes.grid(color="0.9", zorder=0)
        axes.margins(y=0.15)
        axes.set_xlabel("FLOP / byte of data, weights and result")
        axes.set_ylabel("GFLOP/s")
        axes.set_title(f"operations, {threads_text(peak.threads)}, {precision}", loc="left", fontsize="medium")
        axes.legend(loc="upper left")
