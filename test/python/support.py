"""Helpers of the operator tests: build a program of one or a few Relay operators, compile it, run it."""

import os
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relayc.dialects.mlir import func, ir, make_context
from relayc.dialects.relay import IRModule, TensorType, build
from relayc.pipelines.context.instruments import Verifier
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile


@dataclass(frozen=True)
class Const:
    """An array that enters the program as a constant, not as an input."""

    array: np.ndarray


def program(body: Callable[..., Sequence[ir.Value]], arrays: Sequence[Any]) -> IRModule:
    """A module whose main applies `body`, which builds operators and gives the results, to an input for each array (see Const)."""
    inputs = [a for a in arrays if not isinstance(a, Const)]
    with make_context() as context, ir.Location.name("test"):
        mod = IRModule(ir.Module.create())
        with ir.InsertionPoint(mod.module.body):
            main = func.FuncOp("main", ([TensorType.of_array(a).to_mlir() for a in inputs], []))
        block = main.add_entry_block()
        with ir.InsertionPoint(block):
            arguments = iter(block.arguments)
            results = body(*[mod.constant(a.array) if isinstance(a, Const) else next(arguments) for a in arrays])
            func.ReturnOp(list(results))
        signature = ir.FunctionType.get([a.type for a in block.arguments], [r.type for r in results])
        main.attributes["function_type"] = ir.TypeAttr.get(signature)
    assert mod.context is context
    mod.verify()
    return mod


TARGET = "RELAYC_TEST_TARGET"
"""Environment variable: the target that programs of operators are compiled for, as a text; this machine's CPU where there is none."""


def target_of_tests() -> dict[str, Any]:
    """The options of relayc.compile for the target that was asked for."""
    return {"target": Target(os.environ[TARGET])} if TARGET in os.environ else {}


def run_program(body: Callable[..., Sequence[ir.Value]], arrays: Sequence[Any], **options: Any) -> list[np.ndarray]:
    """Compiles `program(body, arrays)` with the options of relayc.compile and gives its outputs."""
    with PassContext(instruments=[Verifier()]):
        module = compile(program(body, arrays), **{**target_of_tests(), **options})
    found = module["main"](*[np.array(a, copy=True) for a in arrays if not isinstance(a, Const)])
    return list(found) if isinstance(found, (list, tuple)) else [found]


SYMBOLIC_SHARE = 5


def _takes_symbols() -> bool:
    name = os.environ.get("PYTEST_CURRENT_TEST", "").rsplit(" ", 1)[0]
    return "RELAYC_TEST_ALL" in os.environ or zlib.crc32(name.encode()) % SYMBOLIC_SHARE == 0


def run(relay_name: str, *arrays: Any, **attrs: Any) -> Any:
    """What one operator gives for `arrays` (np.ndarray, or Const for a compile-time constant): an array, or the list of its results.

    For one test in SYMBOLIC_SHARE, a program in which some of the sizes are symbols must give the same: compiling it takes longer than the
    rest of the test. Which tests these are follows from their names; RELAYC_TEST_ALL=1 in the environment takes all.
    """

    def body(*values: ir.Value) -> Sequence[ir.Value]:
        result = build(relay_name, *values, **attrs)
        return result if isinstance(result, tuple) else [result]

    from symbolic_ops import agrees_with_symbols  # which needs this file

    outputs = run_program(body, arrays)
    if _takes_symbols():
        agrees_with_symbols(body, arrays, outputs)
    return outputs if len(outputs) > 1 else outputs[0]


def run_each(calls: Sequence[tuple[str, dict[str, Any]]], *arrays: Any) -> list[np.ndarray]:
    """What each of several operators of one result, given as (name, attributes), gives for the same arrays; one compilation for all."""
    return run_program(lambda *values: [build(name, *values, **attrs) for name, attrs in calls], arrays)
