"""SplitArgs: joins of many tensors in steps, for devices whose kernels take few arguments."""

from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.op.functions import call as op_call
from relayc.frontend.relay.passes.operators import replaced


def split_args(mod: RelayModule, max_function_args: int) -> RelayModule:
    """Joins tensors so that no kernel has more arguments than these; 0: any number. A tensor of unknown sizes counts as several."""

    def joined(call: e.Call, new: e.Call) -> e.Expr | None:
        parts = new.args[0] if new.args else None
        if not (isinstance(call.op, e.Op) and call.op.name == "concatenate" and isinstance(parts, e.Tuple) and max_function_args):
            return None
        types = [field.checked_type for field in call.args[0].fields]  # type: ignore[attr-defined] # a tuple
        limit = max_function_args - 1 - (_sizes(call.checked_type)[1])
        if len(types) + sum(sum(_sizes(type_)) for type_ in types) <= limit:
            return None
        attrs = dict(call.attrs or {})
        taken: list[e.Expr] = []
        count = 0
        for field, type_ in zip(parts.fields, types, strict=True):
            own = 1 + sum(_sizes(type_))
            if len(taken) > 1 and count + own > limit:
                taken, count = [_join(taken, attrs)], own
            taken.append(field)
            count += own
        return _join(taken, attrs)

    return replaced(mod, joined)


def _join(parts: list[e.Expr], attrs: dict[str, object]) -> e.Expr:
    return op_call("concatenate", [op_call("annotation.stop_fusion", [e.Tuple(parts)])], attrs)


def _sizes(type_: t.Type) -> tuple[int, int]:
    """How many sizes and strides a kernel is given with a tensor."""
    unknown = sum(isinstance(size, t.Any) for size in type_.shape) if isinstance(type_, t.TensorType) else 0
    return unknown, len(type_.shape) if unknown else 0  # type: ignore[attr-defined] # a tensor
