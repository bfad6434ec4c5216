"""Scales and zero points as the operators on quantised tensors take them (relayc.dialects.relay.qnn)."""

from collections.abc import Sequence

from relayc.frontend.converter import Tensor, assume, axis_of, emit
from relayc.frontend.steps import reshape, strided_slice
from relayc.symbolic import Size


def parameter(given: Tensor, x: Tensor, axis: int, block_size: int = 0) -> Tensor:
    """A scale or zero point of x: one number, one for each position along `axis`, or, with a `block_size`, one for each block along it."""
    if given.type.num_elements == 1 and given.rank <= 1:
        return reshape(given, ())
    axis = axis_of(axis, x.rank)
    if block_size:
        return of_blocks(given, x, [block_size if i == axis else 1 for i in range(x.rank)])
    return assume(given, (x.shape[axis],))


def of_blocks(given: Tensor, x: Tensor, blocks: Sequence[Size]) -> Tensor:
    """Numbers for the blocks of x, as they broadcast to x.

    Args:
      given: of the rank of x, with a number for each block. The last block along an axis may be cut off.
      blocks: the size of a block along each axis.
    """
    for axis, (size, block) in enumerate(zip(x.shape, blocks, strict=True)):
        if block not in (1, size):
            given = strided_slice(emit("repeat", given, repeats=block, axis=axis), (0,), (size,), (1,), (axis,))
    return given
