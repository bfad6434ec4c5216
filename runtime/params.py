"""Parameters of a module as files, under the names that TVM has for it. The format is safetensors: reading executes nothing."""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from relayc.files import read_file
from relayc.runtime.artifact import Artifact, ParameterInfo, TensorSpec, aligned_empty, numpy_dtype
from relayc.runtime.safetensors import read_safetensors, safetensors_bytes, write_safetensors
from relayc.runtime.tensor import Tensor, as_array


def save_param_dict(params: Mapping[str, Any]) -> bytes:
    """Parameters by name as the contents of a safetensors file.

    Args:
      params: arrays, or tensors that speak DLPack.

    Raises:
      TypeError, ValueError: something that is no array of numbers in the host's memory.
    """
    return safetensors_bytes(_arrays(params))


def save_param_dict_to_file(params: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """As `save_param_dict`, into a file. Raises OSError if it cannot be written."""
    write_safetensors(path, _arrays(params))


def load_param_dict(content: bytes | bytearray | memoryview) -> dict[str, np.ndarray]:
    """What `save_param_dict` gave, or the contents of any safetensors file: arrays by name, views of the contents.

    Raises:
      ValueError: these are not the contents of a whole safetensors file.
    """
    return read_safetensors(content, "parameters")[0]


def load_param_dict_from_file(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """As `load_param_dict`, from a file. Raises OSError if it cannot be read."""
    return read_safetensors(read_file(path), str(path))[0]


def parameter_arrays(artifact: Artifact) -> dict[str, np.ndarray]:
    """The parameters of a program by name: read-only views of its blob, in the layouts that kernels read."""
    found = {info.spec.name: _view(artifact.params, info) for info in artifact.parameters}
    for array in found.values():
        array.flags.writeable = False
    return found


def with_parameters(artifact: Artifact, params: Mapping[str, Any]) -> Artifact:
    """A program with other values for some parameters.

    Raises:
      ValueError: a name that no parameter has, or an array of another shape or dtype.
    """
    known = {info.spec.name: info for info in artifact.parameters}
    blob = aligned_empty(artifact.params.nbytes)
    blob[:] = artifact.params
    for name, array in _arrays(params).items():
        if name not in known:
            raise ValueError(f"parameters: expected names out of {', '.join(known)}, found {name!r}")
        place = _view(blob, known[name])
        if (array.shape, array.dtype) != (place.shape, place.dtype):
            found = TensorSpec("", array.shape, array.dtype.name)
            raise ValueError(f"parameter {name!r}: expected {known[name].spec}, found {found}")
        place[...] = array
    return replace(artifact, params=blob)


def _view(blob: np.ndarray, info: ParameterInfo) -> np.ndarray:
    return np.ndarray(info.spec.at({}), numpy_dtype(info.spec.dtype), blob, info.offset)


def _arrays(params: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {name: value.numpy() if isinstance(value, Tensor) else as_array(value) for name, value in params.items()}
