"""Passes of upstream MLIR on a program, or a part of it."""

from relayc.dialects.mlir import ir, passmanager


def run_upstream(operation: ir.Operation, pipeline: str, verify: bool = False) -> None:
    """Runs an upstream pipeline such as `cse,symbol-dce` on an operation that is isolated from above (a module or a function), in place.

    Args:
      verify: whether MLIR verifies after each pass; a pipeline that does so anyway at its end saves the time.

    Raises:
      ValueError: MLIR has no such pass.
      MLIRError: a pass fails.
    """
    try:
        manager = passmanager.PassManager.parse(f"{operation.name}({pipeline})", operation.context)
    except ValueError as e:
        raise ValueError(f"no pass {pipeline!r} in relayc or MLIR: {e}") from e
    manager.enable_verifier(verify)
    manager.run(operation)
