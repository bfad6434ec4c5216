"""Operators that TVM's passes make of calls: relayc calls the function of call_lowered; vm.invoke_tvm_op only stands in programs."""

from collections.abc import Sequence
from typing import Any

from relayc.dialects.relay.errors import RelayError, check
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.functor import replace_calls
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.op.registered import REGISTERED, Registered

CALL_LOWERED, INVOKE, WITH_FUNCID = "call_lowered", "vm.invoke_tvm_op", "annotation.with_funcid"


def _function(name: str, types: Sequence[t.Type]) -> t.FuncType:
    function, given = types[0], types[1]
    if not isinstance(function, t.FuncType):
        raise RelayError(f"{name}: expected a function, found {function}")
    expected = t.TupleType(function.arg_types)
    check(given == expected, name, f"a tuple of arguments of the types {expected}", given)
    return function


def _written(types: Sequence[t.Type], attrs: Any) -> t.Type:
    result = _function(INVOKE, types).ret_type
    expected = result if isinstance(result, t.TupleType) else t.TupleType([result])
    check(types[2] == expected, INVOKE, f"a tuple of tensors to write of the types {expected}", types[2])
    return t.TupleType([])


REGISTERED[CALL_LOWERED] = Registered(
    CALL_LOWERED,
    num_inputs=2,
    arguments=["func", "call_args"],
    attrs={"metadata": None},
    relation=lambda types, attrs: _function(CALL_LOWERED, types).ret_type,
)
REGISTERED[INVOKE] = Registered(
    INVOKE,
    num_inputs=3,
    arguments=["func", "inputs", "outputs"],
    relation=_written,
    refusal="expected a call of the function: relayc plans the memory of results itself, and no expression of a program writes to a tensor",
)


def direct_calls(mod: RelayModule) -> RelayModule:
    """A module with calls in the place of call_lowered, and functions without the numbers that partial evaluation gives them."""

    def direct(call: e.Call, new: e.Call) -> e.Expr | None:
        name = call.op.name if isinstance(call.op, e.Op) else ""
        if name == WITH_FUNCID:
            return new.args[0]
        if name == CALL_LOWERED and isinstance(new.args[1], e.Tuple):
            return e.Call(new.args[0], new.args[1].fields, None, None, call.span)
        return None

    return mod.map_functions(lambda function: replace_calls(function, direct))
