"""Mathematical functions that no instruction computes, expanded into arithmetic."""

from relayc.dialects.mlir import ir


def expand_math(module: ir.Module) -> None:
    """Expands math operations of `module` in place."""
