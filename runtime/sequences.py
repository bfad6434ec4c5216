"""Packed functions on sequences and optional values, under the names `relayc.host.sequence.NAME` and `relayc.host.optional.NAME`.

They take tensors, then what they write. An object is int64[], its number in the call (see runtime.host); elements are copied, as a program
uses its memory again. `where` is uint8[length], the text that an error begins with, and positions are int64[], negative ones from the end.
"""

from itertools import pairwise

import numpy as np

from relayc.runtime.host import ABSENT, HOST_PREFIX, current
from relayc.runtime.objects import Maps, Object, Version
from relayc.runtime.registry import register_func


def _text(where: np.ndarray) -> str:
    return where.tobytes().decode()


def _sequence(number: np.ndarray) -> Version:
    found = current().objects[int(number)]
    assert isinstance(found, Version)  # by the types of the model
    return found


def _add(out: np.ndarray, made: Object) -> None:
    out[...] = current().add(made)


def _write(out: np.ndarray, array: np.ndarray, what: str, where: np.ndarray) -> None:
    """Copies an element. Raises ValueError where it has another shape than the program has memory for."""
    if array.shape != out.shape:
        raise ValueError(f"{_text(where)}: {what}: expected a tensor of shape {list(out.shape)}, found {list(array.shape)}")
    # One of a narrow type that came from outside: the program has its bits.
    out[...] = array if array.dtype == out.dtype else array.view(out.dtype)


def _write_shape(out: np.ndarray, array: np.ndarray, what: str, where: np.ndarray) -> None:
    """Writes the shape of an element. Raises ValueError where it has another rank than the program was compiled for."""
    if array.ndim != len(out):
        raise ValueError(f"{_text(where)}: {what}: expected a tensor of rank {len(out)}, found one of shape {list(array.shape)}")
    out[...] = array.shape


def _counted(position: np.ndarray, length: int, last: int, where: np.ndarray) -> int:
    """A position from the front. Raises IndexError for one that is not in [-length, last]."""
    found = int(position)
    if not -length <= found <= last:
        within = f"a value in [{-length}, {last}]" if -length <= last else "none"
        raise IndexError(f"{_text(where)}: position in a sequence of {length} elements: expected {within}, found {found}")
    return found + length if found < 0 else found


# ---- sequences ------------------------------------------------------------------------------------------------------------------------


@register_func(f"{HOST_PREFIX}sequence.construct")
def construct(*tensors: np.ndarray) -> None:
    """tensors..., out: a sequence of copies of tensors, of none too."""
    *items, out = tensors
    _add(out, Version([np.array(item) for item in items]))


@register_func(f"{HOST_PREFIX}sequence.append")
def append(sequence: np.ndarray, tensor: np.ndarray, out: np.ndarray) -> None:
    """A sequence with a tensor more at the end."""
    _add(out, _sequence(sequence).appended(np.array(tensor)))


@register_func(f"{HOST_PREFIX}sequence.insert")
def insert(sequence: np.ndarray, tensor: np.ndarray, position: np.ndarray, where: np.ndarray, out: np.ndarray) -> None:
    """A sequence with a tensor more, before a position that may be its end. Raises IndexError."""
    found = _sequence(sequence)
    at = _counted(position, found.length, found.length, where)
    item = np.array(tensor)
    _add(out, found.appended(item) if at == found.length else found.inserted(at, item))


@register_func(f"{HOST_PREFIX}sequence.erase")
def erase(sequence: np.ndarray, position: np.ndarray, where: np.ndarray, out: np.ndarray) -> None:
    """A sequence without the tensor at a position. Raises IndexError."""
    found = _sequence(sequence)
    _add(out, found.erased(_counted(position, found.length, found.length - 1, where)))


@register_func(f"{HOST_PREFIX}sequence.length")
def length(sequence: np.ndarray, out: np.ndarray) -> None:
    """int64[]: the number of elements."""
    out[...] = _sequence(sequence).length


def _element(sequence: np.ndarray, position: np.ndarray, where: np.ndarray) -> np.ndarray:
    found = _sequence(sequence)
    return found.at(_counted(position, found.length, found.length - 1, where))


@register_func(f"{HOST_PREFIX}sequence.shape")
def shape(sequence: np.ndarray, position: np.ndarray, where: np.ndarray, out: np.ndarray) -> None:
    """int64[rank]: the shape of an element. Raises IndexError, and ValueError for one of another rank."""
    _write_shape(out, _element(sequence, position, where), "element", where)


@register_func(f"{HOST_PREFIX}sequence.at")
def at(sequence: np.ndarray, position: np.ndarray, where: np.ndarray, out: np.ndarray) -> None:
    """An element. Raises IndexError, and ValueError for one of another shape."""
    _write(out, _element(sequence, position, where), "element", where)


