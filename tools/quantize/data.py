"""Samples: what a model gets in use, as arrays by input name, from files, a script or Python."""

import math
import os
import runpy
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from inspect import signature
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from onnx import ValueInfoProto, helper

from relayc.files import open_file
from relayc.nearest import nearest
from relayc.tools.inputs import UNREADABLE

BATCH = 16
"""Rows of an .npz file that make one sample, where the model takes batches of any size."""

Sample = Mapping[str, np.ndarray]


@dataclass
class Samples:
    """Samples that can be read as often as there is something to measure; they are never all in memory at once."""

    read: Callable[[], Iterable[Sample]]
    inputs: Mapping[str, ValueInfoProto]
    shapes: Mapping[str, Sequence[Any]]
    extra: bool
    where: str
    limit: int | None
    count: int | None = None

    def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
        count, found = 0, self.read()
        if not isinstance(found, Iterable):
            raise TypeError(f"{self.where}: expected samples (dicts of arrays by input name), found {type(found).__name__}")
        for sample in islice(found, self.limit):
            yield self._checked(sample, self.place(count))
            count += 1
        if not count:
            raise ValueError(f"{self.where}: expected samples, found none")
        self.count = count

    def place(self, number: int) -> str:
        """Where a sample comes from, for errors. Samples count from 0."""
        return f"{self.where}: sample {number}"

    def tracked(self, what: str, progress: Callable[..., None]) -> Iterator[dict[str, np.ndarray]]:
        """The samples, with a bar of how many there have been."""
        for number, sample in enumerate(self, 1):
            yield sample
            progress(what, number, self.count or self.limit)

    def inputs_of(self, sample: Sample) -> dict[str, np.ndarray]:
        """A sample without what only a metric reads."""
        return {name: sample[name] for name in self.inputs}

    def _checked(self, sample: Any, where: str) -> dict[str, np.ndarray]:
        if not isinstance(sample, Mapping):
            raise TypeError(f"{where}: expected arrays by input name, found {type(sample).__name__}")
        missing = [name for name in self.inputs if name not in sample]
        if missing:
            raise ValueError(f"{where}: expected the input {missing[0]}, found {', '.join(map(str, sample)) or 'no arrays'}")
        found = {}
        for name, value in sample.items():
            if name in self.inputs:
                found[name] = self._array(name, np.asarray(value), where)
            elif self.extra:
                found[name] = value
            else:
                raise ValueError(
                    f"{where}: expected inputs of the model ({', '.join(self.inputs)}), found {name}{nearest(name, self.inputs)}"
                )
        return found

    def _array(self, name: str, array: np.ndarray, where: str) -> np.ndarray:
        shape, dtype = self.shape(name), helper.tensor_dtype_to_np_dtype(self.inputs[name].type.tensor_type.elem_type)
        if array.ndim == len(shape) - 1 and (not isinstance(shape[0], int) or shape[0] == 1):
            array = array[None]
        agree = array.ndim == len(shape) and all(not isinstance(d, int) or d == n for d, n in zip(shape, array.shape, strict=True))
        if not agree:
            raise ValueError(f"{where}: {name}: expected the shape [{', '.join(map(str, shape))}], found {list(array.shape)}")
        if not np.can_cast(array.dtype, dtype, "same_kind"):
            raise ValueError(f"{where}: {name}: expected {dtype}, found {array.dtype}")
        return np.asarray(array, dtype, order="C")

    def shape(self, name: str) -> list[int | str]:
        """The shape of an input: sizes, and names or "?" for what may be any size."""
        dims = self.inputs[name].type.tensor_type.shape.dim
        known = [d.dim_value if d.HasField("dim_value") else d.dim_param or "?" for d in dims]
        return list(self.shapes.get(name, known))


def open_samples(
    data: Any,
    inputs: Sequence[ValueInfoProto],
    shapes: Mapping[str, Sequence[Any]] | None = None,
    extra: bool = False,
    limit: int | None = None,
    where: str = "data",
) -> Samples:
    """Samples of a folder, a file or a Python object.

    Args:
      data: a folder of .npz files (a sample each, arrays by input name) and .npy files (a sample each, of the only input); an .npz file
        (arrays by input name, whose first axis counts the samples); dicts of arrays by input name, or a function that gives these.
      shapes: of inputs, in place of those in the model.
      extra: whether samples may have arrays that are no inputs, for a metric.
      limit: how many samples are read at most.
      where: the start of errors about a Python object.

    Raises:
      TypeError, ValueError: the data are none of these; as do the samples when they are read, with what was expected.
    """
    make = partial(Samples, inputs={value.name: value for value in inputs}, shapes=shapes or {}, extra=extra, limit=limit)
    if isinstance(data, (str, os.PathLike)):
        path = Path(data)
        if not path.exists():
            raise ValueError(f"data: expected a folder, an .npz file or a script (.py), found nothing at {path}")
        if path.is_dir():
            return make(partial(_folder, path, inputs), where=str(path))
        if path.suffix == ".npz":
            found = make(lambda: (), where=str(path))
            found.read = partial(_rows, path, found)
            return found
        raise ValueError(f"data: expected a folder, an .npz file or a script (.py), found {path}")
    if callable(data):
        if any(
            p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in signature(data).parameters.values()
        ):
            raise TypeError(f"{where}: expected a function that is called without arguments and gives samples")
        return make(data, where=where)
    if not isinstance(data, Iterable) or isinstance(data, (bytes, Mapping, np.ndarray)):
        raise TypeError(
            f"{where}: expected samples (dicts of arrays by input name), a function that gives them, or a path, found {_kind(data)}"
        )
    if isinstance(data, Iterator):
        raise TypeError(f"{where}: expected samples that can be read several times, found an iterator; pass the function that makes it")
    return make(lambda: data, where=where)


