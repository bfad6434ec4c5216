"""Inputs of a model on the command line: their shapes, and their values from a file or made up."""

import argparse
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile

import numpy as np

from relayc.files import open_file
from relayc.runtime import Module, TensorSpec
from relayc.runtime.artifact import is_numpys, is_object_dtype, numpy_dtype
from relayc.symbolic import Range, evaluate, parse, symbols_of

UNREADABLE = (ValueError, EOFError, RuntimeError, BadZipFile, zlib.error)
"""What numpy.load raises, or reading one of the arrays, for a file that is damaged or holds something else; zipfile raises RuntimeError
for an encrypted file, and NotImplementedError for another compression."""


def parse_shape(text: str) -> tuple[str, list[int | str]]:
    """NAME=D0,D1,... as a name and a shape of sizes and names; NAME= is a scalar. For argparse: raises ArgumentTypeError."""
    name, equals, dims = text.rpartition("=")
    try:
        shape = [_size(d) for d in split_fields(dims)]
    except ValueError:
        shape = [-1]
    if not equals or not name or any(isinstance(d, int) and d < 0 for d in shape):
        raise argparse.ArgumentTypeError(f"expected NAME=D0,D1,... with dimensions that are not negative, or names of such, found {text!r}")
    return name, shape


def split_fields(text: str, opening: str = "(", closing: str = ")") -> list[str]:
    """Parts between commas that stand in no brackets; empty ones are left out."""
    found, depth = [""], 0
    for c in text:
        depth += (c in opening) - (c in closing)
        if c == "," and depth == 0:
            found.append("")
        else:
            found[-1] += c
    return [part.strip() for part in found if part.strip()]


def _size(text: str) -> int | str:
    """Raises ValueError for a text that is neither a number nor an expression of names."""
    found = parse(text)
    return found if isinstance(found, int) else text


def parse_dim(text: str) -> tuple[str, int | tuple[int, int]]:
    """NAME=SIZE or NAME=LEAST:LARGEST. For argparse: raises ArgumentTypeError."""
    name, equals, size = text.rpartition("=")
    parts = size.split(":")
    if not equals or not name or len(parts) > 2 or not all(p.isdecimal() for p in parts):
        raise argparse.ArgumentTypeError(f"expected NAME=SIZE or NAME=LEAST:LARGEST, found {text!r}")
    first, last = int(parts[0]), int(parts[-1])
    if first > last:
        raise argparse.ArgumentTypeError(f"expected NAME=LEAST:LARGEST with the least size first, found {text!r}")
    return name, first if len(parts) == 1 else (first, last)


def parse_size(text: str) -> tuple[str, int]:
    """NAME=SIZE. For argparse: raises ArgumentTypeError."""
    name, equals, size = text.rpartition("=")
    if not equals or not name or not size.isdecimal():
        raise argparse.ArgumentTypeError(f"expected NAME=SIZE, found {text!r}")
    return name, int(size)


def parse_specialize(text: str) -> dict[str, int]:
    """NAME=SIZE,NAME=SIZE,... as sizes by name. For argparse: raises ArgumentTypeError."""
    sizes = [parse_size(part.strip()) for part in text.split(",")]
    names = [name for name, _ in sizes]
    if len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"expected NAME=SIZE,... with each name once, found {text!r}")
    return dict(sizes)


