"""Sizes of models with symbolic dimensions: which are measured, and the inputs of a model at each."""

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from relayc.bench.models import Case, dtype_of, load_graph
from relayc.runtime import TensorSpec
from relayc.runtime.artifact import numpy_dtype
from relayc.tools.inputs import random_inputs
from relayc.tools.onnx_graphs import every_node, inputs_of

Sizes = Mapping[str, int]
"""A value for each symbol."""

SWEEPS: dict[str, tuple[str, ...]] = {
    "bert": ("batch=1;seq=1,7,16,31,64,127,128,256,512", "batch=3,8;seq=1,13,61,128,512"),
    "decoder": (
        "batch=1;past=0;seq=16,512",
        "batch=1;past=16,61,128,256,509,1000,2000;seq=1",
        "batch=4;past=127,512;seq=1",
        "batch=1;past=128;seq=16,61",
    ),
    "recurrent": ("batch=1;seq=64;lengths=1,4,16,61,256", "batch=4;seq=16,61;lengths=64"),
    "resnet18": ("batch=1,2,3,4,5,7,8,11,13,16",),
    "segmenter": ("height=64,127,256,509;width=64,131,320",),
}
"""What is measured of a model by its name."""

BATCHES, EXTENTS = (1, 3), (1, 16, 61)
"""What is measured of a model that is not in SWEEPS: of symbols that are the batch by their name, and of others."""

_VALUES = r"[^=,;:]+=\d+(,\d+)*"
_ENTRY = re.compile(rf"(?:([^=,;:]+):)?({_VALUES}(;{_VALUES})*)")


@dataclass(frozen=True)
class Grid:
    """Values of symbols, whose combinations are points; only for the model of the given name, if there is one."""

    values: Mapping[str, tuple[int, ...]]
    model: str | None = None

    @property
    def points(self) -> list[dict[str, int]]:
        return [dict(zip(self.values, chosen, strict=True)) for chosen in itertools.product(*self.values.values())]

    @property
    def largest(self) -> dict[str, int]:
        return {name: max(values) for name, values in self.values.items()}

    def draw(self, rng: np.random.Generator) -> dict[str, int]:
        """Sizes between the least and the largest value of each symbol, their logarithms equally likely."""
        bounds = {name: (min(values), max(values)) for name, values in self.values.items()}
        logs = {name: rng.uniform(math.log1p(low), math.log1p(high)) for name, (low, high) in bounds.items()}
        return {name: min(max(round(math.expm1(logs[name])), low), high) for name, (low, high) in bounds.items()}


def parse_grid(text: str) -> Grid:
    """Parses `batch=1,8;seq=16,61` or `bert:batch=1,8;seq=16,61` as a grid. Raises ValueError for text of another form."""
    found = _ENTRY.fullmatch(text.replace(" ", ""))
    if found is None:
        raise ValueError(f"--sizes: expected [MODEL:]NAME=N,N,...;NAME=N,..., found {text!r}")
    pairs = (part.split("=") for part in found[2].split(";"))
    return Grid({name: tuple(map(int, values.split(","))) for name, values in pairs}, found[1])


def sizes_text(sizes: Sizes) -> str:
    return ", ".join(f"{name} {value}" for name, value in sizes.items())


@dataclass(frozen=True)
class Input:
    """An input of a model: its fixed extents, and the names of the others."""

    name: str
    dims: tuple[int | str, ...]
    dtype: str

    def shape(self, sizes: Sizes) -> tuple[int, ...]:
        return tuple(sizes[dim] if isinstance(dim, str) else dim for dim in self.dims)

    @property
    def is_symbolic(self) -> bool:
        return any(isinstance(dim, str) for dim in self.dims)


