"""`torch.compile(model, backend="relayc")`, for inference: each graph that torch captures is a program.

Options, as `torch.compile(..., options={...})`: `freeze` makes the parameters constants of the programs, in the layouts that kernels want:
faster, and changes of the parameters afterwards are not seen. The others are those of `relayc.compile`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._guards import TracingContext
from torch._subclasses.fake_tensor import unset_fake_temporarily

from relayc.frontend.pytorch.fx import FxProgram, from_fx
from relayc.frontend.pytorch.registry import KEPT, plain_name
from relayc.pipelines.driver.compile import compile as compile_module
from relayc.runtime.tensor import from_torch, is_torch, to_torch


def backend(graph_module: Any, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, **_: Any) -> Callable[..., Any]:
    """What torch calls with each graph. Raises ModelError for a graph that is not supported, and for one of training."""
    given = {**(options or {})}
    freeze = given.pop("freeze", False)

    def held() -> dict[int, Any]:
        """The tensors that arguments always are."""
        context = TracingContext.try_get()
        if not freeze or context is None or context.fw_metadata is None:
            return {}
        meta = context.fw_metadata
        written = set(meta.mutated_inp_runtime_indices)
        return {i: example_inputs[i] for i in meta.static_input_indices if i not in written and is_torch(example_inputs[i])}

    def compiled(graph: Any, _: Sequence[Any]) -> Callable[..., Any]:
        with unset_fake_temporarily():
            program = from_fx(graph, held())
            module = compile_module(program.module, **given)
        return make_boxed_func(_Call(program, module["main"]))

    def refused(graph: Any, _: Sequence[Any]) -> Callable[..., Any]:
        raise ValueError("torch.compile: expected a model in inference (torch.no_grad()), found one whose gradients are wanted")

    found: Callable[..., Any] = aot_autograd(
        fw_compiler=refused,
        bw_compiler=refused,
        inference_compiler=compiled,
        decompositions=_decompositions(),
        keep_inference_input_mutations=False,
    )(graph_module, example_inputs)
    return found


def _decompositions() -> dict[Any, Any]:
    table = torch._decomp.core_aten_decompositions()
    return {operator: f for operator, f in table.items() if plain_name(operator).rpartition(".")[0] not in KEPT}


class _Call:
    """A call of a program as one of the graph that it was made of."""

    def __init__(self, program: FxProgram, function: Any) -> None:
        self._inputs, self._outputs, self._function = program.inputs, program.outputs, function

    def __call__(self, *args: Any) -> list[Any]:
        given = [args[i] for i in self._inputs]
        found = self._function(*[from_torch(a) if is_torch(a) else _number(a) for a in given])
        arrays = found if isinstance(found, tuple) else (found,)
        return [self._result(kind, where, arrays) for kind, where in self._outputs]

    @staticmethod
    def _result(kind: str, where: Any, arrays: Sequence[Any]) -> Any:
        if kind == "tensor":
            return to_torch(arrays[where])
        return arrays[where].item() if kind == "number" else where


def _number(value: int) -> Any:
    return np.asarray(value, np.int64)
