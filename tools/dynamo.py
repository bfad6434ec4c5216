"""`torch.compile(model, backend="relayc")`: each graph that torch captures is a program, in training one forwards and one backwards.

Options, as `torch.compile(..., options={...})`: `freeze` makes the parameters constants of the programs of inference, in the layouts that
kernels want: True for good, "tracked" until a parameter has other storage or another version. The others are those of `relayc.compile`.

Operators that relayc lacks are left to eager: the graph becomes several programs around them.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch._C._dynamo import guards
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._guards import TracingContext
from torch._subclasses.fake_tensor import unset_fake_temporarily

from relayc.frontend.pytorch.fx import FxProgram, from_fx
from relayc.frontend.pytorch.partition import in_parts
from relayc.frontend.pytorch.registry import CONVERTERS, plain_name
from relayc.pipelines.driver.compile import compile as compile_module
from relayc.runtime.result_memory import LEAST_BYTES
from relayc.runtime.tensor import is_torch, of_parts, parts_of, to_torch
from relayc.runtime.threads import pause_torch

_empty_strided_cpu = vars(guards)["_empty_strided_cpu"]
"""Uninitialised tensors in half the time of torch.empty_strided; programs of inductor use it. torch's stubs lack it."""


def backend(graph_module: Any, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, **_: Any) -> Callable[..., Any]:
    """The backend that torch calls with each graph. Raises ValueError for an invalid option `freeze`."""
    given = {**(options or {})}
    freeze = given.pop("freeze", False)
    if freeze not in (False, True, "tracked"):
        raise ValueError(f"freeze: expected True, False or 'tracked', found {freeze!r}")

    def frozen(graph: Any) -> dict[str, Any]:
        """The tensors that arguments always are, by the names of their placeholders."""
        context = TracingContext.try_get()
        if not freeze or context is None or context.fw_metadata is None:
            return {}
        meta, names = context.fw_metadata, [n.name for n in graph.graph.find_nodes(op="placeholder")]
        written = set(meta.mutated_inp_runtime_indices)
        chosen = {i: example_inputs[i] for i in meta.static_input_indices if i not in written and is_torch(example_inputs[i])}
        # Tensors of inference mode have no version.
        return {names[i]: t for i, t in chosen.items() if freeze != "tracked" or not t.is_inference()}

    def made(graph: Any, constants: Mapping[str, Any]) -> Callable[..., Any]:
        names = [n.name for n in graph.graph.find_nodes(op="placeholder")]
        held = {i: constants[name] for i, name in enumerate(names) if name in constants}
        with unset_fake_temporarily():
            program = from_fx(graph, held)
            module = compile_module(program.module, **given)
        call = _Call(program, module["main"])
        return _Tracked(call, held, lambda: made(graph, {})) if freeze == "tracked" and held else call

    def of_training(graph: Any, _: Sequence[Any]) -> Callable[..., Any]:
        return make_boxed_func(in_parts(graph, lambda part: made(part, {})))

    def of_inference(graph: Any, _: Sequence[Any]) -> Callable[..., Any]:
        constants = frozen(graph)
        return make_boxed_func(in_parts(graph, lambda part: made(part, constants)))

    found: Callable[..., Any] = aot_autograd(
        fw_compiler=of_training,
        bw_compiler=of_training,
        inference_compiler=of_inference,
        partition_fn=min_cut_rematerialization_partition,
        decompositions=_decompositions(),
        keep_inference_input_mutations=False,
    )(graph_module, example_inputs)
    return found


def _decompositions() -> dict[Any, Any]:
    table = torch._decomp.core_aten_decompositions()
    # Core ATen's table lacks the gradient of the normalisation that updates statistics.
    more = torch._decomp.get_decompositions([torch.ops.aten.batch_norm_backward.default])
    return {operator: f for operator, f in (*table.items(), *more.items()) if plain_name(operator).rpartition(".")[0] not in CONVERTERS}


class _Call:
    """A call of a program as a call of its source graph.

    A program of fixed shapes runs on torch's tensors without further checks, because torch's guards checked the tensors.
    """

    def __init__(self, program: FxProgram, function: Any) -> None:
        self._inputs, self._outputs, self._function = program.inputs, program.outputs, function
        self._complex = program.complex
        self._as_they_are = program.outputs == tuple(("tensor", i) for i in range(len(program.outputs)))
        self._fixed = getattr(function, "fixed_shapes", None)
        made = () if self._fixed is None else self._fixed.outputs
        self._makers = [self._maker(i, *m) for i, m in enumerate(made)]
        self._small = None if self._fixed is None else function.small_calls

    def _maker(self, i: int, shape: tuple[int, ...], dtype: np.dtype, num_bytes: int) -> Callable[[], Any]:
        """A function that creates an uninitialised tensor for output i: torch allocates small tensors, large tensors reuse memory."""
        if num_bytes >= LEAST_BYTES:
            function = self._function
            return lambda: to_torch(function.result(i, (shape, dtype, num_bytes)))
        like = to_torch(np.empty(shape, dtype))
        return partial(_empty_strided_cpu, tuple(like.shape), like.stride(), like.dtype)

    def __call__(self, *args: Any) -> list[Any]:
        if self._small is None and torch.get_num_threads() > 1:
            pause_torch()
        found = self._run([parts_of(a) if i in self._complex else a for i, a in enumerate(args)] if self._complex else args)
        if self._as_they_are:
            return found
        return [args[where] if kind == "argument" else self._result(kind, where, found) for kind, where in self._outputs]

    def _run(self, args: Sequence[Any]) -> list[Any]:
        """The results of the program, as tensors."""
        if self._fixed is not None:
            tensors = []
            for i in self._inputs:
                value = args[i]
                # torch's negative bit: the elements in memory have the opposite sign.
                if not isinstance(value, torch.Tensor) or not value.is_contiguous() or value.is_neg():
                    break
                tensors.append(value)
            else:
                results = [make() for make in self._makers]
                if self._small is not None:
                    self._small.execute(tensors, results)
                else:
                    self._function.execute(tensors, results, self._fixed)
                return results
        found = self._function(*[_argument(args[i]) for i in self._inputs])
        return [to_torch(array) for array in (found if isinstance(found, tuple) else (found,))]

    @staticmethod
    def _result(kind: str, where: Any, found: Sequence[Any]) -> Any:
        if kind in ("tensor", "complex"):
            return found[where] if kind == "tensor" else of_parts(found[where])
        return found[where].item() if kind == "number" else where


class _Tracked:
    """A program with constants, until one of them is written to or replaced; from then on the program that takes them as arguments.

    Args:
      held: the constants, by the number of the argument.
      other: makes the other program.
    """

    def __init__(self, call: _Call, held: Mapping[int, Any], other: Callable[[], Callable[..., Any]]) -> None:
        self._call: Callable[..., Any] = call
        self._seen, self._other = [(i, _state(t)) for i, t in held.items()], other

    def __call__(self, *args: Any) -> Any:
        if any(_state(args[i]) != seen for i, seen in self._seen):
            self._call, self._seen = self._other(), []
        return self._call(*args)


def _state(tensor: Any) -> tuple[int, int]:
    """What changes when a tensor gets another storage, or is written to."""
    return tensor.data_ptr(), tensor._version


def _argument(value: Any) -> Any:
    """A tensor without its gradient, which a graph has the operators of itself; a number as an array."""
    if not isinstance(value, torch.Tensor):
        return np.asarray(value, np.int64)
    return value.detach() if value.requires_grad else value
