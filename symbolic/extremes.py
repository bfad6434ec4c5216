"""Minima and maxima of sizes in normal form."""

from collections.abc import Iterable, Iterator

from relayc.symbolic.expressions import Dim, Extreme, Size, product, proves


def minimum(*sizes: Size) -> Size:
    """The smallest of some sizes."""
    return extreme("min", sizes)


def maximum(*sizes: Size) -> Size:
    """The largest of some sizes."""
    return extreme("max", sizes)


def broadcast(*sizes: Size) -> Size:
    """The size of an axis to which axes of some sizes broadcast, all of which are 1 or one other size, which may be 0."""
    return product([maximum(*sizes), *(minimum(size, 1) for size in sizes)])


def extreme(kind: str, sizes: Iterable[Size]) -> Size:
    """The minimum (maximum), without arguments for which another one is proved to be as small (large)."""
    kept: list[Size] = []
    for size in _flattened(kind, sizes):
        if any(_no_better(kind, k, size) for k in kept):
            continue
        kept = [k for k in kept if not _no_better(kind, size, k)] + [size]
    if len(kept) == 1:
        return kept[0]
    return Dim({(Extreme(kind, tuple(sorted(kept, key=str))),): 1})


def _flattened(kind: str, sizes: Iterable[Size]) -> Iterator[Size]:
    for size in sizes:
        if isinstance(size, Dim) and len(size.terms) == 1:
            (m, c), *_ = size.terms.items()
            if c == 1 and len(m) == 1 and isinstance(m[0], Extreme) and m[0].kind == kind:
                yield from m[0].args
                continue
        yield size


def _no_better(kind: str, a: Size, b: Size) -> bool:
    """Whether `b` adds nothing to `a`."""
    return a == b or proves(lambda: a <= b if kind == "min" else a >= b)
