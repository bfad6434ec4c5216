"""What is known of programs, by Relay's names: without running them (frontend.relay.analysis), by fusing and by running them."""

from collections.abc import Mapping
from typing import Any

from relayc.frontend.relay import analysis as _static
from relayc.frontend.relay.analysis import *  # noqa: F403 (its __all__ are Relay's names)
from relayc.frontend.relay.ast import Call, Function, GlobalVar, RelayModule, Tuple, TupleGetItem, TupleType, structural_hash
from relayc.frontend.relay.ast.functor import post_order
from relayc.frontend.relay.inference import infer_module
from relayc.relay.executor import create_executor
from relayc.relay.transform import FuseOps

__all__ = [*_static.__all__, "extract_fused_functions", "get_calibration_data"]


def extract_fused_functions(mod: RelayModule) -> dict[int, Function]:
    """The functions of main that are to be one kernel each, by their structural hash; functions that are the same are there once."""
    nodes = post_order(FuseOps()(mod)["main"])
    found = [node for node in nodes if isinstance(node, Function) and node.attrs.get("Primitive")]
    return {structural_hash(function): function for function in found}


def get_calibration_data(mod: RelayModule, data: Mapping[str, Any]) -> dict[GlobalVar, dict[str, list[Any]]]:
    """What the partitions of a program are given and give in a call of main: arrays by "inputs" and "outputs", by global variable.

    Args:
      mod: has partitions: functions with the attribute Compiler, of which main calls each once.
      data: arrays for the parameters of main, by name.

    Raises:
      ValueError: main calls a partition several times, or not at all. RelayError: as `create_executor`.
    """
    typed = infer_module(mod)
    main, partitions = typed["main"], {v.name_hint: v for v, f in typed.functions.items() if "Compiler" in f.attrs}
    nodes = [node for node in post_order(main.body) if isinstance(node, Call) and isinstance(node.op, GlobalVar)]
    calls = [node for node in nodes if node.op.name_hint in partitions]  # type: ignore[attr-defined] # a global variable
    names = [call.op.name_hint for call in calls]  # type: ignore[attr-defined]
    if sorted(names) != sorted(partitions):
        raise ValueError(f"get_calibration_data: expected one call of each partition ({', '.join(sorted(partitions))}), found {names}")
    results = [
        [TupleGetItem(call, i) for i in range(len(call.checked_type.fields))] if isinstance(call.checked_type, TupleType) else [call]
        for call in calls
    ]
    values = Tuple([Tuple([Tuple(call.args), Tuple(result)]) for call, result in zip(calls, results, strict=True)])
    found = create_executor("graph", typed).evaluate(Function(main.params, values))(*(data[p.name_hint] for p in main.params))
    return {partitions[name]: {"inputs": inputs, "outputs": outputs} for name, (inputs, outputs) in zip(names, found, strict=True)}
