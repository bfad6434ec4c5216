"""DynamicToStatic: replaces operators with computed attributes by operators with constant attributes, if the values are constants."""

from typing import Any

import numpy as np

from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast.functor import replace_calls
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.inference import infer_module
from relayc.frontend.relay.op.functions import call
from relayc.frontend.relay.op.table import Signature, signature
from relayc.relay.folding import folded, size_of


def dynamic_to_static(mod: RelayModule) -> RelayModule:
    """Operators of dyn.* whose sizes are known become those with attributes. Raises TypeInferenceError.

    What is known without types is folded first: the program may have types only where the sizes are constants.
    """
    mod, changes = mod.map_functions(folded), 1
    while changes:
        mod, changes = _static_once(mod)
    typed, changes = infer_module(mod), 1
    while changes:
        found, changes = _static_once(typed)
        typed = infer_module(found)
    return typed


def _static_once(mod: RelayModule) -> tuple[RelayModule, int]:
    """A module after one round, folded, and how many calls were replaced."""
    changes = 0

    def change(before: e.Call, new: e.Call) -> e.Expr | None:
        nonlocal changes
        made = _static(before, list(new.args))
        changes += made is not None
        return made

    found = mod.map_functions(lambda function: replace_calls(function, change).replace(ret_type=None))  # the return type is inferred again
    return (found.map_functions(folded) if changes else found), changes


def _static(found: e.Call, args: list[e.Expr]) -> e.Expr | None:
    """The replacement of a call whose late operands are known; None for any other call."""
    if not isinstance(found.op, e.Op) or not found.op.name.startswith("dyn."):
        return size_of(found)
    plain, late = signature(found.op.name.removeprefix("dyn.")), signature(found.op.name)
    values = dict(zip(late.operands, args, strict=True))
    moved = {name: values[name] for name in late.operands if name not in plain.operands}
    if not all(isinstance(value, e.Constant) for value in moved.values()):
        return None
    attrs = {**(found.attrs or {}), **{name: _attribute(plain, name, value.data.numpy()) for name, value in moved.items()}}  # type: ignore[attr-defined]
    return call(plain.name, [values[name] for name in plain.operands], {k: v for k, v in attrs.items() if k in plain.attrs})


def _attribute(found: Signature, name: str, values: np.ndarray) -> Any:
    """The value of an operand as an attribute: sizes, which may be floats, become integers."""
    spec = None if found.cls is None else found.cls.attr_specs.get(name)
    return (values.astype(np.int64) if spec is not None and "size" in spec.kind.expected else values).tolist()
