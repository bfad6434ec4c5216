"""The shape that a reshape gives: sizes and Relay's codes."""

from collections.abc import Sequence
from typing import TypeAlias

from relayc.dialects.relay.conditions import require_divides, require_equal
from relayc.dialects.relay.errors import RelayError, check
from relayc.dialects.relay.shapes import product, shape_text
from relayc.symbolic import Dim, Size, proves

Known: TypeAlias = Size | None


def reshaped(shape: Sequence[Known], newshape: Sequence[Size], allowzero: bool) -> tuple[Known, ...]:
    """Shape after Relay's reshape codes (see `Reshape`); an expression is a size. Raises RelayError if the codes do not fit `shape`."""
    out: list[Known] = []
    position = 0  # of the next dimension of `shape` to be read by a code
    infer_at = None
    codes = iter(enumerate(newshape))
    for i, code in codes:
        left = len(shape) - position
        if isinstance(code, Dim) or code > 0 or (code == 0 and allowzero):
            out.append(code)
            position += 1
        elif code == 0:
            check(left >= 1, f"newshape[{i}]", f"a dimension {position} of the operand to copy", shape_text(shape))
            out.append(shape[position])
            position += 1
        elif code == -1:
            check(infer_at is None, "newshape", "at most one -1", shape_text(newshape))
            infer_at = len(out)
            out.append(None)
            position += 1
        elif code == -2:
            out.extend(shape[position:])
            position = len(shape)
        elif code == -3:
            check(left >= 2, f"newshape[{i}]", f"dimensions {position} and {position + 1} of the operand to merge", shape_text(shape))
            out.append(product(shape[position : position + 2]))
            position += 2
        elif code == -4:
            check(left >= 1, f"newshape[{i}]", f"a dimension {position} of the operand to split", shape_text(shape))
            pair = [d for _, d in zip(range(2), (d for _, d in codes), strict=False)]
            out.extend(_split_dim(shape[position], pair))
            position += 1
        else:
            raise RelayError(f"newshape[{i}]: expected a size or one of 0, -1, -2, -3, -4, found {code}")
    if infer_at is not None:
        out[infer_at] = _inferred(shape, out[:infer_at] + out[infer_at + 1 :])
    return tuple(out)


def _split_dim(dim: Known, pair: list[Size]) -> list[Known]:
    check(
        len(pair) == 2 and pair.count(-1) < 2 and all(isinstance(d, Dim) or d > 0 or d == -1 for d in pair),
        "newshape",
        "two sizes (one may be -1) after -4",
        shape_text(pair),
    )
    if -1 in pair:
        known = pair[1 - pair.index(-1)]
        other = require_divides(known, dim, "newshape", f"a divisor of {dim} after -4", known)
        return [other if d == -1 else d for d in pair]
    require_equal(dim, pair[0] * pair[1], "newshape", f"factors of {dim} after -4", shape_text(pair))
    return list(pair)


def _inferred(shape: Sequence[Known], others: Sequence[Known]) -> Known:
    """The value of -1. Unknown dimensions cancel if the same number is copied."""
    if list(shape).count(None) != list(others).count(None):
        return None
    total, known = (product([d for d in dims if d is not None]) for dims in (shape, others))
    assert total is not None and known is not None
    what, expected = "newshape", f"sizes that divide the {total} elements of the operand"
    check(known != 0, what, expected, shape_text(others))
    return require_divides(known, total, what, expected, shape_text(others))


def same_elements(a: Sequence[Known], b: Sequence[Known]) -> bool:
    """Whether two shapes have as many elements, or one of them is not known."""
    if None in a or None in b:
        return True
    x, y = product(a), product(b)
    return x == y or (isinstance(x, Dim) and isinstance(y, Dim) and proves(lambda: x <= y) and proves(lambda: y <= x))
