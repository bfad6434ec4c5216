"""Models of the zoo that are stored here, in sample/: what exporters wrote, with random weights made when a model is opened.

    python sample.py OUT/models NAME.EXPORTER ...      # stores these

A stored model is an ONNX file, compressed, in which a large tensor of floats has its mean and deviation in place of its elements. Its
inputs and open sizes (see inputs.py) are in its metadata.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

FOLDER = Path(__file__).parent / "sample"
LARGE = 64
"""Elements beyond which floats are not stored."""
DESCRIPTION = "zoo"


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """The constants of a graph and of the graphs in it."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            if attribute.HasField("g"):
                yield from _tensors(attribute.g)


def store(path: Path) -> Path:
    """Writes a model of the zoo, with its description, into sample/."""
    model = onnx.load(path)
    for tensor in _tensors(model.graph):
        array = numpy_helper.to_array(tensor)
        if array.dtype == np.float32 and array.size > LARGE and np.isfinite(array).all():
            kind = "positive" if (array > 0).all() else "any"
            empty = onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
            empty.doc_string = f"{kind} {array.mean():.6g} {array.std():.6g}"
            tensor.CopyFrom(empty)
    model.metadata_props.add(key=DESCRIPTION, value=path.with_suffix(".json").read_text())
    FOLDER.mkdir(exist_ok=True)
    stored = FOLDER / f"{path.name}.gz"
    stored.write_bytes(gzip.compress(model.SerializeToString(deterministic=True), mtime=0))
    return stored


def restore(stored: Path, folder: Path) -> Path:
    """Writes a stored model into a folder, with random weights of one seed and its description, as the exporter does."""
    model = onnx.load_from_string(gzip.decompress(stored.read_bytes()))
    rng = np.random.default_rng(0)
    for tensor in _tensors(model.graph):
        if tensor.doc_string:
            kind, mean, deviation = tensor.doc_string.split()
            array = rng.normal(float(mean), float(deviation), tuple(tensor.dims)).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(np.abs(array) if kind == "positive" else array, tensor.name))
    path = folder / stored.name.removesuffix(".gz")
    (description,) = (entry.value for entry in model.metadata_props if entry.key == DESCRIPTION)
    path.with_suffix(".json").write_text(description)
    path.write_bytes(model.SerializeToString())
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", type=Path)
    parser.add_argument("names", nargs="+", metavar="NAME.EXPORTER")
    options = parser.parse_args()
    for name in options.names:
        stored = store(options.models / f"{name}.onnx")
        print(f"{stored}: {stored.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
