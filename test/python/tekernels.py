"""Helpers of the schedule tests: te kernels built in Python, scheduled, compiled and run."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from jitted import call

from relayc.dialects.mlir import func, ir, make_context
from relayc.dialects.relay import IRModule, TensorType
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile
from relayc.pipelines.driver.lowering import te_to_tir
from relayc.pipelines.program.tir import TirModule
from relayc.pipelines.targets.cpu.jit import jit
from relayc.pipelines.targets.cpu.lowering import lower_to_llvm
from relayc.pipelines.te.read import graph
from relayc.pipelines.te.rules.core import te_type
from relayc.runtime.artifact import aligned_empty
from relayc.runtime.threads import Team

Kernel = tuple[Callable[..., Sequence[ir.Value]], Sequence[np.ndarray]]
"""What builds the te operations of a kernel from its arguments and gives the results, and the arrays to call it with."""


def te_module(kernels: Sequence[Kernel]) -> IRModule:
    """A te module whose main calls each kernel with inputs of its own and returns all results. Needs an ambient context."""
    mod = IRModule(ir.Module.create())
    with ir.InsertionPoint(mod.module.body):
        functions = [_function(f"kernel{i}", body, arrays) for i, (body, arrays) in enumerate(kernels)]
        signatures = [ir.FunctionType(ir.TypeAttr(f.attributes["function_type"]).value) for f in functions]
        inputs, results = [t for s in signatures for t in s.inputs], [t for s in signatures for t in s.results]
        main = func.FuncOp("main", (inputs, results))
        block = main.add_entry_block()
        with ir.InsertionPoint(block):
            arguments, found = iter(block.arguments), []
            for i, signature in enumerate(signatures):
                operands = [next(arguments) for _ in signature.inputs]
                found += list(func.CallOp(list(signature.results), ir.FlatSymbolRefAttr.get(f"kernel{i}"), operands).operation.results)
            func.ReturnOp(found)
    mod.module.operation.verify()
    return mod


def _function(name: str, body: Callable[..., Sequence[ir.Value]], arrays: Sequence[np.ndarray]) -> func.FuncOp:
    types = [te_type(TensorType.of_array(a)) for a in arrays]
    function = func.FuncOp(name, (types, []), visibility="private")
    block = function.add_entry_block()
    with ir.InsertionPoint(block):
        results = list(body(*block.arguments))
        func.ReturnOp(results)
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, [r.type for r in results]))
    return function


class Program:
    """Kernels compiled together.

    Attributes:
      tir: the module in the tir stage (its functions are those of the llvm dialect by now).
    """

    def __init__(self, *kernels: Kernel, target: Target | None = None) -> None:
        target = target or Target("cpu")
        self.counts = [0] * len(kernels)
        with make_context(), ir.Location.name("test"):
            with PassContext(config={"target": target}):
                self.tir: TirModule = te_to_tir(te_module(kernels))
            self.tir.module.operation.verify()
            self.text, self.outputs = str(self.tir.module), self.tir.programs[0].outputs
            lower_to_llvm(self.tir.module, target)
            self.engine = jit(self.tir.module, target)
        self.arrays = [np.ascontiguousarray(a) for _, arrays in kernels for a in arrays]
        self.arena, self.params = aligned_empty(max(p.arena_bytes for p in self.tir.programs)), aligned_empty(self.tir.params_bytes)

    def run_with_threads(self, count: int) -> list[np.ndarray]:
        """What `run` gives with a number of threads."""
        with Team(count):
            return self.run()

    def run(self) -> list[np.ndarray]:
        """The results of all kernels, in order; memory outside them is checked to be left alone."""
        buffers = [aligned_empty(spec.num_bytes + 2 * GUARD) for spec in self.outputs]
        for buffer in buffers:
            buffer[:] = GUARD_BYTE
        outputs = [b[GUARD:-GUARD].view(s.dtype).reshape(s.shape) for b, s in zip(buffers, self.outputs, strict=True)]
        call(self.engine, "main", *self.arrays, *outputs, self.arena, self.params)
        for buffer in buffers:
            assert (buffer[:GUARD] == GUARD_BYTE).all() and (buffer[-GUARD:] == GUARD_BYTE).all(), "a store outside the result"
        return outputs


GUARD, GUARD_BYTE = 64, 0xA5


def run_te(body: Callable[..., Sequence[ir.Value]], *arrays: np.ndarray, **options: Any) -> list[np.ndarray]:
    """The results of one kernel."""
    return Program((body, arrays), **options).run()


def changed_kernels(mod: IRModule, others: Sequence[Sequence[tuple[int, str, str]]]) -> Iterator[graph.Kernel]:
    """The te kernel of a program of one, then the same with each list of changes: number of an occurrence of a text, the text, and what
    replaces it."""
    whole = str(compile(mod, stop_after="te"))
    whole = whole[: whole.index("func.func @main")] + "}"
    for changes in [(), *others]:
        text = whole
        for number, before, after in changes:
            parts = text.split(before)
            assert number < len(parts) - 1, before
            text = before.join(parts[: number + 1]) + after + before.join(parts[number + 1 :])
        parsed = IRModule.parse(text)
        with parsed.context:
            yield graph.read_kernel(parsed.module.body.operations[0])
