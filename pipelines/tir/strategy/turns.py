"""Kernels in loops that go over their parameters to and fro.

A loop whose parameters are somewhat larger than a cache finds none of them there where each iteration begins with those that it used first:
they are what the cache gave up first. Iterations that alternate between going forwards and backwards begin with those that are still there.

A kernel that a loop of a program calls is marked before it is scheduled (REPEATED). Its schedule may ask which way to go (`way`): the loop
says it once the calls of programs are emitted (see program.turning).
"""

from relayc.dialects.discardable import REPEATED, TURNS
from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.te.read.graph import Kernel


def is_repeated(kernel: Kernel) -> bool:
    """Whether a loop of a program calls a kernel."""
    return REPEATED.on(kernel.function)


def way() -> ir.Value:
    """Which way the kernel that is being emitted goes: 0 forwards, 1 backwards."""
    attributes = {"value": ir.IntegerAttr.get(ir.IndexType.get(), 0), **TURNS.entry()}
    return emit.create("arith.constant", [ir.IndexType.get()], [], attributes)
