"""JAX functions and programs of StableHLO as relay programs.

Modules: `exported` reads the results of jax.export, `program` converts functions, `registry` has the table of converters, `sizes` folds
computations on sizes, `regions` recognises the regions of reductions and sorts, and one module per operator family (`families`) has the
converters. The parser of StableHLO comes with JAX, which is imported together with a program.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from relayc.dialects.relay.module import IRModule
from relayc.frontend.errors import ModelError, UnsupportedOperators
from relayc.frontend.registry import Progress
from relayc.symbolic import Size

__all__ = ["UnsupportedOperators", "from_jax", "from_stablehlo", "import_program", "supported_operators"]


def from_stablehlo(
    program: str | bytes,
    *,
    shapes: Mapping[str, Sequence[Size | str]] | None = None,
    dims: Mapping[str, int | tuple[int, int]] | None = None,
    progress: Progress | None = None,
) -> IRModule:
    """Imports a program of StableHLO.

    Args:
      program: its text, or its bytecode, portable artifacts included.
      shapes, dims: as for `relayc.compile`, for dynamic sizes of inputs. The names of inputs come from the locations of the arguments of
        `main`, by default arg0, arg1, ...
      progress: called with the number of operators done and their total.

    Raises:
      UnsupportedOperators: a ModelError that names every operator without a converter.
      ModelError: anything else that cannot be imported.
      ModuleNotFoundError: JAX is not installed.
    """
    _jax()
    from relayc.frontend.stablehlo.exported import import_module, parsed

    if not isinstance(program, (str, bytes, bytearray)):
        raise TypeError(f"program: expected the text or the bytecode of a program of StableHLO, found {type(program).__name__}")
    return import_module(parsed(program), shapes, dims, progress)


def from_jax(
    function: Callable[..., Any],
    *args: Any,
    polymorphic_shapes: Any = None,
    progress: Progress | None = None,
    **kwargs: Any,
) -> IRModule:
    """Imports a function of JAX, exported by jax.export.

    Args:
      function: a function as for jax.jit; arrays that it closes over become constants.
      args, kwargs: example arguments: arrays, numbers or jax.ShapeDtypeStructs, nested in tuples, lists and dictionaries. Sizes of a
        ShapeDtypeStruct from jax.export.symbolic_shape are symbols with the same names.
      polymorphic_shapes: dynamic sizes of args by texts such as "batch, 4" or "batch, ...", one for all or one for each argument, as for
        jax.export.symbolic_args_specs.
      progress: called with the number of operators done and their total.

    Returns:
      A module whose `main` has the arrays among the arguments as inputs, in order. `relayc.compile` compiles it to a module with the same
      arguments as the function.

    Raises:
      UnsupportedOperators: a ModelError that names every operator without a converter, with the lines that call it.
      ModelError: anything else that cannot be imported. Errors of JAX are passed on.
      ModuleNotFoundError: JAX is not installed.
    """
    jax = _jax()
    from relayc.frontend.stablehlo.exported import import_exported

    if polymorphic_shapes is not None:
        args = jax.export.symbolic_args_specs(args, polymorphic_shapes)
    jitted = function if hasattr(function, "lower") and hasattr(function, "trace") else jax.jit(function)
    return import_exported(jax.export.export(jitted, platforms=["cpu"])(*args, **kwargs), None, None, progress, function)


def import_program(
    model: Any,
    *,
    shapes: Mapping[str, Sequence[Size | str]] | None = None,
    progress: Progress | None = None,
    dims: Mapping[str, int | tuple[int, int]] | None = None,
) -> IRModule:
    """A jax.export.Exported, or the file of one or of a program of StableHLO, for `relayc.compile`. Raises as `from_jax` does."""
    jax = _jax()
    from relayc.frontend.stablehlo.exported import BYTECODE, import_exported

    if isinstance(model, (str, os.PathLike)):
        try:
            content = Path(model).read_bytes()
        except FileNotFoundError:
            raise ModelError(f"expected the file of a program of StableHLO, found no file {os.fspath(model)!r}") from None
        if content.startswith(BYTECODE):
            return from_stablehlo(content, shapes=shapes, dims=dims, progress=progress)
        try:
            text = content.decode()
        except UnicodeDecodeError:
            text = None
        if text is not None:
            return from_stablehlo(text, shapes=shapes, dims=dims, progress=progress)
        try:
            model = jax.export.deserialize(bytearray(content))
        except Exception as error:
            raise ModelError(f"{os.fspath(model)}: expected a program of StableHLO, found one that JAX cannot load: {error}") from error
    return import_exported(model, shapes, dims, progress)


def supported_operators() -> list[str]:
    """Names of the operators that have a converter, sorted."""
    from relayc.frontend.stablehlo import families  # they register converters
    from relayc.frontend.stablehlo.registry import CONVERTERS

    return sorted(CONVERTERS)


def _jax() -> Any:
    """Imports JAX, which only this frontend needs. Raises ModuleNotFoundError if it is not installed."""
    try:
        import jax
        import jax.export
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "expected JAX for a program of JAX or StableHLO, found none: pip install relayc[jax]", name="jax"
        ) from None
    return jax
