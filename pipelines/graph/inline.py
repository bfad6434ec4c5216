"""Inline: calls whose callee is small, or has no other call, become a copy of its body, so that fusion and layouts see across them.

What is not worth inlining stays a call of a function that is compiled once. Recursive functions are never inlined. (Upstream's inline pass
takes no operation of a dialect without an inliner interface in C++, so this one is relayc's own.)
"""

from collections.abc import Iterable
from dataclasses import dataclass

from relayc.dialects.functions import is_public, symbol_name
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.callgraph import components, is_recursive
from relayc.pipelines.graph.blocks import graph_blocks
from relayc.pipelines.passes import PassContext, config_option, functions, module_pass
from relayc.pipelines.upstream import run_upstream

config_option(
    "relay.Inline.max_operations",
    int,
    64,
    "operations of a function up to which all its calls are inlined; a private one called once always is",
)


@dataclass
class _Function:
    op: ir.Operation
    size: int


def read_calls(function: ir.Operation) -> list[func.CallOp]:
    """The calls in a function, those in branches and loops too."""
    return [op for block in graph_blocks(function) for op in block.operations if isinstance(op, func.CallOp)]


def _read(function: ir.Operation) -> _Function:
    size = sum(len(block.operations) for block in graph_blocks(function))
    return _Function(function, size)


def _inline(call: func.CallOp, callee: ir.Operation) -> None:
    """Replaces a call by a copy of its callee's body, whose only block ends in func.return."""
    copy = callee.clone()
    block = copy.regions[0].blocks[0]
    for argument, value in zip(block.arguments, call.operation.operands, strict=True):
        argument.replace_all_uses_with(value)
    *body, terminator = list(block.operations)
    for op in body:
        op.operation.move_before(call.operation)
    for old, new in zip(call.operation.results, terminator.operands, strict=True):
        old.replace_all_uses_with(new)
    call.operation.erase()
    copy.erase()


def _count(name: str, all_functions: Iterable[_Function]) -> int:
    """How many calls of a function there are."""
    return sum(call.callee.value == name for function in all_functions for call in read_calls(function.op))


@module_pass(opt_level=1, name="Inline")
def inline(mod: IRModule, ctx: PassContext) -> IRModule:
    """Inlines calls of small functions and of private ones called once, callees first; removes private functions no longer called."""
    found = {symbol_name(f): _read(f) for f in functions(mod)}
    callees = {name: {c.callee.value for c in read_calls(f.op)} & found.keys() for name, f in found.items()}
    order = components(callees)
    kept = {name for component in order if is_recursive(component, callees) for name in component}
    limit = ctx.get("relay.Inline.max_operations")
    for name in (name for component in order for name in component):
        for call in read_calls(found[name].op):
            callee = found.get(call.callee.value)
            if callee is None or call.callee.value in kept:
                continue
            if callee.size <= limit or (not is_public(callee.op) and _count(call.callee.value, found.values()) == 1):
                _inline(call, callee.op)
                found[name].size += callee.size
    run_upstream(mod.module.operation, "symbol-dce")
    return mod
