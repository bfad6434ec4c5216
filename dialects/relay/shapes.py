"""Rules of shapes that operators share: axes counted from the back, products, and broadcasting."""

from collections.abc import Sequence

from relayc import symbolic
from relayc.dialects.relay.errors import check, unequal
from relayc.symbolic import Size


def normalize_axis(axis: int, rank: int, name: str = "axis") -> int:
    """`axis` counted from the front. Raises RelayError if it is outside [-rank, rank)."""
    check(-rank <= axis < rank, name, f"a value in [{-rank}, {rank})", axis)
    return axis % rank if rank else 0


def product(dims: Sequence[Size | None]) -> Size | None:
    """Product of dimensions; None if one is unknown."""
    known = [d for d in dims if d is not None]
    return symbolic.product(known) if len(known) == len(dims) else None


def shape_text(shape: Sequence[Size | None]) -> str:
    """A shape as printed in messages: `(n, 768)`."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def broadcast_shapes(*shapes: tuple[Size | None, ...]) -> tuple[Size | None, ...]:
    """numpy broadcasting of shapes, in which dimensions may be expressions or unknown. Raises RelayError if they do not broadcast.

    Expressions broadcast if they are equal, or the other dimension is 1: nothing is assumed about their values.
    """
    rank = max(map(len, shapes), default=0)
    out: list[Size | None] = []
    for position in range(rank):
        dims = {s[position - rank + len(s)] for s in shapes if position - rank + len(s) >= 0}
        known = {d for d in dims if d is not None and d != 1}
        if len(known) > 1:
            a, b, *_ = sorted(known, key=str)
            found = ", ".join(map(str, shapes))
            raise unequal(f"shapes do not broadcast: expected equal or 1 in dimension {position}, found {found}", a, b)
        out.append(known.pop() if known else (None if None in dims else 1))
    return tuple(out)
