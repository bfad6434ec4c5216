"""Layouts of tensors as texts, and how one follows from another: "NCHW", "NCHW16c", "OIHW16i4o"."""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any


class Layout:
    """An order of axes: upper-case letters, and inner parts of split axes as lower-case letters with their sizes.

    Attributes:
      axes: letters and sizes, 0 for axes that are no inner parts.
    """

    def __init__(self, text: str) -> None:
        self.axes: list[tuple[str, int]] = [(name, int(size or 0)) for size, name in re.findall(r"(\d*)([A-Za-z])", text)]

    @classmethod
    def of(cls, axes: Sequence[tuple[str, int]]) -> "Layout":
        """The layout of axes; a scalar's has none."""
        found = cls("")
        found.axes = list(axes)
        return found

    @cached_property
    def text(self) -> str:
        """The text."""
        return "".join(f"{size}{name}" if name.islower() else name for name, size in self.axes)

    name = property(lambda self: self.text)

    @property
    def names(self) -> list[str]:
        """The letters."""
        return [name for name, _ in self.axes]

    @property
    def rank(self) -> int:
        """How many axes there are, without inner parts."""
        return sum(name.isupper() for name in self.names)

    def index(self, name: str) -> int:
        """The position of an axis; -1 if there is none."""
        return self.names.index(name) if name in self.names else -1

    def factor(self, name: str) -> int:
        """The size of the inner part of an axis; -1 if it is not split."""
        return next((size for inner, size in self.axes if inner == name.lower()), -1)

    def part(self, begin: int, end: int | None = None) -> "Layout":
        """Some of the axes."""
        return Layout.of(self.axes[begin:end])

    def __len__(self) -> int:
        return len(self.axes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def layout(text: Any) -> Layout | None:
    """The layout in a text; None if it is empty."""
    return Layout(str(text)) if text else None


def isomorphic(a: Layout, b: Layout) -> bool:
    """Whether two layouts differ in letters only."""
    pairs = list(zip(a.axes, b.axes, strict=False))
    there, back = {x: y for (x, _), (y, _) in pairs}, {y: x for (x, _), (y, _) in pairs}
    same = all(there[x] == y and back[y] == x and x.isupper() == y.isupper() and m == n for (x, m), (y, n) in pairs)
    return len(a) == len(b) and same


def transformed_like(old: Layout, before: Layout, after: Layout) -> Layout | None:
    """Transforms a layout in the same way as the layout of a tensor that it broadcasts with; None if that is impossible.

    NW becomes NW1w if NC became NC1c; W becomes NW1w, too.
    """
    small, large = sorted((old, before), key=len)
    end, rest = large.part(len(large) - len(small)), large.part(0, len(large) - len(small))
    if {name.upper() for name in rest.names} & {name.upper() for name in end.names} or not isomorphic(end, small):
        return None
    if not old.axes:
        return old
    letters = {b.upper(): a.upper() for a, b in zip(reversed(old.names), reversed(before.names), strict=False)}
    for name in reversed(before.names):
        free = [letter for letter in (name.upper(), *map(chr, range(65, 91))) if letter not in letters.values()]
        letters.setdefault(name.upper(), free[0])
    if any(name.upper() not in letters for name in after.names):
        return None
    return Layout.of([(letters[n.upper()] if n.isupper() else letters[n.upper()].lower(), size) for n, size in after.axes])


def with_ones(new: Layout, old: Layout, shape: Sequence[Any]) -> Layout:
    """A layout in which inner parts of axes have the size 1 where the axis is broadcast: it was not there, or had the size 1 unsplit."""
    axes = []
    for name, size in new.axes:
        at = old.index(name.upper())
        is_one = name.islower() and (at < 0 or (shape[at] == 1 and old.index(name) < 0))
        axes.append((name, 1 if is_one else size))
    return Layout.of(axes)


def expanded(source: Layout, target: Layout) -> Layout:
    """A layout with the axes of another one that it has not, at its front."""
    missing = [name for name in target.names if name.isupper() and name not in source.names]
    return Layout.of([*((name, 0) for name in missing), *source.axes])
