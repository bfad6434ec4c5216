"""What is wrong with a kernel, and where."""

from relayc.dialects.functions import symbol_name
from relayc.dialects.mlir import ir


class DeviceCodeError(ValueError):
    """A kernel that cannot become device code."""


def place_of(op: ir.Operation) -> str:
    """The kernel that an operation is in, and where."""
    kernel: ir.Operation | None = op
    while kernel is not None and kernel.name not in ("gpu.func", "func.func", "llvm.func"):
        kernel = kernel.parent
    name = "" if kernel is None else f"kernel {symbol_name(kernel)} "
    return f"{name}at {op.location}"
