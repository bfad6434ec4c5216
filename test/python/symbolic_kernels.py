"""Helpers of the tests of symbolic kernels: relay text to one compiled kernel that runs at any sizes, and the same with static shapes."""

import ctypes
import re
import time
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

import relayc
from relayc.dialects.functions import symbol_name
from relayc.dialects.mlir import func, ir, scf
from relayc.dialects.relay import IRModule
from relayc.dialects.relay.types import shape_of
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission.sizes import symbol_names, tensor_count
from relayc.pipelines.targets.cpu.jit import jit
from relayc.pipelines.targets.cpu.lowering import lower_to_llvm
from relayc.pipelines.te.read.graph import Kernel, Node, NotStructured, read_kernel
from relayc.pipelines.tir.fallback.bufferize import bufferize_kernel
from relayc.pipelines.tir.strategy.choice import schedule_kernel
from relayc.pipelines.tir.strategy.scheduled import Scheduled
from relayc.pipelines.tir.strategy.table import tuning_for
from relayc.runtime.artifact import aligned_array, numpy_dtype
from relayc.symbolic import Size, evaluate, parse


def with_sizes(text: str, sizes: Mapping[str, int]) -> str:
    """Relay text with every symbolic type made static: `tensor<?x4xf32, ["n"]>` becomes `tensor<7x4xf32>`; texts in attributes too."""

    def type_(found: re.Match) -> str:
        texts = iter(re.findall(r'"([^"]*)"', found.group(2)))
        dims = [str(evaluate(parse(next(texts)), sizes)) if d == "?" else d for d in found.group(1).split("x")]
        return f"tensor<{'x'.join(dims)}>"

    text = re.sub(r"tensor<([^<>,]*), \[([^\]]*)\]>", type_, text)

    def attribute(found: re.Match) -> str:
        entries = [e.strip() for e in found.group(2).split(",")]
        values = [str(evaluate(parse(e.strip('"')), sizes)) if e.startswith('"') else e for e in entries]
        return f"{found.group(1)} = array<i64: {', '.join(values)}>"

    return re.sub(r'(\w+) = \[((?:"[^"]*"|-?\d+)(?:, (?:"[^"]*"|-?\d+))*)\]', attribute, text)


