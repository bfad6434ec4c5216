"""Packed functions on sequences and optional values, under the names `relayc.host.sequence.NAME` and `relayc.host.optional.NAME`.

They take tensors, then what they write. An object is int64[], its number in the call (see runtime.host); elements are copied, as a program
uses its memory again. `where` is uint8[length], the text that an error begins with, and positions are int64[], negative ones from the end.
"""

import ctypes
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import tvm_ffi

from relayc.runtime.host import ABSENT, HOST_PREFIX, current
from relayc.runtime.objects import Maps, Object, Version
from relayc.runtime.registry import register_host_func
from relayc.runtime.tensor import borrowed

Tensor: TypeAlias = tvm_ffi.Tensor


def number_in(scalar: Tensor) -> int:
    """The element of int64[], the number of an object or a position."""
    return ctypes.c_int64.from_address(scalar.data_ptr()).value


def _set(out: Tensor, value: int) -> None:
    """Writes int64[]."""
    ctypes.c_int64.from_address(out.data_ptr()).value = value


def _copy(tensor: Tensor) -> np.ndarray:
    return borrowed(tensor).copy()


def text_of(where: Tensor) -> str:
    """The start of an error message."""
    return borrowed(where).tobytes().decode()


def _sequence(number: Tensor) -> Version:
    found = current().objects[number_in(number)]
    assert isinstance(found, Version)  # by the types of the model
    return found


def _add(out: Tensor, made: Object) -> None:
    _set(out, current().add(made))


def _write(out: Tensor, array: np.ndarray, what: str, where: Tensor) -> None:
    """Copies an element. Raises ValueError if it has another shape than the program has memory for."""
    to = borrowed(out)
    if array.shape != to.shape:
        raise ValueError(f"{text_of(where)}: {what}: expected a tensor of shape {list(to.shape)}, found {list(array.shape)}")
    # One of a narrow type that came from outside: the program has its bits.
    to[...] = array if array.dtype == to.dtype else array.view(to.dtype)


def _write_shape(out: Tensor, array: np.ndarray, what: str, where: Tensor) -> None:
    """Writes the shape of an element. Raises ValueError if it has another rank than the program was compiled for."""
    to = borrowed(out)
    if array.ndim != len(to):
        raise ValueError(f"{text_of(where)}: {what}: expected a tensor of rank {len(to)}, found one of shape {list(array.shape)}")
    to[...] = array.shape


def _counted(position: Tensor, length: int, last: int, where: Tensor) -> int:
    """A position from the front. Raises IndexError for one that is not in [-length, last]."""
    found = number_in(position)
    if not -length <= found <= last:
        within = f"a value in [{-length}, {last}]" if -length <= last else "none"
        raise IndexError(f"{text_of(where)}: position in a sequence of {length} elements: expected {within}, found {found}")
    return found + length if found < 0 else found


# ---- sequences ------------------------------------------------------------------------------------------------------------------------


@register_host_func(f"{HOST_PREFIX}sequence.construct")
def construct(*tensors: Tensor) -> None:
    """tensors..., out: a sequence of copies of tensors, of none too."""
    *items, out = tensors
    _add(out, Version([_copy(item) for item in items]))


@register_host_func(f"{HOST_PREFIX}sequence.append")
def append(sequence: Tensor, tensor: Tensor, out: Tensor) -> None:
    """A sequence with a tensor more at the end."""
    _add(out, _sequence(sequence).appended(_copy(tensor)))


@register_host_func(f"{HOST_PREFIX}sequence.insert")
def insert(sequence: Tensor, tensor: Tensor, position: Tensor, where: Tensor, out: Tensor) -> None:
    """A sequence with a tensor more, before a position that may be its end. Raises IndexError."""
    found = _sequence(sequence)
    at = _counted(position, found.length, found.length, where)
    item = _copy(tensor)
    _add(out, found.appended(item) if at == found.length else found.inserted(at, item))


@register_host_func(f"{HOST_PREFIX}sequence.erase")
def erase(sequence: Tensor, position: Tensor, where: Tensor, out: Tensor) -> None:
    """A sequence without the tensor at a position. Raises IndexError."""
    found = _sequence(sequence)
    _add(out, found.erased(_counted(position, found.length, found.length - 1, where)))


@register_host_func(f"{HOST_PREFIX}sequence.length")
def length(sequence: Tensor, out: Tensor) -> None:
    """int64[]: the number of elements."""
    _set(out, _sequence(sequence).length)


def _element(sequence: Tensor, position: Tensor, where: Tensor) -> np.ndarray:
    found = _sequence(sequence)
    return found.at(_counted(position, found.length, found.length - 1, where))


@register_host_func(f"{HOST_PREFIX}sequence.shape")
def shape(sequence: Tensor, position: Tensor, where: Tensor, out: Tensor) -> None:
    """int64[rank]: the shape of an element. Raises IndexError, and ValueError for one of another rank."""
    _write_shape(out, _element(sequence, position, where), "element", where)


@register_host_func(f"{HOST_PREFIX}sequence.at")
def at(sequence: Tensor, position: Tensor, where: Tensor, out: Tensor) -> None:
    """An element. Raises IndexError, and ValueError for one of another shape."""
    _write(out, _element(sequence, position, where), "element", where)


