"""Operators by their names: as they stand in the IR, and building one."""

from typing import Any

from relayc.dialects.mlir import ir
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.registration import OPS
from relayc.dialects.relay.tuples import fields_of


def ir_name(relay_name: str) -> str:
    """Relay's name of an operator as it stands in the IR, where IRDL allows no dots: `nn.conv2d` -> `nn_conv2d`."""
    return relay_name.replace(".", "_")


def build(relay_name: str, *operands: Any, **attributes: Any) -> Any:
    """Builds an operator by Relay's name (`nn.conv2d`) and gives its result, or the tuple of results where it has several.

    A result that is a tuple in the IR (that of `split`) is given as its fields.

    Raises:
      RelayError: no such operator, or its rules are broken.
    """
    cls = OPS.get(ir_name(relay_name))
    if cls is None:
        raise RelayError(f"no operator {relay_name!r} in the relay dialect")
    operation = cls(*operands, **attributes).operation
    if len(operation.results) != 1:
        return tuple(operation.results)
    result = operation.results[0]
    return fields_of(result) if isinstance(result.type, ir.TupleType) else result
