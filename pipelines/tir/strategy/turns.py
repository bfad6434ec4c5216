"""Kernels in loops that traverse their parameters alternately forwards and backwards.

If the parameters of a loop somewhat exceed a cache, each forward iteration starts with the parameters that were evicted first, and misses
throughout. Iterations that alternate in direction start with the parameters that are still cached.

A kernel called in a loop of a program is marked before it is scheduled (REPEATED). Its schedule may request the direction (`way`): the loop
sets it once the calls of programs are emitted (see program.turning).
"""

from relayc.dialects.discardable import REPEATED, TURNS
from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.te.read.graph import Kernel


def is_repeated(kernel: Kernel) -> bool:
    """Whether a loop of a program calls a kernel."""
    return REPEATED.on(kernel.function)


def way() -> ir.Value:
    """The direction of the kernel that is being emitted: 0 forwards, 1 backwards."""
    attributes = {"value": ir.IntegerAttr.get(ir.IndexType.get(), 0), **TURNS.entry()}
    return emit.create("arith.constant", [ir.IndexType.get()], [], attributes)