@register_func(f"{HOST_PREFIX}sequence.split")
def split(data: np.ndarray, parts: np.ndarray, axis: np.ndarray, where: np.ndarray, out: np.ndarray) -> None:
    """A sequence of the parts of a tensor along an axis.

    Args:
      parts: int64[], the size of each, of which the last may be smaller; int64[n], the sizes; int64[0, 0] for slices without the axis.

    Raises ValueError for sizes that are negative or do not add up to that of the axis, or one for all that is not positive.
    """
    along = int(axis)
    size = data.shape[along]
    if parts.ndim == 2:
        _add(out, Version([np.array(data.take(i, along)) for i in range(size)]))
        return
    if parts.ndim == 0:
        step = int(parts)
        if step < 1:
            raise ValueError(f"{_text(where)}: split: expected a size of 1 or more, found {step}")
        ends = [*range(step, size, step), *([size] if size else [])]
    else:
        if (parts < 0).any() or parts.sum() != size:
            raise ValueError(f"{_text(where)}: split: expected sizes that add up to {size}, found {parts.tolist()}")
        ends = np.cumsum(parts).tolist()
    moved = np.moveaxis(data, along, 0)
    slices = [np.moveaxis(moved[b:e], 0, along) for b, e in pairwise([0, *ends])]
    _add(out, Version([np.array(one, order="C") for one in slices]))


def _parts(sequence: np.ndarray, axis: int, new_axis: bool, rank: int, where: np.ndarray) -> list[np.ndarray]:
    """The elements that are to be joined along an axis. Raises ValueError where they do not fit."""
    items = list(_sequence(sequence))
    if not items:
        raise ValueError(f"{_text(where)}: expected a sequence of elements, found an empty one")
    shapes = [item.shape if new_axis else (*item.shape[:axis], 0, *item.shape[axis + 1 :]) for item in items]
    if items[0].ndim + new_axis != rank or any(s != shapes[0] for s in shapes):
        other = next((item for item, s in zip(items, shapes, strict=True) if s != shapes[0]), items[0])
        alike = "one shape" if new_axis else f"shapes that differ in axis {axis} alone"
        found = f"{list(items[0].shape)} and {list(other.shape)}"
        raise ValueError(f"{_text(where)}: expected elements of rank {rank - new_axis} and {alike}, found {found}")
    return items


@register_func(f"{HOST_PREFIX}sequence.concat_shape")
def concat_shape(sequence: np.ndarray, axis: np.ndarray, new_axis: np.ndarray, where: np.ndarray, out: np.ndarray) -> None:
    """int64[rank]: the shape of what `concat` gives. Raises ValueError."""
    along, is_new = int(axis), bool(new_axis)
    items = _parts(sequence, along, is_new, len(out), where)
    found = list(items[0].shape)
    if is_new:
        found.insert(along, len(items))
    else:
        found[along] = sum(item.shape[along] for item in items)
    out[...] = found


@register_func(f"{HOST_PREFIX}sequence.concat")
def concat(sequence: np.ndarray, axis: np.ndarray, new_axis: np.ndarray, where: np.ndarray, out: np.ndarray) -> None:
    """The elements one behind the other along an axis, which is a new one where `new_axis` (bool[]) says so. Raises ValueError."""
    along, is_new = int(axis), bool(new_axis)
    items = [item.view(out.dtype) for item in _parts(sequence, along, is_new, out.ndim, where)]
    (np.stack if is_new else np.concatenate)(items, along, out=out)


@register_func(f"{HOST_PREFIX}sequence.zip_map")
def zip_map(rows: np.ndarray, keys: np.ndarray, are_texts: np.ndarray, out: np.ndarray) -> None:
    """A sequence of maps, one for each row of [maps, keys]: the keys are int64[keys], or numbers of strings where `are_texts` (bool[])."""
    names = current().texts(keys) if bool(are_texts) else keys
    _add(out, Maps(names.tolist(), np.array(rows)))


# ---- optional values ------------------------------------------------------------------------------------------------------------------


def _content(optional: np.ndarray, where: np.ndarray) -> Object:
    number = int(optional)
    if number == ABSENT:
        raise ValueError(f"{_text(where)}: expected an optional value that is there, found none")
    found: Object = current().objects[number]
    return found


def _tensor(optional: np.ndarray, where: np.ndarray) -> np.ndarray:
    found = _content(optional, where)
    assert isinstance(found, np.ndarray)  # by the types of the model
    return found


@register_func(f"{HOST_PREFIX}optional.some")
def some(tensor: np.ndarray, out: np.ndarray) -> None:
    """An optional value that is there, a copy of a tensor."""
    _add(out, np.array(tensor))


@register_func(f"{HOST_PREFIX}optional.present")
def present(optional: np.ndarray, where: np.ndarray, out: np.ndarray) -> None:
    """The content of an optional value that is an object. Raises ValueError where there is none."""
    _content(optional, where)
    out[...] = optional


@register_func(f"{HOST_PREFIX}optional.shape")
def optional_shape(optional: np.ndarray, where: np.ndarray, out: np.ndarray) -> None:
    """int64[rank]: the shape of the content. Raises ValueError where there is none, or one of another rank."""
    _write_shape(out, _tensor(optional, where), "content", where)


@register_func(f"{HOST_PREFIX}optional.get")
def get(optional: np.ndarray, where: np.ndarray, out: np.ndarray) -> None:
    """The content, a tensor. Raises ValueError where there is none, or one of another shape."""
    _write(out, _tensor(optional, where), "content", where)
