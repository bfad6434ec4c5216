"""Helpers of the tests of GPU targets: kernels that the tests write themselves, run by the emulation."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import tvm_ffi

from relayc.dialects.functions import signature_of, symbol_name
from relayc.dialects.mlir import func, ir, make_context
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.context.backend import find_backend
from relayc.pipelines.context.target import Target
from relayc.pipelines.program.packed_entry import PackedEntry
from relayc.pipelines.tir.strategy.table import STRATEGIES, Entry, Strategy, register_strategies
from relayc.runtime.artifact import TensorSpec


@contextmanager
def only_function(text: str) -> Iterator[func.FuncOp]:
    """The only function of a module in MLIR text; its context ends with the block."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        (function,) = module.body.operations
        yield function


def emulated(text: str, **options) -> dict[str, tvm_ffi.Function]:
    """The functions of a tir module in MLIR text, by name, for the emulation of a GPU; `options` are those of the target.

    A function takes static memrefs, for which arrays are given, and values of type index behind them.
    """
    target = Target("cuda", emulate=True, **options)
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        entries = {symbol_name(op): _entry(op) for op in module.body.operations if isinstance(op, func.FuncOp)}
        backend = find_backend(target.kind)
        backend.lower(module, target)
        code = backend.machine_code(module, target, entries)
    return {name: tvm_ffi.Function.__from_extern_c__(address, keep_alive_object=code.owner) for name, address in code.functions.items()}


def _entry(function: func.FuncOp) -> PackedEntry:
    types = signature_of(function).inputs
    buffers = [t for t in types if isinstance(t, ir.MemRefType)]
    tensors = [TensorType.from_mlir(ir.RankedTensorType.get(t.shape, t.element_type)) for t in buffers]
    specs = tuple(TensorSpec(f"a{i}", t.shape, t.dtype) for i, t in enumerate(tensors))
    return PackedEntry(specs, tuple(f"n{i}" for i in range(len(types) - len(specs))))


def kernel(name: str, arguments: str, body: str, threads: int | Sequence[int] = 64, grid: int | Sequence[int] = 1, shared: str = "") -> str:
    """A function that launches one kernel of its name: its blocks are %b0, %b1 and %b2 of %g0, %g1 and %g2, its threads %t0, %t1 and %t2 of
    %s0, %s1 and %s2; `shared` is what its workgroup attributions are."""
    sizes = [[*([n] if isinstance(n, int) else n), 1, 1][:3] for n in (grid, threads)]
    constants = "".join(f"  %{s}{i}c = arith.constant {n} : index\n" for s, ns in zip("gs", sizes, strict=True) for i, n in enumerate(ns))
    of_grid, of_block = (", ".join(f"%{s}{i} = %{s}{i}c" for i in range(3)) for s in "gs")
    memory = f" workgroup({shared})" if shared else ""
    return f"""
func.func private @{name}({arguments}) {{
{constants}  gpu.launch blocks(%b0, %b1, %b2) in ({of_grid}) threads(%t0, %t1, %t2) in ({of_block}){memory} {{
{body}
    gpu.terminator
  }}
  return
}}
"""


@contextmanager
def strategy(schedule: Strategy) -> Iterator[None]:
    """A strategy for kernels on NVIDIA GPUs, which is asked first inside."""
    register_strategies("cuda", Entry("test", schedule))
    try:
        yield
    finally:
        STRATEGIES["cuda"].pop(0)
