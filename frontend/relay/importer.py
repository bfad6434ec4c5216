"""Programs of the relay stage as models: they are what they are imported as."""

from collections.abc import Mapping, Sequence

from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.scopes import check_scopes
from relayc.frontend.registry import Progress
from relayc.frontend.relay.builder import Program
from relayc.frontend.relay.dims import bind_dims
from relayc.symbolic import Size


def from_relay(
    model: IRModule | Program,
    *,
    shapes: Mapping[str, Sequence[Size | str]] | None = None,
    dims: Mapping[str, int | tuple[int, int]] | None = None,
    progress: Progress | None = None,
) -> IRModule:
    """The module of a program: itself, or that of a Program so far (`Program.module`), which may grow on.

    What `dims` says of symbols holds in the module from then on.

    Raises:
      ValueError: `shapes` has any: the types of a program's inputs stand in it; `dims` names no symbol of a function's arguments.
      RelayError, MLIRError: a Program is not a right one, or a symbol is used where it has no value.
    """
    if shapes:
        raise ValueError(f"shapes: expected none for a program of the relay stage, whose inputs have types, found {', '.join(shapes)}")
    mod = model.module() if isinstance(model, Program) else model
    check_scopes(mod.module)
    if dims:
        bind_dims(mod, dims)
    return mod
