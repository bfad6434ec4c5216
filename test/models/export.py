"""Make the ONNX models that relayc is tested and measured with.

Every model is built from a configuration with seeded random weights; nothing is
downloaded.  Each architecture exists in two sizes: ``tiny`` keeps the real
structure (every kind of layer, residual, mask and resize) but is small enough to
be stored next to this script, ``full`` has the published dimensions.  Models whose
names begin with ``dynamic/`` have symbolic dimensions in both sizes.

    python test/models/export.py --size tiny --out test/models
    python test/models/export.py --size full --out DIR resnet50 bert dynamic/bert

Each written file has been through the ONNX checker and has been run by
onnxruntime, whose outputs are compared with those of the PyTorch module.

Needs torch, transformers, onnx, onnxscript and onnxruntime, of which relayc itself
needs only onnx.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import logging
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
from configured import CachedDecoder, bert, cached_llama, convnext, efficientnet, gpt2, llama, minilm, segformer, vit, whisper_encoder
from convolutional import mobilenet_v2, resnet18, resnet50, segmenter, unet
from mixer import mlp_mixer
from recurrent import recurrent_decoder
from sample import Sample, Select, Size, randomise
from torch import Tensor

Exporter = Literal["dynamo", "torchscript", "written"]

SEED = 2024


@dataclass(frozen=True)
class Architecture:
    """One row of the table of models.

    Attributes:
        build: makes the module and its example inputs.
        exporter: ``dynamo`` traces with torch.export, ``torchscript`` with
            torch.jit.  They spell the same operation differently, which is why
            both are used.  ``written`` asks the module for what neither can say.
        opset: version of the default ONNX operator set.
        dynamic: input name -> axis -> symbol, or a function that gives that for
            the inputs; for the tiny size only where ``sizes`` is empty: there the
            full size has fixed shapes.
        sizes: values of the symbols that the written file is checked with.
        fold_batch_norm: let the exporter merge batch norms into convolutions.
            Left off wherever that work should be the compiler's.
    """

    build: Callable[[Size], Sample]
    exporter: Exporter
    opset: int
    dynamic: dict[str, dict[int, str]] | Callable[[Sample], dict[str, dict[int, str]]] = field(default_factory=dict)
    fold_batch_norm: bool = True
    sizes: tuple[dict[str, int], ...] = ()


BATCH = {0: "batch"}
BATCH_LENGTH = {0: "batch", 1: "length"}
BATCH_SEQ = {0: "batch", 1: "seq"}
PAST = {0: "batch", 2: "past"}

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
    "dynamic/bert": Architecture(
        minilm,
        "dynamo",
        opset=18,
        dynamic={"input_ids": BATCH_SEQ, "attention_mask": BATCH_SEQ},
        sizes=({"batch": 1, "seq": 1}, {"batch": 3, "seq": 61}, {"batch": 8, "seq": 32}, {"batch": 1, "seq": 512}),
    ),
    "dynamic/decoder": Architecture(
        cached_llama,
        "dynamo",
        opset=18,
        dynamic=lambda sample: {name: PAST if name.startswith("past") else BATCH_SEQ for name in sample.inputs},
        sizes=(
            {"batch": 1, "seq": 1, "past": 0},
            {"batch": 1, "seq": 37, "past": 0},
            {"batch": 2, "seq": 1, "past": 127},
            {"batch": 3, "seq": 5, "past": 31},
        ),
    ),
    "dynamic/recurrent": Architecture(
        recurrent_decoder,
        "written",
        opset=18,
        dynamic={"memory": BATCH_SEQ, "lengths": BATCH},
        sizes=({"batch": 1, "seq": 1}, {"batch": 3, "seq": 13}, {"batch": 8, "seq": 2}),
    ),
    "dynamic/resnet18": Architecture(
        resnet18,
        "torchscript",
        opset=18,
        dynamic={"image": BATCH},
        sizes=({"batch": 2}, {"batch": 7}),
    ),
    "dynamic/segmenter": Architecture(
        segmenter,
        "dynamo",
        opset=18,
        dynamic={"image": {2: "height", 3: "width"}},
        sizes=({"height": 16, "width": 16}, {"height": 61, "width": 37}, {"height": 33, "width": 128}),
    ),
}


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
    elif isinstance(sample.module, CachedDecoder):
        shapes = (shapes[0], shapes[1:])
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


def export_written(
    sample: Sample,
    opset: int,
    dynamic: dict[str, dict[int, str]],
    fold_batch_norm: bool,
) -> onnx.ModelProto:
    """What the module says of itself."""
    return sample.module.written(opset)


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


def resized(sample: Sample, dynamic: dict[str, dict[int, str]], sizes: dict[str, int]) -> dict[str, Tensor]:
    """The example inputs, repeated or cut to given sizes of the symbols."""
    inputs = dict(sample.inputs)
    for name, axes in dynamic.items():
        for axis, symbol in axes.items():
            index = torch.arange(sizes[symbol]) % inputs[name].shape[axis]
            inputs[name] = inputs[name].index_select(axis, index)
    return inputs


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


def check(
    path: Path,
    sample: Sample,
    dynamic: dict[str, dict[int, str]],
    sizes: tuple[dict[str, int], ...],
) -> float:
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
    for values in sizes:
        other = compare(session, sample, resized(sample, dynamic, values))
        difference = max(difference, other)
    if isinstance(sample.module, CachedDecoder):
        difference = max(difference, compare_steps(session, sample))
    return difference


def compare_steps(session: onnxruntime.InferenceSession, sample: Sample, steps: int = 40) -> float:
    """Give a decoder its tokens all at once, and one by one; return the largest difference of what it makes of them."""
    tokens, *past = (value.numpy() for value in sample.inputs.values())
    ids, *names = sample.inputs
    ahead = np.resize(tokens, (tokens.shape[0], steps))
    nothing = [value[:, :, :0] for value in past]
    outputs = list(sample.outputs)
    expected = session.run(outputs, {ids: ahead, **dict(zip(names, nothing, strict=True))})
    cache, logits = nothing, []
    for step in range(steps):
        found, *cache = session.run(outputs, {ids: ahead[:, step : step + 1], **dict(zip(names, cache, strict=True))})
        logits.append(found)
    difference = 0.0
    for name, ours, theirs in zip(outputs, (np.concatenate(logits, axis=1), *cache), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4, err_msg=name)
        difference = max(difference, float(np.abs(ours - theirs).max()))
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
    exporters = {"dynamo": export_dynamo, "torchscript": export_torchscript, "written": export_written}
    export = exporters[architecture.exporter]
    sample = build(name, size)
    dynamic: dict[str, dict[int, str]] = {}
    if size == "tiny" or architecture.sizes:
        dynamic = architecture.dynamic(sample) if callable(architecture.dynamic) else architecture.dynamic
    path = out / f"{name}.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    with torch.no_grad():
        with quiet():
            model = export(sample, architecture.opset, dynamic, architecture.fold_batch_norm)
        strip(model)
        if size == "large":
            onnx.save(model, path, save_as_external_data=True, location=f"{path.name}.data")
        else:
            path.write_bytes(model.SerializeToString(deterministic=True))
        difference = check(path, sample, dynamic, architecture.sizes)
    return f"{name}: {path.stat().st_size / 1000:.0f} kB, {len(model.graph.node)} nodes, within {difference:.1e} of PyTorch"


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Make the ONNX models that relayc is tested and measured with.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--size", choices=("tiny", "full", "large"), default="tiny")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("--ops", action="store_true", help="also list the operators")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(ARCHITECTURES))
    if unknown:
        parser.error(f"no such model: {', '.join(unknown)}")
    for name in options.names or ARCHITECTURES:
        print(make(name, options.size, options.out), flush=True)
        if options.ops:
            model = onnx.load(options.out / f"{name}.onnx")
            for operator, count in sorted(operators(model.graph).items()):
                print(f"    {operator} x{count}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
