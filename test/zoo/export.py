"""Exports the architectures of the zoo: DIR/NAME.EXPORTER.onnx, and NAME.EXPORTER.json beside it with its inputs.

    python export.py --out DIR [--jobs N] [--again] [NAME ...]

Runs in an environment with the packages of requirements.txt; `run.py` makes one and calls this. Networks are built from configurations
with seeded random weights: nothing is downloaded. Every export has a process of its own: why one failed is in
NAME.EXPORTER.refused, and the others go on.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import onnx
import torch
import torchvision_operators  # noqa: F401  # before what imports torchvision
from families import ARCHITECTURES
from inputs import Input, as_data, make_inputs
from network import SEED, Network, randomise

TIME_LIMIT = 600
"""Seconds after which an export is ended."""


@contextlib.contextmanager
def quiet(log: Path) -> Iterator[None]:
    """What exporters print goes into a file."""
    with log.open("w") as sink, contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.dup2(sink.fileno(), 1)
        os.dup2(sink.fileno(), 2)
        yield


def _axes(inputs: dict[str, Input]) -> dict[str, dict[int, str]]:
    """Axis -> name of the extent, of each input's open axes."""
    return {name: {axis: e for axis, e in enumerate(i.shape) if isinstance(e, str)} for name, i in inputs.items()}


def export_dynamo(network: Network, tensors: tuple[torch.Tensor, ...], opset: int) -> onnx.ModelProto:
    """By way of torch.export. Call.forward takes its inputs as one variadic argument."""
    axes = tuple(axes or None for axes in _axes(network.inputs).values())
    program = torch.onnx.export(
        network.module,
        tensors,
        input_names=list(network.inputs),
        dynamic_shapes=(axes,),
        opset_version=opset,
        dynamo=True,
        verbose=False,
    )
    assert program is not None
    return program.model_proto


def export_torchscript(network: Network, tensors: tuple[torch.Tensor, ...], opset: int) -> onnx.ModelProto:
    """By way of torch.jit.trace."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        torch.onnx.export(
            network.module,
            tensors,
            path,
            input_names=list(network.inputs),
            dynamic_axes=_axes(network.inputs),
            opset_version=opset,
            dynamo=False,
        )
        return onnx.load(path)


EXPORTERS = {"dynamo": export_dynamo, "torchscript": export_torchscript}


def strip(model: onnx.ModelProto) -> None:
    """Drops what exporters note of the source, and types of tensors between nodes, of which some are wrong at other sizes."""
    model.doc_string = ""
    for items in (model.metadata_props, model.graph.metadata_props, model.graph.value_info):
        del items[:]
    graphs = [model.graph]
    while graphs:
        graph = graphs.pop()
        for node in graph.node:
            node.doc_string = ""
            del node.metadata_props[:]
            for attribute in node.attribute:
                attribute.doc_string = ""
                if attribute.HasField("g"):
                    graphs.append(attribute.g)


def export(name: str, exporter: str, out: Path) -> None:
    """Writes one model with its description."""
    architecture = ARCHITECTURES[name]
    torch.manual_seed(SEED)
    np.random.seed(SEED)
    made = architecture.build()
    if isinstance(made, Network):
        made.module.eval().requires_grad_(False)
        randomise(made.module)
        inputs = made.inputs
        sizes = {s: symbol.example for s, symbol in architecture.symbols.items()}
        tensors = tuple(torch.from_numpy(array) for array in make_inputs(inputs, sizes, SEED).values())
        with torch.no_grad():
            model = EXPORTERS[exporter](made, tensors, architecture.opset[exporter])
    else:
        model, inputs = made
    strip(model)
    # Inputs that the network does not use are no inputs of the model.
    left = {value.name for value in model.graph.input}
    description = {
        "inputs": as_data({name: value for name, value in inputs.items() if name in left}),
        "symbols": {s: vars(symbol) for s, symbol in architecture.symbols.items()},
    }
    (out / f"{name}.{exporter}.json").write_text(json.dumps(description, indent=1))
    (out / f"{name}.{exporter}.onnx").write_bytes(model.SerializeToString(deterministic=True))


def _child(name: str, exporter: str, out: Path) -> None:
    with quiet(out / f"{name}.{exporter}.log"):
        try:
            export(name, exporter, out)
        except BaseException as error:
            import traceback

            traceback.print_exc()
            sys.stderr.flush()
            (out / f"{name}.{exporter}.refused").write_text(f"{type(error).__name__}: {' '.join(str(error).split())[:400]}")
    os._exit(0)  # without the clean-up of what was forked


def export_apart(stem: str, out: Path) -> str:
    """Exports NAME.EXPORTER in a process of its own; gives the line about it."""
    begin = time.monotonic()
    note = out / f"{stem}.refused"
    note.unlink(missing_ok=True)
    process = multiprocessing.get_context("fork").Process(target=_child, args=(*stem.rsplit(".", 1), out))
    process.start()
    process.join(TIME_LIMIT)
    if process.is_alive():
        process.kill()
        process.join()
        note.write_text(f"more than {TIME_LIMIT} s")
    elif process.exitcode and not note.exists():
        note.write_text(f"the process ended with {process.exitcode}")
    return f"{stem}: {note.read_text()[:150] if note.exists() else 'exported'} ({time.monotonic() - begin:.0f} s)"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=2, help="exports at the same time (default 2)")
    parser.add_argument("--exporter", choices=[*EXPORTERS, "converter"], help="default: all")
    parser.add_argument("--again", action="store_true", help="also what has been exported, or refused, before")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(ARCHITECTURES))
    if unknown:
        parser.error(f"no such architecture: {', '.join(unknown)}")
    options.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    torch.backends.mha.set_fastpath_enabled(False)  # an operator that no exporter knows
    chosen = {name: ARCHITECTURES[name] for name in options.names or ARCHITECTURES}
    wanted = [f"{name}.{exporter}" for name, row in chosen.items() for exporter in row.exporters if options.exporter in (None, exporter)]
    wanted.sort(key=lambda stem: stem.endswith(".dynamo"))  # the slow ones last
    known = {path.stem for suffix in ("onnx", "refused") for path in options.out.glob(f"*.{suffix}")}
    left = [stem for stem in wanted if options.again or stem not in known]
    with ThreadPoolExecutor(options.jobs) as pool:
        for done, line in enumerate(pool.map(lambda stem: export_apart(stem, options.out), left), 1):
            print(f"[{done}/{len(left)}] {line}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
