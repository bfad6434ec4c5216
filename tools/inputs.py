"""Inputs of a model on the command line: their shapes, and their values from a file or made up."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from relayc.runtime import TensorSpec
from relayc.runtime.artifact import numpy_dtype


def parse_shape(text: str) -> tuple[str, list[int]]:
    """NAME=D0,D1,... as a name and a shape; NAME= is a scalar. For argparse: raises ArgumentTypeError."""
    name, equals, dims = text.rpartition("=")
    try:
        shape = [int(d) for d in dims.split(",") if d]
    except ValueError:
        shape = [-1]
    if not equals or not name or min(shape, default=0) < 0:
        raise argparse.ArgumentTypeError(f"expected NAME=D0,D1,... with dimensions that are not negative, found {text!r}")
    return name, shape


def parse_seed(text: str) -> int:
    """A seed. For argparse: raises ArgumentTypeError."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number of 0 or more, found {text!r}")
    return int(text)


def random_inputs(specs: Sequence[TensorSpec], seed: int = 0) -> dict[str, np.ndarray]:
    """Values for each input: floating-point standard normal, integers and booleans 0 or 1 (valid as indices of anything)."""
    rng = np.random.default_rng(seed)
    found = {}
    for spec in specs:
        dtype = numpy_dtype(spec.dtype)
        is_float = spec.dtype.startswith(("float", "bfloat"))
        values = rng.standard_normal(spec.shape) if is_float else rng.integers(0, 2, spec.shape)
        found[spec.name] = np.asarray(values).astype(dtype)
    return found


def load_inputs(path: Path, specs: Sequence[TensorSpec]) -> dict[str, np.ndarray]:
    """The arrays of an .npz file (numpy.savez) by input name; a bfloat16 input may be stored as its uint16 bits.

    Raises:
      ValueError: the file is not an .npz file of numeric arrays.
    """
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise ValueError("one bare array")
        with file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path}: expected an .npz file of numeric arrays, as numpy.savez writes it") from error
    for spec in specs:
        array = arrays.get(spec.name)
        # numpy stores bfloat16 as bytes without a meaning ("V2"), save_outputs as uint16.
        if spec.dtype == "bfloat16" and array is not None and array.dtype in (np.dtype("V2"), np.uint16):
            arrays[spec.name] = array.view(numpy_dtype("bfloat16"))
    return arrays


def save_outputs(path: Path, outputs: Mapping[str, np.ndarray]) -> None:
    """Writes arrays by name as an .npz file; bfloat16 as its uint16 bits, which every numpy reads."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:  # numpy would add .npz to a path
        arrays = {name: array.view(np.uint16) if array.dtype.name == "bfloat16" else array for name, array in outputs.items()}
        np.savez(file, **arrays)  # type: ignore[arg-type] # its stubs take a name for the option allow_pickle
