"""Which models are measured, and on which inputs: aliases, files and patterns, and values for symbolic dimensions."""

import glob
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped] # its stubs are a package of their own

import relayc
from relayc.runtime import TensorSpec
from relayc.tools.inputs import random_inputs
from relayc.tools.light import light_names, random_light
from relayc.tools.onnx_graphs import inputs_of

_TUNED = ("resnet50", "mobilenet_v2", "bert", "convnext", "whisper_encoder", "dynamic/decoder", "llama")
FOLDERS = {"test": ("*.onnx",), "dynamic": ("dynamic/*.onnx",), "tuned": tuple(f"{name}.onnx" for name in _TUNED)}
"""Models of this repository by alias: models that are compiled for given shapes, models that are measured at many sizes, and models on
which tuning is measured."""

LENGTH = 16
"""Symbolic dimensions that are neither a batch nor given."""


@dataclass(frozen=True)
class Source:
    """A model by name: a file, or a network of the onnx package that is written to a file with random weights when it is needed."""

    name: str
    path: Path | None = None

    @contextmanager
    def file(self) -> Iterator[Path]:
        """The model as a file, which may be gone afterwards."""
        if self.path is not None:
            yield self.path
            return
        with TemporaryDirectory(prefix="relayc-bench-") as folder:
            path = Path(folder) / f"{self.name}.onnx"
            onnx.save(random_light(self.name), path)
            yield path


@dataclass(frozen=True)
class Case:
    """A model file and its inputs.

    Attributes:
      inputs: arrays by name, in the order of the graph.
      shapes: shape of each input that has symbolic dimensions.
      symbols: value of each named symbolic dimension.
    """

    name: str
    path: Path
    inputs: Mapping[str, np.ndarray]
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    symbols: Mapping[str, int] = field(default_factory=dict)


def find_models(text: str) -> list[Source]:
    """Models named in a list separated by commas: `light` (the networks of the onnx package, or one of them by its name), `test` (the
    models of this repository's tests), `dynamic` (the test models with symbolic sizes), `tuned` (one of each kind of network), files,
    patterns of files.

    Raises:
      ValueError: an entry names no model.
    """
    light = light_names()
    found: list[Source] = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        if entry == "light":
            found += [Source(name) for name in light]
        elif entry.removeprefix("light_") in light:
            found.append(Source(entry.removeprefix("light_")))
        else:
            models = Path(relayc.__path__[0]) / "test" / "models"
            patterns = [str(models / pattern) for pattern in FOLDERS[entry]] if entry in FOLDERS else [entry]
            files = [Path(name) for pattern in patterns for name in sorted(glob.glob(pattern, recursive=True))]
            if not files:
                known = ", ".join(["light", *FOLDERS, *light])
                raise ValueError(f"--models: expected {known}, a file or a pattern of files, found {entry!r}")
            found += [Source(file.stem, file) for file in files]
    if not found:
        raise ValueError("--models: expected at least one model")
    return found


def load_graph(path: Path) -> onnx.GraphProto:
    """The graph of a model, without data from other files. Raises ValueError if the file is not an ONNX model."""
    try:
        return onnx.load(path, load_external_data=False).graph
    except DecodeError as error:
        raise ValueError(f"{path}: expected an ONNX model: {error}") from error


def make_case(name: str, path: Path, shapes: Mapping[str, Sequence[int]], seed: int = 0) -> Case:
    """A case with seeded random inputs (see relayc.tools.inputs).

    A symbolic dimension gets its value from `shapes`, also in the other inputs that share its name. Otherwise it is 1 if it is the batch by
    its name or the first dimension, and LENGTH elsewhere. `shapes` may have entries for inputs that the model lacks.

    Raises:
      ValueError: a shape does not fit the model, or an input is not a tensor of numbers.
    """
    inputs = inputs_of(load_graph(path))
    symbols: dict[str, int] = {}
    for value in inputs:
        if value.name in shapes:
            _bind(value, shapes[value.name], symbols)
    specs, symbolic = [], {}
    for value in inputs:
        dims = value.type.tensor_type.shape.dim
        shape = tuple(shapes[value.name]) if value.name in shapes else tuple(_extent(dim, axis, symbols) for axis, dim in enumerate(dims))
        specs.append(TensorSpec(value.name, shape, dtype_of(value)))
        if not all(dim.HasField("dim_value") for dim in dims):
            symbolic[value.name] = shape
    return Case(name, path, random_inputs(specs, seed), symbolic, symbols)


def make_cases(
    sources: Sequence[Source], shapes: Mapping[str, Sequence[int]], seed: int, progress: Callable[[str], None]
) -> Iterator[Case]:
    """A case of each model, whose file may be gone when the next one is taken. Raises ValueError as `make_case`."""
    for source in sources:
        progress(f"{source.name}: preparing")
        with source.file() as path:
            yield make_case(source.name, path, shapes, seed)


def _bind(value: onnx.ValueInfoProto, shape: Sequence[int], symbols: dict[str, int]) -> None:
    """Records the values of the symbols of an input of a given shape. Raises ValueError if the shape does not fit."""
    dims = value.type.tensor_type.shape.dim
    expected = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param or "?" for dim in dims]
    wrong = ValueError(f"--shape: input {value.name!r}: expected a shape like [{', '.join(map(str, expected))}], found {list(shape)}")
    if len(shape) != len(dims):
        raise wrong
    for dim, extent in zip(dims, shape, strict=True):
        known = dim.dim_value if dim.HasField("dim_value") else symbols.get(dim.dim_param, extent)
        if known != extent:
            raise wrong
        if dim.dim_param:
            symbols[dim.dim_param] = extent


def _extent(dim: onnx.TensorShapeProto.Dimension, axis: int, symbols: dict[str, int]) -> int:
    if dim.HasField("dim_value"):
        return dim.dim_value
    default = 1 if axis == 0 or "batch" in dim.dim_param.lower() else LENGTH
    return symbols.setdefault(dim.dim_param, default) if dim.dim_param else default


def dtype_of(value: onnx.ValueInfoProto) -> str:
    """Dtype of a graph's input. Raises ValueError if it is not a tensor of numbers."""
    element = value.type.tensor_type.elem_type
    if not element or element == onnx.TensorProto.STRING:
        raise ValueError(f"input {value.name!r}: expected a tensor of numbers, found {value.type}")
    return onnx.helper.tensor_dtype_to_np_dtype(element).name
