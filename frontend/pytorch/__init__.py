"""PyTorch models as relay programs, by torch.export: FX graphs of torch's operators to the relay dialect.

Modules: `program` has what an ExportedProgram is, `graph` walks its graphs, `control` has branches and loops, `names` names dimensions, and
one module per operator family (`families`) holds the converters (see `registry` for how one is written, relayc.frontend.converter for what
with, and relayc.frontend.common for what other formats have, too). PyTorch is imported when a model is.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from relayc.dialects.relay.module import IRModule
from relayc.frontend.errors import ModelError, UnsupportedOperators
from relayc.frontend.pytorch.registry import CONVERTERS, OF_COMPLEX, Converter, aten, node, plain_name
from relayc.frontend.registry import Progress
from relayc.symbolic import Size

__all__ = ["UnsupportedOperators", "aten", "from_pytorch", "import_program", "node", "supported_operators"]


def from_pytorch(
    model: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    weights: str = "constant",
    converters: Mapping[Any, Converter] | None = None,
    progress: Progress | None = None,
) -> IRModule:
    """Imports a PyTorch model.

    Args:
      model: a torch.nn.Module, which torch.export exports with `args`, `kwargs` and `dynamic_shapes`; or an ExportedProgram.
      args, kwargs: example arguments of a module, a tuple and a dictionary.
      dynamic_shapes: which dimensions of the arguments are open, as torch.export has it; a text instead of a Dim is a name,
        `{"x": {0: "batch"}}`. Of an ExportedProgram, which forgets the names, it says these alone.
      weights: "constant", or "input" where parameters and buffers are to stay inputs: the compiled module's `state` has them, and sees
        what is written to the model's tensors.
      converters: of operators, by name ("mine::scale") or operator: functions as those of relayc.frontend.pytorch.registry. They go before
        the package's own.
      progress: called with the number of nodes done and their total.

    Returns:
      A module whose `main` has the tensors among the arguments as inputs, in order, and then its state. `relayc.compile` makes a module of
      it that is called as the model is.

    Raises:
      UnsupportedOperators: a ModelError that names every operator without a converter.
      ModelError: anything else that cannot be imported. What torch.export raises arrives as it is.
      ModuleNotFoundError: PyTorch is not installed.
      TypeError: no module or ExportedProgram, or example arguments that are no tuple.
    """
    torch = _torch()
    from relayc.frontend.pytorch import names
    from relayc.frontend.pytorch.program import Import

    if weights not in ("constant", "input"):
        raise ValueError(f"weights: expected 'constant' or 'input', found {weights!r}")
    own = {plain_name(name): function for name, function in (converters or {}).items()}
    if isinstance(model, torch.nn.Module):
        if not isinstance(args, tuple):
            raise TypeError(f"args: expected a tuple of example arguments, found {type(args).__name__}")
        with torch.no_grad():
            model = torch.export.export(model, args, dict(kwargs or {}), dynamic_shapes=names.as_dims(dynamic_shapes))
    elif not isinstance(model, torch.export.ExportedProgram):
        raise TypeError(f"model: expected a torch.nn.Module or a torch.export.ExportedProgram, found {type(model).__name__}")
    elif args or kwargs:
        raise TypeError("args, kwargs: expected none for a program that is exported already, found some")
    return Import(model, dynamic_shapes, weights, own, progress).run()


def import_program(
    model: Any,
    *,
    shapes: Mapping[str, Sequence[Size | str]] | None = None,
    progress: Progress | None = None,
    dims: Mapping[str, int | tuple[int, int]] | None = None,
) -> IRModule:
    """An ExportedProgram, or the file of one, for `relayc.compile`. Raises as `from_pytorch`, and ModelError for a file that is none."""
    torch = _torch()
    from relayc.frontend.pytorch.program import Import

    if isinstance(model, (str, os.PathLike)):
        with suppress(ImportError):  # it registers the operators of quantised models, which torch.export.load has to know
            import_module("torch.ao.quantization.fx._decomposed")
        try:
            model = torch.export.load(os.fspath(model))
        except FileNotFoundError:
            raise ModelError(f"expected the file of an ExportedProgram, found no file {os.fspath(model)!r}") from None
        except Exception as error:
            raise ModelError(f"{os.fspath(model)}: expected an ExportedProgram, found what torch does not load: {error}") from error
    return Import(model, None, "constant", {}, progress).run(shapes, dims)


def supported_operators() -> list[str]:
    """Names of the operators that have a converter, sorted."""
    _torch()
    from relayc.frontend.pytorch import families  # they register converters

    return sorted({*CONVERTERS, *OF_COMPLEX})


def _torch() -> Any:
    """PyTorch, which only this frontend needs. Raises ModuleNotFoundError where it is not installed."""
    try:
        import torch
    except ModuleNotFoundError:
        raise ModuleNotFoundError("expected PyTorch for a PyTorch model, found none: pip install relayc[torch]", name="torch") from None
    return torch
