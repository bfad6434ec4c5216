"""Relay's layout strings: "NCHW", "NHWC", "OIHW", and blocked ones such as "NCHW16c".

An upper-case letter is an axis of the tensor; a number with the lower-case letter is the inner part of that axis, split off with this
block size: "NCHW16c" is a tensor [N, C / 16, H, W, 16].
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, overload

from relayc.dialects.relay.base import RelayError, Size, check
from relayc.dialects.relay.conditions import require_divides, require_equal

Shape = tuple[Size | None, ...]

NCHW = "NCHW"
"""The layout in which ONNX and Relay write images."""


@dataclass(frozen=True)
class Layout:
    """A parsed layout string.

    Attributes:
      text: the string.
      axes: a letter for each dimension of the tensor, lower case for the inner part of a blocked axis.
      blocks: block size of each blocked axis, by its upper-case letter.
    """

    text: str
    axes: tuple[str, ...]
    blocks: dict[str, int]

    @property
    def rank(self) -> int:
        """Number of dimensions of a tensor in this layout."""
        return len(self.axes)

    @property
    def letters(self) -> str:
        """The logical axes in order, such as "NCHW" for "NCHW16c"."""
        return "".join(a for a in self.axes if a.isupper())

    def index(self, axis: str) -> int:
        """Dimension of the tensor at which `axis` (its outer part where blocked; its inner part for a lower-case letter) stands."""
        return self.axes.index(axis)

    def block(self, axis: str) -> int:
        """Block size of `axis`: 1 if it is not blocked."""
        return self.blocks.get(axis, 1)

    @overload
    def logical(self, shape: tuple[int, ...], what: str = ...) -> dict[str, int]: ...
    @overload
    def logical(self, shape: tuple[Size, ...], what: str = ...) -> dict[str, Size]: ...
    @overload
    def logical(self, shape: Shape, what: str = ...) -> dict[str, Size | None]: ...

    def logical(self, shape: Shape, what: str = "data") -> Any:
        """Length of each logical axis of a tensor of `shape`. Raises RelayError if the shape does not fit the layout."""
        check(len(shape) == self.rank, f"rank of {what}", f"{self.rank} (layout {self.text})", len(shape))
        found = dict(zip(self.axes, shape, strict=True))
        for letter, size in self.blocks.items():
            inner, outer = found.pop(letter.lower()), found[letter]
            require_equal(inner, size, f"{what}, dimension {letter.lower()} of layout {self.text}", size, inner)
            found[letter] = None if outer is None else outer * size
        return found

    def shape(self, dims: Mapping[str, Size | None], what: str = "result") -> Shape:
        """Shape of a tensor whose logical axes have the lengths `dims`. Raises RelayError if a block does not divide its axis."""
        out: list[Size | None] = []
        for axis in self.axes:
            if axis.islower():
                out.append(self.blocks[axis.upper()])
                continue
            length, block = dims[axis], self.block(axis)
            out.append(require_divides(block, length, f"{what}, axis {axis} of layout {self.text}", f"a multiple of {block}", length))
        return tuple(out)


@lru_cache(maxsize=256)
def layout(text: str, letters: str = "", name: str = "layout") -> Layout:
    """Parses a layout string.

    Args:
      text: such as "NCHW" or "NCHW16c".
      letters: where given, the axes that it must have, in any order.
      name: of the attribute, for the message.

    Raises:
      RelayError: not a layout, or not one of these axes.
    """
    parts = re.findall(r"([A-Z])|(\d+)([a-z])", text)
    axes = tuple(upper or lower for upper, _, lower in parts)
    blocks = {lower.upper(): int(size) for _, size, lower in parts if lower}
    outer = [a for a in axes if a.isupper()]
    written = "".join(upper or size + lower for upper, size, lower in parts)
    well_formed = written == text and len(set(axes)) == len(axes) and blocks.keys() <= set(outer) and 0 not in blocks.values()
    if not (text and well_formed):
        raise RelayError(f"{name}: expected a layout such as NCHW or NCHW16c, found {text!r}")
    if letters and sorted(outer) != sorted(letters):
        raise RelayError(f"{name}: expected the axes {', '.join(letters)}, found {text!r}")
    return Layout(text, axes, blocks)