class SymbolicKernel:
    """The kernel of a relay module of one function `main` that becomes one fusion group, compiled once.

    Attributes:
      schedule: the strategy that it got, and its numbers.
      tir: text of the kernel.
      seconds: that scheduling and code generation took.
    """

    def __init__(
        self, text: str, target: str | Target = "cpu -num-threads=2", config: Mapping[str, Any] | None = None, **options: Any
    ) -> None:
        target = target if isinstance(target, Target) else Target(target)
        te = relayc.compile(IRModule.parse(text), target, stop_after="te", cache=False, **options)
        start = time.perf_counter()
        with te.context, te.ranges, ir.Location.unknown():
            functions = [f for f in te.module.body.operations if isinstance(f, func.FuncOp) and symbol_name(f) != "main"]
            assert len(functions) == 1, f"expected one kernel, found {[symbol_name(f) for f in functions]}"
            self.kernel = _boundary(functions[0])
            module = ir.Module.create()
            with ir.InsertionPoint(module.body):
                choice = schedule_kernel(functions[0], target, tuning_for(symbol_name(functions[0]), config or {}))
                found = (choice.scheduled, choice) if choice.scheduled is not None else _fallback(functions[0])
                self.scheduled, self.schedule = found[0], str(found[1])
                _repeated(self.scheduled.function)
            module.operation.verify()
            self.tir = str(module)
            lower_to_llvm(module, target)
            for op in module.body.operations:
                if op.operation.name == "llvm.func" and symbol_name(op) == self.kernel.name:
                    op.attributes["no_inline"] = ir.UnitAttr.get()
            self.engine = jit(module, target)
        self.seconds = time.perf_counter() - start
        self._run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.engine.raw_lookup("repeated"))

    def call(self, sizes: Mapping[str, int], inputs: Sequence[np.ndarray]) -> "Call":
        """A call at some sizes; parameters are packed."""
        return Call(self, sizes, inputs)

    def __call__(self, sizes: Mapping[str, int], inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        made = self.call(sizes, inputs)
        made.run()
        return made.outputs


class Call:
    """Arrays for one call. `run(n)` makes it n times from compiled code."""

    def __init__(self, kernel: SymbolicKernel, sizes: Mapping[str, int], inputs: Sequence[np.ndarray]) -> None:
        def at(shape: Sequence[Size]) -> tuple[int, ...]:
            return tuple(evaluate(d, sizes) for d in shape)

        self._function = kernel._run
        arrays = []
        for i, (node, array) in enumerate(zip(kernel.kernel.args, inputs, strict=True)):
            assert array.shape == at(node.shape), f"argument {i}: expected {at(node.shape)}, found {array.shape}"
            array = _aligned(np.ascontiguousarray(array))
            packing = kernel.scheduled.packings.get(i)
            if packing is not None:
                unsigned = np.dtype(f"u{array.dtype.itemsize}")
                packed = aligned_array(packing.shape, unsigned, prod(packing.shape) * array.dtype.itemsize)
                packing.pack(array.view(unsigned), packed)
                array = packed
            arrays.append(array)
        self.outputs = []
        for node in kernel.kernel.results:
            name = {"f32": "float32", "f64": "float64", "bf16": "bfloat16", "f16": "float16"}.get(str(node.element))
            dtype = numpy_dtype(name or f"int{node.element.width}")
            shape = at(node.shape)
            output = aligned_array(shape, dtype, prod(shape) * dtype.itemsize)
            output.view(np.uint8).fill(0xAA) if output.size and output.ndim else None
            self.outputs.append(output)
        arrays += self.outputs
        workspace = at([kernel.scheduled.workspace_bytes])[0]
        if kernel.scheduled.workspace_bytes != 0:
            arrays.append(aligned_array((workspace,), np.dtype(np.uint8), workspace))
        self._count = ctypes.c_int64(1)
        values = [
            *(ctypes.c_void_p(a.ctypes.data) for a in arrays),
            *(ctypes.c_int64(sizes[s]) for s in kernel.kernel.symbols),
            self._count,
        ]
        self._pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
        self._keep = arrays, values

    def run(self, count: int = 1) -> None:
        self._count.value = count
        self._function(self._pointers)


def compare(calls: Sequence[Call], budget: float = 0.15, rounds: int = 9) -> list[float]:
    """Seconds of each call: the least of alternating rounds."""
    counts = []
    for call in calls:
        call.run()
        start = time.perf_counter()
        call.run(3)
        counts.append(max(1, int(budget / rounds / max((time.perf_counter() - start) / 3, 1e-7))))
    best = [1e9] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            call.run(counts[i])
            best[i] = min(best[i], (time.perf_counter() - start) / counts[i])
    return best


def _aligned(array: np.ndarray) -> np.ndarray:
    copy = aligned_array(array.shape, array.dtype, array.nbytes)
    copy[...] = array
    return copy


def _boundary(function: func.FuncOp) -> Kernel:
    """The kernel of a te function; of one that no strategy reads, its arguments and results only."""
    try:
        return read_kernel(function)
    except NotStructured:
        count = tensor_count(function)
        signature = function.type
        args, results = (
            [Node("arg", tuple(shape_of(t)), t.element_type, position=i) for i, t in enumerate(types)]
            for types in (signature.inputs[:count], signature.results)
        )
        return Kernel(function, symbol_name(function), args, results, symbol_names(function))


def _fallback(function: func.FuncOp) -> tuple[Scheduled, str]:
    """The kernel in plain loops, at the ambient insertion point."""
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        function.operation.clone()
    bufferize_kernel(module)
    clones = [op.operation.clone().opview for op in module.body.operations]
    return Scheduled(next(c for c in clones if isinstance(c, func.FuncOp))), "bufferize"


def _repeated(kernel: func.FuncOp) -> None:
    """Builds a function that calls a kernel as often as its last argument says, at the ambient insertion point."""
    types = list(kernel.type.inputs)
    function = func.FuncOp("repeated", ([*types, ir.IndexType.get()], []))
    *arguments, count = function.add_entry_block().arguments
    with ir.InsertionPoint(function.entry_block):
        zero, one = (
            ir.Operation.create("arith.constant", results=[count.type], attributes={"value": ir.IntegerAttr.get(count.type, n)}).results[0]
            for n in (0, 1)
        )
        loop = scf.ForOp(zero, count, one)
        with ir.InsertionPoint(loop.body):
            func.CallOp([], ir.FlatSymbolRefAttr.get(symbol_name(kernel)), arguments)
            scf.YieldOp([])
        func.ReturnOp([])
