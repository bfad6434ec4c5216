"""The largest or smallest elements along an axis."""

from dataclasses import replace

from relayc.frontend.converter import Tensor, assume, axis_of, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.steps import filled, strided_slice
from relayc.symbolic import Ranges, Size, maximum, minimum, name_of, proves


def _has_elements(k: Size, extent: Size) -> bool:
    """Whether it is proved that k is 1 or more where an axis of `extent` elements has any."""
    name = name_of(extent)
    if name is None:
        return proves(lambda: k >= 1)
    known = Ranges.current().of(name)
    with Ranges({**Ranges.current(), name: replace(known, low=max(known.low, 1))}):
        return proves(lambda: k >= 1)


def topk(x: Tensor, k: Size, axis: int, largest: bool) -> tuple[Tensor, ...]:
    axis = axis_of(axis, x.rank)
    wanted = [k if i == axis else d for i, d in enumerate(x.shape)]
    if isinstance(k, int) and k < 1:
        if k < 0:
            raise ModelError(f"k: expected 0 or more, found {k}")
        return filled(wanted, 0, x.dtype), filled(wanted, 0, "int64")
    # Relay's operator gives one element at least where there is one: none is the first of no places.
    enough = k if _has_elements(k, x.shape[axis]) else maximum(k, minimum(1, x.shape[axis]))
    found = emit("topk", x, k=enough, axis=axis, ret_type="both", is_ascend=not largest, dtype="int64")
    if enough is k:
        return found
    return tuple(assume(strided_slice(t, [0], [k], [1], [axis]), wanted) for t in found)
