"""Where conditions hold: positions, as many as only the program knows."""

from collections.abc import Sequence
from math import prod

import numpy as np

from relayc.frontend.converter import Tensor, assume, constant, emit, known
from relayc.frontend.sizes import positions, size_tensor, sizes
from relayc.frontend.steps import cast, filled, reshape
from relayc.symbolic import Size


def positions_where(holds: Tensor) -> Tensor:
    """The positions where a vector of bools holds, in order: as many as a symbol says that is defined here."""
    n = holds.shape[0]
    ones = cast(holds, "int64")
    count = emit("sum", ones, axis=(0,))
    # Each goes to the place that the number of those before it says; the others behind all places.
    places = emit("where", holds, emit("cumsum", ones, axis=0, exclusive=True), size_tensor(n))
    room = filled((n + 1,), 0, "int64")
    return first_rows(
        emit("scatter_elements", room, places, positions(n), axis=0, reduction="update", distinct=True, in_bounds=True), count
    )


def first_rows(padded: Tensor, count: Tensor) -> Tensor:
    """The first rows of a tensor: as many as `count` says, an integer of the program, by a symbol that is defined here."""
    count.name = "count"
    (found,) = sizes(count, "count")
    rows = emit("strided_slice", padded, begin=(0,), end=(found,), strides=(1,), axes=(0,))
    return assume(rows, (found, *padded.shape[1:]))


def nonzero(x: Tensor) -> Tensor:
    """The positions of the elements that are not 0, one in each column."""
    if x.is_known:
        return constant(np.stack(np.nonzero(np.atleast_1d(known(x, "X")))), "int64")
    data = reshape(x, (1,)) if x.rank == 0 else x
    flat = reshape(data, (prod(data.shape),))
    at = positions_where(flat if flat.dtype == "bool" else emit("not_equal", flat, filled((), 0, flat.dtype)))
    return emit("stack", *along_axes(at, data.shape), axis=0)


def along_axes(at: Tensor, shape: Sequence[Size]) -> list[Tensor]:
    """Positions in a flat tensor as positions along each axis of its shape."""
    found: list[Tensor] = []
    for d in reversed(shape):
        extent = size_tensor(d)
        found.insert(0, emit("floor_mod", at, emit("maximum", extent, constant(1, "int64"))))
        at = emit("floor_divide", at, emit("maximum", extent, constant(1, "int64")))
    return found