def parse_tolerance(text: str) -> tuple[float, float]:
    """RTOL or RTOL,ATOL; ATOL defaults to 0. For argparse: raises ArgumentTypeError."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not 1 <= len(found) <= 2 or not all(0 <= part < float("inf") for part in found):
        raise argparse.ArgumentTypeError(f"expected RTOL or RTOL,ATOL of 0 or more, found {text!r}")
    return found[0], found[-1] if len(found) == 2 else 0.0


def parse_count(text: str, least: int = 1) -> int:
    """A number of `least` or more. For argparse: raises ArgumentTypeError."""
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"expected a number of {least} or more, found {text!r}")
    return int(text)


parse_seed = partial(parse_count, least=0)
"""A seed, or a count that may be 0."""


def parse_seconds(text: str) -> float:
    """A number of seconds. For argparse: raises ArgumentTypeError."""
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1e9:
        raise argparse.ArgumentTypeError(f"expected a number of seconds, found {text!r}")
    return found


def output_file(text: str) -> Path:
    """A file to write, in a folder that is there, or - for standard output. For argparse: raises ArgumentTypeError."""
    path = Path(text)
    if text != "-" and (path.is_dir() or not path.parent.is_dir()):
        raise argparse.ArgumentTypeError(f"expected a file in a folder that is there, or -, found {text!r}")
    return path


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """The file of a path from `output_file`, to be written."""
    if str(path) == "-":
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with path.open("wb") as file:
            yield file


def symbol_sizes(specs: Sequence[TensorSpec], given: Mapping[str, int], ranges: Mapping[str, Range]) -> dict[str, int]:
    """A size for each symbol in the shapes of inputs: the one given, else a typical one.

    Raises ValueError for a name that no symbol has, a size outside of the symbol's range, or one that makes a dimension negative.
    """
    names = sorted({name for spec in specs for d in spec.shape for name in symbols_of(d)})
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ValueError(f"sizes: expected names of dimensions ({', '.join(names) or 'none'}), found {', '.join(unknown)}")
    found = {name: given.get(name, ranges.get(name, Range()).typical) for name in names}
    for name, size in found.items():
        known = ranges.get(name, Range())
        if not known.low <= size <= known.high:
            raise ValueError(f"sizes: {name}: expected a size of {known.low} to {known.high}, found {size}")
    for spec in specs:
        if any(evaluate(d, found) < 0 for d in spec.shape):
            raise ValueError(f"sizes: input {spec.name}: expected dimensions of 0 or more, found {spec} for {sizes_text(found)}")
    return found


def module_sizes(module: Module, given: Mapping[str, int]) -> dict[str, int]:
    """As `symbol_sizes`, for the symbols in the inputs of `main`."""
    return symbol_sizes(module.inputs, given, {name: Range(low, high) for name, (low, high) in module.ranges.items()})


def sizes_of_call(module: Module, inputs: Mapping[str, Any]) -> Mapping[str, int]:
    """The values of the symbols in a call of `main` with these inputs."""
    main = module[module.function_names()[0]]
    with main.host_values():
        return main.call_shapes(main.check([inputs[spec.name] for spec in main.inputs]))[1]


def sizes_text(sizes: Mapping[str, int]) -> str:
    """Sizes by name, in words."""
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())


FILLS = ("random", "zeros", "ones")
"""Ways to fill inputs."""


def random_inputs(
    specs: Sequence[TensorSpec], seed: int = 0, sizes: Mapping[str, int] | None = None, fill: str = "random"
) -> dict[str, Any]:
    """Values for each input: floating-point standard normal, integers and booleans 0 or 1 (valid as indices of anything), strings "0" or
    "1". Sequences have three elements, vectors of four, maps the keys 0 and 1, and optional values are there.

    `sizes` gives the size of each symbol in their shapes. With a `fill` other than "random" all values are 0, or 1.

    Raises ValueError for a value of a data type, a reference or a function.
    """
    for spec in specs:
        if spec.dtype.startswith("value("):
            raise ValueError(f"input {spec.name}: expected tensors to fill, found {spec.dtype}: call the module in Python with such values")
    rng = None if fill != "random" else np.random.default_rng(seed)
    return {spec.name: _values(rng, FILLS.index(fill) - 1, spec.dtype, spec.at(sizes or {})) for spec in specs}


def inputs_of(module: Module, given: Mapping[str, Any] | None, sizes: Mapping[str, int] | None, seed: int) -> Mapping[str, Any]:
    """The inputs of a module: `given`, otherwise random ones, of typical sizes unless sizes are given. Raises as `symbol_sizes`."""
    if given is not None:
        return given
    return random_inputs(module.inputs, seed, module_sizes(module, sizes or {}))


def _values(rng: np.random.Generator | None, number: int, dtype: str, shape: tuple[int, ...]) -> Any:
    """Random values, or a number as often as there are elements."""
    if is_object_dtype(dtype):
        # A program does not specify the shapes of tensors in an object.
        kind, _, content = dtype.removesuffix(")").partition("(")
        if kind == "map":
            of_keys, of_values = content.split(", ")
            values = _values(rng, number, of_values, (2,)).tolist()
            return dict(zip(["0", "1"] if of_keys == "string" else [0, 1], values, strict=True))
        return [_values(rng, number, content, (4,)) for _ in range(3)] if kind == "seq" else _values(rng, number, content, (4,))
    if rng is None:
        values = np.full(shape, number)
    else:
        values = rng.standard_normal(shape) if dtype.startswith(("float", "bfloat")) else rng.integers(0, 2, shape)
    return np.asarray(values).astype(str if dtype == "string" else numpy_dtype(dtype))


def load_inputs(path: Path, specs: Sequence[TensorSpec]) -> dict[str, np.ndarray]:
    """The arrays of an .npz file (numpy.savez) by input name; those of types that numpy has not may be stored as their bits.

    Raises:
      ValueError: the file is not an .npz file of numeric arrays.
    """
    try:
        with open_file(path) as stream:
            file = np.load(stream)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise ValueError("one bare array")
            arrays = {name: file[name] for name in file.files}
    except UNREADABLE as error:
        raise ValueError(f"{path}: expected an .npz file of numeric arrays, as numpy.savez writes it") from error
    for spec in specs:
        array = arrays.get(spec.name)
        dtype = numpy_dtype(spec.dtype)
        # numpy stores bfloat16 as bytes without a meaning ("V2"), save_outputs as uint16.
        stored = (np.dtype(f"V{dtype.itemsize}"), np.dtype(f"u{dtype.itemsize}"))
        if not is_numpys(dtype) and array is not None and array.dtype in stored:
            arrays[spec.name] = array.view(dtype)
    return arrays


def tensors_of(outputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The arrays in outputs by name: those in a sequence "NAME.0", "NAME.1", ...; of an optional value that is not there none; of a
    map "NAME.KEY"; of a sequence of maps "NAME.KEY", what all of them have for a key, float32[maps]."""
    found: dict[str, np.ndarray] = {}
    for name, value in outputs.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            found.update((f"{name}.{key}", np.array([one[key] for one in value], np.float32)) for key in value[0])
        elif isinstance(value, dict):
            found.update((f"{name}.{key}", np.array(item)) for key, item in value.items())
        elif isinstance(value, list):
            found.update((f"{name}.{i}", item) for i, item in enumerate(value))
        elif value is not None:
            found[name] = value
    return found


def save_outputs(path: Path, outputs: Mapping[str, Any]) -> None:
    """Writes arrays by name (see `tensors_of`) as an .npz file; those of types that numpy has not (bfloat16) as their bits, which every
    numpy reads, and strings as numpy's own."""
    with written(path) as file:  # numpy would add .npz to a path
        arrays = {name: _storable(array) for name, array in tensors_of(outputs).items()}
        np.savez(file, **arrays)  # type: ignore[arg-type] # its stubs take a name for the option allow_pickle


def _storable(array: Any) -> np.ndarray:
    if not isinstance(array, np.ndarray):
        raise ValueError(f"expected arrays to write, found an output that is a value of type {type(array).__name__}")
    if array.dtype == object:
        return array.astype(str)
    return array if is_numpys(array.dtype) else array.view(f"u{array.dtype.itemsize}")
