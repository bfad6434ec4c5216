"""Launches become kernels of their own: `gpu.launch` to `gpu.func` in one `gpu.module @kernels` and `gpu.launch_func`."""

from relayc.dialects.mlir import ir


def outline_launches(module: ir.Module) -> None:
    """Outlines the launches of a module, in place."""
    raise NotImplementedError
