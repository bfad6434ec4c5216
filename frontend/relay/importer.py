"""Programs of the relay stage as models: they are imported unchanged. Programs of the Relay language are lowered."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from relayc.dialects.relay.errors import NeedsControl
from relayc.dialects.relay.module import IRModule
from relayc.frontend.registry import Progress
from relayc.frontend.relay.builder import Program
from relayc.frontend.relay.dims import bind_dims
from relayc.symbolic import Size

if TYPE_CHECKING:
    from relayc.frontend.relay.ast.expr import Function
    from relayc.frontend.relay.ast.module import RelayModule


def from_relay(
    model: "IRModule | Program | RelayModule | Function | str | os.PathLike[str]",
    *,
    shapes: Mapping[str, Sequence[Size | str]] | None = None,
    dims: Mapping[str, int | tuple[int, int]] | None = None,
    progress: Progress | None = None,
) -> IRModule:
    """The module of a program: itself, or that of a Program so far (`Program.module`), which may grow on.

    A module or a function of the Relay language, or the path of its text, is lowered; the path of MLIR text (.mlir) is parsed, and may be
    of the te stage. What `dims` says of symbols holds in the module from then on.

    Raises:
      ValueError: `shapes` has any: the types of a program's inputs stand in it; `dims` names no symbol of a function's arguments.
      RelayError, MLIRError: a Program or a module of the Relay language is invalid.
      NeedsControl: a module of the Relay language is not on tensors alone; the error has the module.
    """
    if shapes:
        raise ValueError(f"shapes: expected none for a program of the relay stage, whose inputs have types, found {', '.join(shapes)}")
    if isinstance(model, (str, os.PathLike)) and os.fspath(model).lower().endswith(".mlir"):
        model = IRModule.parse(Path(model).read_text(encoding="utf-8"))
    if not isinstance(model, (IRModule, Program)):
        model = _from_language(model)
    mod = model.module() if isinstance(model, Program) else model
    if dims:
        bind_dims(mod, dims)
    return mod


def _from_language(model: "RelayModule | Function | str | os.PathLike[str]") -> IRModule:
    """The program of a module or a function of the Relay language, or of the path of its text."""
    # Imported here: a program of the dialect needs none of these modules, whose import takes longer than to compile a small program.
    from relayc.frontend.relay.ast.expr import Function
    from relayc.frontend.relay.ast.module import RelayModule
    from relayc.frontend.relay.lowering import lower
    from relayc.frontend.relay.passes.padding import flatten_atrous_conv
    from relayc.frontend.relay.text import parse_module

    if isinstance(model, Function):
        model = RelayModule.from_expr(model)
    program = model if isinstance(model, RelayModule) else parse_module(Path(model).read_text(encoding="utf-8"), os.fspath(model))
    try:
        return lower(flatten_atrous_conv(program))
    except NeedsControl as error:
        error.program = program
        raise
