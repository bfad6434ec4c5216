"""`relayc.register_external_codegen`: partitions of a program become packed functions of other code generators."""

import itertools
from collections.abc import Callable
from typing import Any

from relayc.frontend.relay.ast import Expr, Function, structural_hash
from relayc.frontend.relay.external import GENERATORS
from relayc.frontend.relay.op.functions import call, op
from relayc.runtime import register_func

Codegen = Callable[[str, Function], Callable[..., None]]
"""(name of the partition, the partition) -> a function of numpy arrays: inputs followed by outputs."""
_COUNT = itertools.count()


def register_external_codegen(name: str, codegen: Codegen | None = None) -> Any:
    """Registers a code generator for partitions whose attribute Compiler is its name, at once or as a decorator.

    A later generator takes the place of one of the same name. Partitions of a name that has no generator are compiled by relayc.

    Args:
      codegen: is given the name of a partition and the partition, a function of the Relay language with types, when a program is
        compiled. It gives a function that is called with numpy arrays: the tensors that the partition reads, tuples field by field, then
        those of its results to write to. Calls may be in several threads at once.
    """
    if codegen is None:
        return lambda function: register_external_codegen(name, function)
    made: dict[int, str] = {}
    number = next(_COUNT)
    generate = codegen

    def packed(function: Function) -> str:
        key = structural_hash(function)
        if key not in made:
            symbol = str(function.attrs.get("global_symbol", "partition"))
            register_func(f"relayc.external.{name}.{number}.{symbol}.{key:x}", generate(symbol, function))
            made[key] = f"relayc.external.{name}.{number}.{symbol}.{key:x}"
        return made[key]

    GENERATORS[name] = packed
    return codegen


def remove_external_codegen(name: str) -> None:
    """Unregisters a code generator: relayc then compiles its partitions. Raises KeyError if there is none."""
    del GENERATORS[name]


def debug(expr: Expr, debug_func: Callable[..., Any] | None = None) -> Expr:
    """The value of an expression, which a Python function sees when the program runs.

    Args:
      debug_func: called with the arrays of the value, those of a tuple one by one; by default a breakpoint.
    """
    if debug_func is None:
        return call("debug", [expr])
    name = f"debug.{next(_COUNT)}"
    register_func(name, _seeing(debug_func))
    return call("debug", [expr], {"debug_func": name})


def _seeing(function: Callable[..., Any]) -> Callable[..., None]:
    """A packed function that copies arrays, once a function has seen them."""

    def see(*arrays: Any) -> None:
        given, results = arrays[: len(arrays) // 2], arrays[len(arrays) // 2 :]
        function(*(array.copy() for array in given))
        for array, result in zip(given, results, strict=True):
            result[...] = array

    return see


register_func("relayc.debug", _seeing(lambda *arrays: breakpoint()))
op.__dict__["debug"] = debug  # frontends register no functions
