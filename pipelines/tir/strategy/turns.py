"""Kernels in loops that go over their parameters to and fro.

A loop whose parameters are somewhat larger than a cache finds none of them there where each iteration begins with those that it used first:
they are what the cache gave up first. Iterations that alternate between going forwards and backwards begin with those that are still there.

A kernel that a loop of a program calls is marked before it is scheduled (REPEATED). Its schedule may ask which way to go (`way`): the loop
says it once the calls of programs are emitted (see program.turning).
"""

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.te.read.graph import Kernel

REPEATED = "relay.repeated"
"""Unit attribute of a kernel of the te stage that a loop of a program calls."""
TURNS = "relay.turns"
"""Unit attribute of a kernel of the tir stage that asks which way to go, and of the constant in it, of type index, that says it: 0, which
is forwards, as where no loop calls it."""


def is_repeated(kernel: Kernel) -> bool:
    """Whether a loop of a program calls a kernel."""
    return REPEATED in kernel.function.attributes


def way() -> ir.Value:
    """Which way the kernel that is being emitted goes: 0 forwards, 1 backwards."""
    attributes = {"value": ir.IntegerAttr.get(ir.IndexType.get(), 0), TURNS: ir.UnitAttr.get()}
    return emit.create("arith.constant", [ir.IndexType.get()], [], attributes)