def _kind(data: Any) -> str:
    return "one dict" if isinstance(data, Mapping) else type(data).__name__


def script_names(path: Path) -> dict[str, Any]:
    """The names that a script of samples defines: `data`, and it may have `metric`. Raises ValueError without `data`, and for any error in
    the script or in these functions, which is the cause of the ValueError."""
    with _script(path):
        names = runpy.run_path(str(path))
    if "data" not in names:
        raise ValueError(f"{path}: expected a function `data` that gives samples (dicts of arrays by input name), found none")
    return {name: _guarded(path, names[name]) for name in ("data", "metric") if name in names}


@contextmanager
def _script(path: Path) -> Iterator[None]:
    """Errors in a script become one error that names the script and the line."""
    try:
        yield
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        lines += [error.lineno] if isinstance(error, SyntaxError) and error.filename == str(path) else []
        place, text = f", line {lines[-1]}" if lines else "", error.msg if isinstance(error, SyntaxError) else error
        raise ValueError(f"{path}{place}: {type(error).__name__}: {text}") from error


def _guarded(path: Path, function: Any) -> Any:
    """A function of a script, whose errors name the script, as do those of the generator that it may give. What is no function stays."""
    if not callable(function):
        return function

    @wraps(function)
    def call(*arguments: Any) -> Any:
        with _script(path):
            found = function(*arguments)
        return _each(path, found) if isinstance(found, Iterator) else found

    return call


def _each(path: Path, found: Iterator[Any]) -> Iterator[Any]:
    with _script(path):
        yield from found


def _folder(path: Path, inputs: Sequence[ValueInfoProto]) -> Iterator[Sample]:
    files = sorted(file for file in path.iterdir() if file.suffix in (".npy", ".npz"))
    if not files:
        raise ValueError(f"{path}: expected .npy or .npz files, found none")
    for file in files:
        found = _load(file)
        if isinstance(found, np.ndarray) and len(inputs) != 1:
            raise ValueError(f"{file}: expected an .npz file with the inputs {', '.join(v.name for v in inputs)}, found one array")
        yield {inputs[0].name: found} if isinstance(found, np.ndarray) else found


def _load(file: Path) -> Any:
    with _readable(file):
        found = np.load(file)
        if isinstance(found, np.ndarray):
            return found
        with found:
            return {name: found[name] for name in found.files}


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    try:
        yield
    except UNREADABLE as error:
        raise ValueError(f"{file}: expected numeric arrays, as numpy.save and numpy.savez write them: {error}") from error


class _Rows:
    """An array in an .npz file, read along its first axis, so that no more than what is taken is in memory; an array in Fortran order,
    whose rows are spread over the file, is read whole."""

    def __init__(self, archive: ZipFile, member: str) -> None:
        self.stream: Any = archive.open(member)
        version = np.lib.format.read_magic(self.stream)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        self.shape, fortran, self.dtype = read_header(self.stream)
        if self.dtype.hasobject:
            raise ValueError(f"{member} has Python objects")
        if fortran:
            self.stream = BytesIO(np.lib.format.read_array(archive.open(member)).tobytes())

    def take(self, count: int) -> np.ndarray:
        """The next rows."""
        shape = (count, *self.shape[1:])
        size = math.prod(shape) * self.dtype.itemsize
        found = bytearray(self.stream.read(size))
        if len(found) < size:
            raise EOFError(f"{self.stream.name} ends early")
        return np.ndarray(shape, self.dtype, found)


def _rows(path: Path, samples: Samples) -> Iterator[Sample]:
    """Slices of the arrays of a file along their first axis: single rows, or batches of the size that the model takes."""
    with open_file(path) as file:
        with _readable(path):
            archive = ZipFile(file)
            arrays = {member.removesuffix(".npy"): _Rows(archive, member) for member in archive.namelist()}
        counts = {name: array.shape[0] if array.shape else -1 for name, array in arrays.items()}
        if not counts or len(set(counts.values())) > 1 or -1 in counts.values():
            found = ", ".join(f"{name}: {count}" for name, count in counts.items()) or "no arrays"
            raise ValueError(f"{path}: expected arrays of as many samples each along the first axis, found {found}")
        count = next(iter(counts.values()))
        batches = {name: samples.shape(name) for name in samples.inputs if name in arrays}
        rows = {name: shape for name, shape in batches.items() if len(arrays[name].shape) == len(shape)}
        sizes = {shape[0] for shape in rows.values() if shape and isinstance(shape[0], int)}
        size = max(sizes) if sizes else BATCH if rows else 1
        if count and len(rows) == len(batches) and sizes and count < size:
            raise ValueError(f"{path}: expected {size} rows or more, as the model takes batches of {size}, found {count}")
        whole = count - count % size if sizes else count
        for start in range(0, whole, size):
            with _readable(path):
                parts = {name: array.take(min(size, whole - start)) for name, array in arrays.items()}
            yield {name: part if name in rows or name not in batches or size > 1 else part[0] for name, part in parts.items()}
