"""Types of parameters, spans, and calls that functions of operators replace."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from relayc.frontend.relay.ast import bind
from relayc.frontend.relay.ast.base import Span
from relayc.frontend.relay.ast.expr import Call, Constructor, Expr, Function, Op, Var
from relayc.frontend.relay.ast.functor import children, post_order, rewritten
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.ast.types import Any as AnySize
from relayc.frontend.relay.ast.types import TensorType, Type
from relayc.frontend.relay.inference import infer_module
from relayc.frontend.relay.op.registered import attribute, register_op_attr
from relayc.frontend.relay.passes.operators import replaced
from relayc.frontend.relay.text import parse_module


def annotate_spans(mod: RelayModule) -> RelayModule:
    """Gives expressions their places in the text of the program."""
    return parse_module(mod.astext(), "GeneratedSource")


def capture_post_dfs_index_in_spans(mod: RelayModule) -> RelayModule:
    """Numbers expressions in postorder in the function: the number is the line, and the number of the last use the end line."""

    def numbered(function: Expr) -> Expr:
        nodes = list(post_order(function))
        last = {part: i for i, node in enumerate(nodes) for part in children(node)}
        numbers = itertools.count()

        def placed(node: Expr, new: Expr) -> Expr:
            span = Span("index", next(numbers), last.get(node, 0), 0, 0)
            return node if isinstance(node, (Op, Constructor)) else new.at(span)

        return rewritten(function, placed)

    return mod.map_functions(numbered)


def with_types(module: RelayModule, types: Sequence[Type | None]) -> RelayModule:
    """A module of which main has parameters of these types."""
    main = module["main"]
    made = {old: Var(old.name_hint, type_, old.span) for old, type_ in zip(main.params, types, strict=True)}
    found = module.shallow_copy()
    found["main"] = Function(list(made.values()), bind(main.body, made), None, main.type_params, main.attrs, main.span)
    return found


def flexible_shape_dispatch(
    mod: RelayModule,
    buckets: Sequence[int],
    axis: int = 0,
    auto_pad: bool = False,
    pad_value: float = 0,
    input_indices: Sequence[int] = (0,),
    affects_output: bool = True,
) -> RelayModule:
    """Lets an axis of parameters of main have any size.

    Args:
      axis: of the parameters that `input_indices` says.
      buckets, auto_pad, pad_value, affects_output: how Relay picks and pads the sizes that it compiles. One compiled program is for all
        sizes here, so that these are not looked at.

    Raises:
      RelayError: an operator cannot have the axis of another size.
    """
    main = infer_module(mod)["main"]
    types = [param.checked_type for param in main.params]
    for i in input_indices:
        shape = list(types[i].shape)
        shape[axis] = AnySize()
        types[i] = TensorType(shape, types[i].dtype)
    return infer_module(with_types(mod, types))


def _without_idle_clip(attrs: Any, args: Sequence[Expr], types: Sequence[Type]) -> Expr | None:
    """The operand of a clip of integers from `qnn.requantize`, if the bounds are the bounds of their type."""
    type_, op = types[0], args[0].op if isinstance(args[0], Call) else None
    if not isinstance(type_, TensorType) or not (isinstance(op, Op) and op.name == "qnn.requantize"):
        return None
    limits = np.iinfo(type_.dtype)
    return args[0] if attrs["a_min"] <= limits.min and limits.max <= attrs["a_max"] else None


register_op_attr("clip", "FTVMLegalize", _without_idle_clip)


def legalize(mod: RelayModule, legalize_map_attr_name: str = "FTVMLegalize") -> RelayModule:
    """Replaces calls of operators by the result of a function, an attribute of the operator.

    The function is called with the attributes, the arguments and their types followed by the result type; None keeps the call.
    """

    def replacement(call: Call, new: Call) -> Expr | None:
        function = attribute(call.op.name, legalize_map_attr_name) if isinstance(call.op, Op) else None
        types = [*(arg.checked_type for arg in call.args), call.checked_type]
        return None if function is None else function(call.attrs, list(new.args), types)

    return replaced(mod, replacement)
