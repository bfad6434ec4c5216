"""How the operations of a dialect that is written in Python get into a context of MLIR."""

import io
from collections.abc import Sequence
from functools import cache

from relayc.dialects.mlir import ir, irdl


def load_operations(context: ir.Context, namespace: str, operations: Sequence[type]) -> None:
    """Registers the operations (classes of `ext`) of a dialect in a context that has none of them yet."""
    with context, ir.Location.unknown():
        irdl.load_dialects(ir.Module.parse(_bytecode(namespace, tuple(operations))))
        for operation in operations:
            operation._attach_traits()  # type: ignore[attr-defined]


@cache
def _bytecode(namespace: str, operations: tuple[type, ...]) -> bytes:
    """The operations in IRDL: to read its bytecode takes a fourth of the time of parsing its text, which takes a fifth of building it."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            dialect = irdl.dialect(namespace)
            with ir.InsertionPoint(dialect.body):
                for operation in operations:
                    operation._emit_operation()  # type: ignore[attr-defined]
        buffer = io.BytesIO()
        module.operation.write_bytecode(buffer)
        return buffer.getvalue()
