"""Sizes that a program says itself: defined by data, stated of a tensor, or written otherwise for a call."""

from relayc.dialects.relay.attributes import Names
from relayc.dialects.relay.base import Op, Operand, Pattern, Precision, Size, Sizes, Statement, TensorType, View, check
from relayc.dialects.relay.conditions import require_at_least
from relayc.dialects.relay.kinds import INTEGER
from relayc.dialects.relay.later import REQUIREMENTS
from relayc.dialects.relay.shapes import shape_text
from relayc.dialects.relay.types import RelayType
from relayc.symbolic import bounds, is_name


class DefineSizes(Statement, name="define_sizes"):
    """From here on the elements of `data`, integers of rank 0 or 1, are the values of the symbols `names`.

    When the program runs, each must be in the range that the module states of the symbol, which is 0 or more where it states none.
    """

    data: Operand
    names: Names

    @staticmethod
    def infer(op: View) -> list[RelayType]:
        INTEGER.require("data", op.data)
        check(op.data.rank <= 1, "data", "rank 0 or 1", op.data)
        names = op.names
        count = op.data.shape[0] if op.data.rank else 1
        check(len(names) > 0 and (count is None or count == len(names)), "names", f"a name for each of the {count} elements", list(names))
        check(all(map(is_name, names)), "names", "identifiers", list(names))
        check(len(set(names)) == len(names), "names", "no name twice", list(names))
        return []


def _check_shape(op: View) -> None:
    check(op.data.rank == len(op.shape), "shape", f"{op.data.rank} sizes for {op.data}", shape_text(op.shape))
    for i, (found, stated) in enumerate(zip(op.data.shape, op.shape, strict=True)):
        if found is not None:
            low, high = bounds(found - stated)
            check(low <= 0 <= high, f"shape, dimension {i}", f"a size that may be that of {op.data}", stated)
        require_at_least(0, stated, f"shape, dimension {i}", "no negative size", stated)


class MatchShape(Op, name="match_shape"):
    """The operand, of which the program states that its shape is `shape`.

    When the program runs, each size must be what is stated; it is known from there on. A symbol of `shape` that is a size by itself, and
    has no value there yet, is defined as the operand's size.
    """

    data: Operand
    shape: Sizes
    pattern = Pattern.OPAQUE
    pure = False
    is_view = True
    precision = Precision.EXACT

    @staticmethod
    def infer(op: View) -> TensorType:
        _check_shape(op)
        return op.data.with_shape(op.shape)


class CheckSizes(Statement, name="check_sizes"):
    """At run time, two sizes must compare as `predicate` specifies ("eq", "ge", "le"), otherwise the call fails with a ValueError.

    `message` gives the expectation; both sizes, `found` first, replace `%lld` in it.
    """

    found: Size
    expected: Size
    predicate: str
    message: str

    @staticmethod
    def infer(op: View) -> list[RelayType]:
        check(op.predicate in REQUIREMENTS, "predicate", f"one of {', '.join(REQUIREMENTS)}", op.predicate)
        return []


class CastShape(Op, name="cast_shape"):
    """The operand under the same sizes, written as `shape`: nothing is checked when the program runs.

    Around a call it stands between the symbols of the caller and those of the callee: before it for an argument, whose type is that of the
    callee's argument then, and after it for a result.
    """

    data: Operand
    shape: Sizes
    may_define_symbols = True
    pattern = Pattern.OPAQUE
    is_view = True
    precision = Precision.EXACT

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.data.rank == len(op.shape), "shape", f"{op.data.rank} sizes for {op.data}", shape_text(op.shape))
        for i, (found, stated) in enumerate(zip(op.data.shape, op.shape, strict=True)):
            both = isinstance(found, int) and isinstance(stated, int)
            check(not both or found == stated, f"shape, dimension {i}", found, stated)
        return op.data.with_shape(op.shape)
