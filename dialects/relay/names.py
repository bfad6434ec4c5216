"""Names of operators in the IR, and construction of operators by name."""

from typing import Any

from relayc.dialects.mlir import ir
from relayc.dialects.relay.errors import RelayError, Unequal
from relayc.dialects.relay.registration import OPS
from relayc.dialects.relay.tuples import fields_of
from relayc.dialects.relay.types import TensorType
from relayc.nearest import nearest
from relayc.symbolic import Dim, Size


def ir_name(relay_name: str) -> str:
    """Relay's name of an operator in its IR form, because IRDL does not allow dots: `nn.conv2d` -> `nn_conv2d`."""
    return relay_name.replace(".", "_")


def relay_names() -> list[str]:
    """Relay's names of all operators."""
    return [cls.relay_name for cls in OPS.values()]


def build(relay_name: str, *operands: Any, **attributes: Any) -> Any:
    """Builds an operator by Relay's name (`nn.conv2d`) and gives its result, or the tuple of results where it has several.

    A result that is a tuple in the IR (that of `split`) is given as its fields. Sizes of operands that the operator wants to be equal, and
    that may be, are stated to be equal (match_shape): the program checks them.

    Raises:
      RelayError: no such operator, or its rules are broken.
    """
    cls = OPS.get(ir_name(relay_name))
    if cls is None:
        raise RelayError(f"no operator {relay_name!r} in the relay dialect{nearest(relay_name, relay_names())}")
    values = [v.result if isinstance(v, ir.OpView) else v for v in operands]
    replaced: set[Size] = set()
    while True:
        try:
            operation = cls(*values, **attributes).operation
            break
        except Unequal as error:
            before, values = values, _with_equal(values, error.a, error.b, replaced)
            if before == values:
                raise
    if len(operation.results) != 1:
        return tuple(operation.results)
    result = operation.results[0]
    return fields_of(result) if isinstance(result.type, ir.TupleType) else result


def simpler(a: Size, b: Size) -> Size:
    """Of two sizes that are taken for equal, the one to go on with: a number, or else the shorter expression."""
    if isinstance(a, int) or isinstance(b, int):
        return a if isinstance(a, int) else b
    return a if (len(a.terms), len(str(a))) <= (len(b.terms), len(str(b))) else b


def _with_equal(values: list[ir.Value], a: Size, b: Size, replaced: set[Size]) -> list[ir.Value]:
    """Tensors cast to the simpler of two sizes if they have the other one, or the reverse if none has.

    A size in `replaced` is not reintroduced.
    """
    shapes = [TensorType.of(v).shape if isinstance(v.type, ir.RankedTensorType) else () for v in values]
    kept = simpler(a, b)
    other = b if kept == a else a
    if isinstance(kept, Dim) and not any(other in shape for shape in shapes):
        kept, other = other, kept
    if kept in replaced:
        return values
    replaced.add(other)
    return [
        OPS["match_shape"](v, shape=[kept if d == other else d for d in shape]).result if other in shape and None not in shape else v
        for v, shape in zip(values, shapes, strict=True)
    ]