@register_host_func(f"{HOST_PREFIX}sequence.split")
def split(data: Tensor, parts: Tensor, axis: Tensor, where: Tensor, out: Tensor) -> None:
    """A sequence of the parts of a tensor along an axis.

    Args:
      parts: int64[], the size of each, of which the last may be smaller; int64[n], the sizes; int64[0, 0] for slices without the axis.

    Raises ValueError for sizes that are negative or do not add up to that of the axis, or one for all that is not positive.
    """
    along = number_in(axis)
    whole, sizes = np.moveaxis(borrowed(data), along, 0), borrowed(parts)
    size = len(whole)
    if sizes.ndim == 2:
        _add(out, Version([row.copy() for row in whole]))
        return
    if sizes.ndim == 0:
        step = int(sizes)
        if step < 1:
            raise ValueError(f"{text_of(where)}: split: expected a size of 1 or more, found {step}")
        ends = [*range(step, size, step), *([size] if size else [])]
    else:
        if (sizes < 0).any() or sizes.sum() != size:
            raise ValueError(f"{text_of(where)}: split: expected sizes that add up to {size}, found {sizes.tolist()}")
        ends = np.cumsum(sizes).tolist()
    _add(out, Version([np.moveaxis(whole[b:e], 0, along).copy() for b, e in pairwise([0, *ends])]))


def _parts(sequence: Tensor, axis: int, new_axis: bool, rank: int, where: Tensor) -> list[np.ndarray]:
    """The elements that are to be joined along an axis. Raises ValueError if they do not fit."""
    items = list(_sequence(sequence))
    if not items:
        raise ValueError(f"{text_of(where)}: expected a sequence of elements, found an empty one")
    shapes = [item.shape if new_axis else (*item.shape[:axis], 0, *item.shape[axis + 1 :]) for item in items]
    if items[0].ndim + new_axis != rank or any(s != shapes[0] for s in shapes):
        other = next((item for item, s in zip(items, shapes, strict=True) if s != shapes[0]), items[0])
        alike = "one shape" if new_axis else f"shapes that differ in axis {axis} alone"
        found = f"{list(items[0].shape)} and {list(other.shape)}"
        raise ValueError(f"{text_of(where)}: expected elements of rank {rank - new_axis} and {alike}, found {found}")
    return items


@register_host_func(f"{HOST_PREFIX}sequence.concat_shape")
def concat_shape(sequence: Tensor, axis: Tensor, new_axis: Tensor, where: Tensor, out: Tensor) -> None:
    """int64[rank]: the shape of the result of `concat`. Raises ValueError."""
    along, is_new, to = number_in(axis), bool(number_in(new_axis)), borrowed(out)
    items = _parts(sequence, along, is_new, len(to), where)
    found = list(items[0].shape)
    if is_new:
        found.insert(along, len(items))
    else:
        found[along] = sum(item.shape[along] for item in items)
    to[...] = found


@register_host_func(f"{HOST_PREFIX}sequence.concat")
def concat(sequence: Tensor, axis: Tensor, new_axis: Tensor, where: Tensor, out: Tensor) -> None:
    """The elements one behind the other along an axis, which is a new one where `new_axis` (int64[]) is not 0. Raises ValueError."""
    along, is_new, to = number_in(axis), bool(number_in(new_axis)), borrowed(out)
    items = [item.view(to.dtype) for item in _parts(sequence, along, is_new, to.ndim, where)]
    (np.stack if is_new else np.concatenate)(items, along, out=to)


@register_host_func(f"{HOST_PREFIX}sequence.zip_map")
def zip_map(rows: Tensor, keys: Tensor, are_texts: Tensor, out: Tensor) -> None:
    """A sequence of maps, one for each row of [maps, keys]: the keys are int64[keys], or numbers of strings where `are_texts` (bool[])."""
    numbers = borrowed(keys)
    names = current().texts(numbers) if borrowed(are_texts).item() else numbers
    _add(out, Maps(names.tolist(), _copy(rows)))


# ---- optional values ------------------------------------------------------------------------------------------------------------------


def _content(optional: Tensor, where: Tensor) -> Object:
    number = number_in(optional)
    if number == ABSENT:
        raise ValueError(f"{text_of(where)}: expected an optional value that is there, found none")
    return current().objects[number]


def _tensor(optional: Tensor, where: Tensor) -> np.ndarray:
    found = _content(optional, where)
    assert isinstance(found, np.ndarray)  # by the types of the model
    return found


@register_host_func(f"{HOST_PREFIX}optional.some")
def some(tensor: Tensor, out: Tensor) -> None:
    """An optional value that is there, a copy of a tensor."""
    _add(out, _copy(tensor))


@register_host_func(f"{HOST_PREFIX}optional.present")
def present(optional: Tensor, where: Tensor, out: Tensor) -> None:
    """The content of an optional value that is an object. Raises ValueError if it is absent."""
    _content(optional, where)
    _set(out, number_in(optional))


@register_host_func(f"{HOST_PREFIX}optional.shape")
def optional_shape(optional: Tensor, where: Tensor, out: Tensor) -> None:
    """int64[rank]: the shape of the content. Raises ValueError if it is absent, or has another rank."""
    _write_shape(out, _tensor(optional, where), "content", where)


@register_host_func(f"{HOST_PREFIX}optional.get")
def get(optional: Tensor, where: Tensor, out: Tensor) -> None:
    """The content, a tensor. Raises ValueError if it is absent, or has another shape."""
    _write(out, _tensor(optional, where), "content", where)
