"""The largest or smallest elements along an axis."""

from dataclasses import replace

from relayc.frontend.converter import Tensor, assume, axis_of, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.steps import filled, strided_slice
from relayc.symbolic import Ranges, Size, maximum, minimum, name_of, proves


def _one_at_least(k: Size, extent: Size) -> Size:
    """k, or 1 where it is less and an axis of `extent` elements has any."""
    name = name_of(extent)
    if name is not None:
        known = Ranges.current().of(name)
        with Ranges({**Ranges.current(), name: replace(known, low=max(known.low, 1))}):
            if proves(lambda: k >= 1):
                return k
    return maximum(k, minimum(1, extent))


def topk(x: Tensor, k: Size, axis: int, largest: bool) -> tuple[Tensor, ...]:
    axis = axis_of(axis, x.rank)
    wanted = [k if i == axis else d for i, d in enumerate(x.shape)]
    if isinstance(k, int) and k < 1:
        if k < 0:
            raise ModelError(f"k: expected 0 or more, found {k}")
        return filled(wanted, 0, x.dtype), filled(wanted, 0, "int64")
    # Relay's operator gives one element at least where there is one: none is the first of no places.
    enough = _one_at_least(k, x.shape[axis])
    found = emit("topk", x, k=enough, axis=axis, ret_type="both", is_ascend=not largest, dtype="int64")
    if enough == k:
        return found
    return tuple(assume(strided_slice(t, [0], [k], [1], [axis]), wanted) for t in found)