@dataclass(frozen=True)
class DynamicModel:
    """A model file whose inputs have named dimensions.

    Attributes:
      symbols: names of dimensions, in the order of the inputs.
      integers: names of inputs whose elements can be given like a size: all get that value.
      weight_bytes: of the constants that a call has to read: not of tables that it takes rows from.
    """

    name: str
    path: Path
    inputs: tuple[Input, ...]
    symbols: tuple[str, ...]
    integers: tuple[str, ...]
    weight_bytes: int

    def shapes(self, sizes: Sizes) -> dict[str, tuple[int, ...]]:
        """Shapes of the inputs that have symbols."""
        return {value.name: value.shape(sizes) for value in self.inputs if value.is_symbolic}

    def case(self, sizes: Sizes, seed: int) -> Case:
        """The model at some sizes: seeded random inputs (see relayc.tools.inputs), except for inputs that are given like a size."""
        specs = [TensorSpec(value.name, value.shape(sizes), value.dtype) for value in self.inputs]
        inputs = random_inputs(specs, seed)
        inputs |= {name: np.full_like(array, sizes[name]) for name, array in inputs.items() if name in sizes}
        return Case(f"{self.name} at {sizes_text(sizes)}", self.path, inputs, self.shapes(sizes), {s: sizes[s] for s in self.symbols})

    def fits(self, grid: Grid) -> bool:
        """Whether a grid is one of this model: it has every symbol, and no other names."""
        return grid.model in (None, self.name) and set(self.symbols) <= set(grid.values) <= {*self.symbols, *self.integers}

    def read_bytes(self, sizes: Sizes) -> int:
        """Bytes of constants and inputs, which a call has to read at least once."""
        extents = (math.prod(value.shape(sizes)) * numpy_dtype(value.dtype).itemsize for value in self.inputs)
        return self.weight_bytes + sum(extents)


def open_model(name: str, path: Path) -> DynamicModel:
    """Reads the inputs of a model.

    Raises:
      ValueError: the file is not an ONNX model, a dimension has neither size nor name, no dimension has a name, or an input is not a tensor
        of numbers.
    """
    graph = load_graph(path)
    inputs = []
    for value in inputs_of(graph):
        dims = value.type.tensor_type.shape.dim
        extents = tuple(dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in dims)
        if "" in extents:
            raise ValueError(f"{path}: input {value.name!r}: expected a size or a name for every dimension, found {list(extents)}")
        inputs.append(Input(value.name, extents, dtype_of(value)))
    symbols = dict.fromkeys(dim for value in inputs for dim in value.dims if isinstance(dim, str))
    if not symbols:
        raise ValueError(f"{path}: expected a model with symbolic dimensions, found none in its inputs")
    integers = tuple(value.name for value in inputs if value.dtype in ("int32", "int64"))
    return DynamicModel(name, path, tuple(inputs), tuple(symbols), integers, _weight_bytes(graph))


def _weight_bytes(graph: onnx.GraphProto) -> int:
    read = {name for node in every_node(graph) if node.op_type != "Gather" for name in node.input}
    sizes = {t.name: math.prod(t.dims) * onnx.helper.tensor_dtype_to_np_dtype(t.data_type).itemsize for t in graph.initializer}
    return sum(size for name, size in sizes.items() if name in read)


def choose_grids(models: Sequence[DynamicModel], given: Sequence[Grid]) -> list[list[Grid]]:
    """The grids of each model: the given grids that fit, otherwise the grids in SWEEPS, otherwise a grid of BATCHES and EXTENTS.

    Raises:
      ValueError: a given grid fits no model.
    """
    for grid in given:
        if not any(model.fits(grid) for model in models):
            known = ", ".join(f"{model.name}:{';'.join(f'{symbol}=...' for symbol in model.symbols)}" for model in models)
            raise ValueError(f"--sizes: expected the symbols of a model ({known}), found {';'.join(f'{name}=...' for name in grid.values)}")
    return [_grids(model, given) for model in models]


def _grids(model: DynamicModel, given: Sequence[Grid]) -> list[Grid]:
    known = [parse_grid(text) for text in SWEEPS.get(model.name, ())]
    fitting = ([grid for grid in grids if model.fits(grid)] for grids in (given, known))
    general = Grid({name: BATCHES if "batch" in name.lower() else EXTENTS for name in model.symbols})
    return next((grids for grids in fitting if grids), [general])


def points_of(grids: Sequence[Grid]) -> list[dict[str, int]]:
    """All points of some grids, each once."""
    return points_once(point for grid in grids for point in grid.points)


def points_once(points: Iterable[Sizes]) -> list[dict[str, int]]:
    """Points in order, each once."""
    return [dict(point) for point in dict.fromkeys(tuple(p.items()) for p in points)]
