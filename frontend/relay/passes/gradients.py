"""Gradients of operators: of a call and the gradient of its result, the gradients of its arguments, as expressions.

The dialect has the rules (frontend.gradients): the gradient of a call is built of operators of the dialect and raised. RULES has the
operators that the dialect's rules do not reach: operators of several results, and operators whose Relay form the gradient keeps.
"""

from collections.abc import Callable, Sequence
from typing import Any

from relayc.dialects.relay.errors import RelayError
from relayc.frontend.converter import Tensor
from relayc.frontend.errors import ModelError
from relayc.frontend.gradients import gradients
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.decompose import composed_on
from relayc.frontend.relay.op.composed import Composed, OnTensors
from relayc.frontend.relay.op.functions import op
from relayc.frontend.relay.op.rules import apply
from relayc.frontend.relay.passes.operators import name_of

Grads = Sequence[e.Expr | None]
Rule = Callable[[e.Call, Any], Grads]
"""(a call with types, the gradient of its result: of several results, a list of them) -> those of the arguments."""


def gradient_of_call(call: e.Call, grad: Any) -> Grads:
    """The gradients of the arguments of a call with types; of one operand that is a tuple, those of its fields.

    Raises RelayError for an operator without a gradient.
    """
    name = str(name_of(call))
    rule = RULES.get(name)
    if rule is not None:
        return rule(call, grad)
    wanted = [_is_float(type_) for arg in call.args for type_ in t.leaves(arg.checked_type)]
    if not _is_float(call.checked_type) or not any(wanted):
        return [None] * len(wanted)
    attrs: Any = call.attrs or {}

    def function(*operands: Any) -> tuple[Tensor, ...]:
        *args, result, seed = operands
        made = apply(OnTensors(), name, list(args), attrs, call.args)
        flat = [part for arg in args for part in (arg if isinstance(arg, tuple) else (arg,))]
        found = gradients(made, [x for x, is_wanted in zip(flat, wanted, strict=True) if is_wanted], seed)
        made.value.replace_all_uses_with(result.value)  # the call is there already
        return tuple(found)

    operands = tuple(f"operand_{i}" for i in range(len(call.args) + 2))
    composed = Composed(name, operands, lambda *_: sum(wanted), function)
    try:
        # The result and its gradient have one type.
        found = composed_on(composed, {}, [*call.args, call, call], [*call.args, call, grad])
    except (ModelError, RelayError) as error:
        if "expected operators that have a derivative" in str(error):
            raise RelayError(f"gradient: operator {name} has no gradient yet") from None
        raise
    parts = iter(found.fields if isinstance(found, e.Tuple) else [found])
    return [next(parts) if is_wanted else None for is_wanted in wanted]


def _is_float(type_: Any) -> bool:
    return isinstance(type_, t.TensorType) and type_.dtype.startswith(("float", "bfloat"))


def _dense(c: e.Call, g: Any) -> Grads:
    x, w = c.args
    units, depth = w.checked_type.shape  # type: ignore[attr-defined]
    rows, flat = op.reshape(g, [-1, units]), op.reshape(x, [-1, depth])
    weight = op.nn.dense(op.transpose(rows, [1, 0]), op.transpose(flat, [1, 0]))
    return [op.reshape_like(op.nn.dense(rows, op.transpose(w, [1, 0])), x), weight]


def _split(c: e.Call, g: Any) -> Grads:
    assert isinstance(c.checked_type, t.TupleType) and c.attrs is not None
    parts = [op.zeros(part.shape, part.dtype) if grad is None else grad for grad, part in zip(g, c.checked_type.fields, strict=True)]  # type: ignore[attr-defined]
    return [op.concatenate(e.Tuple(parts), axis=c.attrs["axis"])]


RULES: dict[str, Rule] = {
    "nn.dense": _dense,
    "nn.dropout": lambda c, g: [g[0] if isinstance(g, list) else g],
    "split": _split,
    "arange": lambda c, g: [None] * len(c.args),
}
"""By Relay's names of operators. A program may add rules."""
